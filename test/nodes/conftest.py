"""Real nodes in processes of their own, and a peer that talks to them over DDS.

A machine ten times as slow, or busy with something else, must pass these tests: what they wait for
is a fact and no time. Before anything is sent that must not get lost, `Peer.meet` waits until both
sides know each other; `Peer.fresh` waits for figures of what was sent before; limits of time are
only reached when something is broken.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.robot.model import RobotModel

try:
    import rclpy
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
    from lifecycle_msgs.srv import ChangeState
    from rcl_interfaces.srv import GetParameters, SetParametersAtomically
    from rclpy.context import Context
    from rclpy.parameter import Parameter
    from rclpy.publisher import Publisher
    from rclpy.qos import QoSProfile
    from rclpy.subscription import Subscription
    from sensor_msgs.msg import JointState

    from semiparam_dynamics.base.nodes.messages import joint_state_message, stamp_of
    from semiparam_dynamics.base.nodes.processes import NodeProcess
    from semiparam_dynamics.base.nodes.runtime import make_executor
    from semiparam_dynamics.base.parameters import replace
    from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
    from semiparam_dynamics.learner.learner import Step
    from semiparam_dynamics.learner.nodes import session as session_module
    from semiparam_dynamics.learner.nodes.session import Session

    from .driver_messages import driver_messages, message_folder  # noqa: F401 # fixtures
    from .forks import ForkedNode, once_for_each_kind
except ImportError:  # no ROS 2 here: neither the extra 'ros' nor an installation
    collect_ignore_glob = ["test_*.py"]

TIMEOUT = 120.0  # s: only reached when something is broken
AGAIN = 1.0  # s after which a question that changes nothing is asked again
# On a slow machine, too, the learner answers every message and learns every sample.
PATIENT = {"learning_share": 1.0, "learning_queue": 10_000, "deadline": 10.0}

URDF = """<robot name="two_links">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.1 0 0.02"/><mass value="2.0"/>
    <inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0.15 0.01 0"/><mass value="1.0"/>
    <inertia ixx="0.005" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="100" velocity="10"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
    <origin xyz="0.3 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="100" velocity="10"/></joint>
</robot>"""


def take(session: Session, message: Any) -> list[Step]:
    """Predict and learn what a JointState or WrenchStamped completes, as the node does."""
    steps = []
    for step in (session.wrench if hasattr(message, "wrench") else session.joint_state)(message):
        steps.append(step)
        session.learn(step)
    return steps


def moving(count: int, step: float = 0.01) -> list[JointState]:
    """Messages 10 ms apart of the two links in slow motion, which goes on by `step` each time."""
    return [moved(k, step) for k in range(count)]


def moved(k: int, step: float = 0.01) -> JointState:
    """The k-th of them."""
    q = np.sin(0.3 + step * k * np.array([2.0, 3.1]))
    stamp = 1_000_000_000 + 10_000_000 * k
    return joint_state_message(stamp, ("shoulder", "elbow"), q, 0.1 * q, 5.0 * q)


class Peer:
    """A node of the test's own, with its own context, and what it heard."""

    def __init__(self) -> None:
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node("peer", context=self.context)
        # SingleThreadedExecutor takes five times as long to find that there is nothing to do.
        self._executor = make_executor(self.context)
        self._executor.add_node(self.node)
        self.status: DiagnosticStatus | None = None
        self._askers: dict[str, Any] = {}
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._diagnosed, 10)

    def _diagnosed(self, message: DiagnosticArray) -> None:
        self.status = message.status[0]

    def figures(self) -> dict[str, str]:
        """The node's last diagnostics by name."""
        return {pair.key: pair.value for pair in self.status.values} if self.status else {}

    def listen(self, kind: type, topic: str) -> list[Any]:
        """A list that fills with the topic's messages."""
        heard: list[Any] = []
        self.node.create_subscription(kind, topic, heard.append, QoSProfile(depth=1000))
        return heard

    def meet(self, node: str, *ends: Publisher | Subscription) -> None:
        """Wait until a node knows all that this peer has made, and the peer the others of `ends`.

        Both sides of a topic find each other at times of their own: what is sent before is lost.
        But each finds all that the other made in its order, so a node that answers on a service
        knows what was made before the client.
        """
        self.until(lambda: all(map(_others, ends)), f"others of {len(ends)} topics of {node}")
        client = self.node.create_client(GetParameters, f"{node}/get_parameters")
        self._ask(client, GetParameters.Request(), AGAIN)
        self.node.destroy_client(client)

    def flush(self, node: str) -> None:
        """Wait until a node has taken what was published to it: a question comes after that."""
        if node not in self._askers:
            self._askers[node] = self.node.create_client(GetParameters, f"{node}/get_parameters")
        self._ask(self._askers[node], GetParameters.Request(), AGAIN)

    def fresh(self, enough: Callable[[], bool] = lambda: True, what: str = "diagnostics") -> None:
        """Wait for diagnostics that were made from now on, and for `enough` to hold of them."""
        for _ in range(2):  # one may be on its way
            before = self.status
            self.until(lambda last=before: self.status is not last, "diagnostics")
        self.until(enough, what)

    def spin(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=left)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Spin until the condition holds; fail, saying what was awaited, if it never does."""
        end = time.monotonic() + TIMEOUT
        while not condition():
            if time.monotonic() > end:
                pytest.fail(f"waited {TIMEOUT:g} s for {what}; diagnostics: {self.status}")
            self._executor.spin_once(timeout_sec=0.02)

    def call(self, kind: type, service: str, request: Any = None, again: float = TIMEOUT) -> Any:
        """Call a service and return its response.

        again: s after which it is asked again: a node that was killed may still be there for the
        network, and take the first request.
        """
        client = self.node.create_client(kind, service)
        self.meet(service.rpartition("/")[0])
        response = self._ask(client, request or kind.Request(), again)
        self.node.destroy_client(client)
        return response

    def _ask(self, client: Any, request: Any, again: float) -> Any:
        self.until(client.service_is_ready, f"the service {client.srv_name}")
        asked: list[tuple[float, Any]] = []

        def answered() -> bool:
            if not asked or time.monotonic() > asked[-1][0] + again:
                asked.append((time.monotonic(), client.call_async(request)))
            return any(future.done() for _, future in asked)

        self.until(answered, f"an answer of {client.srv_name}")
        return next(future for _, future in asked if future.done()).result()

    def transition(self, identifier: int, node: str = "/inverse_dynamics") -> bool:
        """Ask for a change of the node's lifecycle state; whether it was made."""
        change = ChangeState.Request()
        change.transition.id = identifier
        return bool(self.call(ChangeState, f"{node}/change_state", change).success)

    def set_live(self, node: str, **values: object) -> Any:
        """Set the node's parameters together; `values` with ``__`` for the dot."""
        given = [Parameter(k.replace("__", "."), value=v) for k, v in values.items()]
        request = SetParametersAtomically.Request(parameters=[p.to_parameter_msg() for p in given])
        service = f"{node}/set_parameters_atomically"
        return self.call(SetParametersAtomically, service, request).result

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self.context)


