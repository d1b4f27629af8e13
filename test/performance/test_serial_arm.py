from __future__ import annotations

import numpy as np
from serial_arm import measured, moving, serial_arm_urdf

from semiparam_dynamics.robot.model import RobotModel


def test_velocities_are_the_positions_derivatives_and_all_is_excited() -> None:
    model = RobotModel(serial_arm_urdf())
    t, q, dq, y = moving(model, 20.0, 200.0)
    assert q.shape == dq.shape == y.shape == (4000, 7) and t[1] == 0.005
    np.testing.assert_allclose((q[2:] - q[:-2]) / 0.01, dq[1:-1], atol=2e-3)
    low, high = model.position_limits
    assert np.all((q > low) & (q < high)) and np.all(q.std(axis=0) > 0.05)
    assert np.all(y.std(axis=0) > 0.1)


def test_measurements_are_that_motion() -> None:
    model = RobotModel(serial_arm_urdf(3))
    _, q, dq, y = moving(model, 0.5, 100.0)
    stream = measured(model, 0.5, 100.0)
    np.testing.assert_array_equal([m.q for m in stream], q)
    np.testing.assert_array_equal([m.dq for m in stream], dq)
    np.testing.assert_array_equal([m.y for m in stream], y)
    assert set(np.diff([m.stamp for m in stream])) == {10_000_000}
