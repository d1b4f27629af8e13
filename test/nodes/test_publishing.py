"""A publisher whose network refuses, and whoever subscribes to it."""

from __future__ import annotations

import time
from collections import Counter

import pytest
import rclpy
from rclpy.node import Node
from std_msgs.msg import Int32

from semiparam_dynamics.base.nodes import managed
from semiparam_dynamics.base.nodes.managed import ASKED_PERIOD, UNSENT, Outlet


def test_what_the_network_refuses_is_dropped_and_counted(ros_environment, monkeypatch):
    rclpy.init()
    try:
        node, unsent = Node("tested"), Counter()
        outlet = Outlet(node, Int32, "numbers", 5, unsent)
        heard: list[int] = []
        node.create_subscription(Int32, "numbers", lambda message: heard.append(message.data), 5)

        def refuse(message):
            raise RuntimeError("Failed to publish: cannot publish data")

        while not outlet.has_subscribers():
            rclpy.spin_once(node, timeout_sec=0.05)
        with monkeypatch.context() as broken:
            broken.setattr(outlet._publisher, "publish", refuse)
            outlet.publish(Int32(data=1))
            outlet.publish(Int32(data=2))
        assert unsent == {UNSENT: 2}
        outlet.publish(Int32(data=3))
        while not heard:
            rclpy.spin_once(node, timeout_sec=0.05)
        assert heard == [3] and unsent == {UNSENT: 2}
        with pytest.raises(TypeError):
            outlet.publish("no message")  # a mistake is none of the network's
    finally:
        rclpy.try_shutdown()
    time.sleep(ASKED_PERIOD)
    assert not outlet.has_subscribers()
    outlet.publish(Int32(data=4))  # at the end of the process: to nobody


def test_who_subscribes_is_asked_once_in_a_while(ros_environment, monkeypatch):
    rclpy.init()
    try:
        node, now, subscribers, asked = Node("tested"), 100.0, 0, 0

        def count() -> int:
            nonlocal asked
            asked += 1
            return subscribers

        monkeypatch.setattr(managed.time, "monotonic", lambda: now)
        outlet = Outlet(node, Int32, "numbers", 5, Counter())
        monkeypatch.setattr(outlet._publisher, "get_subscription_count", count)
        assert not outlet.has_subscribers()
        subscribers = 1
        assert not outlet.has_subscribers() and asked == 1
        now += 0.9 * ASKED_PERIOD
        assert not outlet.has_subscribers() and asked == 1
        now += 0.2 * ASKED_PERIOD
        assert outlet.has_subscribers() and asked == 2
        subscribers = 0
        now += 1.1 * ASKED_PERIOD
        assert not outlet.has_subscribers() and asked == 3
    finally:
        rclpy.try_shutdown()
