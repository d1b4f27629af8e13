"""The even clock behind a driver's stamps, and whether positions follow it or the stamps.

Many drivers sample at even times and stamp at reception. Others sample unevenly and stamp truly.
The motion tells which: where stamps are true, joints go further in longer steps. So the change of
each joint's way from one step to the next is compared with what the stamps make of it. The slope
between the two, a regression over all joints, is 1 for true stamps and 0 for an even clock, and the
steps that the filters get are as much the clock's as it is surely below 1.

The clock's phase and period are a least-squares line through the last stamps (an alpha-beta filter
whose gains fall with their number), messages that are missing counted. Messages that come in
batches, some at once every so often, were sampled at even times all the same: all steps are the
clock's then, and the line goes through the last messages of batches, whose stamps are least late.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.jit import compiled_as_written

FIRST_STEPS = 32  # steps whose median is the first period
FIRST_WEIGHT = 16  # steps that this median counts for, as if the clock had been fitted to so many
MAX_FITTED_STEPS = 200  # steps that the clock is fitted to at most
MAX_STEP_PERIODS = 8.0  # periods that a step has at most where the clock goes on
MAX_LATENESS = 0.6  # of a period that a stamp may be late before a message is missing
MAX_LEAD = 0.75  # of a period that the clock may be ahead before it counted one too many
SLOPE_HORIZON = 30.0  # s for which what positions said counts
MIN_SLOPE_VARIANCES = 16.0  # variances of the slope that it must differ from 1 to count
MIN_BATCHES = 2  # that begin within the first steps
MAX_BATCH_STEP = 0.5  # of the mean step, within a batch
MAX_BATCH_SPREAD = 1.5  # of the longest time between two batches and the shortest
MIN_SUM = 1e-100  # sums below are of motion hours ago: their squares would soon be no numbers

# The clock's memory; times in s.
CLOCK = np.dtype(
    [
        ("period", np.float64),  # 0 until known
        ("seen", np.int64),  # steps since it began, FIRST_STEPS and MAX_FITTED_STEPS at most
        ("single", np.int64),  # steps since one was one period long
        ("ahead", np.float64),  # of the last stamp
        ("correction", np.float64),  # added to the last stamp
        ("periods", np.float64),  # in the last step, of batches in the last one; 0: unknown
        ("step", np.float64),  # between the last two stamps
        ("batch", np.float64),  # longest step between two batches of messages; 0: they come singly
        # Sums over joints and steps, forgotten in time: deviations of ways expected by the stamps,
        # squared and times those found, those found, squared, and how many there were.
        ("expected", np.float64),
        ("product", np.float64),
        ("found", np.float64),
        ("count", np.float64),
    ]
)


@compiled_as_written
def restart_clock(clock: Any) -> None:
    """Begin anew at the stamp that comes next; what positions said is kept."""
    clock.period = clock.ahead = clock.correction = clock.periods = clock.batch = 0.0
    clock.seen = clock.single = 0


@compiled_as_written
def clocked_step(
    clock: Any, steps: Array, went: Array, q: Array, last: Array, step: float, messages: int
) -> float:
    """The time between two instants in s, which is `step` by their stamps; always positive.

    clock : of `CLOCK`.
    steps : (FIRST_STEPS,) the first steps, s; in order once all are there.
    went : (n_joints,) how far joints went in the step before, rad or m.
    q, last : (n_joints,) positions now and before.
    messages : how many came in that time, those that were left out included.
    """
    if clock.period <= 0.0:
        steps[clock.seen] = step
        clock.seen += 1
        if clock.seen == FIRST_STEPS:
            _begin_clock(clock, steps)
        return step
    period, share = clock.period, 1.0
    if clock.batch > 0.0:
        if step > MAX_BATCH_SPREAD * clock.batch:  # a batch is missing
            restart_clock(clock)
            return step
        if step > MAX_BATCH_STEP * clock.batch:  # the message before was the last of its batch
            _fit(clock, clock.ahead, clock.periods)
            clock.periods = 0.0
        clock.periods += messages
        clock.ahead += messages * clock.period - step
    else:
        # Deviations below half a period are rather the stamp's than a message's that is missing.
        periods = max(math.ceil((step - clock.ahead) / period - MAX_LATENESS), 1.0)
        clock.single = 0 if periods < 2.0 else clock.single + 1
        if clock.single > MAX_FITTED_STEPS or (
            periods > MAX_STEP_PERIODS and clock.seen == FIRST_WEIGHT
        ):
            restart_clock(clock)  # messages come more rarely now
            return step
        if periods > MAX_STEP_PERIODS:  # a gap, too long to be counted: the phase begins anew
            clock.ahead = clock.correction = clock.periods = 0.0
            clock.seen = FIRST_WEIGHT
            return step
        ahead = clock.ahead + periods * period - step
        if ahead > MAX_LEAD * period:
            ahead -= period
            clock.seen = FIRST_WEIGHT
        _compare(clock, went, q, last, step, periods)
        share = 1.0 - _slope(clock)
        _fit(clock, ahead, periods)
    shortest = period if clock.batch > 0.0 else min(step, period)
    even: float = max(step + share * clock.ahead - clock.correction, 0.1 * shortest)
    clock.correction += even - step
    return even


@compiled_as_written
def _begin_clock(clock: Any, steps: Array) -> None:
    """The period and the kind of the first `steps` (FIRST_STEPS,), which are put in order."""
    # Between the first messages of the first and the last batch that began, if there are batches.
    mean, first, last, span = steps.mean(), -1, 0, 0.0
    for i in range(FIRST_STEPS):
        span += steps[i] if first >= 0 else 0.0
        if steps[i] > mean:
            first, last, whole = (i if first < 0 else first), i, span
    for i in range(1, FIRST_STEPS):  # numba's own sort and median take a second to compile
        value, j = steps[i], i
        while j > 0 and steps[j - 1] > value:
            steps[j] = steps[j - 1]
            j -= 1
        steps[j] = value
    clock.period = 0.5 * (steps[(FIRST_STEPS - 1) // 2] + steps[FIRST_STEPS // 2])
    clock.seen, clock.batch = FIRST_WEIGHT, batch_step(steps)
    if clock.batch > 0.0:
        clock.period, clock.seen = whole / (last - first), 0
        clock.periods = FIRST_STEPS - last  # messages of the batch so far
        clock.ahead = clock.correction = clock.periods * clock.period - clock.batch


@compiled_as_written
def _fit(clock: Any, ahead: float, periods: float) -> None:
    """Take a stamp that the clock is `ahead` of, `periods` after the one before, into the line."""
    clock.seen = min(clock.seen + 1, MAX_FITTED_STEPS)
    k = float(clock.seen)
    if k > 1.0:  # one stamp has no slope
        clock.period -= 6.0 / (k * (k + 1.0)) * ahead / periods
    clock.ahead = ahead * (1.0 - 2.0 * (2.0 * k - 1.0) / (k * (k + 1.0)))


@compiled_as_written
def batch_step(steps: Array) -> float:
    """The longest of `steps` in their order if they are between batches of messages; else 0."""
    n, mean = steps.size, steps.mean()
    first = n
    while first > 0 and steps[first - 1] > mean:
        first -= 1
    # In batches, of two messages at least, half of the steps are short.
    if (
        not MIN_BATCHES <= n - first <= (n + 1) // 2
        or steps[n - 1] > MAX_BATCH_SPREAD * steps[first]
    ):
        return 0.0
    longest: float = steps[n - 1] if steps[first - 1] < MAX_BATCH_STEP * mean else 0.0
    return longest


@compiled_as_written
def _compare(clock: Any, went: Array, q: Array, last: Array, step: float, periods: float) -> None:
    """Add a step's evidence to the sums."""
    kept = math.exp(-step / SLOPE_HORIZON)
    expected = product = found = 0.0
    if clock.periods > 0.0:
        ratio, both = periods / clock.periods, step + clock.step
        off = (step - ratio * clock.step) / both
        for j in range(went.size):
            way = q[j] - last[j]
            x, y = (way + went[j]) * off, way - ratio * went[j]
            expected += x * x
            product += x * y
            found += y * y
    clock.expected = kept * clock.expected + expected
    clock.product = kept * clock.product + product
    clock.found = kept * clock.found + found
    clock.count = kept * clock.count + went.size
    for j in range(went.size):
        went[j] = q[j] - last[j]
    clock.step, clock.periods = step, periods


@compiled_as_written
def _slope(clock: Any) -> float:
    """Share of the stamps' deviations that positions follow; 1 where nothing is certain."""
    short = clock.expected - clock.product
    if short <= 0.0 or clock.expected < MIN_SUM:
        return 1.0
    unexplained = max(clock.found - clock.product * clock.product / clock.expected, 0.0)
    sure = 1.0 - MIN_SLOPE_VARIANCES * unexplained / clock.count * clock.expected / (short * short)
    slope: float = max(1.0 - short / clock.expected * max(sure, 0.0), 0.0)
    return slope
