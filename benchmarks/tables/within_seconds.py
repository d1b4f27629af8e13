"""Kernel ridge regression on all rows, chosen and fitted within seconds, beside boosted trees.

    python benchmarks/tables/within_seconds.py DATA [--sets NAME ...] [--seconds N] [--xrfm]
    python benchmarks/tables/within_seconds.py DATA --made N [--centers M]

`KRLS(seconds=N)` finds kernel, widths and penalty in the training rows and sweeps over all of them;
`HistGradientBoostingRegressor` and, with `--xrfm`, the package of that name have their defaults
(xRFM a fifth of the training rows to validate on). Splits, inputs and outputs as in defaults.py,
all rows; errors are root mean squares of standardised outputs on the other rows. Seconds on the
clock, and of the processor, all threads together, fit alone.

With `--made` instead N rows of 20 inputs are made, and the errors of full kernel ridge regression
after each sweep stand beside those of Falkon with M centres, with the same kernel and penalty.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common import Split, data_parser, parse, print_table, rmse, split
from defaults import TRAINED, data_sets
from sklearn.ensemble import HistGradientBoostingRegressor

from semiparam_dynamics.learning import KRLS, Falkon, Matern
from semiparam_dynamics.learning.base import kernel_sum
from semiparam_dynamics.learning.kernel_ridge import Problem, by_blocks
from semiparam_dynamics.learning.rows import ArrayRows

MADE_TEST_ROWS, MADE_PENALTY, MADE_WIDTH = 5000, 1e-6, 10.0


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("--sets", nargs="+", help="names of defaults.py; all without")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="of the split")
    parser.add_argument("--xrfm", action="store_true")
    parser.add_argument("--made", type=int, metavar="N", help="rows to make")
    parser.add_argument("--centers", type=int, default=10_000)
    parser.add_argument("--sweeps", type=int, default=6)
    args = parse(parser)
    if args.made:
        made(args.made, args.centers, args.sweeps)
        return
    rows = []
    for name, X, y in data_sets(args.data):
        if args.sets and name not in args.sets:
            continue
        order = np.random.default_rng(args.seed).permutation(len(y))
        n_train = round(TRAINED * len(y))
        part = split(X[order], y[order], n_train, args.seed).standardised()
        mean, deviation = part.y.mean(), part.y.std()
        outputs, tests = ((y - mean) / deviation for y in (part.y, part.y_test))
        part, model = Split(part.X, outputs, part.X_test, tests), KRLS(seconds=args.seconds)
        ours = tested(model, part)
        kernel = f"{type(model.kernel_).__name__} {getattr(model.kernel_, 'nu', '')}"
        trees = tested(HistGradientBoostingRegressor(random_state=0), part)
        cells = [f"{e:.4f} ({wall:.0f}, {spent:.0f})" for e, wall, spent in (ours, trees)]
        if args.xrfm:
            error, spent = xrfm(part)
            cells.append(f"{error:.4f} (-, {spent:.0f})")
        ratio = f"{ours[0] / trees[0]:.3f}"
        rows.append([name, *part.X.shape, kernel, model.n_iter_, *cells, ratio])
        print(*rows[-1], flush=True)
    header = ["data", "rows", "inputs", "kernel", "sweeps", "KRLS(seconds)", "trees"]
    title = f"Errors (seconds, processor seconds) with {args.seconds:.0f} s"
    print_table(title, [*header, *["xRFM"] * args.xrfm, "KRLS / trees"], rows)


def xrfm(part: Split) -> tuple[float, float]:
    """The test error of xRFM's own defaults, a fifth of the rows to validate on, and seconds."""
    import torch
    from xrfm import xRFM

    torch.manual_seed(0)
    kept = int(0.8 * len(part.X))
    X, y, test = (torch.tensor(A, dtype=torch.float32) for A in (part.X, part.y, part.X_test))
    start = time.process_time()
    model = xRFM(device=torch.device("cpu"), tuning_metric="mse")
    model.fit(X[:kept], y[:kept, None], X[kept:], y[kept:, None])
    seconds = time.process_time() - start
    return rmse(part.y_test, np.asarray(model.predict(test)).reshape(-1)), seconds


def tested(model: Any, part: Split) -> tuple[float, float, float]:
    """The error on the test rows; seconds and processor seconds of the fit."""
    start, before = time.perf_counter(), time.process_time()
    model.fit(part.X, part.y)
    seconds, spent = time.perf_counter() - start, time.process_time() - before
    return rmse(part.y_test, model.predict(part.X_test)), seconds, spent


def made(n: int, centers: int, sweeps: int) -> None:
    """Errors against time of all rows and of centres, on outputs that are a function and noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + MADE_TEST_ROWS, 20))
    f = np.sin(X[:, 0] * X[:, 1]) + np.abs(X[:, 2] + X[:, 3]) + np.tanh(X @ rng.standard_normal(20))
    y, kernel = f - f.mean() + 0.1 * rng.standard_normal(len(f)), Matern(MADE_WIDTH, 1.5)
    here, there = slice(n), slice(n, None)
    problem, rows = Problem.of(ArrayRows(X[here], y[here])), []
    clock, start = 0.0, time.process_time()
    for number, sweep in enumerate(by_blocks(problem, kernel, MADE_PENALTY), 1):
        clock += time.process_time() - start
        found = kernel_sum(X[there], kernel, X[here], sweep.alpha[:, 0])
        rows.append([f"all rows, sweep {number}", f"{rmse(y[there], found):.4f}", f"{clock:.0f}"])
        print(*rows[-1], flush=True)
        start = time.process_time()
        if number == sweeps:
            break
    model = Falkon(kernel, MADE_PENALTY, centers, random_state=0)
    start = time.process_time()
    model.fit(X[here], y[here])
    error, spent = rmse(y[there], model.predict(X[there])), time.process_time() - start
    rows.append(
        [f"Falkon, {centers} centres, {model.n_iter_} iterations", f"{error:.4f}", f"{spent:.0f}"]
    )
    print_table(f"{n} rows of 20 inputs", ["", "error", "processor seconds"], rows)


if __name__ == "__main__":
    main()
