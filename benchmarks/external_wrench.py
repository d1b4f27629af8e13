"""Wrenches at the tool estimated from joint efforts: of logs with known ones added, and of arms.

    python benchmarks/external_wrench.py logs --data DATA [--logs xmate7p ur10 ...] [--draws 5]
    python benchmarks/external_wrench.py arms --data DATA [--arms ur10 xmate7p airbot seven]

DATA holds robots. Errors of force and moment, half a second after each change of the wrench at the
earliest, which the low-pass takes: means and 95th percentiles, and how often the 95 % ellipsoid
covers the truth, of all samples and of those with a wrench. Compared are, of the same filtered
signals, the residual of the URDF's own parameters and that of the identified rigid body, through
the pseudo-inverse of the Jacobian, which is what a momentum observer gives after such a filter; the
latter by this package's estimate; and `~/external_wrench`.

`logs`: each model learns the training part of its log and then stays as it is. On the test part a
wrench acts for two seconds, then none for two, and so on; through the frame's Jacobian that changes
each measured effort exactly, as long as the controller held the motion.

`arms`: MuJoCo moves each arm by a controller along a motion that does not repeat, with friction,
elasticity and noise as in contact.py. After a minute of learning wrenches act at the tool, in base
axes. Then a kilogram is fixed to the tool, 5 cm before it, and ten seconds later they continue. Two
learners get the same messages. One stays as it is after the first minute: the load's weight and
inertia are part of the wrench; in `load known` they are subtracted from the efforts. The other
continues learning with `changes.detect`, which excludes pushes and estimates the load.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from arms import LOGS, SEVEN, SMALL_EFFECTS, LogSplit, log_splits, measurements, options
from changes import UR10, learner_of
from output import make_parser, parse
from scipy.stats import chi2

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.changes.external_wrench import ExternalWrench, FrameMotion, tool_frame
from semiparam_dynamics.dynamics.sample import Prediction, Sample
from semiparam_dynamics.learner.learner import InverseDynamicsLearner, Step
from semiparam_dynamics.offline.doctor.messages import JointLog
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import parse_urdf
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

HOLD = 2.0  # s that a wrench lasts
SETTLED = 0.5  # s after a change
FORCES, MOMENTS = (5.0, 40.0), (0.5, 4.0)  # N, N m
OWN = "~/external_wrench"
WEIGHTED = ", damped and weighted"  # by this package's estimate in place of the pseudo-inverse
PICKED = 10.0  # s from taking the load to the next wrench
MASS, CENTER = 1.0, np.array([0.0, 0.0, 0.05])  # kg, m from the tool's frame
INERTIA = 1e-3 * np.eye(3)  # kg m^2
MOTION = {"motion": "exciting", "max_velocity": 1.0, "excitation": 0.4, "period": 300.0}
SMALL = options(SMALL_EFFECTS)
ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    "ur10": ("ur10/ur10_robot.urdf", UR10),
    "xmate7p": ("xmate7p/xmate7p.urdf", UR10),
    "airbot": ("airbot/airbot.urdf", SMALL),
    "seven": ("", SMALL),
}
JOINTS = {"airbot": 6, "seven": 7}  # the first ones of these
TITLES = (
    *("by", "force, N: mean", "95 %", "moment, N m: mean", "95 %"),
    *("covered", "covered, with a wrench"),
)
Efforts = dict[str, tuple[Array, Array | None]]  # of each model, with its deviations if it has some


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("study", choices=("logs", "arms"))
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--logs", nargs="+", default=[*LOGS, "sim_seven"], metavar="NAME")
    parser.add_argument("--draws", type=int, default=1, help="of wrenches on a log, together")
    parser.add_argument("--first", type=int, default=0, help="the first draw's seed")
    parser.add_argument("--arms", nargs="+", choices=tuple(ARMS), default=list(ARMS))
    parser.add_argument("--learn", type=float, default=60.0, help="s of an arm before wrenches")
    parser.add_argument("--seconds", type=float, default=60.0, help="of wrenches on an arm, twice")
    args = parse(parser)
    titles = ("log, frame" if args.study == "logs" else "arm, load", *TITLES)
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    if args.study == "logs":
        for split in log_splits(args.data, args.logs):
            on_log(split, range(args.first, args.first + args.draws))
    else:
        for name in args.arms:
            on_arm(name, args)


class Errors:
    """Errors of one method's wrenches (6,), and whether the 95 % ellipsoid covered each."""

    def __init__(self) -> None:
        self._rows: list[Array] = []
        self._covered: list[tuple[bool, bool]] = []  # and whether there was a wrench

    def add(self, found: Array, truth: Array, covariance: Array | None, acts: bool) -> None:
        """Count a sample; covariance: None where a method has none."""
        error = found - truth
        self._rows.append(error)
        if covariance is not None:
            length = error @ np.linalg.solve(covariance, error)
            self._covered.append((bool(length <= chi2.ppf(0.95, 6)), acts))

    def row(self) -> list[str]:
        """The numbers below `TITLES` but the first."""
        rows = np.array(self._rows)
        sizes = [np.linalg.norm(rows[:, part], axis=1) for part in (np.s_[:3], np.s_[3:])]
        numbers = [f(size) for size in sizes for f in (np.mean, lambda s: np.percentile(s, 95))]
        shares = [""] * 2
        if self._covered:
            covered, acts = np.array(self._covered).T
            shares = [f"{covered.mean():.3f}", f"{covered[acts].mean():.3f}"]
        return [*(f"{number:.3g}" for number in numbers), *shares]


