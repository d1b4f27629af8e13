"""An exciting trajectory for a robot: the best of several searches, compared with random motions.

The condition number as a criterion is that of M. Gautier and W. Khalil, "Exciting trajectories for
the identification of base inertial parameters of robots", International Journal of Robotics
Research 11(4), 1992; the motions are those of Swevers et al. 1997 (see joint_motion.py). The files
are CSV, bags for a ros2_control controller, a plot and a table.
"""

from __future__ import annotations

import csv
import io
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.base.parameters import parameter
from semiparam_dynamics.offline.identification.collisions import (
    INSTANTS_PER_CYCLE,
    Approach,
    Collisions,
)
from semiparam_dynamics.offline.identification.joint_motion import (
    FourierTrajectory,
    Motion,
    MotionLimits,
    resting_directions,
    series_basis,
)
from semiparam_dynamics.offline.page import FAINT, STYLE, number, shorten
from semiparam_dynamics.robot.model import RobotModel, expected_scales
from semiparam_dynamics.robot.regressor import OPTIONAL
from semiparam_dynamics.samples.bag_writer import BagWriter

N_RANDOM_MOTIONS = 20
_MAX_TRIES = 20  # random motions of which none keeps the effort limits
_MAX_POSTURES = 500  # random middles of motions of which none is free of collisions
_STEPS_PER_ROUND = 20  # of a search that has to keep clear of collisions
_MAX_FAILURES = 4  # of these in a row, after which it ends
_MIN_IMPROVEMENT = 1e-3  # by which the objective has to fall
_CLEARANCE_STEP = 0.005  # m that it keeps more after each failure
_DISTANCE_SCALE = 0.1  # m, of the constraint on distances
_SEARCH_INSTANTS_PER_CYCLE = 16  # of the highest harmonic, on the search's grid
_MOTION_FACTORS = 0.9 ** np.arange(60)  # by which a random motion is made smaller until it fits
_RESULT_FACTORS = 0.99 ** np.arange(30)  # and the search's result
# Of the Schatten norms that stand for the extreme singular values: smooth where those change
# places, and larger than the condition number by a few per cent once the others are far away.
_SCHATTEN_ORDER = 4.0
_MIN_EIGENVALUE = 1e-14  # relative to the largest: zero up to rounding
_DIFFERENCE_STEP = 1e-6  # of finite differences, rad and its derivatives
_SHARPNESS = 100.0  # of the smooth maximum: it lies above the maximum by log(2 n) / this at most


@dataclass(frozen=True)
class ExcitationConfig:
    """The form of an exciting trajectory, and the part of the robot's limits that it may use."""

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
    starts: int = parameter(3, "searches from different random motions", low=1, high=1000)
    iterations: int = parameter(300, "steps of each search at most", low=1, high=100000)
    seed: int = parameter(0, "of the random motions", low=0, high=2**31 - 1)


@dataclass(frozen=True)
class Excitation:
    """An exciting trajectory and its properties.

    Condition numbers are of the scaled base regressor over one period, on a grid finer than the
    search's; random motions are within the limits and free of collisions.
    """

    trajectory: FourierTrajectory
    joint_names: tuple[str, ...]
    n_parameters: int
    limits: MotionLimits  # that the motion may use
    use: LimitUse
    condition: float
    start_condition: float  # of the motion that the search started from
    random_conditions: tuple[float, ...]  # of `N_RANDOM_MOTIONS`
    approach: Approach | None = None  # to a collision; None where none was checked


