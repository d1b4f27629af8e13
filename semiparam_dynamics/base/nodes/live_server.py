"""A node with a web page for this machine alone: a stream of what is newest, and orders."""

from __future__ import annotations

import json
import math
import secrets
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore, Condition, Lock, Thread
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import uninstall_signal_handlers

from semiparam_dynamics.base.errors import ConfigurationError, SemiparamError
from semiparam_dynamics.base.nodes import parameters

RATE = 20.0  # updates of a page a second at most, whatever the topics' rate
HOST = "127.0.0.1"  # not a parameter: nothing here is for others than this machine's users
MAX_STREAMS = 8  # readers at the same time
MAX_ORDER_BYTES = 8192
MAX_COUNT_DIGITS = 15  # of a count in diagnostics; with more it is no count
CLIENT_TIMEOUT = 10.0  # s that a reader may take for a line, or not take what is sent
KEEP_ALIVE_PERIOD = 5.0  # s without anything new, after which a comment finds readers that left
SILENCE_TIMEOUT = 3.0  # s, of a node that publishes diagnostics once a second
MAX_POINTS = 400  # of a curve of the whole run: every other one goes when there are more
MAX_CALLBACKS = 64  # between two updates
Order = Mapping[str, str]
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
)


class PageNode(Node, ABC):  # type: ignore[misc]
    """A node that shows on its page what another node publishes, and its diagnostics.

    A class of pages subscribes what it needs, calls :meth:`serve` at the end of its making and has
    :meth:`report` and :meth:`update`.

    Parameters
    ----------
    name: the node's. config_type: of its parameters, `port` among them.
    watched: the parameter that names the other node.

    feed : what the page shows. taken : messages that have come. url : where the page is. turn : of
    who uses the node: what answers an order is in a thread of the server's.
    """

    def __init__(self, name: str, config_type: type, watched: str) -> None:
        super().__init__(name)
        self._config: Any = parameters.declare(self, config_type)
        parameters.follow(self, self._config, lambda _: None)
        node = getattr(self._config, watched)
        parameters.check_name(self, watched, node)
        self._watched = self.resolve_topic_name(node)
        self.feed = Feed()
        self.taken = 0
        self.turn = Lock()
        self._messages: dict[str, bytes] = {}  # the newest, serialised
        self._status: dict[str, object] = {"level": 1, "message": f"waiting for {self._watched}"}
        self._heard: float | None = None  # s, when its last diagnostics came
        self._silence_shown = 0.0  # s, when the page last showed its silence
        self._ended = False
        self.create_subscription(
            DiagnosticArray, "/diagnostics", self._diagnosed, QoSProfile(depth=20)
        )

    def serve(self, page: str, act: Callable[[Order], None] | None = None) -> None:
        """Begin to serve a page of the folder web; see :class:`LiveServer`."""
        self._server = LiveServer(self.feed, self._config.port, page, act)
        self.url = self._server.url
        self.get_logger().info(f"open {self.url} in a browser of this machine")

    @abstractmethod
    def report(self, status: DiagnosticStatus) -> dict[str, object]:
        """The event `status` of the watched node's diagnostics."""

    @abstractmethod
    def update(self) -> None:
        """Publish to the page what has changed since the last time."""

    def take(self, name: str, data: bytes) -> None:
        """Keep the newest message of a topic, serialised."""
        self.taken += 1
        self._messages[name] = data

    def _diagnosed(self, message: DiagnosticArray) -> None:
        self.taken += 1
        for status in message.status:
            if status.name == self._watched.removeprefix("/"):
                self._heard = self._silence_shown = time.monotonic()
                self._status = self.report(status)
                self.feed.publish({"status": self._status})

    def check_silence(self) -> bool:
        """Say once a second that the watched node is not heard any more; returns whether it did.

        Otherwise its last status would stay on the page, whatever became of it.
        """
        now = time.monotonic()
        if self._heard is None or now - self._heard < SILENCE_TIMEOUT:
            return False
        if now - self._silence_shown < 1.0:
            return False
        self._silence_shown = now
        message = f"nothing heard from {self._watched} for {now - self._heard:.0f} s"
        self.feed.publish({"status": {**self._status, "level": 1, "message": message}})
        return True

    def watch(self, executor: Executor) -> None:
        """Update the page `RATE` times a second, until shutdown or :meth:`end`."""
        period, due = 1.0 / RATE, time.monotonic()
        while self.context.ok() and not self._ended:
            with self.turn:
                for _ in range(MAX_CALLBACKS):
                    taken = self.taken
                    executor.spin_once(timeout_sec=0.0)
                    if self.taken == taken:
                        break
                self.update()
                due = max(due + period, time.monotonic())
                executor.spin_once(timeout_sec=0.0)
            time.sleep(max(0.0, due - time.monotonic()))

    def end(self) -> None:
        """Have :meth:`watch` return; a signal's handler may call it."""
        self._ended = True

    def close(self) -> None:
        """End the page."""
        self._server.close()


