"""Frames of a camera, a video file or pictures, one after another, without any ROS."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.errors import ConfigurationError, RefusedError
from semiparam_dynamics.base.extras import imported
from semiparam_dynamics.recognition.config import RecognitionConfig
from semiparam_dynamics.recognition.labels import checked_label

if TYPE_CHECKING:
    from PIL import Image

Picture = npt.NDArray[np.uint8]
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp")
FOLDER_RATE = 5.0  # pictures a second of a folder, whose pictures have no times
MIN_FILM_RATE, MAX_FILM_RATE = 0.1, 240.0  # frames a second that a file may claim to have
CAMERA_TIMEOUT = 8.0  # s without an answer, after which a camera hangs
FAILED_READS = 10  # of a camera, one after the other, after which it is gone
DIGITS = "digits"  # the source that needs no file
TESTED_PICTURES = 5  # of each object after each one that is taught
NEEDED = (
    "a camera or a video needs OpenCV: pip install opencv-python-headless, or your "
    "distribution's python3-opencv"
)


@dataclass(frozen=True)
class Frames:
    """A source of frames, which can be shown from its beginning as often as wanted.

    rate : frames a second at which it is to be shown; 0 where frames come at their own time.
    once : goes through it; each frame is (H, W, 3) uint8, red, green and blue.
    objects : name -> goes through the pictures of that object, where the source has such.
    background : goes through pictures of no object.
    """

    rate: float
    once: Callable[[], Iterator[Picture]]
    objects: Mapping[str, Callable[[], Iterator[Picture]]] = field(default_factory=dict)
    background: Callable[[], Iterator[Picture]] = lambda: iter(())

    def lesson(self, n_taught: int) -> Iterator[tuple[str, Picture]]:
        """Labels, empty for none, and pictures that teach one object after the other.

        Those of no object come first, without a name. The first `n_taught` pictures of each object
        come under its name. After them, without a name, come some further pictures of all objects
        so far: they are never taught.
        """
        for picture in self.background():
            yield "", picture
        others: list[Iterator[Picture]] = []
        for name, pictures in self.objects.items():
            others.append(pictures())
            for picture in islice(others[-1], n_taught):
                yield name, picture
            for shown in others:
                for picture in islice(shown, TESTED_PICTURES):
                    yield "", picture


def open_frames(source: str, rate: float = 0.0, longest: int = 400, teach: int = 0) -> Frames:
    """The frames of a camera, a video file or a folder of pictures.

    source: /dev/video0, a link to such a device as /dev/v4l/by-id/ has them, or a camera's number;
        a video file; a picture; a folder with pictures, or with subfolders that have some, which
        are objects by their names; digits: scikit-learn's handwritten ones.
    rate: frames a second; of a video some are passed over, so that it has its own speed. 0, and
        more than it has: as many as it has.
    longest: pixels of the longer side at most; larger ones are made smaller.
    teach: pictures of each object that shall be taught, see :meth:`Frames.lesson`.

    Raises ConfigurationError where there is no such thing, no objects to be taught, or one with a
    name that a recognition with the default limits refuses, and MissingExtraError without OpenCV
    where it takes that, or without Pillow.
    """
    frames = _open(source, rate, longest)
    if teach and not frames.objects:
        raise ConfigurationError(
            f"'{source}' has no objects to teach: it takes a folder with a subfolder for each "
            "object, which has its name and its pictures"
        )
    expected = RecognitionConfig()
    for name in frames.objects if teach else ():
        try:
            checked_label(name, expected.limits, expected.unknown)
        except RefusedError as error:
            raise ConfigurationError(
                f"an object of {source} has a name that can't be taught, rename it: {error}"
            ) from None
    return frames


def _open(source: str, rate: float, longest: int) -> Frames:
    if source == DIGITS:
        return _pictures(_digits(), rate)
    path = Path(source).expanduser()
    if re.fullmatch(r"/dev/video\d+|\d{1,3}", source) or path.is_char_device():
        # The device that a link leads to.
        device = source if source.isdecimal() else str(path.resolve())
        _opencv()
        return Frames(0.0, lambda: _camera(device, rate, longest))
    if source and (path.is_dir() or (path.is_file() and path.suffix.lower() in SUFFIXES)):
        return _folder(path, rate, longest)
    if not path.is_file():
        raise ConfigurationError(
            f"there is no camera, file or folder '{source}' to take frames from; a camera is such "
            "as /dev/video0"
        )
    return _video(path, rate, longest)


def _folder(source: Path, rate: float, longest: int) -> Frames:
    """Frames of a folder's pictures and of those in its folders, or of a single picture."""

    def inside(place: Path) -> list[Path]:
        files = [place] if place.is_file() else place.iterdir()
        return sorted(file for file in files if file.suffix.lower() in SUFFIXES)

    def read(files: list[Path]) -> Iterator[Picture]:  # broken ones are left out
        for file in files:
            if (picture := read_picture(file, longest)) is not None:
                yield picture

    try:
        folders = [] if source.is_file() else source.iterdir()
        named = sorted(p for p in folders if p.is_dir() and not p.name.startswith("."))
        files = {one: inside(one) for one in (source, *named)}
    except OSError as error:
        raise ConfigurationError(f"can't read the folder {source}: {error.strerror}") from None
    if not any(True for _ in read([file for some in files.values() for file in some])):
        raise ConfigurationError(f"{source} has no picture that is whole ({', '.join(SUFFIXES)})")
    groups = {one: partial(read, some) for one, some in files.items() if some}
    loose = groups.pop(source, Frames.background)
    return _pictures({one.name: group for one, group in groups.items()}, rate, loose)


