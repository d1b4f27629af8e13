"""The objects' page over DDS beside a real recognition: what it shows, and what it orders."""

from __future__ import annotations

import http.client
import io
import itertools
import json
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image, RegionOfInterest
from std_msgs.msg import Float32, Float32MultiArray, String
from std_srvs.srv import SetBool

from semiparam_dynamics.base.errors import RefusedError
from semiparam_dynamics.base.nodes.processes import answers
from semiparam_dynamics.recognition.nodes.image_source import image_message
from semiparam_dynamics.recognition.nodes.objects_page import (
    HOLD,
    curve,
    edit_of,
    jpeg_encoder,
    listed,
)

pytest.importorskip("PIL", reason="needs the extra 'vision'")

from ..browser import Browser
from .conftest import TIMEOUT, page_port
from .test_live_page import Reader

Pillow = pytest.importorskip("PIL.Image")

NODE = "object_recognition"
ANSWERS = {"answer", "objects", "curve", "frame", "status", "edit"}
NAMES = ("mug", "book", "<b>ball</b>")
SILENCE = "nothing heard from /object_recognition for "
KEYS = {" ": "Space", "Enter": "Enter", "Escape": "Escape", "1": "Digit1"}


class Table:
    """Objects before a camera: both the image and the features that stand for a network's."""

    def __init__(self, peer: Any) -> None:
        self.shown = 0
        self.sent = 0
        self._rng = np.random.default_rng(0)
        self._images = peer.node.create_publisher(Image, "image", 10)
        self._features = peer.node.create_publisher(Float32MultiArray, "features", 10)
        self._due = 0.0

    def show(self) -> None:
        """Publish a view of what is shown, thirty times a second at most."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + 1 / 30
        features = 5.0 * np.eye(4, 16)[self.shown] + self._rng.normal(size=16)
        self._features.publish(Float32MultiArray(data=features.tolist()))
        pixels = np.full((30, 40, 3), 60 * self.shown, np.uint8)
        self._images.publish(image_message(pixels, 1 + self.sent))
        self.sent += 1


class Page:
    """The page as a browser's script sees it: its token, its orders, its stream."""

    def __init__(self, port: int, name: str = "one") -> None:
        self.port = port
        self.name = name
        self.reader = Reader(port)
        self.reader.start()
        self.newest = self.reader.newest
        self.told = ""  # with the last answer to an order
        self.ordered = 0.0  # when it taught last, monotonic s

    def get(self) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        connection.request("GET", "/")
        return connection.getresponse().read().decode()

    def order(self, do: str, label: str = "", other: str = "") -> int:
        token = re.search(r'TOKEN = "([\w-]+)"', self.get())[1]
        headers = {"Origin": f"http://127.0.0.1:{self.port}", "X-Token": token}
        body = json.dumps({"do": do, "label": label, "other": other, "page": self.name})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        connection.request("POST", "/order", body, headers)
        answer = connection.getresponse()
        self.told = answer.read().decode()
        return answer.status

    def listed(self) -> dict[str, str]:
        return {o["name"]: o["learned"] for o in self.newest["objects"]["objects"]}

    @contextmanager
    def holding(self, label: str) -> Iterator[None]:
        """Teach meanwhile: the order again and again, as the page's own script gives it."""
        ended, answers = threading.Event(), set()

        def hold() -> None:
            while not ended.wait(HOLD / 10):
                self.ordered = time.monotonic()
                answers.add(self.order("teach", label))

        assert self.order("teach", label) == 204
        holds = threading.Thread(target=hold)
        holds.start()
        try:
            yield
        finally:
            ended.set()
            holds.join()
        assert answers <= {204}


@pytest.fixture
def open_page(start, tmp_path: Path) -> Callable[..., tuple[Any, int]]:
    """A function that starts the page's node; returns its process and its port."""

    def open_page() -> tuple[Any, int]:
        return start("objects_page", port=0), page_port(tmp_path / "objects_page.log")

    return open_page


def words(messages: list[String]) -> list[str]:
    """What was said, without what was only said again."""
    return [word for word, _ in itertools.groupby(m.data for m in messages)]


