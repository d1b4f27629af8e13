"""The `objects_page` node: a web page on which objects are taught, and their recognition watched.

It subscribes the frames and what `object_recognition` publishes of them, shows 20 times a
second what is newest, and publishes what is ordered on the page on the topics that any teacher
uses. It runs in a process of its own, so that it takes no time of the recognition's.
"""

from __future__ import annotations

import base64
import io
import re
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.duration import Duration
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image, RegionOfInterest
from std_msgs.msg import Float32, Float32MultiArray, String
from std_srvs.srv import SetBool, Trigger

from semiparam_dynamics.base.errors import ImageError, RefusedError
from semiparam_dynamics.base.extras import imported
from semiparam_dynamics.base.nodes import runtime
from semiparam_dynamics.base.nodes.live_server import (
    MAX_POINTS,
    Order,
    PageNode,
    level_of,
    read_count,
    shown_values,
    watch,
)
from semiparam_dynamics.recognition.backbone import Image as Pixels
from semiparam_dynamics.recognition.backbone import image_array, pillow_image
from semiparam_dynamics.recognition.config import ObjectsPageNodeConfig
from semiparam_dynamics.recognition.labels import ARROW, MAX_MESSAGE, parse_edit
from semiparam_dynamics.samples.nodes.serialized import read

TEXTS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
ANSWERS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
MAX_BARS = 5  # objects whose probabilities are shown
MAX_OBJECTS = 200  # that are listed
# Teaching continues while the page says so, twice a second: a browser that is closed, a button that
# is never released and a network that breaks must not continue it.
HOLD = 1.5  # s
SAVE_TIMEOUT = 5.0  # s after which the page says that ~/save has not answered
END_TIMEOUT = 1.0  # s in which the recognition may receive, at the end, that teaching ends
PICTURE_WIDTH = 480  # pixels at most
JPEG_QUALITY = 80
BOX_COLOR = "#1f5fc4"
OBJECT = "object: "  # begins the diagnostics' entry of each
COUNTS = ("frames taught", "frames taught, recognised before")
SHOWN = (
    "looked at",
    "frames seen",
    "frames recognised",
    "frames dropped",
    "frame p50 [us]",
    "frame p99 [us]",
    "its novelty",
    "probability that it was taught",
    "unknown objects",
    "examples",
    "changes not saved",
    "resumed from",
)


