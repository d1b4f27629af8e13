"""Payloads and quiet hours of simulated arms, and the detection of changes on real logs.

    python benchmarks/changes.py payload --robot icub --calibrated --runs 20
    python benchmarks/changes.py quiet --robot ur10 --data DATA --runs 20
    python benchmarks/changes.py {logs,airbot} --data DATA

DATA holds robots/, with a folder for each arm. A line for each run, with its seed, then medians and
worst.
--calibrated leaves out the errors of gain and cross-talk of the iCub's sensor.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from arms import LOGS, by_time, log_splits, measurements, samples
from output import make_parser, parse

from semiparam_dynamics.base.parameters import from_flat, replace
from semiparam_dynamics.changes.monitor import ChangeMonitor
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.offline.conversion.convert import convert_log
from semiparam_dynamics.offline.doctor.drive_gains import drive_gains_of_bags, gains_table
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.bag import read_measurements
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

LEARN = 60.0  # s before anything happens
SIX = ((0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2))  # the entries Ixx, Ixy, Iyy, Ixz, Iyz, Izz
HANDS = {"icub": "r_hand_dh_frame", "ur10": "tool0"}
URDFS = {"ur10": "ur10/ur10_robot.urdf", "xmate": "xmate7p/xmate7p.urdf"}
# Friction, elasticity and noise of the size of an industrial arm's, and its encoders.
UR10 = {
    "hand_frame": "tool0",
    "motion": "exciting",
    "max_velocity": 1.0,
    "excitation": 0.4,
    "effects__friction_coulomb": 2.0,
    "effects__friction_stribeck": 0.7,
    "effects__friction_viscous": 2.0,
    "effects__rotor_inertia": 0.3,
    "effects__compliance": 5e-5,
    "effects__hardening_torque": 50.0,
    "effects__hysteresis": 3e-4,
    "effects__noise_effort": 0.5,
    "effects__noise_position": 5e-5,
    "effects__noise_velocity": 2e-3,
}


def main() -> None:
    parser = make_parser(__doc__)
    studies = {"payload": payload, "quiet": quiet}
    parser.add_argument("study", choices=[*studies, "logs", "airbot"])
    parser.add_argument("--robot", choices=list(HANDS), default="icub")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first run's seed")
    parser.add_argument("--minutes", type=float, default=10.0, help="of the study quiet")
    parser.add_argument("--mass", type=float, default=0.0, help="kg; 0: drawn from 0.2 to 2")
    parser.add_argument("--calibrated", action="store_true")
    args = parse(parser)
    if args.study == "logs":
        on_logs(args.data)
    elif args.study == "airbot":
        on_airbot(args.data / "robots" / "airbot")
    else:
        rows = []
        seeds = range(args.first, args.first + args.runs)
        for seed in seeds:
            rows.append(row := studies[args.study](args, seed))
            shown = "  ".join(f"{k} {v:.3g}" for k, v in row.items())
            print(f"seed {seed:>3} {shown}", flush=True)
        print("median, worst (of shares: mean, least):")
        for name in max(rows, key=len):  # of a run that estimated no payload some are not there
            values = np.array([row.get(name, np.nan) for row in rows])
            share = name.endswith("within 2 std") or name.startswith("share")
            middle, worst = (np.nanmean, np.nanmin) if share else (np.nanmedian, np.nanmax)
            print(f"  {name:<28}{middle(values):>10.3g}{worst(values):>10.3g}", end="")
            print(f"   in {np.isfinite(values).sum()} of {len(rows)} runs")


def arm_of(robot: str, data: Path, **values: Any) -> ArmSimulator:
    """The iCub's arm, or another one with the effects of an industrial arm."""
    if robot == "icub":
        return ArmSimulator(**values)
    hand = {"hand_frame": HANDS.get(robot, "")}
    return ArmSimulator(str(data / "robots" / URDFS[robot]), **UR10 | hand | values)


