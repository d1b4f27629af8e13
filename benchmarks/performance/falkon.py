"""FALKON's time beside that of its multiplications, and beside other libraries' estimators."""

from __future__ import annotations

import statistics
import time
import tracemalloc
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from falkon_data import WIDTH, Problem
from gemm import GemmTimes, gemm_times
from sklearn.exceptions import ConvergenceWarning

from semiparam_dynamics.learning.base import Iteration
from semiparam_dynamics.learning.falkon import Falkon
from semiparam_dynamics.learning.kernels import Gaussian


@dataclass(frozen=True)
class FalkonTimes:
    """One size's figures; times in seconds.

    Attributes
    ----------
    n, centers, iterations : rows, M as asked for, and iterations done.
    stored : whether the kernel matrix fitted into the memory limit and was kept.
    fits : of each repetition.
    setup : before the first iteration, its median: basis, preconditioner, right-hand side.
    gemm : of the multiplications alone, measured before and after the fits: the lesser.
    busy : processor time over wall time of the fits: the cores at work.
    peak_bytes : what NumPy held at most during one more fit, beside the data.
    error : on the test inputs, against the noise-free outputs.
    """

    n: int
    centers: int
    iterations: int
    stored: bool
    fits: tuple[float, ...]
    setup: float
    gemm: GemmTimes
    busy: float
    peak_bytes: int
    error: float

    @property
    def seconds(self) -> float:
        """A fit's median."""
        return statistics.median(self.fits)

    @property
    def ratio(self) -> float:
        """The fastest fit's time over the least of its multiplications, were the kernel evaluated
        in each iteration.
        """
        return min(self.fits) / self.gemm.fit(self.iterations)


def estimator(centers: int, penalty: float, iterations: int, limit: int | None) -> Falkon:
    """FALKON as it is measured here."""
    return Falkon(
        Gaussian(WIDTH),
        penalty=penalty,
        n_centers=centers,
        max_iter=iterations,
        tolerance=0.0,
        random_state=0,
        memory_limit=limit,
    )


def measure(
    problem: Problem, centers: int, penalty: float, iterations: int, limit: int | None, repeats: int
) -> FalkonTimes:
    """Fit `repeats` times within a memory limit (bytes), once more to see the memory."""
    model = estimator(centers, penalty, iterations, limit)
    warm_up(problem, limit)
    C = problem.X[:centers]
    before = gemm_times(problem.X, C)
    fits, setups, busy = [], [], []
    for _ in range(repeats):
        starts: list[float] = []
        model.set_params(callback=_note(starts))
        used, start = time.process_time(), time.perf_counter()
        _fit(model, problem)
        fits.append(time.perf_counter() - start)
        busy.append((time.process_time() - used) / fits[-1])
        each = np.diff(starts).mean() if len(starts) > 1 else 0.0
        setups.append(starts[0] - start - each)
    after = gemm_times(problem.X, C)
    least = min(before, after, key=lambda times: times.fit(model.n_iter_))
    error, done = problem.error(model.predict(problem.X_test)), model.n_iter_
    stored = _stored(problem, model, limit)
    return FalkonTimes(
        len(problem.X),
        centers,
        done,
        stored,
        tuple(fits),
        statistics.median(setups),
        least,
        statistics.median(busy),
        _peak(model, problem),
        error,
    )


def warm_up(problem: Problem, limit: int | None) -> None:
    """Have everything compiled and loaded."""
    few = Problem(problem.X[:2000], problem.y[:2000], problem.X_test, problem.f_test)
    _fit(estimator(50, 1e-3, 2, limit), few)
    _fit(estimator(50, 1e-3, 2, 300_000), few)


def _fit(model: Any, problem: Problem) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the iterations are given
        model.fit(problem.X, problem.y)


def _note(times: list[float]) -> Any:
    def note(iteration: Iteration) -> bool:
        times.append(time.perf_counter())
        return False

    return note


def _peak(model: Falkon, problem: Problem) -> int:
    """Of one iteration: the others hold no more."""
    short = estimator(model.n_centers, model.penalty, 1, model.memory_limit)
    tracemalloc.start()
    try:
        _fit(short, problem)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _stored(problem: Problem, model: Falkon, limit: int | None) -> bool:
    from semiparam_dynamics.learning.products import KernelRows
    from semiparam_dynamics.learning.rows import Rows

    rows = Rows.from_arrays(problem.X, problem.y)
    return KernelRows(rows, Gaussian(WIDTH), model.centers_, limit).fits
