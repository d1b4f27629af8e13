"""The arms of several benchmarks: logs of real ones and splits of them, and simulated ones.

Below DATA/robots each real arm has a folder of its name, with its URDF and its logs; config/robots
has the settings of some.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace as Fields
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.estimator import EstimatorConfig, SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import FilterConfig, SampleFilter
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.conversion.convert import read_log
from semiparam_dynamics.offline.doctor.joint_log import JointLog, read_joint_log
from semiparam_dynamics.offline.evaluation.experiment import TRAINING_SHARE
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun
from semiparam_dynamics.robot.model import RobotModel, message_checks
from semiparam_dynamics.robot.urdf import parse_urdf
from semiparam_dynamics.samples.measurement import Measurement, StreamConfig
from semiparam_dynamics.samples.stream import MeasurementStream
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "config" / "robots"
URDFS = {
    "xmate7p": "xmate7p.urdf",
    "ur10": "ur10_robot.urdf",
    "airbot": "airbot.urdf",
    "tiago": "tiago.urdf",
    "tx40": "tx40.urdf",
    "panda": "panda.urdf",
    "lwr4": "lwr4.urdf",
    "baxter": "baxter.urdf",
}
# The last is for tests and the others for training; of one log the first 60 % and the rest.
LOGS = {
    "xmate7p": ("trajectory_1.npz", "trajectory_2.npz", "trajectory_3.npz"),
    "ur10": ("ur10_exciting_trajectory.db3",),
    "airbot": ("unloaded.npz",),
    "tiago": ("tiago.npz",),
    "tx40": ("tx40.npz",),
}
OTHERS = {
    "panda": ("panda.npz",),
    "lwr4": tuple(f"recording_{k}.npz" for k in (1, 2, 3)),
    "baxter": ("circle_1.npz", "circle_2.npz"),
}
PANDA_PERIOD = 13.34  # s, after which its motion repeats
TUNED = ("xmate7p", "ur10", "tx40")  # whose settings were chosen for their logs
# Of a robot model: without the kinds of friction that count only where they are seen to help.
PLAIN = {"presliding": (), "stribeck_velocity": 0.0, "asymmetry": False, "loaded": False}

SEVEN = ROOT / "test" / "data" / "seven_joint_arm.urdf"
SIMULATED = {"sim_small": ROOT / "test" / "data" / "small_arm.urdf", "sim_seven": SEVEN}
NAMES = (*LOGS, *SIMULATED)  # that `log_splits` has
WITH_SPLITS = (*LOGS, *OTHERS, *SIMULATED)  # that `splits` has
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


class Split(NamedTuple):
    """A robot, its settings, and samples to learn and to test on."""

    name: str
    model: RobotModel
    config: InverseDynamicsConfig
    train: list[Sample]
    test: list[Sample]


def settings(arm: str) -> InverseDynamicsConfig:
    """An arm's own, or the defaults, with a short start of random features: logs are short."""
    config, path = InverseDynamicsConfig(), CONFIG / f"{arm}.yaml"
    if path.exists():
        config = load_yaml(path, InverseDynamicsConfig)
    return replace(config, random_fourier__window=3.0)


def robot(robots: Path, arm: str, config: InverseDynamicsConfig) -> RobotModel:
    return RobotModel(robots / arm / URDFS[arm], config.robot)


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


def train_and_test(
    robots: Path, arm: str, config: InverseDynamicsConfig
) -> tuple[RobotModel, list[Sample], list[Sample]]:
    """The splits of results/learner.md: trajectories 1, 2 and 3, or 60 % of the time and rest."""
    model = robot(robots, arm, config)
    parts = [samples(model, config, one) for one in recordings(robots, arm, model, config)]
    if len(parts) == 1:
        return model, *by_time(parts[0])
    return model, [sample for part in parts[:-1] for sample in part], parts[-1]


def splits(data: Path, arm: str, seconds: float = 0.0, **overrides: object) -> Iterator[Split]:
    """Whole trajectories held out: all assignments of the xMate's three, 40 % of another's log.

    Of the Panda the end of its period, and what repeats it.

    seconds : of a log of an arm without own settings that is used; 0: all.
    """
    if arm in TUNED or arm in OTHERS:
        urdf, logs = read_logs(data / "robots", arm)
        config = replace(settings(arm), joints=logs[0].names, **overrides)
        model, parts = RobotModel(urdf, config.robot), []
        for log in logs:
            found = samples(model, config, measurements(log, model, config))
            parts.append([s for s in found if not np.isnan(s.y).any()])
        if arm == "panda":
            yield from _periods(model, config, parts[0])
        elif len(parts) == 1:
            yield from _both_ways(model, config, parts[0])
        counts = (2, 1) if arm in TUNED else (len(parts) - 1,)
        for count in counts if len(parts) > 1 else ():
            for chosen in itertools.combinations(range(len(parts)), count):
                train = [sample for k in chosen for sample in parts[k]]
                name = ",".join(str(k + 1) for k in chosen)
                for k in set(range(len(parts))) - set(chosen):
                    yield Split(f"{name} → {k + 1}", model, config, train, parts[k])
        return
    for log in log_splits(data, [arm], seconds):
        config = replace(log.config, **overrides)
        model = RobotModel(log.urdf, config.robot)
        measured = [m for part in (*log.train, log.test) for m in measurements(part, model, config)]
        # A rival has no use for a row of which one axis was not measured.
        whole = [s for s in samples(model, config, measured) if not np.isnan(s.y).any()]
        yield from _both_ways(model, config, whole)


def _periods(
    model: RobotModel, config: InverseDynamicsConfig, whole: list[Sample]
) -> Iterator[Split]:
    times = [(sample.stamp - whole[0].stamp) / SECOND for sample in whole]
    period = [sample for sample, t in zip(whole, times, strict=True) if t <= PANDA_PERIOD]
    first, end = by_time(period, TRAINING_SHARE)
    yield Split("60 % of the period → rest", model, config, first, end)
    yield Split("period → repeat", model, config, period, whole[len(period) :])


def _both_ways(
    model: RobotModel, config: InverseDynamicsConfig, whole: list[Sample]
) -> Iterator[Split]:
    yield Split("first 60 % → rest", model, config, *by_time(whole, TRAINING_SHARE))
    test, train = by_time(whole, 1.0 - TRAINING_SHARE)
    yield Split("last 60 % → rest", model, config, train, test)


def learned(model: RobotModel, config: EstimatorConfig, samples: Iterable[Sample]) -> ProtocolRun:
    """A run that has learned all of the samples in turn, none of them scored."""
    run = ProtocolRun(SemiparametricEstimator(model, config), "sequential")
    for sample in samples:
        run.step(sample, score=False)
    run.finish()
    return run


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
    urdf = (robots / arm / URDFS[arm]).read_text()
    return urdf, [_read(robots / arm / file, urdf) for file in (LOGS | OTHERS)[arm]]


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


def simulated_log(
    urdf: Path, seconds: float, rate: float = 100.0, seed: int = 0
) -> tuple[str, JointLog]:
    """The exciting motion of a simulated arm with friction and elasticity, and its URDF."""
    effects = options(SMALL_EFFECTS)
    arm = ArmSimulator(str(urdf), motion="exciting", rate=rate, seed=seed, **effects)
    readings = list(itertools.islice(simulated(arm, "effort", SECOND), round(seconds * rate)))
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
