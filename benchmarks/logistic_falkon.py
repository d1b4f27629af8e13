"""Logistic FALKON's time beside scikit-learn's LogisticRegression on the same Nyström features.

    python benchmarks/logistic_falkon.py [--rows 100000] [--centers 1000] [--penalty 1e-6]
        [--intercept]

Data of scikit-learn's make_classification: 20 inputs of which 8 matter, and as many test rows as
training rows, at most 20 000. Both minimise the mean logistic loss plus penalty / 2 times the
squared norm, without an intercept, or with `--intercept` with one, on classes of 80 and 20 %;
scikit-learn's time includes the features K_nm K_mm^(-1/2).
Fits take turns, and the least of three is printed, of the seconds by the clock and of those of the
processor, all threads together. OMP_NUM_THREADS bounds the threads of both.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from output import make_parser, parse
from scipy.linalg import eigh
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.learning import Falkon, Gaussian

WIDTH = 4.0
Fitted = tuple[Array, float, int, float]  # scores of all rows, squared norm, steps, intercept


def logistic_falkon(
    X: Array, y: Array, at: Array, m: int, penalty: float, intercept: bool
) -> Callable[[], Fitted]:
    def fit() -> Fitted:
        model = Falkon(
            Gaussian(WIDTH),
            penalty,
            m,
            max_iter=50,
            tolerance=1e-4,
            random_state=0,
            preconditioner_rows=4 * m,
            loss="logistic",
            fit_intercept=intercept,
        )
        model.fit(X, y)
        norm = float(model.coef_ @ model.kernel(model.centers_) @ model.coef_)
        return model.predict(at), norm, model.n_iter_, model.intercept_

    return fit


def scikit_learn(
    X: Array, y: Array, at: Array, m: int, penalty: float, intercept: bool, **settings: Any
) -> Callable[[], Fitted]:
    def fit() -> Fitted:
        kernel = Gaussian(WIDTH)
        centers = X[np.random.RandomState(0).permutation(len(X))[:m]]
        values, Q = eigh(kernel(centers))
        used = values > 1e-12 * values[-1]
        S = Q[:, used] / np.sqrt(values[used])
        C = 1.0 / (penalty * len(X))
        model = LogisticRegression(C=C, fit_intercept=intercept, **settings)
        model.fit(kernel(X, centers) @ S, y)
        w, b = model.coef_[0], float(np.ravel(model.intercept_)[0])
        scores = kernel(at, centers) @ (S @ w) + b
        return scores, float(w @ w), int(model.n_iter_[0]), b

    return fit


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--centers", type=int, default=1000)
    parser.add_argument("--penalty", type=float, default=1e-6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--intercept", action="store_true")
    args = parse(parser)
    n = args.rows
    X, labels = make_classification(
        n + min(n, 20_000), 20, n_informative=8, n_redundant=0, n_clusters_per_class=8,
        weights=[0.8] if args.intercept else None, random_state=0,
    )  # fmt: skip
    y = 2.0 * labels - 1.0
    given = (X[:n], y[:n], X, args.centers, args.penalty, args.intercept)
    fits = {
        "Falkon, logistic": logistic_falkon(*given),
        "LogisticRegression, lbfgs": scikit_learn(*given, tol=1e-4, max_iter=1000),
        "LogisticRegression, lbfgs, tol=1e-6": scikit_learn(*given, tol=1e-6, max_iter=1000),
        "LogisticRegression, newton-cholesky": scikit_learn(*given, solver="newton-cholesky"),
    }
    small = (X[:500], y[:500], X[:500], 50, args.penalty, args.intercept)
    logistic_falkon(*small)()  # compiled before it is measured
    least = {name: (np.inf, np.inf) for name in fits}
    found: dict[str, Fitted] = {}
    warnings.simplefilter("ignore")
    for _ in range(args.repeats):
        for name, fit in fits.items():
            start, used = time.perf_counter(), time.process_time()
            found[name] = fit()
            spent = time.perf_counter() - start, time.process_time() - used
            least[name] = min(least[name][0], spent[0]), min(least[name][1], spent[1])
    print(f"{n} rows, {args.centers} centres, penalty {args.penalty:g}; seconds with predictions\n")
    print(
        "| method | objective | test error | iterations | intercept | seconds | of the processor |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, (f, norm, iterations, b) in found.items():
        objective = np.logaddexp(0.0, -y[:n] * f[:n]).mean() + 0.5 * args.penalty * norm
        error = np.mean(y[n:] * f[n:] <= 0.0)
        seconds = " | ".join(f"{one:.1f}" for one in least[name])
        shown = f"{objective:.8f} | {error:.5f} | {iterations} | {b:.4f} | {seconds}"
        print(f"| {name} | {shown} |")


if __name__ == "__main__":
    main()
