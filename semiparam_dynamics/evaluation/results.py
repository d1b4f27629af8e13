"""An evaluation's files: results.json, params.yaml and report.html."""

from __future__ import annotations

import json
import math
from pathlib import Path

from semiparam_dynamics.config_files import dump_yaml
from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.evaluation.experiment import Evaluation
from semiparam_dynamics.evaluation.report import report

NODE = "inverse_dynamics"  # params.yaml can be given to this node as it is


def write_results(evaluation: Evaluation, directory: Path) -> None:
    """Write results.json, params.yaml and report.html into `directory`, made if need be.

    Raises StorageError where that fails.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _write(directory / "results.json", results_json(evaluation))
        _write(directory / "params.yaml", dump_yaml(evaluation.config, node_name=NODE))
        _write(directory / "report.html", report(evaluation))
    except OSError as error:
        raise StorageError(f"the results can't be written to {directory}: {error}") from error


def results_json(evaluation: Evaluation) -> str:
    """The text of results.json: strict JSON, null where there is no number."""
    return json.dumps(_strict(evaluation.results()), indent=2, allow_nan=False) + "\n"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _strict(value: object) -> object:
    """The same with null for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {str(key): _strict(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