def test_objects_are_taught_and_changed_and_survive_a_restart(
    peer, start, open_page, tmp_path
) -> None:
    model = tmp_path / "kept" / "objects.npz"
    given = {"input": "features", "model_file": model, "smoothing.frames": 1}
    recognition = start(NODE, **given)
    _, port = open_page()
    said, edits = peer.listen(String, "label"), peer.listen(String, f"{NODE}/edit")
    peer.meet("/objects_page")
    table, page = Table(peer), Page(port)

    def until(condition: Callable[[], bool], what: str) -> None:
        def shown() -> bool:
            table.show()
            return condition()

        peer.until(shown, f"{what}; the page has {page.newest}")

    until(lambda: ANSWERS <= set(page.newest), f"all of {ANSWERS}")
    assert page.newest["answer"]["known"] is False
    # What nobody has taught is named afterwards.
    table.shown, frames = 3, table.sent
    until(lambda: table.sent > frames + 15, "some frames of it")
    assert page.order("name", "spoon") == 204
    until(lambda: page.newest["answer"]["label"] == "spoon", "that it is known")
    assert page.order("forget", "spoon") == 204
    until(lambda: not page.listed(), "an empty list")
    for table.shown, name in enumerate(NAMES):
        with page.holding(f" {name} "):
            until(lambda: page.newest["teaching"] == {"label": name, "page": "one"}, "teaching")  # noqa: B023
            until(lambda: int(page.listed().get(name) or 0) > 3, f"{name} in the list")  # noqa: B023
        # Without a word from the page, teaching ends by itself.
        assert name == NAMES[-1] or page.order("stop") == 204
        until(lambda: page.newest["teaching"] == {"label": "", "page": ""}, "its end")
        assert name != NAMES[-1] or time.monotonic() - page.ordered >= HOLD
        until(lambda: page.newest["answer"]["label"] == name, name)  # noqa: B023

    def agrees() -> bool:
        # Now and then its scores are those of the frame before.
        answer = page.newest["answer"]
        best = [NAMES[2], pytest.approx(answer["confidence"])]
        return answer["known"] and len(answer["best"]) == 3 and answer["best"][0] == best

    until(agrees, "an answer and its scores")
    assert list(page.listed()) == list(NAMES)
    told = [word for name in NAMES for word in (name, "")]
    until(lambda: words(said) == told, "each name and its end")
    taught = int(peer.figures()["frames taught"])
    until(lambda: bool(page.newest["curve"]) and page.newest["curve"][-1][0] >= taught, "the curve")
    assert 0.5 < page.newest["curve"][-1][1] <= 1.0  # the first frame of each is not known

    assert page.order("rename", "mug", "cup") == 204
    until(lambda: "cup" in page.listed() and "mug" not in page.listed(), "the new name")
    assert page.order("merge", "book", "cup") == 204
    assert page.order("forget", NAMES[2]) == 204
    until(lambda: set(page.listed()) == {"cup"}, "one object")
    assert page.order("rename", "cup") == 422 and page.order("fly", "cup") == 422
    until(lambda: len(edits) == 5, "the edits")
    assert [m.data for m in edits] == [
        "name spoon",
        "forget spoon",
        "rename mug -> cup",
        "merge book -> cup",
        f"forget {NAMES[2]}",
    ]
    assert page.order("save") == 204
    until(lambda: "saved" in page.newest, "the answer of ~/save")
    assert page.newest["saved"]["done"] and model.is_file()

    recognition.stop()
    # The list is there again before any frame is.
    page.newest["objects"] = {"objects": []}
    recognition = start(NODE, **given)
    until(lambda: "cup" in page.listed(), "the list after a restart")
    table.shown = 0
    until(lambda: page.newest["answer"]["label"] == "cup", "what was taught before")