def optimize_excitation(
    model: RobotModel,
    effort_model: RobotModel,
    limits: MotionLimits,
    config: ExcitationConfig | None = None,
    progress: Callable[[float], None] = lambda share: None,
    collisions: Collisions | None = None,
) -> Excitation:
    """Search for the trajectory whose base regressor is best conditioned within `limits`.

    Sequential quadratic programming (scipy's SLSQP) from the best of the random motions.

    model: the robot with the columns that the learner identifies.
    effort_model: the same joints with target effort; `model` itself where that is its target.
    limits: everything the joints can do (`motion_limits`); `config` says how much may be used.
    collisions: what the motion has to keep away from; None: nothing is checked.

    Raises ConfigurationError where no motion keeps the effort limits, or none that keeps them is
    free of collisions.
    """
    config = config or ExcitationConfig()
    usable = limits.scaled(config.position_margin, config.velocity_scale, config.effort_scale)
    problem = ExcitationProblem(
        model,
        effort_model,
        usable,
        config.period,
        config.harmonics,
        collisions if collisions is not None and collisions.pairs else None,
    )
    # The products are small: spread over threads they take three times the processor's time, and
    # the motion that is found would depend on how many there are.
    with threadpool_limits(limits=1):
        rng = np.random.default_rng(config.seed)
        count = max(N_RANDOM_MOTIONS, config.starts)
        motions = [random_unknowns(problem, rng) for _ in range(count)]
        starts = sorted(motions, key=problem.value)[: config.starts]
        found: list[tuple[float, Array, Array]] = []
        for number, start in enumerate(starts):

            def report(share: float, done: int = number) -> None:
                progress((done + share) / len(starts))

            start = _clear(problem, start, lambda x: problem.missed(x) <= 0.0).ravel()
            x = _search(problem, start, config.iterations, report)
            found.append((problem.value(x), x, start))
    _, x, start = min(found, key=lambda entry: entry[0])
    trajectory = problem.trajectory(x)
    return Excitation(
        trajectory,
        model.joint_names,
        problem.scaling.shape[1],
        usable,
        limit_use(trajectory, usable, effort_model),
        _condition(problem, x),
        _condition(problem, start),
        tuple(_condition(problem, motion) for motion in motions[:N_RANDOM_MOTIONS]),
        problem.collisions.nearest(trajectory) if problem.collisions else None,
    )


def _search(
    problem: ExcitationProblem, start: Array, iterations: int, progress: Callable[[float], None]
) -> Array:
    """The result of one search, within the limits; the start where that is no worse."""
    steps = 0

    def count(_: Array) -> None:
        nonlocal steps
        steps += 1
        progress(min(steps / iterations, 1.0))

    def search(x: Array, at_most: int) -> Array:
        result = minimize(
            problem.value,
            x,
            jac=problem.gradient,
            method="SLSQP",
            constraints={"type": "ineq", "fun": problem.constraints, "jac": problem.jacobian},
            callback=count,
            options={"maxiter": at_most, "ftol": 1e-5},
        )
        # Between the instants of the search's grid, or where it was stopped, a limit may be passed.
        shrunk = (factor * result.x for factor in _RESULT_FACTORS)
        return next((candidate for candidate in shrunk if _use(problem, candidate).kept), start)

    problem.begin_search(start)
    if not problem.collisions:
        best = search(start, iterations)
        return best if problem.value(best) < problem.value(start) else start
    best, failures = start, 0
    while steps < iterations and failures < _MAX_FAILURES:
        # Distances have kinks and hidden sides: a long search loses its way among them.
        x = search(best, min(_STEPS_PER_ROUND, iterations - steps))
        found = _toward(problem, best, x)
        if problem.value(found) < problem.value(best) - _MIN_IMPROVEMENT:
            best, failures = found, 0
        else:
            failures += 1
            problem.demand(x, _CLEARANCE_STEP)
    return best


def _toward(problem: ExcitationProblem, start: Array, x: Array) -> Array:
    """The best allowed one of ten motions from `start`, which is allowed, to x."""
    between: list[Array] = [start + share * (x - start) for share in np.linspace(1.0, 0.1, 10)]
    for candidate in sorted(between, key=problem.value):
        if problem.value(candidate) >= problem.value(start):
            break
        if _use(problem, candidate).kept and problem.missed(candidate) <= 0.0:
            return candidate
    return start


def _condition(problem: ExcitationProblem, x: Array) -> float:
    trajectory = problem.trajectory(x)
    states = trajectory(trajectory.instants(INSTANTS_PER_CYCLE))
    return condition_number(problem.regressors(states) * problem.scaling)


