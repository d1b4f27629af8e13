"""Expected sizes of errors: by a joint's speed, by reversals, and in the present motion."""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.jit import compiled_in_turn

USUAL_HORIZON_S = 120.0  # over which the sizes of usual errors are forgotten
FIRST_S = 10.0  # of errors, that count whatever their size
UNKNOWN_MOTION_FACTOR = 3.0  # of the standard deviation in motion that isn't known
NEW_SHARE = 2.0  # times the usual share that isn't known, from which on motion is new
NEW_MEAN_S = 0.5  # over which that share is averaged
CLIPPED = 4.0  # standard deviations that an error counts for at most, after `FIRST_S`
# Classes of speed, between these (rad/s or m/s), of which errors have their own sizes.
SPEEDS = (0.01, 0.03, 0.06, 0.12, 0.25)
RECOVERY = 1.0  # rad/s^2 or m/s^2, by which a joint that turned round counts as faster again
NEIGHBOUR = 2.0  # of the speed of a neighbouring joint, that counts as well
# Classes of the time, up to these (s), since a joint, or another one, was in the slowest one.
SLOW_S = (0.0, 0.025, 0.06)
STANDING_S = 0.3  # in the slowest one, after which a joint no longer jerks others
CLASS_PRIOR = 20.0  # samples of all classes that count in each
LEVEL_S = 1.0  # over which the level of the errors of now is averaged
LEVEL_DELAY_S = 0.2  # after which errors count for it
LEVEL_CLIPPED = 3.0  # standard deviations that an error counts for in it at most
USUAL_LEVEL = 1.1  # a level up to that is chance
MEAN_S = 0.1  # over which means of errors have a covariance of their own
MEANS_PER_AXIS = 5.0  # of them, before their covariance is known


class ScaledErrors(NamedTuple):
    """A sample's errors, which may turn out to be usual."""

    stamp: int  # ns
    error: Array  # (n_axes,)
    confidence: float
    classes: Indices  # (n_axes,)
    scaled: Array  # (n_axes,) in standard deviations, 0 where not measured
    deviations: Array  # (n_axes + 1,) their sizes, and that of all together
    turning: Indices  # (n_axes + 1,) 1 where they are in a class of reversals


class ErrorStatistics:
    """ScaledErrors errors over the last minutes, root mean square.

    Of each axis, and with `by_speed` of each class of its joint's speed: where a joint turns round,
    friction changes its sign within milliseconds, and errors are larger. The low-pass shows that
    for some 50 ms, in which the joint may be as fast as others that never stopped; so the time
    since it was slow has classes of its own (`SLOW_S`). The jerk passes on to other joints, by
    their inertia to some and hardly to others: so the time since another joint was slow has classes
    for each of them, and of several the one counts whose errors are largest. After that, one that
    accelerates counts as slower than it is.

    The noise of velocities becomes effort by the inertia, which changes with the posture: for
    seconds all errors of an axis may be twice as large as usual. So sizes grow by the level of the
    last second. Errors count for it `LEVEL_DELAY_S` late, and those before a contact do not, so
    that a push does not hide itself.

    Attributes
    ----------
    first_reversal: the first class of reversals; those before are of speeds.
    """

    def __init__(self, least: Array, by_speed: bool = False) -> None:
        n_axes = len(least)
        self._least = least
        self.first_reversal = len(SPEEDS) + 1 if by_speed else 1
        n_classes = self.first_reversal + (1 + n_axes) * len(SLOW_S) if by_speed else 1
        self._by_speed = by_speed
        # Sums of squares and weights of the axes; the last row is of all classes.
        self._squares: Array = np.zeros((n_classes + 1, n_axes))
        self._weights: Array = np.zeros((n_classes + 1, n_axes))
        self._last = self._at = 0  # ns, stamps of the last error counted, and looked at
        self._speeds: Array = np.full(n_axes, np.inf)  # slowest ones that count
        self._turned: Array = np.zeros(n_axes)  # the last speeds
        self._times: Array = np.zeros((2, n_axes))  # s since a joint was slow, and for which it is
        self._times[0] = np.inf
        self._classes: Indices = np.zeros(n_axes, dtype=np.intp)
        self._levels: Array = np.ones(n_axes)  # mean squares, in usual ones
        self._recent: deque[tuple[int, Array]] = deque()
        self._followed = 0  # ns, stamp of the last error in them

    def classify(self, stamp: int, speeds: Array | None) -> Indices:
        """Choose each axis' class at its joint's speed (n_axes,); None: not known."""
        if self._by_speed and speeds is not None:
            ahead = max((stamp - self._at) * 1e-9, 0.0)
            self._at = stamp
            classes = np.empty_like(self._classes)
            kept = self._squares, self._weights
            _classify(speeds, ahead, self._turned, self._speeds, self._times, *kept, classes)
            self._classes = classes
        return self._classes

    def spread(self, confidence: float, between: Array) -> Array:
        """(n_axes,) standard deviations in the classes looked at; infinite where none is known.

        Where the motion isn't known (`confidence` 0), errors last as long as it stays there, and
        the standard deviations grow. between: (n_axes,) others, of errors in addition.
        """
        spread = np.empty(len(self._classes))
        unknown = UNKNOWN_MOTION_FACTOR + confidence * (1.0 - UNKNOWN_MOTION_FACTOR)
        kept = self._squares, self._weights, self._classes
        _fill_spread(*kept, self._levels, unknown, self._least, between, spread)
        return spread

    def count(self, usual: ScaledErrors, most: float) -> float:
        """Count a sample's errors, of at most so many standard deviations each.

        Returns the seconds since the last ones, 0 for the first, 1 at most.
        """
        ahead = min(max((usual.stamp - self._last) * 1e-9, 0.0), 1.0) if self._last else 0.0
        self._last = usual.stamp
        arrays = self._squares, self._weights, usual.error, usual.scaled, usual.classes
        _count(*arrays, math.exp(-ahead / USUAL_HORIZON_S), usual.confidence, most)
        return ahead

    def follow(self, usual: ScaledErrors) -> None:
        """Count the errors of the sample looked at for the level, `LEVEL_DELAY_S` later."""
        squares = np.empty_like(self._levels)
        _fill_squares(usual.error, usual.scaled, self._levels, squares)
        self._recent.append((usual.stamp, squares))
        while usual.stamp - self._recent[0][0] > LEVEL_DELAY_S * 1e9:
            stamp, squares = self._recent.popleft()
            # After a pause one sample would count for all of it.
            ahead = min(max((stamp - self._followed) * 1e-9, 0.0), LEVEL_DELAY_S)
            self._followed = stamp
            _follow_levels(squares, 1.0 - math.exp(-ahead / LEVEL_S), self._levels)

    def drop_recent(self) -> None:
        """Count none of the last errors for the level: they may be a contact's."""
        self._recent.clear()

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {"squares": self._squares.copy(), "weights": self._weights.copy()}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        self._squares, self._weights = state["squares"].copy(), state["weights"].copy()
        self._last = 0


