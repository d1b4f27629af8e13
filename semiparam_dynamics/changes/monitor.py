"""Detection of changes as samples come: their cause, and which samples are learned meanwhile."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, deque
from typing import Any

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import one_or_each
from semiparam_dynamics.base.storage import sub_state
from semiparam_dynamics.changes.config import (
    BARE,
    CONTACT,
    DEFER,
    DISTURBED,
    ESTIMATING,
    EXCLUDE,
    LEARN,
    OVER,
    SETTLING,
    UNEXPLAINED,
    WATCHING,
    ChangeEvent,
    ChangesConfig,
    ChangeStatus,
    PayloadStatus,
)
from semiparam_dynamics.changes.contact import ContactDetector
from semiparam_dynamics.changes.correction import (
    LASTING_GAIN_ERROR,
    LASTING_TURN,
    Correction,
    Estimate,
)
from semiparam_dynamics.changes.held_residual import HeldResidual
from semiparam_dynamics.changes.hypotheses import (
    FRICTION,
    OFFSET,
    PAYLOAD,
    PUSH,
    Causes,
    Finding,
    Hypothesis,
    Windows,
    hypotheses,
    weigh,
)
from semiparam_dynamics.changes.innovations import (
    WINDOW_BLOCKS,
    Block,
    BlockMean,
    ErrorRatios,
    Innovations,
)
from semiparam_dynamics.changes.payload import (
    TYPICAL_MASS_KG,
    TYPICAL_REACH_M,
    Snapshot,
    Snapshots,
    as_array,
    as_text,
    nearest_payload,
    payload_status,
)
from semiparam_dynamics.dynamics.filtering import FilterConfig
from semiparam_dynamics.dynamics.sample import Prediction, Sample
from semiparam_dynamics.robot.model import RobotModel, expected_scales

# While errors are of their present size; fewer of them delay detection.
FALSE_ALARMS_PER_HOUR = 0.1
UNFILTERED_BLOCK_S = 0.1  # a block's length where there is no filter
# Of `filter.learn_ratio`, from which on a block has at least five samples that are learned: its
# means need no others, which cost as much each.
ENOUGH_RATIO = 10.0
MASS_STDS = 3.0  # standard deviations by which a new payload's mass must differ from 0
MIN_MASS_SHARE = 0.05  # of `TYPICAL_MASS_KG`, below which a new payload is not reported
CLEAR_MARGIN = 3.0  # log likelihood ratio by which a cause must beat the others to be named
KNOWN_MARGIN = 10.0  # by which a new payload must beat the known ones, which are more probable
MAX_UNCLEAR_BLOCKS = 8  # after which the best cause is named although another is nearly as good
LIKELY_SHARE = 0.5  # of its largest evidence, until which a payload that is likely is not learned
STEADY_BLOCKS = 3  # of a contact, before which a new payload is not named: a brake may hold the arm
MAX_RESTARTS = 3  # of a payload's estimation by another cause, beyond which it moves in the hand
MAX_REACHES = 2.0  # of `TYPICAL_REACH_M`, beyond which no payload's centre of mass is
MAX_CONTACT_S = 1.0  # while estimating: an apparent contact that lasts longer is a wrong estimate
AFTER_CONTACT_BLOCKS = 40  # after a contact, within which a change may have begun during it
MAX_EVENTS = 200
MAX_INTERVALS = 256  # past intervals from which late samples are still excluded


@dataclasses.dataclass(slots=True)
class Progress:
    """The detection's progress since a reset; blocks are those in motion, stamps in ns."""

    last: int | None = None  # stamp of the last sample
    untested: Block | None = None  # see `ChangeMonitor._push_block`
    learned_s: float = 0.0
    evidence: dict[str, float] = dataclasses.field(default_factory=dict)
    unclear_blocks: int = 0  # for which evidence was found, but no clear cause
    likely: float = 0.0  # the largest evidence for a payload that was not named
    push: float = -math.inf  # the largest evidence for one in a contact
    unknown: bool = False  # whether the model did not know the motion in which a contact began
    blocks_since_contact: int = AFTER_CONTACT_BLOCKS + 1
    blocks_since_end: int = AFTER_CONTACT_BLOCKS + 1
    ended: int = 0  # stamp at which the last contact ended
    still: bool = False  # whether the robot is at rest
    onset: int = 0  # stamp of the change that is being estimated
    estimated_s: float = 0.0  # for which it has been
    restarted: list[Array] = dataclasses.field(default_factory=list)  # (10,) that did not last
    payload: PayloadStatus | None = None  # held, where it is known


