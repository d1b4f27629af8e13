"""The recognition node over DDS: taught, asked, killed and started again."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.msg import Transition
from rcl_interfaces.srv import GetParameters
from std_msgs.msg import Float32, Float32MultiArray, String
from std_srvs.srv import SetBool, Trigger

from .conftest import TIMEOUT

NODE = "/object_recognition"
OK, WARN = b"\x00", b"\x01"
D = 40
CENTRES = dict(zip(("mug", "book", "red ball"), np.eye(3, D) + 0.2, strict=True))
RIGHT = {name: [name] * 5 for name in CENTRES}


class Stage:
    """Shows feature vectors to the node, names them, and hears what it says."""

    def __init__(self, peer: Any) -> None:
        self.peer = peer
        self.rng = np.random.default_rng(0)
        self.frames = peer.node.create_publisher(Float32MultiArray, "features", 10)
        self.label = peer.node.create_publisher(String, "label", 10)
        self.edits = peer.node.create_publisher(String, f"{NODE}/edit", 10)
        self.heard = peer.listen(String, f"{NODE}/label")
        self.scores = peer.listen(Float32MultiArray, f"{NODE}/scores")
        self.confidence = peer.listen(Float32, f"{NODE}/confidence")

    def connect(self) -> None:
        """Show things until the node is heard by all, and all of them are answered."""
        self.peer.meet(NODE, self.frames, self.label, self.edits)
        heard = (self.heard, self.scores, self.confidence)
        before = [len(one) for one in heard]

        def all_heard() -> bool:
            # Again and again: one that was killed may still be among those that are connected.
            self.show(np.ones(D))
            self.peer.spin(0.05)
            return all(len(one) > k for one, k in zip(heard, before, strict=True))

        self.peer.until(all_heard, "an answer")
        self.peer.flush(NODE)
        self.peer.fresh(self.all_answered, "an answer to all that was shown")
        self.peer.fresh()  # the answers came before it

    def all_answered(self) -> bool:
        figures = self.peer.figures()
        left_out = sum(int(v) for k, v in figures.items() if k.startswith("refused: "))
        done = int(figures["frames recognised"]) + int(figures["frames dropped"]) + left_out
        return int(figures["frames seen"]) == done

    def say(self, text: str) -> None:
        self.label.publish(String(data=text))
        self.peer.flush(NODE)

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
        self.say(name)
        for _ in range(times):
            self.answer(self.view(name))
        self.say("")

    def asked(self) -> dict[str, list[str]]:
        return {name: [self.answer(self.view(name)) for _ in range(5)] for name in CENTRES}

    def figure(self, key: str) -> str:
        return self.peer.figures().get(key, "")

    def until(self, key: str, value: str) -> None:
        self.peer.until(lambda: self.figure(key) == value, f"{key} of {value}")


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
    stage.until("examples", "36")
    stage.until("changes not saved", "0")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(TIMEOUT)

    process = start("object_recognition", **given)
    stage.connect()
    assert stage.asked() == RIGHT
    assert [dim.label for dim in stage.scores[-1].layout.dim] == sorted(CENTRES)
    np.testing.assert_allclose(np.sum(stage.scores[-1].data), 1.0, rtol=1e-6)
    peer.until(
        lambda: stage.confidence[-1].data == max(stage.scores[-1].data),
        "the last frame's confidence",
    )
    stage.until("examples", "36")
    assert stage.figure("object: mug").startswith("10 learned")

    def told() -> bool:
        stage.answer(stage.view("mug"))  # silence would be a reason for a warning
        return peer.status.level == OK and "3 objects in 36 examples" in peer.status.message

    peer.until(told, "the number of objects")
    assert process.stop() == 0


def test_services_edits_and_live_parameters(peer, start, stage, tmp_path):
    path = tmp_path / "folder" / "objects.npz"
    start(
        "object_recognition",
        input="features",
        smoothing__frames=1,
        model_file=path,
        autosave="false",
    )
    stage.connect()
    refused = peer.call(Trigger, f"{NODE}/save")
    assert not refused.success and "nothing was taught" in refused.message
    for name in CENTRES:
        stage.teach(name)
    assert not path.exists()
    assert "3 objects in 36 examples" in peer.call(Trigger, f"{NODE}/save").message

    assert peer.call(SetBool, f"{NODE}/learn", SetBool.Request(data=False)).success
    stage.teach("mug")
    stage.until("frames not learned, learning switched off", "12")
    stage.edits.publish(String(data="rename red ball -> ball"))
    stage.until("last edit", "'red ball' is called 'ball' now")
    assert stage.answer(stage.view("red ball")) == "ball"
    assert peer.call(Trigger, f"{NODE}/forget").message == "'mug' is forgotten"
    assert not peer.call(Trigger, f"{NODE}/forget").success
    stage.until("objects", "2")
    assert peer.call(Trigger, f"{NODE}/load").success
    assert stage.asked() == RIGHT

    assert peer.set_live(NODE, threshold=1, choose_recoding=False, recoding=0.25).successful
    assert stage.answer(stage.view("mug")) == "unknown"
    stage.until("recoding exponent", "0.25")
    refused = peer.set_live(NODE, threshold=0.0, recoding=1.5)
    assert not refused.successful and "recoding" in refused.reason
    assert not peer.set_live(NODE, max_inputs=3).successful
    assert stage.answer(stage.view("mug")) == "unknown"
    names = GetParameters.Request(names=["threshold", "recoding"])
    values = peer.call(GetParameters, f"{NODE}/get_parameters", names).values
    assert [value.double_value for value in values] == [1.0, 0.25]

    assert peer.call(Trigger, f"{NODE}/reset").success
    stage.until("objects", "0")
    assert stage.answer(np.ones(D + 1)) == "unknown"  # any length will do again


def test_lifecycle(peer, start, stage, tmp_path):
    path = tmp_path / "objects.npz"
    process = start("object_recognition", input="features", autostart="false", model_file=path)
    warned = (DiagnosticStatus.WARN, "the node is unconfigured")
    peer.fresh(lambda: (peer.status.level, peer.status.message) == warned, "a warning")
    refused = peer.call(Trigger, f"{NODE}/save")
    assert not refused.success and "unconfigured" in refused.message
    assert peer.transition(Transition.TRANSITION_CONFIGURE, NODE)
    assert peer.transition(Transition.TRANSITION_ACTIVATE, NODE)
    stage.connect()
    stage.say("mug")
    for _ in range(3):
        stage.answer(stage.view("mug"))
    assert peer.transition(Transition.TRANSITION_DEACTIVATE, NODE)
    assert path.exists()  # also what was just being taught
    peer.until(lambda: stage.frames.get_subscription_count() == 0, "the unsubscription")
    assert peer.transition(Transition.TRANSITION_ACTIVATE, NODE)
    stage.connect()
    stage.until("label", "")  # who knows what is in view now
    assert stage.answer(stage.view("mug")) == "mug"
    stage.until("examples", "3")
    assert peer.transition(Transition.TRANSITION_DEACTIVATE, NODE)
    assert peer.transition(Transition.TRANSITION_CLEANUP, NODE)
    assert not peer.call(Trigger, f"{NODE}/forget").success
    assert process.stop() == 0
    assert "Traceback" not in (tmp_path / "object_recognition.log").read_text()
