"""Draw objects on a desk into a video, teach them on the page, and take the page's picture.

python tools/objects_page.py OUT writes OUT/desk.mp4, unless it is there, and, where there is
Chromium, OUT/objects_*.png: real nodes, the video at its own speed, the mouse held on the page's
button while each object is in view. It needs the extras ros, vision and camera.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

ROOT = Path(__file__).resolve().parent.parent
WIDTH, HEIGHT, FPS = 640, 480, 10
SECONDS = 5  # that an object is in view
SIDE = 4 * 280  # pixels of a drawing, some six times what it has in the video
Draw = Callable[[ImageDraw.ImageDraw], None]
Picture = npt.NDArray[np.uint8]


def mug(pen: ImageDraw.ImageDraw) -> None:
    """Draw a mug with a band."""
    pen.arc((660, 400, 960, 760), 0, 360, (190, 60, 50), 70)
    pen.rounded_rectangle((260, 280, 780, 880), 70, (210, 75, 60))
    pen.rectangle((260, 470, 780, 600), (240, 226, 200))
    pen.ellipse((260, 220, 780, 350), (165, 50, 42))
    pen.ellipse((300, 240, 740, 335), (70, 40, 30))


def book(pen: ImageDraw.ImageDraw) -> None:
    """Draw a closed book with two lines of a title."""
    pen.rounded_rectangle((280, 190, 860, 950), 20, (28, 66, 120))
    pen.rectangle((310, 900, 850, 935), (240, 238, 228))
    pen.rectangle((280, 190, 350, 950), (20, 48, 92))
    for top, width in ((360, 380), (440, 280)):
        pen.rectangle((410, top, 410 + width, top + 40), (222, 190, 90))


def banana(pen: ImageDraw.ImageDraw) -> None:
    """Draw a banana as an arc that is thin at its ends."""
    for k in np.linspace(0.0, 1.0, 160):
        angle = np.pi * (0.08 + 0.84 * k)
        x, y = 560 + 380 * np.cos(angle), 330 + 380 * np.sin(angle)
        r = 20 + 85 * np.sin(np.pi * k) ** 0.6
        color = (238, 200, 50) if 0.04 < k < 0.96 else (90, 70, 30)
        pen.ellipse((x - r, y - r, x + r, y + r), color)


def ball(pen: ImageDraw.ImageDraw) -> None:
    """Draw a football."""
    pen.ellipse((230, 230, 890, 890), (245, 245, 242), (60, 60, 60), 10)
    around = ((560, 270), (300, 470), (820, 470), (400, 820), (720, 820))
    for x, y, r in ((560, 560, 120), *((x, y, 85) for x, y in around)):
        points = [(x + r * np.cos(a), y + r * np.sin(a)) for a in np.linspace(0, 2 * np.pi, 6)]
        pen.polygon(points, (35, 35, 40))


def key(pen: ImageDraw.ImageDraw) -> None:
    """Draw a key."""
    pen.arc((180, 400, 500, 720), 0, 360, (168, 150, 96), 80)
    pen.rectangle((480, 525, 960, 595), (168, 150, 96))
    for left, length in ((780, 120), (880, 160)):
        pen.rectangle((left, 590, left + 50, 590 + length), (168, 150, 96))


def scissors(pen: ImageDraw.ImageDraw) -> None:
    """Draw scissors, half open."""
    for tip, (x, y) in (((430, 150), (740, 840)), ((690, 150), (380, 840))):
        pen.line((tip, (x, y - 100)), (186, 190, 196), 58)
        pen.arc((x - 130, y - 130, x + 130, y + 130), 0, 360, (30, 150, 120), 58)
    pen.ellipse((530, 470, 590, 530), (90, 90, 95))


TAUGHT: dict[str, Draw] = {"mug": mug, "book": book, "banana": banana, "ball": ball, "key": key}
UNKNOWN: dict[str, Draw] = {"scissors": scissors}


def desk(rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """A wooden desk's colours, (HEIGHT, WIDTH, 3)."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    grain = sum(np.sin(y / s + 3 * np.sin(x / (31 * s) + p)) for s, p in ((3.1, 0.4), (7.7, 2.0)))
    wood: npt.NDArray[np.float64] = np.array([168.0, 132.0, 96.0]) + 6.0 * grain[..., None]
    return wood + rng.normal(0.0, 2.0, (HEIGHT, WIDTH, 1))


def frames(draw: Draw, rng: np.random.Generator) -> list[Picture]:
    """An object for `SECONDS`: turned, moved, nearer and farther, in other light, with noise."""
    sheet = Image.new("RGBA", (SIDE, SIDE))
    draw(ImageDraw.Draw(sheet))
    ground, (turn, phase) = desk(rng), rng.uniform(0.0, 2.0 * np.pi, 2)
    light = rng.uniform(0.75, 1.1)
    made = []
    for k in range(SECONDS * FPS):
        t = phase + 2.0 * np.pi * k / (SECONDS * FPS)
        size = round(200 * (1.0 + 0.15 * np.sin(2.0 * t)))
        turned = sheet.rotate(np.degrees(0.5 * np.sin(t + turn)), Image.Resampling.BICUBIC)
        small = turned.resize((size, size), Image.Resampling.LANCZOS)
        corner = (
            round((WIDTH - size) / 2 + 140 * np.sin(t + 1.0)),
            round((HEIGHT - size) / 2 + 60 * np.cos(1.3 * t)),
        )
        picture = Image.fromarray(np.clip(ground, 0, 255).astype(np.uint8)).convert("RGBA")
        shadow = Image.new("RGBA", picture.size)
        dark = Image.new("RGBA", small.size, (20, 14, 8, 120))
        shadow.paste(dark, (corner[0] + 14, corner[1] + 16), small)
        picture = Image.alpha_composite(picture, shadow.filter(ImageFilter.GaussianBlur(9)))
        picture.alpha_composite(small, corner)
        pixels = np.asarray(picture.convert("RGB")).astype(float)
        y, x = np.mgrid[:HEIGHT, :WIDTH]
        lamp = light * (1.08 - 0.3 * np.hypot(x / WIDTH - 0.4, y / HEIGHT - 0.4))[..., None]
        pixels = pixels * lamp + rng.normal(0.0, 5.0, pixels.shape)
        made.append(np.clip(pixels, 0, 255).astype(np.uint8))
    return made


