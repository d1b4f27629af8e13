"""Figure 1 of Lin and Rosasco 2017: excess error of NySGM against passes, for several m.

    python benchmarks/tables/nysgm_figure_1.py [--trials 20] [--out DIR]

Mini-batches of sqrt(n) rows and a constant step of 1/8, so that the number of passes regularises
(corollary 3.3); beside it kernel ridge regression with the penalty that validates best. The paper's
own function, noise, kernel and sizes are lost in the text that this follows: here
y = |x - 1/2| + noise on [0, 1], with a Gaussian kernel.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common import make_parser, parse, plus_minus, print_table, pyplot, save_figure

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.learning import KRLS, Gaussian, NystromSGM, select

KERNEL = Gaussian(0.2)
STEP = 0.125
SIZES = (2, 4, 8, 16, 32)
PENALTIES = list(np.logspace(-7, 0, 29))
GRID = (np.arange(2000)[:, None] + 0.5) / 2000  # the excess error's measure


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--n", type=int, default=1000, help="training rows")
    parser.add_argument("--noise", type=float, default=0.3, help="its standard deviation")
    parser.add_argument("--passes", type=int, default=100, help="at most")
    arguments = parse(parser)
    # Without the margin 50 passes, of which the power is 49.99999999999999, end at 49.
    counts = sorted({int(t + 1e-6) for t in np.logspace(0, np.log10(arguments.passes), 25)})
    curves = np.empty((arguments.trials, len(SIZES), len(counts)))
    ridge = np.empty(arguments.trials)
    for trial in range(arguments.trials):
        X, y = sample(arguments.n, arguments.noise, trial)
        ridge[trial] = ridge_error(X, y, trial)
        for i, m in enumerate(SIZES):
            curves[trial, i] = sgm_errors(X, y, m, counts, trial)
    report(curves, ridge, counts, arguments.n)
    if arguments.out is not None:
        draw(curves, ridge, counts, arguments.out)


def target(X: Array) -> Array:
    """|x - 1/2| of inputs (n, 1), (n,)."""
    return np.abs(X[:, 0] - 0.5)


def sample(n: int, noise: float, seed: int) -> tuple[Array, Array]:
    """Uniform inputs (n, 1), and the target with normal noise."""
    draw = np.random.default_rng(seed)
    X = draw.random((n, 1))
    return X, target(X) + noise * draw.standard_normal(n)


def excess(predicted: Array) -> float:
    """The mean squared distance to the target on the grid."""
    return float(np.mean((predicted - target(GRID)) ** 2))


def sgm_errors(X: Array, y: Array, m: int, counts: list[int], seed: int) -> list[float]:
    """After each of these numbers of passes."""
    model = NystromSGM(KERNEL, m, step=STEP, random_state=seed)
    found = model.path(X, y, {"max_iter": counts}, GRID)
    return [excess(predicted[:, 0]) for _, predicted in found]


def ridge_error(X: Array, y: Array, seed: int) -> float:
    """Of kernel ridge regression with the penalty that is best in five folds."""
    chosen = select(KRLS(KERNEL), X, y, {"penalty": PENALTIES}, validation=5, random_state=seed)
    return excess(chosen.estimator.predict(GRID))


def report(curves: Array, ridge: Array, counts: list[int], n: int) -> None:
    """Print each m's smallest mean error, the passes there, and the errors after one and all."""
    rows = []
    for i, m in enumerate(SIZES):
        mean = curves[:, i].mean(axis=0)
        best = int(mean.argmin())
        ends = [plus_minus(1e3 * curves[:, i, t], 3) for t in (0, best, -1)]
        rows.append((f"m={m}", *ends, counts[best], f"{mean[best] / ridge.mean():.2f}"))
    rows.append(("KRR, penalty by validation", "", plus_minus(1e3 * ridge, 3), "", "", "1"))
    print_table(
        f"NySGM, figure 1: 1e3 x excess error, n = {n}, {len(curves)} trials",
        ("", "one pass", "best", f"{counts[-1]} passes", "passes at the best", "over KRR's"),
        rows,
    )


def draw(curves: Array, ridge: Array, counts: list[int], out: Path) -> None:
    """Draw the means over the trials, and their standard deviations for the largest m."""
    figure, axes = pyplot().subplots(figsize=(6.4, 4.2), layout="constrained")
    for i, m in enumerate(SIZES):
        mean, spread = curves[:, i].mean(axis=0), curves[:, i].std(axis=0)
        (line,) = axes.plot(counts, mean, marker=".", label=f"NySGM, m = {m}")
        if m == SIZES[-1]:
            axes.fill_between(
                counts, mean - spread, mean + spread, color=line.get_color(), alpha=0.2
            )
    axes.axhline(ridge.mean(), color="black", linestyle="--", label="KRR, penalty by validation")
    axes.axhspan(ridge.mean() - ridge.std(), ridge.mean() + ridge.std(), color="black", alpha=0.1)
    axes.set(xscale="log", yscale="log", xlabel="passes", ylabel="excess error")
    axes.legend(fontsize=8)
    save_figure(figure, out, "nysgm_figure_1")


if __name__ == "__main__":
    main()
