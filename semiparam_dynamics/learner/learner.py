"""Learning the inverse dynamics of one robot from its measurements, one after the other."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.arrays import NANO, Array
from semiparam_dynamics.base.errors import ConfigurationError, SampleError, StorageError
from semiparam_dynamics.base.parameters import to_flat
from semiparam_dynamics.base.storage import (
    check_finite,
    load_state,
    resuming,
    save_state,
    sub_state,
)
from semiparam_dynamics.changes.config import DEFER, EXCLUDE
from semiparam_dynamics.changes.contact import FILTERED, PAUSE, ContactDetector
from semiparam_dynamics.changes.touch import ContactEvents, Touch, TouchedLink, at_sensor
from semiparam_dynamics.dynamics.baseline import BaselinePrediction, NonparametricBaseline
from semiparam_dynamics.dynamics.estimator import LIVE, BlockPrediction, SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.predictor import PublishedModel
from semiparam_dynamics.dynamics.sample import Prediction, Sample
from semiparam_dynamics.dynamics.scores import RunningScores, ScoredSamples
from semiparam_dynamics.robot.model import RobotConfig, RobotModel, expected_scales
from semiparam_dynamics.samples.measurement import Measurement

if TYPE_CHECKING:
    from semiparam_dynamics.changes.monitor import ChangeMonitor
    from semiparam_dynamics.learner.config import InverseDynamicsConfig

MODELS = ("rigid_body", "nonparametric", "semiparametric")
KEPT_OUT = "during a change (changes.detect)"
LOCKED = "locked"  # where the joints that are not learned stand, beside a saved model's parameters
RECENT_SAMPLES = 1000.0  # that the recent scores follow, about
# s of motion after which errors over the measurement's variance mean something: before it has
# turned round, the variance is next to nothing. Of a known xMate 7 Pro such errors were up to 5 in
# the first second, up to 0.3 after three, and within a factor of 2.1 of the later after five.
MIN_SCORED_MOTION = 5.0
# ns between two samples that are tested for contacts, at least: a low-pass of 20 Hz needs no more.
MIN_CONTACT_STEP = 1_500_000
STEP_RATE = 0.02  # by which the time between messages follows the last one's
MAX_DEFERRED = 5000  # samples that wait for a verdict on a change; of more the oldest are learned


class Tested(NamedTuple):
    """The conditions of a sample's contact test."""

    ahead: float  # s, from the sample that was tested before
    paused: bool  # nothing came for longer than `filter.max_gap`
    fast: bool  # by `Sample.fast`: messages are dense enough for the wide low-pass


@dataclass(slots=True)
class Step:
    """A sample, its predictions, and the measurement that is to be learned of it."""

    sample: Sample
    prediction: Prediction  # as published: with the changes noticed, such as a payload
    unchanged: Prediction  # the learned model's own, without them
    target: Array | None  # (n_axes,) measurement without their effort; None: is not learned
    scored: bool = True  # see `ScoredSamples`
    tested: Tested | None = None  # of a sample that is tested for contacts

    def __repr__(self) -> str:
        said = f"semiparametric={self.prediction.semiparametric}, target={self.target}"
        return f"{type(self).__name__}(stamp={self.stamp}, {said})"

    @property
    def stamp(self) -> int:
        """Nanoseconds, of the message that the sample belongs to."""
        return self.sample.stamp

    @property
    def y(self) -> Array | None:
        """The measurement (n_axes,), filtered as the prediction; None where there is none."""
        return self.sample.y


def _require_robot(model: RobotModel, asked: RobotConfig) -> None:
    """Raise ConfigurationError where `asked` sets what the model was made without.

    Target and joints are left out: they are named when a model is made, and it shows them.
    """
    made, default = to_flat(model.config), to_flat(RobotConfig())
    told = [
        f"{name} is {made[name]} in the model and {value} in the configuration"
        for name, value in to_flat(asked).items()
        if name not in ("target", "joints") and value not in (default[name], made[name])
    ]
    if told:
        raise ConfigurationError(
            f"{'; '.join(told)}: make the model with it, RobotModel(urdf, config.robot)"
        )


