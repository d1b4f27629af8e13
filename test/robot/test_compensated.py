"""Efforts of a driver that takes gravity out, beside pinocchio's own inverse dynamics."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.robot.model import RobotModel, expected_scales

from ..dynamics.arms import motion
from .pinocchio_states import torques

ARMS = Path(__file__).resolve().parent.parent / "data"
TILTED = (2.0, -3.0, -9.0)


def with_masses(urdf: str, seed: int, share: float = 0.3) -> str:
    """The URDF with each mass, and nothing else, a little different."""
    rng = np.random.default_rng(seed)

    def other(found: re.Match[str]) -> str:
        return f'<mass value="{float(found[1]) * (1.0 + share * rng.uniform(-1.0, 1.0))}"'

    return re.sub(r'<mass value="([^"]*)"', other, urdf)


def by_pinocchio(model: RobotModel, *states: np.ndarray) -> np.ndarray:
    """(n, n_joints) torques of a model's URDF; only its tree is used."""
    return torques(model.kinematics, model.joint_names, *states)


@pytest.fixture(params=("small_arm.urdf", "seven_joint_arm.urdf"))
def urdf(request: pytest.FixtureRequest) -> str:
    return (ARMS / request.param).read_text()


def random_states(model: RobotModel, n: int = 30) -> np.ndarray:
    return np.random.default_rng(3).standard_normal((3, n, model.n_joints))


def test_a_driver_that_knows_the_robot_leaves_its_motion(urdf: str) -> None:
    model = RobotModel(urdf, effort_gravity="compensated", gravity=TILTED)
    q, dq, ddq = random_states(model)
    left = by_pinocchio(model, q, dq, ddq) - by_pinocchio(model, q, 0.0 * q, 0.0 * q)
    np.testing.assert_allclose(model.regressors(q, dq, ddq) @ model.prior, left, atol=1e-9)
    whole = by_pinocchio(model, q, dq, ddq)
    np.testing.assert_allclose(model.regressors(q, dq, ddq) @ model.exerted, whole, atol=1e-9)
    assert not model.gravity.any()


def test_the_errors_of_a_driver_are_linear_in_what_it_does_not_know(urdf: str) -> None:
    """Of a driver whose masses are up to 30 % wrong, in the columns of the weight."""
    model = RobotModel(urdf, effort_gravity="compensated", gravity=TILTED)
    driver = RobotModel(with_masses(urdf, 1), gravity=TILTED)
    q, dq, ddq = random_states(model)
    left = by_pinocchio(model, q, dq, ddq) - by_pinocchio(driver, q, 0.0 * q, 0.0 * q)
    unknown = (model.inertial_prior - driver.inertial_prior).reshape(-1, 10)[:, :4].ravel()
    parameters = np.zeros(len(model.full_labels))
    parameters[: model.inertial_prior.size] = model.inertial_prior
    places = [i for i, label in enumerate(model.full_labels) if label.startswith("weight_")]
    parameters[places] = unknown
    said = model.regressors(q, dq, ddq) @ model.base.project(parameters)
    np.testing.assert_allclose(said, left, atol=1e-9)
    assert np.abs(said - model.regressors(q, dq, ddq) @ model.prior).max() > 0.1


@pytest.mark.parametrize("gravity", ["included", "compensated"])
def test_a_load_has_all_of_its_weight_and_inertia(urdf: str, gravity: str) -> None:
    model = RobotModel(urdf, effort_gravity=gravity, gravity=TILTED)
    q, dq, ddq = random_states(model)
    for body in range(len(model.bodies)):
        load = pin.Inertia(1.7, np.array([0.05, -0.1, 0.2]), 0.02 * np.eye(3))
        held = model.kinematics.copy()
        joint = model.kinematics.frames[model.kinematics.getFrameId(model.bodies[body])].parentJoint
        held.appendBodyToJoint(joint, load, pin.SE3.Identity())
        added = torques(held, model.joint_names, q, dq, ddq) - by_pinocchio(model, q, dq, ddq)
        said = model.regressors(q, dq, ddq) @ model.added(body) @ load.toDynamicParameters()
        np.testing.assert_allclose(said, added, atol=1e-9)


