"""A recording's features at once are those of the learner that sees it sample by sample."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.learning.grown_features import grow_features
from semiparam_dynamics.recursion.features import IncrementalNystromFeatures


@pytest.mark.parametrize(("capacity", "start"), [(200, 0), (12, 0), (200, 30)])
def test_rows_are_the_learners(capacity: int, start: int) -> None:
    X = np.random.default_rng(0).standard_normal((90, 3))
    grown = grow_features(X, 0.8, capacity, 0.4, start)
    one = IncrementalNystromFeatures(3, 0.8, capacity, 0.4)
    for i, x in enumerate(X):
        phi = np.zeros(0)
        if i >= start:
            phi = one.transform(x)
            if one.grow(x, phi):
                phi = one.transform(x)
        m = len(phi)
        assert grown.counts[i] == one.n_centers
        assert np.allclose(grown.rows[i, :m], phi, atol=1e-12)
        assert not grown.rows[i, m:].any()
    assert np.array_equal(grown.centers, one.centers)
    assert 5 < one.n_centers <= capacity
    later = np.random.default_rng(1).standard_normal((8, 3))
    assert np.allclose(grown.transform(later, one.n_centers), [one.transform(x) for x in later])
    few = grown.transform(later, 4)
    assert np.allclose(few[:, :4], grown.transform(later, one.n_centers)[:, :4])
    assert not few[:, 4:].any()
