"""Frames of films and folders that are written here, so that each frame is known."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from sklearn.datasets import load_digits

from semiparam_dynamics.base.errors import ConfigurationError, MissingExtraError
from semiparam_dynamics.recognition import frames as module
from semiparam_dynamics.recognition.frames import FAILED_READS, open_frames

Image = pytest.importorskip("PIL.Image", reason="needs the extra 'vision'")
COUNT = 24


def shade(frame: int) -> np.ndarray:
    """Red grows with the frame's number; green and blue tell whether channels are in order."""
    return np.full((48, 64, 3), (10 * frame, 60, 120), np.uint8)


def numbers(frames) -> list[int]:
    """The frames' numbers, as their red tells them after compression."""
    shown = list(frames.once())
    for picture in shown:
        assert picture.dtype == np.uint8 and picture.shape[2] == 3
        assert abs(int(picture[..., 1].mean()) - 60) < 12
        assert abs(int(picture[..., 2].mean()) - 120) < 12
    return [round(float(picture[..., 0].mean()) / 10) for picture in shown]


def film(path: Path, fps: int = 20) -> Path:
    """A film of `COUNT` frames in what the file's name says."""
    cv2 = pytest.importorskip("cv2", reason="needs the extra 'camera'")
    codec = {".mp4": "mp4v", ".avi": "MJPG"}[path.suffix]
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*codec), fps, (64, 48))
    assert writer.isOpened()
    for k in range(COUNT):
        writer.write(shade(k)[:, :, ::-1])
    writer.release()
    return path


@pytest.mark.parametrize("kind", ["mp4", "avi"])
def test_a_film_has_its_frames_in_order_again_and_again(tmp_path: Path, kind: str) -> None:
    frames = open_frames(str(film(tmp_path / f"film.{kind}")))
    assert frames.rate == pytest.approx(20.0)
    assert numbers(frames) == list(range(COUNT)) == numbers(frames)


def test_at_a_lower_rate_a_film_keeps_its_speed(tmp_path: Path) -> None:
    path = str(film(tmp_path / "film.avi"))
    frames = open_frames(path, rate=8.0)
    assert frames.rate == 8.0
    assert numbers(frames) == [int(n * 20 / 8) for n in range(10)]
    assert open_frames(path, rate=50.0).rate == pytest.approx(20.0)


