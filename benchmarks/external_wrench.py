"""Wrenches at the tool found from joint efforts, on logs to whose efforts known ones were added.

    python benchmarks/external_wrench.py DATA [--logs xmate7p ur10 ...] [--seconds 60] [--draws 5]

DATA holds robots. Each model learns the training part of its log and then stays as it is. On the
test part a wrench at the tool acts for two seconds, then none for two, and so on; through the
frame's Jacobian that changes each measured effort exactly, as long as the controller held the
motion. Errors of force and moment, half a second after each change at the earliest, which the
low-pass takes: means and 95th percentiles, and how often the 95 % ellipsoid covers the truth, of
all samples and of those with a wrench.
Beside it, of the same filtered signals: what the URDF's own parameters leave, and what the rigid
body that was identified leaves, through the pseudo-inverse of the Jacobian; that is what a momentum
observer gives on these, after such a filter. And the latter by this package's estimate. The LSTM of
benchmarks/results/rivals.md, which learns the same samples, by both; its deviations are those of
its errors on what it learned. It needs torch; without it the others are measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import chi2

BENCHMARKS = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCHMARKS / folder) for folder in ("rivals", "field")]

from logs import SPLITS, Split, measurements, splits  # noqa: E402

from semiparam_dynamics.base.arrays import SECOND, Array  # noqa: E402
from semiparam_dynamics.changes.external_wrench import ExternalWrench, FrameMotion  # noqa: E402
from semiparam_dynamics.dynamics.sample import Sample  # noqa: E402
from semiparam_dynamics.learner.learner import InverseDynamicsLearner  # noqa: E402
from semiparam_dynamics.offline.doctor.joint_log import JointLog  # noqa: E402
from semiparam_dynamics.robot.model import RobotModel  # noqa: E402

HOLD = 2.0  # s that a wrench lasts
SETTLED = 0.5  # s after a change
FORCES, MOMENTS = (5.0, 40.0), (0.5, 4.0)  # N, N m
OWN = "~/external_wrench"
INVERSE, SAME = "", ", damped and weighted"  # by the pseudo-inverse, and by this package's estimate
STEPS = 240  # batches that the LSTM learns at most, as in benchmarks/results/rivals.md
TITLES = (
    "by",
    *("force, N: mean", "95 %", "moment, N m: mean", "95 %"),
    *("covered", "covered, with a wrench"),
)


class Errors:
    """Errors of one method's wrenches (6,), and whether the 95 % ellipsoid covered each."""

    def __init__(self) -> None:
        self._rows: list[Array] = []
        self._covered: list[tuple[bool, bool]] = []  # and whether there was a wrench

    def add(self, found: Array, truth: Array, covariance: Array | None, acts: bool) -> None:
        """Count a sample; covariance: None where a method has none."""
        error = found - truth
        self._rows.append(error)
        if covariance is not None:
            length = error @ np.linalg.solve(covariance, error)
            self._covered.append((bool(length <= chi2.ppf(0.95, 6)), acts))

    def row(self) -> list[str]:
        """The numbers below `TITLES` but the first."""
        rows = np.array(self._rows)
        sizes = [np.linalg.norm(rows[:, part], axis=1) for part in (np.s_[:3], np.s_[3:])]
        numbers = [f(size) for size in sizes for f in (np.mean, lambda s: np.percentile(s, 95))]
        shares = [""] * 2
        if self._covered:
            covered, acts = np.array(self._covered).T
            shares = [f"{covered.mean():.3f}", f"{covered[acts].mean():.3f}"]
        return [*(f"{number:.3g}" for number in numbers), *shares]


class Methods:
    """Ways to find a wrench at a frame from the same samples.

    models : names of those whose efforts are taken off. deviating : of those that have deviations,
    and by which this package's estimate is made as well.
    """

    def __init__(self, model: RobotModel, axes: str = "") -> None:
        self.motion = FrameMotion(model, axes=axes)
        self._model, self._axes = model, axes
        self._estimators: dict[str, ExternalWrench] = {}
        self.errors: dict[str, Errors] = {}

    def find(
        self,
        sample: Sample,
        efforts: dict[str, tuple[Array, Array | None]],
        truth: Array | None,
        acts: bool,
    ) -> None:
        """Find it by each model's efforts and their deviations (n_axes,), if it has some.

        truth : (6,) None: is not counted.
        """
        assert sample.y is not None
        J = self.motion.jacobian(sample.q)
        known = np.isfinite(sample.y)
        for name, (told, stds) in efforts.items():
            left = sample.y - told
            if name != OWN and truth is not None:
                found = -np.linalg.pinv(J[:, known].T) @ left[known]
                self._errors(name + INVERSE).add(found, truth, None, acts)
            if stds is not None:
                estimator = self._estimators.setdefault(
                    name, ExternalWrench(self._model, axes=self._axes)
                )
                found, covariance, *_ = estimator.estimate(sample.q, left, stds, sample.stamp)
                if truth is not None:
                    row = name if name == OWN else name + SAME
                    self._errors(row).add(found, truth, covariance, acts)

    def _errors(self, name: str) -> Errors:
        return self.errors.setdefault(name, Errors())

    def begin_anew(self) -> None:
        """Let the next sample be of another recording, for the estimators."""
        self._estimators.clear()

    def tell(self, title: str) -> None:
        """Print a row for each."""
        for name, errors in sorted(self.errors.items(), key=lambda item: item[0] == OWN):
            print(f"| {title} | {name} | {' | '.join(errors.row())} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--logs", nargs="+", default=[*SPLITS, "sim_seven"], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=0.0, help="of each log, 0: all")
    parser.add_argument("--draws", type=int, default=1, help="of wrenches, counted together")
    parser.add_argument("--first", type=int, default=0, help="the first draw's seed")
    args = parser.parse_args()
    say_what_is_missing()
    header("log, frame")
    for split in splits(args.data, args.logs, args.seconds):
        tell(split, range(args.first, args.first + args.draws))


