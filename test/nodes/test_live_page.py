"""The live page's stream, read while a real learner works over DDS."""

from __future__ import annotations

import http.client
import importlib.util
import itertools
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import Vector3
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA

pytest.importorskip("visualization_msgs.msg")

from visualization_msgs.msg import Marker, MarkerArray

from semiparam_dynamics.base.nodes.live_server import Feed, LiveServer
from semiparam_dynamics.base.nodes.messages import effort_message, joint_state_message
from semiparam_dynamics.learner.nodes import live_page, markers
from semiparam_dynamics.learner.nodes.live_page import LivePageNode, rmse

from ..browser import Browser
from .conftest import TIMEOUT, URDF, moved, page_port
from .forks import ForkedNode

WANTED = {"status", "layout", "robot", "arm", "sample", "errors"}


class Reader(threading.Thread):
    """Reads the stream; `newest` has each event's last data."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self.newest: dict[str, object] = {}

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT)
        connection.request("GET", "/stream")
        response = connection.getresponse()
        while line := response.readline().decode():
            if line.startswith("event: "):
                data = response.readline().decode().removeprefix("data: ")
                self.newest[line.removeprefix("event: ").strip()] = json.loads(data)


def test_the_stream_tells_what_a_learner_does(ros_environment, peer, tmp_path, urdf) -> None:
    given = {"urdf": urdf, "target": "effort"}
    publisher = peer.node.create_publisher(JointState, "left/joint_states", 1000)
    messages = map(moved, itertools.count())
    shown = {"urdf": urdf, "port": 0}
    logs, of = (tmp_path / "learner.log", tmp_path / "page.log"), {"namespace": "left"}
    with (
        ForkedNode("inverse_dynamics", given, logs[0], **of),
        ForkedNode("live_page", shown, logs[1], **of) as page,
    ):
        reader = Reader(port := page_port(logs[1]))
        reader.start()

        def told() -> bool:
            publisher.publish(next(messages))
            return reader.newest.keys() >= WANTED and bool(reader.newest["errors"])

        peer.until(told, f"all of {WANTED}; there were {set(reader.newest)}")
        newest = reader.newest
        assert [axis["name"] for axis in newest["layout"]["axes"]] == ["shoulder", "elbow"]
        sample = newest["sample"]
        assert all(len(sample[n]) == 2 for n in ("measured", "rigid_body", "semiparametric"))
        assert len(newest["arm"]["capsules"]) == len(newest["robot"]["radii"])
        assert np.isfinite(newest["errors"][-1]["rigid_body"]).all()
        peer.until(
            lambda: told() and ["learning", "true"] in newest["status"]["learned"],
            "the learner's diagnostics",
        )
        rendered(peer, told, port, tmp_path)
        page.stop()
    reader.join(TIMEOUT)
    assert not reader.is_alive()
    assert "Traceback" not in (tmp_path / "page.log").read_text()


def rendered(peer, told, port: int, folder) -> None:
    """Look at the page as a browser has it, while the learner goes on."""
    with Browser(folder / "browser", f"http://127.0.0.1:{port}/") as browser:

        def complete() -> bool:
            told()
            text = str(browser.value("document.body.innerText"))
            return "samples learned" in text and "elbow [N m]" in text

        peer.until(complete, "the browser's page with what is learned and its axes")
        assert browser.value("scene.capsules.length > 0 && samples.length > 0")


def test_other_axes_leave_the_state_on_the_page(tmp_path) -> None:
    feed = Feed()

    def publish_layout(*names: str) -> None:
        axes = [{"name": name, "unit": "N m"} for name in names]
        groups = [{"name": "Joint effort", "unit": "N m"}]
        feed.publish({"layout": {"axes": axes, "groups": groups, "window": 3.0}, "errors": []})

    def publish_status(level: int, message: str) -> None:
        feed.publish({"status": {"level": level, "message": message, "learned": [], "left": []}})

    with LiveServer(feed, 0) as server, Browser(tmp_path, server.url) as browser:

        def wait(expression: str) -> None:
            end = time.monotonic() + TIMEOUT
            while not browser.value(expression):
                assert time.monotonic() < end, expression
                time.sleep(0.02)

        publish_layout("shoulder", "elbow")
        publish_status(2, "learning has stopped")
        wait("document.querySelector('#state.error')?.textContent === 'learning has stopped'")
        publish_layout("shoulder", "elbow", "wrist")
        wait("document.querySelectorAll('#axes figure').length === 3")
        assert browser.value("document.querySelectorAll('#errors .error').length") == 1
        publish_status(0, "learns")
        publish_layout("shoulder")  # comes after it
        wait("document.querySelectorAll('#axes figure').length === 1")
        assert (
            browser.value("document.querySelector('#state:not(.error)')?.textContent") == "learns"
        )


def test_bytes_that_are_no_message_end_nothing(peer, start, tmp_path, urdf) -> None:
    process = start("live_page", urdf=urdf, port=0)
    states = peer.node.create_publisher(JointState, "joint_states", 10)
    predicted = peer.node.create_publisher(JointState, "inverse_dynamics/predicted", 10)
    publishers = (states, predicted)
    peer.meet("/live_page", *publishers)
    message = moved(0)
    whole = serialize_message(message)
    for cut in (b"\x00\x01\x00\x01", whole[:20], whole[:-4]):
        for publisher in publishers:
            publisher.publish(cut)
            peer.spin(0.2)  # a look at each
    reader = Reader(page_port(tmp_path / "live_page.log"))
    reader.start()

    def told() -> bool:
        states.publish(message)
        return "arm" in reader.newest

    peer.until(told, "the arm")
    assert process.stop() == 0
    assert "Traceback" not in (tmp_path / "live_page.log").read_text()


class Page:
    """The node in the test's process, which is given messages as the middleware gives them."""

    def __init__(self, urdf) -> None:
        rclpy.init(args=["--ros-args", "-p", f"urdf:='{urdf}'", "-p", "port:=0"])
        self.node = LivePageNode()
        self.now = 100.0  # s

    def newest(self, name: str) -> object:
        """The last event of this name."""
        return json.loads(dict(self.node.feed.after(0, 0.0)[1])[name])

    def stand(self, position: float, names: tuple[str, ...] = ("shoulder", "elbow")) -> None:
        """Let joint states come."""
        q = np.full(len(names), position)
        message = joint_state_message(0, names, q, q, q)
        self.node.take("joint_states", serialize_message(message))

    def sample(self, t: float, *parts: str, values: tuple[float, ...] = (1.0, 2.0)) -> None:
        """Let parts of a sample of two joints come, all where none is named."""
        message = effort_message(round(1e9 * t), ("shoulder", "elbow"), np.array(values))
        for part in parts or live_page.PARTS:
            self.node.take_part(part, serialize_message(message))

    def close(self) -> None:
        self.node.close()
        self.node.destroy_node()
        rclpy.try_shutdown()


