"""Contacts: external efforts or wrenches far beyond the errors that are usual.

They are tested before the narrow low-pass (`Sample.fast`), behind the wide one alone, where a push
is seen within some milliseconds. What is measured minus predicted there is what a generalized
momentum observer of that bandwidth gives (De Luca, Albu-Schaeffer, Haddadin and Hirzinger 2006,
Collision detection and safe reaction with the DLR-III lightweight manipulator arm, section III): a
filter of both sides of the equation, so that no acceleration is needed that the filter does not
give. Errors are larger there, where a joint turns round above all: friction changes its sign
within milliseconds.
"""

from __future__ import annotations

import math
from collections import deque
from functools import lru_cache

import numpy as np
from scipy.special import chdtri, ndtr

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.changes.error_sizes import (
    CLIPPED,
    FIRST_S,
    USUAL_HORIZON_S,
    ErrorSizes,
    MeanErrors,
    Novelty,
    Usual,
)
from semiparam_dynamics.jit import compiled_in_turn
from semiparam_dynamics.storage import sub_state

SUSPICION_SHARE = 0.75  # of the threshold, above which a contact may be beginning
TEST_TIME_S = 0.01  # for which a deviation of just the threshold must last to be a contact
COUNTED_SHARE = 0.65  # of the threshold, beyond which a deviation counts for one
COUNTED_TOGETHER = 0.8  # the same of all together, in which every axis' tails add up
END_SHARE = 0.5  # of an axis' threshold, below which a contact ends
END_TIME_S = 0.3  # for which the deviation must stay below that
LARGEST_HORIZON_S = 600.0  # and the largest deviations
PAUSE, RESUMING = 500_000_000, 200_000_000  # ns without samples, and for which it shows
USUAL_STEP = 8_000_000  # ns at least between errors that are counted
USUAL_DELAY_S = 1.0  # after which errors without a contact count as usual
USUAL_FACTOR = 1.3  # times the largest usual deviation is no longer usual
GROWTH = 0.1  # 1/s, by which the largest usual deviation grows at most after that
SHORT_S = 0.06  # what is over sooner is no push, but an error that may recur
REVERSAL_S = 0.12  # the same of what was no contact where a joint turned round: two peaks
SHORT_SHARE = 0.85  # of the threshold, up to which it is over
SHORT_GROWTH = 1.5  # by which such a one raises the largest usual deviation at most
PEAK = 3.0  # standard deviations, beyond which a deviation is part of a peak
LEAST = 0.005  # of an output's scale, that a standard deviation is at least
MAX_LIMIT = 30.0  # beyond it, probabilities are too small to be numbers
UNCORRELATED = 0.1  # share of the correlation that is taken off
WHITEN_EVERY_S = 0.2


