"""The whole loop in MuJoCo: picked up, weighed, told, compensated, released."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="needs the extra 'sim'")

from arms import SEVEN, SEVEN_JOINTS
from payload_bridge import COMMON, PayloadTrial, TrialConfig

from semiparam_dynamics.base.parameters import from_flat

SETTINGS = {
    **COMMON,
    **SEVEN_JOINTS,
    "hand_frame": "hand",
    "driver.gains.rotor_inertia": (0.1,),
    "learner.changes.settle": 6.0,
    "learner.nystrom.max_centers": 60,
    "learner.nystrom.wide_max_centers": 0,
}
TAKEN, RELEASED, END = 14.0, 21.0, 25.0
MASS, CENTER = 2.0, np.array([0.0, 0.0, 0.08])


def test_a_body_that_was_weighed_no_longer_pulls_the_arm_down() -> None:
    """Where the driver's compensation is in the efforts: nodes' tests have those without it."""
    trial = PayloadTrial(str(SEVEN), from_flat(TrialConfig, SETTINGS), "hand")
    trial.until(TAKEN)
    trial.arm.hand.attach(MASS, CENTER, 0.004 * np.eye(3))
    trial.until(RELEASED)
    trial.arm.hand.attach(0.0, np.zeros(3), np.zeros((3, 3)))
    trial.until(END)
    record = trial.record
    masses = [mass for at, mass in record.told if TAKEN < at < RELEASED]
    assert masses[-1] == pytest.approx(MASS, rel=0.1)
    assert len(masses) > 2 and record.step <= 0.05
    assert max(abs(a - b) for a, b in pairwise(m for m in masses if m > 0.9 * MASS)) < 0.2
    assert record.told[-1][1] == 0.0 and record.told[-1][0] < RELEASED + 3.5
    usual = record.rms(TAKEN - 8.0, TAKEN)[1]
    assert record.rms(TAKEN + 0.5, TAKEN + 1.2)[1] > 2.0 * usual  # while it is weighed
    assert record.rms(TAKEN + 4.0, RELEASED)[1] < 1.3 * usual
    assert record.largest(TAKEN + 4.0, RELEASED)[0] < record.largest(TAKEN, TAKEN + 2.0)[0]
    assert trial.bridge is not None and not trial.bridge.trouble
