"""The files of examples/ run, and print what the documents say of them."""

from __future__ import annotations

import importlib
import runpy
import sys
from functools import partial
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
PRINTED = {
    "arrays": "the saved model says the same",
    "controller": "learned: error of the feed-forward 0.",
    "csv_log": "'semiparametric': 0.0",
    "fleet": "  <- look at this one",
    "payload": "held again: cup",
    "sklearn_tools": "chosen: {",
}


def test_every_example_is_run() -> None:
    files = {path.stem for path in EXAMPLES.glob("*.py")}
    assert files - {"made_arm"} == set(PRINTED)


@pytest.mark.usefixtures("no_figures", "seldom_inferred")
@pytest.mark.parametrize("name", PRINTED)
def test_it_runs(name: str, monkeypatch: pytest.MonkeyPatch, capsys, tmp_path: Path) -> None:
    """On half of the readings."""
    for needed in ("rosbags", "sklearn", "matplotlib"):
        pytest.importorskip(needed, reason="needs the extra 'offline'")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    made_arm = importlib.import_module("made_arm")
    monkeypatch.setattr(made_arm, "record", partial(made_arm.record, rate=50.0))
    monkeypatch.setattr(sys, "argv", [f"{name}.py", str(tmp_path / "new")])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert PRINTED[name] in capsys.readouterr().out
