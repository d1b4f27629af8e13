"""Learner, controller and MuJoCo together, and wrong masses."""

from __future__ import annotations

import numpy as np
import pytest
from closed_loop import Comparison, ComparisonConfig, compare, run, with_wrong_masses

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import from_flat, replace, to_flat
from semiparam_dynamics.control.plan import trajectory_of
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.simulation.arm import ArmSimulator

from ..control.arm import JOINTS, LEARNER, ROTORS, SEVEN, SIMULATOR, controller, plan_of
from ..simulation.no_effects import NO_EFFECTS

pytest.importorskip("mujoco", reason="needs the extra 'sim'")
SECONDS, SINCE = 6.0, 4.0


def settings() -> ComparisonConfig:
    """The small arm with its effects, controller and learner."""
    gains = {"controller.gains.rotor_inertia": (ROTORS,)}
    return from_flat(ComparisonConfig, {**SIMULATOR, **LEARNER, **gains})


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare(SEVEN, settings(), SECONDS, SINCE, mass_error=(0.1, 0.3))


def test_the_learned_feed_forwards_halve_the_error_of_every_joint(comparison):
    rms = comparison.rms()
    for name in ("rigid_body", "semiparametric"):
        assert (rms[name] < 0.5 * rms["urdf"]).all()
        assert comparison.ratio(name) < 0.25
        assert comparison.runs[name].share[-1].min() > 0.5  # of a joint it isn't sure of yet
    assert not comparison.runs["urdf"].share.any()
    np.testing.assert_allclose(
        rms["urdf"], np.sqrt(np.mean(comparison.runs["urdf"].error[2000:] ** 2, axis=0)), rtol=1e-3
    )


def test_the_same_numbers_at_every_run(comparison):
    again = compare(SEVEN, settings(), 2.0, 1.0, mass_error=(0.1, 0.3))
    for name, done in again.runs.items():
        np.testing.assert_array_equal(done.effort, comparison.runs[name].effort[:1000])


def test_a_learner_that_dies_leaves_the_urdfs_feed_forward_without_a_jump():
    config = settings()
    arm = ArmSimulator(SEVEN, config.simulator, control="effort")
    model = RobotModel(arm.urdf, joints=arm.joint_names)
    learner = InverseDynamicsLearner(model, config.learner)
    control = controller(model, gains__rotor_inertia=(ROTORS,), trust__fade_time=0.3)
    done = run(arm, plan_of(arm, model), control, learner, 8.0, learner_ends=5.5)
    before = (done.time > 4.5) & (done.time < 5.5)
    after = done.time > 5.9  # the answers ahead are used up, then it fades in 0.3 s
    assert done.share[before].min() > 0.3
    assert not done.share[after].any() and not done.correction[after].any()
    assert np.abs(done.correction[before]).max() > 1.0
    # It fades: no step is larger than the difference of both feed-forwards times dt / fade_time.
    steps = np.abs(np.diff(done.correction[(done.time > 5.4) & (done.time < 6.0)], axis=0))
    assert steps.max() < 3.0 * np.abs(done.correction[before]).max() * arm.period / 0.3
    assert steps.max() <= control.limit.max() * 5.0 * arm.period
    worse = np.sqrt(np.mean(done.error[done.time > 6.5] ** 2))
    assert 0.0 < worse < 0.05  # goes on, as with the URDF alone
    assert done.late > 0 and done.asked > done.late


def test_with_the_true_urdf_only_the_rotors_are_left_to_feedback():
    config = settings()
    effects = to_flat(NO_EFFECTS) | {"rotor_inertia": ROTORS}
    quiet = {f"effects__{name}": value for name, value in effects.items()}
    arm = ArmSimulator(SEVEN, config.simulator, control="effort", **quiet)
    model = RobotModel(arm.urdf, joints=arm.joint_names)
    control = controller(model, feedforward="urdf", gains__rotor_inertia=(ROTORS,))
    done = run(arm, plan_of(arm, model), control, None, 5.0)
    np.testing.assert_array_equal(done.error, done.link_error)
    # (M + J) w^2 e = J ddq_d where all is slow: less than without any M.
    motion = trajectory_of(SEVEN, arm.joint_names, arm.config.motion, arm.config.seed)
    bound = np.abs(motion(done.time)[2]).max(axis=0) / 20.0**2
    assert (np.abs(done.error).max(axis=0) < 0.5 * bound).all()
    assert (np.abs(done.error).max(axis=0) > 1e-5).all()


def test_an_arm_that_falls_is_named() -> None:
    weak = replace(settings(), controller__bounds__effort=(1.0,))  # too little to hold its weight
    done = compare(SEVEN, weak, 2.0, 1.0)
    assert set(done.lost()) == set(done.runs)
    assert all(error > done.following_error for _, error in done.lost().values())
    assert all(run.clipped.mean() > 0.5 for run in done.runs.values())


def test_wrong_masses_move_every_link_and_nothing_else():
    right = RobotModel(SEVEN, joints=JOINTS)
    wrong = RobotModel(with_wrong_masses(right.urdf_text, 0.1, 0.3, seed=2), joints=JOINTS)
    first, second = (m.inertial_prior.reshape(-1, 10) for m in (right, wrong))
    ratio = second[:-1, 0] / first[:-1, 0]  # the last body is several links, each its own way off
    assert ((np.abs(ratio - 1.0) >= 0.1) & (np.abs(ratio - 1.0) <= 0.3)).all()
    assert (ratio > 1.0).any() and (ratio < 1.0).any()
    np.testing.assert_allclose(second[:-1], ratio[:, None] * first[:-1], rtol=1e-9)
    assert right.joint_names == wrong.joint_names
    same = RobotModel(with_wrong_masses(right.urdf_text, 0.0, 0.0, seed=2), joints=JOINTS)
    np.testing.assert_array_equal(same.inertial_prior, right.inertial_prior)
    with pytest.raises(ConfigurationError, match="wrong by"):
        with_wrong_masses(right.urdf_text, 0.3, 0.1, seed=0)
