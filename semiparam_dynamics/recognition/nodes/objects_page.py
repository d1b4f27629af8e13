"""The `objects_page` node: a web page on which objects are taught, and their recognition watched.

It subscribes the frames and what `object_recognition` publishes of them, looks `rate` times a
second at what is newest, and publishes what is ordered on the page on the topics that any teacher
uses. Its process is its own, so that it takes no time of the recognition's.
"""

from __future__ import annotations

import base64
import io
import re
import signal
import sys
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.duration import Duration
from rclpy.executors import Executor, ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import uninstall_signal_handlers
from sensor_msgs.msg import Image
from std_msgs.msg import Float32, Float32MultiArray, String
from std_srvs.srv import Trigger

from semiparam_dynamics.base.errors import (
    ImageError,
    MissingExtraError,
    RefusedError,
)
from semiparam_dynamics.base.nodes import parameters, runtime
from semiparam_dynamics.base.nodes.live_server import Feed, LiveServer, Order, Silence, read_count
from semiparam_dynamics.base.nodes.serialized import read
from semiparam_dynamics.learner.nodes.config import ObjectsPageNodeConfig
from semiparam_dynamics.recognition.backbone import Image as Pixels
from semiparam_dynamics.recognition.backbone import image_array
from semiparam_dynamics.recognition.labels import ARROW, MAX_MESSAGE

PAGE = "objects.html"
WORDS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
ANSWERS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
CALLBACKS = 64  # at most, at one look
MOST_ORDERS = 100  # that wait
BEST = 5  # objects whose probabilities are shown
MOST_OBJECTS = 200  # that are listed
MOST_POINTS = 400  # of the learning curve: every other one goes when there are more
# Teaching goes on while the page says so, twice a second: a browser that is closed, a button that
# is never let go and a network that breaks must not teach on.
HOLD = 1.5  # s
SAVING = 5.0  # s after which it is said that no answer to ~/save has come; it may still come
HEARD = 1.0  # s at the end for which the recognition may take to hear that teaching ends
QUALITY = 80  # of the JPEGs
OBJECT = "object: "  # begins the diagnostics' entry of each
FIGURES = ("frames taught", "frames taught, recognised before")
SHOWN = (
    "frames seen",
    "frames recognised",
    "frames dropped",
    "frame p50 [us]",
    "frame p99 [us]",
    "its novelty",
    "probability that it was taught",
    "examples",
    "changes not saved",
    "resumed from",
)