def say_what_is_missing() -> None:
    """Without torch there is no LSTM."""
    if not importlib.util.find_spec("torch"):
        print("LSTM: not run, torch is not installed\n")


def header(first: str) -> None:
    """The head of a table."""
    titles = (first, *TITLES)
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")


def tell(split: Split, seeds: range = range(1)) -> None:
    """The rows of a log, of the wrenches drawn with these seeds together."""
    model = RobotModel(split.urdf, split.config.robot)
    learner = InverseDynamicsLearner(model, split.config)
    train: list[Sample] = []
    for log in split.train:
        for measurement in measurements(log, model, split.config):
            if (step := learner.predict(measurement)) is not None:
                train.append(step.sample)
                learner.update(learner.admit(step))
    methods = Methods(model)
    learned = learner.copy()
    for seed in seeds:
        count(split, learner, methods, train, seed)
        learner = learned.copy()
    methods.tell(f"{split.name}, {methods.motion.frame}")


def count(
    split: Split,
    learner: InverseDynamicsLearner,
    methods: Methods,
    train: list[Sample],
    seed: int,
) -> None:
    """Count the errors of all methods with one draw of wrenches; nothing is learned."""
    model = learner.model
    stamps, wrenches = wrenches_along(split.test, seed)
    steps = [
        step
        for measurement in measurements(
            pushed(split.test, wrenches, methods.motion), model, split.config
        )
        if (step := learner.predict(measurement)) is not None and step.y is not None
    ]
    recurrent = lstm(model, split.config, train, [step.sample for step in steps])
    for step, network in zip(steps, recurrent, strict=True):
        k = int(np.searchsorted(stamps, step.stamp))
        since = (step.stamp - split.test.stamps[0]) / SECOND % HOLD
        sample, prediction = step.sample, step.prediction
        urdf = model.inverse_dynamics(sample.q, sample.dq, sample.ddq)
        efforts = {"URDF": (urdf, None)}
        efforts |= {"rigid body": (prediction.rigid_body, prediction.rigid_body_std)}
        efforts |= network
        efforts |= {OWN: (prediction.semiparametric, prediction.semiparametric_std)}
        counts = since >= SETTLED and k < len(wrenches)
        truth = wrenches[k] if counts else None
        methods.find(sample, efforts, truth, truth is not None and bool(truth.any()))
    methods.begin_anew()


def lstm(
    model: RobotModel, config: Any, train: list[Sample], test: list[Sample]
) -> list[dict[str, tuple[Array, Array]]]:
    """Of each sample of a test what the LSTM of the rivals' page says, and its deviations.

    Nothing without torch. It sees the states of the test, not the efforts.
    """
    if not importlib.util.find_spec("torch"):
        return [{}] * len(test)
    import torch
    from arm_splits import Side
    from arm_splits import Split as Rivals
    from other_rivals import compete
    from torch_rivals import Recurrent

    torch.set_num_threads(1)
    # A row of which one axis was not measured is of no use to it.
    whole = [s for s in train if s.y is not None and np.isfinite(s.y).all()]
    side = Side(model, config, whole, whole + test)
    rival = Recurrent(torch.nn.LSTM, STEPS)
    predicted = compete(Rivals("", "", side, side), rival, residual=False).predicted
    learned = np.array([s.teaches for s in whole])
    errors = np.array([s.y for s in whole]) - predicted[: len(whole)]
    stds = errors[learned].std(axis=0)
    return [{"LSTM": (row, stds)} for row in predicted[len(whole) :]]


def wrenches_along(log: JointLog, seed: int = 0) -> tuple[Array, Array]:
    """Stamps (n,) of a log, and the wrench (n, 6) at each of its messages."""
    holds = (log.times // HOLD).astype(int)
    return log.stamps, drawn_wrenches(int(holds.max()) + 1, seed)[holds]


def drawn_wrenches(count: int, seed: int = 0) -> Array:
    """(count, 6) none in every other row, else of any direction."""
    rng = np.random.default_rng(seed)
    made = np.zeros((count, 6))
    for hold in range(1, len(made), 2):
        for part, (low, high) in ((np.s_[:3], FORCES), (np.s_[3:], MOMENTS)):
            direction = rng.normal(size=3)
            made[hold, part] = rng.uniform(low, high) * direction / np.linalg.norm(direction)
    return made


def pushed(log: JointLog, wrenches: Array, motion: FrameMotion) -> JointLog:
    """The log as it would be with these wrenches (n, 6) at the frame."""
    assert log.y is not None
    added = [motion.jacobian(q).T @ w for q, w in zip(log.q, wrenches, strict=True)]
    return dataclasses.replace(log, y=log.y - np.array(added))


if __name__ == "__main__":
    main()
