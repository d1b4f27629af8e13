"""Incremental semiparametric inverse dynamics (thesis chapter 8, figure 8.2)."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semiparam_dynamics.arrays import Array, Mask
from semiparam_dynamics.dynamics.deviations import ErrorSpreads, blend, deviations
from semiparam_dynamics.dynamics.limits import LearningGate, OutputBound, OutputConfig
from semiparam_dynamics.dynamics.residual import (
    ALONE,
    RESIDUAL,
    FourierResidual,
    NystromConfig,
    NystromResidual,
    RandomFourierConfig,
    input_widths,
    part,
)
from semiparam_dynamics.dynamics.rigid_body import (
    RigidBodyBlock,
    RigidBodyConfig,
    RigidBodyIdentifier,
)
from semiparam_dynamics.dynamics.sample import GuessBlock, Prediction, Sample, SampleBlock
from semiparam_dynamics.dynamics.trust import Trust, TrustConfig
from semiparam_dynamics.errors import ConfigurationError, LearningError, StorageError
from semiparam_dynamics.parameters import group, parameter, parameters, replace, to_flat
from semiparam_dynamics.recursion.rls import RecursiveLeastSquares
from semiparam_dynamics.robot.model import RobotConfig, RobotModel, expected_scales
from semiparam_dynamics.storage import check_finite, load_state, save_state

# -------------------------------------------------------------------------------------------------
# What is left to do of a sample once all that the next prediction needs is learned.


@dataclass(frozen=True, slots=True)
class Comparison:
    """A sample that the nonparametric model alone has yet to predict, and perhaps to learn.

    Nothing else waits for that model. So it may be asked later, in the samples' order, or in
    another thread; the numbers are the same.
    """

    sample: Sample  # measured
    prediction: Prediction
    spread: Array  # (n_axes,) mean square of y about its mean before this sample
    dt: float  # s since the sample learned before
    learn: bool  # false: it is only predicted, to be scored


# -------------------------------------------------------------------------------------------------
# The estimator's parameters, stage by stage.


@dataclass(frozen=True)
class EstimatorConfig:
    """The estimator's stages."""

    residual: str = parameter(
        "nystrom",
        "the nonparametric part: local Nyström features, safe off its data, or the thesis' "
        "random Fourier features",
        choices=("nystrom", "random_fourier"),
    )
    seed: int = parameter(0, "seed of the random features", low=0, high=2**31 - 1)
    comparison: bool = parameter(
        True,
        "also learn the nonparametric model alone, which no prediction needs, to compare with; "
        "without it a sample is learned in two thirds of the time",
        live=True,
    )
    error_horizon: float = parameter(
        20.0,
        "the standard deviations follow the errors of about the last seconds",
        unit="s",
        low=0.1,
        high=1e5,
        live=True,
    )
    rigid_body: RigidBodyConfig = group(RigidBodyConfig)
    nystrom: NystromConfig = group(NystromConfig)
    random_fourier: RandomFourierConfig = group(RandomFourierConfig)
    trust: TrustConfig = group(TrustConfig)
    output: OutputConfig = group(OutputConfig)


# What may be changed at any time; a saved model is loaded whatever these were.
LIVE = frozenset(entry.name for entry in parameters(EstimatorConfig) if entry.live)
# What a saved model's parameters are that its version did not have yet.
DEFAULTS = to_flat(EstimatorConfig()) | {
    f"robot.{name}": value for name, value in to_flat(RobotConfig()).items()
}


LEARNED = ("rigid_body", "residual", "alone", "trust")  # attributes with a state


