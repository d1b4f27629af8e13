"""A bag's player starts once the node is active, with the URDF that the bag brings."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from semiparam_dynamics.samples.bag_writer import write_measurements
from semiparam_dynamics.samples.nodes import bag_player

from ..dynamics.arms import measurements, small_arm
from .conftest import TIMEOUT, URDF
from .forks import Fork
from .test_transitions import Driven, drive  # noqa: F401

PLAYER = "semiparam_dynamics.samples.nodes.bag_player"
# Instead of a player: what state is the node in when it is started?
ASK = """
import sys, rclpy
from lifecycle_msgs.srv import GetState
rclpy.init()
node = rclpy.create_node("asks")
client = node.create_client(GetState, "/inverse_dynamics/get_state")
while True:  # a first answer may find nobody who has met this client
    client.wait_for_service()
    answer = client.call_async(GetState.Request())
    rclpy.spin_until_future_complete(node, answer, timeout_sec=2.0)
    if answer.done():
        break
open(sys.argv[1], "w").write(answer.result().current_state.label)
"""


@pytest.mark.parametrize("managed", [False, True])
def test_the_player_starts_when_the_node_is_active(drive, tmp_path: Path, managed: bool) -> None:  # noqa: F811
    bag, state = tmp_path / "bag", tmp_path / "state"
    recording, names = measurements(small_arm(), 0.1), small_arm().joint_names
    write_measurements(bag, names, recording, "effort", robot_description=URDF)
    player = [sys.executable, "-c", ASK, str(state)]
    driven: Driven = drive(autostart=str(not managed).lower())
    command = [sys.executable, "-m", PLAYER, str(bag), "--", *player]
    process = Fork(command, str(tmp_path / "log"))
    try:
        if managed:
            driven.until(lambda: driven.node._urdf)  # the bag's
            assert driven.node.state == "unconfigured" and not state.exists()
            assert driven.node.bring_to("active")
        driven.until(lambda: process.poll() is not None)
    finally:
        process.send_signal(signal.SIGKILL)
    assert process.poll() == 0 and state.read_text() == "active"
    assert driven.node._urdf == URDF


def test_a_bag_that_cannot_be_read_is_told(ros_environment, tmp_path: Path, capsys) -> None:
    assert bag_player.main([str(tmp_path / "none"), "--", "true"]) == 1
    assert str(tmp_path / "none") in capsys.readouterr().err


def test_a_player_that_is_not_there_is_named(drive, tmp_path: Path) -> None:  # noqa: F811
    bag, urdf = tmp_path / "bag", tmp_path / "two_links.urdf"
    write_measurements(bag, small_arm().joint_names, measurements(small_arm(), 0.1), "effort")
    urdf.write_text(URDF)
    driven: Driven = drive(urdf=urdf)
    assert driven.node.start()
    command = ["-m", PLAYER, str(bag), "--", "no_ros2", "bag", "play", str(bag)]
    process = Fork([sys.executable, *command], str(tmp_path / "log"))
    driven.until(lambda: process.poll() is not None)
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert process.poll() == 127
    assert line.startswith("'no_ros2 bag play' can't be started: No such file") and "PATH" in line


INTERRUPTED = """
import sys, time
from semiparam_dynamics.samples.nodes.bag_player import main
code = main(sys.argv[1:])
print("ended", flush=True)
time.sleep(0.5)
sys.exit(code)
"""


def test_an_interrupted_wait_ends_cleanly(drive, tmp_path: Path) -> None:  # noqa: F811
    bag, names = tmp_path / "bag", small_arm().joint_names
    recording = measurements(small_arm(), 0.1)
    write_measurements(bag, names, recording, "effort", robot_description=URDF)
    driven: Driven = drive(autostart="false")
    log = tmp_path / "log"
    process = Fork([sys.executable, "-c", INTERRUPTED, str(bag), "--", "true"], str(log))
    driven.until(lambda: driven.node._urdf)
    process.send_signal(signal.SIGINT)
    driven.until(lambda: log.read_text() == "ended\n")
    process.send_signal(signal.SIGINT)  # as `ros2 launch` after the terminal
    assert process.wait(TIMEOUT) == 0 and log.read_text() == "ended\n"
