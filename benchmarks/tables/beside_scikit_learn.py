"""This package's kernel ridge regressions beside scikit-learn's, at equal m and lambda.

    python benchmarks/tables/beside_scikit_learn.py DATA [--centers M] [--sets NAME ...]

Same rows, same centres, no intercept, alpha = lambda n. Then a path over m and lambda beside
GridSearchCV, which fits each setting.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common import Cost, Split, data_parser, load, measured, parse, print_table, rmse, split
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import Pipeline

from semiparam_dynamics.learning.falkon import Falkon
from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.krls import KRLS
from semiparam_dynamics.learning.nystrom import NystromKRLS
from semiparam_dynamics.learning.random_features import RandomFeaturesKRLS
from semiparam_dynamics.learning.selection import select

# Width and lambda for inputs between 0 and 1: thesis 4.2.4 and table 5.1; protein's by hold-out.
SETTINGS = {"pumadyn32nh": (2.66, 1e-3), "cpuact": (0.904, 1e-6), "protein": (0.1, 1e-5)}
EXACT_ROWS = 10000  # more have no exact solution here


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("--centers", type=int, default=1000)
    parser.add_argument("--sets", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    args = parse(parser)
    warm_up()
    for name in args.sets:
        part = rows_of(args.data, name)
        fits(name, part, args.centers)
    path(rows_of(args.data, "pumadyn32nh"), *SETTINGS["pumadyn32nh"], 500)


def rows_of(data: Path, name: str) -> Split:
    """Four fifths of the rows to train; inputs between 0 and 1."""
    arrays = load(data, name)
    X, y = arrays["X"], arrays["y"]
    return split(X, y, int(0.8 * len(X)), 0).unit_range()


def warm_up() -> None:
    """Compilation and the first call of each library are not what is measured."""
    X = np.random.default_rng(0).random((200, 3))
    for _, model in pairs(1.0, 1e-3, 20, len(X)):
        model.fit(X, X[:, 0]).predict(X)


def pairs(sigma: float, penalty: float, m: int, n: int) -> list[tuple[str, Any]]:
    """Names and estimators: each of scikit-learn's after the one that it is the equal of."""
    kernel, gamma, alpha = Gaussian(sigma), 0.5 / sigma**2, penalty * n
    ridge = Ridge(alpha=alpha, fit_intercept=False)
    return [
        ("NystromKRLS", NystromKRLS(kernel, penalty, m, random_state=0)),
        ("Falkon, 20 iterations", Falkon(kernel, penalty, m, random_state=0)),
        ("Falkon, 100 iterations", Falkon(kernel, penalty, m, max_iter=100, random_state=0)),
        (
            "sklearn Nystroem, Ridge",
            Pipeline(
                [("map", Nystroem(gamma=gamma, n_components=m, random_state=0)), ("r", ridge)]
            ),
        ),
        ("RandomFeaturesKRLS", RandomFeaturesKRLS(kernel, penalty, m, random_state=0)),
        (
            "sklearn RBFSampler, Ridge",
            Pipeline(
                [("map", RBFSampler(gamma=gamma, n_components=m, random_state=0)), ("r", ridge)]
            ),
        ),
        ("KRLS", KRLS(kernel, penalty)),
        ("sklearn KernelRidge", KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma)),
    ]


def fits(name: str, part: Split, n_centers: int) -> None:
    """Print a data set's table."""
    sigma, penalty = SETTINGS[name]
    rows = []
    for label, model in pairs(sigma, penalty, n_centers, len(part.X)):
        if len(part.X) > EXACT_ROWS and label in ("KRLS", "sklearn KernelRidge"):
            gigabytes = 8e-9 * len(part.X) ** 2
            rows.append((label, f"not run: {gigabytes:.0f} GB of kernel", "", "", "", ""))
            continue
        _, fit = measured(lambda m=model: m.fit(part.X, part.y))
        predicted, prediction = measured(lambda m=model: m.predict(part.X_test))
        rows.append((label, f"{rmse(part.y_test, predicted):.5g}", *cost_cells(fit, prediction)))
    print_table(
        f"{name}: {len(part.X)} training rows, m={n_centers}, sigma={sigma}, lambda={penalty:g}",
        ("estimator", "test RMSE", "fit, s", "predict, s", "fit, peak MB", "predict, peak MB"),
        rows,
    )


def cost_cells(fit: Cost, prediction: Cost) -> tuple[str, str, str, str]:
    return (
        f"{fit.seconds:.2f}",
        f"{prediction.seconds:.3f}",
        f"{fit.megabytes:.0f}",
        f"{prediction.megabytes:.0f}",
    )


def path(part: Split, sigma: float, penalty: float, max_centers: int, n_grid: int = 20) -> None:
    """Print the time of 20 m x 20 lambda by one pass, and by GridSearchCV's fits."""
    sizes = [int(m) for m in np.linspace(max_centers / n_grid, max_centers, n_grid)]
    penalties = [
        float(p) for p in np.logspace(np.log10(penalty) - 4, np.log10(penalty) + 2, n_grid)
    ]
    folds = ShuffleSplit(1, test_size=0.2, random_state=0)
    n = len(next(folds.split(part.X))[0])
    grid = {"n_centers": sizes, "penalty": penalties}
    model = NystromKRLS(Gaussian(sigma), random_state=0)
    ours, once = measured(
        lambda: select(model, part.X, part.y, grid, validation=folds, refit=False)
    )
    search = GridSearchCV(
        Pipeline(
            [
                ("map", Nystroem(gamma=0.5 / sigma**2, random_state=0)),
                ("ridge", Ridge(fit_intercept=False)),
            ]
        ),
        {"map__n_components": sizes, "ridge__alpha": [p * n for p in penalties]},
        scoring="neg_mean_squared_error",
        cv=folds,
        refit=False,
    )
    _, each = measured(lambda: search.fit(part.X, part.y))
    theirs = np.empty_like(ours.mean)
    for setting, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        i = sizes.index(setting["map__n_components"])
        j = int(np.argmin(np.abs(np.array(penalties) * n - setting["ridge__alpha"])))
        theirs[i * len(penalties) + j] = -score
    difference = float(np.max(np.abs(theirs - ours.mean) / ours.mean))
    print_table(
        f"pumadyn32nh: {len(sizes)} m up to {max_centers} x {len(penalties)} lambda, {n} rows",
        ("search", "smallest validation RMSE", "s", "peak MB"),
        [
            ("select, one pass", f"{ours.best_error**0.5:.5g}", *time_cells(once)),
            ("GridSearchCV, Nystroem, Ridge", f"{theirs.min() ** 0.5:.5g}", *time_cells(each)),
        ],
    )
    print(
        f"{each.seconds / once.seconds:.0f} times as fast. The largest relative difference of the "
        f"{len(theirs)} mean squared errors is {difference:.1g}."
    )


def time_cells(cost: Cost) -> tuple[str, str]:
    return f"{cost.seconds:.2f}", f"{cost.megabytes:.0f}"


if __name__ == "__main__":
    main()
