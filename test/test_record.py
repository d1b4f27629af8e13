"""The regression record: the same code gives the same record, and a change is told."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import record

CHEAP = "recursion/in_turn"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """A function that runs the tool; returns its exit code and what it said."""

    def run(*arguments: object) -> tuple[int, str]:
        code = record.main(list(map(str, arguments)))
        return code, "".join(capsys.readouterr())

    return run


def rewritten(source: Path, target: Path, change: dict[str, float], drop: str = "") -> Path:
    """A record with factors on some arrays, and without one of them."""
    with np.load(source) as file:
        arrays = {name: file[name] for name in file.files if name != drop}
    for name, factor in change.items():
        arrays[name] = arrays[name] * factor
    if drop:
        about = json.loads(str(arrays["metadata"]))
        about["cases"][CHEAP]["arrays"].remove(drop.removeprefix(f"{CHEAP}/"))
        arrays["metadata"] = np.array(json.dumps(about))
    np.savez(target, **arrays)
    return target


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two records, of two processes."""
    folder = tmp_path_factory.mktemp("record")
    first, second = folder / "first.npz", folder / "second.npz"
    command = [sys.executable, record.__file__, "write", first, "--only", CHEAP]
    said = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert said.returncode == 0 and f"s  {CHEAP}: " in said.stdout, said.stderr
    assert record.main(["write", str(second), "--only", CHEAP]) == 0
    return first, second


def test_the_same_code_is_bitwise_equal(twice: tuple[Path, Path], run) -> None:
    code, said = run("compare", *twice, "--tolerance", 0)
    assert code == 0
    assert f"{CHEAP}: bitwise equal" in said


def test_a_change_is_told(twice: tuple[Path, Path], tmp_path: Path, run) -> None:
    first, _ = twice
    key = f"{CHEAP}/weights"
    changed = rewritten(first, tmp_path / "changed.npz", {key: 1.0 + 1e-7})
    code, said = run("compare", first, changed)
    assert code == 1
    assert "largest relative difference 1e-07 (weights)" in said
    assert run("compare", first, changed, "--tolerance", 1e-6)[0] == 0
    code, said = run("compare", first, rewritten(first, tmp_path / "less.npz", {}, key))
    assert code == 1 and "only in the first: weights" in said
    code, said = run("compare", first, rewritten(first, tmp_path / "nan.npz", {key: np.nan}))
    assert code == 1 and "inf" in said


def test_a_name_that_no_case_has_is_refused(tmp_path: Path, run) -> None:
    code, said = run("write", tmp_path / "record.npz", "--only", CHEAP, "recursion/in_turns")
    assert code == 2 and said == "no case is called recursion/in_turns\n"
    assert not (tmp_path / "record.npz").exists()


def test_without_data_a_case_is_skipped(tmp_path: Path, monkeypatch, run) -> None:
    names = ("live/nystrom/effort", CHEAP)
    monkeypatch.setenv("SEMIPARAM_DATA", str(tmp_path))
    code, said = run("write", tmp_path / "record.npz", "--only", *names)
    assert code == 0
    assert f"skipped  {names[0]}: the data folder has no " in said and f"s  {CHEAP}: " in said


def test_a_case_that_fails_stops_no_other(tmp_path: Path, monkeypatch, run) -> None:
    def moved() -> None:
        raise ImportError("no module of that name any more")

    monkeypatch.setitem(record.cases(), "moved/away", moved)
    file = tmp_path / "record.npz"
    code, said = run("write", file, "--only", "moved", CHEAP)
    assert code == 1
    assert "FAILED  moved/away: ImportError('no module" in said and f"s  {CHEAP}: " in said
    assert run("compare", file, file)[0] == 0


def test_cases_follow_the_code(run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    """A case that calls what is no longer there fails, and records nothing."""
    code, said = run("write", tmp_path / "record.npz", "--only", "recursion", "robot", "storage")
    assert code == 0, said
    assert "FAILED" not in said