class Novelty:
    """Novelty of the motion of the last seconds, in [0, 1].

    A residual of random features is confident nearly anywhere: what tells a motion that it does not
    know is that its confidence lacks several times what it usually lacks. The errors of such a
    motion are not known when the residual begins to know it, but `FIRST_S` later.

    Attributes
    ----------
    sums: (2,) of what confidences lacked over the last minutes, and the weight.
    level: 0 where motion is as usual.
    """

    def __init__(self) -> None:
        self.sums: Array = np.zeros(2)
        self.level = 0.0
        self._lacks = 0.0
        self._at = 0  # ns

    def follow(self, stamp: int, confidence: float, *, grows: bool = True) -> None:
        """Follow the level to a sample; unless it `grows`, as in a contact, it only decays."""
        ahead = min(max((stamp - self._at) * 1e-9, 0.0), 1.0)
        self._at = stamp
        self._lacks += (1.0 - math.exp(-ahead / NEW_MEAN_S)) * (1.0 - confidence - self._lacks)
        self.level *= math.exp(-ahead / FIRST_S)
        total, weight = self.sums
        if grows and weight > 0.0 and self._lacks * weight > NEW_SHARE * total:
            self.level = max(self.level, 1.0 - NEW_SHARE * float(total / weight) / self._lacks)

    def count(self, ahead: float, confidence: float) -> None:
        """Count a sample, `ahead` s after the last one, as usual."""
        self.sums *= math.exp(-ahead / USUAL_HORIZON_S)
        self.sums += ahead * (1.0 - confidence), ahead


class MeanErrors:
    """The covariance of means of errors over `MEAN_S`, of the last minutes.

    Attributes
    ----------
    sums: (n_axes + 1, n_axes) sums of the means' products, and last each axis' weight: that of the
        means in which it was measured.
    """

    def __init__(self, least: Array) -> None:
        n_axes = len(least)
        self._least = np.diag(least**2)
        self.sums: Array = np.zeros((n_axes + 1, n_axes))
        self._total: Array = np.zeros(n_axes)
        self._number: Array = np.zeros(n_axes)  # of errors in `_total`
        self._since = self._last = 0  # ns

    def count(self, stamp: int, error: Array) -> None:
        """Count errors (n_axes,); NaN where not measured counts for none."""
        if not 0 < stamp - self._last < MEAN_S * 1e9:
            self._begin(stamp)
        self._last = stamp
        measured = ~np.isnan(error)
        np.add(self._total, error, out=self._total, where=measured)
        self._number += measured
        seconds = (stamp - self._since) * 1e-9
        if seconds < MEAN_S:
            return
        measured, mean = self._number > 0, self._total / np.maximum(self._number, 1.0)
        self._begin(stamp)
        if (known := self.covariance()) is not None:  # a push that was missed is not usual
            most = CLIPPED * np.sqrt(np.diag(known))
            most[self.sums[-1] < MEANS_PER_AXIS] = np.inf  # of an axis that was hardly measured yet
            mean = np.clip(mean, -most, most)
        self.sums *= math.exp(-seconds / USUAL_HORIZON_S)
        self.sums[:-1] += np.outer(mean, mean)
        self.sums[-1] += measured

    def _begin(self, stamp: int) -> None:
        self._since, self._number = stamp, np.zeros_like(self._number)
        self._total = np.zeros_like(self._total)

    def covariance(self) -> Array | None:
        """(n_axes, n_axes); None while too few means are known."""
        weights = self.sums[-1]
        if weights.max() < MEANS_PER_AXIS * len(weights):
            return None
        roots = np.sqrt(np.maximum(weights, 1.0))
        found: Array = self.sums[:-1] / np.outer(roots, roots) + self._least
        return found


