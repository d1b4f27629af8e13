"""What the hand holds and what pushes it, beside pinocchio's dynamics of the loaded arm."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.errors import ConfigurationError

from .test_arm import RigidBodies, icub, readings

pytest.importorskip("mujoco", reason="needs the extra 'sim'")

HAND = "r_hand_dh_frame"
MASS, CENTER = 0.7, np.array([0.02, -0.05, 0.08])
INERTIA = np.array([[4e-3, 5e-4, 0.0], [5e-4, 3e-3, -2e-4], [0.0, -2e-4, 2e-3]])


def test_a_body_in_the_hand_is_exact_rigid_body_dynamics() -> None:
    arm = icub(motion="circle_xz")
    bare, loaded = RigidBodies(arm), RigidBodies(arm)
    hand = loaded.model.frames[loaded.model.getFrameId(HAND)]
    body = pin.Inertia(MASS, CENTER, INERTIA)
    loaded.model.appendBodyToJoint(hand.parentJoint, body, hand.placement)
    loaded.data = loaded.model.createData()
    for oracle, mass in ((bare, 0.0), (loaded, MASS), (bare, 0.0)):
        arm.hand.attach(mass, CENTER, INERTIA)
        for reading in readings(arm, 60)[::7]:
            np.testing.assert_allclose(reading.wrench, oracle.wrench(reading), atol=1e-9)
            np.testing.assert_allclose(reading.effort, oracle.torque(reading), atol=1e-9)


def test_another_body_takes_the_place_of_the_one_before() -> None:
    arm = icub()
    mass = float(arm._model.body_subtreemass[0])
    for held in (0.5, 2.0, 0.0):
        arm.hand.attach(held, CENTER, INERTIA * held)
        assert arm._model.body_subtreemass[0] == pytest.approx(mass + held)


def test_a_push_is_felt_at_the_sensor_with_its_lever() -> None:
    arm = icub(motion="circle_xz")
    oracle = RigidBodies(arm)
    force, point = np.array([3.0, -4.0, 12.0]), np.array([0.0, -0.1, 0.02])
    readings(arm, 20)
    arm.hand.push(force, point)
    for reading in readings(arm, 60)[::7]:
        missing = oracle.wrench(reading) - reading.wrench
        q = oracle._configuration(reading.q_true)
        pin.framesForwardKinematics(oracle.model, oracle.data, q)
        sensor, hand = (
            oracle.data.oMf[oracle.model.getFrameId(name)] for name in (arm.sensor_frame, HAND)
        )
        np.testing.assert_allclose(sensor.rotation @ missing[:3], force, atol=1e-9)
        lever = hand.act(point) - sensor.translation
        np.testing.assert_allclose(sensor.rotation @ missing[3:], np.cross(lever, force), atol=1e-9)
    arm.hand.push(np.zeros(3))
    for reading in readings(arm, 5):
        np.testing.assert_allclose(reading.wrench, oracle.wrench(reading), atol=1e-9)


def test_what_is_no_body_is_refused() -> None:
    arm = icub()
    with pytest.raises(ConfigurationError, match="negative"):
        arm.hand.attach(-0.1, CENTER, INERTIA)
    with pytest.raises(ConfigurationError, match="negative"):
        arm.hand.attach(0.1, CENTER, -INERTIA)
