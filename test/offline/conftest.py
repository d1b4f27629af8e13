"""Fewer trials for the tests of tuning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest


@pytest.fixture(scope="module")
def few_trials() -> Iterator[None]:
    """In this process a stage of tuning ends after a quarter of its trials, in two batches."""
    from semiparam_dynamics.offline.tuning import tuner

    stages = tuner.stages

    def short(*given: Any) -> list[tuner.Stage]:
        return [replace(one, trials=one.trials // 4) for one in stages(*given)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuner, "stages", short)
        patch.setattr(tuner, "BATCH", 2)
        yield
