"""The `arm_simulator` node: a simulated arm with the topics of a real one."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import rclpy
from geometry_msgs.msg import WrenchStamped
from rclpy.executors import Executor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.base.nodes import parameters, runtime
from semiparam_dynamics.base.nodes.managed import DEPTH, LATCHED
from semiparam_dynamics.base.nodes.messages import joint_state_message, wrench_message
from semiparam_dynamics.samples.joint_names import JointMatcher
from semiparam_dynamics.simulation.arm import ArmSimulator
from semiparam_dynamics.simulation.config import ArmSimulatorNodeConfig

WARNING_PERIOD_S = 10.0


class ArmSimulatorNode(Node):  # type: ignore[misc]
    """Publishes `joint_states`, `wrench` and `robot_description` of a simulated arm.

    With ``control: effort`` it is moved by the efforts on `effort_command` (JointState).
    Stamps are simulated time, counted from the node's clock at the start.
    """

    def __init__(self) -> None:
        super().__init__("arm_simulator")
        config = parameters.declare(self, ArmSimulatorNodeConfig)
        self._config = config
        self._arm = ArmSimulator(config.urdf, config.simulator)
        self._joint_states = self.create_publisher(JointState, "joint_states", DEPTH)
        # A robot may carry no six-axis sensor.
        self._wrench = (
            self.create_publisher(WrenchStamped, "wrench", DEPTH)
            if self._arm.sensor_frame
            else None
        )
        self._description = self.create_publisher(String, "robot_description", LATCHED)
        self._description.publish(String(data=self._arm.urdf))
        self._start = 0
        self._commanded = config.simulator.control == "effort"
        self._matcher = JointMatcher(self._arm.joint_names)
        if self._commanded:
            self.create_subscription(JointState, "effort_command", self._command, DEPTH)

    def simulate(self, executor: Executor) -> int:
        """Simulate and publish in step with the wall clock until shutdown; the exit code."""
        wanted = self._config.wait_for_subscribers
        runtime.await_subscribers(self, executor, {self._joint_states: wanted})
        if self._wrench is not None:
            # No controller listens to it, and no learner of efforts. Who does so is known by now.
            wanted = min(wanted, self.count_subscribers(self._wrench.topic_name))
            runtime.await_subscribers(self, executor, {self._wrench: wanted})
        motion = self._config.simulator.motion.motion
        self.get_logger().info(f"{motion} with {', '.join(self._arm.joint_names)}")
        rate = self._config.simulator.rate * self._config.real_time_factor
        pacer = runtime.Pacer(1.0 / rate)
        reported, given_up = time.monotonic(), 0.0
        self._start = self.get_clock().now().nanoseconds
        while rclpy.ok():
            executor.spin_once(timeout_sec=0)
            delay = pacer.delay(now := time.monotonic())
            if delay > 0:
                self._wait(executor, min(delay, runtime.IDLE_WAIT))
                continue
            self._step()
            pacer.stepped()
            if pacer.given_up > given_up and now - reported > WARNING_PERIOD_S:
                slower = (pacer.given_up - given_up) / (now - reported)
                self.get_logger().warning(
                    f"this machine can't keep up: the simulation runs {100 * slower:.0f} % slower "
                    "than configured; no reading is left out"
                )
                reported, given_up = now, pacer.given_up
        return 0

    def _wait(self, executor: Executor, seconds: float) -> None:
        if self._commanded:
            executor.spin_once(timeout_sec=seconds)  # receives commands at once
        else:
            time.sleep(seconds)

    def _command(self, message: JointState) -> None:
        try:
            if not self._matcher.match(message.name) or len(message.effort) != len(message.name):
                raise SampleError(self._matcher.detail or "a command needs an effort for each name")
            self._arm.command(np.array(self._matcher.pick(message.effort)))
        except SampleError as error:
            self.get_logger().warning(
                f"command refused: {error}", throttle_duration_sec=WARNING_PERIOD_S
            )

    def _step(self) -> None:
        reading = self._arm.advance()
        stamp = self._start + round(reading.time * 1e9)
        names = self._arm.joint_names
        self._joint_states.publish(
            joint_state_message(stamp, names, reading.q, reading.dq, reading.effort)
        )
        if self._wrench is not None:
            self._wrench.publish(wrench_message(stamp, self._arm.sensor_frame, reading.wrench))


main = partial(runtime.run, "arm_simulator", ArmSimulatorNode, ArmSimulatorNode.simulate)
