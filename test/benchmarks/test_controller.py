"""A comparison of controllers that was interrupted goes on, but only with the same settings."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import controller
import numpy as np
import pytest


def test_runs_are_reused_only_with_their_settings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made: list[float] = []

    def compare(urdf: str, config: Any, seconds: float, since: float, **options: Any) -> Any:
        made.append(since)
        rms = {name: np.array([1e-3 * since]) for name in controller.FEEDFORWARDS}
        last = SimpleNamespace(time=np.array([seconds]), share=np.ones((1, 1)))
        runs = {"semiparametric": last}
        return SimpleNamespace(rms=lambda links=False: rms, runs=runs, lost=dict)

    def table(*arguments: str) -> str:
        out = ["--arms", "icub", "--seeds", "1", "--out", str(tmp_path / "runs.jsonl")]
        monkeypatch.setattr(sys, "argv", ["controller.py", *out, *arguments])
        controller.main()
        return capsys.readouterr().out

    monkeypatch.setattr(controller, "compare", compare)
    first = table("--since", "1")
    assert made == [1.0, 1.0] and "| 1 | 1 | 1 (1.00" in first
    assert table("--since", "1") == first and len(made) == 2
    assert "| 1 | 3 | 3 (1.00" in table("--since", "3") and made[2:] == [3.0, 3.0]
    assert table("--since", "1") == first
    assert made == [1.0, 1.0, 3.0, 3.0]
    table("--since", "1", "--mass-error", "0.2", "0.2")
    assert len(made) == 5  # true masses are the same
