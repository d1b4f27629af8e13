"""Physically consistent parameters from bags: how well they fit, and the files they go into."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import BagError, ConfigurationError
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.dynamics.consistent import (
    AxisFactors,
    ConsistentParameters,
    consistent,
    effect_prior,
    unconstrained,
    urdf_parameters,
)
from semiparam_dynamics.dynamics.sample import NOTHING_WHOLE
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.bags import Bags, check_motion, robot_of, samples_of
from semiparam_dynamics.offline.identification.urdf_export import (
    export_urdf,
    joint_dynamics,
    link_inertias,
)
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.simulation.mjcf_export import export_mjcf, rotor_inertias

URDF_FILE, TABLE_FILE = "identified.urdf", "parameters.csv"
MJCF_FILE = "identified.xml"
COLUMNS = ("name", "urdf", "identified", "standard_deviation", "excitation")
MODELS = ("URDF", "unconstrained", "consistent", "new URDF")
_MOSTLY = 0.5  # excitation below which a parameter is rather the URDF's


@dataclass(frozen=True)
class Identification:
    """Parameters identified on `train`, and scored there and on `test`."""

    model: RobotModel
    unconstrained: Array  # (n_parameters,) base parameters
    found: ConsistentParameters
    train: AxisFactors
    test: AxisFactors  # without samples where nothing was held out
    seconds: float  # for both identifications, without reading

    def nmse(self, data: AxisFactors) -> Array:
        """(n_axes, 4) by `MODELS`."""
        file = RobotModel(identified_urdf(self), self.model.config, locked=self.model.locked)
        models = (
            urdf_parameters(self.model),
            self.unconstrained,
            self.found.base,
            urdf_parameters(self.model, file),
        )
        return np.column_stack([data.nmse(parameters) for parameters in models])


def identify_on_bags(
    bags: Bags,
    config: InverseDynamicsConfig,
    weight: float = 1.0,
    hold_out: float = 0.0,
    progress: Callable[[float], None] = lambda share: None,
) -> Identification:
    """Identify on `bags.train`, but for the last share `hold_out` of the time of each.

    What is held out, and `bags.test`, is only scored. `weight` is that of `consistent`. Raises
    BagError, RobotModelError or ConfigurationError with what is missing.
    """
    if not 0.0 <= hold_out < 1.0:
        raise ConfigurationError(f"the held-out share must be from 0 to below 1, not {hold_out:g}")
    model, config = robot_of(bags, config)
    train, test = (AxisFactors(model.n_axes, model.n_parameters) for _ in range(2))
    paths = (*bags.train, *bags.test)
    stamps: list[int] = []
    with threadpool_limits(limits=1):  # a sample's products are too small to be spread
        read = samples_of(paths, bags, model, config, progress, hold_out)
        for number, held_out, sample in read:
            to_train = number < len(bags.train) and not held_out
            if (train if to_train else test).add(sample) and to_train:
                stamps.append(sample.stamp)
        if train.n_samples == 0:
            raise BagError(f"nothing to identify parameters on: {NOTHING_WHOLE}")
        started = time.perf_counter()
        base = unconstrained(model, train)
        found = consistent(model, train, weight)
    if little := check_motion(stamps):
        bags.warnings.append(little)
    return Identification(model, base, found, train, test, time.perf_counter() - started)


def identified_urdf(identification: Identification) -> str:
    """The URDF with the identified inertias and joint friction, all else as it was."""
    model, found = identification.model, identification.found
    friction = joint_dynamics(model, found.values)
    return export_urdf(model.urdf_text, link_inertias(model, found), friction)


def parameters_csv(identification: Identification) -> str:
    """A line for each parameter, in SI units; the columns are `COLUMNS`."""
    model, found = identification.model, identification.found
    urdf = np.concatenate((model.inertial_prior, effect_prior(model)))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    numbers = np.column_stack((urdf, found.values, found.standard_deviations, found.excitation))
    for label, row in zip(model.full_labels, numbers, strict=True):
        writer.writerow([label, *(f"{value:.12g}" for value in row)])
    return text.getvalue()


def write_identification(
    identification: Identification, directory: Path, *, mjcf: bool = False
) -> None:
    """Write identified.urdf and parameters.csv into `directory`, made if need be.

    mjcf: identified.xml as well, see `export_mjcf`. Raises StorageError where writing fails, and
    RobotModelError, with nothing written, where MuJoCo can't take the robot.
    """
    urdf, table = identified_urdf(identification), parameters_csv(identification)
    files = {directory / URDF_FILE: urdf, directory / TABLE_FILE: table}
    if mjcf:
        model = identification.model
        armatures = rotor_inertias(model, identification.found.values)
        files[directory / MJCF_FILE] = export_mjcf(urdf, armatures, model.config.gravity)
    write_files(files)


def identification_table(identification: Identification) -> str:
    """A table of the errors of the three models, a line for each axis, for a terminal."""
    model, found = identification.model, identification.found
    inertial = found.excitation[: model.inertial_prior.size]
    parts = [("identified on", identification.train), ("held out", identification.test)]
    parts = [(name, data) for name, data in parts if data.n_samples]
    width = max(len(axis) for axis in (*model.axes, "mean"))
    lines = [
        f"{identification.train.n_samples} samples, {identification.seconds:.1f} s; "
        f"{int(np.sum(inertial < _MOSTLY))} of {inertial.size} inertial parameters are rather the "
        "URDF's than the data's",
        "normalised mean squared error of the URDF, of unconstrained base parameters, of "
        "consistent ones, and of what of them the new URDF alone holds",
        " " * width + "".join(f"  {f'{name}, {d.n_samples} samples':>51}" for name, d in parts),
        f"{'axis':<{width}}" + "  {:>12} {:>13} {:>11} {:>12}".format(*MODELS) * len(parts),
    ]
    errors = np.hstack([identification.nmse(data) for _, data in parts])
    # An axis that nothing happens on has no nmse.
    scored = np.isfinite(errors)
    with np.errstate(invalid="ignore"):
        means = np.where(scored, errors, 0.0).sum(axis=0) / scored.sum(axis=0)
    for name, row in zip((*model.axes, "mean"), (*errors, means), strict=True):
        groups = row.reshape(-1, len(MODELS)).tolist()
        cells = ("  {:>12.4g} {:>13.4g} {:>11.4g} {:>12.4g}".format(*group) for group in groups)
        lines.append(f"{name:<{width}}" + "".join(cells))
    return "\n".join(lines)
