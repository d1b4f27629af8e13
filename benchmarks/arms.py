"""The arms of several benchmarks: logs of real ones and splits of them, and simulated ones.

idbench/arms.yaml names the real ones; each has a folder of its name below DATA/robots, with its
URDF and its logs, and some have settings in config/robots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace as Fields
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import yaml

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.filtering import FilterConfig, SampleFilter
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.conversion.convert import read_log
from semiparam_dynamics.offline.doctor.messages import JointLog, read_joint_log
from semiparam_dynamics.offline.evaluation.experiment import TRAINING_SHARE
from semiparam_dynamics.robot.model import RobotModel, message_checks
from semiparam_dynamics.robot.urdf import parse_urdf
from semiparam_dynamics.samples.measurement import Measurement, StreamConfig
from semiparam_dynamics.samples.stream import MeasurementStream
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "config" / "robots"


class Arm(NamedTuple):
    """Of an entry of idbench/arms.yaml, what is needed to read its logs."""

    name: str
    urdf: str
    logs: Sequence[str]
    other: str = ""  # a log of another motion, which may not be there
    target: str = "effort"
    period: float = 0.0  # s, after which the motion of its only log repeats


def _arms() -> dict[str, Arm]:
    path = Path(__file__).parent / "idbench" / "arms.yaml"
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {
        arm: Arm(**{name: entry[name] for name in Arm._fields if name in entry})
        for arm, entry in entries.items()
    }


ARMS = _arms()
LOGS = tuple(key for key, arm in ARMS.items() if arm.target == "effort")
# Of a robot model: viscous and Coulomb friction alone.
PLAIN = {"presliding": (), "stribeck_velocity": 0.0, "asymmetry": False, "loaded": False}

SEVEN = ROOT / "test" / "data" / "seven_joint_arm.urdf"
SIMULATED = {"sim_small": ROOT / "test" / "data" / "small_arm.urdf", "sim_seven": SEVEN}
NAMES = (*LOGS, *SIMULATED)  # that `log_splits` has
# Friction, rotors and elasticity that suit each arm's size: one number holds for all its joints.
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


def options(effects: dict[str, object]) -> dict[str, object]:
    """Effects as keyword arguments of ArmSimulator."""
    return {name.replace(".", "__"): value for name, value in effects.items()}


def by_time(recording: list[S], share: float = TRAINING_SHARE) -> tuple[list[S], list[S]]:
    """The first `share` of a recording's time, and the rest."""
    first, last = recording[0].stamp, recording[-1].stamp
    n = sum(one.stamp <= first + share * (last - first) for one in recording)
    return recording[:n], recording[n:]


# -------------------------------------------------------------------------------------------------
# Samples of the arms' logs


def robot(robots: Path, arm: str, config: InverseDynamicsConfig) -> RobotModel:
    return RobotModel(robots / arm / ARMS[arm].urdf, config.robot)


def recordings(
    robots: Path, arm: str, model: RobotModel, config: InverseDynamicsConfig
) -> list[list[Measurement]]:
    """The measurements of each of an arm's logs."""
    return [measurements(log, model, config) for log in read_logs(robots, arm)[1]]


def samples(
    model: RobotModel, config: InverseDynamicsConfig, recording: Iterable[Measurement]
) -> list[Sample]:
    """The measured samples of a recording, filtered."""
    filtered = map(SampleFilter(model, config.filter).push, recording)
    return [sample for sample in filtered if sample is not None and sample.y is not None]


# -------------------------------------------------------------------------------------------------
# The logs as they were written


@dataclass(frozen=True)
class LogSplit:
    """A robot, its settings, and logs to train and to test on."""

    name: str
    urdf: str
    config: InverseDynamicsConfig
    train: list[JointLog]
    test: JointLog


