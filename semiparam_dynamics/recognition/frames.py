"""Frames of a camera, a video file or a folder of pictures, one after another, without any ROS."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.errors import ConfigurationError, MissingExtraError
from semiparam_dynamics.recognition.pictures import (
    SUFFIXES,
    picture_files,
    read_picture,
    to_rgb,
)

Picture = npt.NDArray[np.uint8]
STILLS = (".gif", ".webp", ".apng", *SUFFIXES)  # of which some are animated
PICTURES_A_SECOND = 5.0  # of a folder's, which have no times
SLOWEST, FASTEST = 0.1, 240.0  # frames a second that a file may claim to have
SILENT = 8.0  # s without an answer, after which a camera hangs
FAILED_READS = 10  # of a camera, one after the other, after which it is gone
NEEDED = (
    "a camera or a video needs OpenCV: pip install opencv-python-headless, or your "
    "distribution's python3-opencv"
)


@dataclass(frozen=True)
class Frames:
    """What can be shown, from its beginning as often as wanted.

    rate : frames a second at which it is to be shown; 0 where frames come at their own time.
    once : goes through it; each frame is (H, W, 3) uint8, red, green and blue.
    """

    rate: float
    once: Callable[[], Iterator[Picture]]


def open_frames(source: str, rate: float = 0.0, longest: int = 400) -> Frames:
    """The frames of a camera, a video file or a folder of pictures.

    source: /dev/video0, a link to such a device as /dev/v4l/by-id/ has them, or a camera's number;
        a video file, an animated picture among them; a folder with pictures, or with subfolders
        that have some.
    rate: frames a second; of a video some are passed over, so that it has its own speed. 0, and
        more than it has: as many as it has.
    longest: pixels of the longer side at most; larger ones are made smaller.

    Raises ConfigurationError where there is no such thing, and MissingExtraError without OpenCV
    where it takes that, or without Pillow.
    """
    path = Path(source).expanduser()
    if re.fullmatch(r"/dev/video\d+|\d{1,3}", source) or path.is_char_device():
        # The device that a link leads to.
        device = source if source.isdecimal() else str(path.resolve())
        _opencv()
        return Frames(0.0, lambda: _camera(device, rate, longest))
    if source and path.is_dir():
        return _folder(path, rate, longest)
    if not path.is_file():
        raise ConfigurationError(
            f"there is no camera, file or folder '{source}' to take frames from; a camera is such "
            "as /dev/video0"
        )
    if path.suffix.lower() in STILLS:
        return _animated(path, rate, longest)
    return _video(path, rate, longest)


def _folder(folder: Path, rate: float, longest: int) -> Frames:
    try:
        inside = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
        files = [file for one in (folder, *inside) for file in picture_files(one)]
    except OSError as error:
        raise ConfigurationError(f"can't read the folder {folder}: {error.strerror}") from None
    # Broken ones are left out; some of them must be whole.
    if not any(read_picture(file, longest) is not None for file in files):
        raise ConfigurationError(f"{folder} has no picture that is whole ({', '.join(SUFFIXES)})")

    def once() -> Iterator[Picture]:
        for file in files:
            if (picture := read_picture(file, longest)) is not None:
                yield picture

    return Frames(rate or PICTURES_A_SECOND, once)


def _animated(path: Path, rate: float, longest: int) -> Frames:
    try:
        from PIL import Image, ImageOps, ImageSequence
    except ImportError:
        raise MissingExtraError("reading pictures needs pillow: pip install pillow") from None
    broken: tuple[Any, ...] = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)
    try:
        with Image.open(path) as film:
            film.load()  # a frame's duration is read with it; all are shown for the first's
            own = _credible(1000.0 / float(film.info.get("duration") or 100.0))
    except broken as error:
        raise ConfigurationError(f"{path} can't be read as a picture: {error}") from None
    wanted = min(rate, own) if rate else own

    def once() -> Iterator[Picture]:
        try:
            with Image.open(path) as film:
                due = _Due(own, wanted)
                for frame in ImageSequence.Iterator(film):
                    if due():
                        shown = to_rgb(ImageOps.exif_transpose(frame))
                        shown.thumbnail((longest, longest))
                        yield np.asarray(shown)
        except broken as error:
            raise ConfigurationError(f"{path} ends in the middle of a frame: {error}") from None

    return Frames(wanted, once)


def _video(path: Path, rate: float, longest: int) -> Frames:
    film = _capture(str(path))
    own = _credible(film.get(_opencv().CAP_PROP_FPS))
    readable = film.grab()
    film.release()
    if not readable:
        raise ConfigurationError(f"{path} can't be read as a video")
    wanted = min(rate, own) if rate else own

    def once() -> Iterator[Picture]:
        film = _capture(str(path))
        due = _Due(own, wanted)
        try:
            while film.grab():
                if due():
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
            grabbed = answers.get(timeout=SILENT)
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
            f"the camera {source} has not answered for {SILENT:g} s: its driver hangs"
        ) from None
    finally:
        asked.put(False)
        if not waits:  # it would wait for the driver, too
            camera.release()
    raise ConfigurationError(f"the camera {source} gives no more frames")


class _Due:
    """Tells of each of a film's frames whether it is shown, where `wanted` of `own` a second are.

    Frame n of those shown is frame floor(n own / wanted) of the film.
    """

    def __init__(self, own: float, wanted: float) -> None:
        self._step = own / wanted
        self._frame = self._shown = 0

    def __call__(self) -> bool:
        is_due = self._frame >= math.floor(self._shown * self._step)
        self._frame += 1
        self._shown += is_due
        return is_due


def _credible(rate: float) -> float:
    """Frames a second, where a file says so; 25 where what it says can't be."""
    return rate if SLOWEST <= rate <= FASTEST else 25.0


def _opencv() -> Any:
    try:
        import cv2
    except ImportError:
        raise MissingExtraError(NEEDED, name="cv2") from None
    return cv2


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