class ObjectsPageNode(PageNode):
    """Subscribes frames and answers, serves the page, and publishes what is ordered there."""

    _config: ObjectsPageNodeConfig

    def __init__(self) -> None:
        super().__init__("objects_page", ObjectsPageNodeConfig, "recognition")
        config = self._config
        self._answers: dict[str, Any] = {}
        self._labels: tuple[str, ...] = ()
        self._teaching = ""
        self._teacher = ""  # the page that teaches: several may be open
        self._refused = ("", "", "")  # a label, the page that taught it, and why it isn't taught
        self._until = 0.0  # when teaching ends unless the page says that it continues
        self._names: list[str] = []  # in the list's order
        self._renamed = ("", "")  # the last one, from and to
        self._counts = [(0, 0)]  # the recognition's, since its start
        self._encode = jpeg_encoder(PICTURE_WIDTH)
        name = config.recognition
        policy = ReliabilityPolicy.RELIABLE if config.reliable else ReliabilityPolicy.BEST_EFFORT
        frames = QoSProfile(depth=2, reliability=policy)
        take = self.take
        self.create_subscription(Image, "image", partial(take, "image"), frames, raw=True)
        for topic, kind in (("label", String), ("confidence", Float32)):
            self.create_subscription(kind, f"{name}/{topic}", partial(self._hear, topic), ANSWERS)
        scores = partial(take, "scores")
        self.create_subscription(Float32MultiArray, f"{name}/scores", scores, ANSWERS, raw=True)
        heard = partial(self._hear, "box")
        self.create_subscription(RegionOfInterest, f"{name}/box", heard, ANSWERS)
        self._label = self.create_publisher(String, "label", TEXTS)
        self._edit = self.create_publisher(String, f"{name}/edit", TEXTS)
        self._save = self.create_client(Trigger, f"{name}/save")
        self._pause = self.create_client(SetBool, "image_source/pause")
        self._paused = False
        self._saving: Any = None  # the answer that is awaited
        self._save_due = 0.0  # s, when the answer is missed
        self._saves = 0
        self._show_saved(True, "")
        self.feed.publish({"status": {**self._status, "values": []}})
        self.serve("objects.html", self._order)

    def update(self) -> None:
        """Publish to the page what has changed."""
        if self._teaching and time.monotonic() > self._until:
            self._teach("")
        if self._saving is not None and time.monotonic() > self._save_due:
            self._save_due = float("inf")
            message = f"no answer to ~/save for {SAVE_TIMEOUT:g} s: has the recognition ended?"
            self._show_saved(False, message)
        if self.check_silence():  # what is taught elsewhere is not known now
            self._show_teaching(self._teaching)
        if (data := self._messages.pop("image", None)) is not None:
            self._show(read(data, Image))
        if (data := self._messages.pop("scores", None)) is not None:
            self._answers["scores"] = read(data, Float32MultiArray)
        if {"label", "confidence"} <= self._answers.keys():  # published one after the other
            self._answer()

    def close(self) -> None:
        """End the page, and the teaching that it began."""
        super().close()
        if self._teaching and self.context.ok():
            self._teach("")
            self._label.wait_for_all_acked(Duration(seconds=END_TIMEOUT))

    # Messages.

    def _hear(self, name: str, message: Any) -> None:
        self.taken += 1
        self._answers[name] = message

    def _show(self, message: Image | None) -> None:
        try:
            if message is None:
                raise ImageError("what came is no image message", "image")
            pixels = image_array(
                message.data, message.height, message.width, message.encoding, message.step
            )
        except ImageError as error:
            self.feed.publish({"frame": {"problem": str(error)}})
            return
        jpeg = base64.b64encode(self._encode(pixels, self._answers.get("box"))).decode()
        there = self._pause.service_is_ready()
        self._paused = self._paused and there  # one that was started again goes on
        self.feed.publish(
            {"frame": {"jpeg": jpeg}, "source": {"pauses": there, "paused": self._paused}}
        )

    def _answer(self) -> None:
        """Show what the newest frame was recognised as, and the likeliest objects."""
        label = self._answers.pop("label").data
        confidence = self._answers.pop("confidence").data
        best: list[list[object]] = []
        scores = self._answers.get("scores")
        if scores is not None:
            self._labels = tuple(one.label for one in scores.layout.dim)
            values = np.asarray(scores.data)
            if len(values) == len(self._labels):
                first = np.argsort(-values, kind="stable")[:MAX_BARS].tolist()
                best = [[self._labels[k], float(values[k])] for k in first]
        known = label in self._labels
        answer = {"label": label, "confidence": confidence, "known": known, "best": best}
        self.feed.publish({"answer": answer})

    def report(self, status: DiagnosticStatus) -> dict[str, object]:
        """The recognition's state and figures; its objects are published by themselves."""
        values = {pair.key: pair.value for pair in status.values}
        old, new = self._renamed
        if OBJECT + new in values and OBJECT + old not in values:
            # It was done: the object keeps its place in the list.
            self._names = [new if name == old else name for name in self._names]
            self._renamed = "", ""
        objects, self._names = listed(values, self._labels, self._names)
        if self._teaching and (why := not_taught(values, self._teaching)):
            # The page learns it when it says the label again.
            self._refused = self._teaching, self._teacher, why
            self._teach("")
        edit = {"text": values.get("last edit", ""), "number": read_count(values.get("edits", ""))}
        self._show_teaching(values.get("label", ""))
        self.feed.publish({"edit": edit, "objects": objects})
        self._count(values)
        shown = shown_values(values, SHOWN)
        return {"level": level_of(status), "message": status.message, "values": shown}

    def _count(self, values: Mapping[str, str]) -> None:
        """Continue the learning curve."""
        taught, known = (read_count(values.get(key, "")) for key in COUNTS)
        if taught < self._counts[-1][0]:  # another run, or a reset
            self._counts = [(0, 0)]
        if taught > self._counts[-1][0]:
            self._counts.append((taught, known))
        if len(self._counts) > MAX_POINTS:
            self._counts = [*self._counts[:-1:2], self._counts[-1]]
        self.feed.publish({"curve": curve(self._counts, self._config.window)})

    # Orders.

    def _order(self, order: Order) -> None:
        """Carry out an order, in a thread of the server's; raises RefusedError if not."""
        with self.turn:
            self._execute(order)

    def _execute(self, order: Order) -> None:
        """Carry out an order. Raises RefusedError with a sentence where it can't be."""
        text, action, page = edit_of(order), order["do"], order.get("page", "")
        label = order.get("label", "").strip()
        others = bool(self._teaching) and page != self._teacher
        # Frames would be learned as two objects; and a rename, merge or forgetting of what another
        # page teaches would last until that page says the old name again.
        if others and (action == "teach" or (action in EDITS and label == self._teaching)):
            raise RefusedError(
                f"'{self._teaching}' is being taught on another page", reason="taught elsewhere"
            )
        if action == "teach":
            if order.get("other") == AGAIN and self._refused[:2] == (label, page):
                raise RefusedError(self._refused[2], reason="not taught")
            # Teaching that continues may wait: its recognition may be starting again.
            if label != self._teaching:
                self._require_subscriber(self._label)
            self._refused = "", "", ""
            self._until = time.monotonic() + HOLD
            self._teacher = page
            self._teach(label)
        elif action == "stop" and not others:
            self._teach("")
        elif action == "save":
            self._ask_to_save()
        elif action == "pause":
            self._ask_to_pause()
        elif action in EDITS:
            self._require_subscriber(self._edit)
            self._edit.publish(String(data=text))
            if action == "rename":
                self._renamed = label, order["other"].strip()

    def _require_subscriber(self, publisher: Any) -> None:
        if not publisher.get_subscription_count():  # it would be lost
            raise RefusedError("the recognition isn't there", reason="recognition")

    def _teach(self, label: str) -> None:
        # Published again while it lasts: a recognition that was started again receives it.
        self._label.publish(String(data=label))
        if not label:
            self._teacher = ""
        if label != self._teaching:
            self._teaching = label
            self._show_teaching(label)

    def _show_teaching(self, label: str) -> None:
        self.feed.publish({"teaching": {"label": label, "page": self._teacher}})

    def _ask_to_pause(self) -> None:
        if not self._pause.service_is_ready():
            raise RefusedError("this source can't pause", reason="source")
        self._paused = not self._paused
        self._pause.call_async(SetBool.Request(data=self._paused))

    def _ask_to_save(self) -> None:
        if self._saving is not None:  # its answer may never come
            self._save.remove_pending_request(self._saving)
            self._saving = None
        if not self._save.service_is_ready():
            self._show_saved(False, "the recognition isn't there")
            return

        def answered(future: Any) -> None:
            if future is self._saving:
                self._saving = None
                answer = future.result()
                self._show_saved(answer.success, answer.message)

        self._saving = self._save.call_async(Trigger.Request())
        self._save_due = time.monotonic() + SAVE_TIMEOUT
        self._saving.add_done_callback(answered)

    def _show_saved(self, done: bool, text: str) -> None:
        self._saves += 1  # by it a page that is opened finds what is no news
        self.feed.publish({"saved": {"done": done, "text": text, "number": self._saves}})


