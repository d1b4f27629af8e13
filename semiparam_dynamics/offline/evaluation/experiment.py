"""Evaluate the learner on recordings, under all protocols, in one pass over streams of them."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from functools import cached_property
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
from semiparam_dynamics.offline.evaluation.protocols import (
    ALL_MODELS,
    IDENTIFIED,
    LearnedStates,
    ProtocolRun,
)
from semiparam_dynamics.offline.evaluation.verdict import Verdict, judge
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.regressor import OPTIONAL
from semiparam_dynamics.samples.measurement import Measurement

# Of the time from the first motion on, where no recordings are named for training; and s before it
# that at least count as motion.
TRAINING_SHARE, STARTING = 0.6, 0.5
UNSCORED = "not scored, standing still before anything was learned"

# Steps at the end that are timed, and before them some that make what they need ready.
TIMED_STEPS, WARM_UP_STEPS = 128, 16


@dataclass(frozen=True)
class Noticed:
    """A change that a run has noticed; see `ChangeEvent`. Times are s into the recording."""

    protocol: str
    recording: int  # its number among those that are tested
    time: float  # when it was noticed
    onset: float
    cause: str
    name: str  # of a payload that was known
    # Of a payload whose estimation ended: `link`, `mass` and `mass_std` in kg, `center` and
    # `center_std` in m in the link's frame.
    payload: Mapping[str, object] | None = None


@dataclass(frozen=True)
class RecordingOrigin:
    """A bag, and what identifies its measurements wherever it lies."""

    path: str
    begin: int  # stamp of the first measurement, ns
    seconds: float  # from there to the last
    measurements: int
    states: str  # hash of positions, since logs without a date all begin at one stamp


class CoveredTime:
    """The time that a recording's measurements cover: the steps from each to the next.

    Pauses longer than `max_gap` (s) are left out, as where a clock was set while it ran, and so are
    steps of a clock that went back. `total` is that until the last measurement, s.
    """

    def __init__(self, max_gap: float, stamps: Iterable[int] = ()) -> None:
        self._gap = round(max_gap * 1e9)
        self._last: int | None = None
        self._covered = 0  # ns
        # Samples lag by less than `max_gap`, and hardly any driver sends so many in it.
        self._until: deque[tuple[int, int]] = deque(maxlen=1 << 16)
        for stamp in stamps:
            self.add(stamp)

    def add(self, stamp: int) -> None:
        """Take in the next measurement's stamp, ns."""
        step = 0 if self._last is None else stamp - self._last
        if not -self._gap <= step <= 0 or self._last is None:  # nor a message that comes late
            self._covered += step if 0 < step <= self._gap else 0
            self._last = stamp
        self._until.append((stamp, self._covered))

    @property
    def total(self) -> float:
        """Until the last measurement, s."""
        return self._covered * 1e-9

    def at(self, stamp: int) -> float:
        """Until the measurement of that stamp, s; to be asked in the recording's order."""
        while len(self._until) > 1 and self._until[0][0] != stamp:
            self._until.popleft()
        return self._until[0][1] * 1e-9


