"""The time of the recogniser's updates and predictions, by examples learned and classes known.

    python benchmarks/recognition_cost.py

Rows are random, of unit length. Every sixth example of a class is held out instead of learned, and
the candidates are judged by it: that costs more and stands apart. "Memory" is what the model holds,
"saved" the arrays that a file would have.
"""

from __future__ import annotations

import argparse
import copy
import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from output import make_parser, parse
from tables.common import print_table
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.learning import IncrementalRLSC

PENALTIES = {1: (0.3,), 3: (0.03, 0.3, 3.0)}
BLOCK = 5000  # rows learned at a time on the way to the size that is measured
WARM = 5  # calls at the start of a round that don't count
HEADER = ("learned: p50", "p99", "held out: p50", "p99", "prediction: p50", "p99")


@dataclass
class Times:
    """Milliseconds of single calls."""

    learned: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    predicted: list[float] = field(default_factory=list)

    def figures(self) -> list[float]:
        """Median and 99th percentile of each; NaN where there were none."""
        kinds = (self.learned, self.held_out, self.predicted)
        return [float(np.percentile(k, q)) if k else np.nan for k in kinds for q in (50, 99)]


def main() -> None:
    args = read_arguments()
    with threadpool_limits(1):
        for d in args.d:
            for candidates in args.penalties:
                title = f"d = {d}, {candidates} penalt{'y' if candidates == 1 else 'ies'}"
                by_examples(title, d, PENALTIES[candidates], args)
                by_classes(title, d, PENALTIES[candidates], args)


def read_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--d", type=int, nargs="+", default=[256, 1280], help="features")
    parser.add_argument("--penalties", type=int, nargs="+", default=[1, 3], choices=(1, 3))
    parser.add_argument("--examples", type=int, nargs="+", default=[100, 100_000])
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--learned", type=int, default=20_000, help="examples, by classes")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=60, help="of each kind in a round")
    return parse(parser)


def by_examples(title: str, d: int, penalties: Sequence[float], args: argparse.Namespace) -> None:
    T = 10
    models = [taught(d, T, n, penalties) for n in args.examples]
    rows = table(models, args.examples, T, args)
    print_table(f"{title}, {T} classes: times [ms] by examples", ("examples", *HEADER), rows)
    sizes = [
        (n, f"{held(model) / 2**20:.1f}", f"{saved(model) / 2**20:.1f}")
        for n, model in zip(args.examples, models, strict=True)
    ]
    print_table(f"{title}, {T} classes: MB", ("examples", "memory", "saved"), sizes)


def by_classes(title: str, d: int, penalties: Sequence[float], args: argparse.Namespace) -> None:
    models = [taught(d, T, args.learned, penalties) for T in args.classes]
    rows = table(models, args.classes, None, args)
    name = f"{title}, {args.learned} examples: times [ms] by classes"
    print_table(name, ("classes", *HEADER), rows)


def table(
    models: list[IncrementalRLSC], names: Sequence[int], T: int | None, args: argparse.Namespace
) -> list[list[str]]:
    """A row of figures for each model, and how the last compares with the first."""
    times = [Times() for _ in models]
    for seed in range(args.rounds):  # in turn, so that what else the machine does hits all
        for model, found in zip(models, times, strict=True):
            measure(copy.deepcopy(model), args.calls, seed, found)
    figures = [one.figures() for one in times]
    rows = [
        [str(name), *(f"{value:.3f}" for value in row)]
        for name, row in zip(names, figures, strict=True)
    ]
    ratios = [f"{last / first:.2f}" for last, first in zip(figures[-1], figures[0], strict=True)]
    return [*rows, ["last / first", *ratios]]


def measure(model: IncrementalRLSC, calls: int, seed: int, times: Times) -> None:
    """Time calls with one row each, on a copy of the model."""
    X, y = examples(calls + WARM, model.n_features_in_, len(model.classes_), (1, seed))
    count = model.class_count_.sum()
    for i in range(len(X)):
        x, label = X[i : i + 1], y[i : i + 1]
        start = time.perf_counter()
        model.predict_proba(x)
        middle = time.perf_counter()
        model.partial_fit(x, label)
        end = time.perf_counter()
        learned, count = model.class_count_.sum() > count, model.class_count_.sum()
        if i >= WARM:
            times.predicted.append(1e3 * (middle - start))
            (times.learned if learned else times.held_out).append(1e3 * (end - middle))


def taught(d: int, T: int, n: int, penalties: Sequence[float]) -> IncrementalRLSC:
    """A model with n examples of T classes, one of each at first."""
    model = IncrementalRLSC(penalties)
    for first in range(0, n, BLOCK):
        X, y = examples(min(BLOCK, n - first), d, T, (0, first))
        y[:T] = np.arange(T)
        model.partial_fit(X, y)
    return model


def examples(n: int, d: int, T: int, seed: Sequence[int]) -> tuple[Array, Indices]:
    """Random rows (n, d) of unit length and random labels (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True), rng.integers(T, size=n)


def held(model: IncrementalRLSC) -> int:
    """Bytes that the model occupies, buffers for what is still to come included."""
    return len(pickle.dumps(model, protocol=5))


def saved(model: IncrementalRLSC) -> int:
    """Bytes of its saved arrays."""
    return sum(np.asarray(value).nbytes for value in model.state().values())


if __name__ == "__main__":
    main()
