"""The `trajectory_efforts` node: fills efforts into trajectories on their way to a controller.

Each trajectory is held back until the learner has answered on `inverse_dynamics/desired` about its
points, but not for longer than `timeout`, and then is sent on as it was, with the efforts to feed
forward. Where there are none to trust it is sent on without.
"""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from rclpy.timer import Timer
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from semiparam_dynamics.base.arrays import SECOND, TIMINGS, Array
from semiparam_dynamics.base.errors import ConfigurationError, SampleError, SemiparamError
from semiparam_dynamics.base.nodes import runtime
from semiparam_dynamics.base.nodes.diagnostics import timing_values
from semiparam_dynamics.base.nodes.managed import UNSENT, DescribedNode, Outlet
from semiparam_dynamics.base.nodes.messages import (
    MOST_POINTS,
    STATE,
    desired_message,
    duration,
    efforts,
    rows_of,
    stamp_of,
)
from semiparam_dynamics.control.config import TrajectoryEffortsNodeConfig
from semiparam_dynamics.control.nodes.computed_torque import ANSWERS, LEARNER, check_gravity
from semiparam_dynamics.control.plan import Answer
from semiparam_dynamics.control.trajectory_efforts import (
    TrajectoryEfforts,
    Waypoints,
    resampled,
    states_at,
)
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import UrdfTree, locked_positions, parse_urdf, read_urdf
from semiparam_dynamics.samples.joint_names import FIRST_SECONDS, joint_positions

CONTROLLER = "joint_trajectory_controller/joint_trajectory"
QUEUE = QoSProfile(depth=10)  # reliable, as the controller itself subscribes
MOST_WAITING = 20  # trajectories
REASONS = 30  # counted one by one
WARNING_PERIOD_S = 5.0
AGAIN_S = 0.02  # until a trajectory that the network refused is sent again
NOT_SENT = "not sent on: it has positions, velocities or accelerations that are not finite"
NO_URDF = "the robot's URDF has not come on robot_description"
NO_LEARNER = "nobody answers on '{}': the learner needs the parameter feedforward: true"
LATE = "the learner did not answer in time; its diagnostics show whether it refused the question"
CROWDED = "many came before the learner answered"


@dataclass(slots=True)
class Waiting:
    """A trajectory that is held back, its question, and what was answered of it.

    stamp: ns, of the question. came: s, of a clock that never goes back. rule: that of its joints.
    done: with or without efforts it need not wait any more.
    """

    message: JointTrajectory
    stamp: int
    came: float
    rule: TrajectoryEfforts | None = None
    points: Waypoints | None = None
    answers: dict[str, Array] = field(default_factory=dict)
    done: bool = False


