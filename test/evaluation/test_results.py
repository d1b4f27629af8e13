"""The files of an evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import pytest

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.config_files import load_yaml
from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.evaluation.experiment import Evaluation
from semiparam_dynamics.evaluation.report import results_json, write_results


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


def test_files_hold_the_evaluation(wrench_evaluation: Evaluation, wrench_results: Path) -> None:
    folder = wrench_results
    assert {path.name for path in folder.iterdir()} == {
        "results.json",
        "params.yaml",
        "report.html",
    }
    found = json.loads((folder / "results.json").read_text(), parse_constant=refuse)
    assert found == json.loads(json.dumps(wrench_evaluation.results()))
    assert set(found["scores"]) == {"sequential", "delayed", "frozen"}
    config = load_yaml(folder / "params.yaml", InverseDynamicsConfig, "inverse_dynamics")
    assert config == wrench_evaluation.config


def test_json_has_null_where_there_is_no_number(effort_evaluation: Evaluation) -> None:
    none = Evaluation(
        effort_evaluation.model, effort_evaluation.config, effort_evaluation.runs, timing=[]
    )
    found = json.loads(results_json(none), parse_constant=refuse)
    assert found["timing_us"] == {"p50": None, "p99": None, "max": None}
    assert found["rate_hz"] is None
    assert found["scores"]["delayed"]["persistence"]["coverage"] == [None] * 4


def test_a_file_in_the_way_is_named(effort_evaluation: Evaluation, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(StorageError, match="taken"):
        write_results(effort_evaluation, tmp_path / "taken")