class Filtered:
    """The samples of a recording, which is gone through once, in blocks.

    between, fast: as in `SampleFilter`.

    count: measurements until now. begin, end: stamps of the first and the last, ns. covered: the
        time that they cover. dropped: as in `SampleFilter`.
    """

    def __init__(
        self,
        model: RobotModel,
        config: FilterConfig,
        recording: Iterable[Measurement],
        *,
        between: bool = True,
        fast: bool = False,
    ) -> None:
        self.count = self.begin = self.end = 0
        self.covered = CoveredTime(config.max_gap)
        self._sampler = SampleFilter(model, config, fast=fast)
        self._recording, self._between = recording, between

    def __iter__(self) -> Iterator[tuple[Sample, float, float]]:
        """Each sample, the `CoveredTime` until then (s), and its share of the filter's time (s)."""
        measurements = iter(self._recording)
        while block := list(itertools.islice(measurements, BLOCK)):
            self.begin = self.begin if self.count else block[0].stamp
            self.count += len(block)
            self.end = block[-1].stamp
            for measurement in block:
                self.covered.add(measurement.stamp)
            started = time.perf_counter()
            samples = list(self._sampler.filter_recording(block, between=self._between))
            spent = (time.perf_counter() - started) / max(len(samples), 1)
            for sample in samples:
                yield sample, self.covered.at(sample.stamp), spent

    @property
    def dropped(self) -> Counter[str]:
        """Measurements that were left out or not learned, by reason."""
        return self._sampler.dropped


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

    tested: tuple[RecordingOrigin, ...]
    trained: tuple[RecordingOrigin, ...] = ()
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

    def counted(self, samples: Filtered) -> Iterator[tuple[Sample, float, float]]:
        """The same, counted with the time between them and what becomes of the measurements."""
        last: int | None = None
        for sample, elapsed, spent in samples:
            self.samples += not sample.between
            step = 0.0 if last is None else (sample.stamp - last) * 1e-9
            step = step if 0.0 < step <= self.config.filter.max_gap else 0.0
            self.motion += step
            if not (sample.informative or sample.between):
                self.standing += step
            last = sample.stamp
            yield sample, elapsed, spent
        self.received += samples.count
        self.skipped.update(samples.dropped)

    @cached_property
    def verdict(self) -> Verdict:
        """The model to use, by these runs as they are when it is first asked for."""
        return judge(self.model, self.runs)

    def repeated_share(self) -> float | None:
        """Share of the frozen samples whose state was learned before; None if it isn't known."""
        frozen = self.runs.get("frozen")
        if frozen is None or frozen.repeats is None or not frozen.scores.samples:
            return None
        return frozen.scored.repeats_share()

    def timing_us(self) -> dict[str, float]:
        """Percentiles and maximum of the steps' times, us; NaN where none was timed."""
        times = np.array(self.timing or [np.nan]) * 1e6
        p50, p99 = np.percentile(times, (50, 99)).tolist()
        return {"p50": p50, "p99": p99, "max": float(times.max())}

    def scores(self) -> dict[str, RunningScores]:
        """The scores by protocol, and by the parts of the samples that are scored apart."""
        scores = {protocol: run.scores for protocol, run in self.runs.items()}
        for run in self.runs.values():
            scores |= run.scored.scores_apart()
        return scores

    def results(self) -> dict[str, object]:
        """The contents of results.json; NaN becomes null."""
        results: dict[str, object] = {
            "samples": self.samples,
            "rate_hz": self.samples / self.motion if self.motion > 0.0 else None,
            "target": self.model.config.target,
            "verdict": asdict(self.verdict),
            "axes": list(self.model.axes),
            "scores": {
                protocol: {
                    name: {
                        "rmse": score.rmse(name).tolist(),
                        "nmse": score.nmse(name).tolist(),
                        "coverage": score.coverage(name).tolist(),
                    }
                    for name in ALL_MODELS
                    if name not in IDENTIFIED or np.isfinite(score.rmse(name)).any()
                }
                for protocol, score in self.scores().items()
            },
            "scored": {protocol: score.samples for protocol, score in self.scores().items()},
            "timing_us": self.timing_us(),
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
        # JSON has no NaN, and no infinity.
        strict: dict[str, object] = json.loads(json.dumps(results), parse_constant=lambda _: None)
        return strict


class NothingScoredError(BagError):
    """No sample of the recordings could be scored."""


def evaluate(
    model: RobotModel,
    config: InverseDynamicsConfig,
    test: Sequence[Iterable[Measurement]],
    train: Sequence[Iterable[Measurement]] = (),
    *,
    start: str | Path = "",
) -> Evaluation:
    """Lead the models through recordings, each of measurements in order.

    With `train`, the models first learn those, and `test` is scored under the three protocols;
    likewise with `start`, a saved model that the estimator continues from. (The nonparametric
    baseline is in no file: it learns `test` only, and has no frozen scores.) Without either,
    `test` is scored from its first motion on, sequential and delayed, and iterated twice, first for
    its time alone. The models as they are after 60 % of that are scored `frozen` on the rest;
    `sequential_rest` and `delayed_rest` are the other two protocols' scores on that rest alone.

    Raises NothingScoredError if nothing could be scored, and StorageError if `start` can't be read
    or is of another robot or configuration.
    """
    learner = InverseDynamicsLearner(model, replace(config, comparison=True))
    if start:
        learner.load(start)
    first = ProtocolRun(learner, "sequential")
    learned = LearnedStates(model.turning)
    evaluation = Evaluation(model, config, {})

    def filtered(recording: Iterable[Measurement]) -> Filtered:
        # Those that are not learned for coming too soon are scored as little: ten times as many
        # samples of a recording at 1 kHz add nothing to it.
        every, fast = first.every_sample, config.changes.detect
        return Filtered(model, config.filter, recording, between=every, fast=fast)

    for recording in train:
        for sample, _, _ in filtered(recording):
            first.step(sample, score=False)
            if sample.informative:
                learned.add(sample)
    first.events.clear()  # the results are of the test recordings
    dropped = first.learner.dropped
    part: TrainingPart | None = None
    if not (train or start):
        gap = config.filter.max_gap
        times = [CoveredTime(gap, (m.stamp for m in recording)).total for recording in test]
        part = TrainingPart(sum(times), config.filter)
    last = _score(evaluation, first, map(filtered, test), learned, part)
    evaluation.skipped.update(first.learner.dropped - dropped)
    evaluation.timing = _live_steps(first.in_turn(), list(last))
    if not first.scores.samples:
        skipped = ", ".join(f"{n} x {why}" for why, n in evaluation.skipped.items())
        why = skipped or "no messages"
        raise NothingScoredError(f"no sample of the recordings could be scored ({why})")
    return evaluation


def _score(
    evaluation: Evaluation,
    first: ProtocolRun,
    recordings: Iterable[Filtered],
    learned: LearnedStates,
    part: TrainingPart | None,
) -> deque[tuple[Sample, float]]:
    """Lead the protocols' runs through what is tested; the frozen one begins once `part` is over.

    Returns the last samples that are measured, with the filter's time for each.
    """
    scored = ScoredSamples(knows=part is None)
    last: deque[tuple[Sample, float]] = deque(maxlen=WARM_UP_STEPS + TIMED_STEPS)
    spans: list[tuple[int, int, int]] = []
    before = 0.0
    with ThreadPoolExecutor(1) as worker:
        first.add_delayed(worker)
        frozen = _frozen_run(first, learned) if part is None else None
        for number, samples in enumerate(recordings):
            for sample, elapsed, spent in evaluation.counted(samples):
                if frozen is None and part is not None and part.is_over(sample, before + elapsed):
                    first.score_rest()
                    frozen = _frozen_run(first, learned)
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
            before += samples.covered.total
            spans += [(number, samples.begin, samples.end)] if samples.count else []
        first.finish()
        if frozen is not None:
            frozen.finish()
    runs = {"sequential": first, "delayed": first.delayed, "frozen": frozen}
    evaluation.runs = {name: run for name, run in runs.items() if run is not None}
    for run in evaluation.runs.values():
        evaluation.noticed += _noticed(run, spans)
    return last


def _frozen_run(first: ProtocolRun, learned: LearnedStates) -> ProtocolRun:
    """The frozen run of what is known now; two rigid bodies of that are scored from here on.

    One has viscous and Coulomb friction alone, the other all columns, by least squares.
    """
    frozen, known = first.branch("frozen", learned.repeats()), first.estimator.rigid_body
    frozen.estimator.infer()
    model = first.learner.model
    labels = [model.full_labels[i] for i in model.base.independent]
    kept = np.array([not (s.startswith(OPTIONAL) or s.endswith(model.couplings)) for s in labels])
    identified = {"plain_rigid_body": known.restricted(kept), "batch": known.least_squares()}
    for run in (first, frozen):
        run.score_identified(identified)
    return frozen


def _noticed(run: ProtocolRun, spans: Sequence[tuple[int, int, int]]) -> list[Noticed]:
    """The changes of a run; spans: the recordings' numbers, first and last stamps."""
    noticed = []
    for event in run.events:
        # A change that ends with a recording is reported with the next one's first sample.
        within = [span for span in spans if span[1] <= event.stamp <= span[2]]
        k, start, _ = (within or spans)[-1]
        time, onset = ((stamp - start) * 1e-9 for stamp in (event.stamp, event.onset))
        names = "link", "mass", "mass_std", "center", "center_std"
        payload = None
        if (held := run.payloads.get(event.stamp)) is not None:
            payload = {name: np.asarray(getattr(held, name)).tolist() for name in names}
        noticed.append(Noticed(run.protocol, k, time, onset, event.cause, event.name, payload))
    return noticed


def _live_steps(
    take: Callable[[Sample], object], samples: Sequence[tuple[Sample, float]]
) -> list[float]:
    """Times (s) to filter, predict and learn these samples one by one, as a node does."""
    times = []
    for sample, spent in samples:
        started = time.perf_counter()
        take(sample)
        times.append(spent + time.perf_counter() - started)
    return times[WARM_UP_STEPS:] or times
