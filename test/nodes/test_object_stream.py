"""The stream of objects over DDS: what is published is what the source and the script say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import Image
from std_msgs.msg import Float32MultiArray, String

from semiparam_dynamics.base.nodes import runtime
from semiparam_dynamics.base.nodes.messages import stamp_of
from semiparam_dynamics.recognition.backbone import image_array
from semiparam_dynamics.recognition.nodes.object_stream import ObjectStreamNode
from semiparam_dynamics.recognition.pictures import load_objects

from .conftest import TIMEOUT

FAST = {"rate": 100.0, "settle": 0.05, "wait_for_subscribers": 1}


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """Three objects with eight different vectors each."""
    path = tmp_path / "features.npz"
    X = np.random.default_rng(0).normal(size=(24, 5)).astype(np.float32)
    np.savez(path, X=X, y=np.arange(24) % 3, classes=np.array(["mug", "book", "cup"]))
    return path


def words(messages: list[String]) -> list[str]:
    return [message.data for message in messages]


def test_a_script_of_feature_vectors_in_full(peer, start, features: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.txt"
    script.write_text("teach mug 4\nask mug 6\nteach cup 7\npause 0.1\nask 10\n")
    labels, truths = peer.listen(String, "label"), peer.listen(String, "truth")
    frames = peer.listen(Float32MultiArray, "features")
    process = start("object_stream", source=features, script=script, frames_per_object=3, **FAST)
    peer.until(lambda: len(labels) == 4 and len(frames) == 27, "all labels and frames")
    peer.until(lambda: bool(truths) and not truths[-1].data, "the end")
    assert process.wait(TIMEOUT) == 0

    objects = load_objects(str(features))
    whose = {
        tuple(view.tolist()): (name, kind)
        for kind, views in (("taught", objects.taught), ("asked", objects.asked))
        for name in objects.names
        for view in views[name]
    }
    shown = [whose[tuple(frame.data)] for frame in frames]
    assert shown[:17] == [("mug", "taught")] * 4 + [("mug", "asked")] * 6 + [("cup", "taught")] * 7
    assert Counter(shown[17:]) == {("mug", "asked"): 5, ("cup", "asked"): 5}
    assert words(labels) == ["mug", "", "cup", ""]
    # What is asked stays in view for three frames; in the pause and at the end there is nothing.
    assert words(truths)[:5] == ["mug", "mug", "mug", "cup", ""]
    assert sorted(words(truths)[5:-1]) == ["cup", "cup", "mug", "mug"]
    assert words(truths)[-1] == ""


def test_it_ends_when_all_has_come(ros_environment, features: Path, monkeypatch) -> None:
    awaited: list[str] = []

    def await_delivery(executor, *publishers) -> None:
        awaited.extend(publisher.topic_name for publisher in publishers)

    monkeypatch.setattr(runtime, "await_delivery", await_delivery)
    settings = {"source": features, "classes": 1, "frames_taught": 1, "settle": 0.0, "rate": 1e3}
    given = [word for name, value in settings.items() for word in ("-p", f"{name}:={value}")]
    rclpy.init(args=["--ros-args", *given])
    try:
        node, executor = ObjectStreamNode(), SingleThreadedExecutor()
        executor.add_node(node)
        assert node.play(executor) == 0
    finally:
        rclpy.try_shutdown()
    assert sorted(awaited) == ["/features", "/label", "/truth"]


def test_digits_come_as_grey_images(peer, start) -> None:
    images = peer.listen(Image, "image")
    labels = peer.listen(String, "label")
    start("object_stream", classes=2, views=10, frames_taught=5, frames_per_object=2, **FAST)
    peer.until(lambda: len(images) == 5 + 2 + 5 + 8, "all frames")
    peer.until(lambda: words(labels) == ["zero", "", "one", ""], "the labels")
    objects = load_objects(classes=2, views=10)
    pixels = [image_array(m.data, m.height, m.width, m.encoding, m.step) for m in images]
    assert {m.encoding for m in images} == {"mono8"}
    for seen in pixels:
        assert (seen == seen[:, :, :1]).all()
    taught = {view.tobytes() for view in objects.taught["zero"]}
    assert {np.ascontiguousarray(seen[:, :, 0]).tobytes() for seen in pixels[:5]} == taught
    stamps = [stamp_of(m) for m in images]
    assert stamps == sorted(set(stamps)) and stamps[0] > 0


def test_colours_arrive_as_they_are_and_again_and_again(peer, start, tmp_path: Path) -> None:
    X = np.random.default_rng(0).integers(0, 256, (2, 3, 4, 3), np.uint8)
    np.savez(tmp_path / "a.npz", X=X, y=[0, 0])
    images, labels = peer.listen(Image, "image"), peer.listen(String, "label")
    process = start(
        "object_stream",
        source=tmp_path / "a.npz",
        frames_taught=1,
        frames_per_object=1,
        loop="true",
        **FAST,
    )
    peer.until(lambda: len(images) >= 6 and len(labels) >= 4, "the script's second turn")
    assert process.stop() == 0
    assert words(labels)[:4] == ["0", "", "0", ""]
    for k, message in enumerate(images[:6]):
        assert message.encoding == "rgb8"
        seen = image_array(message.data, 3, 4, message.encoding, message.step)
        np.testing.assert_array_equal(seen, X[min(k % 3, 1)])  # taught once, asked twice