def watch(node: PageNode, executor: Executor) -> int:
    """Run the node until shutdown; returns the exit code."""
    # An executor that wakes at each message would be awake all the time.
    executor.remove_node(node)
    patient = SingleThreadedExecutor()
    patient.add_node(node)
    # rclpy's own handlers take the network down at once: nothing could be published at the end.
    uninstall_signal_handlers()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: node.end())
    try:
        with suppress(ExternalShutdownException):
            node.watch(patient)
    finally:
        patient.shutdown()
        node.close()
    return 0


def level_of(status: DiagnosticStatus) -> int:
    """The level of diagnostics as a number, 0 to 3."""
    return min(int.from_bytes(status.level, "little"), 3)


def shown_values(values: Mapping[str, str], names: Sequence[str]) -> list[list[str]]:
    """Name and value of those of the diagnostics' entries `names` that have one."""
    return [[key, values[key]] for key in names if values.get(key) not in ("nan", "", None)]


# -------------------------------------------------------------------------------------------------
# The server.


class Feed:
    """The newest event of each name, for any number of readers of any speed. Thread-safe.

    A slow reader misses events and delays nobody. `close` releases all readers.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._count = 0
        self._newest: dict[str, tuple[int, str]] = {}
        self.closed = False

    def publish(self, events: Mapping[str, object]) -> None:
        """Replace the events of these names; numbers that are not finite become null."""
        texts = {
            name: json.dumps(finite(value), separators=(",", ":"), allow_nan=False)
            for name, value in events.items()
        }
        with self._changed:
            for name, text in texts.items():
                self._count += 1
                self._newest[name] = self._count, text
            self._changed.notify_all()

    def after(self, count: int, timeout: float) -> tuple[int, list[tuple[str, str]]]:
        """The events after the `count`-th, in order, and how many there were; waits for some."""

        def new() -> bool:
            return self.closed or self._count > count

        with self._changed:
            self._changed.wait_for(new, timeout)
            found = sorted((n, name, text) for name, (n, text) in self._newest.items() if n > count)
            return self._count, [(name, text) for _, name, text in found]

    def close(self) -> None:
        """Release all readers."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()