def random_unknowns(problem: ExcitationProblem, rng: np.random.Generator) -> Array:
    """Unknowns of a random motion within the limits that reaches some of them.

    Harmonic k has amplitudes of some 1 / k, so that all are alike in velocity. Each joint is
    stretched until its position or a derivative meets its limit, then all together are made smaller
    until the efforts keep theirs. Raises ConfigurationError where gravity alone needs more effort.
    """
    worst = ""
    postures = _MAX_POSTURES
    for _ in range(_MAX_TRIES):
        k = np.arange(2, problem.harmonics + 1)
        decay = np.concatenate([[0.0], 1.0 / k, 1.0 / k])[:, None]
        x = decay * rng.standard_normal(problem.shape)
        x[0] = rng.uniform(-0.5, 0.5, problem.shape[1])
        while problem.collides_at(x[0]):
            if (postures := postures - 1) <= 0:
                raise ConfigurationError(
                    f"no posture free of collisions was found: {problem.collision_text(x[0])}; "
                    "allow less clearance, set the floor with --floor, or narrow the joints' ranges"
                )
            x[0] = rng.uniform(-0.5, 0.5, problem.shape[1])
        x = _fit(problem, x)
        use = _use(problem, x)
        if use.kept:
            return _clear(problem, x, lambda x: not problem.collides(x)).ravel()
        joint = int(np.argmax(use.effort))
        worst = f"{use.joint_names[joint]} needs {use.effort[joint]:.2f} of what it may use"
    raise ConfigurationError(
        f"no motion was found that keeps the effort limits, not even a small one: {worst};"
        " allow more with effort_scale, or narrow the joints' ranges"
    )


def _fit(problem: ExcitationProblem, x: Array) -> Array:
    """Unknowns (2 harmonics - 1, n_joints) of the same shape of motion, as large as limits allow.

    Where even a thousandth of it needs too much effort, it is that thousandth.
    """
    moving = x.copy()
    moving[0] = 0.0
    use = _use(problem, moving)
    stretch = np.minimum((1.0 - np.abs(x[0])) / use.position, 1.0 / use.rates)
    largest = x[1:] * stretch * (1.0 - 1e-9)
    smallest = np.vstack([x[:1], 1e-3 * largest])
    if not _use(problem, smallest).kept:
        return smallest
    for factor in _MOTION_FACTORS:
        fitted = np.vstack([x[:1], factor * largest])
        if _use(problem, fitted).kept:
            return fitted
    return smallest


def _clear(problem: ExcitationProblem, x: Array, clear: Callable[[Array], bool]) -> Array:
    """The same motion about the same posture, which is `clear`, made smaller until it is, too."""
    shape = x.reshape(problem.shape)

    def smaller(k: int) -> Array:
        factor = _MOTION_FACTORS[k] if k < len(_MOTION_FACTORS) else 0.0
        return np.vstack([shape[:1], factor * shape[1:]])

    if clear(shape):
        return x
    return smaller(bisect_left(range(len(_MOTION_FACTORS)), True, key=lambda k: clear(smaller(k))))


def _use(problem: ExcitationProblem, x: Array) -> LimitUse:
    return limit_use(problem.trajectory(x.ravel()), problem.limits, problem.effort_model)


@dataclass(frozen=True)
class LimitUse:
    """Largest values over a period relative to the limits, each (n_joints,); 1 is the limit.

    The last three are 0 where they are not limited.
    """

    position: Array  # distance from the middle of the range
    velocity: Array
    acceleration: Array
    jerk: Array
    effort: Array  # of the URDF's rigid body, without friction
    joint_names: tuple[str, ...]

    @property
    def rates(self) -> Array:
        """(n_joints,) the largest use of velocity, acceleration and jerk."""
        return np.maximum(np.maximum(self.velocity, self.acceleration), self.jerk)

    @property
    def kept(self) -> bool:
        """True where no limit is passed."""
        return bool(max(self.position.max(), self.rates.max(), self.effort.max()) <= 1.0)