class ObjectsPageNode(Node):  # type: ignore[misc]
    """Subscribes frames and answers, serves the page, and publishes what is ordered there."""

    def __init__(self) -> None:
        super().__init__("objects_page")
        self._config = config = parameters.declare(self, ObjectsPageNodeConfig)
        parameters.follow(self, config, lambda _: None)
        parameters.check_name(self, "recognition", config.recognition)
        self._feed = Feed()
        self._silence = Silence(self.resolve_topic_name(config.recognition))
        self._said: dict[str, object] = {}  # the recognition's last status
        self._orders: SimpleQueue[Order] = SimpleQueue()
        self._messages: dict[str, bytes] = {}
        self._answers: dict[str, Any] = {}
        self._labels: tuple[str, ...] = ()
        self._teaching = ""
        self._teacher = ""  # the page that teaches: several may be open
        self._refused = ("", "", "")  # a label, the page that said it, and why it isn't taught
        self._until = 0.0  # when teaching ends unless the page says that it goes on
        self._ended = False
        self._names: list[str] = []  # in the list's order
        self._renamed = ("", "")  # the last one, from and to
        self._counts = [(0, 0)]  # the recognition's, since its start
        self._encode = jpeg_encoder(config.width)
        self.taken = 0  # messages
        name = config.recognition
        self._status = self.resolve_topic_name(name).removeprefix("/")
        policy = ReliabilityPolicy.RELIABLE if config.reliable else ReliabilityPolicy.BEST_EFFORT
        frames = QoSProfile(depth=2, reliability=policy)
        take = self._take
        self.create_subscription(Image, "image", partial(take, "image"), frames, raw=True)
        for topic, kind in (("label", String), ("confidence", Float32)):
            self.create_subscription(kind, f"{name}/{topic}", partial(self._hear, topic), ANSWERS)
        scores = partial(take, "scores")
        self.create_subscription(Float32MultiArray, f"{name}/scores", scores, ANSWERS, raw=True)
        self.create_subscription(
            DiagnosticArray, "/diagnostics", self._diagnosed, QoSProfile(depth=20)
        )
        self._label = self.create_publisher(String, "label", WORDS)
        self._edit = self.create_publisher(String, f"{name}/edit", WORDS)
        self._save = self.create_client(Trigger, f"{name}/save")
        self._saving: Any = None  # the answer that is awaited
        self._patience = 0.0  # until when nothing is said of it
        self._saves = 0
        self._tell_saved(True, "")
        waiting = f"waiting for {self.resolve_topic_name(name)}"
        self._feed.publish({"status": {"level": 1, "message": waiting, "values": []}})
        self._server = LiveServer(self._feed, config.port, PAGE, self._order)
        self.url = self._server.url
        self.get_logger().info(f"open {self.url} in a browser of this machine")

    def watch(self, executor: Executor) -> None:
        """Look `rate` times a second at what is newest and at what was ordered.

        Until shutdown, or :meth:`end`.
        """
        period, due = 1.0 / self._config.rate, time.monotonic()
        while self.context.ok() and not self._ended:
            for _ in range(CALLBACKS):
                taken = self.taken
                executor.spin_once(timeout_sec=0.0)
                if self.taken == taken:
                    break
            self.look()
            due = max(due + period, time.monotonic())
            executor.spin_once(timeout_sec=0.0)
            time.sleep(max(0.0, due - time.monotonic()))

    def look(self) -> None:
        """Do what was ordered, and publish to the page what has changed."""
        for _ in range(MOST_ORDERS):
            try:
                self._do(self._orders.get_nowait())
            except Empty:
                break
        if self._teaching and time.monotonic() > self._until:
            self._teach("")
        if self._saving is not None and time.monotonic() > self._patience:
            self._patience = float("inf")
            told = f"no answer to ~/save for {SAVING:g} s: has the recognition ended?"
            self._tell_saved(False, told)
        if told := self._silence.news():
            self._said |= {"level": 1, "message": told}
            # What is taught elsewhere, nobody says now.
            teaching = {"label": self._teaching, "page": self._teacher}
            self._feed.publish({"status": self._said, "teaching": teaching})
        if (data := self._messages.pop("image", None)) is not None:
            self._show(read(data, Image))
        if (data := self._messages.pop("scores", None)) is not None:
            self._answers["scores"] = read(data, Float32MultiArray)
        if {"label", "confidence"} <= self._answers.keys():  # published one after the other
            self._answer()

    def end(self) -> None:
        """Have :meth:`watch` return; a signal's handler may call it."""
        self._ended = True

    def close(self) -> None:
        """End the page, and the teaching that it began."""
        self._server.close()
        if self._teaching and self.context.ok():
            self._teach("")
            self._label.wait_for_all_acked(Duration(seconds=HEARD))

    # What comes.

    def _take(self, name: str, data: bytes) -> None:
        self.taken += 1
        self._messages[name] = data

    def _hear(self, name: str, message: Any) -> None:
        self.taken += 1
        self._answers[name] = message

    def _show(self, message: Image | None) -> None:
        try:
            if message is None:
                raise ImageError("what came is no image message")
            pixels = image_array(
                message.data, message.height, message.width, message.encoding, message.step
            )
        except ImageError as error:
            self._feed.publish({"frame": {"problem": str(error)}})
            return
        self._feed.publish({"frame": {"jpeg": base64.b64encode(self._encode(pixels)).decode()}})

    def _answer(self) -> None:
        """What the newest frame was recognised as, and what else it could have been."""
        label = self._answers.pop("label").data
        confidence = self._answers.pop("confidence").data
        best: list[list[object]] = []
        scores = self._answers.get("scores")
        if scores is not None:
            self._labels = tuple(one.label for one in scores.layout.dim)
            values = np.asarray(scores.data)
            if len(values) == len(self._labels):
                first = np.argsort(-values, kind="stable")[:BEST].tolist()
                best = [[self._labels[k], float(values[k])] for k in first]
        known = label in self._labels
        answer = {"label": label, "confidence": confidence, "known": known, "best": best}
        self._feed.publish({"answer": answer})

    def _diagnosed(self, message: DiagnosticArray) -> None:
        self.taken += 1
        for status in message.status:
            if status.name == self._status:
                self._report(status)

    def _report(self, status: DiagnosticStatus) -> None:
        values = {pair.key: pair.value for pair in status.values}
        level = min(int.from_bytes(status.level, "little"), 3)
        shown = [[key, values[key]] for key in SHOWN if values.get(key) not in ("nan", "", None)]
        old, new = self._renamed
        if OBJECT + new in values and OBJECT + old not in values:
            # It was done: the object keeps its place in the list.
            self._names = [new if name == old else name for name in self._names]
            self._renamed = "", ""
        objects, self._names = listed(values, self._labels, self._names)
        if self._teaching and (why := not_taught(values, self._teaching)):
            # The page is told when it says the label again.
            self._refused = self._teaching, self._teacher, why
            self._teach("")
        edit = values.get("last edit", "")
        self._silence.heard()
        self._said = {"level": level, "message": status.message, "values": shown}
        self._feed.publish(
            {
                "status": self._said,
                "teaching": {"label": values.get("label", ""), "page": self._teacher},
                "edit": {"text": edit, "number": read_count(values.get("edits", ""))},
                "objects": objects,
            }
        )
        taught, known = (read_count(values.get(key, "")) for key in FIGURES)
        if taught < self._counts[-1][0]:  # another run, or a reset
            self._counts = [(0, 0)]
        if taught > self._counts[-1][0]:
            self._counts.append((taught, known))
        if len(self._counts) > MOST_POINTS:
            self._counts = [*self._counts[:-1:2], self._counts[-1]]
        self._feed.publish({"curve": curve(self._counts, self._config.window)})

    # What is ordered.

    def _order(self, order: Order) -> None:
        """Take an order, in a thread of the server's. Raises RefusedError with a sentence."""
        edit_of(order)
        if order["do"] != "stop" and self._disturbs(order):
            raise RefusedError(
                f"'{self._teaching}' is being taught on another page", reason="taught elsewhere"
            )
        if why := self._refusal(order):
            raise RefusedError(why, reason="not taught")
        if not self._is_heard(order):
            raise RefusedError("the recognition isn't there", reason="recognition")
        if self._orders.qsize() >= MOST_ORDERS:
            raise RefusedError("too many orders at once", reason="order")
        self._orders.put(order)

    def _disturbs(self, order: Order) -> bool:
        """Whether an order meets the teaching of another page: its frames would be learned as two.

        To rename, merge or forget what is taught there would last until that page says it again.
        """
        if not self._teaching or order.get("page", "") == self._teacher:
            return False
        taught = order["do"] in EDITS and order["label"].strip() == self._teaching
        return taught or order["do"] in ("teach", "stop")

    def _refusal(self, order: Order) -> str:
        """Why teaching that a page goes on with has ended; empty where it has not."""
        if order["do"] != "teach" or order.get("other") != AGAIN:
            return ""
        label, page, why = self._refused
        return why if (label, page) == (order["label"].strip(), order.get("page", "")) else ""

    def _is_heard(self, order: Order) -> bool:
        """Whether anyone subscribes the topic of an order; what is said to no one is lost.

        Teaching that goes on may wait: its recognition may be on its way back.
        """
        if order["do"] == "teach":
            going_on = bool(self._teaching) and order["label"].strip() == self._teaching
            return going_on or self._label.get_subscription_count() > 0
        return order["do"] not in EDITS or self._edit.get_subscription_count() > 0

    def _do(self, order: Order) -> None:
        action = order["do"]
        if self._disturbs(order) or self._refusal(order):  # since it was taken
            return
        if action == "teach":
            self._refused = "", "", ""
            self._until = time.monotonic() + HOLD
            self._teacher = order.get("page", "")
            self._teach(order["label"].strip())
        elif action == "stop":
            self._teach("")
        elif action == "save":
            self._ask_to_save()
        else:
            self._edit.publish(String(data=edit_of(order)))
            if action == "rename":
                self._renamed = order["label"].strip(), order["other"].strip()

    def _teach(self, label: str) -> None:
        # Said again while it lasts: a recognition that was started again hears of it.
        self._label.publish(String(data=label))
        if not label:
            self._teacher = ""
        if label != self._teaching:
            self._teaching = label
            self._feed.publish({"teaching": {"label": label, "page": self._teacher}})

    def _ask_to_save(self) -> None:
        if self._saving is not None:  # its answer may never come
            self._save.remove_pending_request(self._saving)
            self._saving = None
        if not self._save.service_is_ready():
            self._tell_saved(False, "the recognition isn't there")
            return

        def answered(future: Any) -> None:
            if future is self._saving:
                self._saving = None
                answer = future.result()
                self._tell_saved(answer.success, answer.message)

        self._saving = self._save.call_async(Trigger.Request())
        self._patience = time.monotonic() + SAVING
        self._saving.add_done_callback(answered)

    def _tell_saved(self, done: bool, text: str) -> None:
        self._saves += 1  # a page that is opened knows by it what was told before
        self._feed.publish({"saved": {"done": done, "text": text, "number": self._saves}})


