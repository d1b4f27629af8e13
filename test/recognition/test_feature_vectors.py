"""Feature vectors from elsewhere."""

from __future__ import annotations

from array import array

import numpy as np
import pytest

from semiparam_dynamics.errors import RefusedError
from semiparam_dynamics.recognition.feature_vectors import feature_vector


def test_is_in_double_precision_and_of_length_one_if_asked():
    data = array("f", [3.0, 0.0, 4.0])
    np.testing.assert_array_equal(feature_vector(data, None, 10, normalize=False), [3.0, 0.0, 4.0])
    unit = feature_vector(data, 3, 10, normalize=True)
    assert unit.dtype == np.float64
    np.testing.assert_allclose(unit, [0.6, 0.0, 0.8])
    huge = feature_vector(np.full(4, 3e38, np.float32), 4, 10, normalize=True)
    np.testing.assert_allclose(huge, 0.5)


@pytest.mark.parametrize(
    ("data", "n_inputs", "reason"),
    [
        ([1.0, 2.0], 3, "feature vector's length"),
        ([], None, "feature vector's length"),
        ([1.0] * 11, None, "feature vector's length"),
        ([1.0, np.nan], 2, "features not finite"),
        ([1.0, -np.inf], None, "features not finite"),
        ([0.0, 0.0], 2, "features all zero"),
    ],
)
def test_refuses_with_a_reason(data, n_inputs, reason):
    with pytest.raises(RefusedError) as caught:
        feature_vector(array("f", data), n_inputs, 10, normalize=True)
    assert caught.value.reason == reason