def learner_of(arm: ArmSimulator, **values: Any) -> InverseDynamicsLearner:
    wrench = bool(arm.sensor_frame)
    flat: dict[str, Any] = {"joints": arm.joint_names, "comparison": False, "changes.detect": True}
    flat |= {"target": "wrench" if wrench else "effort", "filter.cutoff": 5.0 if wrench else 8.0}
    flat |= {"sensor_frame": arm.sensor_frame} | values
    config = from_flat(InverseDynamicsConfig, flat)
    return InverseDynamicsLearner(RobotModel(arm.urdf, config.robot), config)


class Run:
    """An arm and its learner; of every step the time and the error are kept."""

    def __init__(self, args: argparse.Namespace, seed: int) -> None:
        exact = {"effects__nonlinearity": 0.0, "effects__crosstalk": 0.0}
        values = exact if args.calibrated and args.robot == "icub" else {}
        self.arm = arm = arm_of(args.robot, args.data, seed=seed, **values)
        self.learner = learner_of(arm)
        self.source: Iterator[Measurement] = simulated(arm, self.learner.model.config.target)
        self.times: list[float] = []
        self.errors: list[np.ndarray] = []

    @property
    def changes(self) -> ChangeMonitor:
        return self.learner.changes

    def until(self, end: float) -> None:
        """Predict and learn up to the time `end` (s)."""
        for measurement in self.source:
            step = self.learner.predict(measurement)
            if step is not None and step.y is not None:
                self.learner.update(self.learner.admit(step))
                self.times.append(step.stamp * 1e-9)
                self.errors.append(step.y - step.prediction.semiparametric)
            if measurement.stamp * 1e-9 >= end:
                return

    def rms(self, begin: float, end: float) -> np.ndarray:
        """(n_axes,) of the semiparametric errors within a stretch of time."""
        first, last = np.searchsorted(self.times, (begin, end))
        return np.sqrt(np.mean(np.square(self.errors[first:last]), axis=0))

    def first(self, cause: str, since: float, name: str = "") -> float:
        """The time of the first such event since a time, NaN where there is none."""
        times = [e.stamp * 1e-9 for e in self.changes.events if (e.cause, e.name) == (cause, name)]
        return min((t for t in times if t >= since), default=float("nan"))

    def alarms(self, begin: float, end: float) -> Counter[str]:
        """Changes that were named within a stretch of time."""
        events = [e for e in self.changes.events if begin <= e.stamp * 1e-9 < end]
        return Counter(e.cause for e in events if e.cause != "contact over")


def payload(args: argparse.Namespace, seed: int) -> dict[str, float]:
    """Held for 30 s, then released; errors relative to the 20 s before, and to those without it.

    Without it: of the same motion by the same arm, which holds nothing, at the same time.
    """
    mass, center, inertia = drawn_load(seed, args.mass)
    run, bare = Run(args, seed), Run(args, seed)
    arm, learner = run.arm, run.learner
    on, off = LEARN, LEARN + 30.0
    bare.until(off + 15.0)
    run.until(on)
    arm.hand.attach(mass, center, inertia)
    run.until(on + 1.0)
    found = run.first("payload", on)
    while not np.isfinite(found) and run.times[-1] < on + 10.0:
        run.until(run.times[-1] + 0.5)
        found = run.first("payload", on)
    run.until((found if np.isfinite(found) else on) + 10.5)
    estimate = run.changes.payload
    run.until(off)
    arm.hand.attach(0.0, center, np.zeros((3, 3)))
    run.until(off + 15.0)
    frames = learner.model.kinematics
    frame = frames.frames[frames.getFrameId(HANDS[args.robot])]
    true = np.array(frame.placement.act(center))
    R = frame.placement.rotation
    about = R @ inertia @ R.T
    before = run.rms(on - 20.0, on)
    row = {"mass kg": mass, "found after s": found - on}
    row["released after s"] = run.first("payload", off, "bare") - off
    if estimate is not None:
        row["mass error %"] = 100.0 * abs(estimate.mass / mass - 1.0)
        row["mass std %"] = 100.0 * estimate.mass_std / mass
        row["centre error mm"] = 1e3 * float(np.linalg.norm(estimate.center - true))
        row["centre std mm"] = 1e3 * float(np.linalg.norm(estimate.center_std))
        row["inertia error g m2"] = 1e3 * float(np.linalg.norm(estimate.inertia - about[SIX]))
        for name, error, std in (
            ("mass", estimate.mass - mass, estimate.mass_std),
            ("centre", estimate.center - true, estimate.center_std),
            ("inertia", estimate.inertia - about[SIX], estimate.inertia_std),
        ):
            row[f"{name} within 2 std"] = float(np.mean(np.abs(error) <= 2.0 * std))
    for name, begin, end in (
        ("error at once x", on, on + 1.0),
        ("error from 3 s x", on + 3.0, on + 10.0),
        ("error from 10 s x", on + 10.0, off),
        ("error released x", off + 1.0, off + 15.0),
    ):
        row[name] = float(np.mean(run.rms(begin, end) / before))
        if begin > on:
            row[f"{name[:-1]}/ without"] = float(
                np.mean(run.rms(begin, end) / bare.rms(begin, end))
            )
    row["false before"] = float(sum(run.alarms(0.0, on).values()))
    return row