def test_sizes_are_those_of_what_the_drives_exert(urdf: str) -> None:
    """Friction goes with the whole load of a drive, whatever its driver publishes of it."""
    sizes = [
        expected_scales(RobotModel(urdf, effort_gravity=gravity)).output
        for gravity in ("included", "compensated")
    ]
    np.testing.assert_allclose(*sizes)


@pytest.mark.usefixtures("seldom_inferred")
def test_a_driver_s_errors_are_learned(urdf: str) -> None:
    """On motion not seen: to a tenth of what a model without weight is left with."""
    robot, driver = RobotModel(with_masses(urdf, 2)), RobotModel(with_masses(urdf, 1))
    errors = {}
    for name, options in {
        "no weight": {"gravity": (0.0, 0.0, 0.0)},
        "compensated": {"effort_gravity": "compensated"},
    }.items():
        model = RobotModel(urdf, **options)
        body = RigidBodyIdentifier.of(model, RigidBodyConfig())
        for seed in (0, 1):
            states = motion(model, np.arange(400) * 0.05, seed)
            q = states[0]
            y = by_pinocchio(robot, *states) - by_pinocchio(driver, q, 0.0 * q, 0.0 * q)
            phi = model.regressors(*states)
            if seed == 0:
                for k in range(len(q)):
                    body.update(phi[k], y[k], k * 50_000_000)
            errors[name] = float(np.sqrt(np.mean((phi @ body.parameters - y) ** 2)))
    assert errors["compensated"] < 0.1 * errors["no weight"]


def test_nothing_is_left_of_a_weight_where_there_is_no_gravity(urdf: str) -> None:
    model = RobotModel(urdf, effort_gravity="compensated", gravity=(0.0, 0.0, 0.0))
    assert not any(label.startswith("weight_") for label in model.labels)


def test_logs_of_a_real_arm(data_file: Callable[[str], Path]) -> None:
    """The xMate's own efforts, less what its URDF weighs with masses 5 % wrong."""
    folder = data_file("robots/xmate7p")
    urdf = folder / "xmate7p.urdf"
    log = np.load(folder / "trajectory_1.npz")
    q, dq = log["q"][:3000:3], log["dq"][:3000:3]
    ddq = np.gradient(log["dq"], float(log["dt"]), axis=0)[:3000:3]
    known = RobotModel(urdf)
    factors = 1.0 + 0.05 * np.random.default_rng(0).standard_normal(len(known.bodies))
    pi = (known.inertial_prior.reshape(-1, 10) * factors[:, None]).ravel()
    weight = np.array([known.inertial_regressor(x, 0.0 * x, 0.0 * x) @ pi for x in q])
    y, left = log["tau"][:3000:3], {}
    for name, model, measured in (
        ("whole", known, y),
        ("compensated", RobotModel(urdf, effort_gravity="compensated"), y - weight),
        ("no weight", RobotModel(urdf, gravity=(0.0, 0.0, 0.0)), y - weight),
    ):
        phi = model.regressors(q, dq, ddq) / y.std(axis=0)[:, None]
        rows, target = phi.reshape(-1, model.n_parameters), (measured / y.std(axis=0)).ravel()
        ridge = 0.1 * expected_scales(model).root()
        found = np.linalg.lstsq(
            np.vstack((rows[: len(rows) // 2], ridge)),
            np.concatenate((target[: len(rows) // 2], np.zeros(len(ridge)))),
            rcond=None,
        )[0]
        errors = target[len(rows) // 2 :] - rows[len(rows) // 2 :] @ found
        left[name] = float(np.sqrt(np.mean(errors**2)))
    assert left["compensated"] < 1.03 * left["whole"]
    assert left["no weight"] > 1.05 * left["whole"]
