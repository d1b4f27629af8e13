"""Joint trajectories on their way to a controller: the motion at their points, and its efforts.

ros2_controllers' joint_trajectory_controller moves each joint between two points by a polynomial of
degree 5 where both points have velocities and accelerations, of degree 3 where both have
velocities, and else straight at constant velocity. After the last point it holds that one. Efforts
go straight between points, whatever the positions do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.base.arrays import NANO, Array, Indices, Mask, Stamps
from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.control.computed_torque import effort_bound, unbounded
from semiparam_dynamics.control.config import TrajectoryEffortsConfig
from semiparam_dynamics.control.plan import Answer
from semiparam_dynamics.robot.model import RobotModel


@dataclass(frozen=True, slots=True)
class Waypoints:
    """A trajectory of k points and n joints.

    times: (k,) ns since its start, increasing. q: (k, n) rad or m. dq, ddq: (k, n) rad/s and
    rad/s^2; NaN in the rows of points that have none.

    Raises SampleError where times don't increase, or a point has accelerations and no velocities,
    from which the controller has no motion.
    """

    times: Stamps
    q: Array
    dq: Array
    ddq: Array

    def __post_init__(self) -> None:
        if self.times[0] < 0 or (np.diff(self.times) <= 0).any():
            raise SampleError("the points' times from the start must increase, and not be negative")
        if (_has(self.ddq) & ~_has(self.dq)).any():
            raise SampleError("a point has accelerations and no velocities")


def states_at(points: Waypoints) -> tuple[Array, Array, Array]:
    """q, dq, ddq (k, n) of the motion at its points.

    Where the motion has a corner, as at the points of a straight one, they are the mean of before
    and after: efforts, which go straight between points, then neither lead nor lag. The last point
    is held, so that its state is rest, unless it has a velocity other than zero.

    Raises SampleError where they are not finite.
    """
    rests = not np.nan_to_num(points.dq[-1]).any()
    dq, ddq = (np.nan_to_num(part) for part in (points.dq, points.ddq))
    if len(points.times) > 1:
        pieces = _polynomials(points)
        h = NANO * np.diff(points.times)
        (_, *begin), (_, *end) = _evaluated(pieces, np.zeros_like(h)), _evaluated(pieces, h)
        for found, after, before in zip((dq, ddq), begin, end, strict=True):
            found[0], found[1:-1], found[-1] = after[0], 0.5 * (after[1:] + before[:-1]), before[-1]
    if rests:
        dq[-1] = ddq[-1] = 0.0
    if not all(np.isfinite(part).all() for part in (dq, ddq)):
        raise SampleError("the motion between the points is not finite")
    return points.q, dq, ddq


def resampled(points: Waypoints, period: float, most: int) -> Waypoints:
    """The same motion with points between the given ones, `period` s apart or less.

    A controller makes the same motion of it: a point that is added has velocities, and
    accelerations, where the motion comes of them. With more than `most` points they are further
    apart; a trajectory that has so many already is left as it is.
    """
    times, k = points.times, len(points.times)
    if period <= 0.0 or k < 2 or k >= most:
        return points
    length = np.diff(times)
    step = max(round(period / NANO), -(-int(times[-1] - times[0]) // (most - k)))
    counts = -(-length // step)  # pieces of each segment
    segment = np.repeat(np.arange(k - 1), counts)
    piece = np.arange(len(segment)) - np.repeat(np.cumsum(counts) - counts, counts)
    since = (length[segment] * (piece / counts[segment])).astype(np.int64)
    rows = _evaluated(_polynomials(points)[segment], NANO * since)
    degree = _degrees(points)[segment]
    for row, least in zip(rows[1:], (3, 5), strict=True):
        row[degree < least] = np.nan
    first = piece == 0
    for row, given in zip(rows, (points.q, points.dq, points.ddq), strict=True):
        row[first] = given[:-1]
    ends = (points.q[-1:], points.dq[-1:], points.ddq[-1:])
    q, dq, ddq = (np.concatenate(both) for both in zip(rows, ends, strict=True))
    return Waypoints(np.append(times[segment] + since, times[-1]), q, dq, ddq)


def _has(rows: Array) -> Mask:
    """(k,) of which points `rows` (k, n) has numbers."""
    has: Mask = np.any(~np.isnan(rows), axis=1)
    return has


def _degrees(points: Waypoints) -> Indices:
    """(k - 1,) the degree of the motion from each point to the next."""
    cubic, quintic = (has[:-1] & has[1:] for has in (_has(points.dq), _has(points.ddq)))
    degrees: Indices = np.where(cubic & quintic, 5, np.where(cubic, 3, 1))
    return degrees


def _polynomials(points: Waypoints) -> Array:
    """(k - 1, 6, n) coefficients of the motion from each point, by powers of the seconds since."""
    h = NANO * np.diff(points.times)[:, None]
    degree = _degrees(points)[:, None]
    way = np.diff(points.q, axis=0)
    v, w = (np.nan_to_num(part) for part in (points.dq[:-1], points.dq[1:]))
    a, b = (np.nan_to_num(part) for part in (points.ddq[:-1], points.ddq[1:]))
    zero = np.zeros_like(way)
    with np.errstate(over="ignore", invalid="ignore"):
        straight = (way / h, zero, zero, zero, zero)
        cubic = (
            v,
            (3 * way - (2 * v + w) * h) / h**2,
            (-2 * way + (v + w) * h) / h**3,
            zero,
            zero,
        )
        quintic = (
            v,
            0.5 * a,
            (20 * way - (12 * v + 8 * w) * h - (3 * a - b) * h**2) / (2 * h**3),
            (-30 * way + (16 * v + 14 * w) * h + (3 * a - 2 * b) * h**2) / (2 * h**4),
            (12 * way - 6 * (v + w) * h - (a - b) * h**2) / (2 * h**5),
        )
    rows = [points.q[:-1]]
    for c1, c3, c5 in zip(straight, cubic, quintic, strict=True):
        rows.append(np.where(degree == 5, c5, np.where(degree == 3, c3, c1)))
    return np.stack(rows, axis=1)


def _evaluated(coefficients: Array, since: Array) -> tuple[Array, Array, Array]:
    """q, dq, ddq (m, n) of polynomials (m, 6, n) at times (m,) in s."""
    values = []
    with np.errstate(over="ignore", invalid="ignore"):
        for derivative in range(3):
            total = np.zeros_like(coefficients[:, 0])
            for power in range(5, derivative - 1, -1):
                factor = float(np.prod(np.arange(power - derivative + 1, power + 1)))
                total = total * since[:, None] + factor * coefficients[:, power]
            values.append(total)
    q, dq, ddq = values
    return q, dq, ddq


# -------------------------------------------------------------------------------------------------
# Efforts of the learner's answers about the points.


class TrajectoryEfforts:
    """Makes the efforts to send of those that the learner answers.

    Parameters
    ----------
    model: the URDF's, of joint efforts.
    config: the configuration.

    Attributes
    ----------
    model: as given.
    limit: (n_joints,) N m or N, that no effort exceeds.

    Raises
    ------
    ConfigurationError: `effort` has neither one number nor one for each joint.
    RobotModelError: the URDF's effort limits are no numbers.
    """

    def __init__(self, model: RobotModel, config: TrajectoryEffortsConfig) -> None:
        self.model, self._config = model, config
        self.limit = effort_bound(model, config.effort_share, "effort", config.effort)

    def __call__(self, q: Array, answer: Answer) -> tuple[Array, str]:
        """Efforts (k, n_joints) in N m for an answer about points at q (k, n_joints).

        With a sentence on the joints that get none, or "": for an unknown bound, since nobody could
        say what is too much, and where the learner knows little. Bounded are both the efforts with
        gravity, which the motors exert, and those without, which are sent.

        Raises SampleError where the answer is not of these points, or not finite.
        """
        if not q.shape == answer.values.shape == answer.stds.shape:
            raise SampleError("it has another size than the question")
        if not (np.isfinite(answer.values).all() and np.isfinite(answer.stds).all()):
            raise SampleError("it is not finite")
        efforts = np.clip(answer.values, -self.limit, self.limit)
        if self._config.gravity == "exclude":
            efforts = np.clip(efforts - gravity_efforts(self.model, q), -self.limit, self.limit)
        # Until a joint's first sample was learned the learner has seen no error.
        new = answer.stds.max(axis=0) <= 0.0
        unsure = answer.stds.max(axis=0) > self._config.unsure * self.limit
        endless = unbounded(self.limit)
        efforts[:, endless | new | unsure] = 0.0
        return efforts, (
            self._told(endless, "the URDF has no effort limit of it: give one with effort")
            or self._told(new, "the learner has learned nothing of it")
            or self._told(unsure, "the learner is unsure of it")
        )

    def _told(self, chosen: Mask, why: str) -> str:
        names = [name for name, one in zip(self.model.joint_names, chosen, strict=True) if one]
        return f"no efforts for {', '.join(names)}: {why}" if names else ""


def gravity_efforts(model: RobotModel, q: Array) -> Array:
    """(k, n_joints) N m that hold the URDF's arm at rest at positions q (k, n_joints)."""
    return rigid_efforts(model, q, np.zeros_like(q), np.zeros_like(q))


def rigid_efforts(model: RobotModel, q: Array, dq: Array, ddq: Array) -> Array:
    """(k, n_joints) N m of the URDF's rigid bodies at states (k, n_joints)."""
    efforts: Array = model.regressors(q, dq, ddq) @ model.prior
    return efforts