@pytest.fixture
def page(ros_environment, urdf, monkeypatch):
    made = Page(urdf)
    clock = SimpleNamespace(monotonic=lambda: made.now)
    monkeypatch.setattr(live_page, "time", clock)
    yield made
    made.close()


def test_what_is_no_longer_marked_is_no_longer_drawn(page) -> None:
    color, size = ColorRGBA(r=1.0, a=1.0), Vector3(x=0.1, y=0.1, z=0.1)
    ball = Marker(ns="contact", type=Marker.SPHERE, scale=size, color=color)
    ball.header.frame_id = "lower"
    ball.lifetime.nanosec = round(1e9 * markers.LASTS_S)
    lasting = Marker(ns="payload", type=Marker.SPHERE, scale=size, color=color)
    lasting.header.frame_id = "lower"

    def shown() -> list[str]:
        page.stand(page.now)
        page.node.update()
        return [one["text"] for one in page.newest("arm")["balls"]]

    sent = serialize_message(MarkerArray(markers=[ball, lasting]))
    page.node.take("markers", sent)
    assert shown() == ["contact", "payload"]
    page.now += 0.9 * markers.LASTS_S
    assert shown() == ["contact", "payload"]
    page.now += 0.2 * markers.LASTS_S
    assert shown() == ["payload"]
    page.node.take("markers", sent)
    assert shown() == ["contact", "payload"]


def test_an_arm_moves_beside_the_publisher_of_a_gripper(page) -> None:
    pictures = []
    for k in range(5):
        for _ in range(8):  # comes more often, and last
            page.stand(0.1 * k, ("shoulder", "elbow"))
            page.stand(0.0, ("gripper",))
        page.node.update()
        pictures.append(page.newest("arm")["capsules"])
        if k == 2:
            assert page.newest("robot")["learned"] == [True, True]
    assert len({str(one) for one in pictures}) == 5
    page.stand(0.0, ("gripper",))
    page.node.update()
    assert page.newest("arm")["capsules"] == pictures[-1]


def test_which_joints_are_learned_is_not_told_by_whoever_publishes_first(page) -> None:
    page.stand(0.0, ("gripper",))
    page.node.update()
    page.stand(0.1, ("elbow",))
    page.node.update()
    assert page.newest("robot")["learned"] == [False, True]
    page.stand(0.1)
    page.node.update()
    assert page.newest("robot")["learned"] == [True, True]
    page.node.listen("sensor_msgs/msg/JointState")
    message = effort_message(0, ("elbow",), np.zeros(1))
    page.node.take_part("measured", serialize_message(message))
    assert page.newest("robot")["learned"] == [False, True]
    page.stand(0.2)
    page.node.update()
    assert page.newest("robot")["learned"] == [False, True]