def test_of_two_pages_one_teaches_and_the_other_sees_it(peer, open_page) -> None:
    _, port = open_page()
    one, two = Page(port), Page(port, "two")
    peer.until(lambda: "status" in one.newest and "status" in two.newest, "both pages")
    assert one.order("teach", "mug") == one.order("forget", "ball") == 422  # nobody would hear it
    said, edits = peer.listen(String, "label"), peer.listen(String, f"{NODE}/edit")

    def heard() -> bool:
        # Again and again: each side of a topic finds the other at a time of its own.
        answers = {one.order("teach", "mug"), one.order("name", "hat")}
        return answers == {204} and bool(said and edits)

    peer.until(heard, "the first orders")
    with one.holding("mug"):
        count = len(said)
        peer.until(lambda: len(said) > count + 2, "the mug, again and again")
        peer.until(lambda: two.newest.get("teaching") == {"label": "mug", "page": "one"}, "the mug")
        assert two.order("teach", "book") == 422
        assert two.order("forget", "mug") == 422
        assert two.order("stop") == 204 and two.order("forget", "ball") == 204
        assert one.order("rename", "mug", "cup") == 204

        def changes() -> list[str]:
            return [m.data for m in edits if m.data != "name hat"]

        peer.until(lambda: len(changes()) == 2, "two edits")
        assert changes() == ["forget ball", "rename mug -> cup"]
    assert one.order("stop") == 204
    peer.until(lambda: two.newest["teaching"] == {"label": "", "page": ""}, "the end")
    with two.holding("book"):
        peer.until(lambda: one.newest["teaching"] == {"label": "book", "page": "two"}, "the book")
    # The page may know it sooner than it has come.
    peer.until(lambda: {m.data for m in said} == {"mug", "", "book"}, "all that was said")


def test_a_page_that_is_ended_ends_the_teaching_that_it_began(peer, open_page) -> None:
    process, port = open_page()
    said, page = peer.listen(String, "label"), Page(port)
    peer.until(lambda: "status" in page.newest, "the page")
    peer.until(lambda: page.order("teach", "mug") == 204 and bool(said), "the mug")
    assert process.stop() == 0
    peer.until(lambda: said[-1].data == "", "the end of teaching")


def test_an_answer_is_shown_with_its_probability(peer, open_page) -> None:
    page = Page(open_page()[1])
    label = peer.node.create_publisher(String, f"{NODE}/label", 10)
    confidence = peer.node.create_publisher(Float32, f"{NODE}/confidence", 10)
    peer.meet("/objects_page", label, confidence)
    peer.until(lambda: "status" in page.newest, "the page")
    label.publish(String(data="mug"))
    peer.spin(0.5)  # some looks
    assert "answer" not in page.newest
    confidence.publish(Float32(data=0.75))
    peer.until(lambda: page.newest.get("answer", {}).get("confidence") == 0.75, "the answer")
    assert page.newest["answer"]["label"] == "mug"


def test_a_node_without_diagnostics_is_shown_as_silent(peer, open_page) -> None:
    page = Page(open_page()[1])
    reports = peer.node.create_publisher(DiagnosticArray, "/diagnostics", 10)
    values = [KeyValue(key="label", value="mug"), KeyValue(key="examples", value="9")]
    status = DiagnosticStatus(level=b"\x00", name=NODE, message="well", values=values)

    def reported() -> bool:
        reports.publish(DiagnosticArray(status=[status]))
        return page.newest.get("status", {}).get("message") == "well"

    peer.until(reported, f"what it says; the page has {page.newest}")
    assert page.newest["status"]["level"] == 0
    peer.until(lambda: page.newest["status"]["message"].startswith(SILENCE), "its silence")
    assert page.newest["status"]["level"] == 1
    assert page.newest["status"]["values"] == [["examples", "9"]]
    first = page.newest["status"]["message"]
    peer.until(lambda: page.newest["status"]["message"] != first, "for how long")
    peer.until(lambda: page.newest["teaching"]["label"] == "", "that nothing is taught")
    peer.until(reported, "what it says again")
    assert page.newest["status"]["level"] == 0


