"""What stands in for a URDF's bodies that can't exist."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.errors import RobotModelError
from semiparam_dynamics.identification.log_cholesky import is_body, nearest_bodies

from ..dynamics.arms import small_arm


def test_a_urdf_without_real_bodies_is_mended() -> None:
    plate = np.array([2.0, 0.2, 0.0, 0.0, 0.0, 0.0, 0.02, 0.0, 0.0, 0.02])  # a mere mass
    nothing = np.zeros(10)
    whole = small_arm().inertial_prior[:10]
    mended = nearest_bodies(np.array([plate, nothing, whole]))
    assert all(is_body(body) for body in mended)
    assert np.array_equal(mended[0][:4], plate[:4])
    assert 0.0 < mended[1][0] < 1e-3
    assert np.array_equal(mended[2], whole)
    with pytest.raises(RobotModelError, match="no moving link a mass"):
        nearest_bodies(np.zeros((2, 10)))