class TrajectoryEffortsNode(DescribedNode):
    """Subscribes `~/joint_trajectory`, publishes to the controller; see the module."""

    def __init__(self) -> None:
        super().__init__("trajectory_efforts", TrajectoryEffortsNodeConfig)
        check_gravity(self._config.gravity_vector)
        self._urdf = ""
        self._tree: UrdfTree | None = None
        self._published: dict[str, float] = {}  # where the URDF's joints stood at first, rad or m
        self._stood_at = 0.0  # s, when the first joint state came
        self._states: Subscription | None = None
        self._rule: TrajectoryEfforts | None = None  # of the last trajectory's joints
        self._waiting: deque[Waiting] = deque()  # in the order of their coming
        self._timer: Timer | None = None
        self._last_stamp = 0
        self._wrong = NO_URDF  # with the last trajectory
        self._sent = self._filled = 0
        self._reasons = self.unsent
        self._logged: dict[str, float] = {}  # when each of them was last, s
        self._held_us: deque[float] = deque(maxlen=TIMINGS)
        self._controller = Outlet(self, JointTrajectory, CONTROLLER, QUEUE, self._reasons)
        topic = f"{LEARNER}/desired"
        self._desired = Outlet(self, JointTrajectory, topic, QUEUE, self._reasons)
        self.await_urdf()
        for end in ("", "_std"):
            take: Callable[[JointTrajectory], None] = partial(self._answered, end)
            topic = f"{LEARNER}/{ANSWERS[self._config.efforts.feedforward]}{end}"
            self.create_subscription(JointTrajectory, topic, take, QUEUE)
        self.create_subscription(JointTrajectory, "~/joint_trajectory", self._received, QUEUE)
        if self._config.efforts.gravity == "exclude":
            qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
            self._states = self.create_subscription(JointState, "joint_states", self._stand, qos)

    def refuse(self, problem: str) -> None:
        """Note why a URDF does not serve: trajectories are sent on without efforts."""
        self.problem = problem
        self._tell(problem)

    def set_up(self, urdf: str) -> None:
        """Make the rule of a URDF."""
        text = read_urdf(urdf)
        self._tree, self._urdf = parse_urdf(text), text
        self._make_rule(self._config.joints)
        self._wrong = ""

    def _stand(self, message: JointState) -> None:
        """Keep where joints stand first: those that are not learned are there, as the learner's."""
        if self._tree is None:
            return
        now = time.monotonic()
        self._stood_at = self._stood_at or now
        self._published = joint_positions(message, self._tree.joints) | self._published
        over = self._published.keys() >= set(self._tree.actuated())
        if self._states is not None and (over or now - self._stood_at > FIRST_SECONDS):
            self.destroy_subscription(self._states)
            self._states = None

    def _make_rule(self, joints: Sequence[str]) -> TrajectoryEfforts:
        config, tree = self._config, self._known_tree()
        learned = [name for name in joints or tree.actuated() if name in tree.joints]
        model = RobotModel(
            self._urdf,
            joints=tuple(joints),
            target="effort",
            gravity=config.gravity_vector,
            locked=locked_positions(tree, learned, self._published),
        )
        self._rule = TrajectoryEfforts(model, config.efforts)
        gravity = "without gravity's" if config.efforts.gravity == "exclude" else "with gravity's"
        self.get_logger().info(f"efforts {gravity} for {', '.join(model.joint_names)}")
        return self._rule

    def _known_tree(self) -> UrdfTree:
        if self._tree is None:
            raise ConfigurationError(self.problem or NO_URDF)
        return self._tree

    def _rule_of(self, names: Sequence[str]) -> TrajectoryEfforts:
        """The rule of a trajectory of the joints `names`.

        Unless the parameter `joints` is set, they may be some of the URDF's: a gripper's fingers
        are neither in the arm's trajectories nor learned. Raises SampleError where there is none.
        """
        if self._rule is None:
            raise SampleError(self.problem or NO_URDF)
        tree, model = self._known_tree(), self._rule.model
        joints = tuple(name for name in tree.actuated() if name in names)
        if self._config.joints or not joints or len(joints) < len(names):
            joints = model.joint_names
        locked = locked_positions(tree, joints, self._published)
        if joints == model.joint_names and locked == model.locked:
            return self._rule
        try:
            return self._make_rule(joints)
        except SemiparamError as error:
            raise SampleError(str(error)) from None

    def _received(self, message: JointTrajectory) -> None:
        if not is_finite(message):
            self._tell(NOT_SENT)  # not every controller looks
            return
        for point in message.points:
            point.effort = []
        self._last_stamp = max(self._last_stamp + 1, time.time_ns())
        waiting = Waiting(message, self._last_stamp, time.monotonic())
        self._waiting.append(waiting)
        try:
            self._ask(waiting)
        except SampleError as error:
            self._give_up(waiting, str(error))
        while sum(not one.done for one in self._waiting) > MOST_WAITING:
            self._give_up(next(one for one in self._waiting if not one.done), CROWDED)
        self._send()

    def _ask(self, waiting: Waiting) -> None:
        """Ask the learner about a trajectory. Raises SampleError where that makes no sense."""
        waiting.rule = rule = self._rule_of(waiting.message.joint_names)
        names = rule.model.joint_names
        points = waypoints(waiting.message, names)
        waiting.points = resampled(points, self._config.efforts.period, MOST_POINTS)
        states = states_at(waiting.points)
        if not self._desired.has_subscribers():
            raise SampleError(NO_LEARNER.format(self.resolve_topic_name(f"{LEARNER}/desired")))
        # The order of the points counts for the learner, not their times.
        self._desired.publish(desired_message(waiting.stamp, names, states, 0.0))

    def _answered(self, end: str, message: JointTrajectory) -> None:
        """Receive efforts or their standard deviations; both together are an answer."""
        stamp = stamp_of(message)
        waiting = next((w for w in self._waiting if w.stamp == stamp and not w.done), None)
        if waiting is None:
            return  # to another's question, or too late
        assert waiting.rule is not None and waiting.points is not None  # noqa: S101
        names, points = waiting.rule.model.joint_names, waiting.points
        try:
            waiting.answers[end] = efforts(message, names)
            if len(waiting.answers) < 2:
                return
            answer = Answer(waiting.answers[""], waiting.answers["_std"])
            values, told = waiting.rule(points.q, answer)
        except SampleError as error:
            self._give_up(waiting, f"the learner's answer doesn't fit: {error}")
        else:
            fill_efforts(waiting.message, names, points, values)
            waiting.done = True
            self._filled += 1
            self._held_us.append(1e6 * (time.monotonic() - waiting.came))
            self._wrong = ""
            if told:
                self._tell(told)
        self._send()

    def _give_up(self, waiting: Waiting, reason: str) -> None:
        waiting.done = True
        self._tell(f"no efforts: {reason}")

    def _send(self) -> None:
        """Send on, in order, what need not wait; set a timer for what waits."""
        if self._timer is not None:
            self.destroy_timer(self._timer)
            self._timer = None
        while self._waiting:
            first = self._waiting[0]
            left = first.came + self._config.timeout - time.monotonic()
            if not first.done and left > 0.0:
                self._timer = self.create_timer(left, self._send, clock=self.steady)
                return
            if not first.done:
                self._give_up(first, LATE)
            if not self._controller.publish(first.message):  # it may be the one that stops the arm
                self._tell(UNSENT)
                self._timer = self.create_timer(AGAIN_S, self._send, clock=self.steady)
                return
            self._waiting.popleft()
            self._sent += 1

    def _tell(self, problem: str) -> None:
        self._wrong = problem
        if problem not in self._reasons and len(self._reasons) >= REASONS:
            problem = "other reasons"
        self._reasons[problem] += 1
        now = time.monotonic()
        # Each reason for itself, and of what is withheld each: the sender's robot does not move.
        if problem == NOT_SENT or now - self._logged.get(problem, -np.inf) >= WARNING_PERIOD_S:
            self._logged[problem] = now
            self.get_logger().warning(self._wrong)

    def report(self) -> tuple[bytes, str, dict[str, str]]:
        """Counts, and what the last trajectory lacked."""
        values = {"sent on": str(self._sent), "with efforts": str(self._filled)}
        values |= {reason: str(count) for reason, count in sorted(self._reasons.items())}
        values |= timing_values({"held back": self._held_us})
        level = DiagnosticStatus.WARN if self._wrong else DiagnosticStatus.OK
        summary = self._wrong or f"{self._filled} of {self._sent} trajectories with efforts"
        return level, summary, values