@compiled_in_turn
def _classify(
    speeds: Array,
    ahead: float,
    before: Array,
    slowest: Array,
    times: Array,
    squares: Array,
    weights: Array,
    classes: Indices,
) -> None:
    """See `ErrorStatistics`.

    slowest : (n_axes,) the speeds that count. times : (2, n_axes) s since each joint was in the
        slowest class, and for which it is. Both are kept from call to call.
    """
    n, first, last = speeds.size, len(SPEEDS) + 1, SLOW_S[-1]
    since, slow = times[0], times[1]
    for j in range(n):
        # Messages may be too far apart to find the joint slow where it turns round.
        size = 0.0 if speeds[j] * before[j] < 0.0 else abs(speeds[j])
        before[j] = speeds[j]
        slowest[j] = min(size, slowest[j] + RECOVERY * ahead)
        if size > SPEEDS[0]:
            since[j], slow[j] = since[j] + ahead, 0.0
        else:
            since[j], slow[j] = 0.0, slow[j] + ahead
    for j in range(n):
        if since[j] <= last:
            classes[j] = first + _time_class(since[j])
            continue
        largest = -1.0
        for i in range(n):
            if since[i] <= last and slow[i] <= STANDING_S:
                of = first + len(SLOW_S) * (1 + i) + _time_class(since[i])
                square = _mean_square(squares, weights, of, j)
                if square > largest:
                    largest, classes[j] = square, of
        if largest >= 0.0:
            continue
        speed = slowest[j]
        if j > 0:
            speed = min(speed, NEIGHBOUR * slowest[j - 1])
        if j < n - 1:
            speed = min(speed, NEIGHBOUR * slowest[j + 1])
        classes[j] = 0
        for edge in SPEEDS:
            classes[j] += speed > edge


@compiled_in_turn
def _time_class(since: float) -> int:
    found = 0
    for edge in SLOW_S:
        found += since > edge
    return found


@compiled_in_turn
def _mean_square(squares: Array, weights: Array, of: int, j: int) -> float:
    """Of axis j in a class. One of which little is known is taken for all together."""
    every = len(squares) - 1
    mean = squares[every, j] / weights[every, j] if weights[every, j] > 0.0 else 0.0
    found: float = (squares[of, j] + CLASS_PRIOR * mean) / (weights[of, j] + CLASS_PRIOR)
    return found


@compiled_in_turn
def _fill_spread(
    squares: Array,
    weights: Array,
    classes: Indices,
    levels: Array,
    unknown: float,
    least: Array,
    between: Array,
    spread: Array,
) -> None:
    """See `ErrorStatistics.spread`."""
    every = len(squares) - 1
    for j in range(spread.size):
        spread[j] = np.inf
        if weights[every, j] > 0.0:
            square = _mean_square(squares, weights, classes[j], j)
            square *= max(levels[j] / USUAL_LEVEL, 1.0)
            spread[j] = math.hypot(max(math.sqrt(square) * unknown, least[j]), between[j])


@compiled_in_turn
def _fill_squares(error: Array, scaled: Array, levels: Array, squares: Array) -> None:
    """The part of errors in the level, see `ErrorStatistics.follow`; NaN where not measured."""
    for j in range(error.size):
        size = scaled[j] ** 2 * max(levels[j] / USUAL_LEVEL, 1.0)
        squares[j] = math.nan if math.isnan(error[j]) else min(size, LEVEL_CLIPPED**2)


@compiled_in_turn
def _follow_levels(squares: Array, share: float, levels: Array) -> None:
    for j in range(squares.size):
        if not math.isnan(squares[j]):
            levels[j] += share * (squares[j] - levels[j])


@compiled_in_turn
def _count(
    squares: Array,
    weights: Array,
    error: Array,
    scaled: Array,
    classes: Indices,
    keep: float,
    confidence: float,
    most: float,
) -> None:
    for c in range(len(squares)):
        for j in range(error.size):
            squares[c, j] *= keep
            weights[c, j] *= keep
    every = len(squares) - 1
    for j in range(error.size):
        if not math.isnan(error[j]):
            size = abs(error[j])
            if abs(scaled[j]) > most:
                size *= most / abs(scaled[j])
            for c in (classes[j], every):
                squares[c, j] += confidence * size * size
                weights[c, j] += confidence
