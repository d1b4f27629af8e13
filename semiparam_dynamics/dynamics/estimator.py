"""Incremental semiparametric inverse dynamics (thesis chapter 8, figure 8.2)."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.comparison import Comparison
from semiparam_dynamics.dynamics.error_spreads import ErrorSpreads
from semiparam_dynamics.dynamics.estimator_config import DEFAULTS, LIVE
from semiparam_dynamics.dynamics.estimator_config import EstimatorConfig as EstimatorConfig
from semiparam_dynamics.dynamics.fourier_residual import FourierResidual
from semiparam_dynamics.dynamics.gate import LearningGate
from semiparam_dynamics.dynamics.input_groups import ALONE, RESIDUAL, input_widths
from semiparam_dynamics.dynamics.local_model import part
from semiparam_dynamics.dynamics.nystrom_residual import NystromResidual
from semiparam_dynamics.dynamics.output_bound import OutputBound
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.dynamics.sample import Prediction, Sample
from semiparam_dynamics.dynamics.scales import expected_scales
from semiparam_dynamics.dynamics.spread import blend, deviations
from semiparam_dynamics.dynamics.trust import Trust
from semiparam_dynamics.errors import ConfigurationError, LearningError, StorageError
from semiparam_dynamics.learning.recursive import RecursiveLeastSquares
from semiparam_dynamics.parameters import replace, to_flat
from semiparam_dynamics.storage import check_finite, load_state, save_state

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
        return isinstance(self.residual, FourierResidual) and self.residual.keep_ready(wanted)

    def predict_promptly(self, sample: Sample) -> Prediction:
        """:meth:`predict` without `alone` and, after :meth:`keep_ready`, without deviations (NaN).

        The values are the same to rounding; :meth:`assess` puts in the rest. For a message that
        waits for its answer.
        """
        if not isinstance(self.residual, FourierResidual):
            return self.predict(sample, alone=False)  # its weight is how well it knows the place
        rigid = self.rigid_body.predict(sample.regressor)
        left = self.residual.predict_promptly(self._inputs(sample, rigid))
        nothing = np.full(len(rigid), np.nan)
        value = self.bound(rigid + left.value, rigid)
        return Prediction(rigid, nothing, value, nothing, nothing, nothing, left, 1.0, None)

    def assess(self, sample: Sample, prediction: Prediction) -> Prediction:
        """The same prediction with the deviations that :meth:`predict_promptly` left out."""
        known = not math.isnan(prediction.semiparametric_std[0])
        if known or not isinstance(self.residual, FourierResidual):
            return prediction
        left = self.residual.assess(prediction.residual)
        rigid_std, std = self._deviations(sample.regressor, left.confidence)
        return dataclasses.replace(
            prediction, rigid_body_std=rigid_std, semiparametric_std=std, residual=left
        )

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