@pytest.mark.parametrize("late", [False, True], ids=["URDF first", "URDF later"])
def test_efforts_of_sliding_joints_are_forces_and_have_an_error_of_their_own(
    ros_environment, urdf, late: bool
) -> None:
    text = URDF.replace('"elbow" type="revolute"', '"elbow" type="prismatic"')
    urdf.write_text(text)
    page = Page("" if late else urdf)
    try:
        page.node.listen("sensor_msgs/msg/JointState")
        if late:
            page.sample(0.5)
            assert len(page.newest("layout")["groups"]) == 1
            page.node.describe(text)
        page.sample(1.0, "measured", values=(1.0, 300.0))
        page.sample(1.0, "rigid_body", values=(2.0, 290.0))
        page.sample(1.0, "semiparametric", values=(1.5, 295.0))
        page.node.update()
        layout = page.newest("layout")
        assert [axis["unit"] for axis in layout["axes"]] == ["N m", "N"]
        assert [group["unit"] for group in layout["groups"]] == ["N m", "N"]
        [error] = page.newest("errors")
        assert error["rigid_body"] == [1.0, 10.0] and error["semiparametric"] == [0.5, 5.0]
    finally:
        page.close()


def test_a_clock_that_is_set_back_stops_nothing(page) -> None:
    page.node.listen("sensor_msgs/msg/JointState")
    for k in range(10):
        page.sample(1000.0 + 0.05 * k)
    for k in range(10, 20):
        page.sample(1000.0 + 0.05 * k, "rigid_body", "semiparametric")
    for k in range(400):
        page.sample(500.0 + 0.05 * k)
    assert page.newest("sample")["t"] == pytest.approx(399 * 0.05)


def test_a_clock_that_is_set_forward_begins_anew(page) -> None:
    page.node.listen("sensor_msgs/msg/JointState")

    def shown(t: float) -> list[float]:
        page.sample(t)
        page.now += live_page.ERROR_PERIOD
        page.node.update()
        return [one["t"] for one in page.newest("errors")]

    assert [shown(100.0), shown(101.0)] == [[0.0], [0.0, 1.0]]
    assert shown(1.7e9) == [0.0]
    assert page.newest("sample")["t"] == 0.0
    assert shown(1.7e9 + 1.5) == [0.0, 1.5]
    for k in range(60):  # half an hour, again and again: after days times are to the millisecond
        page.sample(1.7e9 + 1800.0 * k)
    days = 59 * 1800.0
    page.sample(1.7e9 + days + 0.125)
    assert page.newest("sample")["t"] == days + 0.125


def test_errors_are_root_mean_squares_averaged_over_what_is_known() -> None:
    errors = np.array([[3.0, 1.0, np.nan], [4.0, 1.0, np.nan]])
    assert rmse(errors) == pytest.approx((np.sqrt(12.5) + 1.0) / 2.0)
    assert np.isnan(rmse(errors[:, 2:]))


def test_the_status_has_what_is_learned_and_what_is_left_out_by_how_often() -> None:
    values = {"samples seen": "9", "resumed from": "", "payload: mass [kg]": "nan", "other": "x"}
    values |= {"dropped: old": "2", "dropped: <b>": "30"}
    status = DiagnosticStatus(level=DiagnosticStatus.WARN, name="n", message="m")
    status.values = [KeyValue(key=k, value=v) for k, v in values.items()]
    event = LivePageNode.report(None, status)
    assert event["level"] == 1 and event["learned"] == [["samples seen", "9"]]
    assert event["left"] == [["<b>", "30"], ["old", "2"]]


def test_the_viewer_rerun_is_sent_what_the_page_shows(start, peer, tmp_path, urdf) -> None:
    file, log = tmp_path / "sent.rrd", tmp_path / "live_page.log"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    url = f"rerun+http://{address}/proxy"
    if importlib.util.find_spec("rerun") is None:
        page = start("live_page", urdf=urdf, port=0, rerun=url)
        assert page.wait(TIMEOUT) != 0 and "pip install rerun-sdk" in log.read_text()
        pytest.skip("rerun-sdk is not installed")
    from rerun.chunk import RrdReader

    viewer = [sys.executable, "-m", "rerun", "--bind", "127.0.0.1", "--port", address[10:]]
    with subprocess.Popen([*viewer, "--save", str(file)]) as process:
        page = start("live_page", urdf=urdf, port=0, rerun=url)
        outputs = [
            peer.node.create_publisher(JointState, f"inverse_dynamics/{name}", 10)
            for name in live_page.PARTS.values()
        ]
        peer.meet("/live_page", *outputs)
        for k in range(40):
            for n, output in enumerate(outputs):
                values = np.array([n + 0.01 * k, 9.0])
                output.publish(effort_message(50_000_000 * k, ("shoulder", "elbow"), values))
            peer.spin(0.06)
        assert page.stop() == 0
        process.send_signal(signal.SIGINT)
    chunks = [chunk for chunk in RrdReader(file).stream() if not chunk.is_static]
    found: dict[str, list[float]] = {}
    for chunk in chunks:
        found.setdefault(chunk.entity_path, []).extend(
            value for values in chunk.to_record_batch().column(2).to_pylist() for value in values
        )
    for n, look in enumerate(("Measured", "Rigid\\ body", "Semiparametric")):
        shoulder = sorted(found[f"/live/shoulder/{look}"])
        assert len(shoulder) > 5 and n <= shoulder[0] and shoulder[-1] < n + 0.4
        assert set(found[f"/live/elbow/{look}"]) == {9.0}
