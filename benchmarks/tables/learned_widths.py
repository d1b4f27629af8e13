"""One Gaussian width by grid, and learned widths, one for each input: errors and seconds.

    python benchmarks/tables/learned_widths.py DATA [--sets NAME ...] [--seed N] [--xrfm]

Inputs have zero mean and unit variance on the training rows. The grid: seven widths and ten
penalties, and all penalties of a width from one pass over the data (`select` on a fifth of the
training rows); the full grid has twenty widths and twenty penalties. Learned: `learn_widths` on at
most 3000 rows with 150 centres, then the penalties, with Matern's kernel of four times these
widths, half-way to their common factor. All then fit NystromKRLS with m centres to all training
rows. With `--xrfm` also the package of that name, with its defaults and without a search
over its parameters, and a fifth of the training rows to validate on. Seconds are those of the
processor, all threads together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from common import (
    Split,
    adult,
    classification_error,
    data_parser,
    load,
    parse,
    print_table,
    rmse,
    split,
)
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.learning import Gaussian, Matern, NystromKRLS, learn_widths, select
from semiparam_dynamics.learning.kernels import Kernel

FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # of the width sqrt(d), in the grid
LONGER = 4.0  # Matern's widths over a Gaussian's that were learned; 2 is hardly worse
LEARNED = {"n_rows": 3000, "n_centers": 150}
PENALTIES = tuple(float(p) for p in np.logspace(0, -9, 10))
FULL = 20  # widths, from 1/16 to 16 times sqrt(d), and penalties, as the thesis' figure 4.1 has
Row = tuple[float, float]  # test error and processor seconds


def main() -> None:
    sets = ["cpusmall", "cpuact", "pumadyn32nh", "adult", "breast_cancer", "diabetes", "digits"]
    parser = data_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=sets, choices=[*sets, "protein"])
    parser.add_argument("--centers", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the split and of the centres")
    parser.add_argument("--xrfm", action="store_true")
    args = parse(parser)
    warm = rows_of(args.data, "diabetes")
    by_learned(warm, 50, 0)  # compiled before it is measured
    methods: dict[str, Callable[[Split, int, int], Row]] = {
        "one width, grid": by_grid,
        "one width, full grid": by_full_grid,
        "learned": by_learned,
    }
    if args.xrfm:
        methods["xRFM"] = xrfm
    rows, rivals = [], [other for other in ("one width, full grid", "xRFM") if other in methods]
    for name in args.sets:
        part = rows_of(args.data, name, args.seed)
        results = {method: run(part, args.centers, args.seed) for method, run in methods.items()}
        shares = [f"{results['learned'][1] / results[other][1]:.2f}" for other in rivals]
        cells = [f"{e:.4g}, {s:.1f} s" for e, s in results.values()]
        rows.append((name, *part.X.shape, *cells, *shares))
        print(rows[-1], flush=True)
    header = ("set", "rows", "inputs", *methods, *(f"time over {other}'s" for other in rivals))
    print_table(f"Test error and processor seconds, m={args.centers}", header, rows)


def rows_of(data: Path, name: str, seed: int = 0) -> Split:
    """Standardised training and test rows, and outputs, codes of classes (n, T)."""
    if name == "adult":
        part = adult(data, 8000, seed)
    else:
        if name in ("breast_cancer", "diabetes", "digits"):
            loaders = {"breast_cancer": load_breast_cancer, "diabetes": load_diabetes}
            X, y = loaders.get(name, load_digits)(return_X_y=True)
        else:
            arrays = load(data, name)
            X, y = arrays["X"], arrays["y"]
        if name == "breast_cancer":
            y = 2.0 * y - 1.0
        if name == "digits":
            y = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
        part = split(X, y, int(0.8 * len(X)), seed)
    return part.standardised()


def error(part: Split, predicted: Array) -> float:
    """Root mean squared error, of codes -1 and 1 the share of wrong classes."""
    if part.y.ndim == 2:
        return float(np.mean(part.y_test.argmax(axis=1) != predicted.argmax(axis=1)))
    if set(np.unique(part.y)) <= {-1.0, 1.0}:
        return classification_error(part.y_test, predicted)
    return rmse(part.y_test, predicted)


def by_grid(part: Split, m: int, seed: int) -> Row:
    kernels = [Gaussian(np.sqrt(part.X.shape[1]) * factor) for factor in FACTORS]
    return chosen(part, m, seed, kernels, time.process_time())


def by_full_grid(part: Split, m: int, seed: int) -> Row:
    widths = np.sqrt(part.X.shape[1]) * np.geomspace(1 / 16, 16.0, FULL)
    penalties = tuple(float(p) for p in np.logspace(0, -9, FULL))
    kernels = [Gaussian(width) for width in widths]
    return chosen(part, m, seed, kernels, time.process_time(), penalties)


def by_learned(part: Split, m: int, seed: int) -> Row:
    start = time.process_time()
    outputs = part.y - part.y.mean(axis=0)
    found = learn_widths(NystromKRLS(), part.X, outputs, random_state=seed, **LEARNED)
    return chosen(part, m, seed, [matern(found.length_scale)], start)


def matern(widths: Array) -> Matern:
    """Matern's kernel of a Gaussian's learned widths, each half-way to their geometric mean.

    Rows that are few for so many widths spread them further apart than the inputs differ.
    """
    return Matern(LONGER * np.sqrt(widths * np.exp(np.mean(np.log(widths)))))


def chosen(
    part: Split,
    m: int,
    seed: int,
    kernels: Sequence[Kernel],
    start: float,
    penalties: tuple[float, ...] = PENALTIES,
) -> Row:
    """Validate the kernels with all penalties, fit the best, and test it."""
    mean = part.y.mean(axis=0)
    model = NystromKRLS(n_centers=m, random_state=seed)
    grid = {"kernel": [*kernels], "penalty": penalties}
    best = select(model, part.X, part.y - mean, grid, random_state=seed)
    seconds = time.process_time() - start
    return error(part, best.estimator.predict(part.X_test) + mean), seconds


def xrfm(part: Split, _: int, seed: int) -> Row:
    """xRFM's own defaults; its validation rows are a fifth of the training rows."""
    import torch
    from xrfm import xRFM

    torch.manual_seed(seed)
    kept = int(0.8 * len(part.X))
    X, test = (torch.tensor(A, dtype=torch.float32) for A in (part.X, part.X_test))
    mean = part.y.mean(axis=0)
    y = torch.tensor((part.y - mean).reshape(len(part.y), -1), dtype=torch.float32)
    start = time.process_time()
    model = xRFM(device=torch.device("cpu"), tuning_metric="mse")
    model.fit(X[:kept], y[:kept], X[kept:], y[kept:])
    seconds = time.process_time() - start
    predicted = np.asarray(model.predict(test)).reshape(len(test), -1)
    return error(part, predicted.reshape(part.y_test.shape) + mean), seconds


if __name__ == "__main__":
    main()
