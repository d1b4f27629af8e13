"""Consistent parameters: they fit, they are bodies, and the URDF fills what motion leaves out."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig
from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.identification.consistent import (
    AxisFactors,
    axis_weights,
    consistent,
    unconstrained,
)
from semiparam_dynamics.identification.joint_friction import effect_bounds
from semiparam_dynamics.identification.log_cholesky import is_body, pseudo_inertia
from semiparam_dynamics.robot.model import RobotModel

from ..dynamics.arms import small_arm
from .arm_samples import factors, other_robot, samples


def bodies(model: RobotModel, values: np.ndarray) -> np.ndarray:
    return values[: model.inertial_prior.size].reshape(-1, 10)


def objective(model: RobotModel, data: AxisFactors, values: np.ndarray, weight: float) -> float:
    """What `consistent` minimises, as it is defined, but for the effects' ridge."""
    errors = data.squared_error(model.base.project(values))
    total = data.n_samples * float(np.sum(axis_weights(model, data) ** 2 * errors))
    for body, urdf in zip(bodies(model, values), bodies(model, model.inertial_prior), strict=True):
        ratio = np.linalg.solve(pseudo_inertia(urdf), pseudo_inertia(body))
        total += weight * (np.trace(ratio) - np.linalg.slogdet(ratio)[1] - 4.0)
    return total


@pytest.mark.parametrize("seed", range(3))
def test_a_known_robot_is_predicted_on_motion_never_seen(seed: int) -> None:
    model = small_arm()
    true = model.base.project(other_robot(model, seed))
    found = consistent(model, factors(model, samples(model, true, seed=seed)), weight=1e-6)
    other = factors(model, samples(model, true, seed=seed + 10))
    assert other.nmse(model.prior).min() > 1e-2  # the URDF knows no friction
    assert other.nmse(found.base).max() < 1e-6
    assert all(is_body(body) for body in bodies(model, found.values))


def test_what_is_no_robot_becomes_one() -> None:
    model = small_arm()
    wrong = other_robot(model)
    labels = list(model.full_labels)
    wrong[labels.index("m gripper")] = -0.2
    wrong[labels.index("Izz slider")] = -0.05
    wrong[labels.index("coulomb lift")] = -2.0
    data = factors(model, samples(model, model.base.project(wrong), noise=0.01))
    free = unconstrained(model, data, RigidBodyConfig())
    found = consistent(model, data)
    for body in bodies(model, found.values):
        assert body[0] > 0.0
        assert np.linalg.eigvalsh(pseudo_inertia(body)).min() > 0.0
    lower, upper = effect_bounds(model)
    effects = found.values[model.inertial_prior.size :]
    assert np.all(effects >= lower) and np.all(effects <= upper)
    assert found.values[labels.index("coulomb lift")] == 0.0
    # Being a robot costs part of the fit: these data are of none.
    assert data.nmse(free).max() < 0.01 * data.nmse(found.base).max() < 0.01


@pytest.mark.parametrize("weight", [1.0, 1e-3])
def test_no_consistent_robot_near_by_is_better(weight: float) -> None:
    model = small_arm(viscous=False, coulomb=False, offset=False, rotor_inertia=False)
    true = other_robot(model)
    true[list(model.full_labels).index("m gripper")] = -0.2
    data = factors(model, samples(model, model.base.project(true), noise=0.01))
    found = consistent(model, data, weight)
    least = objective(model, data, found.values, weight)
    for seed in range(30):
        towards = other_robot(model, seed + 100) - found.values
        # The problem is convex, so that no way down here means none anywhere.
        for step in (1e-4, 1e-3, 1e-2, 0.1):
            near = found.values + step * towards
            assert objective(model, data, near, weight) > least


def test_what_the_motion_leaves_out_stays_the_urdf_s() -> None:
    # Without gravity a joint that moves alone says nothing of what does not move with it.
    model = small_arm(gravity=(0.0, 0.0, 0.0), offset=False)
    true = model.base.project(other_robot(model))
    moving = np.array([0.0, 0.0, 0.0, 1.0])
    data = factors(model, samples(model, true, noise=0.001, moving=moving))
    found = consistent(model, data)
    still = np.array([not label.endswith(("gripper", "grip")) for label in model.full_labels])
    prior = np.zeros(len(model.full_labels))
    prior[: model.inertial_prior.size] = model.inertial_prior
    assert np.allclose(found.values[still], prior[still], rtol=1e-4, atol=1e-5)
    assert found.excitation[still].max() < 1e-3
    assert found.excitation[~still].max() > 0.9
    assert data.nmse(found.base)[3] < 1e-4 < 0.1 < data.nmse(model.prior)[3]


def test_the_urdf_s_weight() -> None:
    model = small_arm()
    true = other_robot(model)
    data = factors(model, samples(model, model.base.project(true), noise=0.01))
    fits, ways = [], []
    for weight in (1e-3, 1.0, 1e3, 1e9):
        found = consistent(model, data, weight)
        own = bodies(model, found.values)
        fits.append(np.sum(axis_weights(model, data) ** 2 * data.squared_error(found.base)))
        ways.append(np.linalg.norm(own - bodies(model, model.inertial_prior)))
    assert np.all(np.diff(fits) > 0.0)
    assert ways[-1] < 1e-4 * ways[0]


def test_standard_deviations_cover_the_truth_where_the_data_speak() -> None:
    model = small_arm()
    true = other_robot(model)
    data = factors(model, samples(model, model.base.project(true), n=2000, noise=0.05))
    found = consistent(model, data, weight=1e-3)
    sure = found.excitation > 0.999
    assert np.sum(sure) > 10
    off = np.abs(found.values - true)[sure] / found.standard_deviations[sure]
    assert np.mean(off < 3.0) > 0.9
    assert np.median(off) > 0.05  # nor are they boundless


def test_what_is_refused() -> None:
    model = small_arm()
    with pytest.raises(ConfigurationError, match="above 0"):
        consistent(model, AxisFactors(model.n_axes, model.n_parameters), weight=0.0)
    with pytest.raises(LearningError, match="no measured sample"):
        consistent(model, AxisFactors(model.n_axes, model.n_parameters))
