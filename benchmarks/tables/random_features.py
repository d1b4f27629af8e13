"""The number of random features that is needed: thesis figures 5.2 and 5.3.

    python benchmarks/tables/random_features.py DATA [--repetitions N] [--draws N] [--trials N]
        [--importance] [--out DIR]

Figure 5.2: excess risk, lambda and m against n, on a simulation whose excess risk is known exactly,
beside the exponents of theorem 11. Each data set's m is that of the mean risk over `--draws` draws
of features: the first crossing on one draw is heavy-tailed. With `--importance` features are drawn
by their leverage scores (remark 1 of the thesis' section 5.3). Figure 5.3: test errors against m,
of random features and of Nyström centres.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import (
    SCALINGS,
    best_scaling,
    classification_error,
    data_parser,
    load,
    parse,
    print_table,
    pyplot,
    rmse,
    save_figure,
    signs,
    split,
)
from scipy.linalg import cho_factor, cho_solve, eigh
from sklearn.datasets import load_breast_cancer

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.learning.feature_sampling import RandomFeatures
from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.krls import KRLS
from semiparam_dynamics.learning.nystrom import NystromKRLS
from semiparam_dynamics.learning.random_features import RandomFeaturesKRLS

NOISES = (1.0, 0.1)  # standard deviations; the thesis doesn't say
EPSILON = 0.01  # in f's smoothness; nor this
ORIGIN = 0.5  # x0; nor this, and it makes no difference
WITHIN = 1.05  # of the excess risk of KRLS
FEATURES = np.unique(np.geomspace(1, 6400, 78).round().astype(int))
RESAMPLES = 2000  # of the bootstrap
TOO_MANY = 0.05  # data sets that need more features: the slope is then one of the largest number
NAMES = ("excess risk", "lambda", "m")
KINDS = ("random features", "Nyström")


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=20, help="of figure 5.2; 100")
    parser.add_argument("--draws", type=int, default=20, help="of features for a data set")
    parser.add_argument("--trials", type=int, default=5, help="of figure 5.3")
    parser.add_argument("--importance", action="store_true", help="features by leverage scores")
    args = parse(parser)
    sizes = [int(n) for n in np.logspace(3, 4, 7)]
    simulations = []
    for r, gamma in ((11 / 16, 1 / 8), (7 / 8, 1 / 4)):
        for noise in NOISES:
            importance = "leverage" if args.importance else None
            values = figure_5_2(r, gamma, noise, sizes, args.repetitions, args.draws, importance)
            simulations.append((r, gamma, noise, sizes, values))
    curves = figure_5_3(args.data, args.trials)
    if args.out is not None:
        draw_5_2(simulations, args.out)
        draw_5_3(curves, args.out)


@dataclass(frozen=True)
class Circle:
    """Periodic functions on [0, 1] by their coefficients of 1, sqrt 2 cos 2 pi k x and the sines.

    Lambda_q(x, z) = 1 + 2 sum_k cos(2 pi k (x - z)) / k^q for k up to `n_modes`. With features
    psi(w, .) = Lambda_{1/(2 gamma)}(w, .), w uniform, the kernel is Lambda_{1/gamma}: everything
    is exact in the 2 n_modes + 1 coefficients.
    """

    r: float
    gamma: float
    n_modes: int = 100

    def basis(self, x: Array) -> Array:
        """(n, 2 n_modes + 1), orthonormal for x uniform."""
        angle = 2.0 * np.pi * np.outer(x, np.arange(1, self.n_modes + 1))
        waves = np.sqrt(2.0) * np.hstack((np.cos(angle), np.sin(angle)))
        return np.hstack((np.ones((len(x), 1)), waves))

    def decay(self, q: float) -> Array:
        """Lambda_q's eigenvalues."""
        powers = np.arange(1.0, self.n_modes + 1) ** -q
        return np.concatenate(([1.0], powers, powers))

    @property
    def target(self) -> Array:
        """Coefficients of f = Lambda_{r/gamma + 1/2 + epsilon}(., x0)."""
        q = self.r / self.gamma + 0.5 + EPSILON
        return self.decay(q) * self.basis(np.array([ORIGIN]))[0]

    def sample(self, n: int, n_inputs: int, random: np.random.RandomState) -> Array:
        """w of n features, uniform: (n, 1)."""
        return random.random_sample((n, 1))

    def psi(self, X: Array, omega: Array) -> Array:
        """Lambda_{1/(2 gamma)}(w, .) of points whose basis functions are X (k, 2 n_modes + 1)."""
        return X @ (self.decay(0.5 / self.gamma) * self.basis(omega[:, 0])).T


@dataclass(frozen=True)
class Simulation:
    """One data set: KRLS' excess risk and lambda; random features' risks, (draws, n_features)."""

    risk: float
    penalty: float
    of_features: Array

    @property
    def m(self) -> int:
        """The smallest number of features with which the draws' mean risk is within 5 %."""
        return int(first_within(self.of_features.mean(axis=0), self.risk))


