"""The recognition node over DDS: taught, asked, killed and started again."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from std_msgs.msg import Float32MultiArray, String

NODE = "/object_recognition"
D = 40
CENTRES = dict(zip(("mug", "book", "red ball"), np.eye(3, D) + 0.2, strict=True))


class Stage:
    """Shows feature vectors to the node, names them, and hears what it says."""

    def __init__(self, peer) -> None:
        self.peer = peer
        self.rng = np.random.default_rng(0)
        self.frames = peer.node.create_publisher(Float32MultiArray, "features", 10)
        self.label = peer.node.create_publisher(String, "label", 10)
        self.heard = peer.listen(String, f"{NODE}/label")
        self.scores = peer.listen(Float32MultiArray, f"{NODE}/scores")

    def connect(self) -> None:
        publishers = (self.frames, self.label)
        self.peer.until(lambda: all(p.get_subscription_count() for p in publishers), "the node")
        before = len(self.heard)
        while len(self.heard) == before:  # it subscribes some time before it publishes to all
            self.show(np.ones(D))
            self.peer.spin(0.05)
        self.peer.spin(0.2)

    def name(self, text: str) -> None:
        self.label.publish(String(data=text))
        self.peer.spin(0.05)

    def show(self, vector: np.ndarray) -> None:
        self.frames.publish(Float32MultiArray(data=vector.astype(float).tolist()))

    def answer(self, vector: np.ndarray) -> str:
        """What the node says to one frame."""
        before = len(self.heard)
        self.show(vector)
        self.peer.until(lambda: len(self.heard) > before, "an answer")
        return self.heard[-1].data

    def view(self, name: str) -> np.ndarray:
        return CENTRES[name] + self.rng.normal(scale=0.1, size=D)

    def teach(self, name: str, times: int = 12) -> None:
        self.name(name)
        for _ in range(times):
            self.answer(self.view(name))
        self.name("")

    def asked(self) -> dict[str, list[str]]:
        return {name: [self.answer(self.view(name)) for _ in range(5)] for name in CENTRES}


RIGHT = {name: [name] * 5 for name in CENTRES}


def figure(peer, key: str) -> str:
    return peer.figures().get(key, "")


@pytest.fixture
def stage(peer) -> Stage:
    return Stage(peer)


def test_three_objects_are_still_known_after_a_kill(peer, start, stage, tmp_path):
    given = {"input": "features", "smoothing__frames": 1, "model_file": tmp_path / "objects.npz"}
    process = start("object_recognition", **given)
    stage.connect()
    assert {message.data for message in stage.heard} == {"unknown"}
    for name in CENTRES:
        stage.teach(name)
    assert stage.asked() == RIGHT
    peer.until(lambda: figure(peer, "examples") == "36", "36 examples")
    peer.until(lambda: figure(peer, "changes not saved") == "0", "the save")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)

    peer.until(lambda: stage.frames.get_subscription_count() == 0, "the end of the node")
    start("object_recognition", **given)
    stage.connect()
    assert stage.asked() == RIGHT
    assert [dim.label for dim in stage.scores[-1].layout.dim] == sorted(CENTRES)
    np.testing.assert_allclose(np.sum(stage.scores[-1].data), 1.0, rtol=1e-6)
