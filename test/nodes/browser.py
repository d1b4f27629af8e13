"""A headless Chromium, steered over pipes: a page with an open stream never ends loading."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking"


class BrowserError(Exception):
    """An order that the browser did not take."""


class Browser:
    """One page; a context manager that ends the browser."""

    def __init__(self, program: str, folder: Path, url: str) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        pipes = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'  # which Chromium expects there
        options = [*FLAGS.split(), f"--user-data-dir={folder}", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            ["bash", "-c", pipes, "browser", program, *options],
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._received = b""
        self._count = 0
        self._session: dict[str, str] = {}
        target = self.call("Target.createTarget", url=url)["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}

    def call(self, method: str, **arguments: Any) -> Any:
        """Call a method of the DevTools protocol; returns its result."""
        self._count += 1
        order = {"id": self._count, "method": method, "params": arguments, **self._session}
        os.write(self._out, json.dumps(order).encode() + b"\0")
        while True:
            while b"\0" not in self._received:
                if not (more := os.read(self._in, 1 << 20)):
                    raise EOFError("the browser has ended")
                self._received += more
            text, _, self._received = self._received.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise BrowserError(answer["error"]["message"])
                return answer["result"]

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        while True:
            try:
                found = self.call("Runtime.evaluate", expression=expression)
            except BrowserError as error:
                # A page that is loaded anew takes no question: the new one is asked.
                if "navigated" not in str(error) and "context" not in str(error):
                    raise
                continue
            return found["result"].get("value")

    def picture(self, path: Path, width: int, height: int) -> None:
        """Write the page as PNG at this size of the window, in pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.value("new Promise(done => setTimeout(done, 300))")
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(60.0)
        os.close(self._in)
        os.close(self._out)
