"""A headless Chromium that opens pages, over its debugging protocol on a pair of pipes."""

from __future__ import annotations

import base64
import fcntl
import io
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)
# Chromium reads commands from descriptor 3 and writes to 4.
LAUNCH = (
    "import os, sys; r, w, *c = sys.argv[1:]; os.dup2(int(r), 3); os.dup2(int(w), 4); "
    "os.execv(c[0], c)"
)
TIMEOUT = 60.0  # s for an answer: far more than any takes


class BrowserError(Exception):
    """An order that the browser did not take."""


class Browser:
    """A browser with one page, which may never end loading. Skips the test where there is none.

    Attributes
    ----------
    complaints: what the page wrote to the console: errors, warnings, blocked content.
    requests: addresses that the page asked for, its own among them.
    """

    def __init__(self, profile: Path, url: str = "about:blank") -> None:
        path = next((found for name in NAMES if (found := shutil.which(name))), None)
        if path is None:
            pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (*os.pipe(), *os.pipe())]
        read, self._out, self._in, write = ends
        command = [path, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(read), str(write), *command],
            pass_fds=(read, write),
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        self._buffer, self._count = b"", 0
        self._session: dict[str, str] = {}
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url=url)["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(TIMEOUT)
        os.close(self._out)
        os.close(self._in)

    def open(self, page: Path, width: int, height: int = 900) -> None:
        """Load a page in a window of this size, in CSS pixels."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.complaints.clear()
        self.requests.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self._loaded = False
        self.call("Page.navigate", url=page.as_uri())
        while not self._loaded:
            self._receive()
        # What is loaded late, or not at all, is known once all fonts are there and a frame drawn.
        self.evaluate("document.fonts.ready.then(() => new Promise(requestAnimationFrame))")

    def evaluate(self, expression: str) -> Any:
        """What JavaScript says about the page, as JSON has it; a promise is waited for."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def value(self, expression: str) -> Any:
        """The present value of an expression; a page that is loaded anew is asked again."""
        while True:
            try:
                found: Mapping[str, Any] = self.call("Runtime.evaluate", expression=expression)
            except BrowserError as error:
                if "navigated" not in str(error) and "context" not in str(error):
                    raise
                continue
            return found["result"].get("value")

    def screenshot(self, **how: object) -> bytes:
        """The page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", **how)["data"])

    def picture(self, x: float, y: float, width: float, height: float) -> np.ndarray:
        """A part of the page, in CSS pixels from its top left: (rows, columns, 3) from 0 to 1."""
        clip = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
        shot = self.screenshot(captureBeyondViewport=True, clip=clip)
        image: np.ndarray = imread(io.BytesIO(shot), format="png")
        return image[..., :3]

    def call(self, method: str, **parameters: object) -> Any:
        """Give a command and return its result; what happens meanwhile is noted."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters, **self._session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._count:
            pass
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + TIMEOUT
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], deadline - time.monotonic())
            assert ready, "the browser doesn't answer"
            part = os.read(self._in, 1 << 20)
            assert part, "the browser has ended"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, about: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event == "Log.entryAdded":
            self.complaints.append(about["entry"]["text"])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(about["exceptionDetails"]["text"])
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(str(about["args"]))