def drawn_load(seed: int, mass: float = 0.0) -> tuple[float, np.ndarray, np.ndarray]:
    """A body for a seed: mass (kg), centre (3,) m in the hand, inertia (3, 3) about it.

    mass: 0: drawn from 0.2 to 2 kg, evenly in logarithm.
    """
    rng = np.random.default_rng([seed, 7])
    mass = mass or 0.2 * 10.0 ** rng.uniform()
    center = rng.uniform(-0.04, 0.04, 3) + np.array([0.0, 0.0, 0.05])
    body = pin.Inertia.FromEllipsoid(mass, *rng.uniform(0.03, 0.08, 3))
    return mass, center, np.array(body.inertia)


def quiet(args: argparse.Namespace, seed: int) -> dict[str, float]:
    """Nothing happens: what is named, an hour."""
    run = Run(args, seed)
    run.until(LEARN + 60.0 * args.minutes)
    alarms = run.alarms(LEARN, np.inf)
    kinds = ("payload", "friction", "offset", "contact")
    return {f"{kind} an hour": 60.0 / args.minutes * alarms[kind] for kind in kinds}


def on_logs(data: Path, settle: float = 5.0) -> None:
    """Print nmse (mean over joints) with detection, over what it is without; and what was named.

    Learned with detection; then sequential by the learner itself, delayed and frozen as a model
    that was learned so is worth.
    """
    print(f"{'log':<9}{'sequential':>12}{'delayed':>12}{'frozen':>12}  noticed, not learned")
    for split in log_splits(data, LOGS):
        config, model = split.config, RobotModel(split.urdf, split.config.robot)
        parts = (*split.train, split.test)
        *train, test = (samples(model, config, measurements(p, model, config)) for p in parts)
        scores = []
        for detect in (False, True):
            changed = replace(config, changes__detect=detect, changes__settle=settle)
            learner = InverseDynamicsLearner(model, changed)
            learned(learner, [sample for part in train for sample in part])
            plain = InverseDynamicsLearner(model, replace(changed, changes__detect=False))
            plain.estimator.copy_from(learner.estimator)
            runs = [ProtocolRun(plain.copy(), name) for name in ("delayed", "frozen")]
            for run in runs:
                for sample in test:
                    run.step(sample)
            errors = np.array(learned(learner, test))
            y = np.array([sample.y for sample in test])
            nmse = [float(np.mean(np.mean(errors**2, axis=0) / y.var(axis=0)))]
            nmse += [float(run.scores.nmse("semiparametric").mean()) for run in runs]
            scores.append(nmse)
        cells = "".join(f"{on / off:>12.4f}" for off, on in zip(*scores, strict=True))
        named = dict(learner.changes.counts)
        print(f"{split.name:<9}{cells}  {named}, {sum(learner.dropped.values())}", flush=True)