class ChangeMonitor:
    """Tests the predictions' errors for changes, sample by sample.

    Pass every sample in order to :meth:`watch`. :meth:`apply` gives predictions of the robot as it
    is now. Learn a sample only when :meth:`verdict` says so, without its :meth:`effort`.

    Parameters
    ----------
    model, config: the robot, and which changes to detect.
    filter_config: of the filter that samples have passed.

    Raises ConfigurationError where `config.payload_link` isn't a moving link.

    Attributes
    ----------
    status: after the last sample. events: the last ones, oldest first. counts: of all, by cause.
    external: (n_axes,) measured minus predicted of the last sample, by which contacts are looked
        for; None where it was not measured. contact: looks for them.
    correction: the present changes. held: the errors under a payload in addition.
    snapshots: known payloads. exclusions: from learning.
    """

    def __init__(
        self, model: RobotModel, config: ChangesConfig, filter_config: FilterConfig
    ) -> None:
        self.config = config
        self.causes = Causes(model, config)
        self.held = HeldResidual(model, self.causes)
        self.snapshots = Snapshots()
        self._model, self._filter = model, filter_config
        self.reset()

    @property
    def _efforts(self) -> bool:
        """Return whether the axes are joint efforts, not a sensor's."""
        return self._model.config.target == "effort"

    def reset(self) -> None:
        """Forget all changes; the snapshots stay."""
        n, cutoff = self._model.n_axes, self._filter.cutoff
        length = 0.5 / cutoff if cutoff > 0.0 else UNFILTERED_BLOCK_S
        self._blocks = BlockMean(length, self._filter.max_gap)
        drives = one_or_each("changes.effort_gain_std", self.config.effort_gain_std, n, "joints")
        drives = drives if self._efforts else np.zeros(n)
        kinds = np.arange(n) if self._efforts else np.arange(n) // 3
        # Blocks in motion, as if the robot never stood; and all blocks, by the same noise.
        self._tested_ns = WINDOW_BLOCKS[-1] * length * 1e9
        columns = self.causes.n_columns
        self.innovations = Innovations(columns, kinds, length, drives)
        self._whole = Innovations(columns, kinds, length, drives, self.innovations.noise)
        scales = expected_scales(self._model).output
        self.contact = ContactDetector(self.config, scales, by_speed=self._efforts)
        self.ratios = ErrorRatios(n)
        self.external: Array | None = None
        i, j = self.innovations.gain_pairs
        own = np.hypot(LASTING_GAIN_ERROR, drives[i])
        gains = np.where(i == j, own, LASTING_TURN)
        common = self.config.effort_gain_common_std if self._efforts else 0.0
        self.correction = Correction(self.causes, gains, common)
        self.held.drop()
        self.exclusions = LearningExclusions()
        self.events: deque[ChangeEvent] = deque(maxlen=MAX_EVENTS)
        self.counts: Counter[str] = Counter()
        self.status = ChangeStatus()
        self._now = Progress()

    def configure(self, config: ChangesConfig) -> None:
        """Continue with other values of the live parameters."""
        self.config = self.contact.config = config

    @property
    def threshold(self) -> float:
        """The log likelihood ratio from which on a change is accepted.

        Without a change, a test that begins with each block exceeds c in a share of at most exp(-c)
        of its beginnings; as many begin in an hour as there are blocks, for each cause.
        """
        tests = 3600.0 / self._blocks.length * len(self.causes.all)
        return max(math.log(tests / FALSE_ALARMS_PER_HOUR), CLEAR_MARGIN)

    def watch(
        self,
        sample: Sample,
        prediction: Prediction,
        fast: Prediction | None = None,
        expected: Array | None = None,
    ) -> ChangeStatus:
        """Test a sample, by the prediction of the learned model without correction.

        fast : of `sample.fast`, by which contacts are looked for; without it by the sample itself.
        expected : (n_axes,) see `ContactDetector.add`.
        """
        if (block := self._now.untested) is not None:
            self._now.untested = None
            self._test_block(block)
        self._check_pause(sample.stamp)
        self.external = None
        if sample.y is None or not prediction.residual.ready:
            return self._report(sample.stamp, None)
        if not sample.between:
            self._now.still = not sample.informative
        confidence = prediction.confidence
        self.held.observe(sample, prediction)
        beside = self._beside(sample, prediction)
        corrected = self.correction.apply(prediction, sample.regressor)
        external = sample.y - corrected.semiparametric - beside
        before, cutoff = sample, 0.0
        if fast is not None and sample.fast is not None and sample.fast.y is not None:
            before, cutoff = sample.fast, self._filter.wide_cutoff
            corrected = self.correction.apply(fast, before.regressor)
        assert before.y is not None
        self.external = before.y - corrected.semiparametric - beside
        speeds = before.dq if self._efforts else None
        shown = sample.stamp, self.external, confidence, speeds, expected
        if self._now.learned_s >= self.config.settle:
            longest = math.inf if self.correction.estimating is None else MAX_CONTACT_S
            self._note_contact(sample.stamp, self.contact.add(*shown, longest, cutoff))
            self._keep_from_learning(sample.stamp)
        elif self._now.learned_s >= 0.5 * self.config.settle:
            self.contact.add(*shown, cutoff=cutoff, tested=False)
        if sample.between and self._filter.learn_ratio >= ENOUGH_RATIO:
            return self._report(sample.stamp, external)
        columns = self.causes.columns_of(sample)
        error = sample.y - prediction.semiparametric
        # What was learned under a payload would hide that it is gone, so it counts as error here;
        # not within a push, which passes for a release where it comes with errors that are known.
        pushed = self.contact.active or self._now.blocks_since_contact <= AFTER_CONTACT_BLOCKS
        if pushed and self.correction.estimating is None:
            error = error - beside
        std = np.maximum(prediction.spread, 1e-12)
        if self._now.learned_s >= 0.5 * self.config.settle and not self.contact.active:
            scaled = external / std
            if not prediction.spread.all():  # nothing was learned of an axis: no size is predicted
                scaled[prediction.spread == 0.0] = np.nan
            self.ratios.push(sample.stamp, scaled, confidence)
        std = self.ratios.spread(std, confidence)
        block = self._blocks.add(sample.stamp, error, columns, std, still=self._now.still)
        if block is not None:
            self._push_block(block)
        return self._report(sample.stamp, external)

    def apply(self, sample: Sample, prediction: Prediction) -> Prediction:
        """The prediction of the robot as it is now, from that of the learned model."""
        changed = self.correction.apply(prediction, sample.regressor)
        if not self._holding:
            return changed
        beside = self._beside(sample, prediction)
        return dataclasses.replace(changed, semiparametric=changed.semiparametric + beside)

    def effort(self, sample: Sample, prediction: Prediction) -> Array:
        """(n_axes,) what of a sample's measurement is not the arm's own: it is not learned."""
        return self.correction.effort(sample.regressor) + self._beside(sample, prediction)

    def learn_held(self, sample: Sample, prediction: Prediction) -> None:
        """Learn the errors under a payload, of a sample whose verdict is known.

        prediction: of the learned model.
        """
        # While a payload is weighed its errors pass for contacts, which end as they are learned.
        touched = self.contact.active and self.correction.estimating is None
        if self.correction.name == BARE or touched or sample.y is None:
            return
        risen = self._now.onset + round(Windows.RISE * self._blocks.length * 1e9)
        if sample.stamp > risen and self.verdict(sample.stamp) != DEFER:
            self.held.learn(sample, prediction)

    @property
    def _weighing(self) -> bool:
        """Return whether a payload is being estimated, during which nothing is learned."""
        found = self.correction.estimating
        return found is not None and found.cause == PAYLOAD

    @property
    def _holding(self) -> bool:
        return self.held.n_learned > 0 and self.correction.name != BARE

    def _beside(self, sample: Sample, prediction: Prediction) -> Array:
        """(n_axes,) of the errors under a payload that is held."""
        if not self._holding:
            return np.zeros(self._model.n_axes)
        return self.held.value(sample, prediction, self.correction.theta)

    def _check_pause(self, stamp: int) -> None:
        """End a contact at a pause, or where the clock went back."""
        last, self._now.last = self._now.last, stamp
        longest = max(self._filter.max_gap, self._blocks.length)
        if last is None or 0.0 <= (stamp - last) * 1e-9 <= longest:
            return
        self.break_off(last)
        if stamp < last:
            self.exclusions.restart(stamp)
            self._now.ended = 0
            self._now.onset = min(self._now.onset, stamp)

    def break_off(self, stamp: int) -> None:
        """End a contact at the last sample before a pause, or before nothing was measured."""
        in_contact, since = self.contact.active, self.contact.since
        self.contact.reset()
        self.ratios.discard()
        self._now.blocks_since_contact, self._now.unclear_blocks = 0, 0
        if in_contact:
            self._record(stamp, since, OVER)
        self._resume_learning(stamp)

    def _note_contact(self, stamp: int, transition: str) -> None:
        """Record the beginning or the end of a contact, and learn accordingly."""
        if transition == "begins":
            self.ratios.discard()
            self._record(stamp, stamp, CONTACT, evidence=self.contact.deviation)
            self._now.push, self._now.unknown = -math.inf, self.contact.in_new_motion
            self.innovations.discard_usual()
        elif transition:
            if transition == "over" or self.correction.estimating is None:
                cause = OVER if transition == "over" else UNEXPLAINED
                self._record(stamp, self.contact.since, cause)
            self._now.blocks_since_end, self._now.ended = 0, stamp
            self._resume_learning(stamp)

    def _keep_from_learning(self, stamp: int) -> None:
        """Keep what is, or may be, a contact's from learning.

        Where the model did not know the motion its own errors look like contacts, for as long as
        they are not learned. So there a contact's samples wait, and are learned when it is over, or
        longer than the stretches that are tested, unless a push explains them.
        """
        if not self.contact.active:
            if self.contact.suspicious:
                self.exclusions.defer(stamp)
        elif self._weighing:
            return
        elif not self._now.unknown or self._now.push > self.threshold:
            self.exclusions.exclude(stamp)
        elif stamp - self.contact.since < self._tested_ns or self._now.likely:
            self.exclusions.defer(stamp)
        else:
            self.exclusions.release()

    def _resume_learning(self, stamp: int) -> None:
        """Learn again, unless a payload is being estimated."""
        if not (self._weighing or self.contact.active):
            self.exclusions.release()
            self.exclusions.resume(stamp)

    def _push_block(self, block: Block) -> None:
        """Add a block to the stretches, which are tested with the next sample.

        Half a millisecond each: together they would keep messages waiting for a whole one.
        """
        before = self.correction.theta
        watching = self.correction.estimating is None and not self.contact.active
        self._whole.push(block, before, quiet=False)
        if not block.still:
            self.innovations.push(block, before, watching)
        elif not block.follows:
            self.innovations.clear()
        if self._now.learned_s < self.config.settle:
            self._now.learned_s += self._blocks.length
        else:
            self._now.untested = block

    def _test_block(self, block: Block) -> None:
        """Test the stretches that end with a block, or refine the change that is estimated."""
        if self.contact.active:
            self._now.blocks_since_contact = 0
        if block.still:
            self._test_standing(block)
            return
        self._now.blocks_since_contact += not self.contact.active
        self._now.blocks_since_end += 1
        if self.correction.estimating is not None:
            self._refine(block)
        finding, self._now.evidence = self._best_explanation()
        if self.contact.active:
            self._now.push = max(self._now.push, self._now.evidence.get(PUSH, -math.inf))
        pushed = finding is None or finding.hypothesis.cause == PUSH
        if finding is None or pushed or finding.score <= self.threshold:
            self._now.unclear_blocks = 0
            likely = self._payload_is_likely()
            if not (self.contact.active or self.contact.suspicious or likely):
                self.exclusions.release()
            return
        if finding.hypothesis.cause == PAYLOAD:
            self._now.likely = max(self._now.likely, finding.score)
        if not self._is_body(finding):
            # Something is there, but does not weigh anything for sure yet.
            self.exclusions.defer(block.start)
            self.innovations.discard_usual()
            return
        self._now.unclear_blocks += 1
        known = [
            score for name, score in self._now.evidence.items() if name in self.snapshots.names
        ]
        new = finding.hypothesis.cause == PAYLOAD and not finding.hypothesis.name
        clear = finding.margin > CLEAR_MARGIN
        clear &= not new or finding.score > max(known, default=-np.inf) + KNOWN_MARGIN
        steady = STEADY_BLOCKS * self._blocks.length * 1e9
        braked = new and self.contact.active and block.end - self.contact.since < steady
        if not braked and (clear or self._now.unclear_blocks > MAX_UNCLEAR_BLOCKS):
            self._accept(finding, block)
        else:
            self.exclusions.defer(block.start)

    def _test_standing(self, block: Block) -> None:
        """Test whether a payload was taken, or put down, that is known, while the robot stands.

        In one posture a new body explains any efforts, and an offset does: those of brakes that
        hold the arm, of a person who leans on it, of friction. So at rest a change is only
        reported where nothing about it is unknown; others are when the robot moves.
        """
        if not self.contact.suspicious and self._now.likely == 0.0:
            self.exclusions.release()
        since = round((block.end - self._now.ended) * 1e-9 / self._blocks.length)
        known = self._hypotheses({PUSH}, self.correction.theta, self.correction.offset)
        finding, self._now.evidence = self._best_of(self._whole, known, {PAYLOAD: since})
        if finding is None or not finding.hypothesis.name or finding.score <= self.threshold:
            return
        if finding.margin > CLEAR_MARGIN and finding.explains():
            self._accept(finding, block)

    def _payload_is_likely(self) -> bool:
        """Return whether the evidence for a payload is still above half its largest.

        What is learned meanwhile hides the payload, and is wrong when it is named.
        """
        names = (PAYLOAD, *self.snapshots.names)
        evidence = max(self._now.evidence.get(name, -np.inf) for name in names)
        if evidence <= LIKELY_SHARE * self._now.likely:
            self._now.likely = 0.0
        return self._now.likely > 0.0

    def _is_body(self, finding: Finding) -> bool:
        """Return whether a new payload's parameters are nearly those of a body, of some mass.

        A jerk that the model does not follow looks like inertia at the hand without a weight, and a
        push like a mass far from it, or with the inertia of a ring, which no body has.
        """
        found = finding.hypothesis
        if found.cause != PAYLOAD or found.name:
            return True
        scale = np.sqrt(np.sum(found.root**2, axis=1))
        estimate = Estimate.prior(scale) + finding.sums.restrict(found.columns)
        mean, covariance = estimate.mean, estimate.covariance
        least = max(MIN_MASS_SHARE * TYPICAL_MASS_KG, MASS_STDS * np.sqrt(covariance[0, 0]))
        if abs(mean[0]) <= least:
            return False
        sign = np.sign(mean[0])
        body = sign * nearest_payload(Snapshot(sign * mean, covariance))
        if np.linalg.norm(body[1:4]) > MAX_REACHES * TYPICAL_REACH_M * abs(body[0]):
            return False
        off = (body - mean) / scale
        return bool(finding.score - 0.5 * off @ estimate.information @ off > self.threshold)

    def _candidates(self) -> list[Hypothesis]:
        """Possible changes beyond the correction: a new cause, or another known payload."""
        wanted = {PAYLOAD, FRICTION, OFFSET, PUSH}
        return self._hypotheses(wanted, self.correction.theta, self.correction.offset)

    def _hypotheses(self, wanted: set[str], theta: Array, offset: Array) -> list[Hypothesis]:
        """The causes `wanted`, and the known payloads instead of that in theta (n_columns,).

        offset: (n,) that the present one came with, and that goes with it.
        """
        names = (name for name in self.snapshots.names if name != self.correction.name)
        known = {name: self.snapshots[name] for name in names}
        columns, slow = self._slow()
        return [
            h.beside(columns, slow, -offset) if h.name else h
            for h in hypotheses(self.causes, wanted, theta[self.correction.payload], known)
        ]

    def _slow(self) -> tuple[slice, Array]:
        """The columns of offsets (n,), and the deviations of a model's errors that last."""
        columns = next((c.columns for c in self.causes.all if c.name == OFFSET), slice(0, 0))
        return columns, self.innovations.slow.std[: columns.stop - columns.start]

    def _best_explanation(self) -> tuple[Finding | None, dict[str, float]]:
        """The best finding of all stretches, and every candidate's best score by its name."""
        # A stretch in which a contact ends tells of that. Friction is no force that comes and goes.
        since = self._now.blocks_since_end
        longest = {PAYLOAD: since, OFFSET: since, FRICTION: self._now.blocks_since_contact}
        return self._best_of(self.innovations, self._candidates(), longest)

    def _best_of(
        self, innovations: Innovations, candidates: list[Hypothesis], longest: dict[str, int]
    ) -> tuple[Finding | None, dict[str, float]]:
        """The same of these candidates. longest: see `weigh`."""
        correction = self.correction
        # A change may also have begun before the stretch, during what seemed a contact at first.
        began_before = self._now.blocks_since_contact <= AFTER_CONTACT_BLOCKS
        best: Finding | None = None
        scores: dict[str, float] = {}
        for begins in (True, False) if began_before else (True,):
            lengths, sums = innovations.windows.sums(begins=begins)
            if not len(lengths):
                continue
            sums = sums.shifted(correction.theta)
            finding, named = weigh(lengths, sums, candidates, correction.uncertainty, longest)
            scores = {name: max(value, scores.get(name, -np.inf)) for name, value in named.items()}
            if finding is not None and (best is None or finding.score > best.score):
                best = finding
        return best, scores

    def _count_restart(self, found: Hypothesis, stamp: int) -> bool:
        """Count an estimate that another cause replaces; report once that there are too many.

        What swings or rolls in the hand is another body at each moment, so that none lasts for as
        long as payloads are estimated. Returns whether the new cause is an event of its own.
        """
        estimated = self.correction.estimating
        if found.name or estimated is None or PAYLOAD not in (found.cause, estimated.cause):
            return True
        self._now.restarted.append(self.correction.held.mean)
        if len(self._now.restarted) == MAX_RESTARTS + 1:
            self._record(stamp, self._now.onset, UNEXPLAINED)
        return len(self._now.restarted) <= MAX_RESTARTS

    def _widen(self) -> None:
        """Let a payload be as uncertain as the estimates that did not last differ."""
        scatter = np.zeros((10, 10))
        if len(self._now.restarted) > MAX_RESTARTS:
            scatter = np.cov(np.array(self._now.restarted), rowvar=False)
        self.correction.widen(scatter)

    def _accept(self, finding: Finding, block: Block) -> None:
        found = finding.hypothesis
        tell = self._count_restart(found, block.end)
        self._now.onset = block.end - round(finding.length * self._blocks.length * 1e9)
        self._now.estimated_s = finding.length * self._blocks.length
        self._now.unclear_blocks = 0
        self._now.likely = 0.0
        self.contact.reset()
        self._now.blocks_since_contact = self._now.blocks_since_end = AFTER_CONTACT_BLOCKS + 1
        if found.cause == PAYLOAD:
            self.exclusions.exclude(self._now.onset)
            self.held.drop()
        if found.name:
            self._set_payload(found.name, block.end, finding.score)
            return
        self.correction.begin(found, finding.sums, self.innovations.slow.std)
        self._widen()
        self._now.payload = None
        if tell:
            self._record(block.end, self._now.onset, found.cause, found.name, finding.score)
        self._restart_windows()
        self._resume_learning(block.end)

    def _set_payload(self, name: str, stamp: int, evidence: float) -> None:
        """Hold a known payload, or none, from the change's onset on."""
        self._now.restarted.clear()
        self.correction.set_payload(name, self.snapshots[name])
        self.held.drop()
        self._now.payload = None
        self._record(stamp, self._now.onset, PAYLOAD, name, evidence)
        self._restart_windows()
        self._resume_learning(stamp)

    def _restart_windows(self) -> None:
        """Begin new stretches, since the correction became another."""
        self.innovations.restart()
        self._whole.restart()
        self._now.untested = None

    def _refine(self, block: Block) -> None:
        """Continue the estimation, and test whether another cause, or none, explains it better."""
        found = self.correction.estimating
        if found is None or self.innovations.last is None or self.contact.active:
            return
        own, nuisance = self.correction.payload, self.correction.nuisance
        gains = self.innovations.gain_errors(nuisance, own) if found.cause == PAYLOAD else None
        self.correction.add(self.innovations.last, gains)
        self._now.payload = None
        self._now.estimated_s += self._blocks.length
        seen = self.correction.seen
        candidates = [h for h in self._candidates() if not h.name]
        if not found.name:
            found = max(
                (h for h in candidates if h.cause == found.cause),
                key=lambda h: float(h.evidence(seen)),
            )
            self.correction.switch(found)
            known = self._hypotheses(set(), self.correction.accepted, self.correction.offset_before)
            if found.cause == PAYLOAD and known:
                again = max(known, key=lambda h: float(h.evidence(seen)))
                if again.evidence(seen) > found.evidence(seen) + CLEAR_MARGIN:
                    self._set_payload(again.name, block.end, float(again.evidence(seen)))
                    return
        others = [h for h in candidates if h.cause not in (PUSH, found.cause)]
        best = max(others, key=lambda h: float(h.evidence(seen)), default=found)
        score = float(best.evidence(seen))
        nothing = max(score, float(found.evidence(seen))) < -CLEAR_MARGIN
        if nothing or self._is_push(found, [h for h in candidates if h.cause == PUSH]):
            self._retract(block.end)
            return
        if best is not found and score > found.evidence(seen) + CLEAR_MARGIN:
            tell = self._count_restart(best, block.end)
            self.correction.switch(best)
            self._widen()
            self.held.drop()
            if best.cause == PAYLOAD:
                self.exclusions.exclude(block.start)
            else:
                self._resume_learning(block.end)
            if tell:
                self._record(block.end, self._now.onset, best.cause, "", score)
        if self._now.estimated_s >= self.config.payload_time:
            self._now.restarted.clear()
            self._widen()
            self.correction.accept()
            self._restart_windows()  # errors are those with the load from now on
            self._resume_learning(block.end)

    def _is_push(self, found: Hypothesis, pushes: list[Hypothesis]) -> bool:
        """Return whether a push explains what was seen since a payload was found better, for sure.

        Both beside errors that last: several seconds of a model's own errors look like a push.
        """
        if found.cause != PAYLOAD:
            return False
        seen, beside = self.correction.seen, self._slow()
        own = found.beside(*beside).evidence(seen)
        best = max(float(h.beside(*beside).evidence(seen)) for h in pushes)
        return best > float(own) + self.threshold

    def _retract(self, stamp: int) -> None:
        """Withdraw the change: without it the blocks since are explained better."""
        self.correction.retract()
        self.held.drop()
        self._restart_windows()
        self._record(stamp, self._now.onset, UNEXPLAINED)
        self._resume_learning(stamp)

    def _record(
        self, stamp: int, onset: int, cause: str, name: str = "", evidence: float = 0.0
    ) -> None:
        self.events.append(ChangeEvent(stamp, onset, cause, name, evidence))
        self.counts[name or cause] += 1

    def _report(self, stamp: int, external: Array | None) -> ChangeStatus:
        estimating, in_contact = self.correction.estimating, self.contact.active
        phase, cause, since = WATCHING, "", 0
        if self._now.learned_s < self.config.settle:
            phase = SETTLING
        elif in_contact:
            phase, cause, since = DISTURBED, CONTACT, self.contact.since
        elif estimating is not None:
            phase, cause, since = ESTIMATING, estimating.cause, self._now.onset
        self.status = ChangeStatus(
            stamp=stamp,
            phase=phase,
            cause=cause,
            since=since,
            learning=not self.exclusions.active,
            contact=in_contact,
            deviation=self.contact.deviation,
            external=external,
            evidence=self._now.evidence,
            threshold=self.threshold,
        )
        return self.status

    def verdict(self, stamp: int) -> str:
        """Return whether the sample at `stamp` (ns) is to be learned: LEARN, DEFER or EXCLUDE."""
        return self.exclusions.verdict(stamp)

    @property
    def payload(self) -> PayloadStatus | None:
        """The payload held, None for the bare hand. Costs some milliseconds after each block."""
        if self.correction.name == BARE:
            return None
        if self._now.payload is None:
            correction = self.correction
            settled = correction.estimating is None or correction.estimating.cause != PAYLOAD
            self._now.payload = payload_status(
                correction.held, self.causes.link, correction.name, settled
            )
        return self._now.payload

    def remember(self, name: str) -> None:
        """Store the payload held under a name.

        Raises ConfigurationError for an invalid name, and where nothing is held.
        """
        if self.correction.name == BARE:
            raise ConfigurationError(
                "nothing is held beyond what the model has learned: there is no payload to keep"
            )
        self.snapshots.store(name, self.correction.held)
        self.correction.call(name)
        self._now.payload = None

    def forget(self, name: str) -> None:
        """Remove a name; a payload that is held stays, without one. Raises ConfigurationError."""
        self.snapshots.remove(name)
        self.correction.forget(name)
        self._now.payload = None

    def recall(self, name: str) -> None:
        """Set the payload held from now on, or none ("bare"). Raises ConfigurationError."""
        self._now.restarted.clear()
        self.correction.set_payload(name, self.snapshots[name])
        self.held.drop()
        self._now.payload = None
        self._restart_windows()
        self.contact.reset()
        self._record(self.status.stamp, self.status.stamp, PAYLOAD, name)
        self._resume_learning(self.status.stamp)

    @property
    def _parts(self) -> dict[str, Any]:
        names = ("correction", "contact", "ratios", "snapshots", "held")
        others = {"noise": self.innovations.noise, "slow": self.innovations.slow}
        return {name: getattr(self, name) for name in names} | others

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        parts = self._parts.items()
        state = {f"{name}.{key}": v for name, part in parts for key, v in part.state().items()}
        link = as_array(self.causes.link)
        return state | {"settled": np.array(self._now.learned_s), "link": link}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`; from an empty one, of a model without changes, anew.

        Raises ConfigurationError where its payloads are those of another link.
        """
        self.reset()
        if not state:
            return
        if (link := as_text(state["link"])) != self.causes.link:
            raise ConfigurationError(
                f"its payloads are fixed to the link '{link}', but the parameter "
                f"'changes.payload_link' makes it '{self.causes.link}' here"
            )
        for name, part in self._parts.items():
            part.restore(sub_state(state, f"{name}."))
        self._now.learned_s = float(state["settled"])


class LearningExclusions:
    """Decides by their stamps (ns) which samples are learned; they may come late, in any order.

    From the possible beginning of a change on, samples are deferred. If it is a change, nothing
    since its onset is learned; if not, all of it is.
    """

    def __init__(self) -> None:
        self._deferred_from = math.inf
        # Beginnings and ends; the last one may have no end yet.
        self._excluded: deque[tuple[int, float]] = deque(maxlen=MAX_INTERVALS)

    @property
    def _lasts(self) -> bool:
        return len(self._excluded) > 0 and self._excluded[-1][1] == math.inf

    @property
    def active(self) -> bool:
        """Return whether present samples are deferred or excluded."""
        return self._deferred_from < math.inf or self._lasts

    def defer(self, stamp: int) -> None:
        """Defer samples from `stamp` on, unless they are deferred already."""
        if self._deferred_from == math.inf:
            self._deferred_from = stamp

    def release(self) -> None:
        """Learn the deferred samples: there was no change."""
        self._deferred_from = math.inf

    def exclude(self, stamp: int) -> None:
        """Exclude samples from `stamp` on, and the deferred ones."""
        if not self._lasts:
            self._excluded.append((int(min(stamp, self._deferred_from)), math.inf))
        self.release()

    def resume(self, stamp: int) -> None:
        """Learn samples later than `stamp` again."""
        if self._lasts:
            self._excluded.append((self._excluded.pop()[0], stamp))

    def restart(self, stamp: int) -> None:
        """Forget past intervals, since the clock went back to `stamp`.

        An exclusion continues from there; deferred samples are released.
        """
        lasts = self._lasts
        self._excluded.clear()
        self.release()
        if lasts:
            self.exclude(stamp)

    def verdict(self, stamp: int) -> str:
        """LEARN, DEFER or EXCLUDE, as far as is known now."""
        if any(start <= stamp <= end for start, end in self._excluded):
            return EXCLUDE
        return DEFER if stamp >= self._deferred_from else LEARN
