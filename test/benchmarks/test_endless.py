"""Very many updates: what `benchmarks/endless.py` does ten million times, on fewer rows."""

from __future__ import annotations

from typing import Any

import endless
import numpy as np
import pytest

from semiparam_dynamics.dynamics.evidence import INFORMATION_SHARE

FORGETTING = ("exponential", "replacing")
RANDOM, ARM = endless.random_rows(1000, 40), endless.arm_rows(200)
ONE = endless.random_rows(1, 40).repeat(endless.BLOCK, axis=0)
ROWS = {"random": RANDOM, "arm": ARM, "one row": ONE}


def assert_sound(out: Any) -> None:
    assert out.finite
    assert out.diagonal > 0.5  # the ridge is there
    assert out.trace < 1.5  # and nothing is less certain than it makes it: no wind-up
    assert out.largest < 1.5


@pytest.mark.parametrize("size", [1.0, 1e6, 1e-6])
@pytest.mark.parametrize("rows", ROWS)
def test_nothing_forgotten_is_the_batch_solution(rows: str, size: float) -> None:
    out = endless.run(rows, [(ROWS[rows], 10_000)], size=size)
    assert_sound(out)
    assert out.predictions < 1e-8
    if (rows, size) != ("one row", 1e6):
        assert out.weights < 1e-8
    # There a ridge of 1 stands beside 10^17, and rounding shows other directions to the weights.


@pytest.mark.parametrize("size", [1e6, 1e-6])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("forgetting", FORGETTING)
def test_what_forgets_stays_bounded(forgetting: str, rows: str, size: float) -> None:
    out = endless.run(rows, [(ROWS[rows], 5000)], forgetting, size=size, memory=1250.0)
    assert_sound(out)


@pytest.mark.parametrize("forgetting", FORGETTING)
def test_nothing_winds_up_when_nothing_is_excited(forgetting: str) -> None:
    phases = [(RANDOM, 1250), (np.zeros_like(RANDOM), 5000)]
    out = endless.run("nothing", phases, forgetting, memory=500.0)
    assert_sound(out)
    # Exponential forgetting comes back to zero; what is replaced keeps what was shown.
    assert (out.error > 0.9) == (forgetting == "exponential")


@pytest.mark.parametrize("forgetting", endless.KINDS[:2])
def test_a_joint_that_is_still_for_long_is_remembered_or_fades(forgetting: str) -> None:
    phases = [(ARM, 1750), (endless.arm_rows(200, still=3), 8750)]
    out = endless.run("still", phases, forgetting, memory=1750.0)
    assert_sound(out)
    assert out.error < (0.5 if forgetting == "exponential" else 0.1)


@pytest.mark.parametrize(("residual", "moving"), [("nystrom", 200), ("random_fourier", 0)])
def test_the_estimator_at_rest_with_memories(residual: str, moving: int) -> None:
    out = endless.estimator(residual, 1000, moving)
    assert out.finite
    assert out.largest < 1.5 / np.sqrt(INFORMATION_SHARE)  # with the deviations of parameters
    assert out.error < 0.1