def write_video(path: Path) -> None:
    """Write all objects, one after another, twice, and at the end the one that is not taught."""
    import cv2

    part = path.with_name(f"part_{path.name}")  # what is interrupted is not taken for the video
    film = cv2.VideoWriter(str(part), cv2.VideoWriter_fourcc(*"mp4v"), FPS, (WIDTH, HEIGHT))
    rng = np.random.default_rng(0)
    for draw in (*TAUGHT.values(), *TAUGHT.values(), *UNKNOWN.values()):
        for picture in frames(draw, rng):
            film.write(picture[:, :, ::-1])
    film.release()
    part.replace(path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the video, and the pictures of the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="folder of what is written")
    out: Path = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    if not (video := out / "desk.mp4").exists():
        write_video(video)
    if shutil.which("chromium") is None:
        print("the page's pictures need chromium")
        return
    show(out)


def show(out: Path) -> None:
    """Play the video to the nodes, teach on the page in a browser, and take its picture."""
    import rclpy
    from rclpy.executors import ExternalShutdownException

    sys.path.insert(0, str(ROOT))  # the browser is the tests'
    from semiparam_dynamics.base.nodes import processes, runtime
    from semiparam_dynamics.recognition.nodes.image_source import ImageSourceNode
    from test.browser import Browser  # type: ignore[import-not-found]

    processes.use_own_network()
    port = processes.free_port(8701)
    options = {"source": out / "desk.mp4", "wait_for_subscribers": 2, "loop": "false"}
    words = [word for key, value in options.items() for word in ("-p", f"{key}:={value}")]
    rclpy.init(args=["tool", "--ros-args", *words])
    with (
        processes.NodeProcess(
            "object_recognition",
            {
                "reliable": "true",
                "region": "moving",
                "model_file": out / "objects.npz",
                "autoload": "false",
            },
            out / "recognition.log",
        ),
        processes.NodeProcess("objects_page", {"reliable": "true", "port": port}, out / "page.log"),
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
    ):
        while not processes.answers(port):
            time.sleep(0.1)
        url = f"http://127.0.0.1:{port}/"
        with Browser(Path(folder), url) as browser:
            node, executor = ImageSourceNode(), runtime.make_executor()
            executor.add_node(node)

            def play() -> None:
                with suppress(ExternalShutdownException):
                    node.play(executor)

            def shown() -> int:
                if not rclpy.ok():
                    raise SystemExit("interrupted")
                return int(node.shown)

            playing = Thread(target=play)
            playing.start()
            try:
                teach(browser, shown, out)
            finally:
                rclpy.try_shutdown()
                playing.join()


DESKTOP, PHONE = (1280, 1020), (390, 1670)  # pixels of the pictures
MIDDLE = (
    """(r => `${r.x + r.width / 2} ${r.y + r.height / 2}`)(byId('hold').getBoundingClientRect())"""
)


def teach(browser: Any, shown: Callable[[], int], out: Path) -> None:
    """Hold the page's button while each object is in view the first time; then only look."""
    each = SECONDS * FPS

    def resize(size: tuple[int, int]) -> None:
        shape = {"width": size[0], "height": size[1], "mobile": size[0] < 600}
        browser.call("Emulation.setDeviceMetricsOverride", deviceScaleFactor=1, **shape)

    def until(frame: int) -> None:
        while shown() < frame:
            time.sleep(0.02)

    def press(kind: str) -> None:
        x, y = map(float, browser.value(MIDDLE).split())
        at = {"x": x, "y": y, "button": "left", "clickCount": 1}
        browser.call("Input.dispatchMouseEvent", type=kind, **at)

    def picture(name: str, size: tuple[int, int] = DESKTOP) -> None:
        resize(size)
        (out / f"objects_{name}.png").write_bytes(browser.screenshot())
        resize(DESKTOP)

    resize(DESKTOP)
    for k, name in enumerate(TAUGHT):
        until(each * k + 5)
        browser.value(f"byId('name').value = '{name}'")
        press("mousePressed")
        if k == len(TAUGHT) - 2:
            until(each * k + each // 2)
            picture("taught")
        until(each * (k + 1) - 5)
        press("mouseReleased")
    said = {}
    for k, name in enumerate((*TAUGHT, *UNKNOWN), len(TAUGHT)):
        until(each * k + 15)
        if k == len(TAUGHT) + 2:
            picture("phone", PHONE)
        if name in UNKNOWN:
            picture("unknown")
        until(each * (k + 1) - 3)
        said[name] = browser.value("byId('answer').textContent")
    print(said)


if __name__ == "__main__":
    main()
