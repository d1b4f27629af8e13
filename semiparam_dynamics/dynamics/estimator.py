"""Incremental semiparametric inverse dynamics (thesis chapter 8, figure 8.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import group, parameter, parameters, replace, to_flat
from semiparam_dynamics.base.storage import (
    check_finite,
    load_state,
    resuming,
    save_state,
    sub_state,
)
from semiparam_dynamics.dynamics.deviations import ErrorSpreads, blend
from semiparam_dynamics.dynamics.limits import LearningGate, OutputBound, OutputConfig
from semiparam_dynamics.dynamics.residual import (
    KernelConfig,
    KernelResidual,
    NystromConfig,
    RandomFourierConfig,
)
from semiparam_dynamics.dynamics.rigid_body import (
    RigidBodyBlock,
    RigidBodyConfig,
    RigidBodyIdentifier,
)
from semiparam_dynamics.dynamics.sample import (
    Prediction,
    ResidualBlock,
    ResidualPrediction,
    Sample,
    SampleBlock,
)
from semiparam_dynamics.robot.model import RobotModel, expected_scales


@dataclass(frozen=True)
class EstimatorConfig:
    """The estimator's stages."""

    residual: str = parameter(
        "nystrom",
        "the nonparametric part: local Nyström features, safe off its data, or the thesis' "
        "random Fourier features",
        choices=("nystrom", "random_fourier"),
        basic=True,
    )
    seed: int = parameter(0, "seed of the random features", low=0, high=2**31 - 1)
    rigid_body: RigidBodyConfig = group(RigidBodyConfig)
    nystrom: NystromConfig = group(NystromConfig)
    random_fourier: RandomFourierConfig = group(RandomFourierConfig)
    output: OutputConfig = group(OutputConfig)

    @property
    def kernel(self) -> KernelConfig:
        """The parameters of the chosen residual."""
        return self.nystrom if self.residual == "nystrom" else self.random_fourier


# These may be changed at any time; a saved model is loaded whatever they were.
LIVE = frozenset(entry.name for entry in parameters(EstimatorConfig, internal=True) if entry.live)


@dataclass(frozen=True, slots=True)
class BlockPrediction:
    """Predictions of k samples and their standard deviations, by the models' names: (k, n_axes)."""

    values: dict[str, Array]
    stds: dict[str, Array]
    unlearned: Mask | None = None  # (n_axes,) of `feedforward`: of which nothing was learned yet
    novelty: Array | None = None  # (k, n_axes) of `ResidualBlock`; None: not known

    def told_stds(self) -> dict[str, Array]:
        """`stds` as controllers take them: 0 on axes of which nothing was learned yet.

        What is expected of these (`ErrorSpreads`) may be less than what an arm can bear.
        """
        if self.unlearned is None or not self.unlearned.any():
            return self.stds
        return {name: np.where(self.unlearned, 0.0, std) for name, std in self.stds.items()}

    def rows(self, chosen: Mask) -> BlockPrediction:
        """Some of the predictions."""
        values, stds = ({k: v[chosen] for k, v in a.items()} for a in (self.values, self.stds))
        novelty = None if self.novelty is None else self.novelty[chosen]
        return BlockPrediction(values, stds, novelty=novelty)

    @classmethod
    def of(cls, predictions: Sequence[Prediction]) -> BlockPrediction:
        """Predictions of one sample each."""
        names = ("rigid_body", "semiparametric")
        values = {name: np.array([getattr(p, name) for p in predictions]) for name in names}
        stds = {name: np.array([getattr(p, f"{name}_std") for p in predictions]) for name in names}
        return cls(values, stds, novelty=np.array([p.residual.novelty for p in predictions]))


LEARNED = ("rigid_body", "residual")  # attributes with a state
# Of the output that is expected, the error where a joint's state is new, root mean square: median
# of 67 joints of seven recorded arms 0.09, and 0.08 to 0.10 without any one of the arms.
NOVEL_ERROR_SHARE = 0.1


