"""When features drawn by leverage scores are fewer: an experiment on figure 5.2's simulation.

    python benchmarks/tables/leverage_features.py [--n 3162] [--repetitions 20] [--draws 8]
        [--few]

Every row draws features of the same kernel in another way, for the same data sets: as the sampler
has them (theta), or among N candidates with replacement by q, estimated from so many rows with so
large a ridge. On the circle's uniform features the leverage score is the same for all by symmetry,
so that q = 1 is exact; with theta skewed (five times as many features at one side as at the other,
and their squares a fifth) it is not, and leverage scores have something to find.

m is the smallest number of features with a mean excess risk, over the draws and the data sets,
within 5 % of KRLS'; in brackets 95 % of 1000 bootstrap samples of the data sets. "Spread of q" is
the deviation of the candidates' q over its mean.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from common import print_table
from random_features import (
    FEATURES,
    Circle,
    data_set,
    first_within,
    random_features,
    risks_of_krls,
)

from semiparam_dynamics.base.arrays import Array

RESAMPLES = 1000  # of the bootstrap
SKEW = 2.0 / 3.0  # theta's density is 1 + SKEW cos(2 pi w): from 1/3 to 5/3
Probabilities = Callable[[Array, Array, float], Array]  # B (p, N), rows E (n, p), penalty -> (N,)


@dataclass(frozen=True)
class Skewed(Circle):
    """The circle's kernel by features of a density 1 + SKEW cos(2 pi w), divided by its root."""

    def sample(self, n: int, n_inputs: int, random: np.random.RandomState) -> Array:
        """Their w, (n, 1), by rejection."""
        kept = np.empty(0)
        while len(kept) < n:
            w, height = random.random_sample((2, n))
            kept = np.append(kept, w[height * (1.0 + SKEW) <= density(w)])
        return kept[:n, None]

    def psi(self, X: Array, omega: Array) -> Array:
        """See :class:`Circle`."""
        return super().psi(X, omega) / np.sqrt(density(omega[:, 0]))


def density(w: Array) -> Array:
    """theta's, of w (n,)."""
    result: Array = 1.0 + SKEW * np.cos(2.0 * np.pi * w)
    return result


def leverage(rows: int | None, ridge: float = 1.0, floor: float = 0.0) -> Probabilities:
    """Leverage scores among the candidates, by so many rows and `ridge` times the penalty.

    rows None: of infinitely many, with the inputs' distribution known. `floor`: the share of the
    mean score that is mixed in. In the p coefficients (1/k) psi_i' (K/k + penalty I)^-1 psi_i is
    b_i' G (M G + penalty I)^-1 b_i, with G = E'E/k and M the candidates' mean of b b'.
    """

    def scores(B: Array, E: Array, penalty: float) -> Array:
        p, N = B.shape
        k = min(rows or 0, len(E))
        G = np.eye(p) if rows is None else E[:k].T @ E[:k] / k
        M = B @ B.T / N
        inverse = np.linalg.solve((M @ G + ridge * penalty * np.eye(p)).T, G.T).T
        q = np.einsum("ij,ij->j", B, inverse @ B)
        mixed: Array = (1.0 - floor) * q / q.mean() + floor
        return mixed

    return scores


def same(B: Array, E: Array, penalty: float) -> Array:
    """q = 1."""
    return np.ones(B.shape[1])


@dataclass(frozen=True)
class Way:
    """A row: the name, the number of candidates (None: no importance), and q."""

    name: str
    candidates: int | None = None
    q: Probabilities = same
    circle: type[Circle] = Circle


