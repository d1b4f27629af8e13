"""Publishers and subscriptions through DDS; the learner in every executor."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Int32, String

from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.base.nodes import managed
from semiparam_dynamics.base.nodes.diagnostics import LastingWarnings
from semiparam_dynamics.base.nodes.managed import (
    ASKED_PERIOD,
    LATCHED,
    LATE,
    NO_TEXT,
    OTHERS,
    UNSENT,
    ManagedNode,
    MonitoredSubscription,
    Outlet,
    QueueDelay,
    await_description,
)
from semiparam_dynamics.learner.nodes.inverse_dynamics import InverseDynamicsNode

QUEUE = QoSProfile(depth=100)
LONG = 120.0  # s: only reached when something is broken


def until(condition: Callable[[], Any], executor: Any) -> None:
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        executor.spin_once(timeout_sec=0.02)


@pytest.fixture
def node(ros_environment: dict[str, str]) -> Iterator[Node]:
    rclpy.init()
    yield Node("tested")
    rclpy.try_shutdown()


def publish(node: Node, executor: Any, count: int) -> None:
    publisher = node.create_publisher(Int32, "numbers", QUEUE)
    until(publisher.get_subscription_count, executor)
    for k in range(count):
        publisher.publish(Int32(data=k))


def test_messages_are_answered_in_order_and_a_silent_topic_is_noticed(node: Node) -> None:
    taken: list[int] = []
    topic = MonitoredSubscription(node, "numbers", Int32, lambda m: taken.append(m.data), QUEUE)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    assert "nobody publishes '/numbers'" in topic.problem()
    publish(node, executor, 50)
    until(lambda: len(taken) == 50, executor)
    assert taken == list(range(50)) and topic.problem() == ""
    topic.problem()
    assert topic.problem() == "no message on '/numbers' for 2 s"
    topic.destroy()


def test_a_description_without_a_text_is_refused_and_another_one_told_of(
    node: Node, capfd: pytest.CaptureFixture[str]
) -> None:
    tried: list[str] = []
    refused: list[str] = []

    def set_up(urdf: str) -> None:
        tried.append(urdf)
        if "bad" in urdf:
            raise RobotModelError("it does not serve")

    await_description(node, "", set_up, refused.append)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    publisher = node.create_publisher(String, "robot_description", LATCHED)
    until(publisher.get_subscription_count, executor)
    flushed: list[int] = []
    node.create_subscription(Int32, "flush", lambda m: flushed.append(m.data), QUEUE)
    flush = node.create_publisher(Int32, "flush", QUEUE)
    until(flush.get_subscription_count, executor)

    def send(*descriptions: str) -> None:
        for description in descriptions:
            publisher.publish(String(data=description))
            count = len(flushed)
            flush.publish(Int32())
            until(lambda count=count: len(flushed) > count, executor)

    def told() -> int:
        return capfd.readouterr().err.count("another robot_description came; the first one is kept")

    send("", "", "/robot.urdf", "<bad/>", "<bad/>", "package://robot.urdf")
    assert refused == [NO_TEXT, NO_TEXT, "it does not serve", NO_TEXT] and tried == ["<bad/>"]
    send("<good/>", "<good/>")
    assert told() == 0
    send("<other/>", "<good/>", "<other/>")
    assert told() == 1
    send("<third/>", "")
    assert told() == 2 and tried == ["<bad/>", "<good/>"] and len(refused) == 4
    send(*(f"<robot name='{k}'/>" for k in range(30)))
    assert told() == OTHERS - 3


def test_other_topics_are_proposed_and_not_the_nodes_own(node: Node) -> None:
    node.create_publisher(Int32, "~/predicted", QUEUE)
    topic = MonitoredSubscription(node, "numbers", Int32, lambda _: None, QUEUE)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    assert topic.problem().endswith("nor any other topic of type std_msgs/msg/Int32")
    node.create_publisher(Int32, "digits", QUEUE)
    until(lambda: "of type std_msgs/msg/Int32: /digits (remap" in topic.problem(), executor)


class Wrong(ManagedNode):
    """A node that reports what it is told to."""

    said = (DiagnosticStatus.WARN, "")

    def report(self) -> DiagnosticStatus:
        return self.status(*self.said, {})


def test_what_is_wrong_is_logged_once_it_lasts(ros_environment, monkeypatch, capfd) -> None:
    rclpy.init()
    now, node = 0.0, Wrong("wrong")
    monkeypatch.setattr(managed.time, "monotonic", lambda: now)
    for second in range(70):
        now += 1.0
        node.said = (DiagnosticStatus.WARN, f"{second} times in the last second: late")
        if second == 30:
            node.said = (DiagnosticStatus.OK, "fine")
        node._publish_report()
    lines = [line for line in capfd.readouterr().err.splitlines() if "late" in line]
    assert [int(line.split(": ")[1].split()[0]) for line in lines] == [3, 34]
    rclpy.try_shutdown()


def logged(sentences: list[str], monkeypatch) -> list[int]:
    """At which seconds these sentences, one a second, are logged."""
    now, warnings = 100.0, LastingWarnings()
    monkeypatch.setattr(managed.time, "monotonic", lambda: now)
    seconds = []
    for second, sentence in enumerate(sentences):
        if warnings.due(sentence):
            seconds.append(second)
        now += 1.0
    return seconds


def test_numbers_with_a_sign_or_none_at_all_make_no_other_sentence(monkeypatch) -> None:
    values = ["-0.5", "1e-05", "once", "nan", "-inf", "2 times", "3.25", "-7"]
    sentences = [f"late: the effort of elbow is {value}" for value in values] * 9
    assert logged(sentences, monkeypatch) == [3, 63]


def test_a_warning_whose_list_changes_each_second_is_logged_ever_more_rarely(monkeypatch) -> None:
    joints = ["hip", "knee", "elbow", "wrist"]
    sentences = [
        f"{k} times: no effort of {', '.join(joints[: 1 + k % 4])} and {'x' * k}"
        for k in range(150)
    ]
    assert logged(sentences, monkeypatch) == [3, 10, 23, 48, 97]
    # The same few by turns are each logged once a minute at most.
    few = [f"no effort of {joints[k % 4]}" for k in range(60)]
    assert 1 <= len(logged(few, monkeypatch)) <= 4
    assert logged(few, monkeypatch)[0] == 3


def test_what_was_wrong_for_a_moment_beside_a_known_warning_is_not_logged(monkeypatch) -> None:
    waiting, moment, other = "nobody publishes", "messages arrive", "out of order"
    assert logged([waiting] * 20 + [moment] + [""] * 5, monkeypatch) == [3]
    assert logged([waiting] * 20 + [other] * 9, monkeypatch) == [3, 23]
    assert logged([waiting] * 5 + [""] + [waiting] * 5, monkeypatch) == [3, 9]
    assert logged([waiting, ""] * 30, monkeypatch) == []


class InParts(Wrong):
    """A node that notes how far its report is."""

    done = 0

    def report_parts(self):
        for _ in range(3):
            self.done += 1
            yield
        return self.report()


def test_a_report_is_made_in_parts_after_messages_that_come_often(ros_environment) -> None:
    rclpy.init()
    node = InParts("in_parts")
    node._publish_report()  # no message came: at once
    assert node.done == 3
    for _ in range(managed.OFTEN):
        node.continue_report()
    node._publish_report()
    counts = []
    for _ in range(5):
        counts.append(node.done)
        node.continue_report()
    assert counts == [3, 4, 5, 6, 6]
    for _ in range(managed.OFTEN):
        node.continue_report()
    node._publish_report()
    node.continue_report()
    node._publish_report()  # what is left of the last one comes first
    assert node.done == 12
    for _ in range(managed.OFTEN):
        node.continue_report()
    node._publish_report()
    node.drop_report()
    node.continue_report()
    assert node.done == 12
    node._publish_report()
    for _ in range(managed.OFTEN):
        node.continue_report()
    node._publish_report()
    node._publish_report()  # nobody has begun the last one: no second report beside this one
    assert node.done == 18
    rclpy.try_shutdown()


def test_a_callback_may_unsubscribe(node: Node) -> None:
    taken: list[int] = []

    def once(message: Int32) -> None:
        taken.append(message.data)
        topic.destroy()

    topic = MonitoredSubscription(node, "numbers", Int32, once, QUEUE)
    heard: list[int] = []
    node.create_subscription(Int32, "numbers", lambda m: heard.append(m.data), QUEUE)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    publish(node, executor, 5)
    until(lambda: len(heard) == 5, executor)
    assert taken == [0]


def test_messages_that_waited_long_in_dds_are_left_out(node: Node) -> None:
    lost: Counter[str] = Counter()
    taken: list[int] = []

    def slow(message: Int32) -> None:
        time.sleep(0.03)  # the work that makes the others wait
        taken.append(message.data)

    delay = QueueDelay(lost, 0.02, patience=0.1)
    topic = MonitoredSubscription(node, "numbers", Int32, slow, QUEUE, delay)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    publish(node, executor, 40)
    until(lambda: len(taken) + lost[LATE] == 40, executor)
    assert lost[LATE] > 20 and taken == sorted(taken)
    topic.destroy()


def test_where_the_middleware_does_not_say_when_a_message_came_none_is_left_out(node: Node) -> None:
    taken: list[int] = []
    delay = QueueDelay(Counter(), 0.02, patience=0.0)
    topic = MonitoredSubscription(node, "numbers", Int32, taken.append, QUEUE, delay)
    for k in range(10):
        topic._receive_with_info(k, {"received_timestamp": 0})
    assert taken == list(range(10)) and not delay.behind
    topic._receive_with_info(10, {"received_timestamp": time.time_ns() - 10**9})
    assert delay.behind


def test_what_the_network_refuses_is_dropped_and_counted(node: Node, monkeypatch) -> None:
    unsent: Counter[str] = Counter()
    outlet = Outlet(node, Int32, "numbers", 5, unsent)
    heard: list[int] = []
    node.create_subscription(Int32, "numbers", lambda message: heard.append(message.data), 5)
    executor = SingleThreadedExecutor()
    executor.add_node(node)

    def refuse(message: Int32) -> None:
        raise RuntimeError("Failed to publish: cannot publish data")

    until(outlet.has_subscribers, executor)
    with monkeypatch.context() as broken:
        broken.setattr(outlet._publisher, "publish", refuse)
        outlet.publish(Int32(data=1))
        outlet.publish(Int32(data=2))
    assert unsent == {UNSENT: 2}
    outlet.publish(Int32(data=3))
    until(lambda: heard, executor)
    assert heard == [3] and unsent == {UNSENT: 2}
    with pytest.raises(TypeError):
        outlet.publish("no message")  # a mistake is none of the network's
    rclpy.try_shutdown()
    time.sleep(ASKED_PERIOD)
    assert not outlet.has_subscribers()
    outlet.publish(Int32(data=4))  # at the end of the process: to nobody


def test_who_subscribes_is_asked_once_in_a_while(node: Node, monkeypatch) -> None:
    now, subscribers, asked = 100.0, 0, 0

    def count() -> int:
        nonlocal asked
        asked += 1
        return subscribers

    monkeypatch.setattr(managed.time, "monotonic", lambda: now)
    outlet = Outlet(node, Int32, "numbers", 5, Counter())
    monkeypatch.setattr(outlet._publisher, "get_subscription_count", count)
    for passed, there, found, times in (
        (0.0, 0, False, 1),
        (0.0, 1, False, 1),
        (0.9, 1, False, 1),
        (0.2, 1, True, 2),
        (1.1, 0, False, 3),
    ):
        now, subscribers = now + passed * ASKED_PERIOD, there
        assert outlet.has_subscribers() == found and asked == times


@pytest.mark.parametrize(
    ("waits", "left_out"),
    [
        ([0.0] * 300, 0),
        ([0.01, 0.1, 0.1] * 100, 0),  # one that did not wait shows that nothing is behind
        ([0.1] * 100, 0),  # 1 s: not longer than the patience
        ([0.1] * 201, 100),  # then 1 s is left out, and 1 s answered
        ([0.1] * 110 + [0.0] * 50, 9),  # up to the first that did not wait
    ],
)
def test_only_lasting_delay_leaves_messages_out(waits: list[float], left_out: int) -> None:
    now, lost = 0.0, Counter[str]()
    delay = QueueDelay(lost, 0.02, patience=1.0, clock=lambda: now)
    answers = []
    for waited in waits:
        answers.append(not delay.too_late(waited))
        now = round(now + 0.01, 6)
    assert lost[LATE] == len(waits) - sum(answers)
    assert abs(lost[LATE] - left_out) <= 2
    patient = QueueDelay(lost, 0.02, math.inf, clock=lambda: now)
    assert not any(patient.too_late(1e3) for _ in range(1000))
    delay.deadline = 0.2  # a robot that may be answered later leaves nothing out
    assert not any(delay.too_late(0.1) for _ in range(1000))


def events_executor() -> Any:
    experimental = pytest.importorskip("rclpy.experimental")
    return experimental.EventsExecutor()


EXECUTORS: dict[str, Callable[[], Any] | None] = {
    "spin": None,  # rclpy.spin(node)
    "single": SingleThreadedExecutor,
    "multi": lambda: MultiThreadedExecutor(num_threads=3),
    "events": events_executor,
}


def spin(executor: Any, nodes: list[Node]) -> None:
    """Run callbacks until ROS ends."""
    try:
        if executor is None:
            rclpy.spin(nodes[0])
        while executor is not None and rclpy.ok():
            executor.spin_once(timeout_sec=0.1)
    except ExternalShutdownException:
        pass


@pytest.mark.parametrize("name", EXECUTORS)
def test_learns_and_answers_in_every_executor(name, peer, make_arm, urdf: Path) -> None:
    """Two nodes in one process, but where `rclpy.spin` takes one."""
    make = EXECUTORS[name]
    rclpy.init(args=["--ros-args", "-p", f"urdf:={urdf}", "-p", "nystrom.max_centers:=20"])
    spaces = [""] if make is None else ["", "other"]
    nodes = [InverseDynamicsNode(namespace=space) for space in spaces]
    executor = None if make is None else make()
    for one in nodes if executor is not None else ():
        executor.add_node(one)
    thread = Thread(target=spin, args=(executor, nodes))
    try:
        assert all(one.start() for one in nodes)
        heard = peer.listen(JointState, "inverse_dynamics/predicted")
        arm = make_arm(peer)
        if len(nodes) > 1:
            joint_states = nodes[1].create_publisher(JointState, "joint_states", 50)
            peer.node.create_subscription(JointState, "/joint_states", joint_states.publish, 50)
        thread.start()
        arm.connect()
        arm.move(50)

        def learned() -> bool:
            arm.move(1)
            known = [one.session.learner.estimator.n_learned for one in nodes if one.session]
            return len(heard) > 50 and min(known) > 30

        peer.until(learned, "predictions and learning")
    finally:
        rclpy.try_shutdown()
        thread.join(LONG)
        for one in nodes:
            one.destroy_node()
    assert not thread.is_alive()
