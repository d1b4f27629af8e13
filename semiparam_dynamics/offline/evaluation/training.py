"""Training on bags in batch, and the files that a node starts from."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Mask
from semiparam_dynamics.base.config_files import dump_yaml
from semiparam_dynamics.base.errors import BagError, listing
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.base.parameters import to_flat
from semiparam_dynamics.base.storage import save_state
from semiparam_dynamics.dynamics.sample import NOTHING_WHOLE, Motion, Sample
from semiparam_dynamics.learner.config import InverseDynamicsConfig, InverseDynamicsNodeConfig
from semiparam_dynamics.learner.learner import LOCKED
from semiparam_dynamics.offline.evaluation.bags import Bags, check_motion, robot_of, samples_of
from semiparam_dynamics.offline.evaluation.batch_start import BatchStart, batch_start, training_data
from semiparam_dynamics.robot.model import expected_scales

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
    centers: str = "novelty",
    progress: Callable[[float], None] = lambda share: None,
) -> Training:
    """Train on `bags.train` in batch; `learner` and `centers` as in `batch_start`.

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
    start = batch_start(data, learner, centers)
    config = dataclasses.replace(config, estimator=start.estimator.config)
    return Training(start, config, len(stamps), time.perf_counter() - started)


def write_training(training: Training, directory: Path, urdf: str | Path = "") -> None:
    """Write model.npz and params.yaml into `directory`, made if need be.

    A node given params.yaml loads the model at its start and goes on learning from it. Raises
    StorageError where that fails. Files that are replaced are kept, see `output_files`.
    """
    estimator = training.start.estimator
    joints = {"joints": estimator.model.joint_names, LOCKED: estimator.model.locked}
    about = {**to_flat(training.config), **joints}
    model = directory / MODEL_FILE
    state = estimator.state()
    save_state(model, estimator.identity(), state, parameters=about, keep_previous=True)
    config = InverseDynamicsNodeConfig(
        urdf=str(Path(urdf).expanduser().absolute()) if urdf else "",
        model_file=str(model.expanduser().absolute()),
        autosave=False,  # what was trained stays as it is
        learner=training.config,
    )
    write_files({directory / PARAMETERS_FILE: dump_yaml(config)})


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