def test_what_comes_from_strangers_ends_nothing(peer, open_page, tmp_path) -> None:
    process, port = open_page()
    page, table = Page(port), Table(peer)
    images = peer.node.create_publisher(Image, "image", 10)
    scores = peer.node.create_publisher(Float32MultiArray, f"{NODE}/scores", 10)
    reports = peer.node.create_publisher(DiagnosticArray, "/diagnostics", 10)
    peer.until(lambda: "status" in page.newest, "the page")
    peer.meet("/objects_page", images, scores, reports)
    for word in ("\ud800", "a\x00b", "a\nb"):
        assert page.order("teach", word) == 422 and page.order("name", word) == 422
    figures = {"frames taught": "9" * 5000, "objects": "8" * 400}
    values = [KeyValue(key=key, value=value) for key, value in figures.items()]
    status = DiagnosticStatus(level=b"\x00", name=NODE, message="of a stranger", values=values)
    whole = serialize_message(image_message(np.zeros((30, 40, 3), np.uint8), 1))

    def refused() -> bool:
        for cut in (b"\x00\x01\x00\x01", whole[:20], whole[:-4]):
            images.publish(cut)
        scores.publish(serialize_message(Float32MultiArray(data=[1.0]))[:9])
        reports.publish(DiagnosticArray(status=[status]))
        told = page.newest["status"]["message"] == "of a stranger"
        return told and "no image" in page.newest.get("frame", {}).get("problem", "")

    peer.until(refused, f"both; the page has {page.newest}")

    def shown() -> bool:
        table.show()
        return "jpeg" in page.newest["frame"]

    peer.until(shown, "a frame")
    assert process.stop() == 0
    assert "Traceback" not in (tmp_path / "objects_page.log").read_text()


def test_a_browser_teaches_by_button_and_by_key(peer, start, open_page, tmp_path) -> None:
    start(NODE, input="features", smoothing__frames=1, hold_out=600)
    _, port = open_page()
    page, table = Page(port), Table(peer)
    peer.until(lambda: "status" in page.newest, "the page")
    with Browser(tmp_path / "browser", f"http://127.0.0.1:{port}/") as browser:

        def until(script: str) -> None:
            def shown() -> bool:
                table.show()
                return bool(browser.value(script))

            peer.until(shown, f"{script}: {browser.value('document.body.innerText')}")

        def key(name: str, down: bool, repeated: bool = False) -> None:
            kind = "keyDown" if down else "keyUp"
            text = {"text": {"Enter": "\r"}.get(name, name)} if down and name != "Escape" else {}
            more = {"key": name, "code": KEYS[name], "autoRepeat": repeated, **text}
            browser.call("Input.dispatchKeyEvent", type=kind, **more)

        def mouse(kind: str, element: str) -> None:
            browser.value(f"{element}.scrollIntoView({{block: 'center'}})")
            box = browser.value(
                f"(r => [r.x + r.width / 2, r.y + r.height / 2].join(' '))"
                f"({element}.getBoundingClientRect())"
            )
            x, y = map(float, box.split())
            arguments = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
            browser.call("Input.dispatchMouseEvent", **arguments)

        def click(element: str) -> None:
            mouse("mousePressed", element)
            mouse("mouseReleased", element)

        rows = "document.querySelectorAll('#objects tbody tr')"
        until("byId('frame').naturalWidth === 40 && byId('state').textContent.length > 0")
        click("byId('hold')")
        until("byId('said').textContent.includes('name first')")
        # The button, for longer than teaching lasts without a word from the page.
        browser.value(f"byId('name').value = {json.dumps(NAMES[2])}")
        mouse("mousePressed", "byId('hold')")
        ends = time.monotonic() + 1.5 * HOLD
        while time.monotonic() < ends:
            until("!byId('mark').hidden && byId('hold').className.includes('on')")
        mouse("mouseReleased", "byId('hold')")
        until(f"byId('mark').hidden && {rows}.length === 1")
        assert browser.value("document.querySelectorAll('#view b, td b, #answer b').length") == 0
        until(f"{rows}[0].cells[1].textContent === {json.dumps(NAMES[2])}")
        until(
            "byId('missing').textContent.includes('show two more objects, or one for 3000 frames')"
        )
        assert browser.value("byId('sure').textContent") == "the only object taught"
        # The name and Enter, twice; then the first object again by its key, held.
        table.shown = 1
        browser.value("byId('name').value = 'book'; byId('name').focus()")
        key("Enter", True)
        key("Enter", False)
        until("byId('mark').textContent === 'teaching book'")
        until(f"{rows}.length === 2")
        key("Escape", True)
        key("Escape", False)
        until("byId('mark').hidden && byId('label').textContent === 'book'")
        browser.value("document.activeElement.blur()")
        table.shown = 0
        first = browser.value("objects[0].name")
        for held in ("1", " "):
            key(held, True)
            until(f"byId('mark').textContent === 'teaching ' + {json.dumps(first)}")
            key(held, False)
            until("byId('mark').hidden")
        assert page.newest["answer"]["best"]
        until("document.querySelectorAll('.bar.first b')[0].style.width !== ''")
        # In the name's field the space bar is held, too, and taps are part of the name.
        browser.value(f"byId('name').value = {json.dumps(first)}; byId('name').focus()")
        key(" ", True)
        key(" ", False)
        assert browser.value("byId('name').value.endsWith(' ') && byId('mark').hidden")
        for repeated in (False, True, True):
            key(" ", True, repeated)
        until(f"byId('mark').textContent === 'teaching ' + {json.dumps(first)}")
        assert browser.value(f"byId('name').value === {json.dumps(first)}")
        key(" ", False)
        until("byId('mark').hidden")
        # Rename, while it is taught, and forget by the list's buttons.
        browser.value(f"byId('name').value = {json.dumps(first)}")
        click("byId('toggle')")
        until(f"byId('mark').textContent === 'teaching ' + {json.dumps(first)}")
        assert browser.value("document.documentElement.scrollWidth <= innerWidth")
        click(f"{rows}[0].querySelectorAll('button')[0]")
        browser.value("byId('to').value = 'globe'")
        click("byId('do')")
        until(f"objects[0].name === 'globe' && {rows}.length === 2 && byId('mark').hidden")
        ends = time.monotonic() + 1.0
        while time.monotonic() < ends:  # the page says the old name no more
            until("byId('mark').hidden")
        assert browser.value(f"{rows}.length") == 2
        click(f"{rows}[1].querySelectorAll('button')[2]")
        click("byId('do')")
        until(f"{rows}.length === 1 && objects[0].name === 'globe'")
        until("byId('said').textContent.includes('forgotten')")


