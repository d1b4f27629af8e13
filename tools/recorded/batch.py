"""The learning library's batch estimators on small parts of the shared tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .table import Arrays, case, data

TRAIN, TEST = 400, 100
WIDTH = 4.0
PENALTIES = (1e-1, 1e-3, 1e-5)


def table(name: str = "cpusmall", n: int = TRAIN) -> tuple[np.ndarray, ...]:
    """X and y to train on, X and y to test on: standardised rows of a table, drawn at random."""
    with np.load(data(f"tables/{name}.npz")) as file:
        X, y = file["X"].astype(float), file["y"].astype(float)
    rows = np.random.default_rng(1).permutation(len(X))[: n + TEST]
    X, y = X[rows], y[rows]
    scale = X[:n].std(axis=0)
    X = (X - X[:n].mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
    y = (y - y[:n].mean()) / y[:n].std()
    return X[:n], y[:n], X[n:], y[n:]


def two(y: np.ndarray) -> np.ndarray:
    """Two outputs of one."""
    return np.column_stack((y, np.tanh(2.0 * y)))


def known(model: Any, X: np.ndarray, prefix: str = "") -> Arrays:
    """Predictions, and all fitted numbers."""
    found: Arrays = {f"{prefix}predictions": model.predict(X)}
    names = ("coef_", "centers_", "n_iter_", "step_", "residuals_", "validation_errors_")
    for name in (*names, "weights_", "frequencies_", "offsets_", "noise_", "intercept_"):
        value = getattr(model, name, None)
        if value is not None:
            found[prefix + name.rstrip("_")] = np.asarray(value, dtype=float)
    return found


def path(pairs: Iterable[tuple[dict[str, Any], np.ndarray]], prefix: str = "path") -> Arrays:
    """The predictions of a path for each setting."""
    return {
        f"{prefix}/{' '.join(f'{k}={v:g}' for k, v in sorted(setting.items()))}": predicted.copy()
        for setting, predicted in pairs
    }


def fitted(
    model: Any, grid: dict[str, Any] | None = None, *, n: int = TRAIN, weighted: bool = True
) -> Arrays:
    """A fit to one output, one to two, with weights if it knows them, and a path."""
    from sklearn.base import clone

    X, y, X_test, _ = table(n=n)
    weights = np.random.default_rng(2).integers(0, 3, n).astype(float)
    extra = {"sample_weight": weights} if weighted else {}
    found = known(clone(model).fit(X, y), X_test)
    found |= known(clone(model).fit(X, two(y), **extra), X_test, "two/")
    single = clone(model).fit(X.astype(np.float32), y.astype(np.float32))
    found["single_precision/predictions"] = single.predict(X_test)
    if grid:
        found |= path(clone(model).path(X, two(y), grid, X_test))
    return found


def gaussian() -> Any:
    """The kernel of most cases."""
    from semiparam_dynamics.learning import Gaussian

    return Gaussian(WIDTH)


@case("batch/krls/tikhonov", filter="tikhonov", grid={"penalty": PENALTIES})
@case("batch/krls/cutoff", filter="cutoff", grid={"penalty": PENALTIES})
@case("batch/krls/landweber", filter="landweber", grid={"max_iter": (1, 10, 100)})
@case("batch/krls/nu", filter="nu", grid={"max_iter": (1, 10, 100)})
@case("batch/krls/ols", filter="ols", grid=None)
def krls(filter: str, grid: dict[str, Any] | None) -> Arrays:  # noqa: A002
    """Kernel least squares on all rows, with a filter."""
    from semiparam_dynamics.learning import KRLS, Laplacian

    # Without regularisation a smooth kernel's matrix would be singular to rounding.
    model = KRLS(Laplacian(2.0) if filter == "ols" else gaussian(), 1e-3, filter=filter)
    found = fitted(model, grid)
    if filter == "tikhonov":
        X, y, *_ = table()
        found |= path(model.leave_one_out(X, two(y), {"penalty": PENALTIES}), "leave_one_out")
    return found


@case("batch/nystrom_krls/uniform", centers="uniform")
@case("batch/nystrom_krls/leverage_scores", centers="leverage_scores")
def nystrom(centers: str) -> Arrays:
    """Nyström kernel least squares: its path and leave-one-out."""
    from semiparam_dynamics.learning import NystromKRLS

    model = NystromKRLS(gaussian(), 1e-4, 60, centers, random_state=3)
    grid = {"n_centers": (10, 30, 60), "penalty": PENALTIES}
    found = fitted(model, grid, n=1200)
    X, y, *_ = table(n=1200)
    return found | path(model.leave_one_out(X, y, grid), "leave_one_out")


@case("batch/nytro")
def nytro() -> Arrays:
    """Gradient steps on Nyström features, stopped early."""
    from semiparam_dynamics.learning import NYTRO

    model = NYTRO(gaussian(), 60, max_iter=60, random_state=3)
    held_out = NYTRO(gaussian(), 60, max_iter=60, validation=0.2, random_state=3)
    found = fitted(model, {"max_iter": (1, 10, 60)}, n=1200)
    X, y, X_test, _ = table(n=1200)
    return found | known(held_out.fit(X, y), X_test, "held_out/")


@case("batch/random_features/phase", kind="phase")
@case("batch/random_features/pair", kind="pair")
def random_features(kind: str) -> Arrays:
    """Random features of a Gaussian, and of a kernel with other tails."""
    from semiparam_dynamics.learning import Laplacian, RandomFeaturesKRLS

    grid = {"n_features": (20, 80), "penalty": PENALTIES}
    model = RandomFeaturesKRLS(gaussian(), 1e-4, 80, kind, random_state=3)
    X, y, X_test, _ = table()
    other = RandomFeaturesKRLS(Laplacian(WIDTH), 1e-4, 80, kind, random_state=3).fit(X, y)
    return fitted(model, grid, n=1200) | known(other, X_test, "laplacian/")


@case("batch/sgm", name="SGM", average=False)
@case("batch/sgm_average", name="SGM", average=True, decay=0.5, validation=0.2)
@case("batch/nystrom_sgm", name="NystromSGM", n_centers=50, batch_size=8)
def sgm(name: str, **values: Any) -> Arrays:
    """Stochastic gradients, with the square loss and with others."""
    from semiparam_dynamics import learning

    kind = getattr(learning, name)
    model = kind(gaussian(), max_iter=3, random_state=3, **values)
    found = fitted(model, {"step": (0.05, 0.5), "max_iter": (1, 3)}, weighted=False)
    X, y, X_test, _ = table()
    for loss in ("hinge", "logistic", "epsilon_insensitive"):
        other = kind(gaussian(), loss=loss, max_iter=2, random_state=3, **values)
        found |= known(other.fit(X, np.where(y > 0.0, 1.0, -1.0)), X_test, f"{loss}/")
    return found


@case("batch/aggregator", independent=False)
@case("batch/aggregator_independent", independent=True, validation=0.2)
def aggregator(**values: Any) -> Arrays:
    """Nyström estimators of several sizes combined."""
    from semiparam_dynamics.learning import NystromAggregator

    return fitted(
        NystromAggregator(gaussian(), 1e-3, (10, 30, 60), random_state=3, **values), n=1200
    )


@case("batch/falkon/uniform", centers="uniform")
@case("batch/falkon/leverage_scores", centers="leverage_scores")
def falkon(centers: str) -> Arrays:
    """Preconditioned conjugate gradients, at a few iterations and at many."""
    from semiparam_dynamics.learning import Falkon

    model = Falkon(
        gaussian(), 1e-4, 60, centers, max_iter=5, random_state=3, preconditioner_rows=None
    )
    return fitted(model, {"penalty": PENALTIES, "max_iter": (2, 5, 15)}, n=1200)
