"""FALKON's benchmark on few rows: what it measures is what it says."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import falkon_fits
import falkon_rivals
import numpy as np
import pytest
from falkon_fits import Problem, measure, synthetic
from falkon_rivals import rivals
from falkon_tables import rivals_table, times_table


@pytest.fixture(scope="module")
def problem() -> Problem:
    return synthetic(3000, 6)


def test_the_problem_is_the_same_each_time_in_each_precision(problem: Problem) -> None:
    again, double = synthetic(3000, 6), synthetic(3000, 6, np.float64)
    assert problem.X.dtype == np.float32 and double.X.dtype == np.float64
    np.testing.assert_array_equal(problem.X, again.X)
    np.testing.assert_array_equal(problem.X, double.X)
    np.testing.assert_allclose(problem.y, double.y, atol=1e-5)
    assert problem.error(problem.f_test) == 0.0
    assert problem.error(problem.f_test + 2.0) == pytest.approx(2.0)


@pytest.mark.parametrize(("limit", "stored"), [(10**8, True), (400_000, False)])
def test_a_size_is_measured(problem: Problem, limit: int, stored: bool) -> None:
    found = measure(problem, 100, 1e-4, 4, limit, 2)
    assert (found.n, found.centers, found.iterations) == (3000, 100, 4)
    assert found.stored == stored and len(found.fits) == 2
    assert 0.0 < found.setup < max(found.fits)
    ratios = [fit / gemm for fit, gemm in zip(found.fits, found.gemms, strict=True)]
    assert found.ratio == pytest.approx(sum(ratios) / 2)
    # At least the preconditioner's two matrices, and the kernel where it is stored.
    matrices = 2 * 8 * 100**2
    kernel = 4 * 3000 * 100
    assert found.peak_bytes > (matrices + kernel if stored else matrices)
    assert found.peak_bytes < matrices + limit + 2 * problem.X.nbytes + 2**17
    assert found.error < 0.5  # its own scale is 0.7
    row = times_table([found]).splitlines()[2]
    assert row.startswith("| 3000 | 100 | 4 | " + ("kept" if stored else "anew each time"))


def test_multiplications_take_turns_with_the_iterations(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[tuple[int, int, int, bool]] = []
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: tick(), process_time=lambda: clock.now)

    def tick() -> float:
        clock.now += 2.0**-10
        return clock.now

    def slow(X: np.ndarray, C: np.ndarray, size: int, both: bool) -> None:
        passes.append((*X.shape, len(C), both))
        clock.now += 0.5 if both else 0.125

    monkeypatch.setattr(falkon_fits, "_pass", slow)
    monkeypatch.setattr(falkon_fits, "BLOCKS", (64,))
    monkeypatch.setattr(falkon_fits, "_seconds", lambda function, repeats: 0.25)
    monkeypatch.setattr(falkon_fits, "time", clock)
    found = measure(problem, 100, 1e-4, 3, 10**8, 1)
    assert passes == [(3000, 6, 100, False), *[(3000, 6, 100, True)] * 3]
    assert found.gemms[0] == pytest.approx(3 * 0.5 + 0.125 + 0.25 * 100 / 100, abs=0.01)
    assert 0.0 < found.fits[0] < 0.01 and abs(found.setup) < 0.01  # without them


def test_no_estimators_first_fit_is_timed(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)

    def first_is_slow(name: str) -> Callable[..., Any]:
        fit = getattr(falkon_rivals, name)

        def slow(given: Problem, asked: dict[str, Any]) -> Any:
            clock.now += 1.0 if name in begun else 3.0
            begun.append(name)
            return fit(given, asked)

        return slow

    for name in ("_ours", "_scikit_learn"):
        monkeypatch.setattr(falkon_rivals, name, first_is_slow(name))
    monkeypatch.setattr(falkon_rivals, "time", clock)
    found = rivals(problem, 100, 1e-4, 2, None, 1)
    assert begun == ["_ours"] * 2 + ["_scikit_learn"] * 2
    assert [one.seconds for one in found[:2]] == [1.0, 1.0]


def test_rivals_solve_the_same_problem(problem: Problem) -> None:
    found = rivals(problem, 200, 1e-4, 15, None, 1)
    assert [one.name for one in found[:2]] == [
        "Falkon, this package",
        "scikit-learn Nystroem + Ridge",
    ]
    # The centres are drawn differently.
    assert found[1].error == pytest.approx(found[0].error, rel=0.1)
    assert rivals_table(found).count("\n") == 1 + len(found)
