"""Contacts: external efforts or wrenches far beyond the errors that are usual.

They are tested before the narrow low-pass (`Sample.fast`), behind the wide one alone, where a push
is seen within some milliseconds. What is measured minus predicted there is what a generalized
momentum observer of that bandwidth gives (De Luca, Albu-Schaeffer, Haddadin and Hirzinger 2006,
Collision detection and safe reaction with the DLR-III lightweight manipulator arm, section III): a
filter of both sides of the equation, so that no acceleration is needed that the filter does not
give. Errors are larger there, where a joint turns round above all: friction changes its sign
within milliseconds.

They are tested at three scales of time: quick, sudden and lasting.
"""

from __future__ import annotations

import math
from collections import deque
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.jit import compiled_in_turn
from semiparam_dynamics.base.storage import sub_state
from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.changes.error_sizes import MeanErrors, Novelty, ScaledErrors
from semiparam_dynamics.changes.unusual_errors import MIN_STD_SHARE, USUAL_STEP, DeviationTest

SUSPICION_SHARE = 0.75  # of the limit, above which a contact may be beginning
PRESSED_SHARE = 0.5  # of the limit, above which a contact's force is there
END_TIME_S = 0.3  # for which deviations must stay small until it is over
LASTING_END_S = 0.1  # the same of their average, which the last ones of a push are part of
PAUSE, RESUMING = 500_000_000, 200_000_000  # ns without samples, and for which it shows
USUAL_DELAY_S = 1.0  # after which errors without a contact count as usual
FILTERED = 6.0  # samples in a low-pass' period, from which on it takes off their noise
SHORT_S = 0.06  # what is over sooner is no push, but an error that may recur
# Of errors that are sharpened: the cut-off, in that of the low-pass which they passed, for how long
# a deviation of just the limit must last, and times the threshold that is this limit.
QUICK_RATIO = 1.5
QUICK_TEST_S = 0.005
QUICK_ABOVE = 7.0 / 6.0
# Standard deviations, up to which a sharpened error need not be tested: most samples are below.
QUICK_CLOSER = 2.5
# Of errors that last, a moving average: its time constant, from when on it is one, how often it is
# tested, and times the threshold that is its limit, since what lasts has longer tails.
LASTING_S = 0.04
LASTING_AFTER = 200_000_000  # ns
LASTING_LONGEST_S = 0.02  # that a sample counts for in it, however far from the last one it is
LASTING_STEP = 10_000_000  # ns
LASTING_ABOVE = 7.0 / 6.0
LASTING_LATER_S = 0.1  # for which an error shows longer there than it lasts
# Between two samples nothing says when the motion changed: of their distance, a standard deviation.
BETWEEN = 12.0**-0.5
BETWEEN_S = 0.1  # over which a low-pass forgets the error that comes of it


class Scaled(NamedTuple):
    """A sample as each test has it; None where none is due."""

    sudden: ScaledErrors
    quick: ScaledErrors | None
    lasting: ScaledErrors | None


