"""A semiparametric estimator trained in batch, ready to continue sample by sample.

The rigid body is identified first, by the recursion. Then the residual's models are trained by any
batch estimator on what it leaves, and their centers, hyperparameters and weights become the
recursion's state (see `learning.recursive_rls`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.estimator import EstimatorConfig, SemiparametricEstimator
from semiparam_dynamics.dynamics.residual import (
    FourierFeatures,
    KernelModel,
    KernelResidual,
)
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import Motion
from semiparam_dynamics.learning.recursion.features import IncrementalNystromFeatures
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares
from semiparam_dynamics.robot.model import RobotModel

# The batch estimators that a residual can be trained with.
# Name: (class in `learning`, the residual whose features it has).
LEARNERS = {
    "nystrom_krls": ("NystromKRLS", "nystrom"),
    "falkon": ("Falkon", "nystrom"),
    "nytro": ("NYTRO", "nystrom"),
    "nystrom_sgm": ("NystromSGM", "nystrom"),
    "krls": ("KRLS", "nystrom"),
    "random_features": ("RandomFeaturesKRLS", "random_fourier"),
}
DEFAULTS = {"nystrom": "nystrom_krls", "random_fourier": "random_features"}
CENTERS = ("novelty", "uniform", "leverage_scores")


@dataclass(frozen=True)
class BatchStart:
    """A trained estimator, which continues to learn, and its errors on what it was trained on."""

    estimator: SemiparametricEstimator
    learner: str  # the batch estimator's class
    rigid_body: Array  # (n_axes,) root mean square of what the rigid body leaves
    semiparametric: Array  # (n_axes,) the same of the sum
    held_out: Array  # (n_axes,) the same with each sample left out of the residual's training


def batch_start(data: TrainingData, learner: str = "", centers: str = "novelty") -> BatchStart:
    """Train an estimator on `data` in batch.

    Parameters
    ----------
    learner : a name in `LEARNERS`; empty: the one for the residual. It is fitted with the
        configuration's hyperparameters.
    centers : how centers are chosen, see :class:`BatchFit`.

    The configuration of the estimator is `estimator.config`; a file of its `save` needs just it.
    Raises ConfigurationError for an unknown name.
    """
    name = learner or DEFAULTS[data.config.residual]
    template = batch_learner(name)
    config = replace(data.config, residual=LEARNERS[name][1])
    estimator = SemiparametricEstimator(data.model, config)
    estimator.rigid_body.restore(data.identifier.state())
    fit = BatchFit(template, centers, config.seed, data.share)
    trained, held_out = start_residual(estimator.residual, data, fit)
    # The standard deviations follow the errors made before each sample was learned.
    stamps, y = data.motion.stamps, data.motion.y
    before = {"rigid_body": y - data.rigid_body_before, "semiparametric": held_out}
    for k, stamp in enumerate(stamps.tolist()):
        estimator.errors.record(stamp, y[k], {name: of[k] for name, of in before.items()}, {})
    rms = [np.sqrt(np.mean(e**2, axis=0)) for e in (y - data.rigid_body, trained, held_out)]
    return BatchStart(estimator, type(template).__name__, *rms)


@dataclass(frozen=True)
class TrainingData:
    """A motion that the rigid body has been identified on."""

    model: RobotModel
    config: EstimatorConfig
    motion: Motion
    rigid_body: Array  # (n, n_axes) Phi pi, with pi as identified from all samples
    rigid_body_before: Array  # (n, n_axes) the same as predicted before each sample was learned
    identifier: RigidBodyIdentifier

    @property
    def share(self) -> float:
        """The mean weight of a sample, with which batch estimators learn all of them."""
        return float(self.motion.weights.mean())

    def inputs(self, residual: KernelResidual) -> Array:
        """The residual's inputs (n, d), not standardized."""
        motion = self.motion
        return residual.inputs(motion.q, motion.dq, motion.ddq, self.rigid_body)

    def targets(self, residual: KernelResidual) -> Array:
        """The residual's targets (n, T)."""
        if residual.exact:
            return np.concatenate((self.motion.y, self.motion.entries), axis=1)
        return self.motion.y - self.rigid_body


def training_data(model: RobotModel, config: EstimatorConfig, motion: Motion) -> TrainingData:
    """Identify the rigid body on a motion of the entries that can be nonzero, see `Motion.of`.

    Raises LearningError if it has fewer than two samples.
    """
    if len(motion) < 2:
        raise LearningError("There are no two samples measured on all axes to train on.")
    identifier = RigidBodyIdentifier.of(model, config.rigid_body)
    before = identifier.update_motion(motion).values
    after = motion.rigid_body(identifier.parameters)
    return TrainingData(model, config, motion, after, before, identifier)


