"""Notices changes as samples come, says what they are, and what is to be learned meanwhile."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, deque

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.changes import config as kinds
from semiparam_dynamics.changes.config import (
    ChangeEvent,
    ChangesConfig,
    ChangeStatus,
    PayloadStatus,
)
from semiparam_dynamics.changes.contact import ContactDetector
from semiparam_dynamics.changes.correction import Correction, Estimate
from semiparam_dynamics.changes.hypotheses import (
    FRICTION,
    OFFSET,
    PAYLOAD,
    Causes,
    Finding,
    Hypothesis,
    Windows,
    hypotheses,
    weigh,
)
from semiparam_dynamics.changes.innovations import Block, BlockMean, Innovations
from semiparam_dynamics.changes.payload import BARE, Snapshots, as_array, as_text, payload_status
from semiparam_dynamics.dynamics.filtering import FilterConfig
from semiparam_dynamics.dynamics.sample import Prediction, Sample
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.storage import sub_state

# -------------------------------------------------------------------------------------------------
# Which samples are learned, which wait for a verdict, and which are never learned.

LEARN, WAIT, DROP = "learn", "wait", "drop"
REMEMBERED = 256  # stretches that samples which come late are still kept out of


class LearningHold:
    """Verdicts on samples by their stamps (ns); samples may be asked about later, in any order.

    What looks like the beginning of a change waits. When it turns out to be one, nothing since its
    onset is learned; when it doesn't, all of it is.
    """

    def __init__(self) -> None:
        self._waits_from: int | None = None
        self._dropped_from: int | None = None
        self._stretches: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)

    @property
    def closed(self) -> bool:
        """Whether samples of now are not learned, or not yet."""
        return self._waits_from is not None or self._dropped_from is not None

    def wait(self, stamp: int) -> None:
        """From `stamp` on samples wait, if they don't already."""
        if self._waits_from is None:
            self._waits_from = stamp

    def clear(self) -> None:
        """What waits was nothing."""
        self._waits_from = None

    def drop(self, stamp: int) -> None:
        """From `stamp` on, or since samples wait, none is learned."""
        start = stamp if self._waits_from is None else min(stamp, self._waits_from)
        if self._dropped_from is None:
            self._dropped_from = start
        self._waits_from = None

    def resume(self, stamp: int) -> None:
        """Samples later than `stamp` are learned again."""
        if self._dropped_from is not None:
            self._stretches.append((self._dropped_from, stamp))
        self._dropped_from = None

    def restart(self, stamp: int) -> None:
        """The clock went back to `stamp`: stretches of before say nothing of later samples.

        What isn't learned now isn't from there on, either; what waited was nothing.
        """
        self._stretches.clear()
        self._waits_from = None
        if self._dropped_from is not None:
            self._dropped_from = stamp

    def verdict(self, stamp: int) -> str:
        """learn, wait or drop, as far as is known now."""
        if self._dropped_from is not None and stamp >= self._dropped_from:
            return DROP
        if any(start <= stamp <= end for start, end in self._stretches):
            return DROP
        if self._waits_from is not None and stamp >= self._waits_from:
            return WAIT
        return LEARN


# -------------------------------------------------------------------------------------------------
# Where among the last blocks, and for which causes, a change is looked for.

HEAVY = 3.0  # standard deviations that a new payload's mass must differ from 0 by


def is_plausible(finding: Finding) -> bool:
    """Whether a new payload weighs anything.

    A jerk that the model does not follow looks like inertia at the hand, which has no weight. No
    body does.
    """
    found = finding.hypothesis
    if found.cause != PAYLOAD or found.name:
        return True
    scale = np.sqrt(np.sum(found.root**2, axis=1))
    estimate = Estimate.prior(scale) + finding.sums.of(found.columns)
    return bool(abs(estimate.mean[0]) > HEAVY * np.sqrt(estimate.covariance[0, 0]))


def candidates(
    causes: Causes, config: ChangesConfig, snapshots: Snapshots, correction: Correction
) -> list[Hypothesis]:
    """What may have changed beyond `correction`: a new cause, or to a payload known before."""
    wanted = {PAYLOAD}
    wanted |= {FRICTION} if config.friction else set()
    wanted |= {OFFSET} if config.offset else set()
    names = (name for name in snapshots.names if name != correction.name)
    known = {name: snapshots[name] for name in names}
    return hypotheses(causes, wanted, correction.held.mean, known)