class SemiparametricEstimator:
    """A rigid body, a residual, and the semiparametric model that is their sum.

    The rigid body is identified first and never sees the residual ("prioritised"); the residual
    learns what the rigid body leaves and takes its prediction among its inputs; their sum is finite
    and within bounds. On each sample: predict, then update; updates may come later, but in order.

    Attributes
    ----------
    rigid_body, residual, errors, bound, gate : the stages; only to look at.
    """

    def __init__(
        self, model: RobotModel, config: EstimatorConfig | None = None, **overrides: object
    ) -> None:
        self.model = model
        self.config = config = replace(config or EstimatorConfig(), **overrides)
        self.rigid_body = RigidBodyIdentifier.of(model, config.rigid_body)
        kernel, scales = config.kernel, expected_scales(model)
        self.residual = KernelResidual(
            kernel,
            kernel.INPUTS,
            model,
            active=scales.active if kernel.EXACT else None,
            joints=model.config.target == "effort",
            seed=config.seed,
        )
        self._novel_variance: Array = (NOVEL_ERROR_SHARE * scales.output) ** 2
        names = ("rigid_body", "semiparametric")
        self.errors = ErrorSpreads(names, model.n_axes, scales.output)
        self.bound = OutputBound(model, config.output)
        self.gate = LearningGate(config.output)

    @property
    def n_learned(self) -> int:
        """Samples learned."""
        return self.errors.n_learned

    def sample(
        self,
        q: Array,
        dq: Array,
        ddq: Array,
        y: Array | None = None,
        stamp: int = 0,
        stops: Array | None = None,
    ) -> Sample:
        """Make a sample of an unfiltered state (n_joints,) and measurement (n_axes,).

        stamp : ns. Samples that are learned need stamps that go on: the residual's scales wait for
            seconds of motion. 0, of no instant, is for states that are only predicted.
        stops : (n_stops,) of `FrictionMemory`; None: those of a long way at dq.
        """
        return Sample(stamp, q, dq, ddq, self.model.regressor(q, dq, ddq, stops), y)

    # One sample at a time.

    def predict(self, sample: Sample, *, fast: bool = False) -> Prediction:
        """Predict the outputs at a sample's state; its measurement is not used.

        The standard deviations of an axis of which nothing was learned are its `expected_scales`.

        fast : also predict `sample.fast`.
        """
        s, (rigid, left) = sample, self._parts(sample)
        variance = self.rigid_body.variance(s.regressor)
        rigid_std, std = self._stds(variance, left.novelty, left.confidence)
        factors = self.errors.factors(s.stamp)
        rigid_std *= factors["rigid_body"]
        std *= (factor := factors["semiparametric"])
        if not self.errors.all_seen:
            self.errors.complete({"rigid_body": rigid_std, "semiparametric": std})
            factor = np.where(self.errors.unseen, np.inf, factor)
        both = self.bound(rigid + left.value, rigid)
        before = None
        if fast and s.fast is not None:
            own, beyond = self._parts(s.fast)
            before = self.bound.within(own + beyond.value)
        return Prediction(rigid, both, rigid_std, std, left, factor, before)

    def _parts(self, sample: Sample) -> tuple[Array, ResidualPrediction]:
        """The rigid body's prediction and the residual's."""
        rigid = self.rigid_body.predict(sample.regressor)
        inputs = self._inputs(sample, rigid)
        return rigid, self.residual.predict(inputs, self.rigid_body.parameters)

    def update(self, sample: Sample, prediction: Prediction | None = None) -> None:
        """Learn a sample, unless it isn't measured, or informative, or the gate refuses it.

        prediction : by :meth:`predict`, maybe before other samples were learned; None: it is made
            here.
        """
        if sample.y is not None:
            self._update(sample, prediction or self.predict(sample))

    def _update(self, sample: Sample, prediction: Prediction) -> RigidBodyBlock:
        """:meth:`update` of a measured sample; what the rigid body predicted before."""
        if self.refuses(sample, prediction):
            return self.rigid_body.predict_block(sample.regressor[None])
        rigid = self.update_rigid_body(sample)
        self.update_residual(sample, prediction, rigid)
        return rigid

    def refuses(self, sample: Sample, prediction: Prediction) -> bool:
        """True if a measured sample is not learned: the gate's verdict, or not informative.

        Ask once, in order.
        """
        assert sample.y is not None
        if not sample.informative:
            return True
        error = sample.y - prediction.semiparametric
        return self.gate.refuses(sample.stamp, error, prediction.spread, self.n_learned)

    def update_rigid_body(self, sample: Sample) -> RigidBodyBlock:
        """The first half of :meth:`update` of a measured sample; what the second needs of it."""
        assert sample.y is not None
        return self.rigid_body.update(sample.regressor, sample.y, sample.stamp, sample.weight)

    def update_residual(
        self, sample: Sample, prediction: Prediction, rigid: RigidBodyBlock
    ) -> None:
        """The second half, with what the first one returned."""
        s, p, y = sample, prediction, sample.y
        assert y is not None
        x = self._inputs(s, p.rigid_body)
        self.residual.update(s.stamp, x, y, s.regressor, p.rigid_body, rigid)
        errors = {"rigid_body": y - p.rigid_body, "semiparametric": y - p.semiparametric}
        stds = {"rigid_body": p.rigid_body_std, "semiparametric": p.semiparametric_std}
        self.errors.record(s.stamp, y, errors, stds)

    def infer(self) -> None:
        """Look at all evidence again, where learning ends: it is of some samples before."""
        if self.n_learned:
            self.rigid_body.infer()
            self.residual.infer(self.rigid_body.parameters)

    def _inputs(self, sample: Sample, rigid_body: Array) -> Array:
        return self.residual.inputs(sample.q, sample.dq, sample.ddq, rigid_body)

    # Many samples.

    def update_block(self, block: SampleBlock) -> tuple[BlockPrediction, RigidBodyBlock]:
        """Predict and :meth:`update` each sample in turn.

        Returns the predictions of each just before it was learned, and what the rigid body
        predicted then.
        """
        predicted, rigid = [], []
        for sample in block.samples():
            predicted.append(self.predict(sample))
            rigid.append(self._update(sample, predicted[-1]))
        return BlockPrediction.of(predicted), RigidBodyBlock.join(rigid)

    def predict_block(
        self, block: SampleBlock, rigid: RigidBodyBlock | None = None
    ) -> BlockPrediction:
        """:meth:`predict` of each sample, in a few large matrix products; nothing is learned.

        rigid : of a rigid body that learns meanwhile; None: this one's, as it is.
        """
        rigid = rigid or self.rigid_body.predict_block(block.regressors)
        residual = self._residual_block(block.q, block.dq, block.ddq, rigid)
        stds = self.errors.widen(block.stamps, self._block_stds(rigid, residual))
        return BlockPrediction(self._values(rigid, residual), stds, novelty=residual.novelty)

    def feedforward(
        self, q: Array, dq: Array, ddq: Array, stops: Array | None = None
    ) -> BlockPrediction:
        """Predict desired states (k, n_joints), in rad, rad/s and rad/s^2; nothing is changed.

        stops : (k, n_stops) of `FrictionMemory`; None: those of a long way at dq.

        No filter is passed: what is learned from filtered signals holds for unfiltered ones, too,
        see :mod:`semiparam_dynamics.dynamics.filtering`. All values are finite and within bounds.
        A sample that was predicted and waits to be learned is learned as if nothing had been asked.
        """
        rigid = self.rigid_body.predict_block(self.model.regressors(q, dq, ddq, stops))
        residual = self._residual_block(q, dq, ddq, rigid)
        values = self._values(rigid, residual)
        within = [self.bound.within(row) for row in rigid.values]
        values["rigid_body"] = np.array(within).reshape(rigid.values.shape)
        stds = self._block_stds(rigid, residual)
        self.errors.complete(stds)
        return BlockPrediction(values, stds, self.errors.unseen)

    def _residual_block(
        self, q: Array, dq: Array, ddq: Array, rigid: RigidBodyBlock
    ) -> ResidualBlock:
        inputs = self.residual.inputs(q, dq, ddq, rigid.values)
        return self.residual.predict_block(inputs, rigid.parameters)

    def _block_stds(self, rigid: RigidBodyBlock, residual: ResidualBlock) -> dict[str, Array]:
        known = residual.novelty, residual.confidence[:, None]
        rigid_std, std = self._stds(rigid.variances, *known)
        return {"rigid_body": rigid_std, "semiparametric": std}

    def _stds(
        self, variance: Array, novelty: Array, confidence: float | Array
    ) -> tuple[Array, Array]:
        """Of the rigid body and of the sum; variance and novelty (n_axes,), or (k, n_axes) of k."""
        near, far = self.errors["semiparametric"].value, self.errors["rigid_body"].value
        variance = variance + self._novel_variance * novelty
        return np.sqrt(far + variance), blend(confidence, near, far, variance)

    def _values(self, rigid: RigidBodyBlock, residual: ResidualBlock) -> dict[str, Array]:
        both = self.bound.block(rigid.values + residual.values, rigid.values)
        return {"rigid_body": rigid.values, "semiparametric": both}

    # Live parameters, copies and files.

    def configure(self, config: EstimatorConfig) -> None:
        """Continue with other values of the live parameters; no prediction changes by that alone.

        The standard deviations may: a ridge is also how much noise is expected.
        Raises what :meth:`check` does; the estimator is then what it was.
        """
        self.check(config)
        self.rigid_body.configure(config.rigid_body)
        self.residual.configure(config.kernel)
        counts, self.bound = self.bound.counts, OutputBound(self.model, config.output)
        self.bound.counts.update(counts)
        self.gate.config = config.output
        self.config = config

    def check(self, config: EstimatorConfig) -> None:
        """Raise ConfigurationError where :meth:`configure` can't continue with `config`.

        That is where another than a live parameter differs, or so much was learned that a ridge as
        small as wanted would be lost beside it.
        """
        before, after = to_flat(self.config), to_flat(config)
        if fixed := [name for name in after if name not in LIVE and before[name] != after[name]]:
            raise ConfigurationError(f"{', '.join(fixed)} can't be changed while learning")
        OutputBound(self.model, config.output)
        self.residual.check(config.kernel)

    def copy(self) -> SemiparametricEstimator:
        """Another estimator of the same robot that knows the same and learns on its own."""
        other = SemiparametricEstimator(self.model, self.config)
        other.copy_from(self)
        return other

    def copy_from(self, other: SemiparametricEstimator) -> None:
        """Know what `other`, of the same robot and configuration, knows; in the memory at hand.

        The gate and the counts of the bound stay this estimator's own.
        """
        self.residual.copy_from(other.residual)
        self.rigid_body.copy_from(other.rigid_body)
        self.errors.restore(other.errors.state())

    def state(self) -> dict[str, Array]:
        """Everything learned, as named arrays."""
        state: dict[str, Array] = {}
        for name in LEARNED:
            state |= {f"{name}.{key}": v for key, v in getattr(self, name).state().items()}
        return state | self.errors.state()

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state` of an estimator of the same robot and configuration."""
        for name in LEARNED:
            getattr(self, name).restore(sub_state(state, f"{name}."))
        self.errors.restore(state)

    def save(self, path: str | Path) -> None:
        """Write what was learned to one file, whole or not at all. Raises StorageError."""
        save_state(path, self.identity(), self.state())

    def load(self, path: str | Path) -> None:
        """Continue from a file of :meth:`save`, with this estimator's live parameters.

        Raises StorageError if it can't be read, is damaged, or is of another robot or
        configuration; the estimator is then what it was.
        """
        state = load_state(path, self.identity(), ignore=LIVE)
        resumed = SemiparametricEstimator(self.model, self.config)
        with resuming(path):
            check_finite(state)
            resumed.restore(state)
            resumed.configure(self.config)
        self.copy_from(resumed)

    def identity(self) -> dict[str, object]:
        """The robot and the parameters that a saved model must share to be loaded here."""
        robot = {f"robot.{name}": value for name, value in to_flat(self.model.config).items()}
        del robot["robot.joints"]  # those of the model are what counts
        return {
            "regressor_sha256": self.model.fingerprint(),
            "joints": list(self.model.joint_names),
            **robot,
            **{name: value for name, value in to_flat(self.config).items() if name not in LIVE},
        }
