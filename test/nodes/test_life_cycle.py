"""The learner node's states in any order, in two namespaces, and its end by a signal."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import GetState
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image, JointState
from std_srvs.srv import Trigger

from .conftest import TIMEOUT, page_port
from .forks import Fork, ForkedNode

NODE = "/inverse_dynamics"
TRANSITIONS = int(os.environ.get("SEMIPARAM_TRANSITIONS", "24"))
# What each transition leads to, from the states in which it is allowed.
STEPS = {
    Transition.TRANSITION_CONFIGURE: {"unconfigured": "inactive"},
    Transition.TRANSITION_ACTIVATE: {"inactive": "active"},
    Transition.TRANSITION_DEACTIVATE: {"active": "inactive"},
    Transition.TRANSITION_CLEANUP: {"inactive": "unconfigured"},
}


def test_transitions_in_any_order(peer, start, urdf, make_arm, tmp_path):
    process = start(
        "inverse_dynamics", urdf=urdf, autostart="false", model_file=tmp_path / "arm.npz"
    )
    assert not peer.call(Trigger, f"{NODE}/reset").success
    predicted = peer.listen(JointState, f"{NODE}/predicted")
    arm, rng, state, handles = make_arm(peer), random.Random(25), "unconfigured", []
    for k in range(TRANSITIONS):
        step = rng.choice(list(STEPS))
        wanted = STEPS[step].get(state)
        done = peer.transition(step)
        assert done == (wanted is not None), f"step {k}"
        state = wanted or state
        assert peer.call(GetState, f"{NODE}/get_state").current_state.label == state
        if state == "active" and done:
            known = len(predicted)
            arm.connect()
            arm.move(10)
            peer.until(lambda known=known: len(predicted) > known, "predictions")
        elif state == "inactive" and arm.sent:
            gone = arm.publisher.get_subscription_count
            peer.until(lambda gone=gone: gone() == 0, "the unsubscription")
        elif state == "unconfigured" and done:
            handles.append(len(os.listdir(f"/proc/{process.pid}/fd")))
    assert len(handles) > 2 and handles[-1] <= handles[1]  # none is left open
    # The last sample of each move waits for the next message, the first ones start the filters.
    assert process.stop() == 0
    with np.load(tmp_path / "arm.npz") as saved:
        assert saved["counts"][0] > 0
    assert "Traceback" not in (tmp_path / "inverse_dynamics.log").read_text()


def test_one_name_in_two_namespaces(peer, ros_environment, urdf, make_arm, tmp_path):
    heard: dict[str, int] = {}

    def note(message: DiagnosticArray) -> None:
        values = {pair.key: pair.value for pair in message.status[0].values}
        heard[message.status[0].name] = int(values.get("samples learned", -1))

    peer.node.create_subscription(DiagnosticArray, "/diagnostics", note, 10)
    started = []
    try:
        for side in ("left", "right"):
            given = {"urdf": urdf, "model_file": tmp_path / f"{side}.npz"}
            log = tmp_path / f"{side}.log"
            started.append(ForkedNode("inverse_dynamics", given, log, namespace=side))
        arm = make_arm(peer)
        best_effort = QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)
        arm.publisher = peer.node.create_publisher(JointState, "/left/joint_states", best_effort)
        both = {"left/inverse_dynamics", "right/inverse_dynamics"}
        peer.until(lambda: set(heard) == both, "both nodes")
        peer.until(lambda: arm.publisher.get_subscription_count() > 0, "the left node")

        def learned() -> bool:
            arm.move(1)
            return heard["left/inverse_dynamics"] >= 30

        peer.until(learned, "what the left arm did")
        del heard["right/inverse_dynamics"]
        peer.until(lambda: set(heard) == both, "what the right one says after it")
        assert heard["right/inverse_dynamics"] == 0
    finally:
        codes = [process.stop() for process in started]
    assert codes == [0, 0]
    assert (tmp_path / "left.npz").exists() and not (tmp_path / "right.npz").exists()


def test_a_signal_ends_it_and_what_was_learned_is_saved(peer, start, urdf, connect, tmp_path):
    """SIGTERM; SIGINT is what all others end with."""
    path: Path = tmp_path / "arm.npz"
    process = start("inverse_dynamics", urdf=urdf, model_file=path)
    predicted = peer.listen(JointState, f"{NODE}/predicted")
    arm = connect()
    arm.move(50)
    peer.until(lambda: len(predicted) >= 48, "predictions")
    process.signal(signal.SIGTERM)
    for _ in range(200):  # messages go on
        arm.publisher.publish(arm.message())
        peer.spin(0.001)
    assert process.wait(TIMEOUT) == 0
    with np.load(path) as saved:
        assert saved["counts"][0] >= 48
    told = (tmp_path / "inverse_dynamics.log").read_text()
    assert "Traceback" not in told and f"samples to {path}" in told


@pytest.mark.parametrize("name", ["inverse_dynamics", "objects_page"])
def test_a_node_that_has_ended_is_gone_for_all_others(
    peer, start, urdf, tmp_path, name: str
) -> None:
    """Else what is sent to it, for 20 s more, counts as received."""
    kind, topic, parameters = {
        "inverse_dynamics": (JointState, "joint_states", {"urdf": urdf}),
        "objects_page": (Image, "image", {"port": 0}),
    }[name]
    publisher = peer.node.create_publisher(kind, topic, 1)
    node = start(name, **parameters)
    if name == "objects_page":  # it subscribes while it is made, and is made when its page is there
        page_port(tmp_path / f"{name}.log")
    peer.until(lambda: publisher.get_subscription_count() == 1, "the node")
    over = threading.Event()

    def send() -> None:
        while not over.wait(0.001):
            publisher.publish(kind())

    sending = threading.Thread(target=send)
    sending.start()
    peer.spin(0.5)
    code = node.stop()
    over.set()
    sending.join()
    assert code == 0
    ended = time.monotonic()
    peer.until(lambda: publisher.get_subscription_count() == 0, "its end")
    assert time.monotonic() - ended < 15.0  # others that miss a process give it 20 s


MAKING = """
import sys, time
from semiparam_dynamics.base.nodes import live_server
from semiparam_dynamics.recognition.nodes import objects_page

class Server(live_server.LiveServer):
    def __init__(self, *given):
        super().__init__(*given)
        time.sleep(600)
live_server.LiveServer = Server
sys.exit(objects_page.main())
"""


def test_what_is_interrupted_while_it_is_made_is_gone_as_well(peer, tmp_path) -> None:
    publisher = peer.node.create_publisher(Image, "image", 1)
    command = [sys.executable, "-c", MAKING, "--ros-args", "-p", "port:=0"]
    process = Fork(command, str(tmp_path / "log"))
    try:
        peer.until(lambda: publisher.get_subscription_count() == 1, "half a node")
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 0
    finally:
        process.send_signal(signal.SIGKILL)
    ended = time.monotonic()
    peer.until(lambda: publisher.get_subscription_count() == 0, "its end")
    assert time.monotonic() - ended < 15.0
