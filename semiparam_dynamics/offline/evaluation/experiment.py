"""Evaluate the learner on recordings, under all protocols, in one pass over the data."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from semiparam_dynamics import __version__
from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.base.parameters import replace, to_flat
from semiparam_dynamics.dynamics.filtering import (
    BLOCK,
    SETTLING_PERIODS,
    FilterConfig,
    SampleFilter,
)
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.dynamics.scores import RunningScores, ScoredSamples
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun
from semiparam_dynamics.offline.evaluation.scored_run import ALL_MODELS, LearnedStates
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement

# Of the time from the first motion on, where no recordings are named for training; and s before it
# that at least count as motion.
TRAINING_SHARE, STARTING = 0.6, 0.5
UNSCORED = "not scored, standing still before anything was learned"

# Steps at the end that are timed, and before them some that make what they need ready.
TIMED, WARM_UP = 128, 16


@dataclass(frozen=True)
class Noticed:
    """A change that a run has noticed; see `ChangeEvent`. Times are s into the recording."""

    protocol: str
    recording: int  # its number among those that are tested
    time: float  # when it was noticed
    onset: float
    cause: str
    name: str  # of a payload that was known


@dataclass(frozen=True)
class Recording:
    """A bag, and what identifies its measurements wherever it lies."""

    path: str
    begin: int  # stamp of the first measurement, ns
    seconds: float  # from there to the last
    measurements: int
    states: str  # hash of positions, since logs without a date all begin at one stamp


class CoveredTime:
    """The time that a recording's measurements cover: the steps from each to the next.

    Pauses longer than `max_gap` (s) are left out, as where a clock was set while it ran, and so are
    steps of a clock that went back. `total` is that of the whole recording, s.
    """

    def __init__(self, recording: Sequence[Measurement], max_gap: float) -> None:
        self._stamps = [measurement.stamp for measurement in recording]
        self._until = [0] * len(self._stamps)  # ns
        self._next = 0
        gap, covered = round(max_gap * 1e9), 0
        last = self._stamps[0] if self._stamps else 0
        for k, stamp in enumerate(self._stamps):
            step = stamp - last
            if not -gap <= step <= 0:  # nor a message that comes late
                covered += step if 0 < step <= gap else 0
                last = stamp
            self._until[k] = covered
        self.total = covered * 1e-9

    def at(self, stamp: int) -> float:
        """Until the measurement of that stamp, s; to be asked in the recording's order."""
        while self._stamps[self._next] != stamp:
            self._next += 1
        return self._until[self._next] * 1e-9


class TrainingPart:
    """The first share of the recordings' time, from their first informative sample on.

    While the arm stands nothing is learned, however long. What the filters take to begin is no
    standing: where the first informative sample comes that soon, the time is counted from the
    beginning.

    total: s of all recordings.
    """

    def __init__(self, total: float, config: FilterConfig) -> None:
        starting = STARTING
        if config.cutoff > 0.0:
            starting += SETTLING_PERIODS / config.cutoff + SETTLING_PERIODS / config.wide_cutoff
        self._total = total
        # In a shorter recording the whole training part could pass before anything is learned.
        self._starting = min(starting, TRAINING_SHARE * total)
        self._end: float | None = None

    def is_over(self, sample: Sample, elapsed: float) -> bool:
        """Test whether a sample, `elapsed` s into the recordings, is past it; for all in turn."""
        if self._end is None:
            if not sample.informative:
                return False
            begin = elapsed if elapsed > self._starting else 0.0
            self._end = begin + TRAINING_SHARE * (self._total - begin)
        return elapsed > self._end


@dataclass(frozen=True)
class Origin:
    """The files that an evaluation was made of, for results.json."""

    tested: tuple[Recording, ...]
    trained: tuple[Recording, ...] = ()
    urdf: str = ""  # path of its file, or of the bag that holds it
    urdf_sha256: str = ""
    model: str = ""  # path of the saved model that it began from


