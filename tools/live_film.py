"""Film the live page while the demo runs: twenty seconds that show a minute of learning.

python tools/live_film.py OUT.webp runs `semiparam demo`, opens its page in a headless Chromium,
takes pictures of it and writes them as a moving WebP, three times as fast as it was. It needs
Chromium and the extras ros and sim.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 60.0  # of motion
FASTER, FPS = 3.0, 5.0  # the film is so much shorter, and has so many pictures a second
WINDOW = {"width": 1280, "height": 790, "deviceScaleFactor": 1, "mobile": False}
WIDTH = 960  # pixels of the film


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and write the film."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT.webp")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of motion (default 60)")
    options = parser.parse_args(arguments)
    if shutil.which("chromium") is None:
        sys.exit("the film needs chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        frames = film(Path(name), options.seconds)
    print(f"{len(frames)} pictures")
    frames[0].save(
        options.out,
        save_all=True,
        append_images=frames[1:],
        duration=round(1000.0 / FPS),
        loop=0,
        quality=50,
        method=4,
    )
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.1f} MB")
    return 0


def film(folder: Path, seconds: float) -> list[Image.Image]:
    """The page's pictures, from the demo's beginning to its end."""
    sys.path.insert(0, str(ROOT))  # the browser is the tests'
    from semiparam_dynamics.base.nodes import processes
    from test.browser import Browser  # type: ignore[import-not-found, unused-ignore]

    port = processes.free_port(8710)
    program = [sys.executable, "-m", "semiparam_dynamics.offline.cli.main", "demo"]
    words = ["--seconds", f"{seconds:g}", "--out", str(folder / "demo"), "--page-port", str(port)]
    frames: list[Image.Image] = []
    with subprocess.Popen([*program, *words], stdout=subprocess.DEVNULL) as demo:
        while not processes.answers(port):
            if demo.poll() is not None:
                sys.exit("the demo ended before its page was there")
            time.sleep(0.05)
        with Browser(folder / "browser", f"http://127.0.0.1:{port}/") as browser:
            browser.call("Emulation.setDeviceMetricsOverride", **WINDOW)
            browser.call("Emulation.setScrollbarsHidden", hidden=True)
            begun = r"/\d samples learned/.test(document.body.innerText)"
            while demo.poll() is None and not browser.value(begun):
                time.sleep(0.05)
            due = time.monotonic()
            end = due + seconds
            while due < end and demo.poll() is None:
                shot = browser.screenshot()
                image = Image.open(io.BytesIO(shot)).convert("RGB")
                frames.append(image.resize((WIDTH, WIDTH * image.height // image.width)))
                due += FASTER / FPS
                time.sleep(max(0.0, due - time.monotonic()))
        demo.wait(300.0)
    if not frames:
        sys.exit("no picture was taken")
    return frames


if __name__ == "__main__":
    sys.exit(main())
