"""The logs that conditions are put on: those in DATA/robots, and simulated arms."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace as Fields

import numpy as np
from arms import CONFIG, ROOT, SEVEN, SMALL_EFFECTS

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.filtering import FilterConfig
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.conversion.convert import read_log
from semiparam_dynamics.offline.doctor.joint_log import JointLog, read_joint_log
from semiparam_dynamics.offline.evaluation.experiment import TRAINING_SHARE
from semiparam_dynamics.robot.model import RobotModel, message_checks
from semiparam_dynamics.robot.urdf import parse_urdf
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.samples.stream import MeasurementStream
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

# Trained on the first, tested on the last; of one log the first 60 % and the rest.
SPLITS = {
    "xmate7p": (("trajectory_1.npz", "trajectory_2.npz"), "trajectory_3.npz"),
    "ur10": ((), "ur10_exciting_trajectory.db3"),
    "airbot": ((), "unloaded.npz"),
    "tiago": ((), "tiago.npz"),
    "tx40": ((), "tx40.npz"),
}
URDFS = {"ur10": "ur10_robot.urdf"}
SIMULATED = {
    "sim_small": ROOT / "test" / "data" / "small_arm.urdf",
    "sim_seven": SEVEN,
}
NAMES = (*SPLITS, *SIMULATED)


@dataclass(frozen=True)
class Split:
    """A robot, and logs to train and to test on.

    without_velocities: the logs have no velocities.
    """

    name: str
    urdf: str
    config: InverseDynamicsConfig
    train: list[JointLog]
    test: JointLog


def splits(data: Path, wanted: list[str], seconds: float = 0.0) -> Iterator[Split]:
    """Those asked for, or all that load; `seconds` > 0 leaves that much of each log."""
    for name, (train, test) in SPLITS.items():
        folder = data / "robots" / name
        if (wanted and name not in wanted) or not folder.is_dir():
            continue
        urdf = (folder / URDFS.get(name, f"{name}.urdf")).read_text()
        logs = [_shortened(_read(folder / file, urdf), seconds) for file in (*train, test)]
        config = InverseDynamicsConfig()
        settings = CONFIG / f"{name}.yaml"
        if settings.exists():
            # The TX40's own rest_velocity suits its nine seconds, and is not what is tried here.
            rest = {"filter.rest_velocity": FilterConfig().rest_velocity}
            config = replace(load_yaml(settings, InverseDynamicsConfig), **rest)
        yield _split(name, urdf, config, logs)
    for name, path in SIMULATED.items():
        if not wanted or name in wanted:
            urdf, log = simulated_log(path, seconds or 60.0)
            yield _split(name, urdf, InverseDynamicsConfig(), [log])


def simulated_log(
    urdf: Path, seconds: float, rate: float = 100.0, seed: int = 0
) -> tuple[str, JointLog]:
    """The exciting motion of a simulated arm with friction and elasticity, and its URDF."""
    overrides = {key.replace(".", "__"): value for key, value in SMALL_EFFECTS.items()}
    arm = ArmSimulator(str(urdf), motion="exciting", rate=rate, seed=seed, **overrides)
    count = round(seconds * rate)
    readings = list(itertools.islice(simulated(arm, "effort", SECOND), count))
    q, dq, y = (np.array([getattr(m, field) for m in readings]) for field in ("q", "dq", "y"))
    stamps = np.array([m.stamp for m in readings], dtype=np.int64)
    return arm.urdf, JointLog(tuple(arm.joint_names), stamps, q, dq, y)


def measurements(
    log: JointLog, model: RobotModel, config: InverseDynamicsConfig
) -> list[Measurement]:
    """What the learner makes of the log's messages, by the checks of the node and the bags."""
    stream = MeasurementStream(model.joint_names, "effort", config.samples, **message_checks(model))
    found: list[Measurement] = []
    nothing = np.empty((len(log), 0))
    dq, y = (nothing if values is None else values for values in (log.dq, log.y))
    for stamp, *values in zip(log.stamps.tolist(), log.q, dq, y, strict=True):
        sec, nanosec = divmod(stamp, SECOND)
        header = Fields(stamp=Fields(sec=sec, nanosec=nanosec), frame_id="")
        position, velocity, effort = (array.tolist() for array in values)
        found += stream.joint_state(
            Fields(
                header=header,
                name=log.names,
                position=position,
                velocity=velocity,
                effort=effort,
            )
        )
    return found


def _split(name: str, urdf: str, config: InverseDynamicsConfig, logs: list[JointLog]) -> Split:
    config = replace(config, joints=logs[0].names)
    if len(logs) > 1:
        return Split(name, urdf, config, logs[:-1], logs[-1])
    (log,) = logs
    cut = int(np.searchsorted(log.times, TRAINING_SHARE * log.times[-1]))
    return Split(name, urdf, config, [log.rows(slice(0, cut))], log.rows(slice(cut, None)))


def _shortened(log: JointLog, seconds: float) -> JointLog:
    return log.rows(log.times <= seconds) if seconds else log


def _read(path: Path, urdf: str) -> JointLog:
    tree = parse_urdf(urdf)
    actuated = tuple(j.name for j in tree.below(tree.root) if j.actuated)
    if path.suffix != ".npz":
        return read_joint_log(path, actuated)
    data = read_log(path)
    k = data.q.shape[1]
    names = data.names
    if not names:
        arm = tuple(name for name in actuated if name.startswith("arm_"))
        names = actuated if len(actuated) == k else arm
    if len(names) != k:
        raise SemiparamError(f"{path} has {k} joints, its URDF {', '.join(actuated)}")
    return JointLog(names, data.time + SECOND, data.q, data.dq, data.tau)
