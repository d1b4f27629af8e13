"""Figure 1 of the paper on FALKON, on data at hand: test error by iteration of iterative methods.

    python benchmarks/tables/falkon_figure_1.py DATA [--sets adult cpuact pumadyn32nh] [--out DIR]

All but SGM, which has all rows, work in the span of the same centres; FALKON, conjugate gradient
and gradient descent on the paper's problem (8) with the same penalty, NYTRO and the stochastic
gradient without one. The penalty, and the stochastic gradient's step, the best after three passes
(where it has fewer, after those), are chosen on a fifth of the training rows. Iterations of the
stochastic gradient are passes. Conjugate gradient and gradient descent run on the coefficients
alpha, with no preconditioner; gradient descent's step is the inverse of the largest eigenvalue. The
paper's figure shows HIGGS, 1.1e7 rows that are not at hand, and gives no numbers to set beside
these.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import (
    Split,
    adult,
    chosen,
    data_parser,
    load,
    parse,
    print_table,
    pyplot,
    save_figure,
    split,
)
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_squared_error

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.learning.falkon import Falkon
from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.nystrom import NystromKRLS
from semiparam_dynamics.learning.nytro import NYTRO
from semiparam_dynamics.learning.ridge import conjugate_gradient
from semiparam_dynamics.learning.sgm import SGM, NystromSGM

SHOWN = (1, 2, 5, 10, 20, 50, 100)
PENALTIES = [float(p) for p in np.logspace(-9, -2, 15)]
STEPS = [float(s) for s in np.logspace(-3, 1.5, 19)]
Curves = dict[str, list[float]]  # test mean squared error after each iteration, by method


@dataclass(frozen=True)
class Problem:
    """A split (inputs scaled, outputs without their mean), the kernel and the centres."""

    part: Split
    kernel: Gaussian
    centers: Array

    @property
    def tested(self) -> tuple[Array, Array]:
        return self.part.X_test, self.part.y_test


def problem_of(data: Path, name: str, n: int | None, m: int) -> Problem:
    """adult as in NYTRO's table, cpuact as in table 4.1, the others on z-scores."""
    if name == "adult":
        part, sigma = adult(data, n), 6.6
    else:
        a = load(data, name)
        part = split(a["X"], a["y"], min(n or len(a["X"]), round(0.8 * len(a["X"]))), 0)
        part = part.unit_range() if name == "cpuact" else part.standardised()
        sigma = {"cpuact": 0.904, "pumadyn32nh": 2.66, "protein": 1.0}[name]
    mean = part.y.mean()
    part = Split(part.X, part.y - mean, part.X_test, part.y_test - mean)
    return Problem(part, Gaussian(sigma), part.X[:m])  # the rows are in random order


def coefficient_curves(problem: Problem, penalty: float, iterations: int) -> Curves:
    """Conjugate gradient and gradient descent on the coefficients, in H alpha = K_nm' y."""
    part, kernel, centers = problem.part, problem.kernel, problem.centers
    K, K_test, m = kernel(part.X, centers), kernel(part.X_test, centers), len(centers)
    n, K_mm, y_test = len(part.X), kernel(centers), part.y_test[:, None]
    b = K.T @ part.y[:, None] / n
    curves: Curves = {"conjugate gradient": [], "gradient descent": []}

    def product(alpha: Array) -> Array:
        return K.T @ (K @ alpha) / n + penalty * (K_mm @ alpha)

    def follow(number: int, alpha: Array) -> bool:
        curves["conjugate gradient"].append(mean_squared_error(y_test, K_test @ alpha))
        return False

    conjugate_gradient(
        lambda P, _: product(P), b, max_iter=iterations, tolerance=0.0, follow=follow
    )
    operator = LinearOperator((m, m), matvec=lambda v: product(v.reshape(m, 1))[:, 0], dtype=float)
    largest = eigsh(operator, k=1, v0=np.ones(m), tol=1e-4, return_eigenvectors=False)[0]
    alpha = np.zeros((m, 1))
    for _ in range(iterations):
        alpha = alpha - (product(alpha) - b) / largest
        curves["gradient descent"].append(mean_squared_error(y_test, K_test @ alpha))
    return curves


