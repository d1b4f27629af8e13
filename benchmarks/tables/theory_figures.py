"""The thesis' figures that need no data: 4.3 (regimes), 5.1 (features), 7.1 (boundaries).

    python benchmarks/tables/theory_figures.py [--out DIR]

Figure 4.3: which of four methods is fastest at equal error, by signal-to-noise ratio and dimension.
Figure 5.1: the exponent of n of the number of random features, or Nyström centres, by the exponents
of the problem. Figure 7.1: Bayes' decision boundaries of two Gaussian classes, with and without
rebalancing, and those that kernel least squares learns from samples.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common import make_parser, parse, print_table, pyplot, save_figure
from matplotlib.colors import ListedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.learning import Gaussian, NystromKRLS
from semiparam_dynamics.learning.theory import center_exponents, feature_exponents

METHODS = ("NYTRO", "early stopping", "KRLS", "NKRLS")
COLORS = ("#8e5aa8", "#4a7fc1", "#e08b3a", "#ecd25a")  # purple, blue, orange, yellow, as there
CENTERS = {1: np.array([-1.0, 0.0]), -1: np.array([1.0, 0.0])}
DEVIATIONS = {1: 1.0, -1: 0.3}
SHARES = (0.5, 0.7, 0.8, 0.9)  # of class 1


def main() -> None:
    parser = make_parser(__doc__)
    parser.set_defaults(out=Path("figures"))
    parser.add_argument("--samples", type=int, default=20_000, help="that figure 7.1 learns from")
    arguments = parse(parser)
    figure_4_3(arguments.out)
    figure_5_1(arguments.out)
    figure_7_1(arguments.out, arguments.samples)


def regime(n: float, snr: Array, dimension: Array) -> Array:
    """The number in METHODS of the fastest one (thesis 4.3.3; NYTRO paper 3.3).

    Subsampling pays below the dimension n / |log(n SNR)|, a penalty rather than iterations below
    SNR / |log SNR|.
    """
    with np.errstate(divide="ignore"):
        subsampled = dimension < n / np.abs(np.log(n * snr))
        penalised = dimension < snr / np.abs(np.log(snr))
    return np.where(penalised, np.where(subsampled, 3, 2), np.where(subsampled, 0, 1))


def figure_4_3(out: Path) -> None:
    """Draw the regimes for two numbers of rows, and print the share of each."""
    figure, panels = pyplot().subplots(1, 2, figsize=(9.4, 4.2), layout="constrained")
    rows = []
    for axes, n in zip(panels, (1e3, 1e6), strict=True):
        snr = np.logspace(-2.001, np.log10(n), 700)
        dimension = np.logspace(0, np.log10(n), 600)
        numbers = regime(n, snr[None, :], dimension[:, None])
        axes.pcolormesh(
            snr,
            dimension,
            numbers,
            cmap=ListedColormap(COLORS),
            vmin=-0.5,
            vmax=3.5,
            rasterized=True,
        )
        # The peak at SNR = 1 is narrower than any grid: both curves are drawn too.
        near = np.concatenate((snr, 1.0 + np.logspace(-8, 0, 200), 1.0 - np.logspace(-8, -2, 200)))
        near.sort()
        for curve in (n / np.abs(np.log(n * near)), near / np.abs(np.log(near))):
            axes.plot(near, curve, color="black", linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="signal-to-noise ratio")
        axes.set(xlim=(snr[0], snr[-1]), ylim=(1.0, n))
        axes.set(ylabel="dimension $\\tilde d$", title=f"n = {n:g}")
        noisy = numbers[:, snr <= 1.0]
        clean = numbers[:, snr > 1.0]
        for part, name in ((noisy, "SNR <= 1"), (clean, "SNR > 1")):
            shares = [f"{100.0 * np.mean(part == i):.1f}" for i in range(4)]
            rows.append((f"{n:g}", name, *shares))
    handles = [Patch(color=c, label=m) for c, m in zip(COLORS, METHODS, strict=True)]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    print_table(
        "Figure 4.3: share of the plane (both axes logarithmic) where each is fastest, %",
        ("n", "", *METHODS),
        rows,
    )
    save_figure(figure, out, "figure_4_3")


def figure_5_1(out: Path) -> None:
    """Draw the exponent of the number of features, and of centres, over r and gamma."""
    r, capacity = np.linspace(0.5, 1.0, 101), np.linspace(0.01, 1.0, 100)
    kinds = {"random features": feature_exponents, "Nyström centres": center_exponents}
    figure, panels = pyplot().subplots(2, 2, figsize=(8.2, 6.6), layout="constrained")
    printed = []
    for column, (kind, exponents) in enumerate(kinds.items()):
        for axes, matched in zip(panels[:, column], (False, True), strict=True):
            values = np.array(
                [[exponents(s, g, g if matched else 1.0)[1] for s in r] for g in capacity]
            )
            image = axes.pcolormesh(r, capacity, values, vmin=0.0, vmax=1.0, cmap="viridis")
            lines = axes.contour(r, capacity, values, [0.25, 0.5, 0.75], colors="white")
            axes.clabel(lines, fmt="%g")
            name = "$\\alpha = \\gamma$" if matched else "$\\alpha = 1$"
            axes.set(title=f"{kind}, {name}", xlabel="r", ylabel="$\\gamma$")
            ends = [
                exponents(s, g, g if matched else 1.0)[1] for s in (0.5, 1.0) for g in (0.25, 1)
            ]
            printed.append((kind, "gamma" if matched else "1", *(f"{e:.3f}" for e in ends)))
    figure.colorbar(image, ax=panels, label="exponent of n", shrink=0.8)
    print_table(
        "Figure 5.1: exponent of n of the number needed for the best rate",
        ("", "alpha", "r=1/2, gamma=1/4", "r=1/2, gamma=1", "r=1, gamma=1/4", "r=1, gamma=1"),
        printed,
    )
    save_figure(figure, out, "figure_5_1")


def log_ratio(X: Array) -> Array:
    """log p(x | 1) - log p(x | -1) of inputs (n, 2)."""
    parts = []
    for y in (1, -1):
        squared = np.sum((X - CENTERS[y]) ** 2, axis=1) / DEVIATIONS[y] ** 2
        parts.append(-0.5 * squared - 2.0 * np.log(DEVIATIONS[y]))
    return np.asarray(parts[0] - parts[1])


def learned(share: float, n: int, seed: int, balanced: bool) -> Any:
    """Kernel least squares on samples, class 1 with this share; with the weights 1 / share too."""
    draw = np.random.default_rng(seed)
    y = np.where(draw.random(n) < share, 1, -1)
    X = np.array([CENTERS[label] for label in y]) + draw.standard_normal((n, 2)) * np.array(
        [[DEVIATIONS[label]] for label in y]
    )
    weights = np.where(y > 0, 1.0 / share, 1.0 / (1.0 - share)) if balanced else np.ones(n)
    model = NystromKRLS(Gaussian(0.7), 1e-4, 300, random_state=seed)
    return model.fit(X, y.astype(float), weights)


def figure_7_1(out: Path, n: int) -> None:
    """Draw the boundaries for each share of class 1, and print how much of each class is found."""
    grid = np.linspace(-3.0, 3.0, 201)
    X = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    ratio = log_ratio(X)
    draw = np.random.default_rng(1)
    samples = {y: CENTERS[y] + DEVIATIONS[y] * draw.standard_normal((20_000, 2)) for y in (1, -1)}
    figure, panels = pyplot().subplots(1, 4, figsize=(13.5, 3.8), layout="constrained")
    rows = []
    for axes, share in zip(panels, SHARES, strict=True):
        prior = np.log(share / (1.0 - share))
        posterior = (1.0 / (1.0 + np.exp(-(ratio + prior)))).reshape(201, 201)
        image = axes.pcolormesh(grid, grid, posterior, cmap="viridis", vmin=0.0, vmax=1.0)
        bayes = {"white": ratio + prior, "black": ratio}
        cells = []
        for color, scores in bayes.items():
            rule = learned(share, n, 0, color == "black")
            own = rule.predict(X).reshape(201, 201)
            surface = scores.reshape(201, 201)
            axes.contour(grid, grid, own, [0.0], colors=color, linewidths=0.8)
            axes.contour(
                grid, grid, surface, [0.0], colors=color, linestyles="dashed", linewidths=2
            )
            added = prior if color == "white" else 0.0
            found = [np.mean(y * (log_ratio(part) + added) > 0) for y, part in samples.items()]
            fitted = [np.mean(y * rule.predict(part) > 0) for y, part in samples.items()]
            cells += [f"{100 * a:.1f} ({100 * b:.1f})" for a, b in zip(found, fitted, strict=True)]
        axes.set(title=f"$\\gamma$ = {share:g}", aspect="equal", xlim=(-1.2, 3.0), ylim=(-2.1, 2.1))
        rows.append((f"{share:g}", *cells))
    figure.colorbar(image, ax=panels, label="probability of class 1")
    looks = {"Bayes": ("dashed", 2.0), "learned": ("solid", 0.8)}
    for axes, color, name in ((panels[0], "white", ""), (panels[1], "black", ", rebalanced")):
        handles = [
            Line2D([], [], color=color, linestyle=style, linewidth=width, label=rule + name)
            for rule, (style, width) in looks.items()
        ]
        axes.legend(
            handles=handles, loc="lower left", fontsize=7, facecolor="grey", labelcolor=color
        )
    print_table(
        f"Figure 7.1: examples found by Bayes' rule, and in brackets by {n} samples, %",
        ("gamma", "class 1", "class -1", "class 1, rebalanced", "class -1, rebalanced"),
        rows,
    )
    save_figure(figure, out, "figure_7_1")


if __name__ == "__main__":
    main()