def finite(value: Any) -> Any:
    """A value for JSON, with None for numbers that are not finite.

    Floats have six digits; those beyond 1000 have three decimals: times are exact to the
    millisecond after days.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return float(f"{value:.6g}") if abs(value) < 1000.0 else round(value, 3)
    if isinstance(value, Mapping):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(inner) for inner in value]
    return value


def read_count(text: str) -> int:
    """A whole number in the diagnostics; 0 where it is none, or longer than any count is."""
    is_count = text.isascii() and text.isdecimal() and len(text) <= MAX_COUNT_DIGITS
    return int(text) if is_count else 0


def html_page(name: str = "live.html", token: str | None = None) -> str:
    """A page of the folder web, with its style and scripts in it and a policy to load nothing else.

    token: which its orders must have; None where it gives none.
    """
    folder = Path(__file__).parents[2] / "web"  # a clone in the working folder has the same name
    nonce = secrets.token_urlsafe(16)
    parts = {"@POLICY@": POLICY.format(nonce=nonce), "@NONCE@": nonce, "@TOKEN@": token or ""}
    parts |= {
        f"@{script.upper()}@": (folder / f"{script}.js").read_text(encoding="utf-8")
        for script in ("scene", "plot")
    }
    text = (folder / name).read_text(encoding="utf-8")
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return text


class LiveServer(ThreadingHTTPServer):
    """Serves the page at `url` and its feed as server-sent events; a context manager.

    Parameters
    ----------
    feed: what is streamed. port: 0 for any that is free. page: its file in the folder web.
    act: takes an order of the page, in a thread of the server's; a SemiparamError's sentence goes
        back to the page. None: the page is read only.

    A request is answered only where its Host is this machine: a foreign page whose name was given
    this address (DNS rebinding) reads nothing. An order is taken only from the page itself: its
    Origin is the Host, and it has the page's token. Raises ConfigurationError where the port is
    taken.
    """

    daemon_threads = True
    block_on_close = False  # a reader may have stalled

    def __init__(
        self,
        feed: Feed,
        port: int,
        page: str = "live.html",
        act: Callable[[Order], None] | None = None,
    ) -> None:
        self.feed, self.act = feed, act
        self.token = secrets.token_urlsafe(16)
        self.page = html_page(page, self.token).encode()
        self.streams = BoundedSemaphore(MAX_STREAMS)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise ConfigurationError(
                f"the port {port} of this machine can't be had ({error.strerror}): set another, or "
                "0 for any that is free"
            ) from None
        self._thread = Thread(target=self.serve_forever, args=(0.1,), name="page", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The page's address."""
        return f"http://{HOST}:{self.server_address[1]}/"

    def close(self) -> None:
        """End the streams and give up the port."""
        self.feed.close()
        self.shutdown()
        self.server_close()
        self._thread.join()

    def __exit__(self, *_: object) -> None:
        self.close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing: readers may leave at any moment."""


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer
    timeout = CLIENT_TIMEOUT

    def do_GET(self) -> None:
        if not self._is_here():
            self.send_error(403)
        elif self.path == "/":
            self._begin("text/html; charset=utf-8", len(self.server.page))
            self.wfile.write(self.server.page)
        elif self.path == "/stream":
            self._stream()
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        if self.server.act is None:
            self.send_error(501)
        elif not self._is_the_page():
            self.send_error(403)
        elif self.path != "/order":
            self.send_error(404)
        elif (order := self._order()) is None:
            self.send_error(400)
        else:
            try:
                self.server.act(order)
            except SemiparamError as error:
                text = str(error).encode()
                self._begin("text/plain; charset=utf-8", len(text), 422)
                self.wfile.write(text)
            else:
                self.send_response(204)
                self.end_headers()

    def _is_here(self) -> bool:
        return self.headers.get("Host", "").rpartition(":")[0] in (HOST, "localhost")

    def _is_the_page(self) -> bool:
        # A foreign page can send this machine requests, but neither with this Origin, nor with
        # a header of its own unless a preflight allowed it, nor with the token.
        given = self.headers.get("X-Token", "").encode("latin-1", "replace")
        mine = self.headers.get("Origin") == f"http://{self.headers.get('Host')}"
        return (
            self._is_here() and mine and secrets.compare_digest(given, self.server.token.encode())
        )

    def _order(self) -> dict[str, str] | None:
        """The body, an object of texts; None where it is anything else, or too long."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal() and int(length) <= MAX_ORDER_BYTES):
            return None
        try:
            order = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            return None
        if not isinstance(order, dict) or not all(isinstance(v, str) for v in order.values()):
            return None
        return order

    def _begin(self, kind: str, length: int | None = None, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()

    def _stream(self) -> None:
        if not self.server.streams.acquire(blocking=False):
            self.send_error(503, "too many readers")
            return
        try:
            self._begin("text/event-stream")
            count = 0
            while not self.server.feed.closed:
                count, events = self.server.feed.after(count, KEEP_ALIVE_PERIOD)
                text = "".join(f"event: {name}\ndata: {data}\n\n" for name, data in events)
                self.wfile.write((text or ":\n\n").encode())
        finally:
            self.server.streams.release()

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: a node's log is not for this."""