def test_teaching_ends_where_the_recognition_does_not_take_it(peer, start, open_page) -> None:
    start(NODE, input="features")
    page = Page(open_page()[1])
    peer.until(lambda: "objects" in page.newest, "the recognition on the page")

    def teach(label: str, again: str) -> bool:
        return page.order("teach", label, again) == 422

    def refused(label: str, why: str) -> None:
        peer.until(lambda: not teach(label, ""), f"the beginning of {label}")
        peer.until(lambda: teach(label, "again"), f"the end of {label}")
        assert why in page.told
        peer.until(lambda: page.newest["teaching"]["label"] == "", "that nothing is taught")
        assert not teach(label, "")  # to begin once more may be tried
        assert page.order("stop") == 204

    refused("unknown", "what unknown objects are called")
    off = SetBool.Request(data=False)
    assert peer.call(SetBool, f"/{NODE}/learn", off).success
    refused("mug", "learning is switched off")


def test_a_browser_tells_news_and_each_refusal_once(
    peer, start, open_page, tmp_path, monkeypatch
) -> None:
    recognition = start(NODE, input="features")
    process, port = open_page()
    with Browser(tmp_path / "browser", f"http://127.0.0.1:{port}/") as browser:

        def until(script: str) -> None:
            state = "document.body ? document.body.innerText : ''"
            peer.until(
                lambda: browser.value(f"!!({script})") is True, f"{script}: {browser.value(state)}"
            )

        said = "byId('said').textContent"
        until("isNews.edit && isNews.saved")
        # A name that the recognition refuses ends the teaching.
        browser.value("byId('name').value = 'unknown'; byId('toggle').click()")
        until("!byId('mark').hidden")
        until(f"{said}.includes('what unknown objects are called') && byId('mark').hidden")
        # The same refusal is told each time.
        for _ in range(2):
            browser.value("say(''); byId('was').value = 'w'; byId('that').requestSubmit()")
            until(f"{said}.startsWith('refused')")
        browser.value("byId('save').click()")
        until(f"{said}.includes('model_file')")
        # What was told before is no news to a page that is opened.
        browser.value("window.before = true; location.reload()")
        until("!window.before && isNews.edit && isNews.saved")
        assert browser.value("isNews.edit.text.startsWith('refused')")
        assert browser.value("isNews.saved.text.includes('model_file')")
        assert browser.value(said) == ""
        # One that has ended before it answered.
        recognition.signal(signal.SIGKILL)
        browser.value("byId('save').click()")
        until(f'{said}.includes("no answer to ~/save") || {said}.includes("isn\'t there")')
        # An order to a page's node that was started again meanwhile.
        process.stop()
        start("objects_page", port=port)
        peer.until(lambda: answers(port), "the page's node again")
        browser.value("begin('mug')")
        until(f"{said}.includes('give it again') && !teaching")


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ({"do": "rename", "label": " a b ", "other": "c"}, "rename a b -> c"),
        ({"do": "merge", "label": "a", "other": "b"}, "merge a -> b"),
        ({"do": "forget", "label": "a -> b"}, "forget a -> b"),
        ({"do": "name", "label": "a"}, "name a"),
        ({"do": "teach", "label": "a"}, ""),
        ({"do": "stop"}, ""),
        ({"do": "save"}, ""),
    ],
)
def test_an_order_that_is_an_edit_is_the_node_s_text(order, text: str) -> None:
    assert edit_of(order) == text


