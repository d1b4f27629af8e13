"""An exciting trajectory for a robot: the best of several searches, beside random motions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.identification.excitation_problem import ExcitationProblem
from semiparam_dynamics.identification.fourier_trajectory import FourierTrajectory
from semiparam_dynamics.identification.information import OBJECTIVES, condition_number
from semiparam_dynamics.identification.limit_use import LimitUse, limit_use
from semiparam_dynamics.identification.motion_limits import MotionLimits
from semiparam_dynamics.identification.random_motion import random_unknowns
from semiparam_dynamics.parameters import parameter

RANDOM_MOTIONS = 20
_SHRINKAGE = 0.99 ** np.arange(30)


@dataclass(frozen=True)
class ExcitationConfig:
    """What an exciting trajectory is made of and may ask of the robot."""

    period: float = parameter(20.0, "one period of the motion", unit="s", low=0.1, high=3600.0)
    harmonics: int = parameter(
        5, "multiples of the base frequency 1 / period in it", low=2, high=50
    )
    position_margin: float = parameter(
        0.1, "share of a joint's range kept free at either end", low=0.0, high=0.45
    )
    velocity_scale: float = parameter(
        0.8, "share of the velocity limits that may be used", low=0.01, high=1.0
    )
    effort_scale: float = parameter(
        0.6,
        "share of the effort limits that the URDF's rigid body may need; friction comes on top",
        low=0.01,
        high=1.0,
    )
    objective: str = parameter(
        "condition",
        "what is minimised: the base regressor's condition number, or -log det of its information",
        choices=OBJECTIVES,
    )
    starts: int = parameter(3, "searches from different random motions", low=1, high=1000)
    iterations: int = parameter(300, "steps of each search at most", low=1, high=100000)
    seed: int = parameter(0, "of the random motions", low=0, high=2**31 - 1)


@dataclass(frozen=True)
class Excitation:
    """An exciting trajectory and what is known of it.

    conditions: condition numbers of the scaled base regressor over one period, evaluated on a grid
    finer than the search's: of the result, of the motion that its search started from, and of
    `RANDOM_MOTIONS` random ones within the limits.
    """

    trajectory: FourierTrajectory
    joint_names: tuple[str, ...]
    n_parameters: int
    limits: MotionLimits  # what the motion could use
    use: LimitUse
    condition: float
    start_condition: float
    random_conditions: tuple[float, ...]


def optimize_excitation(
    model: RobotModel,
    effort_model: RobotModel,
    limits: MotionLimits,
    config: ExcitationConfig | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Excitation:
    """Search for the trajectory whose base regressor is best conditioned within `limits`.

    Sequential quadratic programming (scipy's SLSQP) from the best of the random motions.

    Parameters
    ----------
    model: the robot with the columns that the learner identifies.
    effort_model: the same joints with target effort; `model` itself where that is its target.
    limits: all of what the joints can do (`motion_limits`); `config` says how much is used.
    progress: told the share done.

    Raises ConfigurationError where no motion keeps the effort limits.

    """
    config = config or ExcitationConfig()
    if effort_model.joint_names != model.joint_names or effort_model.config.target != "effort":
        raise ConfigurationError("the effort model must have the same joints and target effort")
    usable = limits.scaled(config.position_margin, config.velocity_scale, config.effort_scale)
    problem = ExcitationProblem(
        model, effort_model, usable, config.period, config.harmonics, config.objective
    )
    rng = np.random.default_rng(config.seed)
    count = max(RANDOM_MOTIONS, config.starts)
    motions = [random_unknowns(problem, rng) for _ in range(count)]
    starts = sorted(motions, key=problem.value)[: config.starts]
    found: list[tuple[float, Array, Array]] = []
    for number, start in enumerate(starts):

        def report(share: float, done: int = number) -> None:
            progress((done + share) / len(starts))

        x = _search(problem, start, config.iterations, report)
        found.append((problem.value(x), x, start))
    _, x, start = min(found, key=lambda entry: entry[0])
    trajectory = problem.trajectory(x)
    return Excitation(
        trajectory,
        model.joint_names,
        model.n_parameters,
        usable,
        limit_use(trajectory, usable, effort_model),
        _condition(problem, x),
        _condition(problem, start),
        tuple(_condition(problem, motion) for motion in motions[:RANDOM_MOTIONS]),
    )


def _search(
    problem: ExcitationProblem, start: Array, iterations: int, progress: Callable[[float], None]
) -> Array:
    """The end of one search, within the limits; the start where the search did not better it."""
    steps = 0

    def count(_: Array) -> None:
        nonlocal steps
        steps += 1
        progress(steps / iterations)

    result = minimize(
        problem.value,
        start,
        jac=problem.gradient,
        method="SLSQP",
        constraints={"type": "ineq", "fun": problem.constraints, "jac": problem.jacobian},
        callback=count,
        options={"maxiter": iterations, "ftol": 1e-5},
    )
    # Between the instants of the search's grid, or where it was stopped, a little may be too much.
    for factor in _SHRINKAGE:
        x: Array = factor * result.x
        if limit_use(problem.trajectory(x), problem.limits, problem.effort_model).kept:
            return x if problem.value(x) < problem.value(start) else start
    return start


def _condition(problem: ExcitationProblem, x: Array) -> float:
    n = 40 * problem.harmonics
    states = problem.trajectory(x)(problem.period / n * np.arange(n))
    return condition_number(problem.model.regressors(*states), problem.scaling)
