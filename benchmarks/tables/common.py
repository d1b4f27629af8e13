"""Shared by the tables: the data sets, time and peak memory, and printing."""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import MinMaxScaler, StandardScaler

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))  # what all benchmarks share
from output import make_parser, parse  # noqa: E402, F401

from semiparam_dynamics.base.arrays import Array  # noqa: E402
from semiparam_dynamics.learning.selection import select  # noqa: E402

T = TypeVar("T")
PUBLISHED_SETTINGS = ", published settings"  # of rows with those of the authors' code


@dataclass(frozen=True)
class Split:
    """Training and test rows of a data set, inputs (n, d) and outputs (n,)."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array

    def first(self, n: int | None) -> Split:
        """So many training rows; None: all of them."""
        return Split(self.X[:n], self.y[:n], self.X_test, self.y_test)

    def standardised(self) -> Split:
        """Inputs of zero mean and unit variance on the training rows."""
        scaler = StandardScaler().fit(self.X)
        return Split(scaler.transform(self.X), self.y, scaler.transform(self.X_test), self.y_test)

    def unit_range(self) -> Split:
        """Inputs between 0 and 1 on the training rows."""
        scaler = MinMaxScaler().fit(self.X)
        return Split(scaler.transform(self.X), self.y, scaler.transform(self.X_test), self.y_test)

    def symmetric_range(self) -> Split:
        """Inputs between -1 and 1 on the training rows: a kernel half as wide as on [0, 1]."""
        scaler = MinMaxScaler((-1.0, 1.0)).fit(self.X)
        return Split(scaler.transform(self.X), self.y, scaler.transform(self.X_test), self.y_test)


# The papers don't say how inputs are scaled; these are the candidates, chosen by validation. Rows
# of the published settings have the scaling of the authors' code.
SCALINGS: dict[str, Callable[[Split], Split]] = {
    "[0, 1]": Split.unit_range,
    "z-scores": Split.standardised,
    "raw": lambda part: part,
}


def best_scaling(
    part: Split, estimator: Any, grid: Mapping[str, Sequence[Any]], error: str = "rmse"
) -> tuple[str, str]:
    """The first scaling within 1 % of the smallest error on a fifth of the training rows.

    The first is the unit range, which the sets that do tell them apart all ask for. Also a sentence
    with the errors.
    """
    errors = {}
    for name, scaled in SCALINGS.items():
        X = scaled(part).X
        chosen = select(estimator, X, part.y, grid, error=error, random_state=0, refit=False)
        errors[name] = chosen.best_error
    smallest = min(errors.values())
    best = next(name for name, e in errors.items() if e <= 1.01 * smallest)
    tried = ", ".join(f"{e:.4g} ({name})" for name, e in errors.items())
    return best, f"Inputs as {best}: of validation errors {tried}."


def chosen(model: Any, part: Split, name: str, values: Sequence[Any], error: Any = "rmse") -> Any:
    """The value of a parameter with the smallest error on a fifth of the training rows."""
    inner = held_out(part)
    given, grid = (inner.X_test, inner.y_test), {name: values}
    found = select(model, inner.X, inner.y, grid, error=error, validation=given, refit=False)
    return found.best[name]


def load(data: Path, name: str) -> dict[str, Array]:
    """The arrays of `tables/NAME.npz` in the folder `data`, in float64."""
    with np.load(data / "tables" / f"{name}.npz") as arrays:
        return {key: np.asarray(arrays[key], dtype=float) for key in arrays.files}


def signs(labels: Array) -> Array:
    """Labels 0 and 1, or -1 and 1, as -1 and 1."""
    return np.where(labels > 0.0, 1.0, -1.0)


def adult(data: Path, n_train: int | None = None, seed: int = 0) -> Split:
    """The published split of adult, labels -1 and 1; with `n_train`, so many random rows of it.

    The training rows are in the order of the seed.
    """
    a = load(data, "adult")
    order = np.random.default_rng(seed).permutation(len(a["X_train"]))[:n_train]
    return Split(a["X_train"][order], signs(a["y_train"][order]), a["X_test"], signs(a["y_test"]))


def breast_cancer(seed: int) -> Split:
    """The published split of breast cancer, the first 400 rows of 569 to train on, inputs [0, 1].

    Labels are 1 for malignant and -1; the training rows are in the order of the seed.
    """
    loaded = load_breast_cancer()
    X, y = MinMaxScaler().fit_transform(loaded.data), signs(1.0 - loaded.target)
    order = np.random.default_rng(seed).permutation(400)
    return Split(X[order], y[order], X[400:], y[400:])


def held_out(part: Split, share: float = 0.2) -> Split:
    """The training rows as two: the last `share` of them takes the test rows' place.

    Rows come from `split` and `adult` in random order.
    """
    kept = len(part.X) - round(share * len(part.X))
    return Split(part.X[:kept], part.y[:kept], part.X[kept:], part.y[kept:])


def split(X: Array, y: Array, n_train: int, seed: int) -> Split:
    """A random split with `n_train` training rows."""
    order = np.random.default_rng(seed).permutation(len(y))  # X may be sparse
    train, test = order[:n_train], order[n_train:]
    return Split(X[train], y[train], X[test], y[test])


def rmse(y: Array, predicted: Array) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(np.mean((y - predicted) ** 2)))


def classification_error(y: Array, predicted: Array) -> float:
    """Share of rows whose sign differs."""
    return float(np.mean(np.sign(predicted) != np.sign(y)))


@dataclass
class Cost:
    """Seconds on the clock, and by how much the process' resident memory rose at its peak."""

    seconds: float = 0.0
    megabytes: float = 0.0