def limit_use(
    trajectory: FourierTrajectory, limits: MotionLimits, effort_model: RobotModel
) -> LimitUse:
    """The use of `limits` on a grid of 40 instants per cycle of the highest harmonic.

    effort_model: the robot with target effort. A maximum between two instants can be 0.3 % higher.
    """
    times = trajectory.instants(INSTANTS_PER_CYCLE)
    q, dq, ddq = trajectory(times)
    efforts = effort_model.regressors(q, dq, ddq) @ effort_model.exerted
    position, velocity, acceleration, jerk, effort = (
        np.abs(values / bound).max(axis=0)
        for values, bound in (
            (q - limits.middle, limits.half),
            (dq, limits.velocity),
            (ddq, limits.acceleration),
            (trajectory.jerk(times), limits.jerk),
            (efforts, limits.effort),
        )
    )
    return LimitUse(position, velocity, acceleration, jerk, effort, effort_model.joint_names)


class ExcitationProblem:
    """Value, gradient, constraints and their Jacobian at a vector of unknowns.

    Differences of regressor and efforts are taken by the state at each instant, and carried to the
    coefficients, in which the state is linear: several times cheaper than by every coefficient.

    The unknowns x, (n_joints * (2 harmonics - 1),), are coordinates of the coefficients among
    those that start at rest, in units of half of each joint's allowed range, the offset counted
    from its middle. There are three constraints a joint, met where positive: one minus the smooth
    maximum over a period (Kreisselmeier and Steinhauser, 1979) of position, velocity and effort,
    relative to their limits; where limits of acceleration or jerk are given, one more for each.
    With `collisions` there is another: the smooth minimum of the distances, minus what is to be
    kept, in units of 0.1 m.

    The arguments are those of `optimize_excitation`; `collisions` have at least one pair.
    """

    def __init__(
        self,
        model: RobotModel,
        effort_model: RobotModel,
        limits: MotionLimits,
        period: float,
        harmonics: int,
        collisions: Collisions | None = None,
    ) -> None:
        self.collisions = collisions
        self._pairs: list[int] = []  # that come near in the search
        self._extra = 0.0  # m, kept beyond the clearance at the search's instants
        self.model, self.effort_model, self.limits = model, effort_model, limits
        self.period, self.harmonics = period, harmonics
        # Friction that only some joints have is not what is to be excited.
        self._columns = np.array([not label.startswith(OPTIONAL) for label in model.labels])
        self.scaling = scaling(model)[:, self._columns]
        self._directions = resting_directions(harmonics)
        self.shape = (self._directions.shape[1], model.n_joints)
        n = _SEARCH_INSTANTS_PER_CYCLE * harmonics
        t = period / n * np.arange(n)
        self._bases = [b @ self._directions for b in series_basis(t, harmonics, period)]
        # By derivative of the position, those limits that there are.
        bounds = (limits.half, limits.velocity, limits.acceleration, limits.jerk)
        self._bounds = {k: bound for k, bound in enumerate(bounds) if np.isfinite(bound).any()}
        self._values_at: tuple[bytes, Array, Array, Array] | None = None
        self._slopes_at: tuple[bytes, Array, Array] | None = None
        self._distance_at: tuple[bytes, float] | None = None

    def trajectory(self, x: Array) -> FourierTrajectory:
        """The motion that the unknowns describe."""
        coefficients = self._directions @ (x.reshape(self.shape) * self.limits.half)
        coefficients[0] += self.limits.middle
        return FourierTrajectory(coefficients, self.period)

    def begin_search(self, start: Array) -> None:
        """Choose the pairs of links that the search looks at, from how near the start's come."""
        self._pairs, self._extra = [], 0.0
        if self.collisions:
            self.demand(start, 0.0)
            # The smooth minimum lies below the minimum: the start is not to be left for that.
            if self._pairs:
                self._extra = min(0.0, _DISTANCE_SCALE * self._distance(start, self.collisions))
                self._distance_at = None

    def demand(self, x: Array, more: float) -> None:
        """Look at the pairs near each other at x too, and keep `more` (m) more from now on."""
        if self.collisions:
            self._extra += more
            self._pairs = sorted({*self._pairs, *self.collisions.near(self._forward(x)[0][0])})
            self._slopes_at = self._distance_at = None

    def missed(self, x: Array) -> float:
        """Distance (m) by which the motion falls short of the clearance; 0 where it keeps it."""
        if self.collisions is None:
            return 0.0
        return max(0.0, -self.collisions.nearest(self.trajectory(x.ravel())).margin)

    def collides_at(self, posture: Array) -> bool:
        """True where the arm collides standing at `posture`, a row of unknowns."""
        return self.collisions is not None and self.collisions.collides(
            self._posture(posture)[None]
        )

    def collides(self, x: Array) -> bool:
        """True where it collides at one of 40 instants per cycle of the highest harmonic."""
        if self.collisions is None:
            return False
        trajectory = self.trajectory(x.ravel())
        return self.collisions.collides(trajectory(trajectory.instants(INSTANTS_PER_CYCLE))[0])

    def collision_text(self, posture: Array) -> str:
        """The collision at `posture` in words."""
        if self.collisions is None:
            return ""
        standing = FourierTrajectory(self._posture(posture)[None], self.period)
        return self.collisions.nearest(standing).text()

    def _posture(self, row: Array) -> Array:
        return self.limits.middle + self.limits.half * row

    def value(self, x: Array) -> float:
        """The objective, see :func:`criterion`."""
        regressors = self._forward(x)[1]
        return criterion(regressors, self.scaling)[0]

    def gradient(self, x: Array) -> Array:
        """(len(x),) of `value`."""
        return self._backward(x)[0]

    def constraints(self, x: Array) -> Array:
        """(m n_joints,) of limits of motion and effort, and distances; none may be negative."""
        rows = [1.0 - _smooth(r)[0] for r in self._ratios(x)]
        if self.collisions and self._pairs:
            rows.append(np.array([self._distance(x, self.collisions)]))
        return np.concatenate(rows)

    def _distance(self, x: Array, collisions: Collisions) -> float:
        """The constraint on distances."""
        key = x.tobytes()
        if self._distance_at is None or self._distance_at[0] != key:
            margin = collisions.smooth_margin(self._looked_at(x), self._pairs)
            self._distance_at = (key, (margin - self._extra) / _DISTANCE_SCALE)
        return self._distance_at[1]

    def _looked_at(self, x: Array) -> Array:
        """(n / 2, n_joints) rad or m, the positions whose distances the search looks at."""
        positions: Array = self._forward(x)[0][0]
        return positions[::2]

    def jacobian(self, x: Array) -> Array:
        """(len(constraints), len(x)) of `constraints`."""
        return self._backward(x)[1]

    def _forward(self, x: Array) -> tuple[Array, Array, Array]:
        """States (3, n, n_joints), regressors and efforts (n, n_joints) at x."""
        key = x.tobytes()
        if self._values_at is None or self._values_at[0] != key:
            unit = x.reshape(self.shape) * self.limits.half
            states = np.stack([basis @ unit for basis in self._bases[:3]])
            states[0] += self.limits.middle
            self._values_at = (key, states, *self._evaluate(states))
        return self._values_at[1:]

    def regressors(self, states: Iterable[Array]) -> Array:
        """(n, n_axes, P) at q, dq, ddq, each (n, n_joints), of the columns to be excited."""
        return self.model.regressors(*states)[:, :, self._columns]

    def _evaluate(self, states: Array) -> tuple[Array, Array]:
        regressors = self.regressors(states)
        if self.effort_model is self.model:
            return regressors, regressors @ self.model.exerted[self._columns]
        return regressors, self.effort_model.regressors(*states) @ self.effort_model.exerted

    def _ratios(self, x: Array) -> list[Array]:
        """(n, n_joints) of position from its middle, derivatives, and efforts, by their limits."""
        states, _, efforts = self._forward(x)
        jerk = self._bases[3] @ (x.reshape(self.shape) * self.limits.half)
        motion = (states[0] - self.limits.middle, states[1], states[2], jerk)
        moving = [motion[order] / bound for order, bound in self._bounds.items()]
        return [*moving, efforts / self.limits.effort]

    def _backward(self, x: Array) -> tuple[Array, Array]:
        key = x.tobytes()
        if self._slopes_at is None or self._slopes_at[0] != key:
            self._slopes_at = (key, *self._differentiate(x))
        return self._slopes_at[1:]

    def _differentiate(self, x: Array) -> tuple[Array, Array]:
        states, regressors, efforts = self._forward(x)
        slope = criterion(regressors, self.scaling)[1]
        half, (k, n) = self.limits.half, self.shape
        weights = [_smooth(ratio)[1] for ratio in self._ratios(x)]
        gradient = np.zeros((k, n))
        rows = np.zeros((len(weights), n, k, n))
        for kind, basis in enumerate(self._bases[:3]):
            for joint in range(n):
                ahead = states.copy()
                ahead[kind, :, joint] += _DIFFERENCE_STEP
                moved, moved_efforts = self._evaluate(ahead)
                by_state = np.einsum("tap,tap->t", slope, moved - regressors) / _DIFFERENCE_STEP
                gradient[:, joint] += half[joint] * (basis.T @ by_state)
                change = weights[-1] * (moved_efforts - efforts)
                change /= _DIFFERENCE_STEP * self.limits.effort
                rows[-1, :, :, joint] -= half[joint] * (change.T @ basis)
        for row, (order, bound) in enumerate(self._bounds.items()):
            for joint in range(n):
                scale = half[joint] / bound[joint]
                slope_there = self._bases[order].T @ weights[row][:, joint]
                rows[row, joint, :, joint] = -scale * slope_there
        jacobian = rows.reshape(len(weights) * n, k * n)
        if self.collisions and self._pairs:
            slope = self.collisions.smooth_slope(self._looked_at(x), self._pairs)
            by_unknowns = self._bases[0][::2].T @ (slope / _DISTANCE_SCALE) * half
            jacobian = np.vstack([jacobian, by_unknowns.ravel()])
        return gradient.ravel(), jacobian


