"""The arms of several benchmarks: the logs of three real ones, and the effects of simulated ones.

Below DATA/robots each real arm has a folder of its name, with its URDF and its logs; config/robots
has its settings.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.estimator import EstimatorConfig, SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.conversion.convert import convert_log
from semiparam_dynamics.offline.evaluation.experiment import TRAINING_SHARE
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.bag import read_measurements
from semiparam_dynamics.samples.measurement import Measurement

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "config" / "robots"
URDFS = {"xmate7p": "xmate7p.urdf", "ur10": "ur10_robot.urdf", "tx40": "tx40.urdf"}
# Of a robot model: without the kinds of friction that count only where they are seen to help.
PLAIN = {"presliding": (), "stribeck_velocity": 0.0, "asymmetry": False}
LOGS = {
    "xmate7p": ("trajectory_1.npz", "trajectory_2.npz", "trajectory_3.npz"),
    "ur10": ("ur10_exciting_trajectory.db3",),
    "tx40": ("tx40.npz",),
}

SEVEN = ROOT / "test" / "data" / "seven_joint_arm.urdf"
# Friction, rotors and softness that suit each arm's size: one number holds for all its joints.
UR10 = {
    "effects.friction_coulomb": 4.0,
    "effects.friction_stribeck": 2.0,
    "effects.friction_viscous": 4.0,
    "effects.rotor_inertia": 0.5,
    "effects.compliance": 3e-5,
    "effects.hardening_torque": 100.0,
    "effects.hysteresis": 3e-4,
    "effects.noise_effort": 0.3,
    "effects.noise_position": 2e-5,
    "effects.noise_velocity": 1e-3,
}
SMALL_EFFECTS = {
    "effects.friction_coulomb": 1.0,
    "effects.friction_stribeck": 0.5,
    "effects.friction_viscous": 1.0,
    "effects.rotor_inertia": 0.1,
    "effects.compliance": 1e-4,
    "effects.hardening_torque": 30.0,
    "effects.hysteresis": 3e-4,
    "effects.noise_effort": 0.1,
    "effects.noise_position": 2e-5,
    "effects.noise_velocity": 1e-3,
}
SEVEN_JOINTS = {"joints": tuple(f"joint{i}" for i in range(1, 8)), **SMALL_EFFECTS}


class Stamped(Protocol):
    """A measurement or a sample."""

    @property
    def stamp(self) -> int:
        """Time, ns."""


S = TypeVar("S", bound=Stamped)


def settings(arm: str) -> InverseDynamicsConfig:
    """An arm's own, with a short start of random features: the logs are short."""
    return replace(
        load_yaml(CONFIG / f"{arm}.yaml", InverseDynamicsConfig), random_fourier__window=3.0
    )


def robot(robots: Path, arm: str, config: InverseDynamicsConfig) -> RobotModel:
    return RobotModel(robots / arm / URDFS[arm], config.robot)


def recordings(robots: Path, arm: str, model: RobotModel) -> list[list[Measurement]]:
    """The measurements of each of an arm's logs."""
    found = []
    for log in LOGS[arm]:
        path = robots / arm / log
        with tempfile.TemporaryDirectory() as folder:
            if path.suffix == ".npz":
                path = Path(folder) / "bag"
                convert_log(robots / arm / log, path, names=model.joint_names)
            found.append(read_measurements(path, model.joint_names).measurements)
    return found


def samples(
    model: RobotModel, config: InverseDynamicsConfig, recording: Sequence[Measurement]
) -> list[Sample]:
    """The measured samples of a recording, filtered."""
    filtered = map(SampleFilter(model, config.filter).push, recording)
    return [sample for sample in filtered if sample is not None and sample.y is not None]


def train_and_test(
    robots: Path, arm: str, config: InverseDynamicsConfig
) -> tuple[RobotModel, list[Sample], list[Sample]]:
    """The splits of results/learner.md: trajectories 1, 2 and 3, or 60 % of the time and rest."""
    model = robot(robots, arm, config)
    parts = [samples(model, config, one) for one in recordings(robots, arm, model)]
    if len(parts) == 1:
        return model, *by_time(parts[0])
    return model, [sample for part in parts[:-1] for sample in part], parts[-1]


def learned(model: RobotModel, config: EstimatorConfig, samples: Iterable[Sample]) -> ProtocolRun:
    """A run that has learned all of the samples in turn, none of them scored."""
    run = ProtocolRun(SemiparametricEstimator(model, config), "sequential")
    for sample in samples:
        run.step(sample, score=False)
    run.finish()
    return run


def by_time(recording: list[S], share: float = TRAINING_SHARE) -> tuple[list[S], list[S]]:
    """The first `share` of a recording's time, and the rest."""
    first, last = recording[0].stamp, recording[-1].stamp
    n = sum(one.stamp <= first + share * (last - first) for one in recording)
    return recording[:n], recording[n:]
