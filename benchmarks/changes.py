"""Payloads, contacts, drift and quiet hours on simulated arms, and detection on real logs.

    python benchmarks/changes.py payload --robot icub --calibrated --runs 20
    python benchmarks/changes.py {quiet,contact,drift} --robot ur10 --data DATA --runs 20
    python benchmarks/changes.py {logs,airbot} --data DATA

DATA holds robots/{ur10,xmate7p,tx40,airbot}. A line for each run, with its seed, then medians and
worst.
--calibrated leaves out the errors of gain and cross-talk of the iCub's sensor.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from arms import TUNED, by_time, settings, train_and_test
from output import make_parser, parse

from semiparam_dynamics.base.parameters import from_flat, replace
from semiparam_dynamics.changes.monitor import ChangeMonitor
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner, Step
from semiparam_dynamics.offline.cli.gains import gains_table
from semiparam_dynamics.offline.conversion.convert import convert_log
from semiparam_dynamics.offline.doctor.drive_gains import drive_gains_of_bags
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.bag import read_measurements
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

LEARN = 60.0  # s before anything happens
DIRECTIONS = 10  # runs of the study drift that share an arm
DRIFT = 5.0  # times the error before
# s, of the residual in the study drift. That of nystrom counts the time near a place.
MEMORIES = {"nystrom": 10.0, "random_fourier": 300.0}
SIX = ((0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2))  # the entries Ixx, Ixy, Iyy, Ixz, Iyz, Izz
HANDS = {"icub": "r_hand_dh_frame", "ur10": "tool0"}
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
    studies = {"payload": payload, "quiet": quiet, "contact": contact}
    parser.add_argument("study", choices=[*studies, "drift", "logs", "airbot"])
    parser.add_argument("--robot", choices=list(HANDS), default="icub")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first run's seed")
    parser.add_argument("--minutes", type=float, default=0.0, help="quiet: 10, drift: 60")
    parser.add_argument("--mass", type=float, default=0.0, help="kg; 0: drawn from 0.2 to 2")
    parser.add_argument("--calibrated", action="store_true")
    parser.add_argument("--residual", choices=list(MEMORIES), default="nystrom")
    parser.add_argument("--rate", type=float, default=10.0, help="drift: samples a second")
    args = parse(parser)
    if args.study == "logs":
        on_logs(args.data / "robots")
    elif args.study == "airbot":
        on_airbot(args.data / "robots" / "airbot")
    else:
        rows = []
        seeds = range(args.first, args.first + args.runs)
        one_by_one = ((seed, studies[args.study](args, seed)) for seed in seeds)
        for seed, row in drift(args) if args.study == "drift" else one_by_one:
            rows.append(row)
            shown = "  ".join(f"{k} {v:.3g}" for k, v in row.items())
            print(f"seed {seed:>3} {shown}", flush=True)
        print("median, worst (of shares: mean, least):")
        for name in rows[0]:
            values = np.array([row[name] for row in rows])
            share = name.endswith("within 2 std") or name.startswith("share")
            middle, worst = (np.nanmean, np.nanmin) if share else (np.nanmedian, np.nanmax)
            print(f"  {name:<28}{middle(values):>10.3g}{worst(values):>10.3g}", end="")
            print(f"   in {np.isfinite(values).sum()} of {len(rows)} runs")


def arm_of(args: argparse.Namespace, seed: int, **overrides: Any) -> ArmSimulator:
    if args.robot == "ur10":
        urdf = args.data / "robots" / "ur10" / "ur10_robot.urdf"
        return ArmSimulator(str(urdf), seed=seed, **UR10 | overrides)
    if args.calibrated:
        overrides |= {"effects__nonlinearity": 0.0, "effects__crosstalk": 0.0}
    return ArmSimulator(seed=seed, **overrides)


def learner_of(arm: ArmSimulator, **values: Any) -> InverseDynamicsLearner:
    wrench = bool(arm.sensor_frame)
    flat: dict[str, Any] = {"joints": arm.joint_names, "comparison": False, "changes.detect": True}
    flat |= {"target": "wrench" if wrench else "effort", "filter.cutoff": 5.0 if wrench else 8.0}
    flat |= {"sensor_frame": arm.sensor_frame} | values
    config = from_flat(InverseDynamicsConfig, flat)
    return InverseDynamicsLearner(RobotModel(arm.urdf, config.robot), config)


class Run:
    """An arm and what learns it; every step is kept as time, error and standard deviation."""

    def __init__(self, arm: ArmSimulator, learner: InverseDynamicsLearner) -> None:
        self.arm, self.learner = arm, learner
        self.source: Iterator[Measurement] = simulated(arm, learner.model.config.target)
        self.times: list[float] = []
        self.errors: list[np.ndarray] = []
        self.rigid: list[np.ndarray] = []  # the rigid body's
        self.now = 0.0  # s, of the last measurement; samples are one behind

    @property
    def changes(self) -> ChangeMonitor:
        assert self.learner.changes is not None
        return self.learner.changes

    def until(self, end: float, change: Callable[[Measurement], Measurement] | None = None) -> None:
        """Go on to the time `end` (s)."""
        for measurement in self.source:
            self.take(change(measurement) if change is not None else measurement)
            if self.now >= end:
                return

    def take(self, measurement: Measurement) -> Step | None:
        """Predict and learn what a measurement completes."""
        self.now = measurement.stamp * 1e-9
        step: Step | None = self.learner.predict(measurement)
        if step is not None and step.y is not None:
            self.learner.update(self.learner.admit(step))
            self.times.append(step.stamp * 1e-9)
            self.errors.append(step.y - step.prediction.semiparametric)
            self.rigid.append(step.y - step.prediction.rigid_body)
        return step

    def rms(self, begin: float, end: float, errors: list[np.ndarray] | None = None) -> np.ndarray:
        """(n_axes,) of the semiparametric errors, or others, within a stretch of time."""
        first, last = np.searchsorted(self.times, (begin, end))
        chosen = (self.errors if errors is None else errors)[first:last]
        rms: np.ndarray = np.sqrt(np.mean(np.square(chosen), axis=0))
        return rms

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
    arm = arm_of(args, seed)
    run = Run(arm, learner := learner_of(arm))
    on, off = LEARN, LEARN + 30.0
    bare = Run(unloaded := arm_of(args, seed), learner_of(unloaded))
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
    else:
        names = ("mass error %", "mass std %", "centre error mm", "centre std mm")
        names += ("inertia error g m2",)
        names += tuple(f"{name} within 2 std" for name in ("mass", "centre", "inertia"))
        row |= dict.fromkeys(names, float("nan"))
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
    minutes = args.minutes or 10.0
    arm = arm_of(args, seed)
    run = Run(arm, learner_of(arm, residual=args.residual))
    run.until(LEARN + 60.0 * minutes)
    alarms = run.alarms(LEARN, np.inf)
    kinds = ("payload", "friction", "offset", "contact")
    return {f"{kind} an hour": 60.0 / minutes * alarms[kind] for kind in kinds}


def contact(args: argparse.Namespace, seed: int) -> dict[str, float]:
    """Ten pushes of 2 to 10 N on the hand, 0.2 to 1 s long, in any direction."""
    rng = np.random.default_rng([seed, 8])
    arm = arm_of(args, seed)
    run = Run(arm, learner_of(arm))
    run.until(LEARN)
    before, delays, named = run.rms(LEARN - 20.0, LEARN), [], 0
    for k in range(10):
        start = LEARN + 6.0 * k + rng.uniform(0.0, 2.0)
        run.until(start)
        direction = rng.standard_normal(3)
        size = 2.0 * 5.0 ** rng.uniform()
        arm.hand.push(size * direction / np.linalg.norm(direction))
        begun = run.now  # felt by the next measurement, seen in the sample after that
        run.until(start + rng.uniform(0.2, 1.0))
        arm.hand.push(np.zeros(3))
        run.until(LEARN + 6.0 * (k + 1))
        seen = run.first("contact", begun)
        delays.append(seen - begun if seen - begun < 1.0 else float("nan"))
        named += sum(run.alarms(begun, begun + 2.0)[c] for c in ("payload", "friction", "offset"))
    missed = float(np.sum(~np.isfinite(delays)))
    run.until(LEARN + 80.0)
    return {
        "median delay ms": 1e3 * float(np.nanmedian(delays)),
        "longest delay ms": 1e3 * float(np.nanmax(delays)),
        "missed of 10": missed,
        "taken for another cause": float(named),
        "error afterwards x": float(np.mean(run.rms(LEARN + 60.0, LEARN + 80.0) / before)),
    }


def drift(args: argparse.Namespace) -> Iterator[tuple[int, dict[str, float]]]:
    """Offsets and friction drift for an hour; the last ten minutes beside the second ten.

    By `DRIFT` times an axis' error before, each of the two, in a direction of its own for each run;
    with and without a memory of five minutes. `DIRECTIONS` runs share an arm: its motion and its
    noise. Predictions are of samples whose neighbours in time were learned, which flatters a
    residual: so the rigid body's errors are shown, too.
    """
    minutes = args.minutes or 60.0
    ten = 10.0 * minutes  # s: a sixth of the time
    both = {"residual": args.residual, "filter.max_rate": args.rate, "changes.detect": False}
    both |= {"random_fourier.n_features": 300}
    memory = {"rigid_body.memory": 300.0, f"{args.residual}.memory": MEMORIES[args.residual]}
    variants: dict[str, dict[str, Any]] = {"without": {}, "memory": memory}
    first, last = args.first, args.first + args.runs
    for number in range(first // DIRECTIONS, -(-last // DIRECTIONS)):
        seeds = [s for s in range(first, last) if s // DIRECTIONS == number]
        arm = arm_of(args, number, rate=50.0)
        runs = {
            (seed, name): Run(arm, learner_of(arm, **both, **values))
            for seed in seeds
            for name, values in variants.items()
        }
        together(list(runs.values()), LEARN, [None] * len(runs))
        changes = [drifting(run, seed, 6.0 * ten) for (seed, _), run in runs.items()]
        together(list(runs.values()), LEARN + 6.0 * ten, changes)
        for seed in seeds:
            row = {}
            for name in variants:
                run = runs[seed, name]
                for model, errors in (("rigid body", run.rigid), ("both", run.errors)):
                    early = run.rms(LEARN + ten, LEARN + 2.0 * ten, errors)
                    late = run.rms(LEARN + 5.0 * ten, LEARN + 6.0 * ten, errors)
                    row[f"{name}, {model} x"] = float(np.mean(late / early))
                    row[f"{name}, {model} of before"] = float(
                        np.mean(late / run.rms(LEARN - 20.0, LEARN, errors))
                    )
            yield seed, row


def drifting(run: Run, seed: int, duration: float) -> Callable[[Measurement], Measurement]:
    """Adds to a measurement what has drifted since `LEARN`, s."""
    size = DRIFT * run.rms(LEARN - 20.0, LEARN)
    sign = np.random.default_rng([seed, 9]).choice([-1.0, 1.0], (2, len(size)))
    wrench = run.learner.model.config.target == "wrench"

    def drifted(m: Measurement) -> Measurement:
        part = (m.stamp * 1e-9 - LEARN) / duration
        rubbing = 0.0 if wrench or m.dq is None else np.tanh(m.dq / 0.02)
        return Measurement(m.stamp, m.q, m.dq, m.y + part * size * (sign[0] + sign[1] * rubbing))

    return drifted


def together(runs: list[Run], end: float, changes: list[Any]) -> None:
    """Lead runs of one arm through the same measurements, each with its change."""
    for measurement in runs[0].source:
        for run, change in zip(runs, changes, strict=True):
            run.take(measurement if change is None else change(measurement))
        if measurement.stamp * 1e-9 >= end:
            return


def on_logs(robots: Path, settle: float = 5.0) -> None:
    """Prints nmse (mean over joints) with detection, over what it is without; and what was named.

    Learned with detection; then sequential by the learner itself, delayed and frozen as a model
    that was learned so is worth.
    """
    print(f"{'log':<9}{'sequential':>12}{'delayed':>12}{'frozen':>12}  noticed, not learned")
    for log in TUNED:
        config = settings(log)
        model, train, test = train_and_test(robots, log, config)
        scores = []
        for detect in (False, True):
            changed = replace(config, changes__detect=detect, changes__settle=settle)
            learner = InverseDynamicsLearner(model, changed)
            learned(learner, train)
            runs = [ProtocolRun(learner.estimator.copy(), name) for name in ("delayed", "frozen")]
            for run in runs:
                for sample in test:
                    run.step(sample)
            errors = np.array(learned(learner, test))
            y = np.array([sample.y for sample in test])
            nmse = [float(np.mean(np.mean(errors**2, axis=0) / y.var(axis=0)))]
            nmse += [float(run.scores.nmse("semiparametric").mean()) for run in runs]
            scores.append(nmse)
        cells = "".join(f"{on / off:>12.4f}" for off, on in zip(*scores, strict=True))
        assert learner.changes is not None
        named = dict(learner.changes.counts)
        print(f"{log:<9}{cells}  {named}, {sum(learner.dropped.values())}", flush=True)


def on_airbot(folder: Path, settle: float = 5.0) -> None:
    """A real arm's motion without and with a load: learned on one half, the load told in the other.

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
        told_in_other_half(model, config, bags)
        print("\nwith drive gains by the recording without the load")
        print(gains_table(gains))
        told_in_other_half(model, identified, bags)


