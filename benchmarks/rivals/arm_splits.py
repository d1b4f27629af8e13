"""The arms, and the scores of what is predicted on a split's test part."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from arms import Split

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.dynamics.sample import SampleBlock

ARMS = {
    "ur10": "UR10",
    "tx40": "TX40",
    "airbot": "AIRBOT Play",
    "tiago": "TIAGo's arm",
    "panda": "Panda",
    "lwr4": "LWR 4",
    "baxter": "Baxter",
    "sim_seven": "Simulated arm of seven joints",
    "xmate7p": "xMate 7 Pro",
    "sim_small": "Simulated small arm",
}
DEFAULT = tuple(name for name in ARMS if name != "sim_small")  # which is for a quick look
WINDOW = 50  # samples that a recurrent network sees
PAUSE = 1_000_000_000  # ns after which, or back, another recording begins
REPEATS, CALLS = 5, 30  # single predictions that are timed


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
    y = np.array([sample.y for sample in split.test])
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


def windows(block: SampleBlock) -> Indices:
    """(n, WINDOW) rows up to each row, of its recording; the first stands for those before it."""
    rows = np.arange(len(block))
    steps = np.diff(block.stamps, prepend=block.stamps[0])
    first = np.maximum.accumulate(np.where((steps < 0) | (steps > PAUSE), rows, 0))
    return np.maximum(rows[:, None] - np.arange(WINDOW)[::-1], first[:, None])