AGAIN = "again"  # what an order to teach brings along where the page only says that it goes on
EDITS = {"rename": 2, "merge": 2, "forget": 1, "name": 1}  # and how many names they have


def edit_of(order: Order) -> str:
    """The text of an order that is an edit, for the topic `~/edit`; empty for any other.

    Raises RefusedError where it is none, or lacks a name.
    """
    action = order.get("do", "")
    names = [order.get(key, "").strip() for key in ("label", "other")]
    if action in ("stop", "save"):
        return ""
    if action != "teach" and action not in EDITS:
        raise RefusedError(f"there is no order {action[:40]!r}", reason="order")
    needed = EDITS.get(action, 1)
    if not all(names[:needed]):
        raise RefusedError(f"to {action} needs a name", reason="order")
    if not all(name.isprintable() for name in names):
        raise RefusedError("a name has characters that can't be printed", reason="order")
    if needed == 2 and any(ARROW in name for name in names):
        raise RefusedError(f"a name with '{ARROW}' in it can only be forgotten", reason="order")
    return "" if action == "teach" else f"{action} {f' {ARROW} '.join(names[:needed])}"


def not_taught(values: Mapping[str, str], label: str) -> str:
    """Why frames under a label are not learned, by the recognition's diagnostics; empty if so."""
    if values.get("label refused") == label[:MAX_MESSAGE]:
        return values.get("label refused: why", "")
    taken = values.get("label") == unicodedata.normalize("NFC", label)
    if taken and values.get("learning") == "false":
        return f"'{label}' is not learned: learning is switched off (~/learn)"
    return ""


