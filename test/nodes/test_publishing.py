"""A publisher whose network refuses."""

from __future__ import annotations

from collections import Counter

import pytest
import rclpy
from rclpy.node import Node
from std_msgs.msg import Int32

from semiparam_dynamics.nodes.managed import UNSENT, Outlet


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
    assert not outlet.has_subscribers()
    outlet.publish(Int32(data=4))  # at the end of the process: to nobody