WAYS = (
    Way("theta"),
    Way("q = 1 (exact), 6400 candidates", 6400),
    Way("q = 1 (exact), 32 000 candidates", 32_000),
    Way("leverage, 1000 rows, 6400 candidates", 6400, leverage(1000)),
    Way("leverage, 1000 rows, 32 000 candidates", 32_000, leverage(1000)),
    Way("leverage, 100 rows, 6400 candidates", 6400, leverage(100)),
    Way("leverage, all rows, 6400 candidates", 6400, leverage(10**9)),
    Way("leverage, inputs' distribution known, 6400 candidates", 6400, leverage(None)),
    Way("leverage, 1000 rows, ridge times 100", 6400, leverage(1000, 100.0)),
    Way("leverage, 1000 rows, ridge a hundredth", 6400, leverage(1000, 0.01)),
    Way("leverage, 1000 rows, floor of half the mean", 6400, leverage(1000, floor=0.5)),
    Way("skewed theta", circle=Skewed),
    Way("skewed, q = 1, 6400 candidates", 6400, same, Skewed),
    Way("skewed, leverage, 1000 rows, 6400 candidates", 6400, leverage(1000), Skewed),
    Way("skewed, leverage, 1000 rows, 32 000 candidates", 32_000, leverage(1000), Skewed),
)
FEW = (0, 1, 3, 11, 13)


def drawn(way: Way, circle: Circle, E: Array, penalty: float, seed: int) -> tuple[Array, float]:
    """psi / sqrt q of the largest number of FEATURES as coefficients (p, m), and q's spread."""
    random = np.random.RandomState(seed)
    m, identity = int(FEATURES[-1]), np.eye(E.shape[1])
    if way.candidates is None:
        return circle.psi(identity, circle.sample(m, 1, random)), 0.0
    B = circle.psi(identity, circle.sample(way.candidates, 1, random))
    q = way.q(B, E, penalty)
    p = q / q.sum()
    chosen = random.choice(len(p), size=m, p=p)
    return B[:, chosen] * (len(p) * p[chosen]) ** -0.5, float(q.std() / q.mean())


def table(
    ways: Sequence[Way],
    r: float,
    gamma: float,
    noise: float,
    n: int,
    repetitions: int,
    draws: int,
) -> None:
    """Print m and q's spread for each way."""
    risks = np.zeros((len(ways), repetitions, len(FEATURES)))
    spreads, best = np.zeros(len(ways)), np.zeros(repetitions)
    for seed in range(repetitions):
        circle = Circle(r, gamma)
        draw, E, gram, moments = data_set(circle, noise, n, seed)
        penalties, of_krls = risks_of_krls(circle, gram, moments)
        best[seed], penalty = of_krls.min(), float(penalties[of_krls.argmin()])
        for state in draw.integers(2**31, size=draws):
            for i, way in enumerate(ways):
                B, spread = drawn(way, way.circle(r, gamma), E, penalty, int(state))
                learned = random_features(B, gram, moments, penalty)
                risks[i, seed] += np.sum((learned - circle.target[:, None]) ** 2, axis=0) / draws
                spreads[i] += spread / (repetitions * draws)
        print(f"data set {seed + 1} of {repetitions}", file=sys.stderr, flush=True)
    resamples = np.random.default_rng(0).integers(repetitions, size=(RESAMPLES, repetitions))
    rows = []
    for way, of_way, spread in zip(ways, risks, spreads, strict=True):
        m = int(first_within(of_way.mean(axis=0), best.mean()))
        many = [int(first_within(of_way[s].mean(axis=0), best[s].mean())) for s in resamples]
        low, high = np.percentile(many, (2.5, 97.5))
        at = [
            f"{of_way[:, k].mean() / best.mean() - 1:.1%}"
            for k in (np.searchsorted(FEATURES, size) for size in (100, 400, 1600))
        ]
        rows.append((way.name, f"{m} [{low:.0f}, {high:.0f}]", *at, f"{spread:.2f}"))
    print_table(
        f"Leverage scores on figure 5.2's circle: r={r:g}, gamma={gamma:g}, noise {noise:g}, "
        f"n={n}, {repetitions} data sets, {draws} draws",
        ("features drawn by", "m", "above KRLS, m=100", "m=400", "m=1600", "spread of q"),
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=3162, help="rows of a data set")
    parser.add_argument("--repetitions", type=int, default=20, help="data sets")
    parser.add_argument("--draws", type=int, default=8, help="of features for a data set")
    parser.add_argument("--few", action="store_true", help="five of the fifteen rows")
    args = parser.parse_args()
    table(
        WAYS if not args.few else [WAYS[i] for i in FEW],
        7 / 8,
        1 / 4,
        1.0,
        args.n,
        args.repetitions,
        args.draws,
    )


if __name__ == "__main__":
    main()
