"""Features whose inner products approximate the Gaussian kernel."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from semiparam_dynamics.learning.features import RandomFourierFeatures


def test_random_fourier_features_approximate_the_kernel() -> None:
    X = np.random.default_rng(0).standard_normal((40, 5))
    exact = rbf_kernel(X, gamma=0.5 / 1.7**2)
    errors = []
    for n in (200, 20_000):
        phi = RandomFourierFeatures(n, length_scale=1.7, random_state=0).fit_transform(X)
        assert phi.shape == (40, n)
        np.testing.assert_allclose(np.sum(phi**2, axis=1), 1.0, rtol=1e-12)
        errors.append(np.abs(phi @ phi.T - exact).max())
    assert errors[1] < 0.04
    assert errors[1] < 0.35 * errors[0]  # falls as 1 / sqrt(n)