def _smooth(ratio: Array) -> tuple[Array, Array]:
    """Smooth maximum of |ratio| over the rows (n, m): its values (m,) and slopes (n, m)."""
    both = _SHARPNESS * np.stack([ratio, -ratio])
    top = both.max(axis=(0, 1))
    weights = np.exp(both - top)
    total = weights.sum(axis=(0, 1))
    slopes: Array = (weights[0] - weights[1]) / total
    return (top + np.log(total)) / _SHARPNESS, slopes


def scaling(model: RobotModel) -> Array:
    """(n_axes, n_parameters) factors of a regressor's entries that give all equal weight.

    As in the learner: one over the output's expected size and over the column's.
    """
    scales = expected_scales(model)
    return 1.0 / (scales.output[:, None] * scales.column)


def condition_number(scaled: Array) -> float:
    """The ratio of the extreme singular values of scaled regressors (n, n_axes, P), stacked."""
    return float(np.linalg.cond(scaled.reshape(-1, scaled.shape[2])))


def criterion(regressors: Array, scaling: Array) -> tuple[float, Array]:
    """The objective, and its gradient by the regressors (n, n_axes, n_parameters).

    It is the log of ||A||_8 ||A^+||_8, Schatten norms of the scaled regressor A, a smooth upper
    bound of the log of its condition number (up to a constant that vanishes with the norm's order).
    """
    rows = (regressors * scaling).reshape(-1, regressors.shape[2])
    eigenvalues, vectors = np.linalg.eigh(rows.T @ rows / len(regressors))
    w = np.maximum(eigenvalues, _MIN_EIGENVALUE * eigenvalues[-1])
    large, small = (w / w[-1]) ** _SCHATTEN_ORDER, (w[0] / w) ** _SCHATTEN_ORDER
    total = large.sum() * small.sum()
    value = 0.5 * float(np.log(w[-1] / w[0]) + np.log(total) / _SCHATTEN_ORDER)
    slope = (large / large.sum() - small / small.sum()) / w
    inner = (vectors * slope) @ vectors.T
    gradient: Array = (regressors * scaling) @ inner * (scaling / len(regressors))
    return value, gradient


