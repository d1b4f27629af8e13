"""The parts of the learning library's estimators, and how parameters are chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .batch import PENALTIES, WIDTH, gaussian, known, table
from .table import Arrays, case, numbers


def kernels() -> dict[str, Any]:
    """Every kernel."""
    from semiparam_dynamics import learning

    widths = np.linspace(2.0, 5.0, 12)
    return {
        "gaussian": learning.Gaussian(WIDTH),
        "gaussian_widths": learning.Gaussian(widths),
        "laplacian": learning.Laplacian(WIDTH),
        **{f"matern_{nu:g}": learning.Matern(WIDTH, nu) for nu in (0.5, 1.5, 2.5)},
        "polynomial": learning.Polynomial(3, 0.1, 1.0),
        "linear": learning.Linear(0.5),
        "function": lambda A, B: np.tanh(0.01 * A @ B.T) + 1.0,
    }


@case("batch/kernels")
def blocks() -> Arrays:
    """Blocks of kernel matrices, in both precisions, and what least squares with them predicts."""
    from semiparam_dynamics.learning import KRLS, Kernel

    X, y, X_test, _ = table(n=150)
    found: Arrays = {}
    for name, kernel in kernels().items():
        if isinstance(kernel, Kernel):
            found[f"{name}/block"] = kernel(X_test, X)
            found[f"{name}/square"] = kernel(X)
            found[f"{name}/diagonal"] = kernel.diagonal(X)
            found[f"{name}/single"] = kernel(X_test.astype(np.float32), X.astype(np.float32))
        found |= known(KRLS(kernel, 1e-2).fit(X, y), X_test, f"{name}/")
    return found


@case("batch/features")
def features() -> Arrays:
    """Random Fourier and Nyström features, those that grow included."""
    from semiparam_dynamics.learning import NystromFeatures, RandomFourierFeatures
    from semiparam_dynamics.learning.recursion.features import IncrementalNystromFeatures

    X, _, X_test, _ = table()
    fourier = RandomFourierFeatures(40, WIDTH, random_state=3).fit(X)
    found = {"fourier": fourier.transform(X_test), "frequencies": fourier.frequencies_}
    for centers in ("uniform", "leverage_scores"):
        nystrom = NystromFeatures(gaussian(), 40, centers, random_state=3).fit(X)
        found[f"nystrom/{centers}"] = nystrom.transform(X_test)
        found[f"nystrom/{centers}/centers"] = nystrom.centers_
    growing = IncrementalNystromFeatures(X.shape[1], WIDTH, 50, 0.3)
    explained = []
    for x in X:
        growing.grow(x, growing.transform(x))
        explained.append(growing.explained)
    found["growing/explained"] = np.array(explained)
    found["growing/centers"], found["growing/factor"] = (
        growing.centers.copy(),
        growing.factor.copy(),
    )
    return found | {"growing/rows": growing.transform_rows(X_test)}


@case("batch/centers")
def centers() -> Arrays:
    """Rows chosen uniformly and by leverage scores, and the scores."""
    from semiparam_dynamics.learning import approximate_leverage_scores, leverage_scores, uniform

    X, *_ = table()
    found: Arrays = {"indices/uniform": uniform(X, 50, 3).indices}
    drawn = leverage_scores(X, 50, gaussian(), 1e-3, 3)
    found |= {"indices/leverage_scores": drawn.indices, "probabilities": drawn.probabilities}
    scores = approximate_leverage_scores(X, X[:80], gaussian(), 1e-3)
    return found | {"scores": scores}


@case("batch/select")
def select() -> Arrays:
    """Parameters chosen by folds, by held-out rows, and by leave-one-out."""
    from semiparam_dynamics.learning import KRLS, NystromKRLS, select

    X, y, X_test, _ = table()
    grid = {"penalty": PENALTIES, "kernel__length_scale": (2.0, 4.0, 8.0)}
    found: Arrays = {}
    choices: dict[str, Callable[[], Any]] = {
        "held_out": lambda: select(KRLS(gaussian()), X, y, grid, random_state=3),
        "folds": lambda: select(
            NystromKRLS(gaussian(), 1e-3, 40, random_state=3), X, y, grid, validation=4
        ),
        "leave_one_out": lambda: select(KRLS(gaussian()), X, y, grid, validation="leave_one_out"),
    }
    for name, choose in choices.items():
        chosen = choose()
        found |= {f"{name}/errors": chosen.errors, f"{name}/best": np.array(chosen.best_index)}
        found |= numbers(chosen.best, f"{name}/best")
        found[f"{name}/predictions"] = chosen.estimator.predict(X_test)
    return found


@case("batch/classifier")
def classifier() -> Arrays:
    """Least squares on the codes of three classes, and of two with weights."""
    from semiparam_dynamics.learning import KRLS, KernelClassifier

    X, y, X_test, _ = table()
    three, both = np.digitize(y, (-0.3, 0.4)), (y > 0.5).astype(int)
    model = KernelClassifier(KRLS(gaussian(), 1e-3)).fit(X, three)
    other = KernelClassifier(KRLS(gaussian(), 1e-3), "balanced").fit(X, both)
    found = {"three/scores": model.decision_function(X_test), "three": model.predict(X_test)}
    return found | {"two/scores": other.decision_function(X_test), "two": other.predict(X_test)}
