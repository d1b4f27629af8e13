"""The time that a tuning takes: told before it begins, and again while it runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from semiparam_dynamics.offline.tuning.choices import (
    FOURIER,
    JOINTS,
    SHARED,
    Grid,
    cutoffs_for,
)
from semiparam_dynamics.offline.tuning.folds import DIRECTIONS, MOST_FOLDS, PARTS
from semiparam_dynamics.offline.tuning.work import Progress, Task

Stage = Callable[[str, float], Progress]  # a stage's title and the seconds left, to its progress

# Processor time in s on one core of a Xeon with AVX-512, 2.1 GHz, of a seven-joint arm: of a
# sample and a cut-off, of a sample of a split, of one with a width's features, and of one that
# the learner itself learns. Started processes import the package.
OF_CUTOFF, OF_SPLIT, OF_WIDTH, OF_LEARNER, OF_START = 1.3e-4, 1.2e-4, 4e-5, 2.7e-4, 3.0
LEAST_KNOWN = 0.03  # of all that was expected, to correct the rest by


@dataclass
class Forecast:
    """The seconds that are left at the begin of each stage.

    The rest is expected as `planned`, times what the stages so far took of their own plan.
    """

    planned: list[tuple[str, float]]  # stages in order, s each
    resumed: bool = False  # stages that are read from a journal tell nothing
    clock: Callable[[], float] = time.monotonic
    _at: int = 0
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        self._started = self.clock()

    def left(self, title: str) -> float:
        """Seconds from the begin of a stage, which is the next of that title."""
        titles = [name for name, _ in self.planned]
        if title in titles[self._at :]:
            self._at = titles.index(title, self._at)
        passed, rest = (
            sum(seconds for _, seconds in part)
            for part in (self.planned[: self._at], self.planned[self._at :])
        )
        self._at += 1
        known = not self.resumed and passed > LEAST_KNOWN * (passed + rest)
        return rest * ((self.clock() - self._started) / passed if known else 1.0)


def forecast(task: Task) -> Forecast:
    """Of a tuning of the package's own stages, by the recordings' size and the processes."""
    recordings = task.recordings
    config = recordings.config
    estimator = config.estimator
    jobs = len(os.sched_getaffinity(0)) if task.work.spread else 1
    n = recordings.n_measurements
    motions = PARTS if recordings.n_recordings == 1 else min(recordings.n_recordings, MOST_FOLDS)
    splits = motions + 2 * DIRECTIONS
    planned: list[tuple[str, float]] = []
    if not task.kept("filter.cutoff"):
        planned.append(("filter's cut-off", n * OF_CUTOFF * len(cutoffs_for(recordings))))
    if not task.kept("rigid_body.penalty"):
        start = OF_START if task.work.spread else 0.0
        planned.append(("rigid body's ridge", n * splits * OF_SPLIT / jobs + start))
    planned.append(("rigid body on each fold", n * splits * OF_SPLIT))

    def of(grid: Grid) -> float:
        widths = len(grid.restricted(estimator, task.keep).combinations())
        return n * splits * OF_WIDTH * widths / jobs

    kinds = [estimator.residual] if task.kept("residual") else ["nystrom", "random_fourier"]
    for kind in kinds:
        local = kind == "nystrom"
        title = "local features" if local else "random Fourier features"
        planned.append((title, of(SHARED if local else FOURIER)))
        if local and recordings.model.config.target == "effort":
            planned.append(("each joint's own level", of(JOINTS)))
    planned.append(("the learner itself", 2 * motions * n * OF_LEARNER / jobs))
    return Forecast(planned, resumed=len(task.work.journal) > 0)