AGAIN = "again"  # in an order to teach with which a page only says that it continues
EDITS = {"rename": 2, "merge": 2, "forget": 1, "name": 1}  # and how many names they have


def edit_of(order: Order) -> str:
    """The text of an order that is an edit, for the topic `~/edit`; empty for any other.

    Raises RefusedError where it is none, or lacks a name.
    """
    action = order.get("do", "")
    if action in ("stop", "save", "pause"):
        return ""
    if action != "teach" and action not in EDITS:
        raise RefusedError(f"there is no order {action[:40]!r}", reason="order")
    names = [order.get(key, "").strip() for key in ("label", "other")][: EDITS.get(action, 1)]
    if not all(names):
        raise RefusedError(f"to {action} needs a name", reason="order")
    if not all(name.isprintable() for name in names):
        raise RefusedError("a name has characters that can't be printed", reason="order")
    if action == "teach":
        return ""
    text = f"{action} {f' {ARROW} '.join(names)}"
    parse_edit(text)
    return text


def not_taught(values: Mapping[str, str], label: str) -> str:
    """The reason, from the diagnostics, why frames under a label are not learned, or nothing."""
    if values.get("label refused") == label[:MAX_MESSAGE]:
        return values.get("label refused: why", "")
    taken = values.get("label") == unicodedata.normalize("NFC", label)
    if taken and values.get("learning") == "false":
        return f"'{label}' is not learned: learning is switched off (~/learn)"
    return ""


