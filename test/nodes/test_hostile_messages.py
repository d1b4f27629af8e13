"""No message names a file, and none takes more memory than it brought."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from types import SimpleNamespace as Fields
from typing import Any

import numpy as np
import pytest
from std_msgs.msg import Float32MultiArray, MultiArrayLayout, String
from std_srvs.srv import Trigger

from semiparam_dynamics.base.parameters import parameters, replace
from semiparam_dynamics.control.config import TrajectoryEffortsNodeConfig
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.nodes.session import Session
from semiparam_dynamics.recognition.config import ImageSourceNodeConfig, ObjectRecognitionNodeConfig
from semiparam_dynamics.recognition.nodes.recognition_session import RecognitionSession
from semiparam_dynamics.simulation.config import ArmSimulatorNodeConfig

from .conftest import take

CONFIGS = (
    ArmSimulatorNodeConfig,
    ImageSourceNodeConfig,
    InverseDynamicsNodeConfig,
    ObjectRecognitionNodeConfig,
    TrajectoryEffortsNodeConfig,
)
PATHS = {"urdf", "model_file", "backbone.file", "source"}
LABELS = ("../../escaped", "/etc/escaped", "mug/../../escaped", "~/escaped", "con.npz")
UNPRINTABLE = ("mug\n../escaped", "mug\rx", "\x1b[2J")


def files(folder: Path) -> set[str]:
    """All files below a folder, but for logs and locks."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    found = {name for name in found if not name.endswith((".log", ".lock"))}
    return {name for name in found if not name.startswith("ros_log")}


def test_what_names_files_can_be_set_at_the_start_only() -> None:
    found = set()
    for config in CONFIGS:
        for entry in parameters(config):
            words = entry.description.replace(",", " ").split()
            if entry.type is str and {"file", "folder"} & set(words):
                found.add(entry.name)
                assert not entry.live, entry.name
    assert found == PATHS


def test_an_object_is_called_anything_and_no_file_is(peer, start, tmp_path) -> None:
    model_file, node = tmp_path / "robot" / "objects.npz", "/object_recognition"
    start("object_recognition", input="features", model_file=model_file)
    frames = peer.node.create_publisher(Float32MultiArray, "features", 10)
    says = peer.node.create_publisher(String, "label", 10)
    edits = peer.node.create_publisher(String, f"{node}/edit", 10)
    heard = peer.listen(String, f"{node}/label")
    peer.meet(node, frames, says, edits)
    rng = np.random.default_rng(0)
    for label in (*LABELS, *UNPRINTABLE):
        says.publish(String(data=label))
        peer.flush(node)
        for count in range(len(heard), len(heard) + 3):
            frames.publish(Float32MultiArray(data=rng.normal(size=8).tolist()))
            peer.until(lambda count=count: len(heard) > count, "an answer")
        says.publish(String(data=""))
        peer.flush(node)
    edits.publish(String(data="rename ../../escaped -> ../escaped too"))
    edits.publish(String(data="merge /etc/escaped -> ~/escaped"))
    answer = peer.call(Trigger, f"{node}/save")
    assert answer.success, answer.message
    assert f"{len(LABELS) - 1} objects" in answer.message
    kept = {"robot/objects.npz", "robot/objects.previous.npz"}
    assert files(tmp_path) <= kept and "robot/objects.npz" in files(tmp_path)
    assert not list(tmp_path.parent.glob("escaped*"))


def allocated(act: Any) -> int:
    """The bytes that a call had in use at most, beyond those before it."""
    act()  # what is imported or compiled at the first call doesn't count
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def recognition(kind: str) -> RecognitionSession:
    config = replace(ObjectRecognitionNodeConfig(), input=kind)
    return RecognitionSession(config, lambda recognition: None)


def test_long_feature_vectors_are_refused_before_anything_is_made_of_them() -> None:
    session = recognition("features")
    message = Float32MultiArray(data=np.ones(4_000_000, np.float32).tolist())

    def show() -> None:
        session.frame(message)
        session.drain()

    # An array of it would be 16 MB; a thread of a test before this one may allocate beside it.
    assert allocated(show) < 1_000_000
    assert session.refusals.counts["feature vector's length"] == 2
    message.layout = MultiArrayLayout(data_offset=4_000_000_000)
    assert allocated(show) < 100_000


@pytest.mark.parametrize(
    ("height", "width", "step"),
    [(2**32 - 1, 2**32 - 1, 2**32 - 1), (2**31, 1, 3), (1, 2**31, 3 * 2**31), (1000, 1000, 3000)],
)
def test_an_image_that_says_it_is_large_is_refused_before_anything_is_made_of_it(
    height: int, width: int, step: int
) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra 'vision'")
    session = recognition("image")
    message = Fields(
        data=np.zeros(3000, np.uint8), height=height, width=width, encoding="rgb8", step=step
    )

    def show() -> None:
        session.frame(message)
        session.drain()

    assert allocated(show) < 100_000
    assert session.recognized == 0 and sum(session.refusals.counts.values()) == 2


def test_a_million_joints_are_refused_before_anything_is_made_of_them(urdf) -> None:
    session = Session(str(urdf), InverseDynamicsNodeConfig())
    names = [*session.model.joint_names, *(f"../{k}" for k in range(10**6))]
    values = np.zeros(len(names))
    header = Fields(stamp=Fields(sec=1, nanosec=0), frame_id="")
    message = Fields(header=header, name=names, position=values, velocity=values, effort=values)

    def tell() -> None:
        assert take(session, message) == []

    assert allocated(tell) < 100_000
    assert session.dropped() == {"too many joints": 2}
