"""The thesis' validation experiment (8.4.3, figure 8.4): learn one motion, then meet another.

The models start from zero and learn circles of the hand in the XY plane. The circles in the XZ
plane are cut into parts; on each part, from the models trained on XY, every sample is predicted,
scored and learned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.learner import MODELS
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement

WINDOW = 30  # samples over which an error is averaged
KINDS = {"force": slice(0, 3), "torque": slice(3, 6)}


@dataclass(frozen=True)
class ExperimentSize:
    """How many samples are learned first, and how many parts of how many are then met."""

    train: int = 10_000
    parts: int = 10
    part: int = 1_000


@dataclass(frozen=True)
class ExperimentResult:
    """Squared errors (parts, samples, 6) of each model, in N^2 and (N m)^2, and the sample rate."""

    squares: dict[str, Array]
    rate: float

    def curves(self) -> tuple[Array, dict[str, dict[str, Array]]]:
        """Times (k,) s and curves[kind][model] (parts, k): RMSE averaged over the components.

        The window of k ends at the sample k; figure 8.4's axes.
        """
        curves: dict[str, dict[str, Array]] = {}
        for kind, components in KINDS.items():
            curves[kind] = {}
            for model, squares in self.squares.items():
                sums = np.cumsum(squares[:, :, components], axis=1)
                sums[:, WINDOW:] -= sums[:, :-WINDOW].copy()
                curves[kind][model] = np.sqrt(sums[:, WINDOW - 1 :] / WINDOW).mean(axis=2)
        count = curves["force"][MODELS[0]].shape[1]
        return (np.arange(count) + WINDOW) / self.rate, curves

    def first_window(self, kind: str, model: str) -> Array:
        """RMSE (parts,) in each part's first window."""
        return self.curves()[1][kind][model][:, 0]

    def steady(self, kind: str, model: str) -> Array:
        """RMSE (parts,) over each part's last half."""
        squares = self.squares[model][:, :, KINDS[kind]]
        last = squares[:, squares.shape[1] // 2 :]
        rmse: Array = np.sqrt(last.mean(axis=1)).mean(axis=1)
        return rmse


def thesis_experiment(
    model: RobotModel,
    config: InverseDynamicsConfig,
    first_motion: Iterable[Measurement],
    second_motion: Iterable[Measurement],
    size: ExperimentSize,
    progress: Callable[[float], None] = lambda share: None,
) -> ExperimentResult:
    """Run the experiment on two endless motions; `config.filter.max_rate` is the sample rate."""
    total = size.train + size.parts * size.part
    estimator = SemiparametricEstimator(model, config.estimator)
    for k, sample in enumerate(_samples(model, config, first_motion, size.train)):
        estimator.update(sample, estimator.predict(sample))
        progress(k / total)
    squares = {name: np.zeros((size.parts, size.part, model.n_axes)) for name in MODELS}
    learner = estimator
    for k, sample in enumerate(_samples(model, config, second_motion, size.parts * size.part)):
        part, within = divmod(k, size.part)
        if within == 0:
            learner = estimator.copy()
        assert sample.y is not None  # by _samples
        prediction = learner.predict(sample)
        for name in MODELS:
            squares[name][part, within] = (sample.y - getattr(prediction, name)) ** 2
        learner.update(sample, prediction)
        progress((size.train + k) / total)
    return ExperimentResult(squares, config.filter.max_rate)


def _samples(
    model: RobotModel, config: InverseDynamicsConfig, motion: Iterable[Measurement], count: int
) -> Iterator[Sample]:
    sampler = SampleFilter(model, config.filter)
    for measurement in motion:
        sample = sampler.push(measurement)
        if sample is not None and sample.y is not None:
            yield sample
            count -= 1
        if count == 0:
            return
