"""FALKON's tables 2 and 3: a large data set from its file.

    python benchmarks/tables/falkon_tables_2_and_3.py SUSY SUSY.csv.gz

MillionSongs is YearPredictionMSD.txt (or its zip file); SUSY and HIGGS are the CSV files with the
label first. TIMIT and IMAGENET have no public file of the features used: an npz file with X (n, d)
and y (n,) of class numbers, and X_test and y_test where the test rows are fixed. YELP is a SciPy
sparse matrix (save_npz), and a second file with y, by NumPy's save.

Kernel, width, penalty and centres are the paper's, inputs z-scores of the training rows but for
YELP and IMAGENET, and a fifth of the rows is tested where no test rows are fixed. HIGGS has one
width: the paper's diagonal ones are not stated. YELP's penalty is not stated either. The (M, M)
matrices of FALKON take 16 M^2 bytes, 160 GB with 10^5 centres: --centers takes fewer.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import Split, make_parser, measured, parse, print_table, split
from data_files import ROWS_HELD_OUT, UNREADABLE, arrays, label_first, million_songs
from sklearn.metrics import roc_auc_score

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.learning.falkon import Falkon
from semiparam_dynamics.learning.kernels import Gaussian, Kernel, Linear

Errors = dict[str, float]


@dataclass(frozen=True)
class LargeSet:
    """A data set of the two tables, its settings and the published figures.

    sigma: of the Gaussian kernel; None: the linear one. classes: 0: regression; 2: codes -1 and 1.
    """

    rows: float
    sigma: float | None
    penalty: float
    centers: int
    classes: int
    published: dict[str, str]
    seconds: float
    note: str = ""


SETS = {
    "MillionSongs": LargeSet(
        4.6e5, 6.0, 1e-6, 10_000, 0, {"MSE": "80.10", "relative error": "4.51e-3"}, 55.0
    ),
    "YELP": LargeSet(1.5e6, None, 1e-6, 50_000, 0, {"RMSE": "0.833"}, 1200.0, "penalty not stated"),
    "TIMIT": LargeSet(1.2e6, 15.0, 1e-9, 100_000, 144, {"classification error": "32.3 %"}, 5400.0),
    "SUSY": LargeSet(
        5e6, 4.0, 1e-6, 10_000, 2, {"classification error": "19.6 %", "AUC": "0.877"}, 240.0
    ),
    "HIGGS": LargeSet(
        1.1e7, 5.0, 1e-8, 100_000, 2, {"AUC": "0.825"}, 10_800.0, "0.833 with diagonal widths"
    ),
    "IMAGENET": LargeSet(
        1.3e6, 19.0, 1e-9, 50_000, 1000, {"classification error": "20.7 %"}, 14_400.0
    ),
}
UNSCALED = ("YELP", "IMAGENET")


def read(name: str, paths: list[Path], seed: int) -> Split:
    """The data set of a name from its files. Raises SampleError."""
    if name == "MillionSongs":
        return million_songs(paths, seed)
    if name == "YELP":
        return sparse(paths, seed)
    if name in ("SUSY", "HIGGS") and paths[0].suffix != ".npz":
        given: Split | tuple[Array, Array] = label_first(paths)
    else:
        given = arrays(paths[0])
    if isinstance(given, Split):
        return given
    X, y = given
    return split(X, y, round((1.0 - ROWS_HELD_OUT) * len(X)), seed)


def sparse(paths: list[Path], seed: int) -> Split:
    """A sparse matrix of inputs and a file of outputs. Raises SampleError."""
    from scipy.sparse import load_npz

    if len(paths) != 2:
        raise SampleError("YELP has two files: a sparse matrix (npz) and its outputs (npy)")
    try:
        X, y = load_npz(paths[0]).tocsr(), np.load(paths[1]).astype(float)
    except (*UNREADABLE, KeyError, TypeError) as error:
        raise SampleError(f"YELP's files can't be read: {error}") from error
    return split(X, y, round((1.0 - ROWS_HELD_OUT) * X.shape[0]), seed)


def codes(y: Array, classes: Array) -> Array:
    """Outputs to regress: (n,) -1 and 1 for two classes, (n, classes) for more."""
    if len(classes) == 2:
        return np.where(y == classes[1], 1.0, -1.0)
    return np.where(y[:, None] == classes, 1.0, -1.0)


def errors(name: str, large: LargeSet, y: Array, predicted: Array, classes: Array) -> Errors:
    """The table's errors of predictions (n,), or scores (n, classes); rates in per cent."""
    if large.classes == 0:
        squares = (y - predicted) ** 2
        if name == "YELP":
            return {"RMSE": float(np.sqrt(squares.mean()))}
        relative = float(np.sqrt(np.mean(squares / np.maximum(y**2, 1e-12))))
        return {"MSE": float(squares.mean()), "relative error": relative}
    if predicted.ndim == 1:
        chosen = classes[(predicted > 0.0).astype(int)]
        area = float(roc_auc_score(y == classes[1], predicted))
        return {"classification error": 100.0 * float(np.mean(chosen != y)), "AUC": area}
    chosen = classes[np.argmax(predicted, axis=1)]
    return {"classification error": 100.0 * float(np.mean(chosen != y))}


