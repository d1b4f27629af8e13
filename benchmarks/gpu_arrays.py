"""FALKON's time on PyTorch's or CuPy's arrays on a GPU, and on NumPy's.

    python benchmarks/gpu_arrays.py                       # PyTorch
    python benchmarks/gpu_arrays.py --library cupy

Fits of `performance falkon`'s synthetic problem for each size, its rows on the GPU before the clock
starts. The time before the first iteration is mostly that of the two factorisations of (M, M)
matrices, on this machine's cores. That predictions are the same is what test_devices.py says.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # read when SciPy is imported

import numpy as np  # noqa: E402
import sklearn  # noqa: E402

sys.path.insert(1, str(Path(__file__).resolve().parent / "performance"))
from falkon_fits import Problem, estimator, synthetic  # noqa: E402
from output import make_parser, markdown, parse  # noqa: E402

from semiparam_dynamics.learning import Falkon  # noqa: E402

TIMES = ("n", "M", "kernel", "fit, s", "before iteration 1, s", "an iteration, ms")
TIMES += ("NumPy's fit, s", "test error; NumPy's")


class Gpu:
    """A library's arrays on its first GPU."""

    def __init__(self, library: str) -> None:
        self.xp = import_module(library)
        self.torch = library == "torch"
        if self.torch:
            self.xp.cuda.init()
            self.name = self.xp.cuda.get_device_name(0)
        else:
            self.name = self.xp.cuda.runtime.getDeviceProperties(0)["name"].decode()

    def array(self, values: Any) -> Any:
        """`values` there, in their precision."""
        return self.xp.from_numpy(values).to("cuda") if self.torch else self.xp.asarray(values)

    def numpy(self, values: Any) -> Any:
        """`values` here."""
        return values.cpu().numpy() if self.torch else values.get()

    def wait(self) -> None:
        """Return when all that was asked for is done."""
        if self.torch:
            self.xp.cuda.synchronize()
        else:
            self.xp.cuda.runtime.deviceSynchronize()


def fit_times(problem: Problem, model: Falkon, X: Any, y: Any, wait: Callable[[], None]) -> Any:
    """Seconds of a fit, of what comes before its first iteration, and of an iteration."""
    stamps: list[float] = []
    model.set_params(callback=lambda _: bool(stamps.append(time.perf_counter())))
    wait()
    start = time.perf_counter()
    model.fit(X, y)
    wait()
    seconds, each = time.perf_counter() - start, float(np.median(np.diff(stamps)))
    return seconds, stamps[0] - start - each, each


def times(gpu: Gpu, n: int, centers: int, limit: int, here: bool) -> tuple[str, ...]:
    """A size's row; `here` says whether NumPy's fit is measured, too."""
    problem = synthetic(n)
    X, y, X_test = (gpu.array(values) for values in (problem.X, problem.y, problem.X_test))
    model = estimator(centers, 1e-6, 10, limit)
    with sklearn.config_context(array_api_dispatch=True):
        estimator(50, 1e-3, 2, limit).fit(X[:2000], y[:2000])  # everything compiled and loaded
        seconds, before, each = fit_times(problem, model, X, y, gpu.wait)
        error = problem.error(gpu.numpy(model.predict(X_test)))
    numpys, numpys_error = "–", "–"
    if here:
        other = estimator(centers, 1e-6, 10, 10**8)
        estimator(50, 1e-3, 2, 10**8).fit(problem.X[:2000], problem.y[:2000])
        taken = fit_times(problem, other, problem.X, problem.y, lambda: None)[0]
        numpys, numpys_error = f"{taken:.1f}", f"{problem.error(other.predict(problem.X_test)):.4f}"
    kept = "kept" if 4 * n * centers <= 0.9 * limit else "anew each time"
    cells = (str(n), str(centers), kept, f"{seconds:.2f}", f"{before:.2f}", f"{1e3 * each:.1f}")
    return (*cells, numpys, f"{error:.4f}; {numpys_error}")


def measure(args: argparse.Namespace) -> str:
    """The table, and the GPU it is of."""
    gpu = Gpu(args.library)
    parts = [f"{gpu.name}, {args.library} {gpu.xp.__version__}."]
    rows = []
    for n, centers, gigabytes in args.size or [(100_000, 3000, 1), (1_000_000, 10_000, 1)]:
        rows.append(times(gpu, n, centers, gigabytes * 2**30, args.numpy))
        print("|", " | ".join(rows[-1]), "|", file=sys.stderr, flush=True)
    parts.append(markdown(TIMES, rows))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--library", choices=("torch", "cupy"), default="torch")
    parser.add_argument(
        "--size",
        type=int,
        nargs=3,
        action="append",
        metavar=("N", "M", "GB"),
        help="rows, centres, and the memory there for the kernel, once for each size",
    )
    parser.add_argument("--numpy", action="store_true", help="fit on this machine's cores, too")
    print(measure(parse(parser)), end="")


if __name__ == "__main__":
    main()
