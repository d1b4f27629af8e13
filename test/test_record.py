"""The regression record: the same code gives the same record, and a change is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
CHEAP = "recursion/in_turn"


def record(*arguments: object, data: object = "") -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "tools" / "record.py"), *map(str, arguments)]
    environment = os.environ | ({"SEMIPARAM_DATA": str(data)} if data else {})
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    return result.returncode, result.stdout + result.stderr


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
    folder = tmp_path_factory.mktemp("record")
    files = folder / "first.npz", folder / "second.npz"
    for file in files:
        code, said = record("write", file, "--only", CHEAP)
        assert code == 0, said
        assert f"s  {CHEAP}: " in said
    return files


def test_the_same_code_is_bitwise_equal(twice: tuple[Path, Path]) -> None:
    code, said = record("compare", *twice, "--tolerance", 0)
    assert code == 0
    assert f"{CHEAP}: bitwise equal" in said


def test_a_change_is_told(twice: tuple[Path, Path], tmp_path: Path) -> None:
    first, _ = twice
    key = f"{CHEAP}/weights"
    changed = rewritten(first, tmp_path / "changed.npz", {key: 1.0 + 1e-7})
    code, said = record("compare", first, changed)
    assert code == 1
    assert "largest relative difference 1e-07 (weights)" in said
    assert record("compare", first, changed, "--tolerance", 1e-6)[0] == 0
    code, said = record("compare", first, rewritten(first, tmp_path / "less.npz", {}, key))
    assert code == 1 and "only in the first: weights" in said
    code, said = record("compare", first, rewritten(first, tmp_path / "nan.npz", {key: np.nan}))
    assert code == 1 and "inf" in said


def test_without_data_a_case_is_skipped(tmp_path: Path) -> None:
    names = ("live/nystrom/effort", CHEAP)
    code, said = record("write", tmp_path / "record.npz", "--only", *names, data=tmp_path)
    assert code == 0
    assert f"skipped  {names[0]}: the data folder has no " in said and f"s  {CHEAP}: " in said


def test_a_case_that_fails_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import record as module

    table = module.cases()

    def moved() -> None:
        raise ImportError("no module of that name any more")

    monkeypatch.setitem(table, "moved/away", moved)
    file = tmp_path / "record.npz"
    assert module.main(["write", str(file), "--only", "moved", CHEAP]) == 1
    said = capsys.readouterr().out
    assert "FAILED  moved/away: ImportError('no module" in said and f"s  {CHEAP}: " in said
    assert module.main(["compare", str(file), str(file)]) == 0
