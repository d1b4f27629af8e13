"""From measurements and answers to commands and questions; without any ROS."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter, deque

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.control.computed_torque import ComputedTorque
from semiparam_dynamics.control.config import ControlConfig
from semiparam_dynamics.control.plan import Answer, Approach, Block, Plan, Point, Reference
from semiparam_dynamics.dynamics.deviations import RunningSquare
from semiparam_dynamics.parameters import group, parameter
from semiparam_dynamics.robot.model import RobotModel

NANO = 1e-9
PAUSE = 0.5  # s without a measurement after which the motion begins anew, from where the arm is
TRACKING = 10.0  # s over which tracking errors are told
TIMINGS = 2000
OUT_OF_ORDER = "joint states out of order"
NOT_FINITE = "joint states not finite"
RESTARTED = "motion begun anew after a pause"
LOST = "motion begun anew, joints further off than bounds.following_error"
NOT_ASKED = "answers to what was not asked, or too late"


@dataclasses.dataclass(frozen=True)
class SessionConfig:
    """How the desired motion is walked through and the learner is asked."""

    rate: float = parameter(
        500.0,
        "instants of the plan a second: the joint states' rate",
        unit="Hz",
        low=10.0,
        high=5000.0,
    )
    block: int = parameter(10, "instants that the learner is asked about at once", low=1, high=200)
    lead: float = parameter(
        0.03,
        "how long before it begins it is asked about such a block",
        unit="s",
        low=0.0,
        high=1.0,
    )
    delay: float = parameter(
        0.002,
        "after how long a command acts: the feed-forward is that of so much later",
        unit="s",
        low=0.0,
        high=0.1,
    )
    approach_speed: float = parameter(
        0.5,
        "largest joint velocity on the way from where the arm stands to the motion's beginning",
        unit="rad/s",
        low=1e-3,
        high=20.0,
    )
    control: ControlConfig = group(ControlConfig, inline=True)


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """A block of the desired motion that the learner is to be asked about."""

    stamp: int  # ns, of the first instant
    block: Block


class ControlSession:
    """What the controller does with one robot.

    Parameters
    ----------
    model: the URDF's, of joint efforts. reference: the desired motion, from rest.
    config: the configuration.

    Attributes
    ----------
    controller: that makes the commands. plan: of the desired motion, once there was a measurement.
    tracking: running mean square errors (n_joints,) in rad^2 by the feed-forward in use.
    counts: messages that were left out, and why. command_us: how long commands took.
    """

    def __init__(self, model: RobotModel, reference: Reference, config: SessionConfig) -> None:
        self._model, self._reference, self._config = model, reference, config
        self.controller = ComputedTorque(model, config.control)
        self.plan: Plan | None = None
        self.tracking: dict[str, RunningSquare] = {}
        self.counts: Counter[str] = Counter()
        self.command_us: deque[float] = deque(maxlen=TIMINGS)
        self._start = self._last = 0  # ns
        self.asked = self.late = 0  # blocks of plans that were given up

    def configure(self, config: SessionConfig) -> None:
        """Go on with other values of the live parameters."""
        self._config = config
        self.controller.configure(config.control)

    def measured(self, stamp: int, q: Array, dq: Array) -> tuple[Array | None, list[Question]]:
        """Take a measurement; the efforts (n_joints,) in N m for it, and what to ask the learner.

        stamp: ns. q, dq: (n_joints,) rad and rad/s. None where the measurement is left out.
        """
        start = time.perf_counter()
        if not (np.isfinite(q).all() and np.isfinite(dq).all()):
            self.counts[NOT_FINITE] += 1
            return None, []
        step = (stamp - self._last) * NANO
        if self.plan is not None and -PAUSE <= step <= 0.0:
            self.counts[OUT_OF_ORDER] += 1
            return None, []
        if self.plan is None or not 0.0 < step <= PAUSE:
            if self.plan is not None:
                self.counts[RESTARTED] += 1
            self._begin(stamp, q)
            step = 0.0
        self._last = stamp
        blocks, instant, point = self._desired(stamp)
        if (np.abs(point.q - q) > self._config.control.bounds.following_error).any():
            self.counts[LOST] += 1
            self._begin(stamp, q)
            blocks, instant, point = self._desired(stamp)
        effort = self.controller.command(instant, q, dq, point)
        name = self.controller.config.feedforward
        if name not in self.tracking:
            self.tracking[name] = RunningSquare(len(q), TRACKING)
        self.tracking[name].update(point.q - q, step)
        self.command_us.append((time.perf_counter() - start) * 1e6)
        return effort, [Question(self._stamp_of(block), block) for block in blocks]

    def answered(self, stamp: int, values: Array, stds: Array) -> None:
        """Take the learner's answer to the question of that stamp: (k, n_joints) in N m.

        Raises SampleError where it has another size than the question.
        """
        first = round((stamp - self._start) * NANO * self._config.rate)
        if self.plan is None or not self.plan.take(first, Answer(values, stds)):
            self.counts[NOT_ASKED] += 1

    def _desired(self, stamp: int) -> tuple[list[Block], float, Point]:
        """Blocks to be asked about, seconds since the motion began, and what is desired then."""
        assert self.plan is not None  # noqa: S101
        instant = (stamp - self._start) * NANO
        return self.plan.ahead(instant), instant, self.plan.at(instant)

    def _begin(self, stamp: int, q: Array) -> None:
        """Plan the motion anew, from where the arm stands."""
        if self.plan is not None:
            self.asked, self.late = self.blocks()
        config = self._config
        approach = Approach(q.copy(), self._reference, config.approach_speed)
        self._start = stamp
        self.plan = Plan(
            self._model, approach, 1.0 / config.rate, config.block, config.delay, config.lead
        )

    def blocks(self) -> tuple[int, int]:
        """Blocks of the motion that had begun, and those that weren't answered by then."""
        begun, late = (0, 0) if self.plan is None else (self.plan.begun, self.plan.late)
        return self.asked + begun, self.late + late

    def _stamp_of(self, block: Block) -> int:
        return self._start + round(block.first / self._config.rate / NANO)
