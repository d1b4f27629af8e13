"""The recursive step's time relative to streaming the factor through memory once."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from output import markdown

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.jit import compiled
from semiparam_dynamics.base.progress import ProgressBar
from semiparam_dynamics.learning.recursion.factor import aligned_zeros, row_length
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares
from semiparam_dynamics.learning.recursion.rotation import ROWS, note_row, predict_row

DESCRIPTION = """\
The recursive step, a prediction with its variance, its score and learning the row, beside the
limit: reading and writing each number of the factor's triangle once, by a compiled loop in the
same process; copy: as many numbers to another place. Medians in microseconds of D features and T
outputs; all of a line are measured in turns. A compiled step is one that is called from compiled
code, without Python between."""
HEADER = ("D", "T", "limit, µs", "copy, µs", "compiled step, µs", "/ limit", "step, µs", "/ limit")
N_ROWS = 32  # different rows, learned in turn
BATCH = 1e-3  # s: as many repetitions as take so long are measured together
ROUNDS = 5  # at least


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[200, 500, 1000, 2000, 4000],
        metavar="D",
        help="features (default 200 500 1000 2000 4000)",
    )
    parser.add_argument(
        "--outputs", type=int, nargs="+", default=[1, 6, 7], metavar="T", help="default 1 6 7"
    )
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="for each line (default %(default)s)"
    )


def run(args: argparse.Namespace) -> str:
    """Measure; the table."""
    if min(*args.sizes, *args.outputs) < 1:
        raise ConfigurationError("Features and outputs are at least 1: ask for more.")
    cases = [(D, T) for D in args.sizes for T in args.outputs]
    rows: list[list[str]] = []
    with ProgressBar("step", sys.stderr) as progress:
        for case in cases:
            progress(len(rows) / len(cases))
            limit, copy, kernel, step = measure(*case, args.seconds)
            times = [f"{limit:.1f}", f"{copy:.1f}"]
            for one in (kernel, step):
                times += [f"{one:.1f}", f"{one / limit:.2f}"]
            rows.append([*map(str, case), *times])
    return f"{markdown(HEADER, rows)}\n"


def measure(n_features: int, n_outputs: int, seconds: float) -> list[float]:
    """Medians of the limit, the copy, the compiled step and the step, in microseconds.

    All in turns for `seconds` in all, so that other work on the machine meets all.
    """
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((N_ROWS, n_features)) / np.sqrt(n_features)
    targets = draw.standard_normal((N_ROWS, n_outputs))
    core = RecursiveLeastSquares(n_features, n_outputs)
    squares = np.zeros(n_outputs)
    loop = _Loop(n_features, n_outputs)
    packed = np.ones(n_features * (n_features + 1) // 2)
    other = np.empty_like(packed)

    def limit(count: int) -> None:
        stream(loop.R, n_features, 1.0, count)

    def copy(count: int) -> None:
        for _ in range(count):
            np.copyto(other, packed)

    def kernel(count: int) -> None:
        loop.run(rows, targets, count)

    def step(count: int) -> None:
        for k in range(count):
            row, target = rows[k % N_ROWS], targets[k % N_ROWS]
            outputs, leverage = core.predict(row)
            error = target - outputs
            squares[:] += error**2 / (1.0 + leverage)
            core.update(row, target)

    return medians_of([limit, copy, kernel, step], seconds)


class _Loop:
    """The arrays of a recursion, for the compiled functions."""

    def __init__(self, n_features: int, n_outputs: int) -> None:
        self.n = n_features
        size, width = (-(-n // ROWS) * ROWS for n in (n_features, n_outputs))
        self.R = aligned_zeros(size, row_length(size))
        np.fill_diagonal(self.R, 1.0)
        self.U = aligned_zeros(size, width)
        self.work, self.side = aligned_zeros(6, size), aligned_zeros(2, width)
        self.begun = False

    def run(self, rows: Array, targets: Array, count: int) -> None:
        """Predict and learn so many rows."""
        arrays = self.R, self.U, self.work, self.side
        steps(*arrays, rows, targets, self.n, count, self.begun, False)
        self.begun = True


@compiled
def stream(R: Array, n: int, one: float, count: int) -> None:
    """Multiply the upper triangle of R (n, n) by `one`, `count` times."""
    for _ in range(count):
        for i in range(n):
            row = R[i, i:n]
            for j in range(row.size):
                row[j] *= one


@compiled
def steps(
    R: Array,
    U: Array,
    work: Array,
    side: Array,
    Z: Array,
    Y: Array,
    n: int,
    count: int,
    pending: bool,
    solved: bool,
) -> None:
    """Predict and learn `count` rows, as RecursiveLeastSquares does."""
    for k in range(count):
        predict_row(R, U, work, side, Z[k % len(Z)], n, pending, solved)
        note_row(work, side, Y[k % len(Z)], n, 1.0)
        pending, solved = True, False


def medians_of(functions: list[Callable[[int], None]], seconds: float) -> list[float]:
    """Microseconds of each function per repetition; its argument is the number of repetitions."""
    counts = []
    for function in functions:
        function(1)  # compiled now, if it wasn't
        start = time.perf_counter()
        function(2)
        each = (time.perf_counter() - start) / 2
        counts.append(max(2, round(BATCH / max(each, 1e-7))))
    times: list[list[float]] = [[] for _ in functions]
    end = time.perf_counter() + seconds
    while len(times[0]) < ROUNDS or time.perf_counter() < end:
        for function, count, found in zip(functions, counts, times, strict=True):
            function(3)  # so that its own numbers are in the caches, not those of the one before
            start = time.perf_counter()
            function(count)
            found.append((time.perf_counter() - start) / count)
    return [1e6 * statistics.median(found) for found in times]
