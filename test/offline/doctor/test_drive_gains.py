"""Drive gains: what a simulated arm's efforts were divided by comes back, and how far."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.base.errors import BagError, LearningError, RobotModelError
from semiparam_dynamics.offline.doctor.drive_gains import DriveGains, KnownLoad, drive_gains
from semiparam_dynamics.offline.doctor.messages import JointLog
from semiparam_dynamics.offline.doctor.physics import make_columns

from ...dynamics.arms import motion, small_arm
from .logs import arm_log

MODEL = small_arm()
GAINS = np.array([14.0, -9.0, 8.0, 5.5])[: MODEL.n_joints]
MASS, CENTER = 0.8, (0.02, -0.01, 0.06)


@cache
def loaded_log(scale: float = 1.0) -> JointLog:
    """Another motion, with a ball in the hand; its efforts are pinocchio's."""
    log = arm_log(20.0, 50.0, seed=3)
    model = pin.buildModelFromXML(MODEL.urdf_text)
    chosen = [model.getJointId(name) for name in MODEL.joint_names]
    locked = [k for k in range(1, model.njoints) if k not in chosen]
    model = pin.buildReducedModel(model, locked, pin.neutral(model))
    ball = pin.Inertia(MASS, np.array(CENTER), 0.002 * MASS * np.eye(3))
    bare = model.copy()
    model.inertias[model.njoints - 1] += ball
    q, dq, ddq = motion(MODEL, log.times, 3)
    rows = [model.joints[model.getJointId(name)].idx_v for name in MODEL.joint_names]
    order, more = np.argsort(rows), []
    for at, speed, acceleration in zip(q[:, order], dq[:, order], ddq[:, order], strict=True):
        way = pin.integrate(model, pin.neutral(model), at)
        state = way, speed, acceleration
        efforts = [pin.rnea(m, m.createData(), *state) for m in (model, bare)]
        more.append((efforts[0] - efforts[1])[rows])
    return dataclasses.replace(log, y=log.y + scale * np.array(more))


def gains_of(log: JointLog, loaded: JointLog | None = None, **load: object) -> DriveGains:
    logs = [log] if loaded is None else [log, loaded]
    in_units = [dataclasses.replace(one, y=one.y / GAINS) for one in logs]
    columns = [make_columns(one, MODEL, 5.0) for one in in_units]
    known = KnownLoad(MASS, **load) if loaded is not None else None
    return drive_gains(MODEL.joint_names, MODEL, columns[0], *columns[1:], known)


def test_by_the_urdf_they_are_relative_and_within_their_deviations() -> None:
    found = gains_of(arm_log(20.0, 50.0))
    assert not found.absolute
    error = np.log(found.gains / GAINS)[found.told]
    assert found.told.sum() >= 3
    assert np.abs(error).max() < 0.05
    whole = np.hypot(found.own_std[found.told], found.common_std)
    assert np.all(np.abs(error) < 3.0 * whole)


def test_a_urdf_that_is_too_heavy_moves_the_common_factor_and_a_known_load_does_not() -> None:
    """Efforts of an arm with 0.7 times the URDF's masses, in which the load is what it is."""
    heavy = 1.0 / 0.7
    bare = arm_log(20.0, 50.0)
    bare = dataclasses.replace(bare, y=0.7 * bare.y)
    with_load = loaded_log(heavy)
    with_load = dataclasses.replace(with_load, y=0.7 * with_load.y)
    relative = gains_of(bare)
    common = np.mean(np.log(relative.gains / GAINS)[relative.told])
    assert common == pytest.approx(np.log(heavy), abs=0.1)
    found = gains_of(bare, with_load, center=CENTER)
    assert found.absolute and found.common_std < 0.5 * relative.common_std
    error = np.log(found.gains / GAINS)[found.told]
    assert np.abs(error).max() < 0.05
    assert abs(np.mean(error)) < 3.0 * found.common_std + 0.01


def test_a_load_of_unknown_centre_serves_and_a_doubtful_mass_is_told() -> None:
    sure = gains_of(arm_log(20.0, 50.0), loaded_log())
    assert np.abs(np.log(sure.gains / GAINS)[sure.told]).max() < 0.05
    doubtful = gains_of(arm_log(20.0, 50.0), loaded_log(), mass_std=0.4 * MASS)
    assert doubtful.common_std > sure.common_std


def test_a_joint_that_feels_neither_weight_nor_inertia_is_not_told() -> None:
    log = arm_log(20.0, 50.0)
    y = log.y.copy()
    y[:, -1] = 0.4 * np.tanh(np.gradient(log.q[:, -1], log.times) / 0.05)
    found = gains_of(dataclasses.replace(log, y=y))
    assert not found.told[-1] and found.own_std[-1] == 1.0 and found.told[:-1].any()


def wandering_last(log: JointLog) -> JointLog:
    """With a last effort that wanders and by its own fit alone has the opposite sign."""
    y, n, window = log.y.copy(), len(log.y), np.hanning(200)
    noise = np.random.default_rng(0).standard_normal(n + len(window) - 1)
    wander = np.convolve(noise, window / np.linalg.norm(window), "valid")
    y[:, -1] = -0.6 * y[:, -1] + y[:, -1].std() * wander
    return dataclasses.replace(log, y=y)


@pytest.mark.parametrize(("turned", "expected"), [((0, 1, 2), -1.0), ((1,), 1.0)])
def test_a_sign_that_is_not_told_is_the_others_or_plus(turned, expected: float) -> None:
    log = wandering_last(arm_log(20.0, 50.0))
    signs = np.ones(MODEL.n_joints)
    signs[list(turned)] = -1.0
    columns = make_columns(dataclasses.replace(log, y=log.y * signs), MODEL, 5.0)
    found = drive_gains(MODEL.joint_names, MODEL, columns)
    assert found.told.tolist() == [True, True, True, False]
    np.testing.assert_array_equal(np.sign(found.gains), [*signs[:3], expected])


def test_a_second_of_motion_is_refused() -> None:
    log = arm_log(20.0, 50.0)
    for rows in (25, 51):
        with pytest.raises(BagError, match="too few to look at"):
            gains_of(log.rows(slice(0, rows)))


def test_what_tells_nothing_is_refused() -> None:
    log = arm_log(20.0, 50.0)
    noise = np.random.default_rng(0).standard_normal(log.y.shape)
    with pytest.raises(LearningError, match="gain|weight"):
        gains_of(dataclasses.replace(log, y=noise))
    columns = make_columns(log, MODEL, 5.0)
    with pytest.raises(RobotModelError, match="none that moves"):
        drive_gains(MODEL.joint_names, MODEL, columns, columns, KnownLoad(1.0, link="table"))
    with pytest.raises(LearningError, match="mass"):
        drive_gains(MODEL.joint_names, MODEL, columns, columns)