@dataclass
class Evaluation:
    """Scores of an evaluation; `results` is the content of results.json."""

    model: RobotModel
    config: InverseDynamicsConfig
    runs: dict[str, ProtocolRun]
    timing: list[float] = field(default_factory=list)  # s, a step of the last samples, as live
    skipped: Counter[str] = field(default_factory=Counter)
    noticed: list[Noticed] = field(default_factory=list)  # with `changes.detect`
    received: int = 0  # messages of the recordings that are tested, those left out included
    samples: int = 0
    motion: float = 0.0  # s between samples that follow each other
    standing: float = 0.0  # of them those in which no joint moved
    tested_on: tuple[str, ...] = ()  # names for the report, if the caller knows them
    trained_on: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()  # sentences on recordings with faults
    origin: Origin | None = None  # if the caller knows it
    command: str = ""  # that made it
    date: str = field(default_factory=lambda: datetime.now(timezone.utc).isoformat("T", "seconds"))

    def repeated_share(self) -> float | None:
        """Share of the frozen samples whose state was learned before; None if it isn't known."""
        frozen = self.runs.get("frozen")
        if frozen is None or frozen.repeats is None or not frozen.scores.samples:
            return None
        return frozen.scored.repeated.samples / frozen.scores.samples

    def scores(self) -> dict[str, RunningScores]:
        """The scores by protocol, and by the parts of the samples that are scored apart."""
        scores = {protocol: run.scores for protocol, run in self.runs.items()}
        for run in self.runs.values():
            scores |= run.scored.scores_apart()
        return scores

    def results(self) -> dict[str, object]:
        """The contents of results.json; NaN becomes null."""
        microseconds = np.array(self.timing or [np.nan]) * 1e6
        results: dict[str, object] = {
            "samples": self.samples,
            "rate_hz": self.samples / self.motion if self.motion > 0.0 else None,
            "target": self.model.config.target,
            "axes": list(self.model.axes),
            "scores": {
                protocol: {
                    name: {
                        "rmse": score.rmse(name).tolist(),
                        "nmse": score.nmse(name).tolist(),
                        "coverage": score.coverage(name).tolist(),
                    }
                    for name in ALL_MODELS
                }
                for protocol, score in self.scores().items()
            },
            "scored": {protocol: score.samples for protocol, score in self.scores().items()},
            "timing_us": {
                "p50": float(np.percentile(microseconds, 50)),
                "p99": float(np.percentile(microseconds, 99)),
                "max": float(microseconds.max()),
            },
            "repeated_share": self.repeated_share(),
            "skipped": dict(sorted(self.skipped.items())),
            "parameters": to_flat(self.config),
            "seed": self.config.estimator.seed,
            "version": __version__,
            "origin": None if self.origin is None else asdict(self.origin),
            "run": {"command": self.command, "date": self.date},
        }
        if self.config.changes.detect:
            results["changes"] = [asdict(change) for change in self.noticed]
        return {name: _strict(value) for name, value in results.items()}


def evaluate(
    model: RobotModel,
    config: InverseDynamicsConfig,
    test: Sequence[Sequence[Measurement]],
    train: Sequence[Sequence[Measurement]] = (),
    progress: Callable[[float], None] = lambda share: None,
    *,
    start: str | Path = "",
) -> Evaluation:
    """Lead the models through recordings, each a sequence of measurements in order.

    With `train`, the models first learn those, and `test` is scored under the three protocols;
    likewise with `start`, a saved model that the estimator continues from. (The nonparametric
    baseline is in no file: it learns `test` only, and has no frozen scores.) Without either,
    `test` is scored from its first motion on, sequential and delayed: while the arm stands before
    anything was learned, the learned models predict nothing. The models as they are after 60 % of
    its time from there on are scored `frozen` on the rest; `sequential_rest` and `delayed_rest` are
    the other two protocols' scores on that rest alone.

    `progress` is called with the share of the work done. Raises BagError if nothing could be
    scored, and StorageError if `start` can't be read or is of another robot or configuration.
    """
    first = _first_run(model, config, start)
    evaluation = Evaluation(model, config, {})
    learned, every = LearnedStates(model.turning), first.every_sample
    clocks = [CoveredTime(r, config.filter.max_gap) for r in (*train, *test)]
    total = sum(clock.total for clock in clocks) or 1.0
    done = 0.0
    for recording, clock in zip(train, clocks, strict=False):
        for sample, elapsed, _ in _samples(evaluation, recording, clock, every=every):
            first.step(sample, score=False)
            if sample.informative:
                learned.add(sample)
            progress(min((done + elapsed) / total, 1.0))
        done += clock.total
    frozen: ProtocolRun | None = None
    part = TrainingPart(sum(clock.total for clock in clocks[len(train) :]), config.filter)
    if train or start:
        frozen = first.branch("frozen", learned.repeats())
    last: deque[tuple[Sample, float]] = deque(maxlen=WARM_UP + TIMED)
    trained = done
    evaluation.samples, evaluation.motion, evaluation.standing = 0, 0.0, 0.0
    evaluation.received = sum(map(len, test))
    evaluation.skipped.clear()  # the results are of the test recordings
    dropped = first.dropped
    _noticed(first, test, 0)
    scored = ScoredSamples(knows=frozen is not None)
    with ThreadPoolExecutor(1) as worker:
        first.add_delayed(worker)
        for number, (recording, clock) in enumerate(zip(test, clocks[len(train) :], strict=True)):
            for sample, elapsed, spent in _samples(evaluation, recording, clock, every=every):
                if frozen is None and part.is_over(sample, done - trained + elapsed):
                    first.score_rest()
                    frozen = first.branch("frozen", learned.repeats())
                score = scored.take(sample)
                if not (score or sample.between or sample.y is None):
                    evaluation.skipped[UNSCORED] += 1
                first.step(sample, score=score)
                if frozen is not None:
                    frozen.step(sample, score=score)
                elif sample.informative:
                    learned.add(sample)
                if sample.y is not None and not sample.between:
                    last.append((sample, spent))
                progress(min((done + elapsed) / total, 1.0))
            done += clock.total
            for run in (first, frozen):
                evaluation.noticed += _noticed(run, test, number)
        first.finish()
        if frozen is not None:
            frozen.finish()
    runs = {"sequential": first, "delayed": first.delayed, "frozen": frozen}
    evaluation.runs = {name: run for name, run in runs.items() if run is not None}
    evaluation.skipped.update(first.dropped - dropped)
    evaluation.timing = _live_steps(first.in_turn(), list(last))
    if not first.scores.samples:
        skipped = ", ".join(f"{n} x {why}" for why, n in evaluation.skipped.items())
        why = skipped or "no messages"
        raise BagError(f"no sample of the recordings could be scored ({why})")
    return evaluation