def _pictures(
    objects: Mapping[str, Callable[[], Iterator[Picture]]],
    rate: float,
    loose: Callable[[], Iterator[Picture]] = Frames.background,
) -> Frames:
    """Frames of pictures in groups, those without a name first."""

    def once() -> Iterator[Picture]:
        for group in (loose, *objects.values()):
            yield from group()

    return Frames(rate or FOLDER_RATE, once, objects, loose)


def _digits() -> dict[str, Callable[[], Iterator[Picture]]]:
    """Five of scikit-learn's 8 x 8 digits, as dark ink on paper that a camera sees."""
    from sklearn.datasets import load_digits

    pillow = _pillow()
    data = load_digits()
    ink = np.pad(np.round(data.images * (255 / 16)), ((0, 0), (2, 2), (2, 2))).astype(np.uint8)

    def enlarged(digits: Picture) -> Iterator[Picture]:
        for digit in digits:
            image = pillow.fromarray(255 - digit).convert("RGB")
            yield np.asarray(image.resize((224, 224), pillow.Resampling.BICUBIC))

    names = ("zero", "one", "two", "three", "four")
    return {name: partial(enlarged, ink[data.target == k]) for k, name in enumerate(names)}


def _video(path: Path, rate: float, longest: int) -> Frames:
    film = _capture(str(path))
    own = film.get(_opencv().CAP_PROP_FPS)
    if not MIN_FILM_RATE <= own <= MAX_FILM_RATE:
        own = 25.0
    readable = film.grab()
    film.release()
    if not readable:
        raise ConfigurationError(
            f"{path} can't be read as a video: name one that a player shows, such as H.264 in .mp4"
        )
    wanted = min(rate, own) if rate else own

    def once() -> Iterator[Picture]:
        film = _capture(str(path))
        due = _selected(own, wanted)
        try:
            while film.grab():
                if next(due):
                    whole, picture = film.retrieve()
                    if whole:
                        yield _shown(picture, longest)
        finally:
            film.release()

    return Frames(wanted, once)