def start_residual(
    residual: KernelResidual, data: TrainingData, fit: BatchFit
) -> tuple[Array, Array]:
    """Continue from models that `fit` trains in batch on `data`.

    What is inferred is inferred as online, and `fit` is for what that leaves. Returns errors (n,
    n_axes) on the samples, and those as if each of them had not been learned by that.
    """
    motion, pi = data.motion, data.identifier.parameters
    inputs = data.inputs(residual)
    residual.standardizer.fit(motion.stamps, inputs)
    X = residual.standardizer.transform(inputs)
    residual.states.novelty(X, grow=True)
    targets = data.targets(residual)
    for row in zip(inputs, targets, motion.weights.tolist(), strict=True):
        residual.inferred.learn(*row)
    residual.infer(pi)
    model = residual.model
    outputs, left_out = start_model(model, fit(model, X, model.told(targets)), X, data.share)
    errors = model.targets.residuals(targets, pi) - residual.combine(outputs, X, pi)
    return errors, errors / left_out[:, None]


def start_model(
    model: KernelModel, fitted: Any, X: Array, share: float = 1.0
) -> tuple[Array, Array]:
    """Continue from a model trained in batch on inputs X (n, d), which count `share` each.

    fitted : of this model's Gaussian kernel, its targets laid out alike, with centers_ or
        frequencies_, and coef_ (m, T). More centers than the capacity are projected on half as many
        as that, so that new places can have some.
    Returns what `fitted_rows` does: outputs (n, T), and 1 - leverage (n,).
    """
    # Not at the top: it needs scikit-learn, which a node would load for nothing.
    from semiparam_dynamics.learning.recursive_rls import (
        fitted_rows,
        nystrom_start,
        random_start,
        recursion_from,
    )

    features, penalty = model.features, model.core.penalty
    transform: Callable[[Array], Array]
    if isinstance(features, FourierFeatures):
        pairs, weights = random_start(fitted)
        features.frequencies = pairs.frequencies_
        transform = features.transform
    else:
        fits = len(getattr(fitted, "centers_", ())) <= features.capacity
        most = features.capacity if fits else features.capacity - features.capacity // 2
        basis, weights = nystrom_start(fitted, most)
        features.restore(basis.state())
        transform = basis.transform
    whole = recursion_from(transform, X, weights, penalty / share, features.capacity)
    model.core = RecursiveLeastSquares(
        whole.n_features, whole.n_outputs, penalty, capacity=features.capacity
    )
    root = math.sqrt(share)
    model.core.restore({"R": root * whole.R, "U": root * whole.U, "refreshed": np.array(0)})
    return fitted_rows(whole, transform, X)


@dataclass(frozen=True)
class BatchFit:
    """Fits copies of an estimator with the hyperparameters of the model that each will start.

    template : an estimator; its kernel, penalty, centers and seed are replaced, the rest stays.
    centers : how centers are chosen: by "novelty", as the recursion would add them, or
        "uniform" or "leverage_scores", half as many as there may be: the other half is left to
        places that the training data don't show.
    share : how much each sample counts.
    """

    template: Any
    centers: str = "novelty"
    seed: int = 0
    share: float = 1.0

    def __call__(self, model: KernelModel, X: Array, Z: Array) -> Any:
        """The estimator fitted to inputs X (n, d) and targets Z (n, T)."""
        from sklearn.base import clone

        from semiparam_dynamics.learning.kernels import Gaussian

        features = model.features
        width = features.length_scale
        values: dict[str, Any] = {"penalty": model.core.penalty / (self.share * len(X))}
        values |= {"kernel": Gaussian(width), "length_scale": width}
        if isinstance(features, FourierFeatures):
            values |= {"n_features": features.capacity, "kind": "pair"}
            values |= {"random_state": features.seed}
        else:
            values |= self._centers(features, X) | {"random_state": self.seed}
        estimator = clone(self.template)
        known = estimator.get_params(deep=False)
        estimator.set_params(**{name: value for name, value in values.items() if name in known})
        return estimator.fit(X, Z)

    def _centers(self, features: IncrementalNystromFeatures, X: Array) -> dict[str, Any]:
        if self.centers != "novelty":
            half = features.capacity - features.capacity // 2
            return {"centers": self.centers, "n_centers": min(half, len(X))}
        chosen = novel_centers(features, X)
        return {"centers": chosen, "n_centers": len(chosen)}


def novel_centers(features: IncrementalNystromFeatures, X: Array) -> Array:
    """The rows of X (n, d) that `features`, begun anew, would make centers, in their order."""
    d = X.shape[1]
    numbers = features.length_scale, features.capacity, features.novelty
    trial = IncrementalNystromFeatures(d, *numbers, sparing=features.sparing)
    for x in np.ascontiguousarray(X):
        trial.grow(x, trial.transform(x))
        if trial.n_centers == trial.capacity:
            break
    return trial.centers.copy()


def batch_learner(name: str) -> Any:
    """An unfitted estimator by its name in LEARNERS."""
    if name not in LEARNERS:
        raise ConfigurationError(f"learner must be one of {', '.join(LEARNERS)}, not '{name}'.")
    from semiparam_dynamics import learning

    return getattr(learning, LEARNERS[name][0])()