class SemiparametricEstimator:
    """The three models side by side: rigid body, nonparametric alone, and semiparametric.

    On each sample: predict, score, update. The rigid body is identified first and never sees the
    nonparametric part ("prioritised"); the residual model learns what the rigid body leaves and
    takes its prediction among its inputs; the semiparametric prediction is their sum, finite and
    within bounds. The nonparametric model alone learns y from [q, dq, ddq], for comparison.
    """

    def __init__(
        self, model: RobotModel, config: EstimatorConfig | None = None, **overrides: object
    ) -> None:
        self.model = model
        self.config = replace(config or EstimatorConfig(), **overrides)
        scales = expected_scales(model)
        from_urdf = self.config.rigid_body.prior == "urdf"
        self.rigid_body = RigidBodyIdentifier(
            scales.output,
            scales.column,
            model.prior if from_urdf else np.zeros(model.n_parameters),
            self.config.rigid_body,
        )
        self.residual: NystromResidual | FourierResidual
        self.alone: NystromResidual | FourierResidual
        n, axes = model.n_joints, model.n_axes
        nothing = np.zeros((axes, 0))
        if self.config.residual == "nystrom":
            per_joint, local = model.config.target == "effort", self.config.nystrom
            widths = input_widths(local, RESIDUAL["nystrom"], n, axes)
            self.residual = NystromResidual(widths, scales.active, per_joint, local)
            widths = input_widths(local, ALONE, n, axes)
            self.alone = NystromResidual(widths, nothing, False, local)
        else:
            seed, fourier = self.config.seed, self.config.random_fourier
            widths = input_widths(fourier, RESIDUAL["random_fourier"], n, axes)
            self.residual = FourierResidual(widths, axes, fourier, seed)
            widths = input_widths(fourier, ALONE, n, axes)
            self.alone = FourierResidual(widths, axes, fourier, seed + 1)
        # Many random features are confident everywhere: that says nothing of where data was.
        self.trust = Trust(self.config.trust, always=self.config.residual != "nystrom")
        self.errors = ErrorSpreads(model.n_axes, self.config.error_horizon)
        self.bound = OutputBound(model, self.config.output)
        self.gate = LearningGate(self.config.output)

    @property
    def n_learned(self) -> int:
        """Samples learned."""
        return self.errors.n_learned

    def configure(self, config: EstimatorConfig) -> None:
        """Go on with other values of the live parameters; no prediction changes by that alone.

        The standard deviations may: a ridge is also how much noise is expected.
        Raises what :meth:`check` does; the estimator is then what it was.
        """
        self.check(config)
        for core, penalty in self._penalties(config):
            core.set_penalty(penalty)
        self.rigid_body.remember(config.rigid_body)
        for model in (self.residual, self.alone):
            model.remember(getattr(config, config.residual))
        self.trust.config = config.trust
        self.errors.set_horizon(config.error_horizon)
        counts, self.bound = self.bound.counts, OutputBound(self.model, config.output)
        self.bound.counts.update(counts)
        self.gate.config = config.output
        self.config = config

    def check(self, config: EstimatorConfig) -> None:
        """Raise ConfigurationError where :meth:`configure` can't go on with `config`.

        That is where another than a live parameter differs, or what was learned is so much that a
        ridge as small as wanted would be lost beside it.
        """
        before, after = to_flat(self.config), to_flat(config)
        if fixed := [name for name in after if name not in LIVE and before[name] != after[name]]:
            raise ConfigurationError(f"{', '.join(fixed)} can't be changed while learning")
        OutputBound(self.model, config.output)
        for core, penalty in self._penalties(config):
            try:
                core.check_penalty(penalty)
            except LearningError as error:
                raise ConfigurationError(str(error)) from None

    def _penalties(self, config: EstimatorConfig) -> list[tuple[RecursiveLeastSquares, float]]:
        pairs = self.rigid_body.penalties(config.rigid_body)
        for model in (self.residual, self.alone):
            pairs += model.penalties(getattr(config, config.residual))
        return pairs

    def sample(
        self, q: Array, dq: Array, ddq: Array, y: Array | None = None, stamp: int = 0
    ) -> Sample:
        """Make a sample of an unfiltered state (n_joints,) and measurement (n_axes,)."""
        return Sample(stamp, q, dq, ddq, self.model.regressor(q, dq, ddq), y)

    def predict(self, sample: Sample, *, alone: bool = True) -> Prediction:
        """Predict the outputs at a sample's state; its measurement is not looked at.

        Samples are predicted in their order: the trust in the residual follows them. Without
        `alone`, the nonparametric model for comparison is left out (NaN), to be asked later by
        :meth:`complete`.
        """
        s = sample
        rigid = self.rigid_body.predict(s.regressor)
        left = self.residual.predict(self._inputs(s, rigid), self.rigid_body.parameters)
        trust = self.trust.weigh(s.stamp, left.confidence)
        rigid_std, std = self._deviations(s.regressor, trust * left.confidence)
        nothing = np.full(len(rigid), np.nan)
        prediction = Prediction(
            rigid_body=rigid,
            nonparametric=nothing,
            semiparametric=self.bound(rigid + trust * left.value, rigid),
            rigid_body_std=rigid_std,
            nonparametric_std=nothing,
            semiparametric_std=std,
            residual=left,
            trust=trust,
            alone=None,
        )
        return self.complete(s, prediction) if alone else prediction

    def keep_ready(self, wanted: bool = True) -> bool:
        """Have learning keep ready what :meth:`predict_promptly` needs, if that is possible.

        True: it may then be asked in another thread than all else. To be called again after
        anything but learning has changed what was learned.
        """
        return False

    def predict_promptly(self, sample: Sample) -> Prediction:
        """:meth:`predict` without `alone`."""
        return self.predict(sample, alone=False)

    def assess(self, sample: Sample, prediction: Prediction) -> Prediction:
        """The prediction, complete."""
        return prediction

    def _deviations(self, regressor: Array, confidence: float) -> tuple[Array, Array]:
        """Of the rigid body's and of the semiparametric prediction, both (n_axes,)."""
        near, far = self.errors["semiparametric"].value, self.errors["rigid_body"].value
        return deviations(self.rigid_body.leverage(regressor), confidence, near, far)

    def complete(
        self, sample: Sample, prediction: Prediction, spread: Array | None = None
    ) -> Prediction:
        """The same prediction with what the nonparametric model alone says, if there is one.

        spread : of y, see `Comparison`; None: as it is now.
        """
        if prediction.alone is not None or not self.config.comparison:
            return prediction
        x = np.concatenate((sample.q, sample.dq, sample.ddq))
        alone = self.alone.predict(x, self.rigid_body.parameters)
        near = self.errors["nonparametric"].value
        far = self.errors["y"].value if spread is None else spread
        return dataclasses.replace(
            prediction,
            nonparametric=alone.value,
            nonparametric_std=blend(alone.confidence, near, far),
            alone=alone,
        )

    def update(self, sample: Sample, prediction: Prediction | None = None) -> None:
        """Learn from a sample; `prediction` is what :meth:`predict` said of it, if it was asked."""
        if sample.y is None:
            return
        self.finish_update(self.begin_update(sample, prediction or self.predict(sample)))

    def update_rigid_body(self, sample: Sample, prediction: Prediction) -> None:
        """The first half of :meth:`update`; what the gate refuses is left out, in both halves."""
        if sample.y is None:
            return
        error, std = sample.y - prediction.semiparametric, prediction.semiparametric_std
        if not self.gate.refuses(sample.stamp, error, std, self.n_learned):
            self.rigid_body.update(sample.regressor, sample.y, sample.stamp)

    def update_nonparametric(self, sample: Sample, prediction: Prediction) -> None:
        """The second half of :meth:`update`: both nonparametric models, and the spreads."""
        if sample.y is None or self.gate.refused(sample.stamp):
            return
        s, p = sample, self.complete(sample, prediction)
        known = self.residual.predict(self._inputs(s, p.rigid_body), self.rigid_body.parameters)
        self.finish_update(self._update_residual(s, p, known.confidence))

    def begin_update(self, sample: Sample, prediction: Prediction) -> Comparison:
        """:meth:`update` but for the nonparametric model alone, which :meth:`finish_update` does.

        For a measured sample.
        """
        prediction = self.assess(sample, prediction)
        self.update_rigid_body(sample, prediction)
        if self.gate.refused(sample.stamp):
            spread = self.errors["y"].value.copy()
            return Comparison(sample, prediction, spread, 0.0, learn=False)
        return self._update_residual(sample, prediction, prediction.residual.confidence)

    def _update_residual(self, s: Sample, p: Prediction, confidence: float) -> Comparison:
        y, spread = s.y, self.errors["y"].value.copy()
        assert y is not None  # as the callers' docstrings demand
        self.trust.learn(s.stamp, confidence)
        x = self._inputs(s, p.rigid_body)
        self.residual.update(s.stamp, x, p.residual, y, s.regressor, p.rigid_body)
        errors = {"rigid_body": y - p.rigid_body, "semiparametric": y - p.semiparametric}
        return Comparison(s, p, spread, self.errors.record(s.stamp, y, errors), learn=True)

    def finish_update(self, rest: Comparison) -> Prediction:
        """The rest of :meth:`update`, in the samples' order; returns what all models had said.

        It shares nothing with what predicts and with :meth:`begin_update`, so that it may run in
        another thread than they.
        """
        s, y, p = (
            rest.sample,
            rest.sample.y,
            self.complete(rest.sample, rest.prediction, rest.spread),
        )
        if rest.learn and p.alone is not None and y is not None:
            x = np.concatenate((s.q, s.dq, s.ddq))
            self.alone.update(s.stamp, x, p.alone, y, s.regressor[:, :0], 0.0 * y)
            self.errors["nonparametric"].update(y - p.nonparametric, rest.dt)
        return p

    def settle(self) -> None:
        """Do what the next :meth:`predict` would have to do first; no number changes by that.

        For when there is time before it. In all it is more work than to leave it.
        """
        self.residual.settle()

    def _inputs(self, s: Sample, rigid_body: Array) -> Array:
        """The residual's inputs: accelerations only as in the thesis, they spread local centres."""
        if self.config.residual == "nystrom":
            return np.concatenate((s.q, s.dq, rigid_body))
        return np.concatenate((s.q, s.dq, s.ddq, rigid_body))

    def state(self) -> dict[str, Array]:
        """Everything learned, as named arrays."""
        state: dict[str, Array] = {}
        for name in LEARNED:
            part_of_it = getattr(self, name).state()
            state |= {f"{name}.{key}": value for key, value in part_of_it.items()}
        return state | self.errors.state()

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state` of an estimator of the same robot and configuration."""
        for name in LEARNED:
            getattr(self, name).restore(part(state, f"{name}."))
        self.errors.restore(state)

    def copy(self) -> SemiparametricEstimator:
        """Another estimator of the same robot that knows the same and learns on its own."""
        other = SemiparametricEstimator(self.model, self.config)
        other.restore(self.state())
        return other

    def save(self, path: str | Path) -> None:
        """Write what was learned to one file, whole or not at all. Raises StorageError."""
        save_state(path, self.identity(), self.state())

    def load(self, path: str | Path) -> None:
        """Go on from a file of :meth:`save`, with this estimator's live parameters.

        Raises StorageError if it can't be read, is damaged, or is of another robot or
        configuration; the estimator is then what it was.
        """
        before = self.state()
        state = load_state(path, self.identity(), ignore=LIVE, defaults=DEFAULTS)
        try:
            check_finite(state)
            self.restore(state)
            self.configure(self.config)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            self.restore(before)
            what = error if isinstance(error, ConfigurationError) else repr(error)
            raise StorageError(f"{path} can't be gone on from: {what}") from None

    def identity(self) -> dict[str, object]:
        """What a saved model must agree in to be loaded here."""
        robot = {f"robot.{name}": value for name, value in to_flat(self.model.config).items()}
        return {
            "urdf_sha256": self.model.urdf_sha256,
            "joints": list(self.model.joint_names),
            **robot,
            **{name: value for name, value in to_flat(self.config).items() if name not in LIVE},
        }


# -------------------------------------------------------------------------------------------------
# Many samples at once: predicted only, or predicted and learned in turn.
#
# The numbers are those of `SemiparametricEstimator.predict` and `update` sample by sample, to
# rounding, in a few large matrix products; see :mod:`recursion.blocks`. As each model's
# recursion
# says of every sample both what it knew just before it and what it knew before the block, the
# sequential and the delayed protocol come out of one pass.


@dataclass(frozen=True, slots=True)
class BlockPrediction:
    """What the models say of k samples, by their names: (k, n_axes), NaN for one left out."""

    values: dict[str, Array]
    stds: dict[str, Array]

    def rows(self, chosen: Mask) -> BlockPrediction:
        """Some of the predictions."""
        both = ({k: v[chosen] for k, v in a.items()} for a in (self.values, self.stds))
        return BlockPrediction(*both)


@dataclass(frozen=True, slots=True)
class BlockGuesses:
    """What the parts say of k samples; `alone` is None without the model for comparison.

    The residual's answers are as they are trusted.
    """

    rigid: RigidBodyBlock
    residual: GuessBlock
    alone: GuessBlock | None


def learns_in_blocks(estimator: SemiparametricEstimator) -> bool:
    """Whether :func:`learn_block` can be asked.

    Not with a gate, where what is learned depends on the whole prediction, nor where the residual
    forgets. (A rigid body that does is learned sample by sample.)
    """
    config = estimator.config
    nonparametric = config.nystrom if config.residual == "nystrom" else config.random_fourier
    return config.output.gate <= 0.0 and nonparametric.memory <= 0.0


def beside(estimator: SemiparametricEstimator) -> SemiparametricEstimator:
    """Another one that shares what is learned with `estimator`, and keeps errors of its own.

    For predictions that are made later: nothing may be learned through it but errors.
    """
    other = copy.copy(estimator)
    other.errors, other.bound = copy.deepcopy(estimator.errors), copy.deepcopy(estimator.bound)
    return other


def ask_block(estimator: SemiparametricEstimator, block: SampleBlock) -> BlockPrediction:
    """What `estimator.predict` says of each sample; nothing is learned."""
    rigid = estimator.rigid_body.ask_block(block.regressors)
    inputs = _inputs(estimator, block, rigid.values)
    alone = None
    if estimator.config.comparison:
        alone = estimator.alone.ask_block(_states(block, 3), rigid.parameters)
    residual = estimator.residual.ask_block(inputs, rigid.parameters)
    residual = residual.weighed(estimator.trust.weigh_rows(block.stamps, residual.confidence))
    return predicted(estimator, BlockGuesses(rigid, residual, alone))


def learn_block(
    estimator: SemiparametricEstimator, block: SampleBlock
) -> tuple[BlockGuesses, BlockGuesses]:
    """Predict and learn each sample in turn, but for the errors; see :func:`learns_in_blocks`.

    Returns what the parts said of each sample, and what the nonparametric ones said before they
    learned any of the block; the rigid body learns sample by sample in either. Which of the two
    predictions the standard deviations follow is left to :func:`counted` or :func:`record_block`.
    """
    return learn_nonparametric(estimator, block, learn_rigid_body(estimator, block))


def learn_rigid_body(estimator: SemiparametricEstimator, block: SampleBlock) -> RigidBodyBlock:
    """The first half of :func:`learn_block`, which doesn't depend on the second half before it."""
    wanted = estimator.config.residual == "nystrom"  # by a residual that is exact in them
    return estimator.rigid_body.learn_block(
        block.regressors, block.y, block.stamps, parameters=wanted
    )


def learn_nonparametric(
    estimator: SemiparametricEstimator, block: SampleBlock, rigid: RigidBodyBlock
) -> tuple[BlockGuesses, BlockGuesses]:
    """The second half of :func:`learn_block`."""
    y, stamps = block.y, block.stamps
    inputs = _inputs(estimator, block, rigid.values)
    now, late = estimator.residual.learn_block(
        stamps, inputs, y, block.regressors, rigid.values, rigid.parameters
    )
    late = late.weighed(estimator.trust.copy().weigh_rows(stamps, late.confidence))
    now = now.weighed(estimator.trust.learn_rows(stamps, now.confidence))
    alone: tuple[GuessBlock | None, GuessBlock | None] = None, None
    if estimator.config.comparison:
        nothing = block.regressors[:, :, :0], np.zeros_like(y), rigid.parameters
        alone = estimator.alone.learn_block(stamps, _states(block, 3), y, *nothing)
    return BlockGuesses(rigid, now, alone[0]), BlockGuesses(rigid, late, alone[1])


def predicted(estimator: SemiparametricEstimator, guesses: BlockGuesses) -> BlockPrediction:
    """Predictions of `guesses`, with the standard deviations that `estimator` has now."""
    return BlockPrediction(_values(estimator, guesses), _stds(guesses, estimator.errors.values()))


def counted(
    estimator: SemiparametricEstimator, block: SampleBlock, guesses: BlockGuesses
) -> BlockPrediction:
    """Predictions of `guesses`, each of which counts as learned before the next one is made."""
    values = _values(estimator, guesses)
    return BlockPrediction(values, _stds(guesses, record_block(estimator, block, values)))


def record_block(
    estimator: SemiparametricEstimator, block: SampleBlock, values: Mapping[str, Array]
) -> dict[str, Array]:
    """Count the samples as learned after these predictions; the mean squares before each."""
    names = ["rigid_body", "semiparametric"]
    if estimator.config.comparison:
        names.append("nonparametric")
    errors = {name: block.y - values[name] for name in names}
    return estimator.errors.record_rows(block.stamps, block.y, errors)


def _states(block: SampleBlock, used: int) -> Array:
    """Positions, velocities and, if three are `used`, accelerations side by side."""
    return np.concatenate((block.q, block.dq, block.ddq)[:used], axis=1)


def _inputs(estimator: SemiparametricEstimator, block: SampleBlock, rigid: Array) -> Array:
    used = 2 if estimator.config.residual == "nystrom" else 3
    return np.concatenate((_states(block, used), rigid), axis=1)


def _values(estimator: SemiparametricEstimator, guesses: BlockGuesses) -> dict[str, Array]:
    rigid = guesses.rigid.values
    both = rigid + guesses.residual.values
    if not (np.abs(both) <= estimator.bound.limit).all():  # the usual case need not be looked at
        rows = zip(both, rigid, strict=True)
        both = np.array([estimator.bound(row, otherwise) for row, otherwise in rows])
    alone = np.full_like(rigid, np.nan) if guesses.alone is None else guesses.alone.values
    return {"rigid_body": rigid, "nonparametric": alone, "semiparametric": both}


def _stds(guesses: BlockGuesses, spreads: Mapping[str, Array]) -> dict[str, Array]:
    """By mean squared errors of one moment (n_axes,), or of each sample's (k, n_axes)."""
    root = np.sqrt(1.0 + guesses.rigid.leverages)
    near, far = spreads["semiparametric"], spreads["rigid_body"]
    alone = np.full_like(root, np.nan)
    if guesses.alone is not None:
        sure = guesses.alone.confidence[:, None]
        alone = blend(sure, spreads["nonparametric"], spreads["y"])
    return {
        "rigid_body": np.sqrt(far) * root,
        "nonparametric": alone,
        "semiparametric": root * blend(guesses.residual.confidence[:, None], near, far),
    }