def figure_5_2(
    r: float,
    gamma: float,
    noise: float,
    sizes: list[int],
    repetitions: int,
    draws: int,
    importance: str | None = None,
) -> Array:
    """Excess risk, lambda and m, (repetitions, n_sizes, 3); prints their slopes."""
    circle = Circle(r, gamma)
    runs = [
        [simulation(circle, noise, n, seed, draws, importance) for n in sizes]
        for seed in range(repetitions)
    ]
    values = np.array([[(run.risk, run.penalty, run.m) for run in of_seed] for of_seed in runs])
    risks = np.array([[run.of_features.mean(axis=0) for run in of_seed] for of_seed in runs])
    slope = slopes_of(np.array(sizes))
    theory = exponents(r, gamma)

    def row(name: str, of_resample: Callable[[Indices], Array], k: int) -> tuple[str, ...]:
        """First and last size, and the slope of a statistic (n_sizes,) of the data sets drawn."""
        shown = of_resample(identity)
        low, high = np.percentile([slope(of_resample(one)) for one in resamples], (2.5, 97.5))
        found = f"{slope(shown):.3f} [{low:.2f}, {high:.2f}]"
        return name, f"{shown[0]:.3g}", f"{shown[-1]:.3g}", found, f"{theory[k]:.3f}"

    # Data sets of each size are drawn again independently, for they have nothing in common.
    draw = np.random.default_rng(0)
    identity = np.tile(np.arange(repetitions)[:, None], len(sizes))
    resamples = draw.integers(repetitions, size=(RESAMPLES, *identity.shape))
    columns = np.arange(len(sizes))

    def geometric(found: Array) -> Callable[[Indices], Array]:
        return lambda drawn: np.exp(np.log(found[drawn, columns]).mean(axis=0))

    def of_mean_risks(drawn: Indices) -> Array:
        return first_within(
            risks[drawn, columns].mean(axis=0), values[drawn, columns, 0].mean(axis=0)
        )

    rows = [row(name, geometric(values[:, :, k]), k) for k, name in enumerate(NAMES)]
    rows.append(row("m, of mean risks", of_mean_risks, 2))
    ends = np.mean(values[:, :, 2] == FEATURES[-1])
    if ends > TOO_MANY:
        rows[2:] = [(*one[:3], "too many end", one[4]) for one in rows[2:]]
    print_table(
        f"Figure 5.2: r={r:g}, gamma={gamma:g}, noise {noise:g}, {repetitions} repetitions, "
        f"{draws} draws of features" + (", by leverage scores" if importance else ""),
        ("quantity", f"n={sizes[0]}", f"n={sizes[-1]}", "slope against log n", "theorem 11"),
        rows,
    )
    print(
        f"Geometric means over the repetitions, and the slopes of their "
        f"logarithms with 95 % intervals by {RESAMPLES} bootstrap samples of the data sets. m is "
        f"the smallest number of features with a mean excess risk, over the draws, within 5 % of "
        f"KRLS', with the lambda that is best for KRLS; of {len(FEATURES)} numbers up to "
        f'{FEATURES[-1]}, where {ends:.1%} of the data sets end; "of mean risks" for the means '
        f"over the data sets too. Noise and epsilon={EPSILON:g} are chosen here. KRLS' equations "
        f"checked: {verify(circle, 300):.1g}."
    )
    return values


def slopes_of(sizes: Array) -> Callable[[Array], float]:
    """The slope of a statistic's logarithm against that of n."""
    logs = np.log(sizes)
    centred = (logs - logs.mean()) / np.sum((logs - logs.mean()) ** 2)
    return lambda found: float(centred @ np.log(found))


def exponents(r: float, gamma: float) -> Array:
    """Theorem 11's powers of n, of excess risk, lambda and m, with alpha = gamma."""
    alpha = gamma
    c = alpha + (1.0 + gamma - alpha) * (2.0 * r - 1.0)
    return np.array([-2.0 * r, -1.0, c]) / (2.0 * r + gamma)


def first_within(risks: Array, of_krls: Any) -> Array:
    """The first of FEATURES whose risk, (..., n_features), is within 5 %; else the last."""
    enough = risks <= WITHIN * np.asarray(of_krls)[..., None]
    enough[..., -1] = True
    return FEATURES[enough.argmax(axis=-1)]


def data_set(
    circle: Circle, noise: float, n: int, seed: int
) -> tuple[np.random.Generator, Array, Array, Array]:
    """The generator that drew it, the rows' basis E, E'E / n and E'y / n."""
    draw = np.random.default_rng([n, seed])
    E = circle.basis(draw.random(n))
    y = E @ circle.target + noise * draw.standard_normal(n)
    return draw, E, E.T @ E / n, E.T @ y / n


