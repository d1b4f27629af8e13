"""Effort mode against MuJoCo itself, and what happens when nobody commands."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.errors import SampleError
from semiparam_dynamics.simulation.arm import ArmSimulator
from semiparam_dynamics.simulation.config import NO_EFFECTS, SimulatorConfig
from semiparam_dynamics.simulation.urdf import Arm, read_urdf

from ..control.arm import JOINTS, SEVEN

mujoco = pytest.importorskip("mujoco", reason="needs the extra 'sim'")
RATE = 500.0


def make(**values: object) -> ArmSimulator:
    config = SimulatorConfig(effects=NO_EFFECTS)
    return ArmSimulator(
        SEVEN, config, joints=JOINTS, control="effort", motion="exciting", rate=RATE, **values
    )


def test_commanded_efforts_move_it_as_mujoco_does():
    arm = make()
    text = Arm(read_urdf(SEVEN), JOINTS).moving_part()
    extra = '<mujoco><compiler fusestatic="false" balanceinertia="true"/></mujoco></robot>'
    model = mujoco.MjModel.from_xml_string(text.replace("</robot>", extra))
    model.opt.timestep = 1.0 / RATE
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    data = mujoco.MjData(model)
    data.qpos[:] = arm.advance().q_true
    rng = np.random.default_rng(0)
    for k in range(500):
        effort = 20.0 * np.sin(0.05 * k + np.arange(4)) + rng.normal(size=4)
        if k == 0:
            # The first reading's step was made on the brakes: start from the second one.
            arm.command(effort)
            reading = arm.advance()
            data.qpos[:], data.qvel[:] = reading.q_true, reading.dq_true
        else:
            arm.command(effort)
            reading = arm.advance()
            np.testing.assert_allclose(reading.q_true, data.qpos, atol=1e-9)
            np.testing.assert_allclose(reading.dq_true, data.qvel, atol=1e-9)
        np.testing.assert_array_equal(reading.effort_true, effort)
        data.qfrc_applied[:] = effort
        mujoco.mj_step(model, data)
    assert np.abs(data.qvel).max() > 0.1


def test_held_until_the_first_command_and_damped_after_the_last():
    arm = make(command_timeout=0.05)
    start = arm.advance().q_true
    for _ in range(500):
        reading = arm.advance()
    np.testing.assert_allclose(reading.q_true, start, atol=1e-6)
    push = np.array([3.0, -20.0, 1.0, 8.0])
    arm.command(push)
    readings = [arm.advance() for _ in range(1000)]
    held = round(0.05 * RATE) + 1
    assert all((reading.effort_true == push).all() for reading in readings[:held])
    for reading in readings[held + 1 :]:
        assert reading.effort_true @ reading.dq_true <= 0.0  # takes energy out
    speed = [np.abs(reading.dq_true).max() for reading in readings]
    assert 0.01 < speed[-1] < 3.0  # sinks, but doesn't fall freely
    arm.command(push)
    np.testing.assert_array_equal(arm.advance().effort_true, push)


def test_a_command_of_another_size_or_not_finite_is_refused():
    arm = make()
    for wrong in (np.zeros(3), np.full(4, np.nan), np.array([np.inf, 0.0, 0.0, 0.0])):
        with pytest.raises(SampleError, match="4 finite efforts"):
            arm.command(wrong)


def test_its_own_motion_takes_no_commands():
    one, other = (
        ArmSimulator(SEVEN, joints=JOINTS, motion="exciting", rate=RATE) for _ in range(2)
    )
    for _ in range(100):
        other.command(np.full(4, 5.0))
        np.testing.assert_array_equal(one.advance().q, other.advance().q)
