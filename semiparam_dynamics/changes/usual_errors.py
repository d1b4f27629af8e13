"""Usual errors, of the last minutes: their sizes, their correlation, and the largest of them.

Of each axis, and where axes are joints of each class of its speed: where a joint turns round,
friction changes its sign within milliseconds, and errors are larger. The low-pass shows that for
some 50 ms; so the time since a joint was slow has classes of its own (`SLOW_S`), and, as the jerk
passes on to other joints, the time since each other one was, too. After that, a joint that
accelerates counts as slower than it is.

The noise of velocities becomes effort by the inertia, which changes with the posture. So sizes grow
by the level of the last second, for which errors count `LEVEL_DELAY_S` late, and those before a
contact do not, so that a push does not hide itself. The largest usual deviation of each axis is
known, too, of reversals apart from that of other motion.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.jit import compiled_in_turn

USUAL_HORIZON_S = 120.0  # over which the sizes of usual errors are forgotten
FIRST_S = 10.0  # of errors, that count whatever their size
UNKNOWN_MOTION_FACTOR = 3.0  # of the standard deviation in motion that isn't known
CLIPPED = 4.0  # standard deviations that an error counts for at most, after `FIRST_S`
# Classes of speed, between these (rad/s or m/s), of which errors have their own sizes.
SPEEDS = (0.01, 0.03, 0.06, 0.12, 0.25)
RECOVERY = 1.0  # rad/s^2 or m/s^2, by which a joint that turned round counts as faster again
NEIGHBOUR = 2.0  # of the speed of a neighbouring joint, that counts as well
# Classes of the time, up to these (s), since a joint, or another one, was in the slowest one.
SLOW_S = (0.0, 0.025, 0.06)
FIRST_REVERSAL = len(SPEEDS) + 1  # the first of these classes; those before are of speeds
STANDING_S = 0.3  # in the slowest one, after which a joint no longer jerks others
CLASS_PRIOR = 20.0  # samples of all classes that count in each
MIN_STD_SHARE = 0.005  # of an output's scale, that a standard deviation is at least
LEVEL_S = 1.0  # over which the level of the errors of now is averaged
LEVEL_DELAY_S = 0.2  # after which errors count for it
LEVEL_CLIPPED = 3.0  # standard deviations that an error counts for in it at most
USUAL_LEVEL = 1.1  # a level up to that is chance
MEAN_S = 0.1  # over which means of errors have a covariance of their own
MEANS_PER_AXIS = 5.0  # of them, before their covariance is known
USUAL_DELAY_S = 1.0  # after which errors without a contact count as usual
USUAL_STEP = 8_000_000  # ns at least between errors that are counted
USUAL_FACTOR = 1.3  # times the largest usual deviation is no longer usual
GROWTH = 0.1  # 1/s, by which the largest usual deviation grows at most after that
LARGEST_HORIZON_S = 600.0  # over which the largest deviations are forgotten
SHORT_GROWTH = 1.5  # by which a short one raises the largest usual deviation at most
PEAK_STDS = 3.0  # standard deviations, beyond which a deviation is part of a peak
DECORRELATION_SHARE = 0.1  # share of the correlation that is taken off
WHITEN_EVERY_S = 0.2
SUDDEN, QUICK, LASTING = 0, 1, 2  # tests, each of errors of its own, see `ContactDetector`
WAITING = round(USUAL_DELAY_S * 1e9) // USUAL_STEP + 2  # samples that wait at most, and the last

Records = npt.NDArray[np.void]


def record(numbers: str, integers: str = "", rows: str = "") -> np.dtype[np.void]:
    """A record's type: its numbers, its integers, and numbers in other motion and in reversals."""
    fields: list[tuple[str, str] | tuple[str, str, tuple[int, ...]]] = []
    fields += [(name, "f8") for name in numbers.split()]
    fields += [(name, "i8") for name in integers.split()]
    fields += [(name, "f8", (2,)) for name in rows.split()]
    return np.dtype(fields, align=True)


