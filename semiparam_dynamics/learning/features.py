"""Random Fourier features of the Gaussian kernel (thesis chapter 5, section 8.2.2)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.compatibility import validate_data


def draw_frequencies(n: int, n_inputs: int, length_scale: float, seed: Any) -> Array:
    """Frequencies (n, d) ~ N(0, length_scale^-2 I): the Gaussian kernel's spectral density.

    Thesis (8.9) prints the variance as sigma^2; the kernel of width sigma needs sigma^-2.
    """
    draws: Array = check_random_state(seed).standard_normal((n, n_inputs))
    return draws / length_scale


def fourier_features(X: Array, frequencies: Array) -> Array:
    """[cos(X w'), sin(X w')] / sqrt(n) for inputs (d,) or (k, d): features (2n,) or (k, 2n).

    Their inner products approximate exp(-|x - x'|^2 / 2 sigma^2), and their norm is 1.
    """
    phase = X @ frequencies.T
    return np.concatenate((np.cos(phase), np.sin(phase)), axis=-1) / math.sqrt(len(frequencies))


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
        self.frequencies_ = draw_frequencies(half, X.shape[1], self.length_scale, self.random_state)
        return self

    def transform(self, X: Any) -> Array:
        """Features (n, n_features) of inputs (n, d)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return fourier_features(X, self.frequencies_.astype(X.dtype))
