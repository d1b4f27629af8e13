"""A web page on this machine alone, with a stream of what is newest, and orders where it may."""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from threading import BoundedSemaphore, Condition, Thread
from types import TracebackType
from typing import Any

from semiparam_dynamics.base.errors import ConfigurationError, SemiparamError

HOST = "127.0.0.1"  # not a parameter: nothing here is for others than this machine's users
MOST_STREAMS = 8
MOST_BYTES = 8192  # of an order
DIGITS = 15  # of a count
Order = Mapping[str, str]
KEEP_ALIVE = 5.0  # s without anything new, after which a comment shows whether the reader is there
SILENT = 3.0  # s, of a node that says something once a second
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
)


class Silence:
    """Says, once a second, that a node which was heard before is not heard any more.

    Else the last that it said of itself would stand on a page for ever, whatever became of it.

    Parameters
    ----------
    node: its name. clock: seconds that never decrease.
    """

    def __init__(self, node: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._node = node
        self._clock = clock
        self._heard: float | None = None
        self._told = 0.0

    def heard(self) -> None:
        """Note that it has said something."""
        self._heard = self._told = self._clock()

    def news(self) -> str:
        """A sentence where it has been silent for `SILENT`, once a second; else nothing."""
        now = self._clock()
        if self._heard is None or now - self._heard < SILENT or now - self._told < 1.0:
            return ""
        self._told = now
        return f"nothing heard from {self._node} for {now - self._heard:.0f} s"


class Feed:
    """The newest event of each name, for any number of readers of any speed. Thread-safe.

    A reader who is slow misses events and delays nobody. After `close` all readers are let go.
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
        """Let all readers go."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()


def finite(value: Any) -> Any:
    """A value for JSON, with None for numbers that are not finite.

    Floats have six digits; those beyond 1000 have three decimals, by which seconds that have been
    counted for days are still milliseconds.
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
    """A whole number that the diagnostics tell; 0 where it is none, or longer than any count is."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= DIGITS else 0


def html_page(name: str = "live.html", token: str | None = None) -> str:
    """A page of the folder web, with its style and scripts in it and a policy to load nothing else.

    token: what its orders have to bring; None where it gives none.
    """
    folder = files("semiparam_dynamics") / "web"
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


class LiveServer:
    """Serves the page at `url` and its feed as server-sent events; a context manager.

    Parameters
    ----------
    feed: what is streamed. port: 0 for any that is free. page: its file in the folder web.
    act: takes an order of the page, in a thread of the server's; a SemiparamError's sentence goes
        back to the page. None: the page is read only.

    A request is answered only where its Host is this machine: a page of somebody else, to whose
    name this address was given, reads nothing. An order is taken only from the page itself: its
    Origin is the Host, and it brings the token that stands in the page. Raises ConfigurationError
    where the port is taken.
    """

    def __init__(
        self,
        feed: Feed,
        port: int,
        page: str = "live.html",
        act: Callable[[Order], None] | None = None,
    ) -> None:
        self._feed = feed
        token = secrets.token_urlsafe(16)
        try:
            handler = _handler(feed, html_page(page, token).encode(), act, token)
            self._server = _Server((HOST, port), handler)
        except OSError as error:
            raise ConfigurationError(
                f"the port {port} of this machine can't be had ({error.strerror}): set another, or "
                "0 for any that is free"
            ) from None
        self._thread = Thread(
            target=self._server.serve_forever, args=(0.1,), name="live page", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self._server.server_address[1]}/"

    def close(self) -> None:
        """End the streams and give up the port."""
        self._feed.close()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> LiveServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a reader may have fallen asleep

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.streams = BoundedSemaphore(MOST_STREAMS)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: readers leave as they like."""


def _handler(
    feed: Feed, page: bytes, act: Callable[[Order], None] | None, token: str
) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server: _Server
        timeout = 10.0  # s that a reader may take for a line, or not take what is sent

        def do_GET(self) -> None:
            if not self._is_here():
                self.send_error(403)
            elif self.path == "/":
                self._begin("text/html; charset=utf-8", len(page))
                self.wfile.write(page)
            elif self.path == "/stream":
                self._stream()
            else:
                self.send_error(404)

        def do_POST(self) -> None:
            if act is None:
                self.send_error(501)
            elif not self._is_the_page():
                self.send_error(403)
            elif self.path != "/order":
                self.send_error(404)
            elif (order := self._order()) is None:
                self.send_error(400)
            else:
                try:
                    act(order)
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
            # A page of somebody else can send this machine requests, but neither with this Origin,
            # nor with a header of its own unless it was asked first, nor with the token.
            given = self.headers.get("X-Token", "").encode("latin-1", "replace")
            mine = self.headers.get("Origin") == f"http://{self.headers.get('Host')}"
            return self._is_here() and mine and secrets.compare_digest(given, token.encode())

        def _order(self) -> dict[str, str] | None:
            """The body, an object of texts; None where it is anything else, or too long."""
            length = self.headers.get("Content-Length", "")
            if not (length.isascii() and length.isdecimal() and int(length) <= MOST_BYTES):
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
                while not feed.closed:
                    count, events = feed.after(count, KEEP_ALIVE)
                    text = "".join(f"event: {name}\ndata: {data}\n\n" for name, data in events)
                    self.wfile.write((text or ":\n\n").encode())
            finally:
                self.server.streams.release()

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing: a node's log is not for this."""

    return Handler
