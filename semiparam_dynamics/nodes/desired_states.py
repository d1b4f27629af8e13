"""The learner's answers to a controller that asks about desired states."""

from __future__ import annotations

import time
from collections import Counter, deque

from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile
from trajectory_msgs.msg import JointTrajectory

from semiparam_dynamics.dynamics.desired_states import learner_feedforward
from semiparam_dynamics.errors import ConfigurationError, SampleError
from semiparam_dynamics.nodes.diagnostics import timing_values
from semiparam_dynamics.nodes.messages import stamp_of
from semiparam_dynamics.nodes.publishing import Outlet
from semiparam_dynamics.nodes.session import TIMINGS, Session
from semiparam_dynamics.nodes.trajectory_messages import desired_states, effort_message

DEPTH = 50
TOPICS = {"semiparametric": "~/feedforward", "rigid_body": "~/feedforward_rigid_body"}


class DesiredStates:
    """Answers `~/desired` on `~/feedforward` and `~/feedforward_rigid_body`.

    Each has beside it a topic with `_std` at its end: the standard deviations, as efforts. An
    answer has the question's stamp and times; only what somebody subscribes to is published.
    Learning waits for the answer, as for a prediction; nothing that is learned changes by it.
    `lost` counts what the network did not take.
    Raises ConfigurationError where the session's target is the wrench.
    """

    def __init__(self, node: LifecycleNode, session: Session, lost: Counter[str]) -> None:
        if session.model.config.target != "effort":
            raise ConfigurationError("feedforward needs the target 'effort'")
        self._node, self._session = node, session
        self._outlets = {
            model: [Outlet(node, JointTrajectory, topic + end, DEPTH, lost) for end in ("", "_std")]
            for model, topic in TOPICS.items()
        }
        self._subscription = node.create_subscription(
            JointTrajectory, "~/desired", self._answer, QoSProfile(depth=DEPTH)
        )
        self._answered = 0
        self._refused: Counter[str] = Counter()
        self._us: deque[float] = deque(maxlen=TIMINGS)

    def _answer(self, message: JointTrajectory) -> None:
        start = time.perf_counter()
        session, names = self._session, self._session.model.joint_names
        session.backlog.interrupted()
        try:
            states = desired_states(message, names)
        except SampleError as error:
            self._refused[str(error)] += 1
            if len(self._refused) > DEPTH:  # whoever sends nonsense shall not fill the memory
                self._refused = Counter({"several reasons": self._refused.total()})
            return
        said, stamp = learner_feedforward(session.learner, *states), stamp_of(message)
        for model, outlets in self._outlets.items():
            both = (said.values[model], said.stds[model])
            for outlet, values in zip(outlets, both, strict=True):
                if outlet.heard():
                    outlet.publish(effort_message(stamp, names, values, message))
        self._answered += 1
        self._us.append((time.perf_counter() - start) * 1e6)

    def values(self) -> dict[str, str]:
        """Counts and timings, for the diagnostics."""
        values = {"desired answered": str(self._answered)}
        values |= {f"desired refused: {why}": str(n) for why, n in sorted(self._refused.items())}
        return values | timing_values({"answer": self._us})

    def destroy(self) -> None:
        """Take the topics down."""
        self._node.destroy_subscription(self._subscription)
        for outlets in self._outlets.values():
            for outlet in outlets:
                outlet.destroy()