# -------------------------------------------------------------------------------------------------
# The files: CSV, bags for a ros2_control controller, a plot, a table


_BAG_START_NS = 1_000_000_000  # stamps of 0 mean "none" to some tools
# Largest velocity, acceleration and jerk of the polynomial from rest to rest, way and time being 1.
_QUINTIC_PEAKS = (1.875, 10.0 / math.sqrt(3.0), 60.0)
_LINE_COLOR, _LIMIT_COLOR = "#1f5fc4", "#d1342b"


@dataclass(frozen=True)
class ExportConfig:
    """Sampling, repetitions and topic of the files."""

    rate: float = parameter(100.0, "points written", unit="Hz", low=1.0, high=10000.0)
    repeat: int = parameter(
        3, "periods written, one after the other: repeated motion shows the noise", low=1, high=1000
    )
    trial_slowdown: float = parameter(
        4.0, "how many times slower the bag for a first trial is", low=1.0, high=100.0
    )
    topic: str = parameter(
        "/joint_trajectory_controller/joint_trajectory", "the bag's JointTrajectory topic"
    )


def sample_times(excitation: Excitation, config: ExportConfig) -> Array:
    """(n,) s from 0 to the end of the last period, at rest at both."""
    total = config.repeat * excitation.trajectory.period
    return np.linspace(0.0, total, max(round(total * config.rate), 1) + 1)


