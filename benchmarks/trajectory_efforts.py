"""Tracking errors of a trajectory controller by the efforts in its trajectory: none, URDF, learned.

A simulated arm with friction, elasticity and noise follows a trajectory by a PID on each joint plus
the efforts of its points, straight between them, as ros2_controllers' joint_trajectory_controller
does with effort commands. The learner, which has only learned another motion, is asked about the
whole trajectory before it begins; it is given the same URDF with wrong masses as the one whose
efforts are compared with, and with which the driver compensates gravity, where it does.

python benchmarks/trajectory_efforts.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from arms import SEVEN, SEVEN_JOINTS, UR10
from closed_loop import START_NS, with_wrong_masses
from output import make_parser, parse
from scipy.interpolate import BPoly

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.parameters import from_flat, replace
from semiparam_dynamics.control.config import TrajectoryEffortsConfig
from semiparam_dynamics.control.plan import Answer, trajectory_of
from semiparam_dynamics.control.trajectory_efforts import (
    TrajectoryEfforts,
    Waypoints,
    gravity_efforts,
    resampled,
    rigid_efforts,
    states_at,
)
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.simulation.arm import ArmSimulator
from semiparam_dynamics.simulation.config import SimulatorConfig

RATE = 500.0
LEARNER = {"filter.max_rate": 50.0, "comparison": False}
DRIVERS = {
    "include": "the driver does not compensate it",
    "exclude": "the driver compensates it by the URDF",
}
KINDS = ("position only", "URDF", "learned", "learned rigid body")
BANDWIDTH, INTEGRAL = 20.0, 2.0  # rad/s of the joints' errors, and of what the integral takes up
STANDS_S = 1.0  # before the trajectory begins
SLOWS_S = 2.0  # at its end
MOST = 1000  # points in a question


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument(
        "--data", type=Path, help="folder with robots/ur10/ur10_robot.urdf; else without the UR10"
    )
    parser.add_argument("--arms", nargs="+", choices=("icub", "seven", "ur10"), default=[])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--learning", type=float, default=40.0, help="s of motion (default 40)")
    parser.add_argument("--seconds", type=float, default=12.0, help="of trajectory (default 12)")
    parser.add_argument(
        "--spacings",
        type=float,
        nargs="+",
        default=[0.1, 0.5, 1.0],
        help="of the trajectory's points, s; joints are told apart for the first",
    )
    parser.add_argument(
        "--period", type=float, default=0.02, help="to which it is resampled, s (default 0.02)"
    )
    parser.add_argument("--mass-error", type=float, nargs=2, default=(0.1, 0.3))
    args = parse(parser)
    arms: dict[str, tuple[str, dict[str, object]]] = {
        "icub": ("", {"effects.rotor_inertia": 0.03}),
        "seven": (str(SEVEN), SEVEN_JOINTS),
    }
    if args.data is not None:
        arms["ur10"] = (str(args.data / "robots" / "ur10" / "ur10_robot.urdf"), UR10)
    elif "ur10" in args.arms:
        parser.error("the UR10 needs --data")
    for name in args.arms or arms:
        urdf, settings = arms[name]
        config = from_flat(SimulatorConfig, {**settings, "rate": RATE, "motion": "exciting"})
        errors: dict[str, list[Array]] = {gravity: [] for gravity in DRIVERS}
        means: dict[float, list[tuple[float, ...]]] = {spacing: [] for spacing in args.spacings}
        for seed in range(args.seeds):
            trial = Trial(urdf, config, seed, args.learning, tuple(args.mass_error))
            for spacing in args.spacings:
                given = trial.trajectory(args.seconds, spacing)
                if spacing == args.spacings[0]:
                    for gravity, rows in errors.items():
                        rows.append(trial.errors(given, gravity, KINDS))
                fine = resampled(given, args.period, MOST)
                without, as_given = trial.errors(given, "include", (KINDS[0], KINDS[2]))
                (resample,) = trial.errors(fine, "include", KINDS[2:3])
                means[spacing].append((without.mean(), as_given.mean(), resample.mean()))
        for gravity, rows in errors.items():
            print(f"\n{name}, points {args.spacings[0]:g} s apart, gravity: {gravity} ", end="")
            print(f"({DRIVERS[gravity]}); RMS error in mrad, {len(rows)} runs\n")
            print_errors(trial.model.joint_names, np.array(rows))
        print(f"\n{name}, gravity: include; RMS error in mrad, mean of joints and runs\n")
        print("| points apart | position only | learned | learned, resampled |")
        print("|---" * 4 + "|")
        for spacing, found in means.items():
            cells = " | ".join(f"{1e3 * value:.2f}" for value in np.mean(found, axis=0))
            print(f"| {spacing:g} s | {cells} |", flush=True)


def print_errors(joints: tuple[str, ...], errors: Array) -> None:
    """The table of errors (runs, kinds, n_joints) in rad: joints, their mean, the worst run."""
    print(f"| joint | {' | '.join(KINDS)} | learned / position only | learned / URDF |")
    print("|---" * (len(KINDS) + 3) + "|")
    values = 1e3 * errors.mean(axis=0)
    for joint, row in [*zip(joints, values.T, strict=True), ("mean", values.mean(axis=1))]:
        cells = [f"{value:.2f}" for value in row]
        cells += [f"{row[2] / row[0]:.2f}", f"{row[2] / row[1]:.2f}"]
        print(f"| {joint} | {' | '.join(cells)} |")
    for what, of in (("worst run's mean", errors.mean(axis=2)), ("worst joint of a run", errors)):
        worst = [(of[:, 2] / of[:, k]).max() for k in (0, 1)]
        print(f"| {what} {'| ' * len(KINDS)}| {worst[0]:.2f} | {worst[1]:.2f} |", flush=True)


class Trial:
    """An arm, and a learner that has learned one motion of it; another one is the trajectory."""

    def __init__(
        self,
        urdf: str,
        config: SimulatorConfig,
        seed: int,
        learning: float,
        mass_error: tuple[float, float],
    ) -> None:
        arm = ArmSimulator(urdf, replace(config, seed=seed))
        given = with_wrong_masses(arm.urdf, *mass_error, seed)
        self.model = RobotModel(given, joints=arm.joint_names, target="effort")
        self._learner = InverseDynamicsLearner(
            self.model, from_flat(InverseDynamicsConfig, LEARNER)
        )
        self._urdf, self._config = urdf, replace(config, seed=seed + 1000, control="effort")
        self._stamp = START_NS
        for _ in range(round(learning * RATE)):
            self._learn(arm)

    def _learn(self, arm: ArmSimulator) -> None:
        reading = arm.advance()
        self._stamp += round(1e9 / RATE)
        step = self._learner.predict(
            Measurement(self._stamp, reading.q, reading.dq, reading.effort)
        )
        if step is not None:
            self._learner.update(self._learner.admit(step))

    def trajectory(self, seconds: float, spacing: float) -> Waypoints:
        """The other motion, from rest to rest, in points with positions, velocities, accelerations.

        The arm then stands at its beginning, and the learner has seen it there.
        """
        arm = ArmSimulator(self._urdf, self._config)
        motion = trajectory_of(
            arm.urdf, arm.joint_names, arm.config.motion, arm.config.seed, arm.config.hand_frame
        )
        for _ in range(round(STANDS_S * RATE)):
            self._learn(arm)
        times = np.linspace(0.0, seconds, round(seconds / spacing) + 1)
        # Its own time runs slower at the end: at 1 - 3 x^2 + 2 x^3.
        x = np.clip((times - seconds + SLOWS_S) / SLOWS_S, 0.0, 1.0)
        own = np.minimum(times, seconds - SLOWS_S) + SLOWS_S * (x - x**3 + 0.5 * x**4)
        rate, change = (1 - 3 * x**2 + 2 * x**3)[:, None], (6 * (x**2 - x) / SLOWS_S)[:, None]
        q, q1, q2 = motion(own)
        dq, ddq = q1 * rate, q2 * rate**2 + q1 * change
        return Waypoints(np.round(1e9 * times).astype(np.int64), q, dq, ddq)

    def errors(self, points: Waypoints, gravity: str, kinds: tuple[str, ...]) -> Array:
        """(kinds, n_joints) rad, root mean square errors of the motors' positions."""
        states = states_at(points)
        rule = TrajectoryEfforts(self.model, replace(TrajectoryEffortsConfig(), gravity=gravity))
        said = self._learner.feedforward(*states)
        values = {"URDF": rigid_efforts(self.model, *states)}
        values["learned"] = said.values["semiparametric"]
        values["learned rigid body"] = said.values["rigid_body"]
        efforts = {"position only": np.zeros_like(states[0])}
        for kind, answer in values.items():
            efforts[kind], told = rule(states[0], Answer(answer, said.stds["semiparametric"]))
            if told:
                sys.exit(f"{told}; let it learn for longer (--learning)")
        return np.array([self._follow(points, efforts[kind], gravity) for kind in kinds])

    def _follow(self, points: Waypoints, efforts: Array, gravity: str) -> Array:
        """(n_joints,) rad, root mean square errors of a trajectory with these efforts."""
        arm = ArmSimulator(self._urdf, self._config)
        t = 1e-9 * points.times
        motion = BPoly.from_derivatives(t, np.stack((points.q, points.dq, points.ddq), axis=1))
        velocity = motion.derivative()
        gains = Gains(self.model, points.q, arm.config.effects.rotor_inertia)
        limit = TrajectoryEfforts(self.model, TrajectoryEffortsConfig()).limit
        integral, square, count = np.zeros(len(gains.p)), 0.0, 0
        for _ in range(round(STANDS_S * RATE)):
            reading = arm.advance()  # held where the trajectory begins
        start = reading.time + arm.period
        while (now := reading.time + arm.period - start) < t[-1]:
            desired = motion(now)
            error = desired - reading.q
            integral += arm.period * error
            effort = gains.p * error + gains.i * integral + gains.d * (velocity(now) - reading.dq)
            effort += [np.interp(now, t, column) for column in efforts.T]
            if gravity == "exclude":
                effort += gravity_efforts(self.model, reading.q[None])[0]
            arm.command(np.clip(effort, -limit, limit))
            reading = arm.advance()
            square = square + (motion(now) - reading.q_motor) ** 2
            count += 1
        return np.sqrt(square / count)


class Gains:
    """Of a PID for each joint, p in N m/rad, i in N m/(rad s), d in N m s/rad, all (n_joints,).

    They suit each joint's smallest inertia on the trajectory, its rotor included: they are the same
    everywhere, and with the cycle's delay would be too high where the inertia is less.
    """

    def __init__(self, model: RobotModel, q: Array, rotor: float) -> None:
        n = model.n_joints
        still = np.zeros((n + 1, n))
        moved = [rigid_efforts(model, still + at, still, np.eye(n + 1, n)) for at in q]
        inertia = np.min([np.diagonal(one[:n] - one[n]) for one in moved], axis=0) + rotor
        self.p: Array = inertia * BANDWIDTH**2
        self.i: Array = self.p * INTEGRAL
        self.d: Array = 2.0 * inertia * BANDWIDTH


if __name__ == "__main__":
    main()
