"""The ridge regression that Nyström KRLS is, in the orthonormal basis of its centres."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.centers import choose_centers
from semiparam_dynamics.learning.dask_products import second_moments
from semiparam_dynamics.learning.dask_rows import DaskRows
from semiparam_dynamics.learning.feature_blocks import FeatureMap, feature_blocks, nystrom_map
from semiparam_dynamics.learning.kernels import Kernel, as_kernel
from semiparam_dynamics.learning.ridge import NestedRidge, accumulate, accumulate_by
from semiparam_dynamics.learning.rows import Rows


@dataclass(frozen=True)
class NystromProblem:
    """The centres' basis, its features of the rows, and their system A'WA, A'WY."""

    kernel: Kernel
    basis: NystromBasis
    features: FeatureMap
    system: NestedRidge

    @classmethod
    def of(
        cls,
        rows: Rows,
        kernel: Kernel,
        centers: Array,
        penalty: float,
        memory_limit: int | None = None,
    ) -> NystromProblem:
        """One pass over the rows, for centres (m, d) and penalties from `penalty` upwards."""
        basis = NystromBasis(kernel, centers, dtype=rows.dtype)
        features = nystrom_map(basis, rows.dtype)
        largest = float(kernel.diagonal(basis.centers).max()) * rows.total_weight
        ridge = penalty * rows.total_weight
        if isinstance(rows, DaskRows):
            system = accumulate_by(
                partial(second_moments, rows, features, memory_limit), ridge, largest
            )
        else:
            stream = partial(feature_blocks, rows, features, memory_limit)
            system = accumulate(stream, basis.n_features, rows.n_outputs, ridge, largest)
        return cls(kernel, basis, features, system)


def centers_of(estimator: Any, rows: Rows, n_centers: int, random_state: Any) -> Array:
    """The centres (m, d) that an estimator's parameters ask for."""
    return choose_centers(
        estimator.centers,
        rows,
        n_centers,
        as_kernel(estimator.kernel),
        estimator.penalty,
        random_state,
        estimator.memory_limit,
    ).points