class Methods:
    """Ways to estimate a wrench at a frame from the same samples, and the errors of each."""

    def __init__(self, model: RobotModel, axes: str = "") -> None:
        self.motion = FrameMotion(model, axes=axes)
        self._model, self._axes = model, axes
        self._estimators: dict[str, ExternalWrench] = {}
        self._errors: dict[str, Errors] = {}

    def estimate(self, sample: Sample, efforts: Efforts, truth: Array | None, acts: bool) -> None:
        """Estimate it from the residual of each model; truth (6,) None: is not counted."""
        J = self.motion.jacobian(sample.q)
        known = np.isfinite(sample.y)
        for name, (predicted, stds) in efforts.items():
            left = sample.y - predicted
            if name != OWN and truth is not None:
                found = -np.linalg.pinv(J[:, known].T) @ left[known]
                self._errors.setdefault(name, Errors()).add(found, truth, None, acts)
            if stds is not None:
                if name not in self._estimators:
                    self._estimators[name] = ExternalWrench(self._model, axes=self._axes)
                estimator = self._estimators[name]
                found, covariance, *_ = estimator.estimate(sample.q, left, stds, sample.stamp)
                if truth is not None:
                    row = name if name == OWN else name + WEIGHTED
                    self._errors.setdefault(row, Errors()).add(found, truth, covariance, acts)

    def restart(self) -> None:
        """Let the next sample be of another recording, for the estimators."""
        self._estimators.clear()

    def print_rows(self, title: str) -> None:
        """Print a row for each."""
        for name, errors in sorted(self._errors.items(), key=lambda item: item[0] == OWN):
            print(f"| {title} | {name} | {' | '.join(errors.row())} |", flush=True)


def efforts_of(model: RobotModel, sample: Sample, prediction: Prediction) -> Efforts:
    """The efforts by the URDF, the rigid body, and both parts of the model."""
    return {
        "URDF": (model.inverse_dynamics(sample.q, sample.dq, sample.ddq), None),
        "rigid body": (prediction.rigid_body, prediction.rigid_body_std),
        OWN: (prediction.semiparametric, prediction.semiparametric_std),
    }


def drawn_wrenches(count: int, seed: int = 0) -> Array:
    """(count, 6) none in every other row, else of any direction."""
    rng = np.random.default_rng(seed)
    made = np.zeros((count, 6))
    for hold in range(1, len(made), 2):
        for part, (low, high) in ((np.s_[:3], FORCES), (np.s_[3:], MOMENTS)):
            direction = rng.normal(size=3)
            made[hold, part] = rng.uniform(low, high) * direction / np.linalg.norm(direction)
    return made


# -------------------------------------------------------------------------------------------------
# Logs


def on_log(split: LogSplit, seeds: range = range(1)) -> None:
    """Print the rows of a log, of the wrenches drawn with these seeds together."""
    model = RobotModel(split.urdf, split.config.robot)
    learner = InverseDynamicsLearner(model, split.config)
    for log in split.train:
        for measurement in measurements(log, model, split.config):
            if (step := learner.predict(measurement)) is not None:
                learner.update(learner.admit(step))
    methods = Methods(model)
    for seed in seeds:
        _count_errors(split, learner.copy(), methods, seed)
    methods.print_rows(f"{split.name}, {methods.motion.frame}")


def _count_errors(
    split: LogSplit, learner: InverseDynamicsLearner, methods: Methods, seed: int
) -> None:
    """Count the errors of all methods with one draw of wrenches; nothing is learned."""
    model, test = learner.model, split.test
    stamps, wrenches = wrenches_along(test, seed)
    for measurement in measurements(pushed(test, wrenches, methods.motion), model, split.config):
        if (step := learner.predict(measurement)) is None or step.y is None:
            continue
        k = int(np.searchsorted(stamps, step.stamp))
        since = (step.stamp - test.stamps[0]) / SECOND % HOLD
        truth = wrenches[k] if since >= SETTLED and k < len(wrenches) else None
        efforts = efforts_of(model, step.sample, step.prediction)
        methods.estimate(step.sample, efforts, truth, truth is not None and bool(truth.any()))
    methods.restart()


