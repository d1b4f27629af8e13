"""Feature vectors that came from elsewhere, checked before anything sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import RefusedError


def feature_vector(
    data: npt.ArrayLike, n_inputs: int | None, max_inputs: int, *, normalize: bool
) -> Array:
    """The numbers of `data`, (d,), in double precision; with `normalize` scaled to length 1.

    n_inputs: how many there must be, None while that is open. max_inputs: how many there may be.

    Raises RefusedError for another number of them, values that aren't finite, and a vector of
    zeros, which belongs to nothing.
    """
    vector: npt.NDArray[Any] = np.asarray(data).ravel()
    if n_inputs is not None and len(vector) != n_inputs:
        raise RefusedError(
            f"a feature vector of {len(vector)} numbers, where the objects taught so far have "
            f"{n_inputs}; ~/reset forgets them",
            reason="feature vector's length",
        )
    if not 0 < len(vector) <= max_inputs:
        raise RefusedError(
            f"a feature vector of {len(vector)} numbers; 1 to {max_inputs} are allowed "
            "(max_inputs)",
            reason="feature vector's length",
        )
    checked: Array = vector.astype(np.float64)
    if not np.isfinite(checked).all():
        raise RefusedError("a feature vector has values that are not finite", "features not finite")
    length = float(np.linalg.norm(checked))
    if length == 0.0:
        raise RefusedError("a feature vector of zeros", reason="features all zero")
    return checked / length if normalize else checked
