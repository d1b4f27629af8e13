"""Packages that import a name's module when the name is used."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("package", ["learning", "samples", "simulation"])
def test_every_name_is_found_and_no_other(package: str) -> None:
    module = import_module(f"semiparam_dynamics.{package}")
    assert dir(module) == sorted(module.__all__)
    for name in module.__all__:
        value = getattr(module, name)
        assert vars(module)[name] is value  # found once, then kept
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = module.nothing


def test_a_learner_loads_neither_scikit_learn_nor_what_reads_bags() -> None:
    code = (
        "import sys, semiparam_dynamics.dynamics.learner, semiparam_dynamics.simulation.config\n"
        "print(*{'sklearn', 'rosbags', 'scipy.interpolate', 'scipy.stats'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == ""