def risks_of_krls(circle: Circle, gram: Array, moments: Array) -> tuple[Array, Array]:
    """Penalties, and KRLS's excess risk with each."""
    penalties = np.logspace(-9, 1, 201)
    found = krls(circle, gram, moments, penalties)
    return penalties, np.sum((found - circle.target[:, None]) ** 2, axis=0)


def simulation(
    circle: Circle, noise: float, n: int, seed: int, draws: int, importance: str | None
) -> Simulation:
    """KRLS with its best lambda on one data set, and random features for all m of FEATURES.

    All fits come from E'E and E'y of the rows' basis E: K = E D E' and the features are E B.
    """
    draw, E, gram, moments = data_set(circle, noise, n, seed)
    penalties, risks = risks_of_krls(circle, gram, moments)
    best = int(risks.argmin())
    of_features = []
    for _ in range(draws):
        m, state = int(FEATURES[-1]), int(draw.integers(2**31))
        features = RandomFeatures(circle, m, importance, m, float(penalties[best]), state).fit(E)
        B = features.transform(np.eye(E.shape[1])) * np.sqrt(m)  # (2 n_modes + 1, m)
        found = random_features(B, gram, moments, penalties[best])
        of_features.append(np.sum((found - circle.target[:, None]) ** 2, axis=0))
    return Simulation(float(risks[best]), float(penalties[best]), np.array(of_features))


def krls(circle: Circle, gram: Array, moments: Array, penalties: Array) -> Array:
    """KRLS' coefficients, a column for each penalty."""
    roots = np.sqrt(circle.decay(1.0 / circle.gamma))
    values, vectors = eigh(roots[:, None] * gram * roots)
    projected = vectors.T @ (roots * moments)
    shrunk = projected[:, None] / (values[:, None] + penalties)
    return roots[:, None] * (vectors @ shrunk)


def random_features(
    B: Array, gram: Array, moments: Array, penalty: float, sizes: Any = FEATURES
) -> Array:
    """The coefficients of ridge regressions on psi / sqrt m (thesis 5.6), psi = E B; a column for
    each m of `sizes`.

    For m beyond the number p of coefficients, w = B (B'GB + m penalty I)^-1 B't is solved as
    (BB'G + m penalty I) w = BB't, of p equations for any m.
    """
    p = len(B)
    few = B[:, :p]
    system, targets = few.T @ gram @ few, few.T @ moments
    products, start = np.zeros((p, p)), 0
    columns = []
    for m in sizes:
        ridge = m * penalty
        if m <= p:
            beta = cho_solve(cho_factor(system[:m, :m] + ridge * np.eye(m)), targets[:m])
            columns.append(B[:, :m] @ beta)
            continue
        products += B[:, start:m] @ B[:, start:m].T
        start = m
        columns.append(np.linalg.solve(products @ gram + ridge * np.eye(p), products @ moments))
    return np.column_stack(columns)


def verify(circle: Circle, n: int) -> float:
    """The relative difference of `krls` from the package's KRLS with the kernel as a function, or
    of `random_features` from its RandomFeaturesKRLS on the rows, whichever is larger.
    """
    draw = np.random.default_rng(0)
    x, y, new = draw.random((n, 1)), draw.standard_normal(n), draw.random((50, 1))
    eigenvalues = circle.decay(1.0 / circle.gamma)

    def kernel(X: Array, C: Array) -> Array:
        return (circle.basis(X[:, 0]) * eigenvalues) @ circle.basis(C[:, 0]).T

    expected = KRLS(kernel, 1e-3).fit(x, y).predict(new)
    E = circle.basis(x[:, 0])
    found = krls(circle, E.T @ E / n, E.T @ y / n, np.array([1e-3]))[:, 0]
    Z = circle.basis(new[:, 0])
    of_krls = np.abs(Z @ found - expected).max() / np.abs(expected).max()
    model = RandomFeaturesKRLS(penalty=1e-3, features=circle, importance="leverage", random_state=0)
    some = FEATURES[[10, 30, 50]]
    path = model.path(E, y, {"n_features": some.tolist()}, Z)
    expected = np.column_stack([predicted[:, 0] for _, predicted in path])
    drawn = RandomFeatures(circle, int(some[-1]), "leverage", random_state=0).fit(E)
    B = drawn.transform(np.eye(E.shape[1])) * np.sqrt(some[-1])
    columns = [random_features(B, E.T @ E / n, E.T @ y / n, 1e-3, [m])[:, 0] for m in some]
    of_features = np.abs(Z @ np.column_stack(columns) - expected).max() / np.abs(expected).max()
    return float(max(of_krls, of_features))


class Curve(NamedTuple):
    """A panel of figure 5.3."""

    name: str
    label: str
    sizes: list[int]
    errors: Array  # (2, n_sizes, trials), of KINDS


