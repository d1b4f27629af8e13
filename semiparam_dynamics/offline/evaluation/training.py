"""Training in batch, of an estimator that then continues sample by sample, and its files.

The rigid body is identified by the recursion, and the residual's models by any batch estimator on
what that leaves, which then become the recursion's state (see `learning.recursive_rls`).
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.config_files import dump_yaml
from semiparam_dynamics.base.errors import BagError, ConfigurationError, LearningError, listing
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.base.parameters import replace, to_flat
from semiparam_dynamics.base.storage import save_state
from semiparam_dynamics.dynamics.estimator import EstimatorConfig, SemiparametricEstimator
from semiparam_dynamics.dynamics.residual import FourierFeatures, KernelModel, KernelResidual
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import NOTHING_WHOLE, Motion, Sample
from semiparam_dynamics.learner.config import InverseDynamicsConfig, InverseDynamicsNodeConfig
from semiparam_dynamics.learner.learner import LOCKED
from semiparam_dynamics.learning.recursion.features import IncrementalNystromFeatures
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares
from semiparam_dynamics.offline.evaluation.bags import Bags, check_motion, robot_of, samples_of
from semiparam_dynamics.robot.model import RobotModel, expected_scales

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


@dataclass(frozen=True)
class BatchStart:
    """A trained estimator, which continues to learn, and its errors on what it was trained on."""

    estimator: SemiparametricEstimator
    learner: str  # the batch estimator's class
    rigid_body: Array  # (n_axes,) root mean square of what the rigid body leaves
    semiparametric: Array  # (n_axes,) the same of the sum
    held_out: Array  # (n_axes,) the same with each sample left out of the residual's training


def batch_start(data: TrainingData, learner: str = "") -> BatchStart:
    """Train an estimator on `data` in batch.

    learner : a name in `LEARNERS`; empty: the one for the residual. It is fitted with the
    configuration's hyperparameters, on the centers that the recursion would choose.
    Raises ConfigurationError for an unknown name.
    """
    name = learner or DEFAULTS[data.config.residual]
    template = batch_learner(name)
    config = replace(data.config, residual=LEARNERS[name][1])
    estimator = SemiparametricEstimator(data.model, config)
    estimator.rigid_body.restore(data.identifier.state())
    trained, held_out = start_residual(estimator.residual, data, template)
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
    residual: KernelResidual, data: TrainingData, template: Any
) -> tuple[Array, Array]:
    """Continue from a model that a copy of `template` trains in batch on `data`.

    What is inferred is inferred as online, and the batch is for what that leaves. Returns errors
    (n, n_axes) on the samples, and those as if each of them had not been learned by that.
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
    fitted = fit(template, model, X, model.told(targets), data)
    outputs, left_out = start_model(model, fitted, X, data.share)
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


def fit(template: Any, model: KernelModel, X: Array, Z: Array, data: TrainingData) -> Any:
    """A copy of the estimator `template` fitted to inputs X (n, d) and targets Z (n, T).

    Its kernel, penalty, centers and seed are those of the `model` that it will start, the rest
    stays.
    """
    from sklearn.base import clone

    from semiparam_dynamics.learning.kernels import Gaussian

    features = model.features
    width = features.length_scale
    values: dict[str, Any] = {"penalty": model.core.penalty / (data.share * len(X))}
    values |= {"kernel": Gaussian(width), "length_scale": width}
    if isinstance(features, FourierFeatures):
        values |= {"n_features": features.capacity, "kind": "pair"}
        values |= {"random_state": features.seed}
    else:
        centers = novel_centers(features, X)
        values |= {"centers": centers, "n_centers": len(centers)}
        values |= {"random_state": data.config.seed}
    estimator = clone(template)
    known = estimator.get_params(deep=False)
    estimator.set_params(**{name: value for name, value in values.items() if name in known})
    return estimator.fit(X, Z)


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


MODEL_FILE, PARAMETERS_FILE = "model.npz", "params.yaml"


@dataclass(frozen=True)
class Training:
    """A model trained on bags; `config` is what it was trained with and must be run with."""

    start: BatchStart
    config: InverseDynamicsConfig
    n_samples: int
    seconds: float  # for identification and training, without reading