def log_splits(data: Path, wanted: Sequence[str], seconds: float = 0.0) -> Iterator[LogSplit]:
    """Those asked for, or all that load; `seconds` > 0 leaves that much of each log."""
    for name in LOGS:
        if (wanted and name not in wanted) or not (data / "robots" / name).is_dir():
            continue
        urdf, logs = read_logs(data / "robots", name)
        config, path = InverseDynamicsConfig(), CONFIG / f"{name}.yaml"
        if path.exists():
            # The TX40's own rest_velocity suits its nine seconds, and is not what is tried here.
            rest = {"filter.rest_velocity": FilterConfig().rest_velocity}
            config = replace(load_yaml(path, InverseDynamicsConfig), **rest)
        if seconds:
            logs = [log.rows(log.times <= seconds) for log in logs]
        yield _log_split(name, urdf, config, logs)
    for name, path in SIMULATED.items():
        if not wanted or name in wanted:
            urdf, log = simulated_log(path, seconds or 60.0)
            yield _log_split(name, urdf, InverseDynamicsConfig(), [log])


def _log_split(
    name: str, urdf: str, config: InverseDynamicsConfig, logs: list[JointLog]
) -> LogSplit:
    config = replace(config, joints=logs[0].names)
    if len(logs) > 1:
        return LogSplit(name, urdf, config, logs[:-1], logs[-1])
    (log,) = logs
    cut = int(np.searchsorted(log.times, TRAINING_SHARE * log.times[-1]))
    return LogSplit(name, urdf, config, [log.rows(slice(0, cut))], log.rows(slice(cut, None)))


def read_logs(robots: Path, arm: str) -> tuple[str, list[JointLog]]:
    """An arm's URDF and its logs."""
    urdf = (robots / arm / ARMS[arm].urdf).read_text()
    return urdf, [read_arm_log(robots / arm / file, urdf) for file in ARMS[arm].logs]


def read_arm_log(path: Path, urdf: str) -> JointLog:
    """A log, with the names of the arm's joints where it has none."""
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


def simulated_log(
    urdf: Path,
    seconds: float,
    rate: float = 100.0,
    seed: int = 0,
    force: Callable[[int], Array] | None = None,
) -> tuple[str, JointLog]:
    """The exciting motion of a simulated arm with friction and elasticity, and its URDF.

    force: by the number of a reading, (3,) N at the hand from then on.
    """
    effects = options(SMALL_EFFECTS)
    arm = ArmSimulator(str(urdf), motion="exciting", rate=rate, seed=seed, **effects)
    readings = []
    for k, reading in enumerate(simulated(arm, "effort", SECOND)):
        readings.append(reading)
        if len(readings) == round(seconds * rate):
            break
        if force is not None:
            arm.hand.push(force(k))
    q, dq, y = (np.array([getattr(m, field) for m in readings]) for field in ("q", "dq", "y"))
    stamps = np.array([m.stamp for m in readings], dtype=np.int64)
    return arm.urdf, JointLog(tuple(arm.joint_names), stamps, q, dq, y)


def measurements(
    log: JointLog, model: RobotModel, config: InverseDynamicsConfig
) -> list[Measurement]:
    """The measurements of a log's messages, by the checks of the node and the bags."""
    nothing = np.empty((len(log), 0))
    dq, y = (nothing if values is None else values for values in (log.dq, log.y))
    rows = zip(log.stamps.tolist(), log.q, dq, y, strict=True)
    return received(((stamp, log.names, *values) for stamp, *values in rows), model, config.samples)


def received(
    messages: Iterable[Sequence[Any]], model: RobotModel, config: StreamConfig
) -> list[Measurement]:
    """The measurements of messages: stamp (ns), names, positions, velocities and efforts of each.

    The checks are those of the node and the bags.
    """
    stream = MeasurementStream(model.joint_names, "effort", config, **message_checks(model))
    found: list[Measurement] = []
    for stamp, names, *values in messages:
        sec, nanosec = divmod(stamp, SECOND)
        header = Fields(stamp=Fields(sec=sec, nanosec=nanosec), frame_id="")
        position, velocity, effort = (array.tolist() for array in values)
        arrays = {"position": position, "velocity": velocity, "effort": effort}
        found += stream.joint_state(Fields(header=header, name=list(names), **arrays))
    return found + stream.flush()
