"""The `image_source` node: publishes a camera, a video file or a folder of pictures as images."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import rclpy
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Image

from semiparam_dynamics.base.nodes import parameters, runtime
from semiparam_dynamics.base.nodes.pacing import Pacer
from semiparam_dynamics.learner.nodes.config import ImageSourceNodeConfig
from semiparam_dynamics.recognition.frames import open_frames
from semiparam_dynamics.recognition.nodes.object_stream import image_message

# Reliable: who wants no frame twice subscribes with best effort.
FRAMES = QoSProfile(depth=2)


class ImageSourceNode(Node):  # type: ignore[misc]
    """Publishes `image`, rgb8, at the source's pace.

    shown: frames published since the source's beginning.
    """

    interruptible = True  # a camera may hang

    def __init__(self) -> None:
        super().__init__("image_source")
        self._config = config = parameters.declare(self, ImageSourceNodeConfig)
        parameters.follow(self, config, lambda _: None)
        self._frames = open_frames(config.source, config.rate, config.longest)
        self._images = self.create_publisher(Image, "image", FRAMES)
        self.shown = 0
        at = f"{self._frames.rate:.3g} frames a second" if self._frames.rate else "as they come"
        self.get_logger().info(f"frames of {config.source}, {at}")

    def play(self, executor: Executor) -> int:
        """Show the source, once or until shutdown; returns the exit code.

        Raises ConfigurationError where it can no longer be read.
        """
        runtime.await_subscribers(self, executor, {self._images: self._config.wait_for_subscribers})
        pacer = Pacer(1.0 / self._frames.rate) if self._frames.rate else None
        while rclpy.ok():
            self.shown = 0
            for picture in self._frames.once():
                executor.spin_once(timeout_sec=0.0)
                runtime.spin_for(executor, pacer.delay(time.monotonic()) if pacer else 0.0)
                if not rclpy.ok():
                    return 0
                now = self.get_clock().now().nanoseconds
                self._images.publish(image_message(picture, now, self._config.frame_id))
                self.shown += 1
                if pacer:
                    pacer.stepped()
            if not self.shown:
                runtime.spin_for(executor, 1.0)  # a file that is being written, say
            if not self._config.loop:
                runtime.await_delivery(executor, self._images)
                self.get_logger().info("the source has ended")
                break
        return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node; returns the exit code."""
    return runtime.run(
        "image_source",
        ImageSourceNode,
        lambda node, executor: node.play(executor),
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
