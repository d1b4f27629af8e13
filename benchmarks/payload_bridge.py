"""Position errors of simulated arms that pick up 1 and 2 kg, with and without the payload bridge.

Arm, driver, learner and bridge run in one process, so that the numbers are the same at every run.
The driver follows an exciting motion by computed torque by the URDF, to which it adds the efforts
of the load it was given, or of its weight alone. The efforts that it reports are what the motors
exert, or, with `bridge.compensated`, that less what it adds. It answers a call after `ANSWER_S`. A
body is taken after 40 s, held for 20 s and released. A line for each arm, mass, kind of driver and
seed, then medians and worst.

    python benchmarks/payload_bridge.py
    python benchmarks/payload_bridge.py --arms seven ur10 --data DATA --seeds 3

DATA holds robots/ur10.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from arms import SEVEN, SEVEN_JOINTS
from changes import UR10
from closed_loop import START_NS, motion_of, plan_of
from output import make_parser, parse

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.parameters import from_flat, group, replace
from semiparam_dynamics.changes.config import BARE
from semiparam_dynamics.changes.load import LoadFrame
from semiparam_dynamics.changes.payload_bridge import Call, PayloadBridge, PayloadBridgeConfig
from semiparam_dynamics.control.computed_torque import ComputedTorque
from semiparam_dynamics.control.config import ControlConfig
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.simulation.arm import ArmSimulator
from semiparam_dynamics.simulation.config import SimulatorConfig
from semiparam_dynamics.simulation.trajectories import HandKinematics
from semiparam_dynamics.simulation.urdf import SimulatedArm

ANSWER_S = 0.05  # from a call to the driver's answer
TAKEN, RELEASED, END = 40.0, 60.0, 75.0  # s
OFFSET = np.array([0.0, 0.0, 0.08])  # m, of the body's centre from the hand
COMMON = {
    "rate": 250.0,
    "motion": "exciting",
    "learner.comparison": False,
    "learner.changes.detect": True,
    "learner.filter.max_rate": 100.0,
    "learner.filter.cutoff": 8.0,
}
# What the driver does, and what the bridge is told of it.
KINDS: dict[str, dict[str, Any]] = {
    "no bridge": {"bridged": False},
    "efforts of the motors": {},
    "efforts without the load": {"compensated": True},
    "the same, weight only": {"compensated": True, "weight_only": True},
    "without it, not said so": {"excluded": True},
}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--arms", nargs="+", choices=("seven", "ur10"), default=["seven"])
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--masses", nargs="+", type=float, default=[1.0, 2.0])
    parser.add_argument("--seeds", type=int, default=1)
    args = parse(parser)
    ur10 = str(args.data / "robots" / "ur10" / "ur10_robot.urdf")
    dotted = {name.replace("__", "."): value for name, value in UR10.items()}
    arms = {
        "seven": (str(SEVEN), "hand", {**SEVEN_JOINTS, "hand_frame": "hand"}, 0.1),
        "ur10": (ur10, "tool0", dotted, 0.3),
    }
    for first, (arm, mass, kind) in enumerate(product(args.arms, args.masses, args.kinds)):
        rows, title = [], f"{arm} {mass:g} kg, {kind}"
        for seed in range(args.seeds):
            found = trial(*arms[arm], mass, seed, **KINDS[kind])
            if not first and not seed:
                print("columns: " + "; ".join(found))
            rows.append(list(found.values()))
            show(f"{title}, {seed}", np.array(rows[-1]))
        if len(rows) > 1:
            show(f"{title}, median", np.median(rows, axis=0))
            show(f"{title}, worst", np.max(rows, axis=0))


def show(name: str, row: np.ndarray) -> None:
    print(f"{name:<46}" + " ".join(f"{value:>8.3g}" for value in row), flush=True)


def trial(
    urdf: str,
    frame: str,
    effects: dict[str, Any],
    rotor: float,
    mass: float,
    seed: int,
    *,
    compensated: bool = False,
    **options: Any,
) -> dict[str, float]:
    """The columns and their values."""
    values = {**COMMON, **effects, "seed": seed, "driver.gains.rotor_inertia": (rotor,)}
    values["bridge.compensated"] = compensated
    run = PayloadTrial(urdf, from_flat(TrialConfig, values), frame, **options)
    record = run.record
    run.until(TAKEN)
    run.arm.hand.attach(mass, OFFSET, 0.002 * mass * np.eye(3))
    run.until(RELEASED)
    run.arm.hand.attach(0.0, np.zeros(3), np.zeros((3, 3)))
    run.until(END)
    before, taken, held = (TAKEN - 15.0, TAKEN), (TAKEN, TAKEN + 5.0), (TAKEN + 5.0, RELEASED)
    after = (RELEASED + 5.0, END)
    masses = [told for told in record.told if TAKEN < told[0] < RELEASED]
    back = [at for at, told in record.told if at > RELEASED and told == 0.0]
    # The first time at which all of it was told, but for a tenth.
    told = [at for at, value in masses if value > 0.9 * mass]
    columns = {}
    for name, part in (("before", before), ("taken", taken), ("held", held)):
        if name != "taken":
            columns[f"{name}, rms mm"] = 1e3 * record.rms(*part)[1]
        joint, hand = record.largest(*part)
        columns |= {f"{name}, mm": 1e3 * hand, f"{name}, rad": joint}
    return columns | {
        "released, mm": 1e3 * record.largest(RELEASED, RELEASED + 5.0)[1],
        "after, rms mm": 1e3 * record.rms(*after)[1],
        "told after s": told[0] - TAKEN if told else np.nan,
        "back after s": back[0] - RELEASED if back else np.nan,
        "calls": float(len([at for at, _ in record.told if at > TAKEN])),
        "step %": 1e2 * record.step,
        "mass error %": 1e2 * abs(masses[-1][1] / mass - 1.0) if masses else np.nan,
    }


@dataclasses.dataclass(frozen=True)
class TrialConfig:
    """The simulated arm, its driver's gains, its learner and the bridge."""

    simulator: SimulatorConfig = group(SimulatorConfig, inline=True)
    driver: ControlConfig = group(ControlConfig)
    learner: InverseDynamicsConfig = group(InverseDynamicsConfig)
    bridge: PayloadBridgeConfig = group(PayloadBridgeConfig)


