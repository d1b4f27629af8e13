"""Processes that learn and save are killed at random moments: what is in the file afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks" / "checkpoint_kills.py"
KILLS = os.environ.get("SEMIPARAM_KILLS", "12")


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("kills")
    out = folder / "lives.json"
    environment = os.environ | {"PYTHONPATH": str(SCRIPT.parent.parent), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), "--kills", KILLS, "--seed", "1"]
    command += ["--folder", str(folder), "--lives", str(out)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    content: dict[str, Any] = json.loads(out.read_text())
    return content


def test_every_file_is_whole_and_what_was_learned_until_then(outcome: dict[str, Any]) -> None:
    lives = outcome["lives"]
    assert len(lives) == int(KILLS)
    assert all(life["whole"] and life["equal"] for life in lives)
    assert lives[-1]["restored"] > 0


def test_each_life_goes_on_where_the_file_of_the_one_before_ended(outcome: dict[str, Any]) -> None:
    lives = outcome["lives"]
    for before, after in zip(lives, lives[1:], strict=False):
        assert after["start"] == before["restored"]


def test_at_most_an_interval_is_lost_and_what_came_during_a_write(outcome: dict[str, Any]) -> None:
    for life in outcome["lives"]:
        if life["begun"] < 0:  # killed before the first interval was over
            assert life["restored"] == life["start"]
            assert life["learned"] - life["start"] <= outcome["interval"] + 1
            continue
        assert life["saved"] <= life["restored"] <= life["begun"]
        if not life["failed"]:
            assert life["restored"] in (life["saved"], life["begun"])
            writing = life["noticed"] - life["saved"]
            assert life["begun"] - life["saved"] <= max(outcome["interval"], writing) + 1


def test_a_full_disk_is_told_and_costs_no_file(outcome: dict[str, Any]) -> None:
    assert any(life["failed"] for life in outcome["lives"])
    assert all(life["full"] for life in outcome["lives"] if life["failed"])


def test_what_killed_processes_leave_does_not_pile_up(outcome: dict[str, Any]) -> None:
    assert set(outcome["left"]) <= {"model.npz", "model.previous.npz", "model.npz.part"}
