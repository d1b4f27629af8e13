"""Pushes on a simulated arm, by MuJoCo, and a kilogram picked up after them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.changes.external_wrench import tool_frame
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import parse_urdf
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

from .changing_arm import learner, monitor

URDF = (Path(__file__).resolve().parent.parent / "data" / "seven_joint_arm.urdf").read_text()
JOINTS = tuple(f"joint{i}" for i in range(1, 8))
LEARN, HOLD, PUSHES, AFTER = 30.0, 2.0, 4, 2.0  # s, s, their number, s


def test_pushes_of_two_seconds_are_no_changes_and_a_kilogram_is_one() -> None:
    """Each push of 5 to 50 N lasts as long as the pause after it."""
    effects = {"friction_coulomb": 1.0, "compliance": 1e-4, "hysteresis": 3e-4, "noise_effort": 0.1}
    arm = ArmSimulator(
        URDF,
        **{f"effects__{name}": value for name, value in effects.items()},
        hand_frame=tool_frame(parse_urdf(URDF), JOINTS),
        motion="exciting",
        max_velocity=1.0,
        excitation=0.4,
        period=300.0,
        rate=50.0,
        joints=JOINTS,
    )
    of = learner(RobotModel(URDF, joints=JOINTS))
    rng, turn, loaded = np.random.default_rng(0), -1, False
    end = LEARN + 2.0 * HOLD * PUSHES
    for measurement in simulated(arm, "effort"):
        now = measurement.stamp * 1e-9
        if (step := of.predict(measurement)) is not None:
            of.update(of.admit(step))
        if LEARN <= now < end and int((now - LEARN) / HOLD) != turn:
            turn = int((now - LEARN) / HOLD)
            force = rng.standard_normal(3)
            force *= 5.0 * 10.0 ** rng.uniform() / np.linalg.norm(force)
            arm.hand.push(force if turn % 2 == 0 else 0.0 * force)
        if now >= end and not loaded:
            assert {e.cause for e in monitor(of).events} <= {"contact", "contact over"}
            loaded = True
            arm.hand.push(np.zeros(3))
            arm.hand.attach(1.0, np.array([0.0, 0.0, 0.05]), 1e-3 * np.eye(3))
        if now >= end + AFTER:
            break
    found = [e for e in monitor(of).events if e.cause == "payload"]
    assert len(found) == 1 and found[0].stamp * 1e-9 < end + 1.0
    assert monitor(of).payload.mass == pytest.approx(1.0, abs=0.15)
