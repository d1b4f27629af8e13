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
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, ndtr

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.jit import compiled_in_turn
from semiparam_dynamics.storage import sub_state

SUSPICION_SHARE = 0.75  # of the threshold, above which a contact may be beginning
TEST_TIME_S = 0.01  # for which a deviation of just the threshold must last to be a contact
COUNTED_SHARE = 0.85  # of the threshold, beyond which a deviation counts for one
END_SHARE = 0.5  # of the threshold, below which a contact ends
END_TIME_S = 0.3  # for which the deviation must stay below that
USUAL_HORIZON_S = 120.0  # over which the sizes of usual errors are forgotten
LARGEST_HORIZON_S = 600.0  # and the largest deviations
PAUSE, RESUMING = 500_000_000, 200_000_000  # ns without samples, and for which it shows
USUAL_STEP = 8_000_000  # ns at least between errors that are counted
USUAL_DELAY_S = 1.0  # after which errors without a contact count as usual
USUAL_FACTOR = 1.3  # times the largest usual deviation is no longer usual
FIRST_S = 10.0  # of errors, that count whatever their size
GROWTH = 0.1  # 1/s, by which the largest usual deviation grows at most after that
SHORT_S = 0.06  # what is over sooner is no push, but an error that may recur
SHORT_GROWTH = 1.5  # by which such a one raises the largest usual deviation at most
UNKNOWN_MOTION_FACTOR = 3.0  # of the standard deviation in motion that isn't known
NEW_SHARE = 2.0  # times the usual share that isn't known, from which on motion is new
NEW_MEAN_S = 0.5  # over which that share is averaged
CLIPPED = 4.0  # standard deviations that an error counts for at most, after `FIRST_S`
LEAST = 0.005  # of an output's scale, that a standard deviation is at least
MAX_LIMIT = 30.0  # beyond it, probabilities are too small to be numbers
# Classes of speed, between these (rad/s or m/s), of which errors have their own sizes.
SPEEDS = (0.01, 0.03, 0.06, 0.12, 0.25)
RECOVERY = 1.0  # rad/s^2 or m/s^2, by which a joint that turned round counts as faster again
NEIGHBOUR = 2.0  # of the speed of a joint beside, that counts as well
# Classes of the time, up to these (s), since a joint, or one beside it, was in the slowest one.
SLOW_S = (0.0, 0.025, 0.06)
CLASS_PRIOR = 20.0  # samples of all classes that count in each
UNCORRELATED = 0.1  # share of the correlation that is taken off
WHITEN_EVERY_S = 0.2
MEAN_S = 0.1  # over which means of errors have a covariance of their own
MEANS_PER_AXIS = 5.0  # of them, before their covariance is told