def _others(end: Publisher | Subscription) -> int:
    """How many others a topic's end is connected with."""
    if isinstance(end, Publisher):
        return int(end.get_subscription_count())
    return int(end.get_publisher_count())


def page_port(log: Path) -> int:
    """The port that a page's node has found, started with port 0; its log says it.

    A port that the test has found free could be another's by the time the node wants it.
    """
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        if log.exists() and (found := re.search(r"open http://[\d.]+:(\d+)/", log.read_text())):
            return int(found[1])
        time.sleep(0.01)
    pytest.fail(f"waited {TIMEOUT:g} s for the address of a page in {log}")


class Arm:
    """Publishes the joint states of a two-link arm that obeys its URDF exactly."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._model = RobotModel(URDF, viscous=False, coulomb=False, offset=False)
        self.publisher = peer.node.create_publisher(JointState, "joint_states", 1000)
        self.stamps: list[int] = []
        self.sent = 0

    def message(self) -> JointState:
        """The next instant's joint state, 10 ms after the one before."""
        self.sent += 1
        t = 0.01 * self.sent
        w = np.array([2.0, 3.1])
        q, dq, ddq = np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)
        effort = self._model.inverse_dynamics(q, dq, ddq)
        stamp = round((100.0 + t) * 1e9)
        return joint_state_message(stamp, self._model.joint_names, q, dq, effort)

    def connect(self, node: str = "/inverse_dynamics") -> None:
        """Wait until the learner and this publisher know of each other."""
        self._peer.meet(node, self.publisher)

    def move(self, samples: int) -> None:
        """Publish so many instants, 2 ms apart."""
        for _ in range(samples):
            message = self.message()
            self.stamps.append(stamp_of(message))
            self.publisher.publish(message)
            self._peer.spin(0.002)


@pytest.fixture(autouse=True, scope="session")
def warmed_up_once() -> Iterator[None]:
    """A session's first motion, by which all is compiled, is most of what making one costs here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_module, "warm_up", once_for_each_kind(session_module.warm_up))
        yield


@pytest.fixture
def peer(ros_environment: dict[str, str]) -> Iterator[Peer]:
    made = Peer()
    yield made
    made.close()


@pytest.fixture
def start(ros_environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., NodeProcess]]:
    """A function that starts a node; all end with the test."""
    started: list[NodeProcess] = []

    def start(name: str, params_file: Path | None = None, **parameters: object) -> NodeProcess:
        if name == "inverse_dynamics":
            parameters = PATIENT | parameters
        dotted = {key.replace("__", "."): value for key, value in parameters.items()}
        log = tmp_path / f"{name}.log"
        started.append(ForkedNode(name, dotted, log, params_file))
        return started[-1]

    yield start
    for process in started:
        process.stop()


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    path = tmp_path / "two_links.urdf"
    path.write_text(URDF)
    return path


@pytest.fixture
def make_arm() -> type[Arm]:
    return Arm


@pytest.fixture
def connect(peer: Peer) -> Callable[[], Arm]:
    """A function that makes an arm which the learner listens to."""

    def connect() -> Arm:
        arm = Arm(peer)
        arm.connect()
        return arm

    return connect


@pytest.fixture
def make_session(urdf: Path) -> Iterator[Callable[..., Session]]:
    """A function that makes a session with the parameters given; all are finished at the end."""
    made: list[Session] = []

    def make(**changes: object) -> Session:
        config = replace(InverseDynamicsNodeConfig(), **(PATIENT | changes))
        made.append(Session(str(urdf), config))
        return made[-1]

    yield make
    for session in made:
        session.finish()
