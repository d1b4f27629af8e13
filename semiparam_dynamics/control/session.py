"""A controller's session: measurements and answers in, commands and questions out; without ROS."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter, deque

import numpy as np

from semiparam_dynamics.base.arrays import NANO, TIMINGS, Array
from semiparam_dynamics.control.computed_torque import ComputedTorque
from semiparam_dynamics.control.config import SessionConfig
from semiparam_dynamics.control.plan import Answer, Approach, Block, Plan, Point, Reference
from semiparam_dynamics.dynamics.deviations import RunningSquare
from semiparam_dynamics.dynamics.gate import plausible_speeds
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import IMPLAUSIBLE

MAX_GAP_S = 0.5  # between measurements; after a longer one the motion restarts where the arm is
TRACKING_HORIZON_S = 10.0  # over which tracking errors are averaged
BEYOND = 1.0  # rad or m beyond its limits, or farther than it can have moved, where no joint is
BLOCK = 10  # instants in one question to the learner
DELAY_S = 0.002  # until a command acts: the feed-forward is of the desired state so much later
APPROACH_SPEED = 0.5  # rad/s, largest of a joint on the way to the motion's beginning
# Counted reasons.
OUT_OF_ORDER = "joint states out of order"
NOT_FINITE = "joint states not finite, or beyond 1e9"
ELSEWHERE = "joint states with positions that the arm can't have: beyond its limits, or a jump"
RESTARTED = "motion restarted after a pause"
LOST = "motion restarted, following error beyond bounds.following_error"
NOT_ASKED = "answers without a question, or too late"


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """A block of the desired motion to ask the learner about."""

    stamp: int  # ns, of the first instant
    block: Block


class ControlSession:
    """The controller of one robot.

    Parameters
    ----------
    model: the URDF's, of joint efforts. reference: the desired motion, from rest.
    config: the configuration.

    Attributes
    ----------
    controller: makes the commands. plan: of the desired motion, after the first measurement.
    tracking: running mean square errors (n_joints,) in rad^2 by the feed-forward in use.
    counts: ignored messages and restarts by reason. command_us: durations of the last commands.
    """

    def __init__(self, model: RobotModel, reference: Reference, config: SessionConfig) -> None:
        self._model, self._reference, self._config = model, reference, config
        self.controller = ComputedTorque(model, config.control)
        self.plan: Plan | None = None
        self.tracking: dict[str, RunningSquare] = {}
        self.counts: Counter[str] = Counter()
        self.command_us: deque[float] = deque(maxlen=TIMINGS)
        self._start = self._last = 0  # ns
        self._begun = self._late = 0  # blocks of earlier plans
        self._speeds = plausible_speeds(model)
        self._q: Array = np.zeros(model.n_joints)  # measured last, of those that were used
        self._jumped: Array | None = None  # where the last measurement was, if it was not

    def configure(self, config: SessionConfig) -> None:
        """Continue with other values of the live parameters."""
        self._config = config
        self.controller.configure(config.control)

    def measured(self, stamp: int, q: Array, dq: Array) -> tuple[Array | None, list[Question]]:
        """Answer a measurement: the efforts (n_joints,) in N m, and questions for the learner.

        stamp: ns. q, dq: (n_joints,) rad and rad/s. No efforts where the measurement is ignored.
        One that shows the arm where it can't be is, since the motion would begin anew from there;
        after a jump that the next one confirms, such as that of a counter of turns, it does.
        """
        start = time.perf_counter()
        if not ((np.abs(q) <= IMPLAUSIBLE).all() and (np.abs(dq) <= IMPLAUSIBLE).all()):
            self.counts[NOT_FINITE] += 1
            return None, []
        step = (stamp - self._last) * NANO
        if self.plan is not None and -MAX_GAP_S <= step <= 0.0:
            self.counts[OUT_OF_ORDER] += 1
            return None, []
        if self.plan is None or not 0.0 < step <= MAX_GAP_S:
            if self._beyond_limits(q):
                self.counts[ELSEWHERE] += 1
                return None, []
            if self.plan is not None:
                self.counts[RESTARTED] += 1
            self._restart(stamp, q)
            step = 0.0
        self._last = stamp
        blocks, instant, point = self._desired(stamp)
        if (np.abs(point.q - q) > self._config.control.bounds.following_error).any():
            if self._beyond_limits(q) or self._jumps(q, step):
                self.counts[ELSEWHERE] += 1
                return None, self._questions(blocks)
            self.counts[LOST] += 1
            self._restart(stamp, q)
            blocks, instant, point = self._desired(stamp)
        self._q, self._jumped = q, None
        effort = self.controller.command(instant, q, dq, point)
        name = self.controller.config.feedforward
        if name not in self.tracking:
            self.tracking[name] = RunningSquare(len(q), TRACKING_HORIZON_S)
        self.tracking[name].update(point.q - q, step)
        self.command_us.append((time.perf_counter() - start) * 1e6)
        return effort, self._questions(blocks)

    def _questions(self, blocks: list[Block]) -> list[Question]:
        return [Question(self._stamp_of(block.first), block) for block in blocks]

    def _beyond_limits(self, q: Array) -> bool:
        lower, upper = self._model.position_limits
        return bool(((q < lower - BEYOND) | (q > upper + BEYOND)).any())

    def _jumps(self, q: Array, step: float) -> bool:
        """Return whether the arm can't have come to q in `step` s, unless it was there before."""
        reach = BEYOND + self._speeds * step
        near = [self._q] if self._jumped is None else [self._q, self._jumped]
        self._jumped = q
        return all(bool((np.abs(q - one) > reach).any()) for one in near)

    def answered(self, stamp: int, values: Array, stds: Array) -> None:
        """Use the learner's answer to the question of that stamp: (k, n_joints) in N m.

        One to a question of before a restart is of another motion, and is not used. Raises
        SampleError where it has another size than the question.
        """
        first = round((stamp - self._start) * NANO * self._config.rate)
        plan = self.plan if stamp == self._stamp_of(first) else None
        if plan is None or not plan.take(first, Answer(values, stds)):
            self.counts[NOT_ASKED] += 1

    def _desired(self, stamp: int) -> tuple[list[Block], float, Point]:
        """Blocks to ask about, seconds since the motion began, and the desired state then."""
        assert self.plan is not None  # noqa: S101
        instant = (stamp - self._start) * NANO
        return self.plan.ahead(instant), instant, self.plan.at(instant)

    def _restart(self, stamp: int, q: Array) -> None:
        """Plan the motion anew, from where the arm is."""
        if self.plan is not None:
            self._begun, self._late = self.blocks()
        config = self._config
        approach = Approach(q.copy(), self._reference, APPROACH_SPEED)
        self._start = stamp
        self.plan = Plan(self._model, approach, 1.0 / config.rate, BLOCK, DELAY_S, config.lead)

    def blocks(self) -> tuple[int, int]:
        """Blocks that have begun since the session did, and those without an answer by then."""
        begun, late = (0, 0) if self.plan is None else (self.plan.begun, self.plan.late)
        return self._begun + begun, self._late + late

    def _stamp_of(self, first: int) -> int:
        """Of the block that begins at this index."""
        return self._start + round(first / self._config.rate / NANO)