class ContactDetector:
    """Tests each sample, so that no contact waits for a block to be complete.

    Deviations are in standard deviations of the errors of the last minutes (`ErrorSizes`). These
    have longer tails than a normal distribution, depending on the joint; so a contact must also
    exceed the largest usual deviation of its axis. A push moves several joints, each perhaps by
    little, and not as usual errors do: so the length of all deviations, whitened by their usual
    correlation, counts like a further axis, with a threshold that noise exceeds as rarely.

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
        self._usual: Array = np.zeros(n_axes + 1)  # of each axis, and of all together
        self._limits: Array = self._usual  # of a threshold and these usual deviations
        self._limits_of: tuple[float, Array] = -1.0, self._usual
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
        self.since = self._last_large = 0
        self.deviation = 0.0
        self._peak: Array = np.zeros_like(self._usual)  # during a contact
        self._sums: Array = np.zeros_like(self._usual)  # of each axis, and of all: 1 is a contact
        self._counted_from = 0  # ns, stamp of the first sample in them
        self._pending.clear()

    @property
    def limits(self) -> Array:
        """(n_axes + 1,) of each axis and of all together, in standard deviations.

        Infinite where contacts aren't detected.
        """
        of, known = (self.config.contact, self._usual), self._limits_of
        if of[0] != known[0] or of[1] is not known[1]:
            limits: Array = USUAL_FACTOR * self._usual
            limit, n = self.config.contact or np.inf, len(self._white)
            np.maximum(limits[:n], limit, out=limits[:n])
            limits[n] = max(limits[n], as_rare(limit, n))
            self._limits, self._limits_of = limits, of
        return self._limits

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
        if self.deviation > limit * END_SHARE:
            self._last_large = stamp
        ended = (stamp - self._last_large) * 1e-9 >= END_TIME_S
        if self.active:
            np.maximum(self._peak, deviations, out=self._peak)
            if ended or limit <= 0.0:
                self.active = False
                if (self._last_large - self.since) * 1e-9 < SHORT_S:
                    np.minimum(self._peak, SHORT_GROWTH * limits / USUAL_FACTOR, out=self._peak)
                    self._usual = np.maximum(self._usual, self._peak)
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
            self.active, self.since, self._peak = True, self._counted_from, deviations
            self._pending.clear()
            return "begins"
        self._wait(usual)
        return ""

    def _accumulate(self, stamp: int, since: int, ratios: Array) -> bool:
        """Add a sample's deviations, in shares of the limits; whether a contact begins.

        stamp, since : ns, and ns after the last sample.

        A cumulative sum of what is beyond `COUNTED_SHARE` (Page 1954, Continuous inspection
        schemes): a limit that is just reached must be so for `TEST_TIME_S`, a larger deviation for
        less. A jerk that the model has some milliseconds late is over before. Samples that are
        further apart are tested one by one.
        """
        share = min(max(since, 0) * 1e-9 / TEST_TIME_S, 1.0)
        if share == 1.0 or not self._sums.any():
            self._counted_from = stamp
            self._sums = np.zeros_like(ratios)
        beyond = (ratios - COUNTED_SHARE) / (1.0 - COUNTED_SHARE)
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
        self._at = stamp
        return stamp - self._resumed < RESUMING

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        sizes = {f"sizes.{name}": value for name, value in self.sizes.state().items()}
        usual = {
            "usual": np.array([*self._usual, self._seen, self._whitened]),
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
        self._usual = state["usual"][:-2].copy()
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
        _deviate(error, self.spread(confidence), self._white, scaled, deviations)
        self.scaled = scaled
        return Usual(stamp, error, confidence, classes, scaled, deviations)

    def _wait(self, usual: Usual) -> None:
        # Errors behind a low-pass hardly change from one to the next: the largest of some counts.
        if self._pending and 0 <= usual.stamp - self._pending[-1].stamp < USUAL_STEP:
            np.maximum(
                self._pending[-1].deviations, usual.deviations, out=self._pending[-1].deviations
            )
            return
        self._pending.append(usual)
        while usual.stamp - self._pending[0].stamp > USUAL_DELAY_S * 1e9:
            self._count(self._pending.popleft())

    def _count(self, usual: Usual) -> None:
        first = self._seen < FIRST_S
        ahead = self.sizes.count(usual, math.inf if first else CLIPPED)
        self._means.count(usual.stamp, usual.error)
        self._novelty.count(ahead, usual.confidence)
        self._seen += ahead
        grown = usual.deviations
        if not first:
            grown = np.minimum(grown, (1.0 + GROWTH * ahead) * self._usual)
        if self._seen > 0.5 * FIRST_S:  # before that too few are known to say what is large
            self._usual = np.maximum(math.exp(-ahead / LARGEST_HORIZON_S) * self._usual, grown)
        share = 1.0 - math.exp(-ahead / USUAL_HORIZON_S)
        clipped = np.clip(usual.scaled, -CLIPPED, CLIPPED)
        self._correlation += share * (np.outer(clipped, clipped) - self._correlation)
        self._whitened += ahead
        if self._whitened > WHITEN_EVERY_S:
            self._whiten()

    def _whiten(self) -> None:
        self._whitened = 0.0
        scale = 1.0 / np.sqrt(np.maximum(np.diag(self._correlation), 1e-12))
        correlation = (1.0 - UNCORRELATED) * scale[:, None] * self._correlation * scale
        np.fill_diagonal(correlation, 1.0)
        self._white = np.linalg.inv(np.linalg.cholesky(correlation))


class Usual(NamedTuple):
    """A sample's errors, which may turn out to be usual."""

    stamp: int  # ns
    error: Array  # (n_axes,)
    confidence: float
    classes: Indices  # (n_axes,)
    scaled: Array  # (n_axes,) in standard deviations, 0 where not measured
    deviations: Array  # (n_axes + 1,) their sizes, and that of all together