def figure_5_3(data: Path, trials: int) -> list[Curve]:
    """Test errors against m, printed for some m."""
    arrays, cancer = load(data, "pumadyn32nh"), load_breast_cancer()
    puma, cancer = (arrays["X"], arrays["y"]), (cancer.data, signs(cancer.target))
    return [
        curve("pumadyn32nh", puma, (4096, 2.66, 1e-9), spaced(1000), trials, "rmse"),
        curve(
            "breast cancer", cancer, (400, 0.9, 1e-2), spaced(300), 20 * trials, "classification"
        ),
    ]


def spaced(largest: int) -> list[int]:
    return [int(m) for m in np.unique(np.geomspace(5, largest, 25).round())]


def curve(
    name: str,
    rows: tuple[Array, Array],
    setting: tuple[int, float, float],
    sizes: list[int],
    trials: int,
    error: str,
) -> Curve:
    n_train, sigma, penalty = setting
    kernel = Gaussian(sigma)
    few: dict[str, Any] = {"n_centers": sizes[::5], "penalty": [penalty]}
    first = split(*rows, n_train, 0)
    scaling, tried = best_scaling(first, NystromKRLS(kernel, random_state=0), few, error)
    measure = rmse if error == "rmse" else classification_error
    methods: list[tuple[Any, str]] = [
        (RandomFeaturesKRLS(kernel, penalty), "n_features"),
        (NystromKRLS(kernel, penalty), "n_centers"),
    ]
    errors = np.empty((2, len(sizes), trials))
    for trial in range(trials):
        part = SCALINGS[scaling](split(*rows, n_train, trial))
        for i, (model, size) in enumerate(methods):
            model.set_params(random_state=trial)
            path = model.path(part.X, part.y, {size: sizes}, part.X_test)
            errors[i, :, trial] = [measure(part.y_test, found[:, 0]) for _, found in path]
    shown = [*range(0, len(sizes), 4)]
    means = errors.mean(axis=2)
    print_table(
        f"Figure 5.3, {name}, lambda={penalty:g}, {trials} trials: test error against m",
        ("method", *(f"m={sizes[i]}" for i in shown), "smallest", "at m"),
        [
            (label, *(f"{m[i]:.4g}" for i in shown), f"{m.min():.4g}", sizes[int(m.argmin())])
            for label, m in zip(KINDS, means, strict=True)
        ],
    )
    goal = means[0].min()
    fewer = next((m for m, e in zip(sizes, means[1], strict=True) if e <= goal), None)
    reached = "doesn't reach it" if fewer is None else f"reaches it with m={fewer}"
    print(
        f"The smallest error of random features is {goal:.4g}; Nyström {reached}. sigma={sigma} is "
        f"figure 4.1's, the rest isn't stated. {tried}"
    )
    words = "test RMSE" if error == "rmse" else "test classification error"
    return Curve(name, words, sizes, errors)


def draw_5_2(simulations: list[tuple[float, float, float, list[int], Array]], out: Path) -> None:
    plt = pyplot()
    shape = (len(simulations), 3)
    fig, axes = plt.subplots(*shape, figsize=(12, 3.4 * len(simulations)), squeeze=False)
    for row, (r, gamma, noise, sizes, values) in zip(axes, simulations, strict=True):
        theory = exponents(r, gamma)
        for k, (ax, name) in enumerate(zip(row, NAMES, strict=True)):
            logs = np.log10(values[:, :, k])
            ax.errorbar(sizes, logs.mean(axis=0), logs.std(axis=0), fmt="o-", label="simulated")
            line = theory[k] * np.log10(sizes)
            line += np.mean(logs) - line.mean()
            ax.plot(sizes, line, "--", label=f"theorem 11: slope {theory[k]:.3f}")
            ax.set(xscale="log", xlabel="n", ylabel=f"log10 {name}")
            ax.set_title(f"r={r:g}, gamma={gamma:g}, noise {noise:g}")
            ax.legend()
    fig.tight_layout()
    save_figure(fig, out, "figure_5_2")


def draw_5_3(curves: list[Curve], out: Path) -> None:
    plt = pyplot()
    fig, axes = plt.subplots(1, len(curves), figsize=(5 * len(curves), 3.8))
    for ax, one in zip(axes, curves, strict=True):
        for errors, label in zip(one.errors, KINDS, strict=True):
            mean, spread = errors.mean(axis=1), errors.std(axis=1)
            ax.plot(one.sizes, mean, label=label)
            ax.fill_between(one.sizes, mean - spread, mean + spread, alpha=0.2)
        ax.set(xscale="log", xlabel="m", ylabel=one.label, title=one.name)
        ax.legend()
    fig.tight_layout()
    save_figure(fig, out, "figure_5_3")


if __name__ == "__main__":
    main()
