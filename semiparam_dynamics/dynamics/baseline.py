"""The nonparametric baseline: the residual's kernel model without a rigid body, for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.dynamics.deviations import ErrorSpreads, blend
from semiparam_dynamics.dynamics.estimator import BlockPrediction, EstimatorConfig
from semiparam_dynamics.dynamics.residual import KernelResidual
from semiparam_dynamics.dynamics.rigid_body import RigidBodyBlock
from semiparam_dynamics.dynamics.sample import Sample, SampleBlock
from semiparam_dynamics.robot.model import RobotModel, expected_scales

NAME = "nonparametric"  # in scores and reports


@dataclass(frozen=True, slots=True)
class BaselinePrediction:
    """The baseline's prediction of one sample, both arrays (n_axes,)."""

    nonparametric: Array
    nonparametric_std: Array


def joined(predictions: Sequence[BaselinePrediction]) -> BlockPrediction:
    """The predictions of many samples."""
    values = np.array([each.nonparametric for each in predictions])
    stds = np.array([each.nonparametric_std for each in predictions])
    return BlockPrediction({NAME: values}, {NAME: stds})


class NonparametricBaseline:
    """Learns y from [q, dq, ddq], with the residual's kernel, features and penalty.

    No prediction of the robot's model needs it: it runs beside a `SemiparametricEstimator`, on the
    samples that this one learns, and shows what the rigid body is worth.
    """

    def __init__(self, model: RobotModel, config: EstimatorConfig) -> None:
        self.model = model
        self.config = config
        groups = ("position", "velocity", "acceleration")
        active = np.zeros((model.n_axes, 0)) if config.kernel.EXACT else None
        # Another draw of random features than the residual's.
        seed = config.seed + 1
        self.kernel_model = KernelResidual(config.kernel, groups, model, active=active, seed=seed)
        expected = expected_scales(model).output
        self.errors = ErrorSpreads((NAME,), model.n_axes, expected)

    @property
    def n_learned(self) -> int:
        """Samples learned."""
        return self.errors.n_learned

    def predict(self, sample: Sample) -> BaselinePrediction:
        """Predict the outputs at a sample's state; its measurement is not used."""
        known = self.kernel_model.predict(self._inputs(sample), np.zeros(0))
        near, far = self.errors[NAME].value, self.errors["y"].value
        std = blend(known.confidence, near, far) * self.errors.factors(sample.stamp)[NAME]
        self.errors.complete({NAME: std})
        return BaselinePrediction(known.value, std)

    def update(self, sample: Sample, prediction: BaselinePrediction | None = None) -> None:
        """Learn a sample; `prediction` is :meth:`predict`'s of it, see the estimator's `update`."""
        if (y := sample.y) is None or not sample.informative:
            return
        prediction = prediction or self.predict(sample)
        x, nothing = self._inputs(sample), sample.regressor[:, :0]
        zeros = np.zeros(len(y))
        alone = RigidBodyBlock.none(y[None], np.array([sample.weight]))
        self.kernel_model.update(sample.stamp, x, y, nothing, zeros, alone)
        error, std = {NAME: y - prediction.nonparametric}, {NAME: prediction.nonparametric_std}
        self.errors.record(sample.stamp, y, error, std)

    def predict_block(self, block: SampleBlock) -> BlockPrediction:
        """:meth:`predict` of each sample."""
        known = self.kernel_model.predict_block(self._inputs(block), np.zeros(0))
        std = blend(known.confidence[:, None], self.errors[NAME].value, self.errors["y"].value)
        return BlockPrediction({NAME: known.values}, self.errors.widen(block.stamps, {NAME: std}))

    def update_block(self, block: SampleBlock) -> BlockPrediction:
        """Predict and :meth:`update` each sample in turn."""
        predicted = []
        for sample in block.samples():
            predicted.append(self.predict(sample))
            self.update(sample, predicted[-1])
        return joined(predicted)

    def _inputs(self, state: Sample | SampleBlock) -> Array:
        return self.kernel_model.inputs(state.q, state.dq, state.ddq, state.q[..., :0])

    def check(self, config: EstimatorConfig) -> None:
        """Raise ConfigurationError where :meth:`configure` can't continue with `config`."""
        self.kernel_model.check(config.kernel)

    def configure(self, config: EstimatorConfig) -> None:
        """Continue with other values of the live parameters, as the estimator's `configure`."""
        self.check(config)
        self.kernel_model.configure(config.kernel)
        self.config = config

    def copy(self) -> NonparametricBaseline:
        """Another baseline that knows the same and learns on its own."""
        other = NonparametricBaseline(self.model, self.config)
        other.copy_from(self)
        return other

    def copy_from(self, other: NonparametricBaseline) -> None:
        """Know what `other`, of the same configuration, knows; in the memory at hand."""
        self.kernel_model.copy_from(other.kernel_model)
        self.errors.restore(other.errors.state())
