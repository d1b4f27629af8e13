"""Data sets of the papers from files that a user has, in the formats in which they are published.

Where a set has no test rows of its own, so many as in the paper are drawn; `seed` draws them, and
the order of the training rows.
"""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import Split, signs, split
from sklearn.datasets import load_svmlight_file

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import SampleError

Read = Callable[[Sequence[Path], int], Split]
YEAR_TRAINING = 463_715  # rows, as the set's page asks: no song of a test singer is among them
ROWS_HELD_OUT = 0.2  # where a paper sets apart a share
# Of a file that is absent, damaged or another; EOFError: its compressed end is missing.
UNREADABLE = (OSError, ValueError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


@dataclass(frozen=True)
class DataFile:
    """A data set: what its files are called where it is published, and how they are read."""

    files: str
    read: Read


def numbers(path: Path, skip: int = 0, dtype: type = np.float64) -> Array:
    """(n, columns) of a CSV file, as it is, compressed (gz, bz2, xz) or in a zip file by itself.

    `skip` lines of header are left out. Raises SampleError where it cannot be read.
    """
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                inside = [name for name in archive.namelist() if not name.endswith("/")]
                table = max(inside, key=lambda name: archive.getinfo(name).file_size)
                text = io.TextIOWrapper(archive.open(table))
                found = np.loadtxt(text, delimiter=",", skiprows=skip, dtype=dtype, ndmin=2)
        else:
            found = np.loadtxt(path, delimiter=",", skiprows=skip, dtype=dtype, ndmin=2)
    except UNREADABLE as error:
        raise SampleError(f"{path} is no table of numbers with commas between: {error}") from error
    return np.asarray(found)


def label_first(paths: Sequence[Path], dtype: type = np.float32) -> tuple[Array, Array]:
    """X (n, d) and y (n,) of a table with the output in its first column (SUSY, HIGGS)."""
    table = numbers(paths[0], dtype=dtype)
    return table[:, 1:], table[:, 0]


def arrays(path: Path) -> Split | tuple[Array, Array]:
    """X and y of an npz file, and X_test and y_test where it has them. Raises SampleError."""
    try:
        with np.load(path) as file:
            found = {name: file[name] for name in file.files}
            X, y = found["X"], found["y"]
            tested = (found["X_test"], found["y_test"]) if "X_test" in found else None
    except (*UNREADABLE, KeyError, TypeError) as error:
        raise SampleError(f"{path} is no npz file with the arrays X and y: {error}") from error
    return (X, y) if tested is None else Split(X, y, *tested)


def _ijcnn1(paths: Sequence[Path], seed: int) -> Split:
    if len(paths) != 2:
        raise SampleError("ijcnn1 has two files: the training rows' and the test rows'")
    try:
        (X, y), (X_test, y_test) = (load_svmlight_file(str(path), n_features=22) for path in paths)
    except UNREADABLE as error:
        raise SampleError(f"ijcnn1's files can't be read in LIBSVM's format: {error}") from error
    order = np.random.default_rng(seed).permutation(len(y))
    return Split(X.toarray()[order], signs(y[order]), X_test.toarray(), signs(y_test))


def _year_prediction(paths: Sequence[Path], seed: int) -> Split:
    table = numbers(paths[0])
    n = min(YEAR_TRAINING, round(0.9 * len(table)))
    order = np.random.default_rng(seed).permutation(n)
    X, y = table[:, 1:], table[:, 0]
    return Split(X[:n][order], y[:n][order], X[n:], y[n:])


def _year_in_unit_range(paths: Sequence[Path], seed: int) -> Split:
    """Outputs between 0 and 1 on the training rows, as chapter 4 has them."""
    part = _year_prediction(paths, seed)
    low, high = part.y.min(), part.y.max()
    scaled, tested = ((y - low) / (high - low) for y in (part.y, part.y_test))
    return Split(part.X, scaled, part.X_test, tested)


def _covertype(paths: Sequence[Path], seed: int) -> Split:
    """Lodgepole pine, the second of seven classes, against the others; a tenth to test on."""
    table = numbers(paths[0])
    y = np.where(table[:, -1] == 2.0, 1.0, -1.0)
    return split(table[:, :-1], y, round(0.9 * len(y)), seed)


def _ct_slices(paths: Sequence[Path], seed: int) -> Split:
    """Without the patients' numbers; 42 800 of the 53 500 rows to train on, as in table 4.1."""
    table = numbers(paths[0], skip=1)
    return split(table[:, 1:-1], table[:, -1], round(0.8 * len(table)), seed)


FILES = {
    "ijcnn1": DataFile("ijcnn1 and ijcnn1.t, in LIBSVM's format", _ijcnn1),
    "YearPrediction": DataFile("YearPredictionMSD.txt, or the zip file", _year_in_unit_range),
    "CovertypeBinary": DataFile("covtype.data, or covtype.data.gz", _covertype),
    "CT slices": DataFile("slice_localization_data.csv, or the zip file", _ct_slices),
}


def million_songs(paths: Sequence[Path], seed: int) -> Split:
    """YearPredictionMSD with years as they are, as FALKON's paper has them."""
    return _year_prediction(paths, seed)
