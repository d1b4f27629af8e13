"""Random Fourier features of the Gaussian kernel (thesis chapter 5, section 8.2.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.compatibility import validate_data
from semiparam_dynamics.learning.fourier import draw_frequencies, fourier_features


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
