"""A simulated arm that picks things up, with a driver that compensates the load it is told.

Arm, driver, learner and bridge run in one process, so that the numbers are the same at every run.
The driver is computed torque by the URDF, to which it adds the efforts of the load it was told, or
of its weight alone. What it reports as efforts is what the motors exert, or, with
`bridge.compensated`, that less what it adds. It answers a call after `ANSWER_S`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.parameters import group, replace
from semiparam_dynamics.changes.config import BARE
from semiparam_dynamics.changes.load import LoadFrame
from semiparam_dynamics.changes.payload_bridge import Call, PayloadBridge, PayloadBridgeConfig
from semiparam_dynamics.control.comparison import APPROACH_SPEED, BLOCK_INSTANTS, START_NS
from semiparam_dynamics.control.computed_torque import ComputedTorque
from semiparam_dynamics.control.config import ControlConfig
from semiparam_dynamics.control.plan import Approach, Plan, trajectory_of
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.simulation.arm import ArmSimulator
from semiparam_dynamics.simulation.config import SimulatorConfig
from semiparam_dynamics.simulation.trajectories import HandKinematics
from semiparam_dynamics.simulation.urdf import SimulatedArm

ANSWER_S = 0.05


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
        simulator = config.simulator
        self.arm = arm = ArmSimulator(urdf, simulator)
        names = arm.joint_names
        model = RobotModel(arm.urdf, config.learner.robot, joints=names, target="effort")
        self.learner = InverseDynamicsLearner(model, config.learner)
        self._frame = LoadFrame(arm.urdf, names, frame)
        bridge = replace(config.bridge, tool_mass=0.0)
        self.bridge = PayloadBridge(self._frame, bridge) if bridged else None
        self._excluded = config.bridge.compensated if excluded is None else excluded
        hand = simulator.hand_frame, simulator.hand_offset
        reference = trajectory_of(arm.urdf, names, simulator.motion, simulator.seed, *hand)
        self._weight_only = weight_only
        self._motion = start = Approach(arm.advance().q_motor, reference, APPROACH_SPEED)
        period = arm.period
        part = SimulatedArm(arm.urdf, names, "", frame).moving_part()
        self._hand = HandKinematics(part, names, frame)
        self._plan = Plan(model, start, period, BLOCK_INSTANTS, period, BLOCK_INSTANTS * period)
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
            self.bridge.answered(self.now, self._call.number, True)
            self._call = None
        monitor = self.learner.changes
        if self.bridge.release_due(self.now) and monitor is not None:
            monitor.recall(BARE)
            self.bridge.release_answered(self.now, self.now, True)
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
        effort: Array = columns @ self._frame.in_body(load)
        return effort

    def _distance(self, desired: Array, actual: Array) -> float:
        """Metres between where the flange is to be and where it is."""
        return float(np.linalg.norm(self._hand.position(desired) - self._hand.position(actual)))
