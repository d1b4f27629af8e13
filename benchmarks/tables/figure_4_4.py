"""Figure 4.4 of the thesis: time of model selection by the number of centres, on cpusmall.

    python benchmarks/tables/figure_4_4.py DATA [--trials 1] [--m 2000] [--points 5] [--out DIR]

6554 rows, of which a fifth is held out; 100 penalties for NKRLS, 500 iterations for NYTRO. NKRLS
takes O(n m^2 + m^3), NYTRO O(n m t + m^3) with two products with K_nm an iteration, the thesis'
("direct"); from its m x m matrix ("gram"), made once, it takes O(n m^2 + m^2 t + m^3). The figure
shows mean and standard deviation. The thesis goes up to m = 4000 (--m 4000); it has curves only:
linear in m for NYTRO, quadratic for NKRLS. Its kernel isn't stated: here sigma = 1 on z-scores,
where all centres but duplicates count. The thesis computes a solution for each of the penalties;
here one eigendecomposition serves all of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from common import (
    Split,
    data_parser,
    held_out,
    load,
    measured,
    parse,
    plus_minus,
    print_table,
    pyplot,
    save_figure,
    split,
)

from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.nystrom import NystromKRLS
from semiparam_dynamics.learning.nytro import NYTRO
from semiparam_dynamics.learning.selection import select

PENALTIES = list(np.logspace(-15, 0, 100))
ITERATIONS = 500
METHODS = ("NKRLS", "NYTRO, direct", "NYTRO, gram")
Times = dict[str, dict[int, list[float]]]  # by method and m, for each trial


def seconds(inner: Split, sigma: float, m: int, seed: int) -> dict[str, float]:
    """Of model selection on the inner split by each method."""
    kernel, given = Gaussian(sigma), (inner.X_test, inner.y_test)
    ridge = NystromKRLS(kernel, n_centers=m, random_state=seed)
    given_grid = {"grid": {"penalty": PENALTIES}, "validation": given, "refit": False}
    spent = {"NKRLS": measured(lambda: select(ridge, inner.X, inner.y, **given_grid))[1]}
    for solver in ("direct", "gram"):
        model = NYTRO(
            kernel, m, max_iter=ITERATIONS, patience=None, solver=solver, random_state=seed
        )
        _, spent[f"NYTRO, {solver}"] = measured(
            lambda model=model: model.fit(inner.X, inner.y, validation_data=given)
        )
    return {method: cost.seconds for method, cost in spent.items()}


def exponent(sizes: list[int], times: list[float], above: int = 0) -> float:
    """The slope of log time over log m, from the sizes of at least `above`."""
    some = [i for i, m in enumerate(sizes) if m >= above]
    if len(some) < 2:
        return float("nan")
    return float(
        np.polyfit(np.log([sizes[i] for i in some]), np.log([times[i] for i in some]), 1)[0]
    )


def run(part: Split, sigma: float, sizes: list[int], trials: int) -> Times:
    """Print the table."""
    times: Times = {method: {m: [] for m in sizes} for method in METHODS}
    inner = held_out(part)
    seconds(inner, sigma, sizes[0], 0)  # compiles and loads what is needed
    for m in sizes:
        for trial in range(trials):
            for method, value in seconds(inner, sigma, m, trial).items():
                times[method][m].append(value)
            ended = ", ".join(f"{method} {times[method][m][-1]:.3g} s" for method in METHODS)
            print(f"m = {m}, trial {trial + 1}: {ended}", file=sys.stderr, flush=True)
    rows = [(m, *(plus_minus(times[method][m], 3) for method in METHODS)) for m in sizes]
    for label, above in (("exponent of m", 0), ("exponent, m >= 1000", 1000)):
        means = {k: [float(np.mean(v[m])) for m in sizes] for k, v in times.items()}
        rows.append((label, *(f"{exponent(sizes, means[k], above):.2f}" for k in METHODS)))
    rows.append(("thesis' exponent", "2", "1", "-"))
    print_table(
        f"Model selection on cpusmall, n = {len(part.X)}: seconds (thesis, figure 4.4)",
        ("m", *METHODS),
        rows,
    )
    return times


def draw(times: Times, out: Path) -> None:
    """Mean and standard deviation over m, as in the thesis."""
    figure, axes = pyplot().subplots(figsize=(6, 4))
    for method, of_size in times.items():
        mean = [float(np.mean(v)) for v in of_size.values()]
        spread = [float(np.std(v)) for v in of_size.values()]
        axes.errorbar(list(of_size), mean, spread, marker=".", capsize=2, label=method)
    axes.set(xlabel="m", ylabel="seconds", title="Model selection on cpusmall")
    axes.legend()
    axes.grid(alpha=0.3)
    save_figure(figure, out, "figure_4_4")


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--points", type=int, default=5, help="values of m")
    parser.add_argument("--m", type=int, default=2000, help="the largest m")
    parser.add_argument("--n", type=int, default=6554)
    parser.add_argument("--sigma", type=float, default=1.0)
    arguments = parse(parser)
    a = load(arguments.data, "cpusmall")
    part = split(a["X"], a["y"], arguments.n, 0).standardised()
    sizes = np.linspace(min(100, arguments.m), arguments.m, arguments.points)
    times = run(part, arguments.sigma, [round(m) for m in sizes], arguments.trials)
    if arguments.out is not None:
        draw(times, arguments.out)


if __name__ == "__main__":
    main()