def listed(
    values: Mapping[str, str], labels: Sequence[str], before: Sequence[str] = ()
) -> tuple[dict[str, object], list[str]]:
    """Name, examples and held-out accuracy of each object in the diagnostics.

    values: the diagnostics' entries. labels: as the scores have them; with many objects the
    diagnostics name the worst ones only, and the others are listed without figures. before: the
    last list's names, which keep their order; new ones come after them.

    Returns it, and the names in their order.
    """
    found = {k.removeprefix(OBJECT): v for k, v in values.items() if k.startswith(OBJECT)}
    place = {name: k for k, name in enumerate(before)}
    names = set(found) | (set(labels) if "objects not listed" in values else set())
    order = sorted(names, key=lambda name: (place.get(name, len(place)), name))
    objects = []
    for name in order[:MAX_OBJECTS]:
        learned = re.match(r"(\d+) learned, (.*)", found.get(name, ""))
        number, held = learned.groups() if learned else ("", "")
        objects.append({"name": name, "learned": number, "held": held})
    total = max(len(names), read_count(values.get("objects", "")))
    return {"objects": objects, "count": total}, order


def curve(counts: Sequence[tuple[int, int]], window: int) -> list[list[float]]:
    """Points of frames taught and the share of about the last `window` known before learned.

    counts: frames taught and how many of them were recognised before, both only growing.
    """
    points, first = [], 0
    for taught, known in counts[1:]:
        while first + 1 < len(counts) and counts[first + 1][0] <= taught - window:
            first += 1
        since, before = counts[first]
        points.append([float(taught), (known - before) / (taught - since)])
    return points


def jpeg_encoder(width: int) -> Callable[[Pixels, RegionOfInterest | None], bytes]:
    """A function from (H, W, 3) uint8, and a box to be drawn in it, to a JPEG, at most so wide.

    Raises MissingExtraError without Pillow.
    """
    pen = imported("PIL.ImageDraw", "the page's pictures need pillow: pip install pillow")

    def encode(pixels: Pixels, box: RegionOfInterest | None) -> bytes:
        picture = pillow_image(pixels)
        picture.thumbnail((width, 4 * width), reducing_gap=2.0)
        # Pillow would draw for minutes what reaches far beyond the picture.
        if (
            box is not None
            and 0 < box.width + box.x_offset <= pixels.shape[1]
            and 0 < (box.height + box.y_offset) <= pixels.shape[0]
        ):
            scale = picture.width / pixels.shape[1]
            left, top = box.x_offset * scale, box.y_offset * scale
            corners = (left, top, left + box.width * scale, top + box.height * scale)
            for color, line in (("white", 4), (BOX_COLOR, 2)):
                pen.Draw(picture).rectangle(corners, outline=color, width=line)
        out = io.BytesIO()
        picture.save(out, "JPEG", quality=JPEG_QUALITY)
        return out.getvalue()

    return encode


main = partial(runtime.run, "objects_page", ObjectsPageNode, watch)
