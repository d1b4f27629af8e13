"""A semiparametric estimator trained in batch, ready to go on learning sample by sample.

The rigid body is identified first, as the recursion does it. Then the residuals are trained by
any batch estimator on what it leaves, and its centres, hyperparameters and weights become the
recursion's state (see `learning.warm_start`).
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.dynamics.estimator import EstimatorConfig, SemiparametricEstimator
from semiparam_dynamics.dynamics.residual import (
    RESIDUAL,
    BatchErrors,
    FourierResidual,
    LocalModel,
    ResidualData,
    input_widths,
)
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.kernels import Gaussian, as_kernel
from semiparam_dynamics.parameters import replace
from semiparam_dynamics.recursion.features import IncrementalNystromFeatures
from semiparam_dynamics.robot.model import RobotModel, expected_scales

# -------------------------------------------------------------------------------------------------
# The batch estimators that a residual can be trained with, by name.

# Name: (module, class, the residual whose features it has).
LEARNERS = {
    "nystrom_krls": ("nystrom", "NystromKRLS", "nystrom"),
    "falkon": ("falkon", "Falkon", "nystrom"),
    "nytro": ("nytro", "NYTRO", "nystrom"),
    "nystrom_sgm": ("nystrom_sgm", "NystromSGM", "nystrom"),
    "krls": ("krls", "KRLS", "nystrom"),
    "random_features": ("random_features", "RandomFeaturesKRLS", "random_fourier"),
}
DEFAULTS = {"nystrom": "nystrom_krls", "random_fourier": "random_features"}
CENTERS = ("novelty", "uniform", "leverage_scores")


def batch_learner(name: str) -> Any:
    """An unfitted estimator by its name in LEARNERS."""
    if name not in LEARNERS:
        raise ConfigurationError(f"learner must be one of {', '.join(LEARNERS)}, not '{name}'.")
    module, class_name, _ = LEARNERS[name]
    return getattr(importlib.import_module(f"semiparam_dynamics.learning.{module}"), class_name)()


def residual_of(learner: Any) -> str:
    """Which residual has an estimator's features: `nystrom` or `random_fourier`."""
    for _, class_name, residual in LEARNERS.values():
        if type(learner).__name__ == class_name:
            return residual
    return "random_fourier" if hasattr(learner, "frequencies_") else "nystrom"


