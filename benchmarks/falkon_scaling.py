"""Time, memory and error of FALKON as the number of rows grows, on synthetic data.

    python benchmarks/falkon_scaling.py [--max-n 1000000] [--dtype float32] [--memory-limit BYTES]

The settings are those of the paper's theorem 3 (Rudi, Carratino, Rosasco 2017): M = sqrt(n) log n
centres, penalty 1 / sqrt(n), log n iterations. Kernels are evaluated in single precision by
default, and summed in double. The memory limit is such that beyond 10^4 rows they are
computed anew in each iteration, as they must be for many rows: a larger one saves time where it
holds all. Each n is fitted in a process of its own, after small fits that have everything compiled
and loaded; the memory is what its resident set grew by at most during the fit, beyond the data.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from tables.common import measured

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.learning import falkon_system
from semiparam_dynamics.learning.falkon import Falkon
from semiparam_dynamics.learning.kernels import Gaussian

N_INPUTS = 28
NOISE = 0.5  # standard deviation; the function's is about 0.7
N_TEST = 10_000
WIDTH = 7.0
SMALL = 300_000  # bytes, that the kernel of a warm-up doesn't fit into


@dataclass(frozen=True)
class Result:
    n: int
    centers: int
    iterations: int
    seconds: float
    preconditioner_seconds: float  # with the basis: all that takes M^3
    megabytes: float
    error: float  # root mean squared, against the function without noise


def function(X: Array) -> Array:
    """A smooth function of two directions, (n,)."""
    signs = np.where(np.arange(N_INPUTS) % 2, -1.0, 1.0).astype(X.dtype)
    along, across = X.sum(axis=1) / math.sqrt(N_INPUTS), X @ signs / math.sqrt(N_INPUTS)
    result: Array = np.sin(along) + 0.5 * np.tanh(across)
    return result


def synthetic(n: int, seed: int, dtype: Any) -> tuple[Array, Array]:
    """Inputs (n, 28), standard normal, and noisy outputs (n,)."""
    draw = np.random.default_rng(seed)
    X: Any = draw.standard_normal((n, N_INPUTS), dtype=np.float32).astype(dtype, copy=False)
    y: Any = function(X) + NOISE * draw.standard_normal(n, dtype=np.float32)
    return X, y.astype(dtype, copy=False)


def model_of(n: int, memory_limit: int | None = None) -> Falkon:
    """FALKON with the theorem's settings for n rows."""
    return Falkon(
        Gaussian(WIDTH),
        penalty=1.0 / math.sqrt(n),
        n_centers=min(round(math.sqrt(n) * math.log(n)), n),
        max_iter=round(math.log(n)),
        tolerance=0.0,
        random_state=0,
        memory_limit=memory_limit,
    )


class Stopwatch:
    """Seconds spent in the functions that it wraps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def wrap(self, function: Any) -> Any:
        def timed(*args: Any, **settings: Any) -> Any:
            start = time.perf_counter()
            result = function(*args, **settings)
            self.seconds += time.perf_counter() - start
            return result

        return timed


def measure(n: int, dtype: str, memory_limit: int | None = None) -> Result:
    """One fit and its test error, in this process: the memory is right only in a fresh one."""
    X, y = synthetic(n, 0, np.dtype(dtype))
    model = model_of(n, memory_limit)
    for limit in (memory_limit, SMALL):  # the kernel kept, and computed anew
        clone(model).set_params(n_centers=50, memory_limit=limit).fit(X[:2000], y[:2000])
    watch = Stopwatch()
    for name in ("NystromBasis", "Preconditioner"):
        setattr(falkon_system, name, watch.wrap(getattr(falkon_system, name)))
    _, spent = measured(lambda: model.fit(X, y))
    new, _ = synthetic(N_TEST, 1, X.dtype)
    error = math.sqrt(np.mean((model.predict(new) - function(new)) ** 2))
    own = watch.seconds, spent.megabytes, error
    return Result(n, len(model.centers_), model.n_iter_, spent.seconds, *own)


def in_fresh_process(n: int, dtype: str, memory_limit: int | None) -> Result:
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--only", str(n), "--dtype", dtype]
    if memory_limit is not None:
        command += ["--memory-limit", str(memory_limit)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Result(**json.loads(done.stdout))


def sizes(max_n: int) -> list[int]:
    """From 10^4 by half decades."""
    steps = [round(10 ** (k / 2)) for k in range(8, 20)]
    return [n for n in steps if n <= max_n]


def exponent(results: list[Result]) -> float:
    """e of the power law seconds ~ n^e, by least squares on logarithms."""
    logarithms = np.log([[r.n, r.seconds] for r in results])
    return float(np.polyfit(logarithms[:, 0], logarithms[:, 1], 1)[0])


def row(r: Result) -> str:
    return (
        f"{r.n:>9} {r.centers:>7} {r.iterations:>10} {r.seconds:>9.1f} "
        f"{r.preconditioner_seconds:>14.1f} {r.megabytes:>9.0f} {r.error:>11.4f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="FALKON's time, memory and error against n.")
    parser.add_argument("--max-n", type=int, default=1_000_000, help="rows at most")
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--memory-limit", type=int, default=2**27, help="bytes for kernel blocks")
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only is not None:
        print(json.dumps(asdict(measure(given.only, given.dtype, given.memory_limit))))
        return
    print(f"{N_INPUTS} inputs, {given.dtype}, Gaussian of width {WIDTH}, noise {NOISE}")
    print("        n       M iterations   seconds preconditioner memory/MB  test error")
    results = []
    for n in sizes(given.max_n):
        results.append(in_fresh_process(n, given.dtype, given.memory_limit))
        print(row(results[-1]), flush=True)
    if len(results) > 1:
        last = results[-max(2, (len(results) + 1) // 2) :]
        print(
            f"seconds ~ n^{exponent(results):.2f}; from {last[0].n} rows on n^{exponent(last):.2f}"
        )


if __name__ == "__main__":
    main()