# Of the detector, see there. Stamps, ns: at, of the last sample; resumed, of the first after a
# pause; average_since, averaged: since when there is an average, and its last test; mean_since,
# mean_at: of the first and the last error in the mean. Places: slot, of the last sample; first, of
# the first that waits, and how many do. What the confidence lacks: lacks, on the mean of now, and
# lacked over weight, usually.
NOW = record(
    "largest novelty lacks lacked weight",
    "given_up since at resumed average_since averaged mean_since mean_at slot first waiting",
)
# Of a test. Limits: least, together: of an axis and of all together, by the threshold; end: share
# of the latter, below which a contact ends; test_time: s for which a deviation of just the limit
# must last to be a contact; lasts: ns of a short peak. What it found: the axis that is nearest to
# its limit (the number of axes: all together), its deviation, its limit, and its share of it; 0
# where nothing is tested. Stamps, ns: since, of the first sample that adds up to a contact; beyond,
# large: of the last one that is about a contact's, and too large for the end of one; tested,
# looked_at, counted, followed: of the last one that was tested, classified, counted, and counted
# for the level. recent: how many of the last samples are still to count for it. s of usual errors
# seen, and since they were whitened.
TEST = record(
    "least together end test_time lasts deviation limit share seen whitened",
    "axis since beyond large tested looked_at counted followed recent",
)
# Of an axis in a test, and last of all together. of: its class, by the slowest speed that counts,
# the last one, and s since the joint was slow (late: their class) and for which it is. level: mean
# square in usual ones. sum: what adds up to a contact. raised, height: of a peak in a reversal, ns
# of its first sample, 0 for none. The largest deviations that are usual, and that a contact had.
AXIS = record(
    "slowest before since_slow slow_for level spread sum height", "of raised late", "usual peak"
)
# Of an axis in all tests: what `ContactDetector.add` was given; the least standard deviation, and
# that of the time between samples; the average; the mean's sum and number; the sharpening filter.
SIGNAL = record("error speed predicted least between expected average total number last x v")
# Of an axis of a sample in a test, and last of all together. square: what counts for the level.
# confidence, stamp, due (whether it is tested): of the sample.
PART = record("error scaled deviation square confidence", "of turning stamp due")
SIZE = record("square weight")  # sums, of a class of errors of an axis
PAIR = record("correlation white")  # of two axes


class Errors(NamedTuple):
    """Errors that are usual on n axes, and samples that may turn out to be.

    Compiled code changes it in place. The first index of most is the test.
    """

    now: Records  # (1,)
    tests: Records  # (3,)
    axes: Records  # (3, n + 1)
    signals: Records  # (n,)
    parts: Records  # (WAITING, 3, n + 1)
    sizes: Records  # (3, n_classes + 1, n), last of all classes
    pairs: Records  # (3, n, n)
    means: Array  # (n + 1, n) sums of means' products, and last each axis' number of means


def no_errors(scales: Array, *, by_speed: bool) -> Errors:
    """Nothing is known; see `ContactDetector`."""
    n = len(scales)
    n_classes = FIRST_REVERSAL + (1 + n) * len(SLOW_S) if by_speed else 1
    axes, signals, pairs = (
        np.zeros((3, n + 1), AXIS),
        np.zeros(n, SIGNAL),
        np.zeros((3, n, n), PAIR),
    )
    axes["slowest"] = axes["since_slow"] = np.inf
    axes["level"] = 1.0
    signals["least"], signals["expected"] = MIN_STD_SHARE * scales, np.nan
    signals["last"] = np.nan
    pairs["correlation"] = pairs["white"] = np.eye(n)
    parts, sizes = np.zeros((WAITING, 3, n + 1), PART), np.zeros((3, n_classes + 1, n), SIZE)
    now, tests = np.zeros(1, NOW), np.zeros(3, TEST)
    return Errors(now, tests, axes, signals, parts, sizes, pairs, np.zeros((n + 1, n)))


@compiled_in_turn
def scale(s: Errors, k: int, known: float, moving: bool) -> None:
    """Scale the last sample's errors in a test by their standard deviations.

    The length of all, whitened by their usual correlation, counts like a further axis.
    known: confidence by which these grow, see `spread_of`. moving: speeds are known.
    """
    parts, n, largest, total = s.parts[s.now[0].slot, k], s.signals.size, -1.0, 0.0
    if moving and s.sizes.shape[1] > 2:
        _classify(s, k)
    for j in range(n):
        axis, part = s.axes[k, j], parts[j]
        axis.spread, measured = spread_of(s, k, j, known), not math.isnan(part.error)
        part.scaled = part.error / axis.spread if measured else 0.0
        part.deviation = abs(part.scaled)
        square = part.scaled**2 * max(axis.level / USUAL_LEVEL, 1.0)
        part.square = min(square, LEVEL_CLIPPED**2) if measured else math.nan
        part.of, part.turning = axis.of, int(axis.of >= FIRST_REVERSAL)
        if part.deviation > largest:
            largest, parts[n].turning = part.deviation, part.turning
    for i in range(n):
        value = 0.0
        for j in range(i + 1):
            value += s.pairs[k, i, j].white * parts[j].scaled
        total += value * value
    parts[n].deviation = math.sqrt(total)


