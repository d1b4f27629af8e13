"""Two nodes that were given the same model_file."""

from __future__ import annotations

import os
import signal

from lifecycle_msgs.msg import Transition
from std_srvs.srv import Trigger

from .conftest import TIMEOUT
from .forks import ForkedNode

NODE = "/inverse_dynamics"


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