class InverseDynamicsLearner:
    """Predicts measurements, learns them and scores the predictions.

    Each measurement passes :meth:`predict`, each step :meth:`admit`, and what that returns
    :meth:`update`. Two threads may share this work:

    - the one that takes messages calls `predict`, `detect_contact`, `admit` and `feedforward`. It
      owns the filter, the monitor of changes and the samples that wait for its verdict, and the
      model that predicts;
    - the one that learns calls `update`, `idle_update` and `publish`. It owns the estimator, the
      baseline and the scores. It may call `state`, too: the monitor's part of it is locked.

    Any other method, and reading what a thread owns, needs that thread to be at rest.

    Attributes
    ----------
    estimator, baseline: what learns; the baseline is None unless the parameter `comparison` is set.
    scores, recent: of the published predictions since :meth:`reset` or :meth:`load`, over all
        samples that are scored (`ScoredSamples`) and over the last ones in motion: at rest efforts
        hardly change, and soon nothing would be left of motion.
    changes: the monitor of changes; None unless the parameter `changes.detect` is set.
    contacts: what was told of contacts.
    external: (n_axes,) measured minus predicted of the last sample before the narrow low-pass, by
        which contacts are looked for; None before the first. external_at: its stamp, ns.
    bounded: how many predictions were not the model's own values, and why.
    external_bias: (n_axes,) what measured minus predicted was where nothing touched the robot, N m
        or N: kept with what was learned, and taken off external wrenches.
    """

    def __init__(self, model: RobotModel, config: InverseDynamicsConfig) -> None:
        _require_robot(model, config.robot)
        self.model = model
        self.config = config
        self.changes: ChangeMonitor | None = None
        self._changes_lock = Lock()
        self._published: PublishedModel | None = None
        self._touched_link: TouchedLink | None = None
        self.reset()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    def reset(self) -> None:
        """Forget everything learned; payloads that were named stay."""
        self.filter = SampleFilter(self.model, self.config.filter, fast=True)
        self.estimator = SemiparametricEstimator(self.model, self.config.estimator)
        self.baseline = self._new_baseline(self.config)
        self._score_anew()
        self.bounded: Counter[str] = Counter()
        self.external_bias: Array = np.zeros(self.model.n_axes)
        self._deferred: deque[Step] = deque()
        self._kept_out = 0
        self.contacts = ContactEvents(self._find_touch)
        self.external: Array | None = None
        self.external_at = 0
        self._restart_contact_test()
        self._tested_at = 0  # ns, stamp of the last sample that was tested
        self._step_time = 0.0  # s, between such
        self._wide_cutoff = self.config.filter.wide_cutoff  # Hz
        before, self.changes = self.changes, self._new_monitor()
        if before is not None and self.changes is not None:
            self.changes.snapshots = before.snapshots
        self._publish_anew()

    def _restart_contact_test(self) -> None:
        """Forget which errors are expected: those before are of another model."""
        efforts = self.model.config.target == "effort"
        self._detector = ContactDetector(
            self.config.changes, expected_scales(self.model).output, by_speed=efforts
        )
        self._tested_s = 0.0  # s of motion that was tested

    def _find_touch(self, q: Array, external: Array, covariance: Array, shares: Array) -> Touch:
        if self.model.config.target == "wrench":
            return at_sensor(q, external, covariance, shares)
        if self._touched_link is None:
            self._touched_link = TouchedLink(self.model)
        return self._touched_link.find(q, external, covariance, shares)

    def _publish_anew(self) -> None:
        published = self._published
        desired = published is not None and published.desired
        self.predict_beside_learning(published is not None, desired=desired)

    def _new_baseline(self, config: InverseDynamicsConfig) -> NonparametricBaseline | None:
        return NonparametricBaseline(self.model, config.estimator) if config.comparison else None

    def _follow_recent(self) -> None:
        keep = math.exp(-1.0 / RECENT_SAMPLES)
        self.recent = RunningScores(MODELS, self.model.n_axes, keep).expect_stds()
        self._motion, self._moved_at = 0.0, 0  # s that it has seen, and the last stamp

    def _score_anew(self) -> None:
        """Begin the scores: those before are of another model."""
        self.scores = RunningScores(MODELS, self.model.n_axes).expect_stds()
        self._follow_recent()
        self._scored = ScoredSamples(knows=self.estimator.n_learned > 0)

    def _new_monitor(self) -> ChangeMonitor | None:
        if not self.config.changes.detect:
            return None
        from semiparam_dynamics.changes.monitor import ChangeMonitor  # slow to import

        return ChangeMonitor(self.model, self.config.changes, self.config.filter)

    # Called for each message.

    def predict(self, measurement: Measurement, *, contacts: bool = False) -> Step | None:
        """Take in a measurement; predict the instant before it, unless the filters only start.

        contacts : :meth:`detect_contact` follows, which needs the prediction before the narrow
            low-pass, too.

        Raises SampleError where its arrays are of another robot, where they or the stamp are no
        real numbers, and for a stamp with a fraction.
        """
        sample = self.filter.push(measurement)
        return None if sample is None else self.predict_sample(sample, contacts=contacts)

    def predict_sample(self, sample: Sample, *, contacts: bool = False) -> Step:
        """:meth:`predict` of a measurement that is filtered already, as those of a recording."""
        tested = self._test_next(sample, contacts)
        published, fast = self._published, tested is not None
        if published is None:
            unchanged = self.estimator.predict(sample, fast=fast)
        else:
            unchanged = published.predictor.predict(sample, published.last, fast=fast)
        prediction = unchanged if self.changes is None else self._changed(sample, unchanged)
        target = sample.y if sample.informative else None  # None where nothing was measured
        return Step(sample, prediction, unchanged, target, self._scored.take(sample), tested)

    def _changed(self, sample: Sample, unchanged: Prediction) -> Prediction:
        assert self.changes is not None
        with self._changes_lock:
            prediction = self.changes.apply(sample, unchanged)
        if prediction is unchanged:
            return unchanged
        bound = self.estimator.bound if self._published is None else self._published.bound
        within = bound(prediction.semiparametric, unchanged.semiparametric)
        return dataclasses.replace(prediction, semiparametric=within)

    def _test_next(self, sample: Sample, contacts: bool) -> Tested | None:
        """The conditions of the next contact test; None where the sample is left out.

        Of more than some 600 samples a second only some are tested.
        """
        ahead = sample.stamp - self._tested_at
        lately = 0 <= ahead < MIN_CONTACT_STEP
        if self.changes is not None:
            # Of those that may be learned, blocks are made: none is left out.
            left_out = lately and sample.between
        else:
            wanted = contacts and sample.y is not None and self.config.changes.contact > 0.0
            left_out = lately or not wanted
        if left_out:
            return None
        self._tested_at = sample.stamp
        paused = not 0.0 < ahead * NANO < self.config.filter.max_gap
        if not paused:
            self._step_time += STEP_RATE * (ahead * NANO - self._step_time)
        # Else a single message that is off would be a contact.
        dense = FILTERED * self._step_time * self._wide_cutoff <= 1.0
        return Tested(ahead * NANO, paused, dense and sample.fast is not None)

    def _note_contact(self, sample: Sample, external: Array, detector: ContactDetector) -> None:
        self.external, self.external_at = external, sample.stamp
        self.contacts.follow(sample.stamp, sample.q, external, detector)

    def detect_contact(self, step: Step) -> None:
        """Look for a contact in a step that was predicted with `contacts`, by its own prediction.

        With `changes.detect` :meth:`admit` does. Nothing that is predicted or learned changes by
        it.
        """
        config, sample, y = self.config.changes, step.sample, step.sample.y
        if self.changes is not None:
            return
        if y is None:
            if self._is_untested(step.stamp):
                self.end_contact()
                self._detector.reset()
            return
        if config.contact <= 0.0:
            if self._detector.active:  # switched off meanwhile
                self._detector.reset()
                self.contacts.follow(step.stamp, sample.q, y, self._detector)
            return
        if step.tested is None or not step.unchanged.residual.ready:
            return
        before, predicted, expected, cutoff = self._before_low_pass(step)
        if before.y is None:
            return
        if step.tested.paused:
            self._detector.reset()
        elif sample.informative or sample.between:
            self._tested_s += step.tested.ahead
        external, confidence = before.y - predicted, step.unchanged.confidence
        speeds = before.dq if self.model.config.target == "effort" else None
        if self._tested_s >= 0.5 * config.settle:
            shown = step.stamp, external, confidence, speeds, expected
            tested = self._tested_s >= config.settle
            self._detector.add(*shown, cutoff=cutoff, tested=tested)
        self._note_contact(sample, external, self._detector)

    def _before_low_pass(self, step: Step) -> tuple[Sample, Array, Array | None, float]:
        """The sample that is tested, its prediction, what is expected of it, and its cut-off, Hz.

        What is expected tells how fast the prediction changes where the sample itself is tested.
        """
        sample, unchanged = step.sample, step.unchanged
        assert step.tested is not None
        if step.tested.fast and sample.fast is not None and unchanged.fast is not None:
            return sample.fast, unchanged.fast, None, self._wide_cutoff
        return sample, unchanged.semiparametric, unchanged.fast, 0.0

    def end_contact(self) -> None:
        """End a contact that is under way, where no step follows by which it would be over."""
        self.contacts.end(self._detector if self.changes is None else self.changes.contact)

    def admit(self, step: Step, *, learning: bool = True) -> list[Step]:
        """The measured steps that :meth:`update` is to take now, in order.

        Without `changes.detect` that is the step itself. With it the step is tested for changes,
        which the predictions after it contain, and waits for the monitor's verdict, which may be
        that it is not to be learned.

        learning : False: what is returned is only scored, and of a payload's errors nothing is
            learned either.
        """
        if self.changes is not None and step.tested is not None:
            self._watch(step, self.changes)
        if step.y is None:
            return []
        if self.changes is None:
            return [step if learning else dataclasses.replace(step, target=None)]
        self._deferred.append(step)
        admitted = []
        while self._deferred:
            verdict = self.changes.verdict(self._deferred[0].stamp)
            if verdict == DEFER and len(self._deferred) <= MAX_DEFERRED:
                break
            first = self._deferred.popleft()
            self._kept_out += verdict == EXCLUDE
            target = None
            if learning:
                with self._changes_lock:
                    target = None if verdict == EXCLUDE else self._without_changes(first)
                    self.changes.learn_held(first.sample, first.unchanged)
            admitted.append(dataclasses.replace(first, target=target))
        return admitted

    def _watch(self, step: Step, changes: ChangeMonitor) -> None:
        before, predicted, expected, _ = self._before_low_pass(step)
        fast = None
        if before is not step.sample:
            fast = dataclasses.replace(step.unchanged, semiparametric=predicted)
        with self._changes_lock:
            changes.watch(step.sample, step.unchanged, fast, expected)
            if (external := changes.external) is not None:
                self._note_contact(step.sample, external, changes.contact)
            elif self._is_untested(step.stamp):
                self.end_contact()
                changes.break_off(self.external_at)

    def _is_untested(self, stamp: int) -> bool:
        """True if a contact was reported, and since long nothing is measured that could end it."""
        return self.contacts.touched and not 0 <= stamp - self.external_at <= PAUSE

    def give_up(self) -> list[Step]:
        """The steps that still wait for a verdict when nothing follows: they are only scored."""
        waiting = [dataclasses.replace(step, target=None) for step in self._deferred]
        self._deferred.clear()
        return waiting

    def _without_changes(self, step: Step) -> Array | None:
        sample = step.sample
        if sample.y is None or not sample.informative:
            return None
        if self.changes is None or not self.changes.correction.active:
            return sample.y
        return sample.y - self.changes.effort(sample, step.unchanged)

    def feedforward(
        self,
        q: npt.ArrayLike,
        dq: npt.ArrayLike,
        ddq: npt.ArrayLike,
        *,
        one_motion: bool = True,
    ) -> BlockPrediction:
        """The estimator's `feedforward`, with the changes noticed, such as a payload.

        one_motion : whether the states, (k, n_joints) each, are one motion that begins where the
            last measurement was; False: each is a state for itself, after a long way at its dq,
            and the answer depends on nothing but the model.

        Raises SampleError for other shapes, for values that are no real numbers,
        not finite, or so large that there is no finite answer, and
        ConfigurationError where predictions are made beside learning without `desired`.
        """
        q, dq, ddq = self._states(q, dq, ddq)
        stops = self.filter.stops_along(q) if one_motion else None
        with self._whole_model() as model:
            predicted = model.feedforward(q, dq, ddq, stops)
            if not all(np.isfinite(std).all() for std in predicted.stds.values()):
                raise SampleError("q, dq and ddq are too large: there is no finite answer")
            if self.changes is None or not self.changes.correction.active:
                return predicted
            for k, state in enumerate(zip(q, dq, ddq, strict=True)):
                sample = model.sample(*state, stops=None if stops is None else stops[k])
                unchanged = model.predict(sample)
                with self._changes_lock:
                    changed = self.changes.apply(sample, unchanged)
                for name in ("rigid_body", "semiparametric"):
                    predicted.values[name][k] = model.bound.within(getattr(changed, name))
                    predicted.stds[name][k] = getattr(changed, f"{name}_std")
        return predicted

    def _states(self, *given: npt.ArrayLike) -> list[Array]:
        try:
            if any(np.iscomplexobj(values) for values in given):
                raise TypeError
            states = [np.asarray(values, dtype=np.float64) for values in given]
        except (TypeError, ValueError, OverflowError):
            raise SampleError("q, dq and ddq must be arrays of real numbers") from None
        shapes = [state.shape for state in states]
        if states[0].ndim != 2 or set(shapes) != {(len(states[0]), self.model.n_joints)}:
            raise SampleError(
                f"q, dq and ddq must each be (k, {self.model.n_joints}), k states of "
                f"{self.model.n_joints} joints, not {', '.join(map(str, shapes))}"
            )
        if not all(np.isfinite(state).all() for state in states):
            raise SampleError("q, dq and ddq must be finite")
        return states

    # Called where learning is done.

    def update(
        self, steps: Sequence[Step], between: Callable[[], None] = lambda: None
    ) -> list[BaselinePrediction | None]:
        """Learn the steps that have a target, and score all of them, in order.

        Where predictions are made beside learning, what is learned does not depend on them: errors
        of predictions that are some ten milliseconds old would widen the deviations on a busy
        machine. The estimator assesses what it learns, or the last sample where it learns none.
        `between` is called after each part of the work that takes
        long.

        Returns the baseline's prediction of each; None where there is no baseline.
        """
        baselines: list[BaselinePrediction | None] = []
        published, assessed = self._published, False
        for step in steps:
            learned, sample, prediction = False, step.sample, step.unchanged
            if step.target is not None:
                if step.target is not sample.y:
                    sample = dataclasses.replace(sample, y=step.target)
                if published is not None:
                    prediction, assessed = published.assess(self.estimator, sample), True
                    between()
                self.estimator.update(sample, prediction)
                between()
                learned = not self.estimator.gate.closed
            elif published is not None and step is steps[-1] and not assessed:
                published.assess(self.estimator, sample)
            baseline = None
            if self.baseline is not None:
                baseline = self.baseline.predict(step.sample)
                if learned:
                    self.baseline.update(step.sample, baseline)
            baselines.append(baseline)
        self._score(steps, baselines)
        return baselines

    def _score(self, steps: Sequence[Step], baselines: list[BaselinePrediction | None]) -> None:
        values, stds, measured, moving = [], [], [], []
        nothing = np.full(self.model.n_axes, np.nan)
        for step, baseline in zip(steps, baselines, strict=True):
            if step.y is None or step.sample.between or not step.scored:
                continue  # as in an evaluation
            p, b = step.prediction, (nothing, nothing)
            if baseline is not None:
                b = baseline.nonparametric, baseline.nonparametric_std
            if step.sample.informative:
                passed = (step.stamp - self._moved_at) * NANO
                self._motion += passed if 0.0 < passed < self.config.filter.max_gap else 0.0
                self._moved_at = step.stamp
            measured.append(step.y)
            moving.append(step.sample.informative)
            values.append((p.rigid_body, b[0], p.semiparametric))
            stds.append((p.rigid_body_std, b[1], p.semiparametric_std))
        if measured:
            arrays = np.array(measured), np.array(values), np.array(stds)
            self.scores.add_arrays(*arrays)
            self.recent.add_arrays(*(array[moving] for array in arrays))

    def idle_update(self, sample: Sample) -> None:
        """Have later predictions' deviations follow a sample that is not learned.

        Where a `Predictor` makes predictions these would stay those of the last sample learned.
        Samples are to come in the order of their stamps.
        """
        if self._published is not None:
            self._published.assess(self.estimator, sample)

    def publish(self) -> None:
        """Let predictions know what was learned, where predictors make them."""
        if self._published is not None:
            self._published.write(self.estimator)

    # Called with both at rest.

    def predict_beside_learning(self, enabled: bool, *, desired: bool = False) -> None:
        """Predict by what was published from now on, see :meth:`publish`, or by the estimator.

        desired : :meth:`feedforward` is to be asked, too.
        """
        self._published = None
        self.estimator.bound.counts = Counter() if enabled else self.bounded
        if enabled:
            self._published = PublishedModel(self.estimator, self.bounded, desired)

    @contextmanager
    def _whole_model(self) -> Iterator[SemiparametricEstimator]:
        if self._published is None:
            yield self.estimator
        else:
            with self._published.read() as model:
                yield model

    def configure(self, config: InverseDynamicsConfig) -> None:
        """Continue with other values of the live parameters; see the estimator's `configure`.

        A baseline that is begun has no scores from before; over all samples its scores stay
        unknown (NaN) until the next :meth:`reset`. Raises what :meth:`check` does; the learner is
        then what it was.
        """
        self.check(config)
        self.estimator.configure(config.estimator)
        if self.baseline is not None:
            self.baseline.configure(config.estimator)
        if config.comparison != self.config.comparison:
            self._follow_recent()
            self.baseline = self._new_baseline(config)
        if self.changes is not None:
            self.changes.configure(config.changes)
        self._detector.config = config.changes
        self.config = config
        self._publish_anew()

    def check(self, config: InverseDynamicsConfig) -> None:
        """Raise ConfigurationError where :meth:`configure` can't continue with `config`."""
        self.estimator.check(config.estimator)
        if self.baseline is not None:
            self.baseline.check(config.estimator)

    @property
    def telling(self) -> bool:
        """True if the recent scores have seen enough motion for normalised errors."""
        return self._motion >= MIN_SCORED_MOTION

    @property
    def compared(self) -> tuple[str, ...]:
        """The models that are scored."""
        return tuple(name for name in MODELS if self.baseline is not None or name != MODELS[1])

    @property
    def dropped(self) -> Counter[str]:
        """Measurements that the filter left out and samples that were not learned, by reason."""
        dropped = self.filter.dropped + self.estimator.gate.dropped
        dropped[KEPT_OUT] += self._kept_out
        return +dropped

    def copy(self) -> InverseDynamicsLearner:
        """Another learner that knows the same, as one resumed from a file, and learns on its own.

        Its filter, its counts, its scores and its gate begin anew.
        """
        other = InverseDynamicsLearner(self.model, self.config)
        other.estimator.copy_from(self.estimator)
        if self.baseline is not None and other.baseline is not None:
            other.baseline.copy_from(self.baseline)
        if self.changes is not None and other.changes is not None:
            other.changes.restore(self.changes.state())
        other.external_bias = self.external_bias
        other._score_anew()
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> InverseDynamicsLearner:
        """Another learner that goes on as this one would, filter, counts and scores included.

        The robot's model is shared: nothing changes it.
        """
        other = object.__new__(type(self))
        memo |= {id(self): other, id(self.model): self.model, id(self._changes_lock): Lock()}
        if self._published is not None:
            memo |= {id(lock): Lock() for lock in self._published.locks}
        other.__dict__ = {name: deepcopy(value, memo) for name, value in vars(self).items()}
        return other

    def __reduce_ex__(self, protocol: object) -> str:
        raise StorageError(
            "A learner can't be pickled: save(path) and load(path) write and read what it learned, "
            "and copy() makes another one."
        )

    def identity(self) -> dict[str, object]:
        """The properties that a saved model must share to be loaded here."""
        return self.estimator.identity()

    def parameters(self) -> dict[str, object]:
        """All parameters, the joints that are learned, and where the others are locked.

        Kept beside what is saved.
        """
        joints = {"joints": self.model.joint_names, LOCKED: self.model.locked}
        return {**to_flat(self.config), **joints}

    def state(self) -> dict[str, Array]:
        """Everything learned, and what changed since, as named arrays."""
        state = self.estimator.state()
        if self.changes is not None:
            with self._changes_lock:
                changes = self.changes.state()
            state |= {f"changes.{name}": value for name, value in changes.items()}
        if self.external_bias.any():
            state["external.bias"] = self.external_bias.copy()
        return state

    def save(self, path: str | Path) -> None:
        """Write what was learned to a file. Raises StorageError."""
        save_state(path, self.identity(), self.state(), parameters=self.parameters())

    def load(self, path: str | Path) -> None:
        """Resume from a saved file. Raises StorageError; the learner is then what it was."""
        state = load_state(path, self.identity(), ignore=LIVE)
        with resuming(path):
            check_finite(state)
            # On trial: what cannot be resumed from must not touch this one.
            InverseDynamicsLearner(self.model, self.config)._restore(state)
        self.end_contact()  # it was felt by the model before
        self._restore(state)
        self._restart_contact_test()
        self._deferred.clear()
        self._score_anew()
        self._publish_anew()

    def _restore(self, state: dict[str, Array]) -> None:
        if self.changes is not None:
            self.changes.restore(sub_state(state, "changes."))
        self.estimator.restore(state)
        self.estimator.configure(self.config.estimator)
        bias = state.get("external.bias", np.zeros(self.model.n_axes))
        if bias.shape != (self.model.n_axes,):
            raise ValueError("an external bias of another number of axes")
        self.external_bias = bias.copy()