@dataclass
class Record:
    """What happened; times in s.

    joint_error: largest of the joints, rad, and hand_error: m, of the links from where they are to
    be, at each `time`. told: the times of accepted calls with the masses (kg). step: the largest
    change of a joint's effort by one of them, as a share of its limit.
    """

    time: list[float] = field(default_factory=list)
    joint_error: list[float] = field(default_factory=list)
    hand_error: list[float] = field(default_factory=list)
    told: list[tuple[float, float]] = field(default_factory=list)
    step: float = 0.0

    def rms(self, begin: float, end: float) -> tuple[float, float]:
        """Root mean squares of joint and hand errors within a stretch of time."""
        first, last = np.searchsorted(self.time, (begin, end))
        joint, hand = (
            float(np.sqrt(np.mean(np.square(one[first:last]))))
            for one in (self.joint_error, self.hand_error)
        )
        return joint, hand

    def largest(self, begin: float, end: float) -> tuple[float, float]:
        """The largest joint and hand errors within a stretch of time."""
        first, last = np.searchsorted(self.time, (begin, end))
        return max(self.joint_error[first:last]), max(self.hand_error[first:last])


class PayloadTrial:
    """The arm as it goes on in time; `arm.hand` may take and release bodies meanwhile.

    Parameters
    ----------
    urdf: text or file of the arm. config: its configuration. frame: the flange. bridged: whether
    the bridge is there. weight_only: whether the driver leaves out the load's inertia. excluded:
    whether the efforts reported are without the driver's part; None: as `bridge.compensated` says.

    Raises RobotModelError, ConfigurationError, MissingExtraError.
    """

    def __init__(
        self,
        urdf: str,
        config: TrialConfig,
        frame: str,
        *,
        bridged: bool = True,
        weight_only: bool = False,
        excluded: bool | None = None,
    ) -> None:
        config = replace(config, control="effort", driver__feedforward="urdf")
        self.arm = arm = ArmSimulator(urdf, config.simulator)
        names = arm.joint_names
        model = RobotModel(arm.urdf, config.learner.robot, joints=names, target="effort")
        self.learner = InverseDynamicsLearner(model, config.learner)
        self._frame = LoadFrame(arm.urdf, names, frame)
        bridge = replace(config.bridge, tool_mass=0.0)
        self.bridge = PayloadBridge(self._frame, bridge) if bridged else None
        self._excluded = config.bridge.compensated if excluded is None else excluded
        self._weight_only = weight_only
        self._motion = motion_of(arm)
        part = SimulatedArm(arm.urdf, names, "", frame).moving_part()
        self._hand = HandKinematics(part, names, frame)
        self._plan = plan_of(model, self._motion, arm.period)
        self._controller = ComputedTorque(model, config.driver)
        self._load = np.zeros(10)  # that the driver compensates, in the flange's frame
        self._added = np.zeros(len(names))  # to the efforts that act now
        self._call: Call | None = None
        self._told: tuple[object, ...] = ()
        self.record = Record()
        self.now = 0.0

    def until(self, end: float) -> None:
        """Go on to the time `end` (s)."""
        arm, plan = self.arm, self._plan
        while self.now < end:
            reading = arm.advance()
            self.now = now = reading.time
            plan.ahead(now)
            point = plan.at(now)
            reported = reading.effort - (self._added if self._excluded else 0.0)
            self._learn(Measurement(START_NS + round(now * 1e9), reading.q, reading.dq, reported))
            self._tell(reading.q)
            effort = self._controller.command(now, reading.q, reading.dq, point)
            limit = self._controller.limit
            total = np.clip(effort + self._compensation(now, reading.q), -limit, limit)
            self._added = total - effort
            arm.command(total)
            self.record.time.append(now)
            self.record.joint_error.append(float(np.max(np.abs(point.q - reading.q_true))))
            self.record.hand_error.append(self._distance(point.q, reading.q_true))

    def _learn(self, measurement: Measurement) -> None:
        """Predict and learn, and publish the payload as the node does."""
        step = self.learner.predict(measurement)
        if step is None or step.y is None:
            return
        self.learner.update(self.learner.admit(step))
        monitor = self.learner.changes
        if self.bridge is None or monitor is None:
            return
        found = monitor.correction.estimating
        estimating = found is not None and found.cause == "payload"
        # While it is estimated, twice a second.
        tick = int(2.0 * self.now) if estimating else -1
        said = (monitor.correction, monitor.correction.name, estimating, tick)
        if said == self._told:
            return
        self._told, held = said, monitor.payload
        parameters = np.zeros(10) if held is None else held.parameters
        std = 0.0 if held is None else held.mass_std
        self.bridge.estimated(self.now, monitor.causes.link, parameters, std)

    def _tell(self, q: Array) -> None:
        """Make the bridge's calls, which the driver answers a little later."""
        if self.bridge is None:
            return
        if self._call is not None and self.now >= self._call.sent + ANSWER_S:
            change = self._effort(self._call.parameters - self._load, q)
            share = float(np.max(np.abs(change) / self._frame.limits))
            self.record.step = max(self.record.step, share)
            self._load = self._call.parameters
            self.record.told.append((self.now, self._call.load.mass))
            self.bridge.answered(self.now, self._call, True)
            self._call = None
        monitor = self.learner.changes
        if self.bridge.release_due(self.now) and monitor is not None:
            monitor.recall(BARE)
            self.bridge.release_answered(True)
        call = self.bridge.advance(self.now)
        self._call = self._call if call is None else call

    def _compensation(self, now: float, q: Array) -> Array:
        """(n_joints,) N m for the load that was told, in the desired motion."""
        if self._weight_only or not self._load.any():
            return self._effort(self._load, q)
        return self._effort(self._load, *(part[0] for part in self._motion(np.array([now]))))

    def _effort(self, load: Array, *state: Array) -> Array:
        """(n_joints,) N m of a load (10,) at q, dq and ddq, or at rest at q."""
        first, still = 10 * self._frame.body, np.zeros(len(state[0]))
        q, dq, ddq = state if len(state) == 3 else (state[0], still, still)
        columns = self.learner.model.inertial_regressor(q, dq, ddq)[:, first : first + 10]
        return columns @ self._frame.in_body(load)

    def _distance(self, desired: Array, actual: Array) -> float:
        """Metres between where the flange is to be and where it is."""
        return float(np.linalg.norm(self._hand.position(desired) - self._hand.position(actual)))


if __name__ == "__main__":
    main()