@pytest.mark.parametrize(
    "order",
    [
        {},
        {"do": "reset"},
        {"do": "teach", "label": "  "},
        {"do": "rename", "label": "a", "other": ""},
        {"do": "rename", "label": "a -> b", "other": "c"},
        {"do": "merge", "label": "a", "other": "b -> c"},
        {"do": "teach", "label": "\ud800"},
        {"do": "rename", "label": "a", "other": "b\x00c"},
    ],
)
def test_other_orders_are_refused(order) -> None:
    with pytest.raises(RefusedError):
        edit_of(order)


def test_a_page_pauses_a_folder_and_lets_it_go_on(peer, start, open_page, tmp_path) -> None:
    page = Page(open_page()[1])
    peer.until(lambda: "status" in page.newest, "the page")
    assert page.order("pause") == 422 and "can't pause" in page.told
    for k in range(3):
        Pillow.new("RGB", (40, 30), (80 * k, 0, 0)).save(tmp_path / f"{k}.png")
    start("image_source", source=tmp_path, rate=20.0, wait_for_subscribers=1)
    peer.until(lambda: page.newest.get("source", {}).get("pauses"), "a source that can pause")
    for paused in (True, False):
        assert page.order("pause") == 204
        peer.until(lambda paused=paused: page.newest["source"]["paused"] == paused, "its state")
        peer.spin(0.2)  # the frames on their way
        seen: set[str] = set()
        for _ in range(8):
            peer.spin(0.05)
            seen.add(page.newest["frame"]["jpeg"])
        assert (len(seen) == 1) == paused


def test_a_box_is_drawn_where_it_is_and_one_beyond_the_picture_is_not() -> None:
    encode, grey = jpeg_encoder(100), np.full((150, 200, 3), 90, np.uint8)
    boxes = (None, RegionOfInterest(), RegionOfInterest(x_offset=150, width=2**32 - 1, height=9))
    assert len({encode(grey, box) for box in boxes}) == 1
    box = RegionOfInterest(x_offset=40, y_offset=60, width=80, height=80)
    drawn = np.asarray(Pillow.open(io.BytesIO(encode(grey, box))), int)
    rows, columns = np.nonzero(np.abs(drawn - 90).max(axis=2) > 40)
    found = rows.min(), rows.max(), columns.min(), columns.max()
    assert np.abs(np.array(found) - (30, 70, 20, 60)).max() <= 3  # JPEG blurs


def test_the_curve_is_the_share_of_about_the_last_frames() -> None:
    counts = [(0, 0), (4, 1), (10, 6), (16, 12), (40, 30)]
    # Each point against the oldest count that leaves the window full, or the first one.
    assert curve(counts, 10) == [[4, 1 / 4], [10, 6 / 10], [16, (12 - 1) / 12], [40, 18 / 24]]
    assert curve(counts[:1], 10) == []


def test_the_list_keeps_its_order_and_knows_what_it_leaves_out() -> None:
    values = {"object: b": "3 learned, 0.500 of 2 held out", "object: a": "x", "objects": "2"}
    objects, names = listed(values, ("a", "b"), ["gone", "b"])
    assert objects == {
        "objects": [
            {"name": "b", "learned": "3", "held": "0.500 of 2 held out"},
            {"name": "a", "learned": "", "held": ""},
        ],
        "count": 2,
    }
    assert names == ["b", "a"]
    many, names = listed({**values, "objects": "1000", "objects not listed": "998"}, ("c", "a"))
    assert names == ["a", "b", "c"] and many["count"] == 1000