def best_explanation(
    windows: Windows, among: list[Hypothesis], correction: Correction, *, began_before: bool
) -> tuple[Finding | None, dict[str, float]]:
    """The best of all stretches, and every candidate's best score by its name.

    began_before: whether to look also at stretches that a change, such as one that seemed a contact
    at first, was there before.
    """
    found: Finding | None = None
    table: dict[str, float] = {}
    for begins in (True, False) if began_before else (True,):
        lengths, sums = windows.sums(begins=begins)
        if not len(lengths):
            continue
        sums = sums.shifted(correction.theta)
        finding, named = weigh(lengths, sums, among, correction.uncertainty)
        table = {name: max(value, table.get(name, -np.inf)) for name, value in named.items()}
        if finding is not None and (found is None or finding.score > found.score):
            found = finding
    return found, table


UNFILTERED = 0.1  # s, a block's length where there is no filter
CLEAR = 3.0  # log likelihood ratio by which a cause must beat the others to be named
PATIENCE = 10  # blocks after which the best cause is named although another is nearly as good
WHILE_UNSURE = 1.0  # s after which what seemed a contact says that the estimate was wrong
RECENT = 40  # blocks after a contact within which what it leaves is looked for
EVENTS = 200


class ChangeMonitor:
    """What was learned meets what is measured: predictions' errors, tested for causes.

    Feed every sample in order to :meth:`watch`. Predictions of the robot as it is now are those of
    the model that was learned with :attr:`correction` applied; learn a sample only when
    :meth:`verdict` says so, with the correction's effort taken off.

    Parameters
    ----------
    model, config: the robot, and what to look for.
    filter_config: of the filter that samples have passed.

    Raises ConfigurationError where `config.payload_link` isn't a moving link.

    Attributes
    ----------
    status: after the last sample. events: the last ones, oldest first.
    correction, snapshots, hold: what holds now, payloads by name, what is learned.
    """

    def __init__(
        self, model: RobotModel, config: ChangesConfig, filter_config: FilterConfig
    ) -> None:
        self.config = config
        self.causes = Causes(model, config)
        self.snapshots = Snapshots()
        self._cutoff, self._gap = filter_config.cutoff, filter_config.max_gap
        n = model.n_axes
        self._kinds = np.arange(n) // 3 if model.config.target == "wrench" else np.arange(n)
        self.reset()

    def reset(self) -> None:
        """Forget all that was noticed; the snapshots stay."""
        length = 0.5 / self._cutoff if self._cutoff > 0.0 else UNFILTERED
        self._blocks = BlockMean(length, self._gap)
        self.innovations = Innovations(self.causes.n_columns, self._kinds, length)
        self.contact = ContactDetector(self.config, len(self._kinds))
        self.correction = Correction(self.causes)
        self.hold = LearningHold()
        self.events: deque[ChangeEvent] = deque(maxlen=EVENTS)
        self.counts: Counter[str] = Counter()
        self.status = ChangeStatus()
        self._last: int | None = None  # stamp of the last sample
        self._settled = 0.0  # s of learning
        self._waited = 0  # blocks for which the best cause wasn't clear
        self._since_contact = RECENT + 1
        self._estimated = 0.0  # s
        self._onset = 0
        self._evidence: dict[str, float] = {}
        self._payload: PayloadStatus | None = None

    def configure(self, config: ChangesConfig) -> None:
        """Go on with other values of the live parameters."""
        self.config = self.contact.config = config

    @property
    def threshold(self) -> float:
        """The log likelihood ratio at which a change is believed.

        Under nothing, a test that begins anew with each block passes c in a share of at most
        exp(-c) of its beginnings; as many begin in an hour as there are blocks, for each cause.
        """
        tests = 3600.0 / self._blocks.length * len(self.causes.all)
        return max(math.log(tests / self.config.false_alarms), CLEAR)

    def watch(self, sample: Sample, prediction: Prediction) -> ChangeStatus:
        """Take a sample and the prediction of it by what was learned, nothing corrected."""
        self._follow(sample.stamp)
        if sample.y is None or prediction.residual.inputs is None:
            return self._report(sample.stamp, None)
        sure = prediction.confidence
        corrected = self.correction.apply(prediction, sample.regressor)
        external = sample.y - corrected.semiparametric
        std = np.maximum(corrected.semiparametric_std, 1e-12)
        if self._settled >= self.config.settle:
            self._touch(sample.stamp, external, std, sure)
        elif self._settled >= 0.5 * self.config.settle:
            self.contact.observe(sample.stamp, external, std, sure)
        columns = sample.regressor @ self.causes.combination
        error = sample.y - prediction.semiparametric
        std = self.contact.spread(np.maximum(prediction.semiparametric_std, 1e-12), sure)
        block = self._blocks.add(sample.stamp, error, columns, std)
        if block is not None:
            self._take(block)
        return self._report(sample.stamp, external)

    def _follow(self, stamp: int) -> None:
        """After a pause, or where the clock went back, no contact goes on."""
        last, self._last = self._last, stamp
        longest = max(self._gap, self._blocks.length)
        if last is None or 0.0 <= (stamp - last) * 1e-9 <= longest:
            return
        touched, since = self.contact.active, self.contact.since
        self.contact.reset()
        self._since_contact, self._waited = RECENT + 1, 0
        if touched:
            self._note(last, since, kinds.OVER)
        self._go_on(last)
        if stamp < last:
            self.hold.restart(stamp)

    def _touch(self, stamp: int, external: Array, std: Array, sure: float) -> None:
        """Contacts, sample by sample."""
        unsure = self.correction.estimating is not None
        longest = WHILE_UNSURE if unsure else math.inf
        what = self.contact.add(stamp, external, std, sure, longest)
        if what == "begins":
            self._note(stamp, stamp, kinds.CONTACT, evidence=self.contact.deviation)
            self.hold.drop(stamp)
            self.innovations.unusual()
        elif what:
            if what == "over" or not unsure:
                cause = kinds.OVER if what == "over" else kinds.UNEXPLAINED
                self._note(stamp, self.contact.since, cause)
            self._go_on(stamp)
        elif self.contact.suspicious:
            self.hold.wait(stamp)

    def _go_on(self, stamp: int) -> None:
        """Learn again, unless a payload is being estimated."""
        found = self.correction.estimating
        if (found is None or found.cause != PAYLOAD) and not self.contact.active:
            self.hold.clear()
            self.hold.resume(stamp)

    def _take(self, block: Block) -> None:
        before = self.correction.theta
        watching = self.correction.estimating is None and not self.contact.active
        self.innovations.push(block, before, watching)
        if self._settled < self.config.settle:
            self._settled += self._blocks.length
            return
        self._since_contact = 0 if self.contact.active else self._since_contact + 1
        if self.correction.estimating is not None:
            self._refine(block)
        finding, self._evidence = best_explanation(
            self.innovations.windows,
            candidates(self.causes, self.config, self.snapshots, self.correction),
            self.correction,
            began_before=self._since_contact <= RECENT,
        )
        finding = finding if finding is None or is_plausible(finding) else None
        if finding is not None and finding.score > self.threshold:
            self._waited += 1
            clear = finding.margin > CLEAR or self._waited > PATIENCE
            if clear or finding.hypothesis.name:
                self._accept(finding, block)
                return
            self.hold.wait(block.start)
            return
        self._waited = 0
        if not self.contact.suspicious:
            self.hold.clear()

    def _accept(self, finding: Finding, block: Block) -> None:
        found = finding.hypothesis
        self._onset = block.end - round(finding.length * self._blocks.length * 1e9)
        self._waited, self._estimated = 0, finding.length * self._blocks.length
        self.contact.reset()
        self._since_contact = RECENT + 1
        if found.cause == PAYLOAD:
            self.hold.drop(self._onset)
        if found.name:
            self.correction.hold(found.name, self.snapshots[found.name])
        else:
            self.correction.begin(found, finding.sums)
        self._payload = None
        self._note(block.end, self._onset, found.cause, found.name, finding.score)
        self.innovations.restart()
        self._go_on(block.end)

    def _refine(self, block: Block) -> None:
        """Go on estimating, and look whether another cause, or none, explains all of it better."""
        found = self.correction.estimating
        if found is None or self.innovations.last is None or self.contact.active:
            return
        self.correction.add(self.innovations.last)
        self._payload = None
        self._estimated += self._blocks.length
        seen = self.correction.seen
        among = candidates(self.causes, self.config, self.snapshots, self.correction)
        others = [h for h in among if not h.name and h.cause != found.cause]
        best = max(others, key=lambda h: float(h.evidence(seen)), default=found)
        score = float(best.evidence(seen))
        if max(score, float(found.evidence(seen))) < -CLEAR:
            self._retract(block.end)
            return
        if best is not found and score > found.evidence(seen) + CLEAR:
            self.correction.switch(best)
            if best.cause == PAYLOAD:
                self.hold.drop(block.start)
            else:
                self._go_on(block.end)
            self._note(block.end, self._onset, best.cause, "", score)
        if self._estimated >= self.config.payload_time:
            self.correction.settle()
            self._go_on(block.end)

    def _retract(self, stamp: int) -> None:
        """No change at all explains what followed better: the model was off for a while."""
        self.correction.retract()
        self.innovations.restart()
        self._note(stamp, self._onset, kinds.UNEXPLAINED)
        self._go_on(stamp)

    def _note(
        self, stamp: int, onset: int, cause: str, name: str = "", evidence: float = 0.0
    ) -> None:
        self.events.append(ChangeEvent(stamp, onset, cause, name, evidence))
        self.counts[name or cause] += 1

    def _report(self, stamp: int, external: Array | None) -> ChangeStatus:
        estimating, touched = self.correction.estimating, self.contact.active
        phase, cause, since = kinds.WATCHING, "", 0
        if self._settled < self.config.settle:
            phase = kinds.SETTLING
        elif touched:
            phase, cause, since = kinds.DISTURBED, kinds.CONTACT, self.contact.since
        elif estimating is not None:
            phase, cause, since = kinds.ESTIMATING, estimating.cause, self._onset
        self.status = ChangeStatus(
            stamp=stamp,
            phase=phase,
            cause=cause,
            since=since,
            learning=not self.hold.closed,
            contact=touched,
            deviation=self.contact.deviation,
            external=external,
            evidence=self._evidence,
            threshold=self.threshold,
        )
        return self.status

    def verdict(self, stamp: int) -> str:
        """Whether the sample at `stamp` (ns) is to be learned: hold.LEARN, WAIT or DROP."""
        return self.hold.verdict(stamp)

    @property
    def payload(self) -> PayloadStatus | None:
        """What is held, None for the bare hand. Costs some milliseconds after each new block."""
        if self.correction.name == BARE:
            return None
        if self._payload is None:
            held, correction = self.correction.held, self.correction
            settled = correction.estimating is None or correction.estimating.cause != PAYLOAD
            self._payload = payload_status(
                held, self.config.payload_reach, self.causes.link, correction.name, settled
            )
        return self._payload

    def remember(self, name: str) -> None:
        """Keep what is held under this name. Raises ConfigurationError where it can't be."""
        held = self.correction.held
        self.snapshots.store(name, held)
        self.correction.name = name
        self._payload = None

    def recall(self, name: str) -> None:
        """From now on this payload is held, or none ("bare"). Raises ConfigurationError."""
        self.correction.hold(name, self.snapshots[name])
        self._payload = None
        self.innovations.restart()
        self.contact.reset()
        self._note(self.status.stamp, self.status.stamp, PAYLOAD, name)
        self._go_on(self.status.stamp)

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        parts = {
            "correction": self.correction.state(),
            "noise": self.innovations.noise.state(),
            "contact": self.contact.state(),
            "snapshots": self.snapshots.state(),
        }
        state = {f"{n}.{key}": value for n, own in parts.items() for key, value in own.items()}
        link = as_array(self.causes.link)
        return state | {"settled": np.array(self._settled), "link": link}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`; an empty one, of a model without, begins anew.

        Raises ConfigurationError where its payloads are those of another link.
        """
        self.reset()
        if not state:
            return
        if "link" in state and (link := as_text(state["link"])) != self.causes.link:
            raise ConfigurationError(
                f"its payloads are those of the link '{link}', and the parameter "
                f"'changes.payload_link' makes it '{self.causes.link}' here"
            )
        self.correction.restore(sub_state(state, "correction."))
        self.innovations.noise.restore(sub_state(state, "noise."))
        self.contact.restore(sub_state(state, "contact."))
        self.snapshots.restore(sub_state(state, "snapshots."))
        self._settled = float(state["settled"])


# -------------------------------------------------------------------------------------------------
# Samples that are learned late or never, because something may have changed.

MOST = 5000  # samples that wait; of more the oldest are learned


class WaitingSamples:
    """Holds samples back until a monitor's verdict on them."""

    def __init__(self, monitor: ChangeMonitor) -> None:
        self._monitor = monitor
        self._waiting: deque[tuple[Sample, Prediction]] = deque()
        self.dropped = 0

    def admit(self, sample: Sample, prediction: Prediction) -> list[tuple[Sample, Prediction]]:
        """Take a sample and what the model itself predicted of it; returns what to learn now.

        That is in the samples' order, with the measurements that there would have been without the
        changes that are allowed for.
        """
        self._waiting.append((sample, prediction))
        admitted = []
        while self._waiting:
            verdict = self._monitor.verdict(self._waiting[0][0].stamp)
            if verdict == WAIT and len(self._waiting) <= MOST:
                break
            first, predicted = self._waiting.popleft()
            if verdict == DROP:
                self.dropped += 1
            else:
                admitted.append((self._unchanged(first), predicted))
        return admitted

    def _unchanged(self, sample: Sample) -> Sample:
        correction = self._monitor.correction
        if sample.y is None or not correction.active:
            return sample
        return dataclasses.replace(sample, y=sample.y - correction.effort(sample.regressor))
