"""Contacts: external efforts or wrenches far beyond the errors that are usual.

They are tested behind the wide low-pass alone (`Sample.fast`), where a push is seen within some
milliseconds. What is measured minus predicted there is what a generalized momentum observer of that
bandwidth gives (De Luca, Albu-Schaeffer, Haddadin and Hirzinger 2006, Collision detection and safe
reaction with the DLR-III lightweight manipulator arm, section III). Errors are larger there, where
a joint turns round above all: friction changes its sign within milliseconds.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import chdtri, ndtr

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.jit import compiled_in_turn
from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.changes.usual_errors import (
    FIRST_S,
    LASTING,
    LEVEL_DELAY_S,
    LEVEL_S,
    MEANS_PER_AXIS,
    QUICK,
    SHORT_GROWTH,
    SUDDEN,
    USUAL_DELAY_S,
    USUAL_FACTOR,
    USUAL_STEP,
    WAITING,
    Errors,
    count,
    no_errors,
    scale,
    spread_of,
)

SUSPICION_SHARE = 0.75  # of the limit, above which a contact may be beginning
PRESSED_SHARE = 0.5  # of the limit, above which a contact's force is there
END_TIME_S = 0.3  # for which deviations must stay small until it is over
LASTING_END_S = 0.1  # the same of their average, which the last ones of a push are part of
PAUSE, RESUMING = 500_000_000, 200_000_000  # ns without samples, and for which it shows
FILTERED = 6.0  # samples in a low-pass' period, from which on it takes off their noise
NEW_SHARE = 2.0  # times the usual share that isn't known, from which on motion is new
NEW_MEAN_S = 0.5  # over which that share is averaged
NEW_MOTION = 0.5  # of that average, above which motion is rather unknown to the model than known
SHORT_S = 0.06  # what is over sooner is no push, but an error that may recur
MIN_EXPECTED_S = 1.0  # of usual errors, fewer of which say nothing
# Of the tests, sudden, quick and lasting. Times the threshold that is the limit: what lasts has
# longer tails. For how long a deviation of just the limit must last, and errors show longer.
ABOVE = (1.0, 7.0 / 6.0, 7.0 / 6.0)
TEST_TIME_S = (0.01, 0.005, 0.01)
LATER_S = (0.0, 0.0, 0.1)
COUNTED_SHARE = 0.65  # of the limit, beyond which a deviation counts for one
COUNTED_TOGETHER = 0.8  # the same of all together, in which every axis' tails add up
END_SHARE = 0.5  # of an axis' limit, below which a contact ends
REVERSAL_S = 0.12  # what is over sooner where a joint turned round, without a contact: two peaks
SHORT_SHARE = 0.85  # of the limit, up to which a contact is over
# Beyond, probabilities are too small to be numbers; below, all is a contact, and no share a number.
MAX_LIMIT, MIN_LIMIT = 30.0, 1e-3
QUICK_RATIO = 1.5  # of the cut-off of sharpened errors to that of the low-pass which they passed
# Standard deviations, up to which a sharpened error need not be tested: most samples are below.
QUICK_CLOSER = 2.5
# Of the average: its time constant, from when on it is one, and how often it is tested.
LASTING_S = 0.04
LASTING_AFTER = 200_000_000  # ns
LASTING_LONGEST_S = 0.02  # that a sample counts for in it, however far from the last one it is
LASTING_STEP = 10_000_000  # ns
# Between two samples nothing says when the motion changed: of their distance, a standard deviation.
BETWEEN = 12.0**-0.5
BETWEEN_S = 0.1  # over which a low-pass forgets the error that comes of it
NOTHING, BEGINS, ENDS, GIVES_UP = range(4)
TOLD = ("", "begins", "over", "given up")
TESTS = "", "quick.", "lasting."  # beginnings of their arrays' names


class ContactDetector:
    """Tests each sample's errors three times, in standard deviations of `usual_errors`.

    As they are; behind a wider low-pass (`_sharpen`), where a strong push is seen some milliseconds
    sooner and noise is larger; and their moving average, in which noise and what a reversal leaves
    mostly cancel, so that weak pushes are seen, some ten milliseconds later.

    Errors have tails longer than a normal distribution; so a contact must also exceed the largest
    usual deviation of its axis. A push moves several joints, each perhaps by little, and not as
    usual errors do: so the length of all deviations, whitened by their usual correlation, counts
    like a further axis, with a limit that noise exceeds as rarely.

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
    """

    def __init__(self, config: ChangesConfig, scales: Array, *, by_speed: bool = False) -> None:
        self.config = config
        self._errors = no_errors(scales, by_speed=by_speed)
        self._threshold = math.nan  # that limits are by
        for test, time, later in zip(self._errors.tests, TEST_TIME_S, LATER_S, strict=True):
            test["test_time"], test["lasts"] = time, 1e9 * (REVERSAL_S + later) + USUAL_STEP
        self.reset()

    def reset(self) -> None:
        """End any contact, as after a pause or when another cause is found."""
        self.active, self.since = False, 0
        for name in ("given_up", "since", "largest", "average_since", "averaged", "waiting"):
            self._errors.now[name] = 0
        for k in range(3):
            _reset(self._errors, k)

    @property
    def largest(self) -> float:
        """Share of its limit that a sample of the contact had at most."""
        return float(self._errors.now["largest"][0])

    @property
    def given_up(self) -> bool:
        """True if the contact lasted longer than `config.contact_longest`.

        The deviation is the robot's own until the errors are small again.
        """
        return bool(self._errors.now["given_up"][0])

    @property
    def nearest(self) -> Any:
        """The test that is nearest to a contact, a record (`usual_errors.TEST`)."""
        tests = self._errors.tests
        return tests[tests["share"].argmax()]

    @property
    def deviation(self) -> float:
        """External part of the last sample there, in standard deviations of expected errors."""
        return float(self.nearest["deviation"])

    @property
    def threshold(self) -> float:
        """The limit of the deviation; 0 where contacts aren't detected."""
        return float(self.nearest["limit"])

    @property
    def suspicious(self) -> bool:
        """Return whether the last sample may be the beginning of a contact.

        Sharpened errors do not count: they come near their limit often, and only for moments.
        """
        shares = self._errors.tests["share"]
        return bool(max(shares[SUDDEN], shares[LASTING]) > SUSPICION_SHARE)

    @property
    def in_new_motion(self) -> bool:
        """Return whether the last motion was new; ask at once, a push may lead to new motion."""
        return bool(self._errors.now["lacks"][0] > NEW_MOTION)

    @property
    def pressed(self) -> bool:
        """Return whether the last sample has the contact's force: the average has it for longer."""
        shares = self._errors.tests["share"]
        return bool((shares[SUDDEN] if self.largest > 1.0 else shares.max()) > PRESSED_SHARE)

    @property
    def scaled(self) -> Array:
        """(n_axes,) the last sample's errors, in standard deviations, with their sign."""
        s = self._errors
        found: Array = s.parts["scaled"][s.now["slot"][0], SUDDEN, :-1].copy()
        return found

    def spread(self, confidence: float) -> Array:
        """(n_axes,) standard deviations of the last sample's errors at a confidence.

        In motion that is new, and for a while after, as at a lower one; see `_prepare`.
        """
        s = self._errors
        known = min(float(confidence), 1.0 - float(s.now["novelty"][0]))
        return np.array([spread_of(s, SUDDEN, j, known) for j in range(len(s.signals))])

    def mean_covariance(self) -> Array:
        """(n_axes, n_axes) of the means of usual errors over `MEAN_S`.

        Errors where a joint turns round mostly cancel within that time, so that it is much smaller
        than the squares of :meth:`spread`, which is taken while no means are known.
        """
        products, numbers = self._errors.means[:-1], self._errors.means[-1]
        if numbers.max() < MEANS_PER_AXIS * len(numbers):
            return np.diag(self.spread(1.0) ** 2)
        roots = np.sqrt(np.maximum(numbers, 1.0))
        least = np.diag(self._errors.signals["least"] ** 2)
        found: Array = products / np.outer(roots, roots) + least
        return found

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
        speeds: (n_axes,) of the axes' joints, in rad/s or m/s. expected: (n_axes,) what was
            predicted. Without them sizes do not depend on speeds, nor on how predictions change.
        longest: s after which a contact is given up, if that is less than configured.
        cutoff: Hz, of the low-pass that the errors passed; 0: they are not to be sharpened.
        tested: whether a contact may begin or end; in any case the errors count as usual later.
        Returns "begins", "over" or "given up" where that changes, else an empty text.
        """
        config, signals = self.config, self._errors.signals
        if self._threshold != config.contact:
            self._limit(config.contact)
        known = speeds is not None, expected is not None
        signals["error"] = error
        if known[0]:
            signals["speed"] = speeds
        if known[1]:
            signals["predicted"] = expected
        of = stamp, float(confidence), float(cutoff), float(min(longest, config.contact_longest))
        said = _step(self._errors, *of, *known, tested, self.active)
        if said:
            self.active = said == BEGINS
            self.since = int(self._errors.now["since"][0])
        return TOLD[said]

    def _limit(self, threshold: float) -> None:
        """Have limits by a threshold, in standard deviations; infinite where that is 0."""
        self._threshold, n = threshold, len(self._errors.signals)
        for test, above in zip(self._errors.tests, ABOVE, strict=True):
            limit = max(above * threshold, MIN_LIMIT) if threshold > 0.0 else math.inf
            test["least"], test["together"] = limit, as_rare(limit, n)
            # Noise exceeds that share of all together as rarely as `END_SHARE` of an axis' limit.
            end = as_rare(END_SHARE * limit, n) / test["together"] if threshold > 0.0 else END_SHARE
            test["end"] = end

    def _arrays(self, k: int, name: str) -> dict[str, Array]:
        """The usual sizes and correlation of a test's errors, in place."""
        sizes, pairs = self._errors.sizes[k], self._errors.pairs[k]
        found = {"sizes.squares": sizes["square"], "sizes.weights": sizes["weight"]}
        found |= {key: pairs[key] for key in ("correlation", "white")}
        return {f"{name}{key}": array for key, array in found.items()}

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        s, now = self._errors, self._errors.now[0]
        state = {"means": s.means.copy(), "unknown": np.array([now["lacked"], now["weight"]])}
        for k, name in enumerate(TESTS):
            usual, test = s.axes["usual"][k].T, s.tests[k]
            state[f"{name}usual"] = np.array([*usual.ravel(), test["seen"], test["whitened"]])
            state |= {key: array.copy() for key, array in self._arrays(k, name).items()}
        return state

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`. Raises ValueError where it has another number of axes."""
        self.reset()
        s, now = self._errors, self._errors.now[0]
        if state["means"].shape != s.means.shape:
            raise ValueError("the usual errors that were saved are of another number of axes")
        for k, name in enumerate(TESTS):
            *usual, seen, whitened = state[f"{name}usual"].tolist()
            s.axes["usual"][k], test = np.reshape(usual, (2, -1)).T, s.tests[k]
            test["seen"], test["whitened"], test["counted"] = seen, whitened, 0
            for key, array in self._arrays(k, name).items():
                array[:] = state[key]
        s.means[:] = state["means"]
        now["lacked"], now["weight"] = state["unknown"]
        now["novelty"] = now["lacks"] = 0.0  # motion that is new to one model is not to another


@lru_cache
def as_rare(limit: float, n: int) -> float:
    """The length that n independent normal numbers of unit variance exceed as rarely as one of them
    exceeds `limit` in size."""
    finite = min(limit, MAX_LIMIT)
    return float(np.sqrt(chdtri(n, 2.0 * ndtr(-finite)))) + limit - finite


@compiled_in_turn
def _reset(s: Errors, k: int) -> None:
    """Forget what is under way in a test, but not what is usual."""
    test = s.tests[k]
    test.axis, test.deviation, test.limit, test.share = 0, 0.0, 0.0, 0.0
    test.since = test.beyond = test.large = test.recent = 0
    for j in range(s.axes.shape[1]):
        axis = s.axes[k, j]
        axis.sum = axis.peak[0] = axis.peak[1] = 0.0


@compiled_in_turn
def _step(
    s: Errors,
    stamp: int,
    confidence: float,
    cutoff: float,
    longest: float,
    moving: bool,
    changing: bool,
    tested: bool,
    active: bool,
) -> int:
    """Take a sample, see `ContactDetector.add`; `moving`, `changing`: speeds, changes are known."""
    now, sudden, begins = s.now[0], s.tests[SUDDEN], False
    ahead = (stamp - now.at) * 1e-9
    if not 0 <= stamp - now.at <= PAUSE:
        now.resumed = stamp
    if ahead < 0.0:  # what waits would do so until the clock is there again
        now.waiting = s.tests[0].recent = s.tests[1].recent = s.tests[2].recent = 0
    now.at, now.slot = stamp, (now.first + now.waiting) % WAITING
    resumes = stamp - now.resumed < RESUMING  # a pause is so short ago that filters still show it
    before = s.parts[(now.slot - 1) % WAITING, SUDDEN, s.signals.size]
    joins = now.waiting > 0 and 0 <= stamp - before.stamp < USUAL_STEP
    _prepare(s, ahead, confidence, cutoff, resumes, changing, joins, active)
    known = min(confidence, 1.0 - now.novelty)
    for k in range(3):
        if s.parts[now.slot, k, s.signals.size].due:
            scale(s, k, known, moving)
            if tested and _test(s, k, not (resumes or active or now.given_up)) and not begins:
                begins, now.since = True, s.tests[k].since
                if k == QUICK:  # it is sudden some milliseconds later, if it lasts
                    sudden.large = stamp
    ended = (stamp - sudden.large) * 1e-9 >= END_TIME_S
    ended = ended and (stamp - s.tests[LASTING].large) * 1e-9 >= LASTING_END_S
    if tested and active:
        ended = ended or sudden.least == math.inf
        now.largest = max(now.largest, sudden.share)
        _follow_peaks(s, begins, ended)
        if ended:
            return ENDS
        now.given_up = int((stamp - now.since) * 1e-9 > longest)
        return GIVES_UP if now.given_up else NOTHING
    if resumes:
        return NOTHING
    if tested and now.given_up:
        now.given_up = int(not ended)
    elif begins:
        now.largest = sudden.share
        _follow_peaks(s, begins, ended)
        return BEGINS
    _wait(s, joins)
    return NOTHING


@compiled_in_turn
def _prepare(
    s: Errors,
    ahead: float,
    confidence: float,
    cutoff: float,
    resumes: bool,
    changing: bool,
    joins: bool,
    active: bool,
) -> None:
    """Make the errors of each test, and choose those in which they are due.

    joins: a sample just before waits, as whose part this one counts.

    A residual of random features is confident nearly anywhere: what tells a motion that it does not
    know is that its confidence lacks several times what it usually lacks. The errors of such a
    motion are not known when the residual begins to know it, but `FIRST_S` later. In a contact this
    novelty, in [0, 1], only decays.
    """
    now, quick, parts, n = s.now[0], s.tests[QUICK], s.parts[s.now[0].slot], s.signals.size
    passed, anew = min(max(ahead, 0.0), 1.0), resumes or now.average_since == 0
    now.lacks += (1.0 - math.exp(-passed / NEW_MEAN_S)) * (1.0 - confidence - now.lacks)
    now.novelty *= math.exp(-passed / FIRST_S)
    if not active and now.weight > 0.0 and now.lacks * now.weight > NEW_SHARE * now.lacked:
        now.novelty = max(now.novelty, 1.0 - NEW_SHARE * now.lacked / now.weight / now.lacks)
    if anew:
        now.average_since, passed = now.at, 0.0
        _reset(s, LASTING)
    share = 1.0 - math.exp(-min(passed, LASTING_LONGEST_S) / LASTING_S)
    for j in range(n):
        signal = s.signals[j]
        if anew:
            signal.average = signal.between = 0.0
            signal.expected = signal.last = math.nan
        if changing:
            change = BETWEEN * abs(signal.predicted - signal.expected)
            kept = math.exp(-passed / BETWEEN_S) * signal.between
            signal.between = max(0.0 if math.isnan(change) else change, kept)
            signal.expected = signal.predicted
        measured = not math.isnan(signal.error)
        signal.average += share * ((signal.error if measured else 0.0) - signal.average)
        parts[SUDDEN, j].error = signal.error
        parts[LASTING, j].error = signal.average if measured else math.nan
    lasting = now.at - now.average_since >= LASTING_AFTER
    lasting = lasting and not 0 <= now.at - now.averaged < LASTING_STEP
    now.averaged = now.at if lasting else now.averaged
    dense = 0.0 < FILTERED * ahead * QUICK_RATIO * cutoff <= 1.0
    closer = dense and _sharpen(s, ahead, 2.0 * math.pi * cutoff)
    for k in range(3):
        due = (lasting if k == LASTING else dense and (closer or not joins)) or k == SUDDEN
        parts[k, n].stamp, parts[k, n].confidence, parts[k, n].due = now.at, confidence, int(due)
    for j in range(0 if dense else n):
        s.signals[j].last = math.nan
    if not dense and quick.share > 0.0:
        _reset(s, QUICK)
    elif dense and not parts[QUICK, n].due:  # its errors are usual, as the last sample showed
        quick.tested, quick.share = now.at, 0.0
        for j in range(n + 1):
            s.axes[QUICK, j].sum = 0.0


@compiled_in_turn
def _sharpen(s: Errors, ahead: float, narrow: float) -> bool:
    """Make errors what they were behind a low-pass of `QUICK_RATIO` times the cut-off.

    The filter is (s^2 + r w s + w^2) W^2 / ((s^2 + r W s + W^2) w^2) of both cut-offs, w and W, and
    r = 2^(1/2): the numerator takes a Butterworth low-pass off, the denominator puts a wider one
    on. Between samples it is integrated by the trapezoidal rule. NaN, not measured: begins anew, at
    rest, with what is measured next.

    Returns whether any is beyond `QUICK_CLOSER` of the usual ones.
    """
    closer, wide = False, QUICK_RATIO * narrow
    root, gain, half = math.sqrt(2.0), (wide / narrow) ** 2, 0.5 * ahead
    damping, stiffness = root * wide, wide * wide
    slope, level = gain * root * (narrow - wide), gain * (narrow * narrow - stiffness)
    scale = 1.0 + half * damping + half * half * stiffness
    for j in range(s.signals.size):
        signal, error = s.signals[j], s.signals[j].error
        if math.isnan(signal.last):
            signal.x, signal.v = error / stiffness, 0.0
        else:
            both, x = error + signal.last, signal.x + half * signal.v
            force = signal.v + half * (both - stiffness * signal.x - damping * signal.v)
            signal.x = ((1.0 + half * damping) * x + half * force) / scale
            signal.v = (force - half * stiffness * x) / scale
        signal.last, sharp = error, level * signal.x + slope * signal.v + gain * error
        s.parts[s.now[0].slot, QUICK, j].error = sharp
        closer = closer or abs(sharp) > QUICK_CLOSER * s.axes[QUICK, j].spread
    return closer


@compiled_in_turn
def _test(s: Errors, k: int, accumulate: bool) -> bool:
    """Compare a scaled sample with a test's limits; whether a contact begins.

    accumulate: whether one may, and samples add up.

    What adds up is a cumulative sum of what is beyond `COUNTED_SHARE`, or `COUNTED_TOGETHER`
    (Page 1954, Continuous inspection schemes): a limit that is just reached must be so for the
    time of the test, a larger deviation for less. A jerk that the model has some milliseconds
    late is over before. Samples that are further apart are tested one by one.
    """
    test, stamp, last = s.tests[k], s.now[0].at, s.signals.size
    accumulate = accumulate and test.seen >= MIN_EXPECTED_S
    part = min(max(stamp - test.tested, 0) * 1e-9 / test.test_time, 1.0)
    test.tested, tested = stamp, test.least < math.inf
    anew, large, begins, largest = True, False, False, -1.0
    for j in range(last + 1):
        anew = anew and s.axes[k, j].sum == 0.0
    anew = accumulate and (anew or part == 1.0)
    for j in range(last + 1):
        axis, found = s.axes[k, j], s.parts[s.now[0].slot, k, j]
        least, end, counted = test.least, END_SHARE, COUNTED_SHARE
        if j == last:
            least, end, counted = test.together, test.end, COUNTED_TOGETHER
        own = max(USUAL_FACTOR * axis.usual[found.turning], least)
        ratio = found.deviation / own
        size = ratio if tested else found.deviation
        if size > largest:
            largest, test.axis, test.deviation = size, j, found.deviation
            test.limit = own if tested else 0.0
        large = large or ratio > end
        before = 0.0 if anew or not accumulate else axis.sum
        more = part * (ratio - counted) / (1.0 - counted) if accumulate else 0.0
        axis.sum = max(before + more, 0.0)
        begins = begins or axis.sum >= 1.0
    test.share = largest if tested else 0.0
    if test.share > SHORT_SHARE:
        test.beyond = stamp
    if large and largest > END_SHARE:
        test.large = stamp
    if anew:
        test.since = stamp
    return begins


@compiled_in_turn
def _follow_peaks(s: Errors, begins: bool, ends: bool) -> None:
    """Note a sample of a contact: what is large may be a short error's peak.

    What was over too soon to be a push may recur. Of those that wait when it `begins`, none is
    usual: they may be its first.
    """
    now, n, short = s.now[0], s.signals.size, ends and not begins
    for k in (SUDDEN, LASTING):
        short = short and (s.tests[k].beyond - now.since) * 1e-9 < SHORT_S + LATER_S[k]
    now.waiting = 0 if begins else now.waiting
    for k in range(3):
        test = s.tests[k]
        test.recent = 0 if begins else test.recent
        for j in range(n + 1):
            axis, part = s.axes[k, j], s.parts[now.slot, k, j]
            for row in range(2):
                peak = 0.0 if begins else axis.peak[row]
                if s.parts[now.slot, k, n].due and row == part.turning:
                    peak = max(peak, part.deviation)
                axis.peak[row] = peak
                if short:
                    least = test.together if j == n else test.least
                    most = SHORT_GROWTH * max(USUAL_FACTOR * axis.usual[row], least) / USUAL_FACTOR
                    axis.usual[row] = max(axis.usual[row], min(peak, most))


@compiled_in_turn
def _wait(s: Errors, joins: bool) -> None:
    """Let the last sample wait, and take those for usual that have waited `USUAL_DELAY_S`.

    Errors behind a low-pass hardly change from one to the next: the largest of some counts.
    """
    now, n = s.now[0], s.signals.size
    before, parts = s.parts[(now.slot - 1) % WAITING], s.parts[now.slot]
    now.waiting += not joins
    for k in range(3):
        test, due = s.tests[k], parts[k, n].due
        if not joins:
            test.recent = min(test.recent + 1, WAITING - 1)
        for j in range(n + 1 if joins and due else 0):
            if k == LASTING:
                before[k, j] = parts[k, j]
            elif before[k, n].due:
                before[k, j].deviation = max(before[k, j].deviation, parts[k, j].deviation)
        while test.recent > 0 and due and (k == LASTING or not joins):
            late = s.parts[(now.first + now.waiting - test.recent) % WAITING, k]
            if now.at - late[n].stamp <= LEVEL_DELAY_S * 1e9:
                break
            test.recent -= 1
            if late[n].due:  # after a pause one sample would count for all of it
                ahead = min(max((late[n].stamp - test.followed) * 1e-9, 0.0), LEVEL_DELAY_S)
                test.followed, share = late[n].stamp, 1.0 - math.exp(-ahead / LEVEL_S)
                for j in range(n):
                    axis, square = s.axes[k, j], late[j].square
                    axis.level += 0.0 if math.isnan(square) else share * (square - axis.level)
    while not joins and now.at - s.parts[now.first, SUDDEN, n].stamp > USUAL_DELAY_S * 1e9:
        count(s)