# -------------------------------------------------------------------------------------------------
# Trajectories as messages.


def waypoints(message: JointTrajectory, names: Sequence[str]) -> Waypoints:
    """The points of a trajectory of the joints `names`, in any order, and of no others.

    Raises SampleError as `messages.rows_of`, and where the points make no motion.
    """
    q, dq, ddq = (rows_of(message, names, field, optional=field != STATE[0]) for field in STATE)
    if len(message.joint_names) > len(names):
        raise SampleError(f"there are joints other than {', '.join(names)}")
    starts = [point.time_from_start for point in message.points]
    times = [start.sec * SECOND + start.nanosec for start in starts]
    return Waypoints(np.array(times, dtype=np.int64), q, dq, ddq)


def is_finite(message: JointTrajectory) -> bool:
    """Return whether all positions, velocities and accelerations are finite numbers."""
    rows = (getattr(point, field) for point in message.points for field in STATE)
    return all(bool(np.isfinite(row).all()) for row in rows)


def fill_efforts(
    message: JointTrajectory, names: Sequence[str], points: Waypoints, efforts: Array
) -> None:
    """Give a trajectory the efforts (k, n_joints) of the joints `names` at k points.

    Where `points` are more than its own they take their place.
    """
    order = [list(names).index(name) for name in message.joint_names]
    if len(points.times) != len(message.points):
        message.points = [
            JointTrajectoryPoint(
                **{
                    name: array("d", row[order].tobytes())
                    for name, row in zip(STATE, rows, strict=True)
                    if not np.isnan(row).any()
                },
                time_from_start=duration(int(time)),
            )
            for time, *rows in zip(points.times, points.q, points.dq, points.ddq, strict=True)
        ]
    for point, row in zip(message.points, efforts, strict=True):
        point.effort = array("d", row[order].tobytes())


main = partial(runtime.run, "trajectory_efforts", TrajectoryEffortsNode, runtime.spin_node)