def _first_run(model: RobotModel, config: InverseDynamicsConfig, start: str | Path) -> ProtocolRun:
    """The sequential run, which knows what the saved model `start` does, if there is one."""
    learner = InverseDynamicsLearner(model, replace(config, comparison=True))
    if start:
        learner.load(start)
    return ProtocolRun(learner, "sequential")


def _noticed(
    run: ProtocolRun | None, recordings: Sequence[Sequence[Measurement]], number: int
) -> list[Noticed]:
    """The changes that a run has noticed since it was last asked, up to this recording's end."""
    if run is None:
        return []
    noticed = []
    for event in run.events:
        # A change that ends with a recording is reported with the next one's first sample.
        times = [(k, r[0].stamp, r[-1].stamp) for k, r in enumerate(recordings[: number + 1]) if r]
        within = [(k, start) for k, start, end in times if start <= event.stamp <= end]
        k, start = (within or [time[:2] for time in times])[-1]
        time, onset = ((stamp - start) * 1e-9 for stamp in (event.stamp, event.onset))
        noticed.append(Noticed(run.protocol, k, time, onset, event.cause, event.name))
    run.events.clear()
    return noticed


def _samples(
    evaluation: Evaluation, recording: Sequence[Measurement], covered: CoveredTime, *, every: bool
) -> Iterator[tuple[Sample, float, float]]:
    """Samples of a recording, the `CoveredTime` into it (s), and what filtering took (s).

    A recording is filtered in blocks; each sample of one counts as having taken its share.
    every: also those `between` the ones that are learned, which are not counted.
    """
    changes = evaluation.config.changes.detect
    sampler = SampleFilter(evaluation.model, evaluation.config.filter, fast=changes)
    # Those that are not learned for coming too soon are scored as little: ten times as many
    # samples of a recording at 1 kHz add nothing to it.
    samples = sampler.filter_recording(recording, between=every)
    last: int | None = None
    while True:
        before = time.perf_counter()
        block = list(itertools.islice(samples, BLOCK))
        spent = (time.perf_counter() - before) / max(len(block), 1)
        for sample in block:
            evaluation.samples += not sample.between
            step = 0.0 if last is None else (sample.stamp - last) * 1e-9
            step = step if 0.0 < step <= evaluation.config.filter.max_gap else 0.0
            evaluation.motion += step
            if not (sample.informative or sample.between):
                evaluation.standing += step
            last = sample.stamp
            yield sample, covered.at(sample.stamp), spent
        if not block:
            break
    evaluation.skipped.update(sampler.dropped)


def _live_steps(
    take: Callable[[Sample], object], samples: Sequence[tuple[Sample, float]]
) -> list[float]:
    """Measure the time (s) to filter, predict and learn these samples one by one, as a node does.

    Its share of what filtering the block took stands for the filter.
    """
    times = []
    for sample, spent in samples:
        started = time.perf_counter()
        take(sample)
        times.append(spent + time.perf_counter() - started)
    return times[WARM_UP:] or times


def _strict(value: object) -> object:
    """The same with null for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {str(key): _strict(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
