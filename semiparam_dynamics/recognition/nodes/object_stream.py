"""The `object_stream` node: shows pictures of objects as a camera and a teacher would."""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Sequence

import numpy as np
import rclpy
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import Image
from std_msgs.msg import Float32MultiArray, String

from semiparam_dynamics.base.nodes import parameters, runtime
from semiparam_dynamics.base.nodes.messages import header
from semiparam_dynamics.base.nodes.pacing import Pacer
from semiparam_dynamics.learner.nodes.config import ObjectStreamNodeConfig
from semiparam_dynamics.recognition.pictures import View, load_objects
from semiparam_dynamics.recognition.script import Show, Showing, Step, default_script, read_script

DEPTH = 10


class ObjectStreamNode(Node):  # type: ignore[misc]
    """Publishes `image` or `features`, the teacher's `label`, and in `truth` what is in view.

    Topics are ordered one by one only: a frame could overtake the label that belongs to it. So
    nothing is in view for `settle` seconds before and after each change of label and truth.
    """

    def __init__(self) -> None:
        super().__init__("object_stream")
        self._config = config = parameters.declare(self, ObjectStreamNodeConfig)
        objects = load_objects(config.source, classes=config.classes, views=config.views)
        if objects.skipped:
            self.get_logger().warning(f"{objects.skipped} file(s) can't be read as pictures")
        hold = config.frames_per_object
        self._steps: Sequence[Step] = (
            read_script(config.script, objects.names)
            if config.script
            else default_script(objects.names, config.frames_taught, hold)
        )
        self._show = Show(objects, hold, config.seed)
        kind, topic = (Float32MultiArray, "features") if objects.features else (Image, "image")
        self._views = self.create_publisher(kind, topic, DEPTH)
        # Whoever comes late is told what is in view; the recognition listens to neither's past.
        latched = QoSProfile(depth=DEPTH, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._label = self.create_publisher(String, "label", latched)
        self._truth = self.create_publisher(String, "truth", latched)
        self._said = ""
        self.get_logger().info(
            f"{len(objects.names)} objects: {', '.join(objects.names[:10])}"
            f"{', ...' if len(objects.names) > 10 else ''}"
        )

    def play(self, executor: Executor) -> int:
        """Go through the script, once or until shutdown; returns the exit code."""
        wanted = self._config.wait_for_subscribers
        runtime.await_subscribers(
            self, executor, {self._label: wanted, self._views: min(1, wanted)}
        )
        while rclpy.ok():
            for showing in self._show.showings(self._steps):
                self._play(executor, showing)
            if not self._config.loop:
                break
        self._announce(executor, "", "")
        runtime.await_delivery(executor, self._views, self._label, self._truth)
        if rclpy.ok():
            self.get_logger().info("the script has ended")
        return 0

    def _play(self, executor: Executor, showing: Showing) -> None:
        self._announce(executor, showing.name if showing.teach else "", showing.name)
        if showing.name and rclpy.ok():
            act = "teaching" if showing.teach else "asking"
            self.get_logger().info(f"{act} {showing.name}, {len(showing.views)} frames")
        pacer = Pacer(1.0 / self._config.rate)
        for view in showing.views:
            runtime.spin_for(executor, pacer.delay(time.monotonic()))
            if not rclpy.ok():
                return
            self._publish(view)
            pacer.stepped()
        runtime.spin_for(executor, showing.pause)

    def _announce(self, executor: Executor, label: str, truth: str) -> None:
        """Say what comes into view; every frame before it has been dealt with, none is under way.

        The last frame of what was in view is done `settle` seconds after it was published, and the
        label is known to all `settle` seconds before the next one.
        """
        runtime.spin_for(executor, self._config.settle)
        if not rclpy.ok():
            return
        if label != self._said:
            self._label.publish(String(data=label))
            self._said = label
        self._truth.publish(String(data=truth))
        runtime.spin_for(executor, self._config.settle)

    def _publish(self, view: View) -> None:
        if view.ndim == 1:
            self._views.publish(Float32MultiArray(data=array("f", view.astype(np.float32))))
            return
        self._views.publish(image_message(view, self.get_clock().now().nanoseconds))


def image_message(picture: View, stamp: int, frame: str = "object_stream") -> Image:
    """A picture, (H, W, 3) or grey (H, W) uint8, with its stamp in nanoseconds."""
    height, width = picture.shape[:2]
    channels = 1 if picture.ndim == 2 else 3
    return Image(
        header=header(stamp, frame),
        height=height,
        width=width,
        encoding="mono8" if channels == 1 else "rgb8",
        is_bigendian=0,
        step=channels * width,
        data=array("B", picture.tobytes()),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node; returns the exit code."""
    return runtime.run(
        "object_stream",
        ObjectStreamNode,
        lambda node, executor: node.play(executor),
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
