"""The benchmarks' folders on the path, as when their scripts run, and their command lines."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
for folder in ("tables", "thesis", "performance", "field", "idbench", "."):
    sys.path.insert(0, str(BENCHMARKS / folder))

Main = Callable[[Sequence[str]], int]


def command_line(folder: str) -> Any:
    """The module that `python benchmarks/FOLDER` runs."""
    path = BENCHMARKS / folder / "__main__.py"
    spec = importlib.util.spec_from_file_location(f"{folder}_command_line", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", autouse=True)
def quick(seldom_inferred: None) -> None:
    """What is tested here is what is made of a learner's numbers."""


@pytest.fixture(scope="session")
def performance() -> Main:
    return command_line("performance").main


@pytest.fixture(scope="session")
def thesis() -> Main:
    return command_line("thesis").main


@pytest.fixture(scope="session")
def field() -> Main:
    return command_line("field").main