@contextmanager
def cost() -> Iterator[Cost]:
    """Measure what is done inside the `with`. The peak is read from Linux' /proc."""
    result = Cost()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from here
    before = _resident("VmRSS")
    start = time.perf_counter()
    yield result
    result.seconds = time.perf_counter() - start
    result.megabytes = max(_resident("VmHWM") - before, 0.0)


def measured(function: Callable[[], T]) -> tuple[T, Cost]:
    """function()'s answer and its cost."""
    with cost() as spent:
        answer = function()
    return answer, spent


class Trials(defaultdict[str, list[float]]):
    """Of one method a value for each trial, by name: seconds, megabytes, and errors."""

    def __init__(self) -> None:
        super().__init__(list)

    def add(self, spent: Cost, **values: float) -> None:
        """Add a trial."""
        for name, value in {**vars(spent), **values}.items():
            self[name].append(value)

    @property
    def peak(self) -> str:
        """The largest rise of memory, MB."""
        return f"{max(self['megabytes']):.0f}"


def _resident(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return float(line.split()[1]) / 1024.0
    return 0.0


def plus_minus(values: Sequence[float], digits: int = 4) -> str:
    """Mean and standard deviation of the trials."""
    return f"{np.mean(values):.{digits}g} +- {np.std(values):.1g}"


def deviations(values: Sequence[float], published: float, spread: float) -> str:
    """Distance of the trials' mean from the published value, in published deviations."""
    return f"{(np.mean(values) - published) / spread:+.1f}"


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A Markdown table under a title."""
    cells = [list(map(str, row)) for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    print(f"\n## {title}\n")
    for number, row in enumerate(cells):
        print("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (w + 2) for w in widths) + "|")
    print(flush=True)


def pyplot() -> Any:
    """matplotlib, drawing to files: where none is asked for it need not be there."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def save_figure(figure: Any, out: Path, name: str) -> None:
    """Write NAME.png into the folder `out`, or beside the file `out`."""
    folder = out.parent if out.suffix else out
    figure.savefig(folder / f"{name}.png", dpi=120, bbox_inches="tight")
    print(f"Figure: {name}.png", flush=True)


def data_parser(doc: str | None) -> argparse.ArgumentParser:
    """A parser with the one argument that all tables need."""
    parser = make_parser(doc)
    parser.add_argument("data", type=Path, help="folder that holds tables/NAME.npz")
    return parser