@pytest.mark.parametrize("kind", ["avi", "png"])
def test_large_frames_are_made_smaller(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"film.{kind}"
    if kind == "png":
        Image.fromarray(shade(3)).save(path)
    else:
        film(path)
    assert next(open_frames(str(path), longest=32).once()).shape == (24, 32, 3)
    assert next(open_frames(str(path), longest=500).once()).shape == (48, 64, 3)


def test_a_folder_has_its_pictures_and_those_of_its_subfolders(tmp_path: Path) -> None:
    for k, name in enumerate(("b.png", "a/z.png", "a/y.bmp", "a.png", ".hidden/c.png")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(shade(k)).save(tmp_path / name)
    (tmp_path / "a0.jpg").write_bytes(b"broken")
    frames = open_frames(str(tmp_path), rate=3.0)
    assert frames.rate == 3.0 and open_frames(str(tmp_path)).rate > 0.0
    assert numbers(frames) == [3, 0, 2, 1]
    assert list(frames.objects) == ["a"]


def test_a_lesson_teaches_each_object_and_shows_what_it_does_not_teach(tmp_path: Path) -> None:
    for k, name in enumerate(("b/0.png", "b/1.png", "b/2.png", "a/0.png", "a/1.png", "c.png")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(shade(k)).save(tmp_path / name)
    lesson = open_frames(str(tmp_path), teach=1).lesson(1)
    shown = [(name, round(float(picture[..., 0].mean()) / 10)) for name, picture in lesson]
    assert shown == [("", 5), ("a", 3), ("", 4), ("b", 0), ("", 1), ("", 2)]
    for source in (tmp_path / "a", tmp_path / "c.png"):
        with pytest.raises(ConfigurationError, match="has no objects to teach"):
            open_frames(str(source), teach=1)
    (tmp_path / "a").rename(tmp_path / "unknown")
    with pytest.raises(ConfigurationError, match="can't be taught, rename it: 'unknown'"):
        open_frames(str(tmp_path), teach=1)


def test_digits_are_there_without_a_file() -> None:
    data = load_digits()
    frames = open_frames("digits", teach=2)
    labels, pictures = zip(*frames.lesson(2), strict=True)
    named = [label for label in labels if label]
    assert named == [name for name in ("zero", "one", "two", "three", "four") for _ in range(2)]
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)
    first = pictures[0]
    assert first.shape == (224, 224, 3) and first.dtype == np.uint8
    assert first[0].min() > 200  # paper at the edge
    edges = np.linspace(0, 224, 13).round().astype(int)  # of the digit's 8 cells and 2 of paper
    cells = [first[a:b, c:d].mean() for a, b in pairwise(edges) for c, d in pairwise(edges)]
    ink = 255.0 - np.reshape(cells, (12, 12))[2:-2, 2:-2]
    drawn = data.images[np.flatnonzero(data.target == 0)[0]]
    assert np.corrcoef(ink.ravel(), drawn.ravel())[0, 1] > 0.98


def test_pictures_of_16_bits_and_cut_out_ones_are_as_a_viewer_shows_them(tmp_path: Path) -> None:
    values = np.array([[0, 0x4000], [0x8000, 0xFFFF]])
    Image.fromarray(values.astype(np.uint16)).save(tmp_path / "16.png")
    cut = np.zeros((2, 2, 4), np.uint8)
    cut[0] = (200, 10, 30, 255)
    Image.fromarray(cut, "RGBA").save(tmp_path / "cut.png")
    grey, shown = open_frames(str(tmp_path)).once()
    assert grey[..., 0].tolist() == (values >> 8).tolist()
    assert shown[0, 0].tolist() == [200, 10, 30] and shown[1, 1].tolist() == [255, 255, 255]


@pytest.mark.parametrize("name", ["no.mp4", "empty", "text.mp4", "text.png", ""])
def test_what_has_no_frames_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    if name.endswith(".mp4"):
        pytest.importorskip("cv2", reason="needs the extra 'camera'")
    (tmp_path / "empty").mkdir()
    for text in ("text.mp4", "text.png"):
        (tmp_path / text).write_text("no film")
    source = str(tmp_path / name) if name else ""
    with pytest.raises(ConfigurationError, match=name or "no camera, file or folder"):
        open_frames(source)


def test_a_film_that_ends_in_the_middle_ends_there(tmp_path: Path) -> None:
    whole = film(tmp_path / "film.avi").read_bytes()
    (tmp_path / "film.avi").write_bytes(whole[: len(whole) * 7 // 8])
    seen = numbers(open_frames(str(tmp_path / "film.avi")))
    assert seen == list(range(len(seen))) and 0 < len(seen) < COUNT


def test_a_camera_that_is_not_there_is_named(tmp_path: Path) -> None:
    pytest.importorskip("cv2", reason="needs the extra 'camera'")
    frames = open_frames("/dev/video987")
    assert frames.rate == 0.0
    with pytest.raises(ConfigurationError, match="/dev/video987"):
        next(frames.once())


def test_a_link_to_a_camera_is_that_camera(tmp_path: Path, monkeypatch) -> None:
    """As in /dev/v4l/by-id; the device is another one here."""
    pytest.importorskip("cv2", reason="needs the extra 'camera'")
    (tmp_path / "usb-front").symlink_to("/dev/null")
    opened = []
    monkeypatch.setattr(module, "_capture", lambda source: opened.append(source) or Camera())
    frames = open_frames(str(tmp_path / "usb-front"))
    assert frames.rate == 0.0 and next(frames.once()).shape == (48, 64, 3)
    assert opened == ["/dev/null"]


def test_a_single_photograph_is_turned_upright(tmp_path: Path) -> None:
    tag = Image.Exif()
    tag[0x0112] = 6
    Image.fromarray(shade(3)).save(tmp_path / "photo.jpg", exif=tag)
    assert next(open_frames(str(tmp_path / "photo.jpg")).once()).shape == (64, 48, 3)


class Camera:
    """A camera of OpenCV's that misses every third frame, and is unplugged after `COUNT`."""

    def __init__(self) -> None:
        self.frame = self.tries = 0
        self.released = False

    def isOpened(self) -> bool:  # OpenCV's name
        return True

    def set(self, *_: float) -> bool:
        return True

    def grab(self) -> bool:
        self.tries += 1
        if self.tries % 3 == 0 or self.frame == COUNT:
            return False
        self.frame += 1
        return True

    def retrieve(self) -> tuple[bool, np.ndarray]:
        return True, shade(self.frame - 1)[:, :, ::-1]

    def release(self) -> None:
        self.released = True


def test_a_camera_that_is_unplugged_is_told_and_given_up(monkeypatch) -> None:
    pytest.importorskip("cv2", reason="needs the extra 'camera'")
    camera = Camera()
    monkeypatch.setattr(module, "_capture", lambda source: camera)
    shown = open_frames("0").once()
    seen = [round(float(next(shown)[..., 0].mean()) / 10) for _ in range(COUNT)]
    assert seen == list(range(COUNT))
    tries = camera.tries
    with pytest.raises(ConfigurationError, match="camera 0 gives no more frames"):
        next(shown)
    assert camera.released and camera.tries == tries + FAILED_READS


def test_without_opencv_a_film_names_the_extra_and_pictures_do(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    (tmp_path / "film.mp4").touch()
    for source in (str(tmp_path / "film.mp4"), "/dev/video0"):
        with pytest.raises(MissingExtraError, match="pip install opencv-python-headless"):
            open_frames(source)
    Image.fromarray(shade(7)).save(tmp_path / "a.png")
    assert numbers(open_frames(str(tmp_path))) == [7]


def test_a_camera_whose_frames_cannot_be_decoded_is_given_up(monkeypatch) -> None:
    pytest.importorskip("cv2", reason="needs the extra 'camera'")
    camera = Camera()
    monkeypatch.setattr(camera, "grab", lambda: True)
    monkeypatch.setattr(camera, "retrieve", lambda: (False, None))
    monkeypatch.setattr(module, "_capture", lambda source: camera)
    with pytest.raises(ConfigurationError, match="camera 0 gives no more frames"):
        next(open_frames("0").once())


def test_a_camera_that_hangs_is_told(monkeypatch) -> None:
    pytest.importorskip("cv2", reason="needs the extra 'camera'")
    camera, go_on = Camera(), Event()
    monkeypatch.setattr(camera, "grab", go_on.wait)
    monkeypatch.setattr(module, "_capture", lambda source: camera)
    monkeypatch.setattr(module, "CAMERA_TIMEOUT", 0.05)
    with pytest.raises(ConfigurationError, match="camera 0 has not answered for 0.05 s"):
        next(open_frames("0").once())
    assert not camera.released  # that would hang, too
    go_on.set()
