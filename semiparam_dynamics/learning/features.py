"""Random Fourier features of the Gaussian kernel (thesis chapter 5, section 8.2.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.centers import choose_centers
from semiparam_dynamics.learning.kernels import as_kernel
from semiparam_dynamics.learning.products import evaluate_into, nystrom_map
from semiparam_dynamics.learning.rows import Rows, validate_data
from semiparam_dynamics.recursion.features import draw_frequencies, fourier_features

# -------------------------------------------------------------------------------------------------
# Nyström features as a scikit-learn transformer.


class NystromFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Map inputs to features whose inner products are the kernel's Nyström approximation.

    phi(x)'phi(x') = K(x, C) K(C, C)^+ K(C, x'), exact wherever x or x' is a centre. The features
    of the first centres are the first features. They take the place of
    :class:`RandomFourierFeatures` in a pipeline with any linear method.

    Parameters
    ----------
    kernel : a kernel, or a function of two matrices of rows; None: ``Gaussian(1.0)``.
    n_centers : m, at most as many as there are rows.
    centers : "uniform", "leverage_scores" (of penalty 1e-3), or the centres themselves, (m, d).
    random_state : seed of the centres.

    Attributes
    ----------
    centers_ : (m, d).
    n_components : q <= m, the number of features: of centres that others don't explain.
    """

    def __init__(
        self,
        kernel: Any = None,
        n_centers: int = 100,
        centers: Any = "uniform",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_centers = n_centers
        self.centers = centers
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> NystromFeatures:
        """Choose centres among inputs (n, d).

        Raises LearningError if the kernel is zero at every centre.
        """
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        rows = Rows.from_arrays(X, np.zeros(len(X), X.dtype))
        kernel = as_kernel(self.kernel)
        self.centers_ = choose_centers(
            self.centers, rows, self.n_centers, kernel, 1e-3, self.random_state
        ).points
        self._basis = NystromBasis(kernel, self.centers_)
        if not self._basis.n_features:
            raise LearningError("The kernel is zero on every centre: there is no feature.")
        return self

    @property
    def n_components(self) -> int:
        """q, the number of features."""
        check_is_fitted(self)
        return self._basis.n_features

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def transform(self, X: Any) -> Array:
        """Features (n, q) of inputs X (n, d), in the dtype of X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        features = nystrom_map(self._basis, self._basis.dtype)
        K = np.empty((len(X), features.n_features), self._basis.dtype)
        # In the fit's precision: L may have too large a condition for a lower one.
        evaluate_into(features.evaluate, X.astype(K.dtype, copy=False), K)
        phi = K if features.finish is None else features.finish(K)
        return np.ascontiguousarray(phi, dtype=X.dtype)


class RandomFourierFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Map inputs to random features whose inner products approximate a Gaussian kernel.

    Parameters
    ----------
    n_features : features, half cosines and half sines (an odd number is rounded down).
    length_scale : the kernel's width sigma, in the inputs' unit.
    random_state : seed or generator of the frequencies.
    """

    def __init__(
        self, n_features: int = 500, length_scale: float = 1.0, random_state: Any = None
    ) -> None:
        self.n_features = n_features
        self.length_scale = length_scale
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RandomFourierFeatures:
        """Draw the frequencies for inputs (n, d)."""
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        half = max(self.n_features // 2, 1)
        random = check_random_state(self.random_state)
        self.frequencies_ = draw_frequencies(half, X.shape[1], self.length_scale, random)
        return self

    def transform(self, X: Any) -> Array:
        """Features (n, n_features) of inputs (n, d)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return fourier_features(X, self.frequencies_.astype(X.dtype))
