"""Errors beyond those that are usual: of each axis, and of all together."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import chdtri, ndtr

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.jit import compiled_in_turn
from semiparam_dynamics.base.storage import sub_state
from semiparam_dynamics.changes.error_sizes import (
    CLIPPED,
    FIRST_S,
    USUAL_HORIZON_S,
    ErrorStatistics,
    ScaledErrors,
)

MIN_EXPECTED_S = 1.0  # of usual errors, fewer of which say nothing
TEST_TIME_S = 0.01  # usually, for which a deviation of just the limit must last
COUNTED_SHARE = 0.65  # of the limit, beyond which a deviation counts for one
COUNTED_TOGETHER = 0.8  # the same of all together, in which every axis' tails add up
END_SHARE = 0.5  # of an axis' limit, below which a contact ends
LARGEST_HORIZON_S = 600.0  # over which the largest deviations are forgotten
USUAL_STEP = 8_000_000  # ns at least between errors that are counted
USUAL_FACTOR = 1.3  # times the largest usual deviation is no longer usual
GROWTH = 0.1  # 1/s, by which the largest usual deviation grows at most after that
REVERSAL_S = 0.12  # what is over sooner where a joint turned round, without a contact: two peaks
SHORT_SHARE = 0.85  # of the limit, up to which a contact is over
SHORT_GROWTH = 1.5  # by which a short one raises the largest usual deviation at most
PEAK_STDS = 3.0  # standard deviations, beyond which a deviation is part of a peak
MIN_STD_SHARE = 0.005  # of an output's scale, that a standard deviation is at least
MAX_LIMIT = 30.0  # beyond it, probabilities are too small to be numbers
DECORRELATION_SHARE = 0.1  # share of the correlation that is taken off
WHITEN_EVERY_S = 0.2


class DeviationTest:
    """Tests errors against those of the last minutes.

    Deviations are in standard deviations of these (`ErrorStatistics`). Errors have tails longer
    than a normal distribution, depending on the joint; so a contact must also exceed the largest
    usual deviation of its axis, of reversals apart from that of other motion. A push moves several
    joints, each perhaps by little, and not as usual errors do: so the length of all deviations,
    whitened by their usual correlation, counts like a further axis, with a limit that noise exceeds
    as rarely.

    Parameters
    ----------
    scales: (n_axes,) of the outputs, N m or N: a small share of them is no error worth telling.
    by_speed: errors have their sizes by their joint's speed.
    above: times the threshold, which is the limit.
    later: s for which errors show longer than they last.
    test_time: s for which a deviation of just the limit must last to be a contact.

    Attributes
    ----------
    scaled: (n_axes,) the last errors, in standard deviations, with their sign.
    spread: (n_axes,) these standard deviations.
    axis: nearest to its limit; n_axes: all together.
    deviation: the last one of that axis, in standard deviations.
    limit, share: that it is compared with, and its share of it; 0 where nothing is tested.
    since: stamp of the first sample that adds up to a contact, ns.
    last_beyond, last_large: stamps of the last sample that is about a contact's, and that is too
        large for the end of one, ns.
    """

    def __init__(
        self,
        scales: Array,
        *,
        by_speed: bool = False,
        above: float = 1.0,
        later: float = 0.0,
        test_time: float = TEST_TIME_S,
    ) -> None:
        n_axes = len(scales)
        self.sizes = ErrorStatistics(MIN_STD_SHARE * scales, by_speed)
        self._above, self._test_time = above, test_time
        self._correlation: Array = np.eye(n_axes)
        self._white: Array = np.eye(n_axes)
        self._whitened = 0.0  # s since `_white` was made anew
        self._seen = 0.0  # s of usual errors
        self.scaled: Array = np.zeros(n_axes)
        self.spread: Array = np.zeros(n_axes)
        self._each = np.arange(n_axes + 1)  # axis, and last all together
        # The largest deviations of each, in other motion and, in the second row, in reversals.
        self._usual: Array = np.zeros((2, n_axes + 1))
        # Of deviations that are large while a joint turns round: ns, stamp of the first, 0 for
        # none, their height so far, and ns for which they last at most. The same reversal recurs,
        # with a peak that is never the same, and what is as short is no push.
        self._peaks: tuple[Indices, Array] = (
            np.zeros(n_axes + 1, dtype=np.int64),
            np.zeros(n_axes + 1),
        )
        self._peaks_last = 1e9 * (REVERSAL_S + later) + USUAL_STEP
        self._at = 0  # ns, stamp of the last sample
        self.reset()

    def reset(self) -> None:
        """Forget what is under way, but not what is usual."""
        self.axis, self.deviation, self.limit, self.share = 0, 0.0, 0.0, 0.0
        self.since = self.last_beyond = self.last_large = 0
        self._peak: Array = np.zeros_like(self._usual)  # during a contact
        self._sums: Array = np.zeros(len(self._each))  # of each axis, and of all: 1 is a contact
        self.sizes.drop_recent()

    def limits(self, threshold: float) -> Array:
        """(2, n_axes + 1) in other motion and in reversals, in standard deviations.

        Of each axis and of all together, by a threshold in standard deviations; infinite where
        that is 0.
        """
        limit = self._above * threshold or math.inf
        least = np.full(len(self._each), limit)
        least[-1] = as_rare(limit, len(self._white))
        limits: Array = np.maximum(USUAL_FACTOR * self._usual, least)
        return limits

    def scale(
        self,
        stamp: int,
        error: Array,
        confidence: float,
        speeds: Array | None,
        known: float,
        between: Array,
    ) -> ScaledErrors:
        """Scale the errors (n_axes,) of a sample; see `ContactDetector.add`.

        known, between: by which sizes grow, see `ErrorStatistics.spread`.
        """
        classes = self.sizes.classify(stamp, speeds)
        n = len(error)
        scaled, deviations = np.empty(n), np.empty(n + 1)
        turning = np.empty(n + 1, dtype=np.intp)
        spread, first = self.sizes.spread(known, between), self.sizes.first_reversal
        _deviate(error, spread, self._white, classes, first, scaled, deviations, turning)
        self.scaled, self.spread = scaled, spread
        return ScaledErrors(stamp, error, confidence, classes, scaled, deviations, turning)

    def test(self, usual: ScaledErrors, threshold: float, *, accumulate: bool) -> bool:
        """Compare a scaled sample with the limits; whether a contact begins.

        accumulate: whether one may, and samples add up.

        What adds up is a cumulative sum of what is beyond `COUNTED_SHARE`, or `COUNTED_TOGETHER`
        (Page 1954, Continuous inspection schemes): a limit that is just reached must be so for the
        time of the test, a larger deviation for less. A jerk that the model has some milliseconds
        late is over before. Samples that are further apart are tested one by one.
        """
        ahead, self._at = usual.stamp - self._at, usual.stamp
        limit, n, tested = self._above * threshold or math.inf, len(self._white), threshold > 0.0
        if not accumulate or self._seen < MIN_EXPECTED_S:
            part = -1.0
        else:
            part = min(max(ahead, 0) * 1e-9 / self._test_time, 1.0)
        together = as_rare(limit, n)
        # Noise exceeds that share of all together as rarely as `END_SHARE` of an axis' own limit.
        end = as_rare(END_SHARE * limit, n) / together if tested else END_SHARE
        found = usual.deviations, usual.turning, self._usual, limit, together, end
        self.axis, self.limit, large, anew, begins = _compare(*found, tested, part, self._sums)
        self.deviation = float(usual.deviations[self.axis])
        self.share = self.deviation / self.limit if tested else 0.0
        if self.share > SHORT_SHARE:
            self.last_beyond = usual.stamp
        if large:
            self.last_large = usual.stamp
        if anew:
            self.since = usual.stamp
        return begins

    def skip(self, stamp: int) -> None:
        """Pass over a sample whose errors are usual, as the last one showed."""
        self._at, self.share = stamp, 0.0
        self._sums[:] = 0.0

    def begin(self) -> None:
        """A contact begins: what is large from now on may be a short error's peak."""
        self._peak = np.zeros_like(self._usual)
        self.sizes.drop_recent()

    def raise_peak(self, usual: ScaledErrors) -> None:
        """Note a sample of a contact."""
        now = usual.turning, self._each
        self._peak[now] = np.maximum(self._peak[now], usual.deviations)

    def keep_peak(self, threshold: float) -> None:
        """Take a contact that was over too soon to be a push for an error that may recur."""
        peak = np.minimum(self._peak, SHORT_GROWTH * self.limits(threshold) / USUAL_FACTOR)
        self._usual = np.maximum(self._usual, peak)

    def count(self, usual: ScaledErrors) -> float:
        """Take a sample's errors for usual ones; returns the seconds since the last, 1 at most."""
        first = self._seen < FIRST_S
        ahead = self.sizes.count(usual, math.inf if first else CLIPPED)
        self._seen += ahead
        if self._seen <= 0.5 * FIRST_S:  # too few are known to say what is large
            growth = 0.0
        else:
            growth = math.inf if first else 1.0 + GROWTH * ahead
        kept = math.exp(-ahead / LARGEST_HORIZON_S)
        found = usual.deviations, usual.turning, usual.stamp
        _grow(self._usual, *found, *self._peaks, self._peaks_last, kept, growth)
        share = 1.0 - math.exp(-ahead / USUAL_HORIZON_S)
        _correlate(usual.scaled, share, self._correlation)
        self._whitened += ahead
        if self._whitened > WHITEN_EVERY_S:
            self._whiten()
        return ahead

    def _whiten(self) -> None:
        self._whitened = 0.0
        scale = 1.0 / np.sqrt(np.maximum(np.diag(self._correlation), 1e-12))
        correlation = (1.0 - DECORRELATION_SHARE) * scale[:, None] * self._correlation * scale
        np.fill_diagonal(correlation, 1.0)
        self._white = np.linalg.inv(np.linalg.cholesky(correlation))

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        sizes = {f"sizes.{name}": value for name, value in self.sizes.state().items()}
        usual = {
            "usual": np.array([*self._usual.ravel(), self._seen, self._whitened]),
            "correlation": self._correlation.copy(),
            "white": self._white.copy(),
        }
        return sizes | usual

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`. Raises ValueError where it has another number of axes."""
        self.reset()
        if state["correlation"].shape != self._correlation.shape:
            raise ValueError("the usual errors that were saved are of another number of axes")
        self.sizes.restore(sub_state(state, "sizes."))
        self._usual = state["usual"][:-2].reshape(2, len(self._each)).copy()
        self._seen, self._whitened = state["usual"][-2:].tolist()
        self._correlation, self._white = state["correlation"].copy(), state["white"].copy()


@compiled_in_turn
def _deviate(
    error: Array,
    spread: Array,
    white: Array,
    classes: Indices,
    first: int,
    scaled: Array,
    deviations: Array,
    turning: Indices,
) -> None:
    """Errors in standard deviations, their sizes, and last the length of all, whitened.

    `turning` is filled with whether classes are of reversals, from `first` on; that of all is that
    of the largest deviation.
    """
    n, total, largest = error.size, 0.0, -1.0
    for j in range(n):
        scaled[j] = 0.0 if math.isnan(error[j]) else error[j] / spread[j]
        deviations[j] = abs(scaled[j])
        turning[j] = classes[j] >= first
        if deviations[j] > largest:
            largest, turning[n] = deviations[j], turning[j]
    for i in range(n):
        value = 0.0
        for j in range(i + 1):
            value += white[i, j] * scaled[j]
        total += value * value
    deviations[n] = math.sqrt(total)


@compiled_in_turn
def _correlate(scaled: Array, share: float, correlation: Array) -> None:
    """Let the correlation (n, n) follow errors, at most `CLIPPED` each, by a share."""
    for i in range(scaled.size):
        first = min(max(scaled[i], -CLIPPED), CLIPPED)
        for j in range(scaled.size):
            product = first * min(max(scaled[j], -CLIPPED), CLIPPED)
            correlation[i, j] += share * (product - correlation[i, j])


@compiled_in_turn
def _grow(
    usual: Array,
    deviations: Array,
    turning: Indices,
    stamp: int,
    since: Indices,
    height: Array,
    lasts: float,
    kept: float,
    growth: float,
) -> None:
    """Let the largest usual deviations (2, n + 1) become what they are with a sample's.

    since, height, lasts : of peaks in reversals, see `DeviationTest`.
    kept : of them by the time that has passed. growth : times which the sample raises them at most;
        infinite: to its own, in both rows, since one of them may not have been met.
    """
    free = growth == math.inf
    for j in range(deviations.size):
        large, begun, peak = deviations[j] > PEAK_STDS, since[j] > 0, 0.0
        if large:
            since[j] = since[j] if begun else stamp
            height[j] = max(height[j], deviations[j] * turning[j])
        else:
            if begun and stamp - since[j] <= lasts:
                peak = height[j]  # it ends
            since[j], height[j] = 0, 0.0
        for row in range(len(usual)):
            value = kept * usual[row, j]
            if free or row == turning[j]:
                most = deviations[j] if free else min(deviations[j], growth * usual[row, j])
                value = max(value, most)
            if row == 1 and not free:
                value = max(value, min(peak, SHORT_GROWTH * usual[1, j]))
            usual[row, j] = value


@compiled_in_turn
def _compare(
    deviations: Array,
    turning: Indices,
    usual: Array,
    limit: float,
    together: float,
    end: float,
    tested: bool,
    part: float,
    sums: Array,
) -> tuple[int, float, bool, bool, bool]:
    """See `DeviationTest.test`.

    limit, together : the least limit of an axis, and that of all together. end : share of the
        latter's limit, below which a contact ends.
    part : of the test's time, for which the sample counts; negative: nothing adds up.
    Returns the axis that is nearest to its limit, that limit, 0 where nothing is tested, whether
    any is too large for the end of a contact, whether `sums` began anew, and whether a contact
    begins.
    """
    axis, largest, large, anew, begins = 0, -1.0, False, True, False
    nearest, last = 0.0, deviations.size - 1
    for j in range(deviations.size):
        anew = anew and sums[j] == 0.0
    anew = part >= 0.0 and (anew or part == 1.0)
    for j in range(deviations.size):
        own = max(USUAL_FACTOR * usual[turning[j], j], together if j == last else limit)
        counted = COUNTED_TOGETHER if j == last else COUNTED_SHARE
        ratio = deviations[j] / own
        size = ratio if tested else deviations[j]
        if size > largest:
            axis, largest, nearest = j, size, own
        large = large or ratio > (end if j == last else END_SHARE)
        before = 0.0 if anew or part < 0.0 else sums[j]
        sums[j] = max(before + max(part, 0.0) * (ratio - counted) / (1.0 - counted), 0.0)
        begins = begins or (part >= 0.0 and sums[j] >= 1.0)
    return axis, nearest if tested else 0.0, large and largest > END_SHARE, anew, begins


@lru_cache
def as_rare(limit: float, n: int) -> float:
    """The length that n independent normal numbers of unit variance exceed as rarely as one of them
    exceeds `limit` in size."""
    finite = min(limit, MAX_LIMIT)
    return float(np.sqrt(chdtri(n, 2.0 * ndtr(-finite)))) + limit - finite
