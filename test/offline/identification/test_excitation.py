"""The search against finite differences and pinocchio's rnea, and what it is good for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import parameters
from semiparam_dynamics.offline.identification import excitation
from semiparam_dynamics.offline.identification.excitation import (
    Excitation,
    ExcitationConfig,
    ExcitationProblem,
    condition_number,
    criterion,
    excitation_table,
    lead_in,
    optimize_excitation,
    random_unknowns,
    scaling,
)
from semiparam_dynamics.offline.identification.joint_motion import FourierTrajectory, motion_limits
from semiparam_dynamics.robot.model import RobotConfig, RobotModel, expected_scales

from ...dynamics.arms import URDF
from ...robot.pinocchio_states import torques

TEXT = URDF.read_text()
LIMITED = TEXT.replace('effort="87"', 'effort="87" acceleration="0.9" jerk="1.5"')
JOINTS = RobotModel(TEXT).joint_names
# Without the columns that some joints have and others have not.
ALWAYS = {
    kind.name: type(kind.default)()
    for kind in parameters(RobotConfig, internal=True)
    if kind.internal.startswith("the data show which joint")
}
CONFIG = ExcitationConfig(period=10.0, harmonics=3, starts=1, iterations=60)


def problem(target: str = "effort", text: str = TEXT) -> ExcitationProblem:
    options = {"sensor_frame": "boom_sensor"} if target == "wrench" else {}
    effort_model = RobotModel(text)
    model = RobotModel(text, target=target, **options) if options else effort_model
    limits = motion_limits(text, effort_model).scaled(0.1, 0.8, 0.6)
    return ExcitationProblem(model, effort_model, limits, 10.0, 3)


@pytest.fixture(scope="module")
def found() -> Excitation:
    model = RobotModel(TEXT)
    return optimize_excitation(model, model, motion_limits(TEXT, model), CONFIG)


@pytest.mark.parametrize(
    ("target", "text", "limits"), [("effort", TEXT, 3), ("wrench", TEXT, 3), ("effort", LIMITED, 5)]
)
def test_gradients_are_those_of_finite_differences(target: str, text: str, limits: int) -> None:
    search = problem(target, text)
    rng = np.random.default_rng(1)
    x, h = random_unknowns(search, rng), 1e-6
    for _ in range(3):
        step = h * rng.standard_normal(x.shape)
        change = search.value(x + step) - search.value(x - step)
        assert search.gradient(x) @ (2 * step) == pytest.approx(change, rel=1e-3, abs=1e-3 * h)
        moved = search.constraints(x + step) - search.constraints(x - step)
        assert len(moved) == limits * len(JOINTS)
        np.testing.assert_allclose(search.jacobian(x) @ (2 * step), moved, atol=1e-3 * h)


def test_the_criterion_bounds_the_condition_number() -> None:
    model = RobotModel(TEXT, **ALWAYS)
    regressors = model.regressors(*np.random.default_rng(0).standard_normal((3, 50, 4)))
    weights = scaling(model)
    rows = (regressors * weights).reshape(-1, model.n_parameters)
    singular = np.linalg.svd(rows, compute_uv=False)
    assert condition_number(regressors * weights) == pytest.approx(singular[0] / singular[-1])
    bound = np.exp(criterion(regressors, weights)[0])
    assert singular[0] / singular[-1] <= bound <= singular[0] / singular[-1] * len(singular) ** 0.25


def test_random_motions_keep_the_limits_and_reach_some() -> None:
    search = problem()
    for seed in range(5):
        x = random_unknowns(search, np.random.default_rng(seed))
        q, dq, ddq = search.trajectory(x)(np.linspace(0.0, 10.0, 2000))
        position = np.abs(q - search.limits.middle) / search.limits.half
        velocity = np.abs(dq) / search.limits.velocity
        largest = np.maximum(position.max(axis=0), velocity.max(axis=0))
        assert largest.max() <= 1.005
        assert largest.min() > 0.1
        np.testing.assert_allclose([dq[0], dq[-1], ddq[0], ddq[-1]], 0.0, atol=1e-9)


def test_the_result_is_better_and_within_every_limit(found: Excitation) -> None:
    assert found.condition < found.start_condition <= np.median(found.random_conditions)
    assert found.condition < 0.5 * np.median(found.random_conditions)
    # Independently: pinocchio's own model, a fine grid, the limits as they stand in the URDF.
    arm = pin.buildModelFromXML(TEXT)
    q, dq, ddq = found.trajectory(np.linspace(0.0, 10.0, 1000))
    np.testing.assert_allclose([dq[0], dq[-1], ddq[0], ddq[-1]], 0.0, atol=1e-9)
    assert np.abs(q[:, 1]).max() <= 0.8 * 1.5 * 1.005
    assert np.abs(q[:, 2] - 0.1).max() <= 0.8 * 0.1 * 1.005
    assert np.abs(dq[:, 1:]).max() <= 0.8 * 2.0 * 1.005
    efforts = torques(arm, JOINTS, q, dq, ddq)
    assert np.abs(efforts[:, 1:3]).max() <= 0.6 * 87.0 * 1.005


def test_parameters_are_identified_better_from_it(found: Excitation) -> None:
    """Simulated by rnea with friction and noise: least squares on as many samples of each."""
    model = RobotModel(TEXT, **ALWAYS)
    search = problem()
    rng = np.random.default_rng(7)
    others = [search.trajectory(random_unknowns(search, rng)) for _ in range(5)]
    random = [identification_error(model, other, seed) for seed, other in enumerate(others)]
    optimized = [identification_error(model, found.trajectory, seed) for seed in range(5)]
    assert max(optimized) < 0.1  # the parameters are found at all
    assert np.mean(optimized) < 0.7 * np.median(random)


def test_effort_limits_bind() -> None:
    """Four kilograms on an arm whose motors hold little: the motion stays where they can."""
    weak = TEXT.replace('effort="87"', 'effort="18"')
    model = RobotModel(weak)
    limits = motion_limits(weak, model)
    arm = pin.buildModelFromXML(weak)
    result = optimize_excitation(model, model, limits, CONFIG)
    efforts = torques(arm, JOINTS, *result.trajectory(np.linspace(0.0, 10.0, 1000)))
    largest = np.abs(efforts[:, 1:3]).max() / (0.6 * 18.0)
    assert 0.5 < largest <= 1.005
    hopeless = TEXT.replace('effort="87"', 'effort="1"')
    model = RobotModel(hopeless)
    with pytest.raises(ConfigurationError, match="lift needs"):
        optimize_excitation(model, model, motion_limits(hopeless, model), CONFIG)


def test_limits_of_acceleration_and_jerk_bind(found: Excitation) -> None:
    """URDF 1.2; on the way to the start too, a quintic polynomial as a controller makes it."""
    model = RobotModel(LIMITED)
    limits = motion_limits(LIMITED, model)
    limited = np.isfinite(limits.jerk)
    assert 0 < limited.sum() < model.n_joints
    result = optimize_excitation(model, model, limits, CONFIG)
    t = np.linspace(0.0, 10.0, 2001)
    acceleration = result.trajectory(t)[2]
    jerk = np.gradient(acceleration, t, axis=0)[1:-1]
    uses = np.abs(acceleration[:, limited]).max() / 0.9, np.abs(jerk[:, limited]).max() / 1.5
    assert max(uses) <= 1.005 and max(uses) > 0.8
    assert np.abs(found.trajectory(t)[2][:, limited]).max() > 0.9
    assert "jerk" in excitation_table(result) and "jerk" not in excitation_table(found)
    low, high = result.limits.parked or (result.limits.lower, result.limits.upper)
    start = result.trajectory([0.0])[0][0]
    way = np.maximum(start - low, high - start)
    s = t / t[-1]
    quintic = (10 * s**3 - 15 * s**4 + 6 * s**5)[:, None] * way
    dt = lead_in(result) * s[1]
    second = np.gradient(np.gradient(quintic, dt, axis=0), dt, axis=0)
    third = np.gradient(second, dt, axis=0)[5:-5]
    assert np.abs(second[:, limited]).max() <= 0.9 and np.abs(third[:, limited]).max() <= 1.5


def test_the_same_seed_gives_the_same_motion_and_progress_ends() -> None:
    model = RobotModel(TEXT)
    limits, config = motion_limits(TEXT, model), ExcitationConfig(10.0, 2, starts=2, iterations=5)
    shares: list[float] = []
    first = optimize_excitation(model, model, limits, config, shares.append)
    again = optimize_excitation(model, model, limits, config)
    np.testing.assert_array_equal(first.trajectory.coefficients, again.trajectory.coefficients)
    assert shares == sorted(shares) and shares[-1] == 1.0


def test_products_are_not_spread_over_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excitation, "N_RANDOM_MOTIONS", 1)
    threads: set[int] = set()

    def look(share: float) -> None:
        threads.update(pool["num_threads"] for pool in threadpool_info())

    model, config = RobotModel(TEXT), ExcitationConfig(10.0, 2, starts=1, iterations=1)
    with threadpool_limits(limits=2):
        optimize_excitation(model, model, motion_limits(TEXT, model), config, look)
    assert threads == {1}


def test_the_way_to_the_start_counts_from_wherever_the_arm_is_parked(found: Excitation) -> None:
    """A range narrows the motion, not where the arm may stand before it."""
    ends = 'lower="-6.283185" upper="6.283185"'
    text = TEXT.replace('lower="-1.5" upper="1.5"', ends, 1)
    model = RobotModel(text)
    ranged = motion_limits(text, model, ranges={"lift": (1.0, 1.3)}).scaled(0.1, 0.8, 0.6)
    lift = model.joint_names.index("lift")
    coefficients = np.zeros((3, model.n_joints))
    coefficients[0] = ranged.middle
    there = dataclasses.replace(
        found, trajectory=FourierTrajectory(coefficients, 10.0), limits=ranged
    )
    start = there.trajectory([0.0])[0][0][lift]
    assert 1.0 < start < 1.3
    way = max(start + 2 * np.pi, 2 * np.pi - start)
    assert lead_in(there) >= 1.875 * way / ranged.velocity[lift] - 1e-6


def test_a_real_arm(data_file: Callable[[str], Path]) -> None:
    text = data_file("robots/tx40/tx40.urdf").read_text()
    model = RobotModel(text)
    config = ExcitationConfig(harmonics=3, starts=1, iterations=15)
    result = optimize_excitation(model, model, motion_limits(text, model), config)
    assert result.use.kept
    assert result.condition < 0.5 * np.median(result.random_conditions)


def identification_error(model: RobotModel, trajectory: FourierTrajectory, seed: int) -> float:
    """Root mean square error of the parameters in units of their expected contribution."""
    scales = expected_scales(model)
    q, dq, ddq = trajectory(np.arange(500) * 0.02)
    friction = 0.3 * dq + 0.5 * np.tanh(dq / model.config.coulomb_velocity)
    truth = model.prior.copy()
    for name, value in (("viscous", 0.3), ("coulomb", 0.5)):
        truth[[label.startswith(name) for label in model.labels]] = value
    y = torques(pin.buildModelFromXML(TEXT), JOINTS, q, dq, ddq) + friction
    noise = 0.05 * scales.output * np.random.default_rng(seed).standard_normal(y.shape)
    rows = model.regressors(q, dq, ddq) / scales.output[:, None] / scales.column
    measured = ((y + noise) / scales.output).ravel()
    estimate = np.linalg.lstsq(rows.reshape(-1, len(truth)), measured, rcond=None)[0]
    return float(np.sqrt(np.mean((estimate - truth * scales.column) ** 2)))