def listed(
    values: Mapping[str, str], labels: Sequence[str], before: Sequence[str] = ()
) -> tuple[dict[str, object], list[str]]:
    """Name, examples and held-out accuracy of each object that the diagnostics tell of.

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
    for name in order[:MOST_OBJECTS]:
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


def jpeg_encoder(width: int) -> Callable[[Pixels], bytes]:
    """A function from (H, W, 3) uint8 to a JPEG, at most so wide.

    Raises MissingExtraError without Pillow.
    """
    try:
        from PIL import Image as Pillow
    except ImportError:
        raise MissingExtraError("the page's pictures need pillow: pip install pillow") from None

    def encode(pixels: Pixels) -> bytes:
        picture = Pillow.fromarray(np.ascontiguousarray(pixels))
        picture.thumbnail((width, 4 * width), reducing_gap=2.0)
        out = io.BytesIO()
        picture.save(out, "JPEG", quality=QUALITY)
        return out.getvalue()

    return encode


def watch(node: ObjectsPageNode, executor: Executor) -> int:
    """Run the node until shutdown; returns the exit code."""
    # An executor that wakes at each message would be awake all the time.
    executor.remove_node(node)
    # rclpy's own handlers take the network down at once: that teaching ends could not be said.
    uninstall_signal_handlers()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: node.end())
    try:
        with runtime.own_executor(node) as patient:
            node.watch(patient)
    except ExternalShutdownException:
        pass
    finally:
        node.close()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node; returns the exit code."""
    make: Callable[[], ObjectsPageNode] = ObjectsPageNode
    return runtime.run("objects_page", make, watch, arguments)


if __name__ == "__main__":
    sys.exit(main())