def run(
    problem: Problem, name: str, iterations: int, sgm_passes: int | None
) -> tuple[Curves, float]:
    """Print the table; the curves, and the direct Nyström solution's test error."""
    part, kernel, centers = problem.part, problem.kernel, problem.centers
    direct = NystromKRLS(kernel, centers=centers)
    penalty = chosen(direct, part, "penalty", PENALTIES)
    direct.set_params(penalty=penalty).fit(part.X, part.y)
    floor = float(np.mean((direct.predict(part.X_test) - part.y_test) ** 2))
    tested, curves = problem.tested, {}
    falkon = Falkon(kernel, penalty, centers=centers, max_iter=iterations, tolerance=0.0)
    falkon.set_params(preconditioner_rows=None)
    errors = list(falkon.fit(part.X, part.y, validation_data=tested).validation_errors_)
    # It ends by itself where rounding lets nothing more be gained.
    curves["FALKON"] = errors + errors[-1:] * (iterations - len(errors))
    curves |= coefficient_curves(problem, penalty, iterations)
    nytro = NYTRO(kernel, centers=centers, max_iter=iterations, patience=None, step="spectral")
    curves["NYTRO"] = list(nytro.fit(part.X, part.y, validation_data=tested).validation_errors_)
    steps = []
    if sgm_passes is None:
        sgm_passes = 5 if len(part.X) <= 10000 else 1
    for label, model, passes in (
        ("Nyström SGM", NystromSGM(kernel, centers=centers, random_state=0), iterations),
        ("SGM, all rows", SGM(kernel, random_state=0), sgm_passes),
    ):
        if not passes:
            continue
        model.set_params(max_iter=min(passes, 3))
        scale = 1.0 if label == "Nyström SGM" else 0.3
        step = chosen(model, part, "step", [scale * s for s in STEPS])
        model.set_params(step=step, max_iter=passes)
        curves[label] = list(model.fit(part.X, part.y, validation_data=tested).validation_errors_)
        steps.append(f"{label} {step:.2g}")
    rows = [
        (label, *(f"{errors[t - 1]:.5g}" if t <= len(errors) else "" for t in SHOWN))
        for label, errors in curves.items()
    ]
    print_table(
        f"{name}: test MSE, n = {len(part.X)}, M = {len(centers)}, sigma = {kernel.length_scale}, "
        f"penalty {penalty:.1g}; direct solution {floor:.5g} (FALKON paper, figure 1)",
        ("method", *(f"t = {t}" for t in SHOWN)),
        rows,
    )
    within = {
        label: next((t for t, e in enumerate(errors, 1) if e < 1.01 * floor), None)
        for label, errors in curves.items()
    }
    print(
        "Iterations to within 1 % of the direct solution's test error:",
        ", ".join(f"{k} {t or f'> {len(curves[k])}'}" for k, t in within.items()),
    )
    print(f"Steps chosen: {', '.join(steps)}", flush=True)
    return curves, floor


def draw(found: dict[str, tuple[Curves, float]], out: Path) -> None:
    """A panel for each data set."""
    figure, panels = pyplot().subplots(1, len(found), figsize=(6 * len(found), 4), squeeze=False)
    for axes, (name, (curves, floor)) in zip(panels[0], found.items(), strict=True):
        for label, errors in curves.items():
            axes.plot(
                range(1, len(errors) + 1), errors, "." if len(errors) == 1 else "-", label=label
            )
        axes.axhline(floor, color="grey", linestyle=":", label="direct Nyström")
        axes.set(xlabel="iterations, or passes", title=name, xscale="log")
        highest = max(errors[0] for errors in curves.values())
        if highest > 5.0 * floor:
            axes.set_yscale("log")
        else:
            axes.set_ylim(top=min(highest, 2.0 * floor))
        axes.grid(alpha=0.3)
    panels[0, 0].set_ylabel("test MSE")
    figure.tight_layout()
    lines, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="upper center", ncols=4, bbox_to_anchor=(0.5, 0.0))
    save_figure(figure, out, "falkon_figure_1")


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument(
        "--sets",
        nargs="+",
        default=["adult", "cpuact", "pumadyn32nh"],
        choices=["adult", "cpuact", "pumadyn32nh", "protein"],
    )
    parser.add_argument("--n", type=int, help="training rows at most")
    parser.add_argument("--m", type=int, default=1000, help="centres")
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument(
        "--sgm-passes", type=int, help="of SGM on all rows; default: 5, or 1 of over 10000"
    )
    arguments = parse(parser)
    warnings.simplefilter("ignore", ConvergenceWarning)
    found = {
        name: run(
            problem_of(arguments.data, name, arguments.n, arguments.m),
            name,
            arguments.iterations,
            arguments.sgm_passes,
        )
        for name in arguments.sets
    }
    if arguments.out is not None:
        draw(found, arguments.out)


if __name__ == "__main__":
    main()
