"""FALKON's benchmark on few rows: what it measures is what it says."""

from __future__ import annotations

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
    assert (found.inputs, found.dtype, len(found.step_ratios)) == (6, "float32", 6)
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
    assert row.startswith(
        "| 3000 | 6 | float32 | 100 | 4 | " + ("kept" if stored else "anew each time")
    )


def test_rivals_solve_the_same_problem(problem: Problem) -> None:
    found = rivals(problem, 200, 1e-4, 15, None, 1)
    assert [one.name for one in found[:2]] == [
        "Falkon, this package",
        "scikit-learn Nystroem + Ridge",
    ]
    # The centres are drawn differently.
    assert found[1].error == pytest.approx(found[0].error, rel=0.1)
    assert rivals_table(found).count("\n") == 1 + len(found)
