"""Consistent parameters: they fit, they are bodies, and unexcited ones stay the URDF's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.dynamics.consistent import (
    AxisFactors,
    RealBodies,
    axis_weights,
    consistent,
    effect_bounds,
    effect_labels,
    effect_prior,
)
from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.offline.identification.identify import export_urdf
from semiparam_dynamics.robot.inertia import is_body, pseudo_inertia
from semiparam_dynamics.robot.model import RobotModel, expected_scales

from ..offline.identification.arm_samples import factors, other_robot, samples
from .arms import URDF, small_arm

EFFORT_ARM = small_arm(
    viscous=True, coulomb=True, offset=False, rotor_inertia=False
)  # whose effects all have the lower bound 0


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


def test_where_a_driver_takes_gravity_out_bodies_and_its_errors_are_apart() -> None:
    """Bodies by their inertia alone, and the driver's errors by the weight that is left."""
    model = small_arm(offset=False, rotor_inertia=False, effort_gravity="compensated")
    full = other_robot(model, 1)
    weight = slice(model.inertial_prior.size, model.inertial_prior.size + 4 * len(model.bodies))
    full[weight] = -0.1 * model.inertial_prior.reshape(-1, 10)[:, :4].ravel()
    true = model.base.project(full)
    found = consistent(model, factors(model, samples(model, true)), weight=1e-6)
    other = factors(model, samples(model, true, seed=10))
    assert other.nmse(found.base).max() < 1e-6
    assert all(is_body(body) for body in bodies(model, found.values))
    none = np.where(np.arange(len(full)) < weight.start, full, 0.0)
    none[weight.stop :] = full[weight.stop :]
    assert other.nmse(model.base.project(none)).max() > 1e-3


def test_effects_that_are_not_identified_are_as_if_the_model_had_no_such_columns() -> None:
    model, other = small_arm(), small_arm(offset=False)
    data = samples(model, model.base.project(other_robot(model)))
    regressors = other.regressors(
        *(np.array([getattr(s, k) for s in data]) for k in ("q", "dq", "ddq"))
    )
    same = [replace(s, regressor=r) for s, r in zip(data, regressors, strict=True)]
    wanted = np.array([not label.startswith("offset") for label in effect_labels(model)])
    found = consistent(model, factors(model, data), effects=wanted)
    labels = [label in other.full_labels for label in model.full_labels]
    expected = consistent(other, factors(other, same))
    assert np.allclose(found.values[labels], expected.values, rtol=1e-5, atol=1e-7)
    assert not found.values[np.logical_not(labels)].any()


def test_what_is_no_robot_becomes_one() -> None:
    model = small_arm()
    wrong = other_robot(model)
    labels = list(model.full_labels)
    wrong[labels.index("m gripper")] = -0.2
    wrong[labels.index("Izz slider")] = -0.05
    wrong[labels.index("coulomb lift")] = -2.0
    wrong[labels.index("loaded lift")] = 0.0
    data = factors(model, samples(model, model.base.project(wrong), noise=0.01))
    R, U, _ = data.weighted(np.ones(model.n_axes))
    free = np.linalg.lstsq(R, U)[0]
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
    none = {"viscous": False, "coulomb": False, "offset": False, "rotor_inertia": False}
    model = small_arm(**none, presliding=())
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


def test_bounds_of_coupled_joints() -> None:
    model = RobotModel(str(URDF), coupled_joints=("slew-lift", "lift+grip"))
    bounds = dict(zip(effect_labels(model), zip(*effect_bounds(model), strict=True), strict=True))
    assert bounds["viscous slew"] == (0.0, np.inf)
    assert bounds["offset slew"] == (-np.inf, np.inf)
    assert bounds["coulomb slew-lift"] == bounds["rotor_inertia lift+grip"] == (0.0, np.inf)


def test_the_urdf_s_friction_is_where_identification_starts() -> None:
    text = export_urdf(URDF.read_text(), {}, {"lift": {"damping": 0.7, "friction": 2.0}})
    model = RobotModel(text)
    prior = dict(zip(effect_labels(model), effect_prior(model), strict=True))
    assert prior["viscous lift"] == 0.7 and prior["coulomb lift"] == 2.0
    assert sum(prior.values()) == 2.7


