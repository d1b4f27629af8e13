"""The `image_source` node: publishes a camera, a video file or pictures as images.

With pictures in subfolders that name objects it can also publish these names, as a teacher does.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from functools import partial

import rclpy
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Image
from std_msgs.msg import String
from std_srvs.srv import SetBool

from semiparam_dynamics.base.nodes import parameters, runtime
from semiparam_dynamics.base.nodes.messages import header
from semiparam_dynamics.recognition.config import ImageSourceNodeConfig
from semiparam_dynamics.recognition.frames import Picture, open_frames

# Reliable: a subscriber that wants no frame twice subscribes with best effort.
FRAMES = QoSProfile(depth=2)
# s without frames before and after each change of label: a frame of one topic could overtake the
# label on another. The recognition takes less for a frame.
LABEL_PAUSE = 0.15


class ImageSourceNode(Node):  # type: ignore[misc]
    """Publishes `image`, rgb8, at the source's pace, and `label` where it teaches.

    shown: frames published since the source's beginning.
    """

    interruptible = True  # a camera may hang

    def __init__(self) -> None:
        super().__init__("image_source")
        self._config = config = parameters.declare(self, ImageSourceNodeConfig)
        parameters.follow(self, config, lambda _: None)
        self._frames = open_frames(config.source, config.rate, config.longest, config.teach)
        self._images = self.create_publisher(Image, "image", FRAMES)
        self._label = self.create_publisher(String, "label", 10) if config.teach else None
        self._said, self._paused = "", False
        if self._frames.rate:  # a camera goes on
            self.create_service(SetBool, "~/pause", self._pause)
        self.shown = 0
        at = f"{self._frames.rate:.3g} frames a second" if self._frames.rate else "as they come"
        self.get_logger().info(f"frames of {config.source}, {at}")

    def play(self, executor: Executor) -> int:
        """Show the source, once or until shutdown; returns the exit code.

        Raises ConfigurationError where it can no longer be read.
        """
        wanted = self._config.wait_for_subscribers
        listeners = {self._images: wanted}
        if self._label is not None:
            listeners[self._label] = min(1, wanted)
        runtime.await_subscribers(self, executor, listeners)
        teach = self._config.teach
        while rclpy.ok():
            unnamed = (("", picture) for picture in self._frames.once())
            self._show(executor, self._frames.lesson(teach) if teach else unnamed)
            if not self.shown:
                runtime.spin_for(executor, 1.0)  # a file that is being written, for example
            if not self._config.loop:
                runtime.await_delivery(executor, *listeners)
                self.get_logger().info("the source has ended")
                break
            teach = 0  # all is taught
        return 0

    def _show(self, executor: Executor, frames: Iterator[tuple[str, Picture]]) -> None:
        """Publish these frames, each under its label."""
        pacer = runtime.Pacer(1.0 / self._frames.rate) if self._frames.rate else None
        self.shown = 0
        for label, picture in self._held(frames):
            executor.spin_once(timeout_sec=0.0)
            self._say(executor, label)
            runtime.spin_for(executor, pacer.delay(time.monotonic()) if pacer else 0.0)
            if not rclpy.ok():
                return
            now = self.get_clock().now().nanoseconds
            self._images.publish(image_message(picture, now, self._config.frame_id))
            self.shown += 1
            if pacer:
                pacer.stepped()
        self._say(executor, "")

    def _held(self, frames: Iterator[tuple[str, Picture]]) -> Iterator[tuple[str, Picture]]:
        """The frames, one of them again and again, without its label, while the source pauses."""
        for label, picture in frames:
            yield label, picture
            while self._paused:
                yield "", picture

    def _pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._paused = request.data
        response.success = True
        return response

    def _say(self, executor: Executor, label: str) -> None:
        """Publish the label if it is another one, while no frame is on its way."""
        if self._label is None or label == self._said:
            return
        runtime.spin_for(executor, LABEL_PAUSE)
        if rclpy.ok():
            self._label.publish(String(data=label))
            self._said = label
            runtime.spin_for(executor, LABEL_PAUSE)


def image_message(picture: Picture, stamp: int, frame: str = "") -> Image:
    """A picture, (H, W, 3) uint8, with its stamp in nanoseconds."""
    height, width = picture.shape[:2]
    return Image(
        header=header(stamp, frame),
        height=height,
        width=width,
        encoding="rgb8",
        is_bigendian=0,
        step=3 * width,
        data=array("B", picture.tobytes()),
    )


main = partial(runtime.run, "image_source", ImageSourceNode, ImageSourceNode.play)
