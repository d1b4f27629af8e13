"""Falkon as it is, without one setting, beside scikit-learn's kernel methods without one.

    OMP_NUM_THREADS=1 python benchmarks/tables/defaults.py DATA [--n N] [--seeds N]

Inputs and outputs are standardised by the training rows, labels are -1 and 1. Root mean squared
errors on the other rows, relative to the best of scikit-learn's, and seconds; means over splits.
The constants of the rule for width and penalty follow the data sets named "set"; the first study of
the rule went over all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import Split, data_parser, load, parse, print_table, rmse, split
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVR

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.learning import Falkon

TABLES = ("cpusmall", "cpuact", "pumadyn32nh", "insurance", "protein", "adult")
USED = ("cpusmall", "cpuact", "protein", "diabetes", "digits")  # for the rule's constants
TRAINED = 0.7  # of the rows
FRIEDMAN_ROWS = 4000


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("--n", type=int, default=6000, help="rows of a set at most")
    parser.add_argument("--seeds", type=int, default=3, help="splits of each set")
    args = parse(parser)
    rows = []
    for name, X, y in data_sets(args.data):
        errors, seconds = [], []
        for seed in range(args.seeds):
            n = min(args.n, len(y))
            chosen = np.random.default_rng(seed).permutation(len(y))[:n]
            part = split(X[chosen], y[chosen], round(TRAINED * n), seed).standardised()
            found = [tested(model, part) for model in models(seed)]
            errors.append([error for error, _ in found])
            seconds.append([spent for _, spent in found])
        mean, spent = np.mean(errors, axis=0), np.mean(seconds, axis=0)
        ratio = mean[0] / mean[1:].min()
        kind = "set" if name in USED else "shown"
        cells = [f"{e:.4f} ({s:.1f})" for e, s in zip(mean, spent, strict=True)]
        rows.append([name, kind, len(part.X), *cells, f"{ratio:.3f}"])
    header = ["data", "rule", "rows", "Falkon()", "Nystroem()+Ridge()", "KernelRidge()", "SVR()"]
    print_table("Errors (seconds) with defaults", [*header, "Falkon / best"], rows)


def models(seed: int) -> list[Any]:
    """Ours, and scikit-learn's."""
    nystroem = make_pipeline(Nystroem(random_state=seed), Ridge())
    return [Falkon(random_state=seed), nystroem, KernelRidge(), SVR()]


def tested(model: Any, part: Split) -> tuple[float, float]:
    """The error on the test rows, by the outputs' deviation, and the fit's seconds."""
    mean, deviation = part.y.mean(), part.y.std()
    start = time.perf_counter()
    model.fit(part.X, (part.y - mean) / deviation)
    spent = time.perf_counter() - start
    return rmse((part.y_test - mean) / deviation, model.predict(part.X_test)), spent


def data_sets(data: Path) -> Iterator[tuple[str, Array, Array]]:
    """Names, inputs (n, d) and outputs (n,)."""
    for name in TABLES:
        table = load(data, name)
        parts = [[table[key] for key in table if key.lower().startswith(which)] for which in "xy"]
        X, y = (np.concatenate(part).astype(float) for part in parts)
        yield name, X, y.ravel()
    yield "diabetes", *load_diabetes(return_X_y=True)
    X, labels = load_breast_cancer(return_X_y=True)
    yield "breast cancer", X, 2.0 * labels - 1.0
    X, digits = load_digits(return_X_y=True)
    yield "digits", X, 2.0 * (digits % 2) - 1.0
    yield "friedman 1", *make_friedman1(FRIEDMAN_ROWS, noise=1.0, random_state=0)
    yield "friedman 2", *make_friedman2(FRIEDMAN_ROWS, noise=50.0, random_state=0)
    yield "friedman 3", *make_friedman3(FRIEDMAN_ROWS, noise=0.1, random_state=0)


if __name__ == "__main__":
    main()
