"""A new class of 1 to 100 examples beside nine of many: thesis table 7.1's protocol for each head.

    python benchmarks/recognition_few.py DATA

DATA holds images/cifar10_mobilenetv2.npz and images/mnist.npz. Of nine classes 1000 examples each
are learned (600 of CIFAR-10's features, of which there are fewer), and 80 are kept to choose ridge
and recoding by; then examples of a class that is drawn anew in each trial, one by one. 200 test
rows of each class (120). Means over the trials in %, with the standard deviation of the new class'.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
from recognition_rivals import cifar10, mnist, spread
from tables.common import print_table
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.learning import IncrementalRLSC

KEPT = 80
NEW = (1, 5, 10, 50, 100)
HEADS = {
    "least squares, exponent 0.7": ("least_squares", 0.7),
    "least squares, exponent chosen": ("least_squares", "auto"),
    "discriminant, exponent 1": ("discriminant", 1.0),
    "discriminant, exponent chosen": ("discriminant", "auto"),
}
SETS = {  # rows, examples of each class, test rows of each class, ridges
    "MNIST pixels": (mnist, 1000, 200, (1.0, 10.0, 100.0, 1000.0, 10_000.0)),
    "CIFAR-10 features, unit length": (cifar10, 600, 120, (0.03, 0.1, 0.3, 1.0, 3.0)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--trials", type=int, default=10)
    args = parser.parse_args()
    with threadpool_limits(1):
        for title, (load, many, test, ridges) in SETS.items():
            X, y = load(args.data)
            if title.startswith("CIFAR"):
                X = X / np.linalg.norm(X, axis=1, keepdims=True)
            found: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
            for trial in range(args.trials):
                run(X, y, many, test, ridges, trial, found)
            rows = []
            for (new, name), shares in sorted(found.items(), key=lambda one: one[0][0]):
                total, own = np.transpose(shares)
                rows.append([str(new), name, f"{total.mean():.1f}", spread(own.tolist())])
            header = ("new examples", "head", "total [%]", "new class [%]")
            print_table(f"{title}, {args.trials} trials", header, rows)


def run(
    X: Array,
    y: Indices,
    many: int,
    test: int,
    ridges: tuple[float, ...],
    trial: int,
    found: dict[tuple[int, str], list[tuple[float, float]]],
) -> None:
    """Learn in one trial, and note the shares of right answers, in %."""
    rng = np.random.default_rng(trial)
    new = int(rng.integers(10))
    rows = [rng.permutation(np.flatnonzero(y == label)) for label in range(10)]
    tested = np.concatenate([own[:test] for own in rows])
    kept = np.concatenate([own[test : test + KEPT] for c, own in enumerate(rows) if c != new])
    learned = np.concatenate([own[test + KEPT :][:many] for c, own in enumerate(rows) if c != new])
    stream = rows[new][test + KEPT :]
    for name, (head, recoding) in HEADS.items():
        model = IncrementalRLSC(ridges, recoding, hold_out=0, tolerance=0.01, head=head)
        model.partial_fit(X[learned], y[learned])
        come = 0
        for n in NEW:
            for x in X[stream[come:n]]:
                model.partial_fit(x[None], [new])
            come = n
            right = model.validate(X[kept], y[kept]).predict(X[tested]) == y[tested]
            own = right[y[tested] == new]
            found[n, name].append((100.0 * right.mean(), 100.0 * own.mean()))


if __name__ == "__main__":
    main()