@compiled_in_turn
def _classify(s: Errors, k: int) -> None:
    """Choose each axis' class at its joint's speed."""
    n, later, test, stamp = s.signals.size, len(SLOW_S), s.tests[k], s.now[0].at
    ahead = max((stamp - test.looked_at) * 1e-9, 0.0)
    test.looked_at = stamp
    for j in range(n):
        # Messages may be too far apart to find the joint slow where it turns round.
        axis, speed = s.axes[k, j], s.signals[j].speed
        size = 0.0 if speed * axis.before < 0.0 else abs(speed)
        axis.before, axis.slowest = speed, min(size, axis.slowest + RECOVERY * ahead)
        slow, axis.late = size <= SPEEDS[0], 0
        axis.since_slow = 0.0 if slow else axis.since_slow + ahead
        axis.slow_for = axis.slow_for + ahead if slow else 0.0
        for edge in SLOW_S:
            axis.late += axis.since_slow > edge
    for j in range(n):
        axis, largest = s.axes[k, j], -1.0
        if axis.late < later:
            axis.of = FIRST_REVERSAL + axis.late
            continue
        for i in range(n):
            other = s.axes[k, i]
            if other.late < later and other.slow_for <= STANDING_S:
                of = FIRST_REVERSAL + later * (1 + i) + other.late
                square = _mean_square(s, k, of, j)
                if square > largest:
                    largest, axis.of = square, of
        if largest >= 0.0:
            continue
        speed, axis.of = axis.slowest, 0
        if j > 0:
            speed = min(speed, NEIGHBOUR * s.axes[k, j - 1].slowest)
        if j < n - 1:
            speed = min(speed, NEIGHBOUR * s.axes[k, j + 1].slowest)
        for edge in SPEEDS:
            axis.of += speed > edge


@compiled_in_turn
def _mean_square(s: Errors, k: int, of: int, j: int) -> float:
    """Of axis j in a class. One of which little is known is taken for all together."""
    size, every = s.sizes[k, of, j], s.sizes[k, s.sizes.shape[1] - 1, j]
    mean = every.square / every.weight if every.weight > 0.0 else 0.0
    found: float = (size.square + CLASS_PRIOR * mean) / (size.weight + CLASS_PRIOR)
    return found


@compiled_in_turn
def spread_of(s: Errors, k: int, j: int, known: float) -> float:
    """Standard deviation of axis j in the class looked at; infinite where none is known.

    Where the motion isn't `known` (0), errors last as long as it stays there, and the standard
    deviations grow.
    """
    if s.sizes[k, s.sizes.shape[1] - 1, j].weight <= 0.0:
        return math.inf
    axis, signal = s.axes[k, j], s.signals[j]
    square = _mean_square(s, k, axis.of, j) * max(axis.level / USUAL_LEVEL, 1.0)
    unknown = UNKNOWN_MOTION_FACTOR + known * (1.0 - UNKNOWN_MOTION_FACTOR)
    return math.hypot(max(math.sqrt(square) * unknown, signal.least), signal.between)


