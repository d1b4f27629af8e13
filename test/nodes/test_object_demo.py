"""The live demo of teaching objects: every answer is counted for what was in view."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.base.nodes.processes import write_params
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.offline.cli.main import main
from semiparam_dynamics.recognition.nodes import object_demo

from .conftest import TIMEOUT
from .forks import ForkedNode

COMMAND = [sys.executable, "-m", "semiparam_dynamics.offline.cli.main", "objects"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Three objects that can't be confused: an answer counted for another would be wrong."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = 10.0 * np.eye(3, 16)[y] + rng.normal(size=(90, 16))
    path = tmp_path / "features.npz"
    np.savez(path, X=X, y=y, classes=np.array(["mug", "book", "cup"]))
    return path


def test_all_that_was_shown_is_recognised_and_counted(
    ros_environment, source, tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.setattr(object_demo, "NodeProcess", ForkedNode)

    def write(folder: Path, node: str, config: Any) -> Path:
        # By the clock an answer that comes late would be counted for what is in view by then.
        slow = replace(config, settle=0.5) if node == object_demo.STREAM else config
        return write_params(folder, node, slow)

    monkeypatch.setattr(object_demo, "write_params", write)
    logs = tmp_path / "out" / "log"
    logs.mkdir(parents=True)
    for name in ("mine.log", "object_recognition.log"):
        (logs / name).write_text("was here before\n")
    options = ["--classes", "2", "--rate", "40", "--teach", "12", "--out", str(tmp_path / "out")]
    assert main(["objects", str(source), *options]) == 0
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    assert (logs / "mine.log").read_text() == "was here before\n"
    assert "was here before" not in (logs / "object_recognition.log").read_text()
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["complete"] and results["stray_answers"] == 0
    assert [one["taught"] for one in results["rounds"]] == ["mug", "book"]
    seen, dropped = (int(results["diagnostics"][f"frames {k}"]) for k in ("seen", "dropped"))
    # Of frames that come in a burst the middleware keeps the newest.
    assert results["answers"] == seen - dropped <= 2 * 12 + 10 + 40
    for known, one in enumerate(results["rounds"], 1):
        assert len(one["objects"]) == known
        assert one["right"] == one["asked"]
        # The first picture is recognised before the object's name was ever said.
        assert one["teaching"]["known_from"] == 2
    assert results["diagnostics"]["objects"] == "2"
    lines = told.out.splitlines()
    assert [line.split() for line in lines if line.startswith("  book")] == [
        ["book", "100", "100", "100"]
    ]
    assert "in the end nothing was confused" in lines


def test_ctrl_c_ends_it_early_and_keeps_what_was_seen(ros_environment, source, tmp_path) -> None:
    script = tmp_path / "script.txt"
    script.write_text("teach cup 5\nask 3\nteach mug 5\npause 1000\n")
    options = ["--rate", "10", "--script", str(script), "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        [*COMMAND, str(source), *options],
        stdout=subprocess.PIPE,
        text=True,
        # A shell's background job passes on that Ctrl-C is ignored; a terminal's doesn't.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "mug" in line and "taught" in line:
                break
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()
    assert process.returncode == 0, rest
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert not results["complete"]
    assert [one["taught"] for one in results["rounds"]] == ["cup", "mug"]
    dropped = int(results["diagnostics"]["frames dropped"])
    assert 0 < 3 - dropped <= results["rounds"][0]["asked"] <= 3