def wrenches_along(log: JointLog, seed: int = 0) -> tuple[Array, Array]:
    """Stamps (n,) of a log, and the wrench (n, 6) at each of its messages."""
    holds = (log.times // HOLD).astype(int)
    return log.stamps, drawn_wrenches(int(holds.max()) + 1, seed)[holds]


def pushed(log: JointLog, wrenches: Array, motion: FrameMotion) -> JointLog:
    """The log as it would be with these wrenches (n, 6) at the frame."""
    added = [motion.jacobian(q).T @ w for q, w in zip(log.q, wrenches, strict=True)]
    return dataclasses.replace(log, y=log.y - np.array(added))


# -------------------------------------------------------------------------------------------------
# Arms


def on_arm(name: str, args: argparse.Namespace) -> None:
    """Print the rows of an arm."""
    arm = arm_of(name, args.data)
    base = parse_urdf(arm.urdf).root
    frozen, learning = learner_of(arm, **{"changes.detect": False}), learner_of(arm)
    for step, other in steps_of(arm, frozen, learning, 0.0, args.learn):
        frozen.update(frozen.admit(step))
        learning.update(learning.admit(other))
    now = args.learn
    for load in ("none", "1 kg"):
        if load != "none":
            arm.hand.attach(MASS, CENTER, INERTIA)
            for _, other in steps_of(arm, frozen, learning, now, now + PICKED):
                learning.update(learning.admit(other))
            now += PICKED
        whole, known, detecting = (Methods(frozen.model, base) for _ in range(3))
        wrenches = drawn_wrenches(int(args.seconds / HOLD), seed=int(load != "none"))
        held = Load(frozen.model, whole.motion.frame) if load != "none" else None
        end = now + args.seconds
        for step, other in steps_of(arm, frozen, learning, now, end, wrenches):
            learning.update(learning.admit(other))
            since, sample, p = step.stamp * 1e-9 - now, step.sample, step.prediction
            hold = int(since / HOLD)
            counts = since >= 0.0 and since % HOLD >= SETTLED and hold < len(wrenches)
            applied = wrenches[hold] if counts else None
            acts = applied is not None and bool(applied.any())
            efforts, truth = efforts_of(frozen.model, sample, p), applied
            if held is not None:
                weight = held.wrench(sample)
                truth = None if applied is None else applied + weight
                lifting = p.semiparametric - whole.motion.jacobian(sample.q).T @ weight
                known.estimate(sample, {OWN: (lifting, p.semiparametric_std)}, applied, acts)
            whole.estimate(sample, efforts, truth, acts or held is not None)
            p = other.prediction
            own: Efforts = {OWN: (p.semiparametric, p.semiparametric_std)}
            detecting.estimate(other.sample, own, applied, acts)
        now = end
        whole.print_rows(f"{name}, {load}")
        known.print_rows(f"{name}, {load} known")
        detecting.print_rows(f"{name}, {load}, changes.detect")
    payload = learning.changes.payload
    reported = "none" if payload is None else f"{payload.mass:.2f} kg"
    print(f"| {name} | payload reported: {reported} | | | | | | |", flush=True)


def arm_of(name: str, data: Path) -> ArmSimulator:
    """The simulated arm, its hand where wrenches are estimated."""
    path, effects = ARMS[name]
    urdf = (data / "robots" / path).read_text() if path else SEVEN.read_text()
    tree = parse_urdf(urdf)
    joints = tuple(j.name for j in tree.below(tree.root) if j.actuated)[: JOINTS.get(name)]
    fixed = {"hand_frame": tool_frame(tree, joints), "joints": joints, "rate": 100.0}
    return ArmSimulator(urdf, **effects | MOTION | fixed)


def steps_of(
    arm: ArmSimulator,
    frozen: InverseDynamicsLearner,
    learning: InverseDynamicsLearner,
    begin: float,
    end: float,
    wrenches: Array | None = None,
) -> Iterator[tuple[Step, Step]]:
    """Each sample up to a time (s), predicted by both; wrenches (n, 6) act from `begin` on."""
    acting = -1
    for measurement in simulated(arm, "effort"):
        now = measurement.stamp * 1e-9
        one, other = frozen.predict(measurement), learning.predict(measurement)
        if one is not None and other is not None:
            yield one, other
        if wrenches is not None and (hold := int((now - begin) / HOLD)) != acting:
            acting = hold
            w = wrenches[hold] if hold < len(wrenches) else np.zeros(6)
            arm.hand.push(w[:3], moment=w[3:])
        if now >= end:
            break
    arm.hand.push(np.zeros(3))


class Load:
    """The wrench that a body fixed to a frame exerts on the robot, by its weight and inertia."""

    def __init__(self, model: RobotModel, frame: str) -> None:
        self._model, self._data = model.kinematics, model.kinematics.createData()
        self._frame = self._model.getFrameId(frame, pin.FrameType.BODY)
        self._body = pin.Inertia(MASS, CENTER, INERTIA)

    def wrench(self, sample: Sample) -> Array:
        """(6,) about the frame's origin, in base axes, at a sample's state."""
        model, data = self._model, self._data
        pin.forwardKinematics(model, data, sample.q, sample.dq, sample.ddq)
        place = pin.updateFramePlacement(model, data, self._frame)
        velocity = pin.getFrameVelocity(model, data, self._frame, pin.LOCAL)
        acceleration = pin.getFrameAcceleration(model, data, self._frame, pin.LOCAL)
        acceleration = acceleration - place.actInv(model.gravity)
        force = self._body * acceleration + velocity.cross(self._body * velocity)
        turn = place.rotation
        return -np.concatenate((turn @ force.linear, turn @ force.angular))


if __name__ == "__main__":
    main()