class ContactDetector:
    """Tests each sample, so that no contact waits for a block to be complete.

    Errors are tested three times (`DeviationTest`): each sample's; the same behind a wider
    low-pass (`Sharpened`), where a strong push is seen some milliseconds sooner and noise is
    larger; and their moving average. That is a quarter as large where nothing touches the robot,
    since noise and what a reversal leaves mostly cancel, and as large as the force where a push
    lasts: so it detects weak pushes, some ten milliseconds later.

    Parameters
    ----------
    config: `contact` and `contact_longest` of it.
    scales: (n_axes,) of the outputs, N m or N: a small share of them is no error worth telling.
    by_speed: errors have their sizes by their joint's speed.

    Attributes
    ----------
    config: may be changed at any time.
    sudden, quick, lasting: the tests.
    active: whether there is a contact.
    since: stamp of its first sample, ns.
    largest: share of its limit that a sample of the contact had at most.
    given_up: the contact lasted longer than `config.contact_longest`: the deviation is the robot's
        own until the errors are small again.
    """

    def __init__(self, config: ChangesConfig, scales: Array, *, by_speed: bool = False) -> None:
        self.config = config
        self.sudden = DeviationTest(scales, by_speed=by_speed)
        self.quick = DeviationTest(
            scales, by_speed=by_speed, above=QUICK_ABOVE, test_time=QUICK_TEST_S
        )
        self.lasting = DeviationTest(
            scales, by_speed=by_speed, above=LASTING_ABOVE, later=LASTING_LATER_S
        )
        self._tests = self.sudden, self.quick, self.lasting
        self._sharpened = Sharpened(len(scales))
        self._means = MeanErrors(MIN_STD_SHARE * scales)
        self._novelty = Novelty()
        self._average: Array = np.zeros(len(scales))
        self._expected: Array = np.full(len(scales), np.nan)  # of the last sample
        self._between: Array = np.zeros(len(scales))  # standard deviations, see `BETWEEN`
        self._pending: deque[Scaled] = deque()
        # ns, stamps of the last sample, and of the first after a pause
        self._at = self._resumed = 0
        self._ahead = 0.0  # s from the sample before to the last one
        self.reset()

    def reset(self) -> None:
        """End any contact, as after a pause or when another cause is found."""
        self.active = self.given_up = False
        self.since, self.largest = 0, 0.0
        self._average_since = self._lasting_at = 0  # ns
        for test in self._tests:
            test.reset()
        self._pending.clear()

    @property
    def nearest(self) -> DeviationTest:
        """The test that is nearest to a contact."""
        return max(self._tests, key=attrgetter("share"))

    @property
    def deviation(self) -> float:
        """External part of the last sample, in standard deviations of expected errors.

        Of the axis, or of all together, and by the test that is nearest to a contact.
        """
        return self.nearest.deviation

    @property
    def threshold(self) -> float:
        """The limit of the deviation; 0 where contacts aren't detected."""
        return self.nearest.limit

    @property
    def suspicious(self) -> bool:
        """Return whether the last sample may be the beginning of a contact.

        Sharpened errors do not count: they come near their limit often, and only for moments.
        """
        return max(self.sudden.share, self.lasting.share) > SUSPICION_SHARE

    @property
    def pressed(self) -> bool:
        """Return whether the last sample has the contact's force: the average has it for longer."""
        test = self.sudden if self.largest > 1.0 else self.nearest
        return test.share > PRESSED_SHARE

    def spread(self, confidence: float) -> Array:
        """(n_axes,) standard deviations of the last sample's errors at a confidence.

        In motion that is new, and for a while after, as at a lower one; see `Novelty`.
        """
        known = min(confidence, 1.0 - self._novelty.level)
        return self.sudden.sizes.spread(known, self._between)

    def mean_covariance(self) -> Array:
        """(n_axes, n_axes) of the means of usual errors over `MEAN_S`.

        Errors where a joint turns round mostly cancel within that time, so that it is much smaller
        than the squares of :meth:`spread`, which is taken while no means are known.
        """
        known = self._means.covariance()
        return np.diag(self.spread(1.0) ** 2) if known is None else known

    def add(
        self,
        stamp: int,
        error: Array,
        confidence: float = 1.0,
        speeds: Array | None = None,
        expected: Array | None = None,
        longest: float = math.inf,
        cutoff: float = 0.0,
        *,
        tested: bool = True,
    ) -> str:
        """Test the errors (n_axes,) of a sample, `stamp` in ns.

        error: NaN on an axis that was not measured. confidence: of the prediction, 0 to 1.
        speeds: (n_axes,) of the axes' joints, in rad/s or m/s.
        expected: (n_axes,) what was predicted; None: how fast it changes is not known.
        longest: s after which a contact is given up, if that is less than configured.
        cutoff: Hz, of the low-pass that the errors passed; 0: they are not to be sharpened.
        tested: whether a contact may begin or end; the errors count as usual in any case, once
            `USUAL_DELAY_S` has passed without one.
        Returns "begins", "over" or "given up" where that changes, else an empty text.
        """
        threshold, resumes, begins = self.config.contact, self._resumes(stamp), False
        scaled = self._scale(stamp, error, confidence, speeds, expected, cutoff)
        if not tested:
            if not resumes:
                self._wait(scaled)
            return ""
        accumulate = not (resumes or self.active or self.given_up)
        for test, usual in zip(self._tests, scaled, strict=True):
            if usual is None:
                continue
            begun = test.test(usual, threshold, accumulate=accumulate)
            if begun and not begins:
                begins, self.since = True, test.since
                if test is self.quick:  # it is sudden some milliseconds later, if it lasts
                    self.sudden.last_large = stamp
            if self.active:
                test.raise_peak(usual)
                self.largest = max(self.largest, self.sudden.share)
        ended = (stamp - self.sudden.last_large) * 1e-9 >= END_TIME_S
        ended &= (stamp - self.lasting.last_large) * 1e-9 >= LASTING_END_S
        if self.active:
            if ended or threshold <= 0.0:
                self.active = False
                if self._was_short():
                    for test in self._tests:
                        test.keep_peak(threshold)
                return "over"
            if (stamp - self.since) * 1e-9 > min(longest, self.config.contact_longest):
                self.active, self.given_up = False, True
                return "given up"
            return ""
        if resumes:
            return ""
        if self.given_up:
            self.given_up = not ended
        elif begins:
            self.active, self.largest = True, self.sudden.share
            for test, usual in zip(self._tests, scaled, strict=True):
                test.begin()
                if usual is not None:
                    test.raise_peak(usual)
            self._pending.clear()
            return "begins"
        self._wait(scaled)
        return ""

    def _scale(
        self,
        stamp: int,
        error: Array,
        confidence: float,
        speeds: Array | None,
        expected: Array | None,
        cutoff: float,
    ) -> Scaled:
        self._novelty.follow(stamp, confidence, grows=not self.active)
        known, ahead = min(confidence, 1.0 - self._novelty.level), self._ahead
        if stamp - self._resumed < RESUMING or not self._average_since:
            self._average_since, ahead = stamp, 0.0
            self._average[:] = 0.0
            self._between[:] = 0.0
            self._expected[:] = np.nan
            self._sharpened.reset()
            self.lasting.reset()
        if expected is not None:
            kept = math.exp(-ahead / BETWEEN_S)
            _follow_change(expected, kept, self._expected, self._between)
        grows = known, self._between
        usual = self.sudden.scale(stamp, error, confidence, speeds, *grows)
        quick, sharp = None, self._sharpened.follow(error, self._ahead, cutoff)
        if sharp is None:
            if self.quick.share > 0.0:
                self.quick.reset()
        elif self._sharpened.closer or not self._waits(stamp):
            quick = self.quick.scale(stamp, sharp, confidence, speeds, *grows)
            self._sharpened.usual = self.quick.spread
        else:
            self.quick.skip(stamp)
        share = 1.0 - math.exp(-min(ahead, LASTING_LONGEST_S) / LASTING_S)
        _average(error, share, self._average)
        begun = stamp - self._average_since >= LASTING_AFTER
        if not begun or 0 <= stamp - self._lasting_at < LASTING_STEP:
            return Scaled(usual, quick, None)
        self._lasting_at = stamp
        average = np.where(np.isnan(error), np.nan, self._average)
        lasting = self.lasting.scale(stamp, average, confidence, speeds, *grows)
        return Scaled(usual, quick, lasting)

    def _resumes(self, stamp: int) -> bool:
        """Return whether a pause is so short ago that filters still show it."""
        if not 0 <= stamp - self._at <= PAUSE:
            self._resumed = stamp
        if stamp < self._at:  # what waits would do so until the clock is there again
            self._pending.clear()
            for test in self._tests:
                test.sizes.drop_recent()
        self._ahead, self._at = (stamp - self._at) * 1e-9, stamp
        return stamp - self._resumed < RESUMING

    def _was_short(self) -> bool:
        """Return whether the contact was over too soon to be a push."""
        sudden = (self.sudden.last_beyond - self.since) * 1e-9
        lasting = (self.lasting.last_beyond - self.since) * 1e-9
        return sudden < SHORT_S and lasting < SHORT_S + LASTING_LATER_S

    def _waits(self, stamp: int) -> bool:
        """Return whether a sample just before one at `stamp` waits, as whose part that counts."""
        return bool(self._pending) and 0 <= stamp - self._pending[-1].sudden.stamp < USUAL_STEP

    def _wait(self, scaled: Scaled) -> None:
        # Errors behind a low-pass hardly change from one to the next: the largest of some counts.
        stamp = scaled.sudden.stamp
        if self._waits(stamp):
            for first, later in zip(self._pending[-1][:2], scaled[:2], strict=True):
                if first is not None and later is not None:
                    np.maximum(first.deviations, later.deviations, out=first.deviations)
            if scaled.lasting is not None:
                self._pending[-1] = self._pending[-1]._replace(lasting=scaled.lasting)
                self.lasting.sizes.follow(scaled.lasting)
            return
        self._pending.append(scaled)
        for test, usual in zip(self._tests, scaled, strict=True):
            if usual is not None:
                test.sizes.follow(usual)
        while stamp - self._pending[0].sudden.stamp > USUAL_DELAY_S * 1e9:
            self._count(self._pending.popleft())

    def _count(self, scaled: Scaled) -> None:
        usual = scaled.sudden
        ahead = self.sudden.count(usual)
        self._means.count(usual.stamp, usual.error)
        self._novelty.count(ahead, usual.confidence)
        for test, other in ((self.quick, scaled.quick), (self.lasting, scaled.lasting)):
            if other is not None:
                test.count(other)

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        lasting = {f"lasting.{name}": value for name, value in self.lasting.state().items()}
        quick = {f"quick.{name}": value for name, value in self.quick.state().items()}
        means = {"means": self._means.sums.copy(), "unknown": self._novelty.sums.copy()}
        return self.sudden.state() | quick | lasting | means

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`. Raises ValueError where it has another number of axes."""
        self.reset()
        self.sudden.restore(state)
        self.quick.restore(sub_state(state, "quick."))
        self.lasting.restore(sub_state(state, "lasting."))
        self._means.sums = state["means"].copy()
        self._novelty = Novelty()  # motion that is new to one model is not to another
        self._novelty.sums = state["unknown"].copy()


class Sharpened:
    """Errors as they were behind a low-pass of `QUICK_RATIO` times the cut-off.

    The filter is (s^2 + r w s + w^2) W^2 / ((s^2 + r W s + W^2) w^2) of both cut-offs, w and W, and
    r = 2^(1/2): the numerator takes a Butterworth low-pass off, the denominator puts a wider one
    on. Between samples it is integrated by the trapezoidal rule.

    Parameters
    ----------
    n: errors of a sample.

    Attributes
    ----------
    usual: (n,) their standard deviations.
    closer: whether any of the last ones is beyond `QUICK_CLOSER` of these.
    """

    def __init__(self, n: int) -> None:
        self.usual: Array = np.zeros(n)
        self.closer = False
        self._states: Array = np.zeros((2, n))
        self._last: Array = np.full(n, np.nan)

    def reset(self) -> None:
        """Begin anew."""
        self._last[:] = np.nan

    def follow(self, errors: Array, ahead: float, cutoff: float) -> Array | None:
        """(n,) for errors (n,), `ahead` s after the last ones, behind a low-pass of `cutoff` Hz.

        None where samples are too far apart, and at a cut-off of 0, which says that there is none.
        """
        if not 0.0 < FILTERED * ahead * QUICK_RATIO * cutoff <= 1.0:
            self.reset()
            return None
        sharp = np.empty_like(errors)
        narrow = 2.0 * math.pi * cutoff
        kept = self._states, self._last, self.usual
        self.closer = _sharpen(errors, ahead, narrow, QUICK_RATIO * narrow, *kept, sharp)
        return sharp


@compiled_in_turn
def _sharpen(
    errors: Array,
    ahead: float,
    narrow: float,
    wide: float,
    states: Array,
    last: Array,
    usual: Array,
    sharp: Array,
) -> bool:
    """See `Sharpened`; NaN, not measured: begins anew, at rest, with what is measured next.

    Returns whether any is beyond `QUICK_CLOSER` of the usual ones.
    """
    closer = False
    root, gain, half = math.sqrt(2.0), (wide / narrow) ** 2, 0.5 * ahead
    damping, stiffness = root * wide, wide * wide
    slope, level = gain * root * (narrow - wide), gain * (narrow * narrow - stiffness)
    scale = 1.0 + half * damping + half * half * stiffness
    for j in range(errors.size):
        error = errors[j]
        if math.isnan(last[j]):
            states[0, j], states[1, j] = error / stiffness, 0.0
        else:
            x, v = states[0, j], states[1, j]
            force = v + half * (error + last[j] - stiffness * x - damping * v)
            x += half * v
            states[0, j] = ((1.0 + half * damping) * x + half * force) / scale
            states[1, j] = (force - half * stiffness * x) / scale
        last[j] = error
        sharp[j] = level * states[0, j] + slope * states[1, j] + gain * error
        closer = closer or abs(sharp[j]) > QUICK_CLOSER * usual[j]
    return closer


@compiled_in_turn
def _average(error: Array, share: float, average: Array) -> None:
    """Let an average follow errors by a share of their distance; NaN, not measured: towards 0."""
    for j in range(error.size):
        value = 0.0 if math.isnan(error[j]) else error[j]
        average[j] += share * (value - average[j])


@compiled_in_turn
def _follow_change(expected: Array, kept: float, last: Array, between: Array) -> None:
    """The standard deviations by the time between samples; `kept` of what they were remains."""
    for j in range(expected.size):
        change = BETWEEN * abs(expected[j] - last[j])
        between[j] = max(0.0 if math.isnan(change) else change, kept * between[j])
        last[j] = expected[j]