def lead_in(excitation: Excitation) -> float:
    """s to reach the start from anywhere in the URDF's ranges, within the limits of motion allowed.

    A controller goes there from where the arm is parked on a quintic polynomial, from rest to rest.
    Rounded up to a second.
    """
    limits = excitation.limits
    lower, upper = limits.parked or (limits.lower, limits.upper)
    start = excitation.trajectory([0.0])[0][0]
    farthest = np.maximum(start - lower, upper - start)
    rates = (limits.velocity, limits.acceleration, limits.jerk)
    times = [
        np.max(peak * farthest / limit) ** (1.0 / order)
        for order, (peak, limit) in enumerate(zip(_QUINTIC_PEAKS, rates, strict=True), 1)
    ]
    return float(math.ceil(max(times)))


def write_csv(excitation: Excitation, config: ExportConfig, path: Path) -> None:
    """Write columns t (s), then q_, dq_ and ddq_ of each joint by name (rad or m, and per s, s^2).

    Raises StorageError where the file can't be written.
    """
    times = sample_times(excitation, config)
    names = [f"{kind}_{joint}" for kind in ("q", "dq", "ddq") for joint in excitation.joint_names]
    rows = np.column_stack([times, *excitation.trajectory(times)])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["t", *names])
    writer.writerows([f"{value:.9g}" for value in row] for row in rows)
    write_files({path: text.getvalue()})


def write_trajectory_bag(excitation: Excitation, config: ExportConfig, path: Path) -> None:
    """Write a rosbag2 folder with one JointTrajectory, whose first point comes after `lead_in`.

    So the controller has time to go there. A bag that exists is replaced and kept as a backup.
    Raises BagError where it can't be written.
    """
    times = sample_times(excitation, config)
    motion = excitation.trajectory(times)
    _write_bag(path, excitation.joint_names, times + lead_in(excitation), motion, config)


def write_trial_bag(excitation: Excitation, config: ExportConfig, path: Path) -> None:
    """Write one period through the same positions, slowed by `trial_slowdown`, lead-in included.

    It shows what the arm comes close to. Errors as in :func:`write_trajectory_bag`.
    """
    slow, original = config.trial_slowdown, excitation.trajectory
    trajectory = FourierTrajectory(original.coefficients, slow * original.period)
    times = np.linspace(0.0, trajectory.period, max(round(original.period * config.rate), 1) + 1)
    start = slow * lead_in(excitation)
    _write_bag(path, excitation.joint_names, times + start, trajectory(times), config)


