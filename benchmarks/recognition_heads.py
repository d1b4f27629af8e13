"""Heads and their rivals on the same features, one class after the other, and joint training.

    python benchmarks/recognition_heads.py DATA --objects emoji-datasource-google-16.0.0.tgz

DATA holds images/cifar10_mobilenetv2.npz and images/mnist.npz; the archive is described in
recognition_objects.py. Classes come one after the other, examples once each; with --new so many of
the last one, and none of it to choose by. Ridges, shrinkages, penalties and sizes of projections
are chosen on rows that are kept, and never learned; test rows have no part in any choice. Beside
them stands logistic regression on everything at once.

RanPAC (McDonnell et al., NeurIPS 2023, https://arxiv.org/abs/2307.02251): ridge regression on
one-hot codes of random ReLU features; FeCAM (Goswami et al., NeurIPS 2023,
https://arxiv.org/abs/2309.14062): Mahalanobis distance with each class' own covariance, shrunk
(1, 1) and normalised to correlations, of features under Tukey's transformation with exponent 0.5.
Both as published, written here.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from output import make_parser, parse
from recognition_objects import add_arguments, rows_of, spread
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyr
from sklearn.linear_model import LogisticRegression
from tables.common import print_table
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.learning import IncrementalRLSC, RandomReLUFeatures

RIDGES = (1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0)
SHRINKAGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 0.9)
# Rows of a class that are learned, kept to choose by, and tested.
SIZES = {"mnist": (500, 100, 300), "cifar10": (500, 100, 300), "objects": (20, 10, 20)}
HEADER = (
    "learner",
    "after all classes [%]",
    "lowest class [%]",
    "last class [%]",
    "learned in [s]",
)


@dataclass
class Split:
    """Rows to learn in their order, rows to choose by, and rows to test on, with their labels."""

    X: Array
    y: Indices
    kept: Array
    y_kept: Indices
    tested: Array
    y_tested: Indices


Answers = Callable[[Array], Indices]


def main() -> None:
    parser = make_parser(__doc__)
    add_arguments(parser)
    parser.add_argument("--units", nargs="+", type=int, default=[1000, 2000])
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--new", type=int, help="examples of the last class (default: of each)")
    parser.add_argument("--trials", type=int, default=3)
    args = parse(parser)
    with threadpool_limits(1):
        for name in args.sets:
            X, y = rows_of(name, args, 150)
            known = y < 100  # of the objects
            run(name, X[known], y[known], SIZES[name], args)


def run(
    title: str, X: Array, y: Indices, sizes: tuple[int, int, int], args: argparse.Namespace
) -> None:
    """Print the table of a set of rows."""
    results: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for trial in range(args.trials):
        split = drawn(X, y, sizes, trial, args.new)
        for name in args.learners:
            start = time.perf_counter()
            answers = LEARNERS[name](split, args.units)
            took = time.perf_counter() - start
            right = answers(split.tested) == split.y_tested
            shares = [right[split.y_tested == c].mean() for c in np.unique(split.y_tested)]
            last = right[split.y_tested == split.y[-1]].mean()
            found = (right.mean(), min(shares), last)
            results[name].append((*(100.0 * share for share in found), took))
    rows = []
    for name, found in results.items():
        *shares, times = np.transpose(found).tolist()
        rows.append([name, *map(spread, shares), f"{np.mean(times):.1f}"])
    last = "" if args.new is None else f" ({args.new} of the last)"
    counts = f"{sizes[0]} rows a class learned{last}, {sizes[1]} kept, {sizes[2]} tested"
    print_table(f"{title}: {counts}, {args.trials} trials", HEADER, rows)


def drawn(
    X: Array, y: Indices, sizes: tuple[int, int, int], trial: int, new: int | None = None
) -> Split:
    """A trial's random rows, the classes' order is random too; `new` rows of the last class."""
    rng = np.random.default_rng(trial)
    parts: list[list[Indices]] = [[], [], []]
    edges = np.cumsum(sizes)
    for label in rng.permutation(np.unique(y)):
        rows = rng.permutation(np.flatnonzero(y == label))[: edges[-1]]
        for part, own in zip(parts, np.split(rows, edges[:-1]), strict=True):
            part.append(own)
    if new is not None:
        parts[0][-1], parts[1][-1] = parts[0][-1][:new], parts[1][-1][:0]
    learned, kept, tested = (np.concatenate(part) for part in parts)
    return Split(X[learned], y[learned], X[kept], y[kept], X[tested], y[tested])


def best(split: Split, candidates: Sequence[Answers]) -> Answers:
    """The candidate with most right answers on the rows that were kept."""
    right = [np.mean(answers(split.kept) == split.y_kept) for answers in candidates]
    return candidates[int(np.argmax(right))]


def stream(model: Any, X: Array, y: Indices) -> Any:
    """Learn class after class; what comes in one call is learned as if it came one by one."""
    for start in np.flatnonzero(np.diff(y, prepend=-1)):
        stop = start + int(np.argmax(np.append(y[start:] != y[start], True)))
        model.partial_fit(X[start:stop], y[start:stop])
    return model


# -------------------------------------------------------------------------------------------------
# The heads of this package.


def head(name: str, projected: bool) -> Callable[[Split, Sequence[int]], Answers]:
    """IncrementalRLSC with this head, of ridges and sizes of projections the best on kept rows."""

    def learn(split: Split, units: Sequence[int]) -> Answers:
        candidates = []
        for size in units if projected else [0]:
            features = "random_relu" if size else None
            given = {"n_features": max(size, 1), "features": features, "random_state": 0}
            model = IncrementalRLSC(RIDGES, 1.0, hold_out=0, head=name, **given)
            candidates.append(
                stream(model, split.X, split.y).validate(split.kept, split.y_kept).predict
            )
        return best(split, candidates)

    return learn


# -------------------------------------------------------------------------------------------------
# Rivals.


class StreamingLDA:
    """Deep SLDA: class means and one covariance of all classes, updated by one example at a time.

    T. Hayes, C. Kanan: Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis,
    CVPR Workshops 2020, https://arxiv.org/abs/1909.01520.

    The precision matrix is the inverse of (1 - shrinkage) S + shrinkage I; scores are
    x'w_t - m_t'w_t / 2 with w_t = precision m_t. They are found when a prediction is asked for
    and something was learned since the last one, as in the authors' code, but by a Cholesky
    factor (their pseudo-inverse is an SVD, which takes longer and gives the same where S has full
    rank or shrinkage is above rounding). An update is O(d^2), such a prediction O(d^3). A class'
    first example is compared with a mean of zero, as in the authors' code, whose runs start from a
    batch.

    Parameters
    ----------
    shrinkage : theirs is 1e-4. It is absolute: what it does depends on the features' scale.
    """

    def __init__(self, d: int, shrinkage: float = 1e-4) -> None:
        self._shrinkage = shrinkage
        self.labels: list[int] = []
        self._means = np.zeros((0, d))
        self._counts = np.zeros(0)
        self._scatter = np.zeros((d, d), order="F")  # S times the number of examples; lower half
        self._n = 0
        self._weights: tuple[Array, Array] | None = None

    def change_shrinkage(self, shrinkage: float) -> None:
        """Use another from now on."""
        self._shrinkage, self._weights = shrinkage, None

    def learn(self, x: Array, label: int) -> None:
        """Learn one example x (d,): the covariance first, by the mean before it."""
        if label not in self.labels:
            self.labels.append(label)
            self._means = np.concatenate((self._means, np.zeros((1, len(x)))))
            self._counts = np.append(self._counts, 0.0)
        t = self.labels.index(label)
        rest = x - self._means[t]
        # n S <- n S + n / (n + 1) rest rest', in place
        dsyr(self._n / (self._n + 1.0), rest, lower=1, a=self._scatter, overwrite_a=1)
        self._counts[t] += 1.0
        self._means[t] += rest / self._counts[t]
        self._n += 1
        self._weights = None

    def scores(self, X: Array) -> Array:
        """(n, T) of rows (n, d), classes in the order of their coming."""
        if self._weights is None:
            S = self._scatter * ((1.0 - self._shrinkage) / self._n)
            S[np.diag_indices_from(S)] += self._shrinkage
            factor = cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
            W = cho_solve(factor, self._means.T, check_finite=False)
            self._weights = W, 0.5 * np.sum(self._means.T * W, axis=0)
        W, c = self._weights
        return X @ W - c

    def predict(self, X: Array) -> Indices:
        """Labels (n,) of rows (n, d)."""
        return np.asarray(self.labels)[self.scores(X).argmax(axis=1)]


def nearest_mean(split: Split, units: Sequence[int]) -> Answers:
    """Nearest class mean by the cosine."""
    labels = np.unique(split.y)
    means = np.stack([split.X[split.y == label].mean(axis=0) for label in labels])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return lambda X: labels[(X @ means.T).argmax(axis=1)]


def streaming_lda(split: Split, units: Sequence[int]) -> Answers:
    """Deep SLDA with the best shrinkage."""
    model = StreamingLDA(split.X.shape[1])
    for x, label in zip(split.X, split.y.tolist(), strict=True):
        model.learn(x, label)

    def with_shrinkage(shrinkage: float) -> Answers:
        def answers(X: Array) -> Indices:
            model.change_shrinkage(shrinkage)
            return model.predict(X)

        return answers

    return best(split, [with_shrinkage(one) for one in SHRINKAGES])


def ranpac(split: Split, units: Sequence[int]) -> Answers:
    """RanPAC: the ridge, from 1e-8 to 1e9 as published, is chosen on kept rows."""
    labels = np.unique(split.y)
    candidates = []
    for size in units:
        features = RandomReLUFeatures(size, 0).fit(split.X)
        Z = features.transform(split.X)
        values, vectors = np.linalg.eigh(Z.T @ Z)
        crossed = vectors.T @ (Z.T @ (split.y[:, None] == labels))
        for ridge in 10.0 ** np.arange(-8, 10):
            W = vectors @ (crossed / (np.maximum(values, 0.0) + ridge)[:, None])
            candidates.append(
                lambda X, W=W, features=features: labels[(features.transform(X) @ W).argmax(axis=1)]
            )
    return best(split, candidates)


def fecam(split: Split, units: Sequence[int]) -> Answers:
    """FeCAM with a covariance for each class."""
    labels = np.unique(split.y)

    def tukey(X: Array) -> Array:
        return np.sqrt(np.maximum(X, 0.0))

    means, factors = [], []
    for label in labels:
        own = tukey(split.X[split.y == label])
        S = np.cov(own.T, bias=True)
        diagonal, off = np.diag(S).mean(), (S.sum() - np.trace(S)) / (len(S) * (len(S) - 1))
        S = S + off * (1.0 - np.eye(len(S))) + diagonal * np.eye(len(S))
        scale = np.sqrt(np.diag(S))
        means.append(own.mean(axis=0))
        factors.append(np.linalg.inv(S / np.outer(scale, scale)))

    def answers(X: Array) -> Indices:
        Z = tukey(X)
        Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
        distances = []
        for mean, precision in zip(means, factors, strict=True):
            off = Z - mean / np.linalg.norm(mean)
            distances.append(np.einsum("ij,ij->i", off @ precision, off))
        return labels[np.argmin(distances, axis=0)]

    return answers


def logistic_regression(split: Split, units: Sequence[int]) -> Answers:
    """Logistic regression on everything at once, its penalty chosen on kept rows."""
    return best(
        split,
        [
            LogisticRegression(C=C, max_iter=300).fit(split.X, split.y).predict
            for C in (1.0, 10.0, 100.0, 1000.0)
        ],
    )


LEARNERS: dict[str, Callable[[Split, Sequence[int]], Answers]] = {
    "least squares": head("least_squares", False),
    "discriminant": head("discriminant", False),
    "random ReLU, least squares": head("least_squares", True),
    "random ReLU, discriminant": head("discriminant", True),
    "nearest class mean": nearest_mean,
    "Deep SLDA": streaming_lda,
    "RanPAC": ranpac,
    "FeCAM": fecam,
    "joint: logistic regression": logistic_regression,
}


if __name__ == "__main__":
    main()