def told_in_other_half(
    model: RobotModel, config: InverseDynamicsConfig, bags: dict[str, Path]
) -> None:
    """Prints what is told of the load, and when, in the half that was not learned."""
    logs = {}
    for name, bag in bags.items():
        read = read_measurements(bag, model.joint_names, config=config.samples)
        logs[name] = by_time(read.measurements, 0.5)
    print(f"{'learned':<18}{'then':<18}{'told, s after its beginning':<44}mass kg; centre mm")
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
        assert learner.changes is not None
        events = [(e.cause, e.name, (e.stamp - begin) * 1e-9) for e in learner.changes.events]
        told = (
            "; ".join(f"{cause} {name} {after:.1f}" for cause, name, after in events) or "nothing"
        )
        held = learner.changes.payload
        mass = "nothing held"
        if held is not None:
            center = ", ".join(f"{v:.0f}" for v in 1e3 * held.center)
            std = ", ".join(f"{v:.0f}" for v in 1e3 * held.center_std)
            mass = f"{held.mass:.3f} +- {held.mass_std:.3f}; {center} +- {std}"
        names = (f"{name} {('first', 'second')[half]}" for name, half in (before, after))
        print("".join(f"{name:<18}" for name in names) + f"{told:<44}{mass}", flush=True)


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