@compiled_in_turn
def count(s: Errors) -> None:
    """Take the errors of the first sample that waits for usual ones, in its tests.

    It raises the largest usual deviations by a share at most, at first to its own: also those in
    the kind of motion that may not have been met. A reversal recurs, with a peak that is never the
    same, and what is over as soon is no push: so its peak counts there.
    """
    now, n, every = s.now[0], s.signals.size, s.sizes.shape[1] - 1
    for k in range(3):
        test, parts, whole = s.tests[k], s.parts[now.first, k], s.parts[now.first, k, n]
        if not whole.due:
            continue
        ahead = min(max((whole.stamp - test.counted) * 1e-9, 0.0), 1.0) if test.counted else 0.0
        kept, first = math.exp(-ahead / USUAL_HORIZON_S), test.seen < FIRST_S
        test.counted, test.seen = whole.stamp, test.seen + ahead
        most = math.inf if first else CLIPPED
        few = test.seen <= 0.5 * FIRST_S  # too few are known to say what is large
        free, growth = first and not few, 0.0 if few else 1.0 + GROWTH * ahead
        for c in range(every + 1):
            for j in range(n):
                s.sizes[k, c, j].square *= kept
                s.sizes[k, c, j].weight *= kept
        for j in range(n):
            part, size = parts[j], abs(parts[j].error)
            if not math.isnan(size):
                size *= most / abs(part.scaled) if abs(part.scaled) > most else 1.0
                for c in (part.of, every):
                    s.sizes[k, c, j].square += whole.confidence * size * size
                    s.sizes[k, c, j].weight += whole.confidence
            for i in range(n):
                product = min(max(part.scaled, -CLIPPED), CLIPPED)
                product *= min(max(parts[i].scaled, -CLIPPED), CLIPPED)
                pair = s.pairs[k, j, i]
                pair.correlation += (1.0 - kept) * (product - pair.correlation)
        for j in range(n + 1):
            axis, part, ended = s.axes[k, j], parts[j], 0.0
            if part.deviation > PEAK_STDS:
                axis.raised = axis.raised if axis.raised > 0 else whole.stamp
                axis.height = max(axis.height, part.deviation * part.turning)
            else:
                if axis.raised > 0 and whole.stamp - axis.raised <= test.lasts:
                    ended = axis.height
                axis.raised, axis.height = 0, 0.0
            for row in range(2):
                usual = axis.usual[row]
                value = math.exp(-ahead / LARGEST_HORIZON_S) * usual
                if free or row == part.turning:
                    value = max(value, min(part.deviation, math.inf if free else growth * usual))
                if row == 1 and not free:
                    value = max(value, min(ended, SHORT_GROWTH * usual))
                axis.usual[row] = value
        test.whitened += ahead
        if test.whitened > WHITEN_EVERY_S:
            test.whitened = 0.0
            _whiten(s, k)
        if k == SUDDEN:
            _count_mean(s)
            now.lacked = kept * now.lacked + ahead * (1.0 - whole.confidence)
            now.weight = kept * now.weight + ahead
    now.first, now.waiting = (now.first + 1) % WAITING, now.waiting - 1


@compiled_in_turn
def _whiten(s: Errors, k: int) -> None:
    """Make `white` the inverse of the correlation's Cholesky factor."""
    pairs, n = s.pairs[k], s.signals.size
    for i in range(n):
        for j in range(i + 1):
            own, other = pairs[i, i].correlation, pairs[j, j].correlation
            value = (1.0 - DECORRELATION_SHARE) * pairs[i, j].correlation
            value /= math.sqrt(max(own, 1e-12)) * math.sqrt(max(other, 1e-12))
            value = 1.0 if i == j else value
            for m in range(j):
                value -= pairs[i, m].white * pairs[j, m].white
            pairs[i, j].white = math.sqrt(value) if i == j else value / pairs[j, j].white
    for i in range(n):
        for j in range(i):
            value = 0.0
            for m in range(j, i):
                value -= pairs[i, m].white * pairs[m, j].white
            pairs[i, j].white = value / pairs[i, i].white
        pairs[i, i].white = 1.0 / pairs[i, i].white


@compiled_in_turn
def _count_mean(s: Errors) -> None:
    """Count errors for the covariance of their means over `MEAN_S`.

    Where a joint turns round they mostly cancel within that time. NaN, not measured, counts for
    none.
    """
    now, n, parts, most = s.now[0], s.signals.size, s.parts[s.now[0].first, SUDDEN], 0.0
    stamp = parts[n].stamp
    anew = not 0 < stamp - now.mean_at < MEAN_S * 1e9
    now.mean_at, now.mean_since = stamp, stamp if anew else now.mean_since
    seconds = (stamp - now.mean_since) * 1e-9
    for j in range(n):
        signal, measured = s.signals[j], not math.isnan(parts[j].error)
        signal.total = (0.0 if anew else signal.total) + (parts[j].error if measured else 0.0)
        signal.number = (0.0 if anew else signal.number) + measured
        most = max(most, s.means[n, j])
    if seconds < MEAN_S:
        return
    now.mean_since, kept = stamp, math.exp(-seconds / USUAL_HORIZON_S)
    for j in range(n):
        signal, number = s.signals[j], s.means[n, j]
        signal.total /= max(signal.number, 1.0)
        # A push that was missed is not usual; but an axis may hardly have been measured yet.
        if most >= MEANS_PER_AXIS * n and number >= MEANS_PER_AXIS:
            bound = CLIPPED * math.sqrt(s.means[j, j] / max(number, 1.0) + signal.least**2)
            signal.total = min(max(signal.total, -bound), bound)
        for i in range(j + 1):
            s.means[i, j] = kept * s.means[i, j] + s.signals[i].total * signal.total
            s.means[j, i] = s.means[i, j]
    for j in range(n):
        s.means[n, j] = kept * s.means[n, j] + min(s.signals[j].number, 1.0)
        s.signals[j].total = s.signals[j].number = 0.0
