"""Random Fourier features as plain functions, which nodes load without scikit-learn."""

from __future__ import annotations

import math

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.compiled_fourier import LARGEST, cosines_and_sines


def draw_frequencies(
    n: int, n_inputs: int, length_scale: float, seed: int | np.random.RandomState
) -> Array:
    """Frequencies (n, d) ~ N(0, length_scale^-2 I): the Gaussian kernel's spectral density.

    Thesis (8.9) prints the variance as sigma^2; the kernel of width sigma needs sigma^-2.
    """
    random = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
    return random.standard_normal((n, n_inputs)) / length_scale


def fourier_features(X: Array, frequencies: Array) -> Array:
    """[cos(X w'), sin(X w')] / sqrt(n) for inputs (d,) or (k, d): features (2n,) or (k, 2n).

    Their inner products approximate exp(-|x - x'|^2 / 2 sigma^2), and their norm is 1.
    """
    phase = X @ frequencies.T
    if phase.dtype == np.float64 and np.abs(phase).max(initial=0.0) <= LARGEST:
        features = np.empty((*phase.shape[:-1], 2 * len(frequencies)))
        scale = 1.0 / math.sqrt(len(frequencies))
        cosines_and_sines(np.atleast_2d(phase), scale, np.atleast_2d(features))
        return features
    return np.concatenate((np.cos(phase), np.sin(phase)), axis=-1) / math.sqrt(len(frequencies))
