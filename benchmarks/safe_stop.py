"""Travel and force of an arm that meets an obstacle, with and without a stop at the contact.

A UR10 in MuJoCo follows an exciting motion at 1 kHz by efforts and learns all the time. Now and
then its hand meets an obstacle: a spring of 10 N/mm, which is what ISO/TS 15066 takes an abdomen
for. In every other trial the motion is braked to rest once `~/contact` would be true; else it goes
on. All is in one process: a message's way to the node and back, 0.5 ms
(benchmarks/results/node_latency.md), comes on top.

    python benchmarks/safe_stop.py --data DATA --trials 40
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from changes import arm_of, learner_of
from closed_loop import plan_of
from contact import Watched
from output import make_parser, markdown, parse

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.control.computed_torque import ComputedTorque
from semiparam_dynamics.control.config import ControlConfig
from semiparam_dynamics.control.plan import Approach, Reference, trajectory_of
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.simulation.trajectories import HandKinematics, Motion
from semiparam_dynamics.simulation.urdf import SimulatedArm

LEARN, LASTS, BETWEEN = 45.0, 0.6, 3.0  # s
STIFFNESS, LOSS = 1e4, 50.0  # N/m, N s/m
BRAKING = 0.1  # s in which the desired motion comes to rest
APPROACH = 0.3  # rad/s, back to the motion


class Trial(NamedTuple):
    stopped: bool
    speed: float  # m/s, of the hand when it touched
    reported: float  # ms until the contact was reported; nan: it was not
    travel: float  # mm from the touch on into the obstacle, at most
    force: float  # N, the largest


class Braking:
    """The desired motion from a state on: with constant deceleration to rest."""

    def __init__(self, begin: float, q: Array, dq: Array) -> None:
        self._begin, self._q, self._dq = begin, q, dq

    def __call__(self, t: Array) -> Motion:
        s = np.clip(t - self._begin, 0.0, BRAKING)[:, None]
        moving = ((t - self._begin) < BRAKING)[:, None]
        q = self._q + self._dq * (s - 0.5 * s**2 / BRAKING)
        return q, self._dq * (1.0 - s / BRAKING), -self._dq / BRAKING * moving


class Robot:
    """The simulated arm, its controller, and a learner that detects contacts."""

    def __init__(self, data: Path, seed: int) -> None:
        self.arm = arm = arm_of("ur10", data, rate=1000.0, seed=seed, control="effort")
        self.watched = Watched(learner_of(arm, **{"changes.detect": False, "filter.cutoff": 5.0}))
        self._model = self.watched.learner.model
        controller = {"feedforward": "urdf", "gains.rotor_inertia": (0.3,)}
        self._controller = ComputedTorque(self._model, from_flat(ControlConfig, controller))
        config, hand = arm.config, arm.config.hand_frame
        self._motion = trajectory_of(arm.urdf, arm.joint_names, config.motion, seed, hand)
        part = SimulatedArm(arm.urdf, arm.joint_names, "", hand).moving_part()
        self._hand = HandKinematics(part, arm.joint_names, hand)
        self._q, self._dq = arm.advance().q_true, np.zeros(len(arm.joint_names))
        self.now = 0.0
        self.resume()

    def resume(self) -> None:
        """Approach the motion and follow it."""
        self._begin, self._approach = self.now, Approach(self._q, self._motion, APPROACH)
        self._follow(lambda t: self._approach(t - self._begin))

    def brake(self) -> None:
        """Come to rest from here."""
        self._follow(Braking(self.now, self._q, self._dq))

    def _follow(self, reference: Reference) -> None:
        self._plan = plan_of(self._model, reference, self.arm.period)

    def hand(self) -> tuple[Array, Array]:
        """Position and velocity (3,) of the hand."""
        return self._hand.position(self._q), self._hand.jacobian(self._q)[:3] @ self._dq

    def step(self) -> None:
        """One period on."""
        reading = self.arm.advance()
        self.now, self._q, self._dq = reading.time, reading.q_true, reading.dq_true
        self._plan.ahead(self.now)
        point = self._plan.at(self.now)
        self.arm.command(self._controller.command(self.now, reading.q, reading.dq, point))
        stamp = round(1e9 * (1.0 + self.now))
        self.watched.take(Measurement(stamp, reading.q, reading.dq, reading.effort))

    def until(self, end: float) -> None:
        while self.now < end:
            self.step()

    def meet(self, stops: bool) -> Trial:
        """Put an obstacle before the hand where it is now, for a while."""
        place, velocity = self.hand()
        speed = float(np.linalg.norm(velocity))
        normal, begin = velocity / speed, self.now
        travel = force = 0.0
        reported = np.nan
        while self.now < begin + LASTS:
            self.step()
            position, velocity = self.hand()
            depth = float((position - place) @ normal)
            press = max(STIFFNESS * depth + LOSS * float(velocity @ normal), 0.0)
            press = press if depth > 0.0 else 0.0
            self.arm.hand.push(-press * normal)
            travel, force = max(travel, 1e3 * depth), max(force, press)
            if np.isnan(reported) and self.watched.learner.contacts.touched:
                reported = 1e3 * (self.now - begin)
                if stops:
                    self.brake()
        self.arm.hand.push(np.zeros(3))
        self.resume()
        return Trial(stops, speed, reported, travel, force)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parse(parser)
    robot = Robot(arguments.data, arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    robot.until(LEARN)
    alarms, trials = robot.watched.learner.contacts.total, []
    for k in range(arguments.trials):
        robot.until(robot.now + BETWEEN + rng.uniform())
        while np.linalg.norm(robot.hand()[1]) < 0.1:
            robot.step()
        trials.append(robot.meet(k % 2 == 0))
    print(table(trials))
    print(f"\ncontact reported before the first trial: {alarms}; {robot.now / 60.0:.1f} min in all")


def table(trials: list[Trial]) -> str:
    rows = []
    for stops, name in ((True, "stops"), (False, "goes on")):
        chosen = [trial for trial in trials if trial.stopped == stops]
        if not chosen:
            continue
        cells = [name, str(len(chosen))]
        for field in ("speed", "reported", "travel", "force"):
            values = np.array([getattr(trial, field) for trial in chosen])
            digits = 2 if field == "speed" else 0
            missed = f", {np.isnan(values).sum()} not reported" if np.isnan(values).any() else ""
            both = np.nanmedian(values), np.nanmax(values)
            cells.append(", ".join(f"{value:.{digits}f}" for value in both) + missed)
        rows.append(cells)
    head = ["", "trials", "hand's speed, m/s", "detected after, ms", "travel, mm", "force, N"]
    return markdown(head, rows)


if __name__ == "__main__":
    main()