def on_airbot(folder: Path, settle: float = 5.0) -> None:
    """A real arm without and with a load: one half is learned, the load estimated in the other.

    Between the halves lies a pause, as where somebody puts the load on. Its mass is not stated:
    what counts is that both ways agree, and that the deviations cover the difference. With the
    efforts as they are reported, and with drive gains by the recording without the load.
    """
    flat = {"changes.detect": True, "changes.settle": settle, "comparison": False}
    config = from_flat(InverseDynamicsConfig, flat)
    urdf = folder / "airbot.urdf"
    model = RobotModel(urdf, config.robot)
    with tempfile.TemporaryDirectory() as place:
        bags = {name: Path(place) / name for name in ("unloaded", "loaded")}
        for name, bag in bags.items():
            convert_log(folder / f"{name}.npz", bag, names=model.joint_names)
        gains, identified = drive_gains_of_bags(bags["unloaded"], config, urdf=urdf)
        print("efforts as reported")
        estimate_in_other_half(model, config, bags)
        print("\nwith drive gains by the recording without the load")
        print(gains_table(gains))
        estimate_in_other_half(model, identified, bags)


def estimate_in_other_half(
    model: RobotModel, config: InverseDynamicsConfig, bags: dict[str, Path]
) -> None:
    """Print what is estimated of the load, and when, in the half that was not learned."""
    logs = {}
    for name, bag in bags.items():
        read = read_measurements(bag, model.joint_names, config=config.samples)
        logs[name] = by_time(read.measurements, 0.5)
    print(f"{'learned':<18}{'then':<18}{'reported, s after its beginning':<44}mass kg; centre mm")
    for before, after in (
        (("unloaded", 0), ("unloaded", 1)),
        (("loaded", 0), ("loaded", 1)),
        (("unloaded", 0), ("loaded", 1)),
        (("loaded", 0), ("unloaded", 1)),
        (("unloaded", 1), ("loaded", 0)),
        (("loaded", 1), ("unloaded", 0)),
    ):
        learner = InverseDynamicsLearner(model, config)
        first, then = logs[before[0]][before[1]], logs[after[0]][after[1]]
        pause = first[-1].stamp + 2_000_000_000 - then[0].stamp
        begin = then[0].stamp + pause
        for m in [*first, *(Measurement(m.stamp + pause, m.q, m.dq, m.y) for m in then)]:
            step = learner.predict(m)
            if step is not None and step.y is not None:
                learner.update(learner.admit(step))
        events = [(e.cause, e.name, (e.stamp - begin) * 1e-9) for e in learner.changes.events]
        reported = (
            "; ".join(f"{cause} {name} {after:.1f}" for cause, name, after in events) or "nothing"
        )
        held = learner.changes.payload
        mass = "nothing held"
        if held is not None:
            center = ", ".join(f"{v:.0f}" for v in 1e3 * held.center)
            std = ", ".join(f"{v:.0f}" for v in 1e3 * held.center_std)
            mass = f"{held.mass:.3f} +- {held.mass_std:.3f}; {center} +- {std}"
        names = (f"{name} {('first', 'second')[half]}" for name, half in (before, after))
        print("".join(f"{name:<18}" for name in names) + f"{reported:<44}{mass}", flush=True)


def learned(learner: InverseDynamicsLearner, samples: list[Sample]) -> list[np.ndarray]:
    """As `predict` and `update`, of samples that are filtered already; returns the errors."""
    errors = []
    for sample in samples:
        step = learner.predict_sample(sample)
        errors.append(sample.y - step.prediction.semiparametric)
        learner.update(learner.admit(step))
    return errors


if __name__ == "__main__":
    main()