def run(name: str, part: Split, arguments: argparse.Namespace) -> tuple[Errors, Any, Falkon]:
    """Errors, cost and estimator of one fit."""
    large = SETS[name]
    classes = np.unique(part.y) if large.classes else np.zeros(0)
    targets, mean = part.y, 0.0
    if large.classes:
        targets = codes(part.y, classes)
    else:
        mean = float(part.y.mean())
        targets = part.y - mean
    X, X_test = part.X, part.X_test
    if name not in UNSCALED:
        center, scale = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-12)
        X, X_test = ((x - center) / scale for x in (X, X_test))
    X, X_test = (x.astype(arguments.dtype, copy=False) for x in (X, X_test))
    kernel: Kernel = Linear() if large.sigma is None else Gaussian(large.sigma)
    penalty = large.penalty if arguments.penalty is None else arguments.penalty
    falkon = Falkon(
        kernel,
        penalty=penalty,
        n_centers=arguments.centers or large.centers,
        max_iter=arguments.iterations,
        random_state=arguments.seed,
        preconditioner_rows=arguments.preconditioner_rows,
        verbose=arguments.verbose,
    )
    fitted, spent = measured(lambda: falkon.fit(X, targets.astype(arguments.dtype)))
    predicted = fitted.predict(X_test) + mean
    return errors(name, large, part.y_test, predicted, classes), spent, fitted


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("name", choices=SETS)
    parser.add_argument("files", type=Path, nargs="+", help="of the data set")
    parser.add_argument("--centers", type=int, help="in place of the paper's")
    parser.add_argument("--penalty", type=float, help="in place of the paper's")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--preconditioner-rows", type=int, help="see Falkon")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="draw a progress bar")
    arguments = parse(parser)
    name, large = arguments.name, SETS[arguments.name]
    try:
        part = read(name, arguments.files, arguments.seed)
    except SampleError as error:
        parser.error(str(error))
    found, spent, fitted = run(name, part, arguments)
    rows = [(key, f"{value:.4g}", large.published.get(key, "")) for key, value in found.items()]
    rows.append(("seconds", f"{spent.seconds:.1f}", f"{large.seconds:g}, with a GPU"))
    rows.append(("peak MB", f"{spent.megabytes:.0f}", ""))
    kernel = "linear" if large.sigma is None else f"sigma = {large.sigma:g}"
    print_table(
        f"{name}: {part.X.shape[0]} rows to train on ({large.rows:g} in the paper, tested "
        f"ones too), {part.X_test.shape[0]} to test on, {part.X.shape[1]} inputs, {kernel}, "
        f"lambda = {fitted.penalty:g}, M = {fitted.n_centers} ({large.centers} in the paper), "
        f"{fitted.n_iter_} iterations, {arguments.dtype}",
        ("", "here", "published"),
        rows,
    )
    if large.note:
        print(f"Published: {large.note}.")


if __name__ == "__main__":
    main()
