"""Ridge regression on random features, with its path over their number and the penalty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError, positive_penalty
from semiparam_dynamics.learning.base import Path, RegularisationPath
from semiparam_dynamics.learning.kernels import Gaussian, Kernel, Laplacian, Matern, as_kernel
from semiparam_dynamics.learning.products import FeatureMap, feature_blocks, second_moments
from semiparam_dynamics.learning.ridge import NestedRidge, accumulate
from semiparam_dynamics.learning.rows import ArrayRows, Rows, training_rows, validate_data

# -------------------------------------------------------------------------------------------------
# Random features of stationary kernels: frequencies from their spectral densities.

KINDS = ("phase", "pair")


class SpectralFeatures:
    """Functions psi_1, psi_2, ... with (1 / m) sum_j psi_j(x) psi_j(x') -> K(x, x').

    With frequencies w from the kernel's spectral density (Bochner's theorem; Rahimi, Recht 2007):
    kind "phase" has psi = sqrt(2) cos(w'x + b), b uniform; kind "pair" has the two functions
    sqrt(2) cos(w'x) and sqrt(2) sin(w'x) of each frequency, next to each other. The first of them
    are the same whatever their number.

    The densities, for width sigma: the Gaussian kernel's is normal of scale 1 / sigma; the
    Laplacian's has independent Cauchy entries; Matern's is Student's t with 2 nu degrees of
    freedom (Rasmussen, Williams 2006, section 4.2.1).

    Raises ConfigurationError for another kernel or kind.
    """

    def __init__(
        self, kernel: Kernel, n_features: int, n_inputs: int, kind: str, random_state: Any
    ) -> None:
        if kind not in KINDS:
            raise ConfigurationError(f'kind must be "phase" or "pair", not "{kind}".')
        if n_features < (2 if kind == "pair" else 1):
            raise ConfigurationError(f'n_features={n_features} is too few for kind="{kind}".')
        if not isinstance(kernel, (Gaussian, Laplacian, Matern)):
            raise ConfigurationError(
                f"Random features need the kernel's spectral density; it is known for Gaussian, "
                f"Laplacian and Matern, not for {type(kernel).__name__}."
            )
        n = n_features if kind == "phase" else n_features // 2
        # Each frequency takes a row of normal draws, so that the first ones don't depend on n.
        draws = check_random_state(random_state).standard_normal((n, n_inputs + 2))
        directions, phase, mixing = draws[:, :-2], ndtr(draws[:, -2]), ndtr(draws[:, -1])
        if isinstance(kernel, Laplacian):
            directions = np.tan(np.pi * (ndtr(directions) - 0.5))
        elif isinstance(kernel, Matern):
            kernel.bind(np.zeros((1, n_inputs)))  # checks nu
            freedom = 2.0 * kernel.nu
            directions = directions * np.sqrt(freedom / chi2.ppf(mixing, freedom))[:, None]
        self.frequencies: Array = directions / kernel_widths(kernel, n_inputs)
        self.offsets: Array | None = 2.0 * np.pi * phase if kind == "phase" else None


def fourier_map(frequencies: Array, offsets: Array | None, dtype: Any) -> FeatureMap:
    """x -> sqrt(2) cos(w'x + b), or pairs of sqrt(2) cos(w'x) and sqrt(2) sin(w'x), in `dtype`."""
    transposed = np.ascontiguousarray(frequencies.T, dtype=dtype)
    shift = None if offsets is None else offsets.astype(dtype)
    root = np.dtype(dtype).type(np.sqrt(2.0))

    def block(X: Array) -> Array:
        angle = X @ transposed
        if shift is not None:
            angle += shift
            result = np.cos(angle, out=angle)
        else:
            result = np.empty((len(X), 2 * angle.shape[1]), dtype)
            np.cos(angle, out=result[:, ::2])
            np.sin(angle, out=result[:, 1::2])
        result *= root
        return result

    return FeatureMap(len(frequencies) * (1 if offsets is not None else 2), block)


def kernel_widths(kernel: Any, n_inputs: int) -> Array:
    """The kernel's width for each input, (d,); binding the kernel checks them."""
    kernel.bind(np.zeros((1, n_inputs)))
    return np.broadcast_to(np.asarray(kernel.length_scale, dtype=float), (n_inputs,))


@dataclass(eq=False, repr=False)
class RandomFeaturesKRLS(RegularisationPath, MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Ridge regression on random features of a stationary kernel (thesis 5.3; Rudi, Camoriano,
    Rosasco 2016, equations 5.6 and 5.7 in the thesis).

    f(x) = sum_j psi_j(x) coef_j / sqrt(m) minimises sum_i w_i (f(x_i) - y_i)^2 / n +
    penalty |coef|^2. O(n m^2 + m^3) time, O(m^2) memory beside the limit. Of Dask arrays a
    cluster's workers compute the second moments of their chunks.

    Parameters
    ----------
    kernel : Gaussian, Laplacian or Matern, with one width or one for each input; None:
        ``Gaussian(1.0)``.
    penalty : lambda. It multiplies n, or the sum of the sample weights.
    n_features : m. With kind "pair" an odd number is rounded down.
    kind : "phase", sqrt(2) cos(w'x + b), or "pair", a cosine and a sine of each frequency.
    random_state : seed of the frequencies.
    memory_limit : bytes for blocks of features; None: a quarter of what is free.

    Attributes
    ----------
    frequencies_ : (m, d), or (m / 2, d) with kind "pair".
    offsets_ : b, (m,); None with kind "pair".
    coef_ : (m,) or (m, T) like y.
    """

    path_parameters: ClassVar[tuple[str, ...]] = ("n_features", "penalty")

    kernel: Any = None
    penalty: float = 1e-3
    n_features: int = 500
    kind: str = "phase"
    random_state: Any = None
    memory_limit: int | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RandomFeaturesKRLS:
        """Fit to inputs X (n, d) and outputs y (n,) or (n, T), or to :class:`Rows` alone."""
        penalty = positive_penalty(self.penalty)
        rows = training_rows(self, X, y, sample_weight)
        spectral, psi = self._features(rows, self.n_features)
        m = psi.n_features
        system = self._system(rows, psi, penalty * m)
        # psi / sqrt(m) with the ridge penalty n is psi with the ridge penalty n m.
        beta = system.factor(penalty * m * rows.total_weight).weights()
        self.frequencies_, self.offsets_ = spectral.frequencies, spectral.offsets
        self._dtype = rows.dtype
        coefficients = beta * np.sqrt(m)
        self.coef_ = coefficients[:, 0] if rows.one_output else coefficients
        return self

    def predict(self, X: Any) -> Array:
        """f(x), (n,) or (n, T) as y was, of inputs X (n, d), a block of rows at a time."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=self._dtype, reset=False)
        m = len(self.coef_)
        psi = fourier_map(self.frequencies_, self.offsets_, self._dtype)
        weights = self.coef_.reshape(m, -1) / np.sqrt(m)
        result = _products(X, psi, weights, self._dtype, self.memory_limit)
        return result[:, 0] if self.coef_.ndim == 1 else result

    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """One pass over the data serves all. The estimator with m features scales them by
        1 / sqrt(m), as (5.6) has it, so that they approximate the kernel for each m; the ridge on
        the unscaled ones, penalty n m, is another for each m, and so is the Cholesky factor:
        O(m^3 / 3) for each setting after O(n m^2) for all. (Appendix C of the thesis leaves the
        scale out. There one factor has all m, but the penalty means something else for each.)
        """
        sizes, penalties = chosen["n_features"], chosen["penalty"]
        _, psi = self._features(rows, max(sizes))
        nested = [size if self.kind == "phase" else size - size % 2 for size in sizes]
        if min(nested) < 1:
            raise ConfigurationError(f'n_features={min(sizes)} is too few for kind="{self.kind}".')
        system = self._system(rows, psi, min(penalties) * min(nested))
        T, n = rows.n_outputs, rows.total_weight
        for penalty in penalties:
            weights = np.zeros((psi.n_features, len(sizes) * T))
            for i, m in enumerate(nested):
                columns = slice(i * T, (i + 1) * T)
                weights[:m, columns] = system.factor(penalty * m * n, m).weights()
            predicted = _products(X_validation, psi, weights, rows.dtype, self.memory_limit)
            for i, size in enumerate(sizes):
                setting = {"n_features": size, "penalty": penalty}
                yield setting, predicted[:, i * T : (i + 1) * T]

    def _features(self, rows: Rows, n_features: int) -> tuple[SpectralFeatures, FeatureMap]:
        kernel, d = as_kernel(self.kernel), rows.n_features
        spectral = SpectralFeatures(kernel, n_features, d, self.kind, self.random_state)
        return spectral, fourier_map(spectral.frequencies, spectral.offsets, rows.dtype)

    def _system(self, rows: Rows, psi: FeatureMap, penalty: float) -> NestedRidge:
        """The system of the unscaled features; `penalty` is the smallest for them."""
        ridge, largest = penalty * rows.total_weight, psi.n_features * rows.total_weight
        return accumulate(partial(second_moments, rows, psi, self.memory_limit), ridge, largest)


def _products(X: Array, psi: FeatureMap, weights: Array, dtype: Any, limit: int | None) -> Array:
    """psi(X) weights, (n, T)."""
    rows = ArrayRows(X.astype(dtype, copy=False))
    columns = weights.astype(dtype)
    return np.concatenate([A @ columns for A, _, _ in feature_blocks(rows, psi, limit)])