def train_on_bags(
    bags: Bags,
    config: InverseDynamicsConfig,
    learner: str = "",
    progress: Callable[[float], None] = lambda share: None,
) -> Training:
    """Train on `bags.train` in batch; `learner` as in `batch_start`.

    Raises BagError, RobotModelError or ConfigurationError with what is missing, and LearningError
    where the estimator has no answer.
    """
    model, config = robot_of(bags, config)
    stamps: list[int] = []
    measured: Mask = np.zeros(model.n_axes, dtype=bool)

    def teaching() -> Iterator[Sample]:
        for _, _, sample in samples_of(bags.train, bags, model, config, progress):
            if sample.informative and sample.y is not None:
                stamps.append(sample.stamp)
                measured[np.isfinite(sample.y)] = True
                yield sample

    with threadpool_limits(limits=1):  # a sample's products are too small to be spread
        motion = Motion.of(teaching(), expected_scales(model).active)
    if not stamps:
        raise BagError("no sample measured in motion was found to train on")
    if not len(motion):
        never = [axis for axis, known in zip(model.axes, measured, strict=True) if not known]
        told = f" (never measured: {listing(never)})" if never else ""
        raise BagError(f"nothing to train on: {NOTHING_WHOLE}{told}")
    if little := check_motion(stamps):
        bags.warnings.append(little)
    started = time.perf_counter()
    with threadpool_limits(limits=1):
        data = training_data(model, config.estimator, motion)
    start = batch_start(data, learner)
    config = dataclasses.replace(config, estimator=start.estimator.config)
    return Training(start, config, len(stamps), time.perf_counter() - started)


def write_training(training: Training, directory: Path, urdf: str | Path = "") -> None:
    """Write model.npz and params.yaml into `directory`, made if need be.

    A node given params.yaml loads the model at its start and goes on learning from it. Raises
    StorageError where that fails. Files that are replaced are kept, see `output_files`.
    """
    estimator = training.start.estimator
    joints = {"joints": estimator.model.joint_names, LOCKED: estimator.model.locked}
    told = {**to_flat(training.config), **joints}
    model = directory / MODEL_FILE
    state = estimator.state()
    save_state(model, estimator.identity(), state, parameters=told, keep_previous=True)
    # Without autosave what was trained stays as it is.
    about = {"model_file": str(model.expanduser().absolute()), "autosave": False}
    parameters = node_yaml(training.config, urdf, **about)
    write_files({directory / PARAMETERS_FILE: parameters})


def node_yaml(config: InverseDynamicsConfig, urdf: str | Path, **others: Any) -> str:
    """The YAML of a node that learns with `config`; `others` are its further parameters."""
    path = str(Path(urdf).expanduser().absolute()) if urdf else ""
    return dump_yaml(InverseDynamicsNodeConfig(urdf=path, learner=config, **others))


def training_table(training: Training) -> str:
    """The trained model and its errors on the training samples, a line for each axis."""
    start, model = training.start, training.start.estimator.model
    residual = start.estimator.residual
    kind = "centers" if residual.local else "random features"
    size = f"{residual.model.core.n_features} {kind}"
    if inferred := residual.inferred.n_centers:
        size += f", and {inferred} of the inferred kernel"
    width = max(len(axis) for axis in (*model.axes, "all axes"))
    lines = [
        f"{start.learner}: {training.n_samples} samples, {size}, {training.seconds:.1f} s",
        "root mean square error on them; held out: as if the residual had not learned the sample",
        f"{'axis':<{width}} {'rigid body':>12} {'semiparametric':>15} {'held out':>12}",
    ]
    errors = np.array((start.rigid_body, start.semiparametric, start.held_out)).T
    rows = [*errors, np.sqrt(np.mean(errors**2, axis=0))]
    for name, (rigid, both, held_out) in zip((*model.axes, "all axes"), rows, strict=True):
        lines.append(f"{name:<{width}} {rigid:>12.4g} {both:>15.4g} {held_out:>12.4g}")
    return "\n".join(lines)