class ContactDetector:
    """Tests each sample, so that no contact waits for a block to be complete.

    Deviations are in standard deviations of the errors of the last minutes (`ErrorSizes`). These
    have longer tails than a normal distribution, depending on the joint; so a contact must also
    exceed the largest usual deviation of its axis, of reversals apart from that of other motion. A
    push moves several joints, each perhaps by little, and not as usual errors do: so the length of
    all deviations, whitened by their usual correlation, counts like a further axis, with a
    threshold that noise exceeds as rarely.

    Parameters
    ----------
    config: `contact` and `contact_longest` of it.
    scales: (n_axes,) of the outputs, N m or N: a small share of them is no error worth telling.
    by_speed: errors have their sizes by their joint's speed.

    Attributes
    ----------
    config: may be changed at any time.
    active: whether there is a contact.
    since: stamp of its first sample, ns.
    given_up: the contact lasted longer than `config.contact_longest`: the deviation is the robot's
        own until the errors are small again.
    deviation: the last sample's external effort, in such standard deviations: of the axis, or of
        all together, whichever is nearest to a contact.
    scaled: (n_axes,) the same of each axis, with its sign.
    """

    def __init__(self, config: ChangesConfig, scales: Array, *, by_speed: bool = False) -> None:
        n_axes = len(scales)
        self.config = config
        self.sizes = ErrorSizes(LEAST * scales, by_speed)
        self._correlation: Array = np.eye(n_axes)
        self._white: Array = np.eye(n_axes)
        self._whitened = 0.0  # s since `_white` was made anew
        self._seen = 0.0  # s of usual errors
        self.scaled: Array = np.zeros(n_axes)
        self._means = MeanErrors(LEAST * scales)
        self._novelty = Novelty()
        self._each = np.arange(n_axes + 1)  # axis, and last all together
        self._counted = np.append(np.full(n_axes, COUNTED_SHARE), COUNTED_TOGETHER)
        # The largest deviations of each, in other motion and, in the second row, in reversals.
        self._usual: Array = np.zeros((2, n_axes + 1))
        self._limits: Array = self._usual  # of a threshold and these usual deviations
        self._limits_of: tuple[float, Array] = -1.0, self._usual
        self._turning: Indices = np.zeros(n_axes + 1, dtype=np.intp)  # row of the last sample
        self._peaks = ReversalPeaks(n_axes + 1)
        self._axis = 0  # nearest to a contact
        self._limit = 0.0  # that the last sample was compared with there
        self._pending: deque[Usual] = deque()
        self._at = self._resumed = (
            0  # ns, stamps of the last sample, and of the first after a pause
        )
        self.reset()

    def reset(self) -> None:
        """End any contact, as after a pause or when another cause is found."""
        self.active = self.given_up = False
        self.since = self._last_large = self._last_beyond = 0
        self.deviation = 0.0
        self._peak: Array = np.zeros_like(self._usual)  # during a contact
        self._sums: Array = np.zeros(len(self._each))  # of each axis, and of all: 1 is a contact
        self._counted_from = 0  # ns, stamp of the first sample in them
        self._pending.clear()
        self.sizes.drop_recent()

    @property
    def limits(self) -> Array:
        """(n_axes + 1,) of each axis and of all together, in standard deviations.

        Those of the last sample's motion; infinite where contacts aren't detected.
        """
        of, known = (self.config.contact, self._usual), self._limits_of
        if of[0] != known[0] or of[1] is not known[1]:
            limits: Array = USUAL_FACTOR * self._usual
            limit, n = self.config.contact or np.inf, len(self._white)
            np.maximum(limits[:, :n], limit, out=limits[:, :n])
            np.maximum(limits[:, n], as_rare(limit, n), out=limits[:, n])
            self._limits, self._limits_of = limits, of
        chosen: Array = self._limits[self._turning, self._each]
        return chosen

    @property
    def threshold(self) -> float:
        """The limit of the deviation; 0 where contacts aren't detected."""
        return float(self.limits[self._axis]) if self.config.contact > 0.0 else 0.0

    @property
    def suspicious(self) -> bool:
        """Whether the last sample may be the beginning of a contact."""
        return 0.0 < self._limit * SUSPICION_SHARE < self.deviation

    def spread(self, confidence: float) -> Array:
        """(n_axes,) standard deviations of the last sample's errors at a confidence.

        In motion that is new, and for a while after, as at a lower one; see `Novelty`.
        """
        return self.sizes.spread(min(confidence, 1.0 - self._novelty.level))

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
        longest: float = math.inf,
    ) -> str:
        """Test the errors (n_axes,) of a sample, `stamp` in ns.

        error: NaN on an axis that was not measured. confidence: of the prediction, 0 to 1.
        speeds: (n_axes,) of the axes' joints, in rad/s or m/s.
        longest: s after which a contact is given up, if that is less than configured.
        Returns "begins", "over" or "given up" where that changes, else an empty text.
        """
        usual = self._look(stamp, error, confidence, speeds)
        self._turning = usual.turning
        deviations, limits = usual.deviations, self.limits
        enabled = self.config.contact > 0.0
        ratios = deviations / limits
        since, resumes, begins = stamp - self._at, self._resumes(stamp), False
        if resumes or self.active or self.given_up:
            self._sums = np.zeros_like(ratios)
        else:
            begins = self._accumulate(stamp, since, ratios)
        self._axis = int(np.argmax(ratios if enabled else deviations))
        self.deviation = float(deviations[self._axis])
        self._limit = limit = float(limits[self._axis]) if enabled else 0.0
        largest = self.deviation / limit if limit > 0.0 else 0.0
        if largest > END_SHARE and (ratios > end_shares(self.config.contact, len(error))).any():
            self._last_large = stamp
        if largest > SHORT_SHARE:
            self._last_beyond = stamp
        ended = (stamp - self._last_large) * 1e-9 >= END_TIME_S
        if self.active:
            now = usual.turning, self._each
            self._peak[now] = np.maximum(self._peak[now], deviations)
            if ended or limit <= 0.0:
                self.active = False
                if (self._last_beyond - self.since) * 1e-9 < SHORT_S:
                    peak = np.minimum(self._peak, SHORT_GROWTH * self._limits / USUAL_FACTOR)
                    self._usual = np.maximum(self._usual, peak)
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
            self.active, self.since = True, self._counted_from
            self._peak = np.zeros_like(self._usual)
            self._peak[usual.turning, self._each] = deviations
            self._pending.clear()
            self.sizes.drop_recent()
            return "begins"
        self._wait(usual)
        return ""

    def _accumulate(self, stamp: int, since: int, ratios: Array) -> bool:
        """Add a sample's deviations, in shares of the limits; whether a contact begins.

        stamp, since : ns, and ns after the last sample.

        A cumulative sum of what is beyond `COUNTED_SHARE`, or `COUNTED_TOGETHER` (Page 1954,
        Continuous inspection schemes): a limit that is just reached must be so for `TEST_TIME_S`, a
        larger deviation for less. A jerk that the model has some milliseconds late is over before.
        Samples that are further apart are tested one by one.
        """
        share = min(max(since, 0) * 1e-9 / TEST_TIME_S, 1.0)
        if share == 1.0 or not self._sums.any():
            self._counted_from = stamp
            self._sums = np.zeros_like(ratios)
        beyond = (ratios - self._counted) / (1.0 - self._counted)
        self._sums = np.maximum(self._sums + share * beyond, 0.0)
        return bool(self._sums.max() >= 1.0)

    def observe(
        self, stamp: int, error: Array, confidence: float, speeds: Array | None = None
    ) -> None:
        """Count a sample's errors as usual, once `USUAL_DELAY_S` has passed without a contact."""
        usual = self._look(stamp, error, confidence, speeds)
        if not self._resumes(stamp):
            self._wait(usual)

    def _resumes(self, stamp: int) -> bool:
        """Whether a pause is so short ago that filters still show it."""
        if not 0 <= stamp - self._at <= PAUSE:
            self._resumed = stamp
        if stamp < self._at:  # what waits would do so until the clock is there again
            self._pending.clear()
            self.sizes.drop_recent()
        self._at = stamp
        return stamp - self._resumed < RESUMING

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        sizes = {f"sizes.{name}": value for name, value in self.sizes.state().items()}
        usual = {
            "usual": np.array([*self._usual.ravel(), self._seen, self._whitened]),
            "correlation": self._correlation,
            "white": self._white,
            "means": self._means.sums,
            "unknown": self._novelty.sums,
        }
        return sizes | {name: value.copy() for name, value in usual.items()}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`. Raises ValueError where it has another number of axes."""
        self.reset()
        if "correlation" not in state:
            return  # of an earlier version, which knew other errors
        if state["correlation"].shape != self._correlation.shape:
            raise ValueError("the usual errors that were saved are of another number of axes")
        self.sizes.restore(sub_state(state, "sizes."))
        usual = state["usual"][:-2].reshape(-1, len(self._each))  # one row in an earlier version
        self._usual = np.array(np.broadcast_to(usual, (2, len(self._each))))
        self._seen, self._whitened = state["usual"][-2:].tolist()
        self._correlation, self._white = state["correlation"].copy(), state["white"].copy()
        if "means" in state:  # an earlier version had none
            self._means.sums = state["means"].copy()
        self._novelty = Novelty()  # what is new to one model is not to another
        if "unknown" in state:  # an earlier version had none
            self._novelty.sums = state["unknown"].copy()

    def _look(self, stamp: int, error: Array, confidence: float, speeds: Array | None) -> Usual:
        classes = self.sizes.look(stamp, speeds)
        self._novelty.look(stamp, confidence, grows=not self.active)
        n = len(error)
        scaled, deviations = np.empty(n), np.empty(n + 1)
        turning = np.empty(n + 1, dtype=np.intp)
        spread, first = self.spread(confidence), self.sizes.first_reversal
        _deviate(error, spread, self._white, classes, first, scaled, deviations, turning)
        self.scaled = scaled
        return Usual(stamp, error, confidence, classes, scaled, deviations, turning)

    def _wait(self, usual: Usual) -> None:
        # Errors behind a low-pass hardly change from one to the next: the largest of some counts.
        if self._pending and 0 <= usual.stamp - self._pending[-1].stamp < USUAL_STEP:
            np.maximum(
                self._pending[-1].deviations, usual.deviations, out=self._pending[-1].deviations
            )
            return
        self._pending.append(usual)
        self.sizes.follow(usual)
        while usual.stamp - self._pending[0].stamp > USUAL_DELAY_S * 1e9:
            self._count(self._pending.popleft())

    def _count(self, usual: Usual) -> None:
        first = self._seen < FIRST_S
        ahead = self.sizes.count(usual, math.inf if first else CLIPPED)
        self._means.count(usual.stamp, usual.error)
        self._novelty.count(ahead, usual.confidence)
        self._seen += ahead
        if self._seen > 0.5 * FIRST_S:  # before that too few are known to say what is large
            self._usual = self._grown(usual, first, ahead)
        share = 1.0 - math.exp(-ahead / USUAL_HORIZON_S)
        clipped = np.clip(usual.scaled, -CLIPPED, CLIPPED)
        self._correlation += share * (np.outer(clipped, clipped) - self._correlation)
        self._whitened += ahead
        if self._whitened > WHITEN_EVERY_S:
            self._whiten()

    def _grown(self, usual: Usual, first: bool, ahead: float) -> Array:
        """The largest usual deviations with those of a sample, `ahead` s after the last one."""
        grown: Array = math.exp(-ahead / LARGEST_HORIZON_S) * self._usual
        if first:  # one of the rows may not have been met
            return np.maximum(grown, usual.deviations)
        now = usual.turning, self._each
        most = np.minimum(usual.deviations, (1.0 + GROWTH * ahead) * self._usual[now])
        grown[now] = np.maximum(grown[now], most)
        peaks = np.minimum(self._peaks.take(usual), SHORT_GROWTH * self._usual[1])
        grown[1] = np.maximum(grown[1], peaks)
        return grown

    def _whiten(self) -> None:
        self._whitened = 0.0
        scale = 1.0 / np.sqrt(np.maximum(np.diag(self._correlation), 1e-12))
        correlation = (1.0 - UNCORRELATED) * scale[:, None] * self._correlation * scale
        np.fill_diagonal(correlation, 1.0)
        self._white = np.linalg.inv(np.linalg.cholesky(correlation))


class ReversalPeaks:
    """Deviations that are large for less than `REVERSAL_S` while a joint turns round.

    The same reversal recurs, with a peak that is never the same, and what is as short is no push.
    """

    def __init__(self, n: int) -> None:
        self._since: Indices = np.zeros(n, dtype=np.int64)  # ns, stamp of its first; 0: none
        self._height: Array = np.zeros(n)  # of those in reversals

    def take(self, usual: Usual) -> Array:
        """(n,) heights of the peaks that end before this sample, 0 where none does."""
        large = usual.deviations > PEAK
        begun = self._since > 0
        if not (large.any() or begun.any()):
            return np.zeros_like(self._height)
        short = usual.stamp - self._since <= 1e9 * REVERSAL_S + USUAL_STEP
        ended = np.where(begun & ~large & short, self._height, 0.0)
        self._since = np.where(large, np.where(begun, self._since, usual.stamp), 0)
        height = np.maximum(self._height, usual.deviations * usual.turning)
        self._height = np.where(large, height, 0.0)
        return ended


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


@lru_cache
def as_rare(limit: float, n: int) -> float:
    """The length that n independent normal numbers of unit variance exceed as rarely as one of them
    exceeds `limit` in size."""
    finite = min(limit, MAX_LIMIT)
    return float(np.sqrt(chdtri(n, 2.0 * ndtr(-finite)))) + limit - finite


@lru_cache
def end_shares(contact: float, n: int) -> Array:
    """Shares of the limits of n axes and of all together, below all of which a contact ends.

    That of all is exceeded by noise as rarely as an axis' own, as its threshold is.
    """
    shares = np.full(n + 1, END_SHARE)
    if contact > 0.0:
        shares[n] = as_rare(END_SHARE * contact, n) / as_rare(contact, n)
    shares.flags.writeable = False
    return shares
