"""The learner node is killed and started again; its disk fails; two have one model_file."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path

import numpy as np
from lifecycle_msgs.msg import Transition
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from semiparam_dynamics.base.nodes.messages import stamp_of
from semiparam_dynamics.base.storage import previous_of

from .conftest import TIMEOUT
from .forks import ForkedNode

NODE = "/inverse_dynamics"
WARN = b"\x01"


def arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return set(one) == set(other) and all(np.array_equal(one[n], other[n]) for n in one)


def test_a_killed_node_goes_on_with_what_it_had_learned(peer, start, urdf, connect, tmp_path):
    path = tmp_path / "models" / "arm.npz"
    given = {"urdf": urdf, "model_file": path, "save_interval": 0.5, "nystrom__window": 0.1}
    process = start("inverse_dynamics", **given)
    arm = connect()
    arm.move(220)
    figures = peer.figures
    peer.until(lambda: int(figures().get("samples learned", 0)) > 150, "samples learned")

    def settled() -> bool:
        return figures()["samples waiting"] == figures()["changes not saved"] == "0"

    peer.until(settled, "the checkpoint")
    assert figures()["resumed from"] == ""
    learned = arrays(path)
    count = int(learned["counts"][0])
    assert figures()["samples learned"] == str(count)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(TIMEOUT)

    peer.status = None
    process = start("inverse_dynamics", **given)
    peer.until(lambda: figures().get("resumed from") == str(path), "the file's name")
    assert figures()["samples learned"] == str(count)
    # Written anew it is the same to the last bit; and the one before is kept.
    assert peer.call(Trigger, f"{NODE}/save").success
    assert same(arrays(path), learned)
    assert same(arrays(previous_of(path)), learned)
    arm.connect()

    def learned_more() -> bool:
        # Again and again: the one that was killed may still be among those that are connected.
        arm.move(1)
        return int(figures()["samples learned"]) > count + 60

    peer.until(learned_more, "more samples learned")
    peer.until(lambda: figures()["changes not saved"] == "0", "the next checkpoint")
    before = arrays(previous_of(path))
    os.kill(process.pid, signal.SIGKILL)
    process.wait(TIMEOUT)

    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 4
    path.write_bytes(content)
    peer.status = None
    process = start("inverse_dynamics", **given)
    peer.until(lambda: figures().get("resumed from") == str(previous_of(path)), "the one before")
    assert peer.status.level == WARN and "checksum" in peer.status.message
    assert str(path) in peer.status.message
    assert "checksum" in (tmp_path / "inverse_dynamics.log").read_text()
    assert peer.call(Trigger, f"{NODE}/save").success
    assert same(arrays(path), before) and same(arrays(previous_of(path)), before)
    peer.until(lambda: "checksum" not in peer.status.message, "no more damage")
    assert process.stop() == 0


def test_a_disk_that_refuses_is_told_and_nothing_is_given_up(peer, start, urdf, connect, tmp_path):
    folder = tmp_path / "models"
    folder.write_text("in the way")
    process = start("inverse_dynamics", urdf=urdf, model_file=folder / "a.npz", save_interval=0.5)
    predicted = peer.listen(JointState, f"{NODE}/predicted")
    arm = connect()
    arm.move(100)
    peer.until(lambda: "can't write the model" in peer.status.message, "the warning")
    assert peer.status.level == WARN
    assert not (answer := peer.call(Trigger, f"{NODE}/save")).success
    assert "can't write the model" in answer.message
    peer.until(lambda: len(predicted) >= 98, "predictions all the same")
    assert peer.transition(Transition.TRANSITION_DEACTIVATE)  # what was learned stays in memory
    assert not peer.transition(Transition.TRANSITION_CLEANUP)
    assert peer.call(SetBool, f"{NODE}/learn", SetBool.Request(data=True)).success
    folder.unlink()
    assert peer.transition(Transition.TRANSITION_CLEANUP)
    assert len(arrays(folder / "a.npz")["counts"]) == 2
    assert arrays(folder / "a.npz")["counts"][0] == 98
    assert process.stop() == 0


def test_a_disk_that_hangs_keeps_no_prediction_waiting(peer, start, urdf, connect, tmp_path):
    path = tmp_path / "models" / "arm.npz"
    path.parent.mkdir()
    process = start("inverse_dynamics", urdf=urdf, model_file=path, save_interval=0.5)
    predicted = peer.listen(JointState, f"{NODE}/predicted")
    arm = connect()
    folder = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)  # a write waits for it, as it would for a disk
    try:
        arm.move(50)
        peer.until(lambda: peer.figures().get("samples learned") == "48", "48 samples learned")
        client = peer.node.create_client(Trigger, f"{NODE}/save")
        peer.until(client.service_is_ready, "the service")
        peer.meet(NODE)
        answer = client.call_async(Trigger.Request())
        peer.flush(NODE)  # the save has begun
        arm.move(50)
        peer.until(lambda: len(predicted) >= 98, "predictions while it waits")
        peer.until(lambda: peer.figures().get("samples learned") == "98", "98 samples learned")
        assert [stamp_of(message) for message in predicted] == arm.stamps[1:-1]  # without a gap
        peer.until(lambda: "on its way to the disk" in peer.status.message, "the warning")
        assert peer.status.level == WARN
        assert not answer.done() and not path.exists()
        assert peer.figures()["changes not saved"] == "98"
    finally:
        os.close(folder)
    peer.until(answer.done, "the answer")
    assert answer.result().success and "of 48 samples" in answer.result().message
    peer.until(lambda: peer.figures()["changes not saved"] == "0", "the rest")
    peer.until(lambda: "on its way" not in peer.status.message, "no more warning")
    assert arrays(path)["counts"][0] == 98
    assert process.stop() == 0


def test_what_cannot_be_saved_at_the_end_shows_in_the_exit_code(
    peer, start, urdf, connect, tmp_path
):
    (tmp_path / "models").write_text("in the way")
    process = start("inverse_dynamics", urdf=urdf, model_file=tmp_path / "models" / "a.npz")
    arm = connect()
    arm.move(20)
    peer.until(lambda: peer.figures().get("samples learned") == "18", "18 samples learned")
    assert process.stop() == 1
    assert "can't write the model" in (tmp_path / "inverse_dynamics.log").read_text()


def test_the_second_is_refused_until_the_first_has_ended(
    peer, start, urdf, connect, tmp_path, ros_environment
):
    path = tmp_path / "models" / "arm.npz"
    given = {"urdf": urdf, "model_file": path}
    first = start("inverse_dynamics", **given)
    arm = connect()
    arm.move(30)
    peer.until(lambda: peer.figures().get("samples learned") == "28", "28 samples learned")
    assert peer.call(Trigger, f"{NODE}/save").success

    log = tmp_path / "second.log"
    with ForkedNode("inverse_dynamics", given, log, namespace="other") as second:
        assert second.wait(TIMEOUT) == 1
    said = f"{path} is in use by {NODE}, process {first.pid}: give each node a model_file"
    assert said in log.read_text()
    assert path.exists()

    os.kill(first.pid, signal.SIGKILL)
    first.wait(TIMEOUT)
    peer.status = None
    start("inverse_dynamics", **given)  # nothing is in the way of the next
    peer.until(lambda: peer.figures().get("samples learned") == "28", "what was learned")


def test_one_that_is_cleaned_up_or_fails_to_come_up_gives_it_free(peer, start, urdf, tmp_path):
    path = tmp_path / "arm.npz"
    start("inverse_dynamics", urdf=urdf, model_file=path, autostart="false")
    with ForkedNode(
        "inverse_dynamics",
        {"urdf": urdf, "model_file": path, "autostart": "false"},
        tmp_path / "second.log",
        namespace="other",
    ):
        other = f"/other{NODE}"
        assert peer.transition(Transition.TRANSITION_CONFIGURE)
        assert not peer.transition(Transition.TRANSITION_CONFIGURE, other)
        assert peer.transition(Transition.TRANSITION_CLEANUP)
        path.write_bytes(b"damaged")
        assert not peer.transition(Transition.TRANSITION_CONFIGURE, other)
        path.unlink()
        assert peer.transition(Transition.TRANSITION_CONFIGURE)
        assert not peer.transition(Transition.TRANSITION_CONFIGURE, other)
        assert peer.transition(Transition.TRANSITION_CLEANUP)
        assert peer.transition(Transition.TRANSITION_CONFIGURE, other)


def test_without_autosave_the_one_that_saves_has_it(peer, start, urdf, tmp_path):
    path = tmp_path / "arm.npz"
    given = {"urdf": urdf, "model_file": path, "autosave": "false"}
    start("inverse_dynamics", **given)
    with ForkedNode("inverse_dynamics", given, tmp_path / "second.log", namespace="other"):
        other = f"/other{NODE}"
        assert peer.call(Trigger, f"{NODE}/save").success
        refused = peer.call(Trigger, f"{other}/save")
        assert not refused.success and "is in use by" in refused.message