class ErrorSizes:
    """Usual errors over the last minutes, root mean square.

    Of each axis, and with `by_speed` of each class of its joint's speed: where a joint turns round,
    friction changes its sign within milliseconds, and errors are larger. The low-pass shows that
    for some 50 ms, in which the joint may be as fast as others that never stopped; so the time
    since it was slow has classes of its own (`SLOW_S`), and others where a joint beside it was, to
    which the jerk passes on. After that, one that accelerates counts as slower than it is.
    """

    def __init__(self, least: Array, by_speed: bool = False) -> None:
        n_axes = len(least)
        self._least = least
        n_classes = len(SPEEDS) + 1 + 2 * len(SLOW_S) if by_speed else 1
        self._by_speed = by_speed
        # Sums of squares and weights of the axes; the last row is of all classes.
        self._squares: Array = np.zeros((n_classes + 1, n_axes))
        self._weights: Array = np.zeros((n_classes + 1, n_axes))
        self._last = self._at = 0  # ns, stamps of the last error counted, and looked at
        self._speeds: Array = np.full(n_axes, np.inf)
        self._since: Array = np.full(n_axes, np.inf)  # s since a joint was slow
        self._classes: Indices = np.zeros(n_axes, dtype=np.intp)

    def look(self, stamp: int, speeds: Array | None) -> Indices:
        """Choose each axis' class at its joint's speed (n_axes,); None: not known."""
        if self._by_speed and speeds is not None:
            ahead = max((stamp - self._at) * 1e-9, 0.0)
            self._at = stamp
            classes = np.empty_like(self._classes)
            _classify(speeds, ahead, self._speeds, self._since, classes)
            self._classes = classes
        return self._classes

    def spread(self, confidence: float) -> Array:
        """(n_axes,) standard deviations in the classes looked at; infinite where none is known.

        Where the motion isn't known (`confidence` 0), errors last as long as it stays there, and
        the standard deviations grow.
        """
        spread = np.empty(len(self._classes))
        unknown = UNKNOWN_MOTION_FACTOR + confidence * (1.0 - UNKNOWN_MOTION_FACTOR)
        _fill_spread(self._squares, self._weights, self._classes, unknown, self._least, spread)
        return spread

    def count(self, usual: Usual, most: float) -> float:
        """Count a sample's errors, of at most so many standard deviations each.

        Returns the seconds since the last ones, 0 for the first, 1 at most.
        """
        ahead = min(max((usual.stamp - self._last) * 1e-9, 0.0), 1.0) if self._last else 0.0
        self._last = usual.stamp
        arrays = self._squares, self._weights, usual.error, usual.scaled, usual.classes
        _count(*arrays, math.exp(-ahead / USUAL_HORIZON_S), usual.confidence, most)
        return ahead

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {"squares": self._squares.copy(), "weights": self._weights.copy()}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`; from one of an earlier version, of other classes, anew."""
        if state["squares"].shape != self._squares.shape:
            return
        self._squares, self._weights = state["squares"].copy(), state["weights"].copy()
        self._last = 0


class Novelty:
    """How new the motion is, in [0, 1], and was within the last seconds.

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

    def look(self, stamp: int, confidence: float, *, grows: bool = True) -> None:
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
        self._total += np.where(np.isnan(error), 0.0, error)
        self._number += ~np.isnan(error)
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
        """(n_axes, n_axes); None before as many means are known as tell one."""
        weights = self.sums[-1]
        if weights.max() < MEANS_PER_AXIS * len(weights):
            return None
        roots = np.sqrt(np.maximum(weights, 1.0))
        found: Array = self.sums[:-1] / np.outer(roots, roots) + self._least
        return found


@compiled_in_turn
def _deviate(error: Array, spread: Array, white: Array, scaled: Array, deviations: Array) -> None:
    """Errors in standard deviations, their sizes, and last the length of all, whitened."""
    n, total = error.size, 0.0
    for j in range(n):
        scaled[j] = 0.0 if math.isnan(error[j]) else error[j] / spread[j]
        deviations[j] = abs(scaled[j])
    for i in range(n):
        value = 0.0
        for j in range(i + 1):
            value += white[i, j] * scaled[j]
        total += value * value
    deviations[n] = math.sqrt(total)


@compiled_in_turn
def _classify(speeds: Array, ahead: float, slowest: Array, since: Array, classes: Indices) -> None:
    """See `ErrorSizes`. `slowest` (n_axes,) are the speeds that count, `since` (n_axes,) the times
    since each joint was in the slowest class; both are kept from call to call."""
    n = speeds.size
    for j in range(n):
        slowest[j] = min(abs(speeds[j]), slowest[j] + RECOVERY * ahead)
        since[j] = since[j] + ahead if abs(speeds[j]) > SPEEDS[0] else 0.0
    for j in range(n):
        speed, beside = slowest[j], np.inf
        if j > 0:
            speed = min(speed, NEIGHBOUR * slowest[j - 1])
            beside = min(beside, since[j - 1])
        if j < n - 1:
            speed = min(speed, NEIGHBOUR * slowest[j + 1])
            beside = min(beside, since[j + 1])
        first, lasts = len(SPEEDS) + 1, since[j]
        if lasts > SLOW_S[-1]:
            first, lasts = first + len(SLOW_S), beside
        if lasts > SLOW_S[-1]:
            first, lasts = 0, 0.0
            for edge in SPEEDS:
                first += speed > edge
        classes[j] = first
        for edge in SLOW_S:
            classes[j] += lasts > edge


@compiled_in_turn
def _fill_spread(
    squares: Array,
    weights: Array,
    classes: Indices,
    unknown: float,
    least: Array,
    spread: Array,
) -> None:
    """See `ErrorSizes.spread`. A class of which little is known is taken for all together."""
    every = len(squares) - 1
    for j in range(spread.size):
        spread[j] = np.inf
        if weights[every, j] > 0.0:
            c, mean = classes[j], squares[every, j] / weights[every, j]
            mean = (squares[c, j] + CLASS_PRIOR * mean) / (weights[c, j] + CLASS_PRIOR)
            spread[j] = max(math.sqrt(mean) * unknown, least[j])


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


@lru_cache
def as_rare(limit: float, n: int) -> float:
    """The length that n independent normal numbers of unit variance exceed as rarely as one of them
    exceeds `limit` in size."""
    finite = min(limit, MAX_LIMIT)
    return float(np.sqrt(chdtri(n, 2.0 * ndtr(-finite)))) + limit - finite
