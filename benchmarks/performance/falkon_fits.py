"""FALKON's time on synthetic data relative to that of its multiplications by NumPy's BLAS."""

from __future__ import annotations

import math
import statistics
import threading
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.learning.base import Iteration
from semiparam_dynamics.learning.falkon import Falkon
from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.products import KernelRows, map_in_order
from semiparam_dynamics.learning.rows import Rows

NOISE = 0.5  # standard deviation; the function's is about 0.7
N_TEST = 10_000
WIDTH = 7.0  # of the Gaussian that learns it
BLOCKS = (64, 256, 1024)  # rows at a time, of which the fastest counts
ENTRIES = 2**28  # of the kernel at most, that are multiplied to find the fastest block
INNER = 1000  # of the factorisations' stand-in


@dataclass(frozen=True)
class Problem:
    """Rows to learn from, X (n, d) and y (n,), and test inputs with their noise-free outputs."""

    X: Array
    y: Array
    X_test: Array
    f_test: Array

    def error(self, predicted: Any) -> float:
        """Root mean square of the difference from the noise-free outputs."""
        difference = np.asarray(predicted, dtype=float).reshape(-1) - self.f_test
        return math.sqrt(np.mean(difference**2))


def synthetic(n: int, n_inputs: int = 28, dtype: Any = np.float32, seed: int = 0) -> Problem:
    """n rows of standard normal inputs; a smooth function of two directions, and noise."""
    draw = np.random.default_rng(seed)

    def inputs(rows: int) -> Array:
        drawn: Any = draw.standard_normal((rows, n_inputs), dtype=np.float32)
        return drawn.astype(dtype, copy=False)  # type: ignore[no-any-return]

    X, X_test = inputs(n), inputs(N_TEST)
    noise: Any = NOISE * draw.standard_normal(n, dtype=np.float32)
    return Problem(X, (_function(X) + noise).astype(dtype, copy=False), X_test, _function(X_test))


def _function(X: Array) -> Array:
    d = X.shape[1]
    signs = np.where(np.arange(d) % 2, -1.0, 1.0).astype(X.dtype)
    along, across = X.sum(axis=1) / math.sqrt(d), X @ signs / math.sqrt(d)
    return np.sin(along) + 0.5 * np.tanh(across)


@dataclass(frozen=True)
class FalkonTimes:
    """One size's figures; times in seconds.

    Attributes
    ----------
    n, inputs, dtype, centers, iterations : rows, d, M as asked for, and iterations done.
    stored : whether the kernel matrix fitted into the memory limit and was kept.
    fits : of each repetition.
    setup : before the first iteration, its median: basis, preconditioner, right-hand side.
    gemms : of each repetition's multiplications alone, an iteration's right after it.
    step_ratios : of each iteration but a fit's first, its time over that of its multiplications.
    busy : processor time over wall time of the fits: the cores at work.
    peak_bytes : what NumPy held at most during one more fit, beside the data.
    error : on the test inputs, against the noise-free outputs.
    """

    n: int
    inputs: int
    dtype: str
    centers: int
    iterations: int
    stored: bool
    fits: tuple[float, ...]
    setup: float
    gemms: tuple[float, ...]
    step_ratios: tuple[float, ...]
    busy: float
    peak_bytes: int
    error: float

    @property
    def seconds(self) -> float:
        """A fit's median."""
        return statistics.median(self.fits)

    @property
    def ratio(self) -> float:
        """A fit's time over that of its multiplications, were the kernel evaluated in each
        iteration: the median.
        """
        pairs = zip(self.fits, self.gemms, strict=True)
        return statistics.median(fit / gemm for fit, gemm in pairs)


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
        preconditioner_rows=None,
    )