def _write_bag(
    path: Path, names: tuple[str, ...], times: Array, motion: Motion, config: ExportConfig
) -> None:
    with BagWriter(path, overwrite=True) as bag:
        bag.joint_trajectory(_BAG_START_NS, names, times, motion, config.topic)


def plot_excitation(excitation: Excitation, path: Path) -> None:
    """Plot positions and velocities of each joint over a period, with their limits dashed, as PNG.

    Raises StorageError where the file can't be written.
    """
    trajectory, limits = excitation.trajectory, excitation.limits
    n = len(excitation.joint_names)
    t = np.linspace(0.0, trajectory.period, 1000)
    q, dq, _ = trajectory(t)
    with rc_context({**STYLE, "savefig.dpi": 120}):
        figure = Figure(figsize=(9.0, 0.6 + 1.25 * n), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(n, 2, sharex=True, squeeze=False)
        for i, (left, right) in enumerate(panels):
            _draw(left, t, q[:, i], float(limits.lower[i]), float(limits.upper[i]))
            _draw(right, t, dq[:, i], -float(limits.velocity[i]), float(limits.velocity[i]))
            left.set_ylabel(shorten(excitation.joint_names[i], 18), fontsize=8.0)
        panels[0, 0].set_title("Position (rad or m)")
        panels[0, 1].set_title("Velocity (rad/s or m/s)")
        for axes in panels[-1]:
            axes.set_xlabel("Time (s)")
            axes.set_xlim(0.0, trajectory.period)
        image = io.BytesIO()
        figure.savefig(image, format="png")
    write_files({path: image.getvalue()})


def _draw(axes: Axes, t: Array, values: Array, low: float, high: float) -> None:
    axes.plot(t, values, color=_LINE_COLOR, linewidth=1.4)
    for limit in (low, high):
        axes.axhline(limit, color=_LIMIT_COLOR, linewidth=1.0, linestyle=(0, (5, 2)))
    if low < 0.0 < high:
        axes.axhline(0.0, color=FAINT, linewidth=0.5)
    room = 0.08 * (high - low)
    axes.set_ylim(low - room, high + room)


def excitation_table(excitation: Excitation) -> str:
    """Text of condition numbers, the posture at the start, and the largest use of each limit.

    Efforts are those of the URDF's rigid body, without friction.
    """
    random = excitation.random_conditions
    conditions = [
        (f"random motion within the limits, median of {len(random)}", float(np.median(random))),
        ("start of the search", excitation.start_condition),
        ("result", excitation.condition),
    ]
    width = max(len(text) for text, _ in conditions)
    lines = [
        f"condition number of the regressor, {excitation.n_parameters} base parameters, one period",
        *(f"  {text:<{width}}  {number(value):>9}" for text, value in conditions),
        "",
    ]
    names = [shorten(name, 24) for name in excitation.joint_names]
    width = max(5, *(len(name) for name in names))
    start, limits = excitation.trajectory([0.0])[0][0], excitation.limits
    shown = ["position", "velocity", "acceleration", "jerk", "effort"]
    free = {kind: np.isinf(getattr(limits, kind)) for kind in shown[1:]}
    shown = [kind for kind in shown if kind == "effort" or not np.all(free.get(kind, False))]
    header = f"{'start':>9}" + "".join(f"{kind:>{len(kind) + 3}}" for kind in shown)
    lines.append(f"{'joint':<{width}}{header}    (share of what may be used)")
    for i, name in enumerate(names):
        line = f"{name:<{width}}{float(start[i]):>9.3f}"
        for kind in shown:
            share = float(getattr(excitation.use, kind)[i])
            text = "free" if kind in free and free[kind][i] else f"{share:.0%}"
            line += f"{text:>{len(kind) + 3}}"
        lines.append(line)
    return "\n".join(lines)
