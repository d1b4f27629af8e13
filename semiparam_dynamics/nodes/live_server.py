"""A web page that is read only, on this machine alone, with a stream of what is newest."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from threading import Condition, Thread
from types import TracebackType
from typing import Any

from semiparam_dynamics.errors import ConfigurationError

HOST = "127.0.0.1"  # not a parameter: nothing here is for others than this machine's users
MOST_STREAMS = 8
KEEP_ALIVE = 5.0  # s without anything new, after which a comment shows whether the reader is there
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
)


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
    """A value for JSON, with None for numbers that are not finite, floats to six digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(inner) for inner in value]
    return value


def html_page() -> str:
    """The page, with its style and script in it and a policy that lets it load nothing else."""
    folder = files("semiparam_dynamics") / "web"
    nonce = secrets.token_urlsafe(16)
    parts = {
        "@POLICY@": POLICY.format(nonce=nonce),
        "@NONCE@": nonce,
        "@SCENE@": (folder / "scene.js").read_text(encoding="utf-8"),
    }
    text = (folder / "live.html").read_text(encoding="utf-8")
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return text


class LiveServer:
    """Serves the page at `url` and its feed as server-sent events; a context manager.

    Parameters
    ----------
    feed: what is streamed. port: 0 for any that is free.

    Only GET is answered, and only where the request's Host is this machine: a page of somebody
    else, to whose name this address was given, reads nothing. Raises ConfigurationError where the
    port is taken.
    """

    def __init__(self, feed: Feed, port: int) -> None:
        self._feed = feed
        try:
            self._server = _Server((HOST, port), _handler(feed, html_page().encode()))
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
    streams = 0

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: readers leave as they like."""


def _handler(feed: Feed, page: bytes) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server: _Server
        timeout = 10.0  # s that a reader may take for a line, or not take what is sent

        def do_GET(self) -> None:
            name = self.headers.get("Host", "").rpartition(":")[0]
            if name not in (HOST, "localhost"):
                self.send_error(403)
            elif self.path == "/":
                self._begin("text/html; charset=utf-8", len(page))
                self.wfile.write(page)
            elif self.path == "/stream":
                self._stream()
            else:
                self.send_error(404)

        def _begin(self, kind: str, length: int | None = None) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            if length is not None:
                self.send_header("Content-Length", str(length))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("X-Frame-Options", "DENY")
            self.end_headers()

        def _stream(self) -> None:
            if self.server.streams >= MOST_STREAMS:
                self.send_error(503, "too many readers")
                return
            self.server.streams += 1
            try:
                self._begin("text/event-stream")
                count = 0
                while not feed.closed:
                    count, events = feed.after(count, KEEP_ALIVE)
                    text = "".join(f"event: {name}\ndata: {data}\n\n" for name, data in events)
                    self.wfile.write((text or ":\n\n").encode())
            finally:
                self.server.streams -= 1

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing: a node's log is not for this."""

    return Handler