def measure(
    problem: Problem, centers: int, penalty: float, iterations: int, limit: int | None, repeats: int
) -> FalkonTimes:
    """Fit `repeats` times within a memory limit (bytes), once more to see the memory."""
    model = estimator(centers, penalty, iterations, limit)
    warm_up(problem, limit)
    turns = _Turns(problem.X, problem.X[:centers])
    one_pass, factors = turns.multiply(both=False), factor_seconds(centers)
    fits, gemms, setups, busy, ratios = [], [], [], [], list[float]()
    model.set_params(callback=turns)
    for _ in range(repeats):
        turns.begin()
        used, start = time.process_time(), time.perf_counter()
        _fit(model, problem)
        fits.append(time.perf_counter() - start - sum(turns.seconds))
        busy.append((time.process_time() - used - sum(turns.used)) / fits[-1])
        gemms.append(sum(turns.seconds) + one_pass + factors)
        ends, begins = turns.stamps, np.add(turns.stamps, turns.seconds)
        each = np.subtract(ends[1:], begins[:-1])
        ratios += (each / turns.seconds[1:]).tolist()
        setups.append(ends[0] - start - (each.min() if len(each) else 0.0))  # others were held up
    error, done = problem.error(model.predict(problem.X_test)), model.n_iter_
    stored = _stored(problem, model, limit)
    return FalkonTimes(
        *problem.X.shape,
        problem.X.dtype.name,
        centers,
        done,
        stored,
        tuple(fits),
        statistics.median(setups),
        tuple(gemms),
        tuple(ratios),
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
    rows = Rows.from_arrays(problem.X, problem.y)
    return KernelRows(rows, Gaussian(WIDTH), model.centers_, limit).fits


class _Turns:
    """An iteration's multiplications, done right after it with all cores: a fit's callback.

    X C' (n x d by d x M), K v and K' u, a block of rows at a time, so that the machine is for both
    as it is in the same seconds.

    Attributes
    ----------
    stamps : when each iteration of this fit was done.
    seconds, used : of its multiplications, wall and processor time.
    """

    def __init__(self, X: Array, C: Array) -> None:
        self._X, self._C = X, C
        few = X[: max(max(BLOCKS), ENTRIES // len(C))]
        self._size = min(BLOCKS, key=lambda size: _seconds(partial(_pass, few, C, size, True), 2))
        self.begin()

    def begin(self) -> None:
        """Another fit."""
        self.stamps: list[float] = []
        self.seconds: list[float] = []
        self.used: list[float] = []

    def multiply(self, both: bool = True) -> float:
        """Seconds of one pass; without `both` of X C' and K' u, as the right-hand side needs."""
        start = time.perf_counter()
        _pass(self._X, self._C, self._size, both)
        return time.perf_counter() - start

    def __call__(self, iteration: Iteration) -> bool:
        self.stamps.append(time.perf_counter())
        used = time.process_time()
        self.seconds.append(self.multiply())
        self.used.append(time.process_time() - used)
        return False


def factor_seconds(M: int, repeats: int = 3) -> float:
    """Least time of as many multiplications as two Cholesky factorisations and a product of
    triangles of (M, M) take, M^3 / 2, as a product of matrices in double precision.
    """
    inner = min(M, INNER)
    A, B = np.ones((M, inner)), np.ones((inner, -(-M // 2)))
    return _seconds(lambda: A @ B, repeats) * M / inner


def _pass(X: Array, C: Array, size: int, both: bool) -> None:
    transposed = np.ascontiguousarray(C.T)
    v = np.full(len(C), 1e-3, X.dtype)
    own = threading.local()  # memory that is used again costs no page faults

    def block(i: int) -> Array:
        part = X[i : i + size]
        if not hasattr(own, "K"):
            own.K = np.empty((size, len(C)), X.dtype)
        K = np.matmul(part, transposed, out=own.K[: len(part)])
        u = K @ v if both else np.ones(len(K), X.dtype)
        return u @ K

    for _ in map_in_order(block, range(0, len(X), size)):
        pass


def _seconds(function: Callable[[], object], repeats: int) -> float:
    best = np.inf
    for _ in range(repeats + 1):  # the first one warms up
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return float(best)