def _camera(source: str, rate: float, longest: int) -> Iterator[Picture]:
    """A camera's frames as they come, the newest ones; `rate` a second at most."""
    opencv = _opencv()
    camera = _capture(int(source) if source.isdecimal() else source)
    if not camera.isOpened():
        raise ConfigurationError(
            f"the camera {source} can't be opened: is it there (ls /dev/video*), used by another "
            "program, or not this user's (group video)?"
        )
    camera.set(opencv.CAP_PROP_BUFFERSIZE, 1)  # what waits there is old
    # In a thread: no signal is taken by one that waits for a driver which hangs.
    asked: SimpleQueue[bool] = SimpleQueue()
    answers: SimpleQueue[bool] = SimpleQueue()

    def grab() -> None:
        while asked.get():
            answers.put(bool(camera.grab()))

    Thread(target=grab, name="camera", daemon=True).start()
    failed, shown, waits = 0, -math.inf, False
    period = 0.9 / rate if rate else 0.0  # a camera's frames come a little early, too
    try:
        while failed < FAILED_READS:
            waits = True
            asked.put(True)
            grabbed = answers.get(timeout=CAMERA_TIMEOUT)
            waits = False
            if not grabbed:
                failed += 1
                continue
            now = opencv.getTickCount() / opencv.getTickFrequency()
            if now - shown < period:
                continue
            whole, picture = camera.retrieve()
            if not whole:  # as of a damaged stream
                failed += 1
                continue
            failed, shown = 0, now
            yield _shown(picture, longest)
    except Empty:
        raise ConfigurationError(
            f"the camera {source} has not answered for {CAMERA_TIMEOUT:g} s: its driver hangs; "
            "plug it in again"
        ) from None
    finally:
        asked.put(False)
        if not waits:  # it would wait for the driver, too
            camera.release()
    raise ConfigurationError(
        f"the camera {source} gives no more frames: see that it is still plugged in, and start anew"
    )


def _selected(own: float, wanted: float) -> Iterator[bool]:
    """True for each frame of a film that is shown, of which `wanted` of `own` a second are.

    Frame n of those shown is frame floor(n own / wanted) of the film.
    """
    step, shown = own / wanted, 0
    for frame in count():
        is_shown = frame >= math.floor(shown * step)
        shown += is_shown
        yield is_shown


def _opencv() -> Any:
    return imported("cv2", NEEDED)


def _capture(source: str | int) -> Any:
    return _opencv().VideoCapture(source)


def _shown(picture: Any, longest: int) -> Picture:
    """A frame of OpenCV's, blue, green and red, as it is shown."""
    opencv = _opencv()
    height, width = picture.shape[:2]
    if (scale := longest / max(height, width)) < 1.0:
        size = max(1, round(width * scale)), max(1, round(height * scale))
        picture = opencv.resize(picture, size, interpolation=opencv.INTER_AREA)
    shown: Picture = opencv.cvtColor(picture, opencv.COLOR_BGR2RGB)
    return shown


# -------------------------------------------------------------------------------------------------
# Pictures in files.


def _pillow() -> Any:
    return imported("PIL.Image", "reading pictures needs pillow: pip install pillow")


def read_picture(path: Path, longest: int) -> Picture | None:
    """The picture, (H, W, 3) uint8, as a viewer shows it; None if it is broken.

    longest: pixels of its longer side at most. Raises MissingExtraError without Pillow.
    """
    pillow = _pillow()
    from PIL import ImageOps

    try:
        with pillow.open(path) as picture:
            picture.draft("RGB", (longest, longest))  # a large JPEG is decoded to fewer pixels
            upright = _to_rgb(ImageOps.exif_transpose(picture))
            upright.thumbnail((longest, longest))
            return np.asarray(upright)
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError):
        return None


def _to_rgb(picture: Image.Image) -> Image.Image:
    """Convert a picture of Pillow's to RGB, 16 bits to 8 and what is transparent to white.

    Raises ValueError where its numbers are not within 16 bits.
    """
    pillow = _pillow()
    if picture.mode.startswith(("I", "F")):  # Pillow's own conversion cuts these off at 255
        values = np.asarray(picture)
        if not (values.min() >= 0 and values.max() < 2**16):
            raise ValueError("its numbers are not those of a picture of 16 bits")
        made = pillow.fromarray((values.astype(np.int64) >> 8).astype(np.uint8))
    elif picture.has_transparency_data:
        paper = pillow.new("RGBA", picture.size, "white")
        made = pillow.alpha_composite(paper, picture.convert("RGBA"))
    else:
        made = picture
    rgb: Image.Image = made.convert("RGB")
    return rgb