def test_errors_are_those_of_the_rows() -> None:
    model = small_arm()
    measured = samples(model, model.prior, n=1300, noise=0.3)  # more than two chunks
    data = factors(model, measured)
    Phi, y = np.array([s.regressor for s in measured]), np.array([s.y for s in measured])
    pi = model.prior + np.random.default_rng(1).standard_normal(model.n_parameters)
    squares = np.mean((y - Phi @ pi) ** 2, axis=0)
    assert data.n_samples == 1300
    assert np.allclose(data.squared_error(pi), squares, rtol=1e-9)
    assert np.allclose(data.nmse(pi), squares / y.var(axis=0), rtol=1e-7)
    weights = np.array([1.0, 0.5, 2.0, 3.0])
    R, U, rest = data.weighted(weights)
    expected = 1300 * np.sum(weights**2 * squares)
    assert np.sum((R @ pi - U) ** 2) + rest == pytest.approx(expected, rel=1e-9)


def test_an_axis_that_stands_still_has_no_nmse() -> None:
    data = AxisFactors(2, 1)
    for k in range(5):
        data.add(Sample(k, *[np.zeros(1)] * 3, np.ones((2, 1)), np.array([3.0, float(k)])))
    data.add(Sample(9, *[np.zeros(1)] * 3, np.ones((2, 1))))  # nothing was measured
    assert data.n_samples == 5
    assert np.isnan(data.nmse(np.zeros(1))[0])
    assert data.nmse(np.array([2.0]))[1] == pytest.approx(1.0)


def identifier() -> RigidBodyIdentifier:
    scales = expected_scales(EFFORT_ARM)
    zero = np.zeros(EFFORT_ARM.n_parameters)
    return RigidBodyIdentifier(scales, zero, RigidBodyConfig())


def noisy(n: int = 300, moving: np.ndarray | None = None) -> list[Sample]:
    true = np.zeros(len(EFFORT_ARM.full_labels))
    true[: EFFORT_ARM.inertial_prior.size] = 1.3 * EFFORT_ARM.inertial_prior
    true[EFFORT_ARM.inertial_prior.size :] = 0.4
    size = np.abs(EFFORT_ARM.base.project(true)).max()
    return samples(EFFORT_ARM, EFFORT_ARM.base.project(true), n=n, noise=0.02 * size, moving=moving)


def assert_real(values: np.ndarray) -> None:
    for body in values[: EFFORT_ARM.inertial_prior.size].reshape(-1, 10):
        assert body[0] > 0.0 and np.linalg.eigvalsh(pseudo_inertia(body))[0] > 0.0
    assert np.all(values[EFFORT_ARM.inertial_prior.size :] >= effect_bounds(EFFORT_ARM)[0])


def test_at_every_moment_they_are_bodies() -> None:
    rigid_body, bodies = identifier(), RealBodies(EFFORT_ARM)
    assert_real(bodies.values)
    # One joint moves, so that most of what is identified at first belongs to no body at all.
    for k, sample in enumerate(noisy(moving=np.array([0.0, 1.0, 0.0, 0.0]))):
        rigid_body.update(sample.regressor, sample.y, sample.stamp)
        if k % 30 == 0:
            assert_real(bodies.follow(rigid_body, steps=1))


def test_they_predict_as_well_as_what_they_stand_for() -> None:
    rigid_body, bodies = identifier(), RealBodies(EFFORT_ARM)
    measured = noisy()
    for k, sample in enumerate(measured):
        rigid_body.update(sample.regressor, sample.y, sample.stamp)
        if k % 20 == 0:
            bodies.follow(rigid_body)
    bodies.follow(rigid_body, steps=20)
    rows = np.array([sample.regressor for sample in measured])
    y = np.array([sample.y for sample in measured])
    free = np.mean((y - rows @ rigid_body.parameters) ** 2, axis=0)
    real = np.mean((y - rows @ bodies.base) ** 2, axis=0)
    # The URDF's pull, a sample's weight, costs less than a hundredth of what is measured.
    assert np.all(np.sqrt(real) < np.sqrt(free) + 0.01 * y.std(axis=0))


def test_many_steps_lead_where_the_batch_solution_is() -> None:
    rigid_body, bodies, measured = identifier(), RealBodies(EFFORT_ARM), noisy()
    for sample in measured:
        rigid_body.update(sample.regressor, sample.y, sample.stamp)
    bodies.follow(rigid_body, steps=100)
    # It has neither the learner's ridge nor its running scales: the same up to what these weigh.
    batch = consistent(EFFORT_ARM, factors(EFFORT_ARM, measured))
    rows = np.array([sample.regressor for sample in measured])
    one, other = rows @ bodies.base, rows @ batch.base
    assert np.sqrt(np.mean((one - other) ** 2)) < 0.01 * np.std(other)


def test_without_data_they_are_the_urdf_s() -> None:
    bodies = RealBodies(EFFORT_ARM)
    before = bodies.values.copy()
    empty = identifier()
    empty.core.replace(0.0 * empty.core.R, empty.core.U.copy())
    np.testing.assert_allclose(bodies.follow(empty, steps=5), before, atol=1e-9)
