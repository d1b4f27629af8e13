"""Ridge regression on random features, with its path over their number and the penalty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, positive_count
from semiparam_dynamics.learning.base import Path, RegularisationPath, fitted_rows
from semiparam_dynamics.learning.centers import uniform
from semiparam_dynamics.learning.feature_sampling import (
    DrawnFeatures,
    SpectralSampler,
    draw_features,
)
from semiparam_dynamics.learning.kernels import CallableKernel, HasKernel, Kernel, as_kernel
from semiparam_dynamics.learning.ridge import (
    FeatureMap,
    NestedRidge,
    accumulate,
    feature_blocks,
    second_moments,
)
from semiparam_dynamics.learning.rows import ArrayRows, Rows, chunk_by_chunk, validate_data

SCALE_ROWS = 100  # rows that the features' scale is measured on


@dataclass(eq=False, repr=False)
class RandomFeaturesKRLS(RegularisationPath, MultiOutputMixin, RegressorMixin, HasKernel):  # type: ignore[misc]
    """Ridge regression on random features of a stationary kernel, or any (thesis 5.3; Rudi,
    Camoriano, Rosasco 2016, equations 5.6 and 5.7 in the thesis).

    f(x) = sum_j psi_j(x) coef_j / sqrt(m) minimises sum_i w_i (f(x_i) - y_i)^2 / n +
    penalty |coef|^2. O(n m^2 + m^3) time, O(m^2) memory in addition to the limit. Of Dask arrays a
    cluster's workers compute the second moments of their chunks.

    Parameters
    ----------
    kernel : Gaussian, Laplacian or Matern, with one width or one for each input, or its name; None:
        as in :class:`~.falkon.Falkon`.
    penalty : lambda. It multiplies n, or the sum of the sample weights; None: the one of the
        features' kernel, as in :class:`~.falkon.Falkon`.
    n_features : m. With kind "pair" an odd number is rounded down.
    kind : "phase", sqrt(2) cos(w'x + b), or "pair", a cosine and a sine of each frequency.
    random_state : seed of the frequencies.
    memory_limit : bytes for blocks of features, and for the rows of an importance; None: a quarter
        of what is free.
    features : None, those of the kernel; or a sampler with sample(n, n_inputs, random), omega
        (n, p), and psi(X, omega), (k, n), see :class:`FeatureSampler`. Then `kernel` must be None.
    importance : None, or the density q, relative to the sampler's, with which omega is drawn, to
        need fewer features (thesis 5.3, remark 1): "leverage", of all features at this penalty (a
        path draws, and reads the data, anew for each), or a function of omega (N, p) and some
        inputs (k, d) that returns (N,) numbers, known up to a factor; see :func:`draw_features`.
        Of a kernel's features with kind "phase" only.
    n_candidates : N, omegas among which importance draws.
    scaled : False: without the factor 1 / sqrt(m), as in appendix C of the thesis: f(x) = sum_j
        psi_j(x) coef_j, whose penalty weighs 1 / m of what it does with the factor. All numbers of
        features then share the Cholesky factors of a path.

    Attributes
    ----------
    frequencies_ : (m, d), or (m / 2, d) with kind "pair"; with features of the kernel, drawn
        without importance.
    offsets_ : b, (m,); None with kind "pair".
    omega_ : (m, p), with other features, or importance.
    weights_ : q^-1/2, (m,), which multiply the features; None without importance.
    coef_ : (m,) or (m, T) like y.
    """

    path_parameters: ClassVar[tuple[str, ...]] = ("n_features", "penalty")

    kernel: Any = None
    penalty: float | None = None
    n_features: int = 500
    kind: str = "phase"
    random_state: Any = None
    memory_limit: int | None = None
    features: Any = None
    importance: Any = None
    n_candidates: int = 5000
    scaled: bool = True

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RandomFeaturesKRLS:
        """Fit to inputs X (n, d) and outputs y (n,) or (n, T), or to :class:`Rows` alone.

        Raises ConfigurationError for parameters that are out of range or exclude each other,
        LearningError for features or an importance that can't be used.
        """
        rows = fitted_rows(self, X, y, sample_weight)
        penalty = self.penalty_
        drawn = self._drawn(rows, self.n_features, penalty)
        psi = drawn.map(rows.dtype)
        m = psi.n_features
        # psi / sqrt(m) with the ridge penalty n is psi with the ridge penalty n m.
        scale = m if self.scaled else 1
        system = self._system(rows, drawn, psi, penalty * scale)
        beta = system.factor(penalty * scale * rows.total_weight).weights()
        for name in ("frequencies_", "offsets_", "omega_", "weights_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if self.features is None and self.importance is None:
            assert isinstance(drawn.sampler, SpectralSampler)
            self.frequencies_, self.offsets_ = drawn.sampler.parts(drawn.omega)
        else:
            self.omega_, self.weights_ = drawn.omega, drawn.weights
        self._features, self._dtype = drawn, rows.dtype
        coefficients = beta * np.sqrt(scale)
        self.coef_ = coefficients[:, 0] if rows.one_output else coefficients
        return self

    @chunk_by_chunk
    def predict(self, X: Any) -> Array:
        """f(x), (n,) or (n, T) as y was, of inputs X (n, d), a block of rows at a time.

        Of a Dask array a Dask array, in the same chunks of rows.
        """
        X = validate_data(self, X, dtype=self._dtype, reset=False)
        m = len(self.coef_)
        psi = self._features.map(self._dtype)
        weights = self.coef_.reshape(m, -1) / np.sqrt(m if self.scaled else 1)
        result = _products(X, psi, weights, self._dtype, self.memory_limit)
        return result[:, 0] if self.coef_.ndim == 1 else result

    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """One pass over the data serves all. The estimator with m features scales them by
        1 / sqrt(m), as (5.6) has it, so that they approximate the kernel for each m; the ridge on
        the unscaled ones, penalty n m, is another for each m, and so is the Cholesky factor:
        O(m^3 / 3) for each setting after O(n m^2) for all. Without the scale, as in appendix C of
        the thesis, one factor for each penalty has all m.

        The importance "leverage" depends on the penalty: each has its own draws, as in a fit, and
        its own pass.
        """
        sizes, penalties = chosen["n_features"], chosen["penalty"]
        nested = [self._functions(size) for size in sizes]
        leverage = isinstance(self.importance, str)
        for together in [[penalty] for penalty in penalties] if leverage else [penalties]:
            drawn = self._drawn(rows, max(sizes), together[0])
            psi = drawn.map(rows.dtype)
            smallest = min(together) * (min(nested) if self.scaled else 1)
            system = self._system(rows, drawn, psi, smallest)
            for penalty in together:
                weights = self._path_weights(system, rows, penalty, nested, psi.n_features)
                predicted = _products(X_validation, psi, weights, rows.dtype, self.memory_limit)
                parts = np.hsplit(predicted, len(sizes))
                for size, part in zip(sizes, parts, strict=True):
                    yield {"n_features": size, "penalty": penalty}, part

    def _path_weights(
        self, system: NestedRidge, rows: Rows, penalty: float, nested: list[int], n_features: int
    ) -> Array:
        """Weights of the unscaled features, side by side for each number of them."""
        T, n = rows.n_outputs, rows.total_weight
        weights = np.zeros((n_features, len(nested) * T))
        for i, m in enumerate(nested):
            columns = slice(i * T, (i + 1) * T)
            if self.scaled:
                weights[:m, columns] = system.factor(penalty * m * n, m).weights()
            else:
                weights[:m, columns] = system.factor(penalty * n).weights(m)
        return weights

    def _kernel_for(self, rows: Rows) -> Kernel:
        """See :class:`~.kernels.HasKernel`; of other features it is the mean of their products."""
        if self.features is None:
            return as_kernel(self.kernel)
        if self.kernel is not None:
            raise ConfigurationError(
                "features have a kernel of their own: leave out either kernel or features."
            )
        count, limit = self.n_features, self.memory_limit
        drawn = draw_features(
            self.features, count, rows, None, count, 1.0, self.random_state, limit
        )
        psi = drawn.map(rows.dtype)
        share = 1.0 / psi.n_features if self.scaled else 1.0
        return CallableKernel(lambda X, C: share * (psi(X) @ psi(C).T))

    def _functions(self, n_features: int) -> int:
        """The number of functions: pairs are whole."""
        if self.features is not None or self.kind != "pair":
            return n_features
        if positive_count(n_features, "n_features") < 2:
            raise ConfigurationError(f'n_features={n_features} is too few for kind="pair".')
        return n_features - n_features % 2

    def _drawn(self, rows: Rows, n_features: int, penalty: float) -> DrawnFeatures:
        if self.features is None and self.importance is not None and self.kind != "phase":
            raise ConfigurationError(
                f'importance draws one function at a time: it needs kind="phase", not '
                f'"{self.kind}".'
            )
        own = self.features is None
        return draw_features(
            SpectralSampler(self.kernel_, self.kind) if own else self.features,
            self._functions(n_features),
            rows,
            self.importance,
            self.n_candidates,
            penalty,
            self.random_state,
            self.memory_limit,
        )

    def _system(
        self, rows: Rows, drawn: DrawnFeatures, psi: FeatureMap, penalty: float
    ) -> NestedRidge:
        """The system of the unscaled features; `penalty` is the smallest for them."""
        squares = drawn.squares(uniform(rows, SCALE_ROWS, 0).points)
        ridge, largest = penalty * rows.total_weight, psi.n_features * rows.total_weight * squares
        return accumulate(partial(second_moments, rows, psi, self.memory_limit), ridge, largest)


def _products(X: Array, psi: FeatureMap, weights: Array, dtype: Any, limit: int | None) -> Array:
    """psi(X) weights, (n, T)."""
    rows = ArrayRows(X.astype(dtype, copy=False))
    columns = weights.astype(dtype)
    return np.concatenate([A @ columns for A, _, _ in feature_blocks(rows, psi, limit)])