@dataclass(frozen=True)
class BatchFit:
    """Fits copies of an estimator with the hyperparameters of the model that each will start.

    template : an estimator; its kernel, penalty, centres and seed are replaced, the rest stays.
    centers : how centres are chosen: by "novelty", as the recursion would add them, or
        "uniform" or "leverage_scores", half as many as there may be: the other half is left to
        places that the training data don't show.
    """

    template: Any
    centers: str = "novelty"
    seed: int = 0

    def __call__(self, start: LocalModel | FourierResidual, X: Array, Z: Array) -> Any:
        """The estimator fitted to inputs X (n, d) and targets Z (n, T)."""
        values: dict[str, Any] = {"penalty": start.core.penalty / len(X)}
        if isinstance(start, LocalModel):
            width = start.features.length_scale
            values |= self._centers(start.features, X) | {"random_state": self.seed}
        else:
            width = start.length_scale
            values |= {"n_features": start.n_features, "random_state": start.seed, "kind": "pair"}
        values |= {"kernel": Gaussian(width), "length_scale": width}
        estimator = clone(self.template)
        known = estimator.get_params(deep=False)
        estimator.set_params(**{name: value for name, value in values.items() if name in known})
        return estimator.fit(X, Z)

    def _centers(self, features: IncrementalNystromFeatures, X: Array) -> dict[str, Any]:
        if self.centers != "novelty":
            return {
                "centers": self.centers,
                "n_centers": min(features.capacity - features.capacity // 2, len(X)),
            }
        chosen = novel_centers(features, X)
        return {"centers": chosen, "n_centers": len(chosen)}


def novel_centers(features: IncrementalNystromFeatures, X: Array) -> Array:
    """The rows of X (n, d) that `features`, begun anew, would make centres, in their order."""
    d = X.shape[1]
    trial = IncrementalNystromFeatures(
        d, features.length_scale, features.capacity, features.novelty
    )
    for x in np.ascontiguousarray(X):
        trial.grow(x, trial.transform(x))
        if trial.n_centers == trial.capacity:
            break
    return trial.centers.copy()


@dataclass(frozen=True)
class TrainingData:
    """Samples that the rigid body has been identified on, laid out for batch training."""

    model: RobotModel
    config: EstimatorConfig
    stamps: Indices  # (n,) ns
    q: Array  # (n, n_joints), and so dq and ddq
    dq: Array
    ddq: Array
    y: Array  # (n, n_axes)
    targets: Array  # (n, n_axes + active columns of Phi): y and those columns
    rigid_body: Array  # (n, n_axes) Phi pi, with pi as identified from all samples
    rigid_body_before: Array  # (n, n_axes) the same as predicted before each sample was learned
    identifier: RigidBodyIdentifier

    @property
    def residual(self) -> ResidualData:
        """What the semiparametric part is trained on."""
        accelerations = () if self.config.residual == "nystrom" else (self.ddq,)
        inputs = np.column_stack((self.q, self.dq, *accelerations, self.rigid_body))
        left, pi = self.y - self.rigid_body, self.identifier.parameters
        return ResidualData(self.stamps, inputs, self.targets, left, pi)

    @property
    def alone(self) -> ResidualData:
        """What the nonparametric part alone, for comparison, is trained on."""
        inputs = np.column_stack((self.q, self.dq, self.ddq))
        return ResidualData(self.stamps, inputs, self.y, self.y, self.identifier.parameters)

    def standardised(self) -> tuple[Array, Array]:
        """Inputs (n, d) and targets (n, T) of the residual as its batch estimator sees them.

        Whoever selects an estimator outside fits it to these.
        """
        data = self.residual
        deviation = data.inputs.std(axis=0)
        kind, axes = self.config.residual, self.model.n_axes
        widths = input_widths(getattr(self.config, kind), RESIDUAL[kind], self.model.n_joints, axes)
        scale = np.where(deviation > 1e-9, deviation, 1.0) * widths
        X = (data.inputs - data.inputs.mean(axis=0)) / scale
        return X, data.targets if self.config.residual == "nystrom" else data.left


def training_data(
    model: RobotModel, config: EstimatorConfig, samples: Iterable[Sample]
) -> TrainingData:
    """Identify the rigid body on samples in their order, and keep what the residuals need.

    Samples without a measurement are passed over. Raises LearningError if fewer than two are left.
    """
    identifier = SemiparametricEstimator(model, config).rigid_body
    axis, column = np.nonzero(expected_scales(model).active)
    kept: list[Sample] = []
    columns: list[Array] = []
    before: list[Array] = []
    for sample in samples:
        if sample.y is None:
            continue
        before.append(identifier.predict(sample.regressor))
        identifier.update(sample.regressor, sample.y, sample.stamp)
        columns.append(sample.regressor[axis, column])
        nothing = sample.regressor[:0]  # the regressors themselves need not be kept
        kept.append(Sample(sample.stamp, sample.q, sample.dq, sample.ddq, nothing, sample.y))
    if len(kept) < 2:
        raise LearningError("There are no two measured samples to train on.")
    y, Phi = np.array([s.y for s in kept]), np.array(columns)
    of_axis = np.zeros((len(axis), model.n_axes))
    of_axis[np.arange(len(axis)), axis] = identifier.parameters[column]
    return TrainingData(
        model=model,
        config=config,
        stamps=np.array([s.stamp for s in kept], dtype=np.int64),
        q=np.array([s.q for s in kept]),
        dq=np.array([s.dq for s in kept]),
        ddq=np.array([s.ddq for s in kept]),
        y=y,
        targets=np.column_stack((y, Phi)),
        rigid_body=Phi @ of_axis,
        rigid_body_before=np.array(before),
        identifier=identifier,
    )


@dataclass(frozen=True)
class BatchStart:
    """A trained estimator, which goes on learning, and its errors on what it was trained on."""

    estimator: SemiparametricEstimator
    learner: str  # the batch estimator's class
    rigid_body: Array  # (n_axes,) root mean square of what the rigid body leaves
    semiparametric: Array  # (n_axes,) the same of the sum
    held_out: Array  # (n_axes,) the same with each sample left out of the residual's training


def batch_start(data: TrainingData, learner: Any = None, centers: str = "novelty") -> BatchStart:
    """Train an estimator on `data` in batch.

    Parameters
    ----------
    learner : a name in `batch_learners.LEARNERS`; None takes the one for the residual. Or an
        estimator. One that isn't fitted is fitted with the configuration's hyperparameters. One
        that was fitted to `data.standardised()` is the residual as it is, and the configuration
        follows its kernel's width and its penalty; the second level and the model alone are
        fitted by copies of it.
    centers : how centres are chosen, see :class:`BatchFit`.

    The configuration of the estimator is `estimator.config`; a file of its `save` needs just it.
    """
    config = data.config
    if learner is None or isinstance(learner, str):
        learner = batch_learner(learner or DEFAULTS[config.residual])
    config = replace(config, residual=residual_of(learner))
    data = TrainingData(**{**vars(data), "config": config})
    fit = BatchFit(learner, centers, config.seed)
    if (fitted := _fitted(learner)) is not None:
        config = _following(fitted, data)
        data = TrainingData(**{**vars(data), "config": config})
    estimator = SemiparametricEstimator(data.model, config)
    estimator.rigid_body.restore(data.identifier.state())

    def given(start: Any, X: Array, Z: Array) -> Any:
        shared = getattr(estimator.residual, "shared", estimator.residual)
        return fitted if fitted is not None and start is shared else fit(start, X, Z)

    residual = estimator.residual.start(data.residual, given)
    alone = estimator.alone.start(data.alone, fit) if config.comparison else None
    _record_errors(estimator, data, residual, alone)
    rms = [np.sqrt(np.mean(e**2, axis=0)) for e in (data.residual.left, *vars(residual).values())]
    return BatchStart(estimator, type(learner).__name__, *rms)


def _fitted(learner: Any) -> Any:
    try:
        check_is_fitted(learner)
    except NotFittedError:
        return None
    return learner


def _following(fitted: Any, data: TrainingData) -> EstimatorConfig:
    """The configuration with the hyperparameters of a fitted estimator."""
    config, group = data.config, data.config.residual
    n, d = len(data.stamps), data.residual.inputs.shape[1]
    if fitted.n_features_in_ != d:
        raise ConfigurationError(
            f"the estimator was fitted to {fitted.n_features_in_} inputs, the residual has {d}: "
            "fit it to data.standardised()"
        )
    changes: dict[str, object] = {}
    kernel = as_kernel(getattr(fitted, "kernel", None))
    width = np.unique(getattr(fitted, "length_scale", getattr(kernel, "length_scale", np.nan)))
    if not isinstance(kernel, Gaussian) or len(width) > 1:
        raise ConfigurationError("the residual needs a Gaussian kernel of one width for all inputs")
    changes[f"{group}.length_scale"] = float(width[0]) / math.sqrt(d / 2)
    if hasattr(fitted, "penalty"):
        changes[f"{group}.penalty"] = float(fitted.penalty) * n
    if group == "random_fourier":
        changes["random_fourier.n_features"] = 2 * len(fitted.frequencies_)
    return replace(config, **changes)


def _record_errors(
    estimator: SemiparametricEstimator,
    data: TrainingData,
    residual: BatchErrors,
    alone: BatchErrors | None,
) -> None:
    """Lead the standard deviations through the errors made before each sample was learned."""
    for i, stamp in enumerate(data.stamps):
        errors = {
            "rigid_body": data.y[i] - data.rigid_body_before[i],
            "semiparametric": residual.held_out[i],
        }
        if alone is not None:
            errors["nonparametric"] = alone.held_out[i]
        estimator.errors.record(int(stamp), data.y[i], errors)
