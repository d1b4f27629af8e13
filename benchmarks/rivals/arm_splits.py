"""Splits of arms' logs, and the scores of what is predicted on their test part."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "field"))  # whose logs are used here

import logs
from arms import LOGS, PLAIN, by_time, samples
from joint_safety import splits as splits_of_arms

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.sample import Sample, SampleBlock
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.experiment import TRAINING_SHARE
from semiparam_dynamics.robot.model import RobotModel

ARMS = {
    "ur10": "UR10",
    "tx40": "TX40",
    "airbot": "AIRBOT Play",
    "tiago": "TIAGo's arm",
    "sim_seven": "Simulated arm of seven joints",
    "xmate7p": "xMate 7 Pro",
    "sim_small": "Simulated small arm",
}
DEFAULT = tuple(name for name in ARMS if name != "sim_small")  # which is for a quick look
WINDOW = 50  # samples that a recurrent network sees
PAUSE = 1_000_000_000  # ns after which, or back, another recording begins
REPEATS, CALLS = 5, 30  # single predictions that are timed


@dataclass(frozen=True)
class Side:
    """The same samples with the regressor of one robot model."""

    model: RobotModel
    config: InverseDynamicsConfig
    train: list[Sample]
    test: list[Sample]


@dataclass(frozen=True)
class Split:
    """What is learned and what is tested, with and without columns for optional friction."""

    arm: str
    name: str
    full: Side
    plain: Side


@dataclass(frozen=True)
class Result:
    """A method's predictions of a split's test part, from what its training part taught.

    predicted : (n, n_axes), nothing is learned from the n samples.
    seconds : that training took, the choice of hyperparameters included; nan where there is none.
    predict_one : predicts a single sample from its filtered state, to be timed.
    online : mean nmse by protocol, of a method that goes on learning.
    """

    predicted: Array
    seconds: float
    predict_one: Callable[[], object]
    online: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Score:
    """Figures of a result: errors per axis (n_axes,), of efforts in N m or N, and times."""

    nmse: Array
    rms: Array
    seconds: float
    microseconds: float  # of a prediction: the least of several medians
    online: dict[str, float]


def score(split: Split, result: Result) -> Score:
    """Compare a result with what was measured."""
    y = np.array([sample.y for sample in split.plain.test])
    squares = np.mean((y - result.predicted) ** 2, axis=0)
    return Score(
        squares / y.var(axis=0),
        np.sqrt(squares),
        result.seconds,
        _microseconds(result.predict_one),
        result.online,
    )


def _microseconds(call: Callable[[], object]) -> float:
    medians = []
    for _ in range(REPEATS):
        times = []
        for _ in range(CALLS):
            started = time.perf_counter()
            call()
            times.append(time.perf_counter() - started)
        medians.append(float(np.median(times)))
    return 1e6 * min(medians)


def arm_splits(data: Path, arm: str, seconds: float = 0.0) -> Iterator[Split]:
    """The splits of an arm: xMate's nine, of another's log the first and the last 60 %.

    seconds : how much of a log is used, where it isn't one of benchmarks/arms.py; 0: all.
    """
    pairs = zip(_sides(data, arm, seconds), _sides(data, arm, seconds, **PLAIN), strict=True)
    for (name, full), (_, plain) in pairs:
        yield Split(arm, name, full, plain)


def _sides(data: Path, arm: str, seconds: float, **overrides: object) -> Iterator[tuple[str, Side]]:
    if arm in LOGS:
        for name, *parts in splits_of_arms(data / "robots", [arm], **overrides):
            yield name.split(maxsplit=1)[1], Side(*parts)
        return
    for log in logs.splits(data, [arm], seconds):
        # As benchmarks/joint_safety.py has it: one log, filtered whole, then divided by time.
        config = replace(log.config, **overrides)
        model = RobotModel(log.urdf, config.robot)
        parts = (*log.train, log.test)
        measured = [one for part in parts for one in logs.measurements(part, model, config)]
        # A rival has no use for a row of which one axis was not measured.
        whole = [s for s in samples(model, config, measured) if not np.isnan(s.y).any()]
        first, rest = by_time(whole, TRAINING_SHARE)
        yield "first 60 % → rest", Side(model, config, first, rest)
        first, rest = by_time(whole, 1.0 - TRAINING_SHARE)
        yield "last 60 % → rest", Side(model, config, rest, first)


def windows(block: SampleBlock) -> Indices:
    """(n, WINDOW) rows up to each row, of its recording; the first stands for those before it."""
    rows = np.arange(len(block))
    steps = np.diff(block.stamps, prepend=block.stamps[0])
    first = np.maximum.accumulate(np.where((steps < 0) | (steps > PAUSE), rows, 0))
    return np.maximum(rows[:, None] - np.arange(WINDOW)[::-1], first[:, None])
