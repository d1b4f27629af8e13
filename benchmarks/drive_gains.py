"""Drive gains of a simulated UR10 by one bag and by a known load, and of real arms.

    python benchmarks/drive_gains.py DATA --runs 3

DATA holds robots/{ur10,xmate7p,tx40,airbot}. The simulated efforts are divided by `GAINS`. Real
arms follow, whose gains nobody knows but the xMate's, which is in N m throughout.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
from arms import ARMS, read_logs
from changes import UR10
from output import make_parser, parse

from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.doctor.drive_gains import DriveGains, KnownLoad, drive_gains
from semiparam_dynamics.offline.doctor.messages import JointLog
from semiparam_dynamics.offline.doctor.physics import make_columns
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

GAINS = np.array([12.0, 11.0, 10.0, 8.0, 7.0, 6.0])  # N m for a unit
MASS, CENTER = 2.0, (0.0, 0.02, 0.06)  # kg, m from tool0
SECONDS = 40.0
OTHER_MOTION = 50  # added to the seed of the motion without a load
CUTOFF = {"tx40": 15.0}
REAL = ("xmate7p", "tx40", "airbot", "ur10")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    args = parse(parser)
    urdf = str(args.data / "robots" / "ur10" / "ur10_robot.urdf")
    config = from_flat(InverseDynamicsConfig, {"target": "effort"}).robot
    model = RobotModel(urdf, config)
    for seed in range(args.runs):
        logs = [moved(urdf, seed, 0.0), moved(urdf, seed + OTHER_MOTION, MASS)]
        bare, loaded = (make_columns(log, model, 5.0) for log in logs)
        names = model.joint_names
        show("relative", drive_gains(names, model, bare))
        given = KnownLoad(MASS, 0.01, CENTER, 0.005, "tool0")
        show("absolute", drive_gains(names, model, bare, loaded, given))
        show("no centre", drive_gains(names, model, bare, loaded, KnownLoad(MASS, 0.01)))
    for name in REAL:
        real(args.data / "robots", name)


def moved(urdf: str, seed: int, mass: float) -> JointLog:
    """Efforts in units of the drives; with a ball in the hand."""
    arm = ArmSimulator(urdf, seed=seed, **UR10)
    if mass:
        arm.hand.attach(mass, np.array(CENTER), 0.001 * mass * np.eye(3))
    taken: list[Measurement] = []
    for measurement in simulated(arm, "effort"):
        taken.append(measurement)
        if measurement.stamp * 1e-9 > SECONDS:
            break
    stamps = np.array([m.stamp for m in taken])
    q, y = (np.array([getattr(m, part) for m in taken]) for part in ("q", "y"))
    return JointLog(tuple(arm.joint_names), stamps, q, None, y / GAINS)


def show(kind: str, found: DriveGains) -> None:
    error = ", ".join(f"{100.0 * v:.1f}" for v in found.gains / GAINS - 1.0)
    std = ", ".join(
        f"{100.0 * s:.1f}" if told else "not told"
        for s, told in zip(found.own_std, found.told, strict=True)
    )
    print(f"{kind:<10} error % {error}; own % {std}; common {100.0 * found.common_std:.1f}")


def real(robots: Path, name: str) -> None:
    urdf, logs = read_logs(robots, name)
    config = from_flat(InverseDynamicsConfig, {"target": "effort"}).robot
    model = RobotModel(urdf, config)
    for file, log in zip(ARMS[name].logs, logs, strict=True):
        columns = make_columns(dataclasses.replace(log, dq=None), model, CUTOFF.get(name, 5.0))
        found = drive_gains(model.joint_names, model, columns)
        gains = ", ".join(
            f"{g:.2f}" if told else "not told"
            for g, told in zip(found.gains, found.told, strict=True)
        )
        own = 100.0 * float(np.max(found.own_std[found.told]))
        common = 100.0 * found.common_std
        print(f"{name} {file}: {gains}; own up to {own:.0f} %, common {common:.0f} %")


if __name__ == "__main__":
    main()
