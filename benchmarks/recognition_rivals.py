"""The recogniser beside Deep SLDA and scikit-learn's SGDClassifier, on streams of labelled rows.

    python benchmarks/recognition_rivals.py DATA

DATA holds images/cifar10_mobilenetv2.npz and images/mnist.npz. All learn row by row, each row once.
What the rivals leave open, SLDA's shrinkage, SGD's step and whether its iterates are averaged, is
chosen on every fifth row of the stream after learning the others in the same order, by the accuracy
at half of it plus that at its end, on the classes that had come. SGD is told the classes before.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from recognition_learners import LEARNERS, Learner
from tables.common import print_table
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array, Indices

ASKED = 20  # single predictions timed while a stream is learned
CHECKS = 10  # times that a stream's test rows are predicted
HEADER = (
    "learner",
    "final [%]",
    "lowest class [%]",
    "rare class [%]",
    "over the stream [%]",
    "update p50 [ms]",
    "p99",
    "prediction after an update",
    "the next prediction",
)
ORDERS = {
    "classes": "one class after the other",
    "shuffled": "shuffled",
    "rare": "shuffled, one class with a tenth",
}


@dataclass
class Stream:
    """Training rows in their order, test rows as many of each class, and the class with fewest."""

    X: Array
    y: Indices
    X_test: Array
    y_test: Indices
    rare: int | None = None


@dataclass
class Figures:
    """The results of the trials, in % and ms."""

    final: list[float] = field(default_factory=list)
    lowest: list[float] = field(default_factory=list)
    rare: list[float] = field(default_factory=list)
    over_stream: list[float] = field(default_factory=list)
    update: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    next: list[float] = field(default_factory=list)

    def row(self, name: str) -> list[str]:
        return [
            name,
            *map(spread, (self.final, self.lowest, self.rare, self.over_stream)),
            *(f"{np.percentile(self.update, q):.2f}" for q in (50, 99)),
            *(f"{np.median(times):.2f}" for times in (self.first, self.next)),
        ]


def main() -> None:
    args = parse()
    with threadpool_limits(1):
        for name in args.sets:
            title, load = SETS[name]
            X, y = load(args.data)
            for order in args.orders:
                found: dict[str, Figures] = defaultdict(Figures)
                for trial in range(args.trials):
                    stream = arrange(X, y, order, args.per_class, args.test, trial)
                    for make in (LEARNERS[one] for one in args.learners):
                        run(make(stream.X, stream.y), stream, found)
                rows = [figures.row(key) for key, figures in found.items()]
                counts = f"{args.per_class} rows a class, {args.trials} trials"
                print_table(f"{title}, {ORDERS[order]}: {counts}", HEADER, rows)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder that holds images/NAME.npz")
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), default=list(SETS))
    parser.add_argument("--orders", nargs="+", choices=tuple(ORDERS), default=list(ORDERS))
    parser.add_argument("--learners", nargs="+", choices=tuple(LEARNERS), default=list(LEARNERS))
    parser.add_argument("--per-class", type=int, default=100, help="training rows of each class")
    parser.add_argument("--test", type=int, default=200, help="test rows of each class")
    parser.add_argument("--trials", type=int, default=5)
    return parser.parse_args()


def cifar10(data: Path) -> tuple[Array, Indices]:
    """Features (n, 1280) of an image network, as it gives them, and labels."""
    with np.load(data / "images" / "cifar10_mobilenetv2.npz") as arrays:
        return arrays["X"].astype(float), arrays["y"].astype(np.intp)


def mnist(data: Path) -> tuple[Array, Indices]:
    """Pixels (n, 784) from 0 to 1 and labels, of the first 20 000 training rows."""
    with np.load(data / "images" / "mnist.npz") as arrays:
        X, y = arrays["X_train"][:20_000], arrays["y_train"][:20_000]
    return X / 255.0, y.astype(np.intp)


def unit(load: Callable[[Path], tuple[Array, Indices]]) -> Callable[[Path], tuple[Array, Indices]]:
    """The rows scaled to length 1, as the node has them."""

    def loaded(data: Path) -> tuple[Array, Indices]:
        X, y = load(data)
        return X / np.linalg.norm(X, axis=1, keepdims=True), y

    return loaded


SETS = {
    "cifar10": ("CIFAR-10 features, unit length", unit(cifar10)),
    "cifar10-raw": ("CIFAR-10 features, raw", cifar10),
    "mnist": ("MNIST pixels, unit length", unit(mnist)),
    "mnist-raw": ("MNIST pixels, 0 to 1", mnist),
}


def arrange(X: Array, y: Indices, order: str, per_class: int, test: int, trial: int) -> Stream:
    """A trial's random rows in the order asked for; the classes' own order is random too."""
    rng = np.random.default_rng(trial)
    classes = rng.permutation(np.unique(y))
    rare = int(classes[-1]) if order == "rare" else None
    train, held = [], []
    for label in classes:
        rows = rng.permutation(np.flatnonzero(y == label))
        held.append(rows[:test])
        train.append(rows[test:][: max(per_class // 10, 1) if label == rare else per_class])
    ordered, tested = np.concatenate(train), np.concatenate(held)
    if order != "classes":
        ordered = rng.permutation(ordered)
    return Stream(X[ordered], y[ordered], X[tested], y[tested], rare)


def run(learner: Learner, stream: Stream, found: dict[str, Figures]) -> None:
    """Learn the stream; note times and accuracies, the latter on the classes that have come."""
    n = len(stream.X)
    times, first, following = [], [], []
    over: dict[str, list[float]] = defaultdict(list)
    for i, (x, label) in enumerate(zip(stream.X, stream.y.tolist(), strict=True)):
        if i and i % max(n // ASKED, 1) == 0:
            first.append(milliseconds(lambda x=x: learner.predict(x[None])))
            following.append(milliseconds(lambda x=x: learner.predict(x[None])))
        times.append(milliseconds(lambda x=x, label=label: learner.learn(x, label)))
        if (i + 1) * CHECKS // n > i * CHECKS // n:
            known = np.isin(stream.y_test, stream.y[: i + 1])
            answers = learner.answers(stream.X_test[known])
            for name, answer in answers.items():
                over[name].append(100.0 * float(np.mean(answer == stream.y_test[known])))
    for name, answer in answers.items():
        right, figures = answer == stream.y_test, found[name]
        shares = {t: 100.0 * float(right[stream.y_test == t].mean()) for t in set(stream.y_test)}
        figures.final.append(100.0 * float(right.mean()))
        figures.lowest.append(min(shares.values()))
        if stream.rare is not None:
            figures.rare.append(shares[stream.rare])
        figures.over_stream.append(float(np.mean(over[name])))
        figures.update += times
        figures.first += first
        figures.next += following


def spread(values: list[float]) -> str:
    """Mean and standard deviation over the trials."""
    return f"{np.mean(values):.1f} +- {np.std(values):.1f}" if values else ""


def milliseconds(call: Callable[[], object]) -> float:
    """The time of a call."""
    start = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - start)


if __name__ == "__main__":
    main()
