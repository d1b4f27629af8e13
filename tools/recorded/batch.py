"""The learning library on small parts of the shared tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .table import Arrays, case, data, numbers, state_arrays

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
    """What a path gives for each setting."""
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
    from semiparam_dynamics.learning import KRLS

    model = KRLS(gaussian(), 1e-3, filter=filter)
    found = fitted(model, grid)
    if filter == "tikhonov":
        X, y, *_ = table()
        found |= path(model.leave_one_out(X, two(y), {"penalty": PENALTIES}), "leave_one_out")
    return found


@case("batch/nystrom_krls/uniform", centers="uniform")
@case("batch/nystrom_krls/leverage_scores", centers="leverage_scores")
def nystrom(centers: str) -> Arrays:
    """Nyström kernel least squares: its path, leave-one-out, and centres added on the way."""
    from semiparam_dynamics.learning import NystromKRLS

    model = NystromKRLS(gaussian(), 1e-4, 60, centers, random_state=3)
    grid = {"n_centers": (10, 30, 60), "penalty": PENALTIES}
    found = fitted(model, grid, n=1200)
    X, y, X_test, y_test = table(n=1200)
    found |= path(model.leave_one_out(X, y, grid), "leave_one_out")
    model.grow(X, y, validation_data=(X_test, y_test), step=15, patience=10)
    return found | known(model, X_test, "grown/")


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

    model = Falkon(gaussian(), 1e-4, 60, centers, max_iter=5, random_state=3)
    return fitted(model, {"penalty": PENALTIES, "max_iter": (2, 5, 15)}, n=1200)


@case("batch/recursive/inputs", features=None)
@case("batch/recursive/random_fourier", features="random_fourier")
@case("batch/recursive/nystrom", features="nystrom")
@case("batch/recursive/forgetting", features="random_fourier", forgetting=0.995)
def recursive(**values: Any) -> Arrays:
    """Learned in parts; with standard deviations."""
    from semiparam_dynamics.learning import RecursiveRLS

    X, y, X_test, _ = table()
    model = RecursiveRLS(gaussian(), 0.5, n_features=60, random_state=3, **values)
    model.fit(X[:150], two(y[:150]))
    found = known(model, X_test, "first/")
    model.partial_fit(X[150:300], two(y[150:300]))
    model.partial_fit(X[300:], two(y[300:]), sample_weight=np.linspace(0.0, 2.0, TRAIN - 300))
    found["std"] = model.predict(X_test, return_std=True)[1]
    return found | known(model, X_test)


@case("batch/recursive/from_batch")
def from_batch() -> Arrays:
    """Batch models that go on learning."""
    from semiparam_dynamics.learning import (
        KRLS,
        Falkon,
        NystromKRLS,
        RandomFeaturesKRLS,
        RecursiveRLS,
    )

    X, y, X_test, _ = table()
    found: Arrays = {}
    for model in (
        KRLS(gaussian(), 1e-3),
        NystromKRLS(gaussian(), 1e-3, 60, random_state=3),
        Falkon(gaussian(), 1e-3, 60, random_state=3),
        RandomFeaturesKRLS(gaussian(), 1e-3, 60, "pair", random_state=3),
    ):
        name = type(model).__name__
        going_on = RecursiveRLS.from_batch(model.fit(X[:200], y[:200]), X[:200], y[:200])
        found |= known(going_on, X_test, f"{name}/first/")
        found |= known(going_on.partial_fit(X[200:], y[200:]), X_test, f"{name}/")
    return found


@case("batch/rlsc/inputs", features=None)
@case("batch/rlsc/random_fourier", features="random_fourier")
@case("batch/rlsc/nystrom", features="nystrom")
@case("batch/rlsc/one_alpha", features=None, alpha=0.7, refresh_later=True)
def rlsc(**values: Any) -> Arrays:
    """Classes of different sizes, one of which comes late; then they are edited."""
    from semiparam_dynamics.learning import IncrementalRLSC

    rng = np.random.default_rng(5)
    sizes = (150, 80, 20)
    y = rng.permutation(np.repeat(np.arange(3), sizes))
    X = rng.standard_normal((len(y), 16)) + 1.2 * np.eye(3, 16)[y]
    late = rng.standard_normal((25, 16)) + 1.5 * np.eye(5, 16)[4]
    X_test = rng.standard_normal((60, 16)) + 1.5 * np.eye(5, 16)[rng.integers(0, 5, 60)]
    settings: dict[str, Any] = {"penalty": (0.1, 1.0, 10.0), "n_features": 40, "random_state": 3}
    model = IncrementalRLSC(kernel=gaussian(), **(settings | values))
    names = np.array(["apple", "bolt", "cup", "dish"])

    def said(prefix: str) -> Arrays:
        return {
            f"{prefix}/scores": model.decision_function(X_test),
            f"{prefix}/probabilities": model.predict_proba(X_test),
            f"{prefix}/novelty": model.novelty(X_test),
            f"{prefix}/looks": np.array([model.look(x)[1] for x in X_test]),
            f"{prefix}/chosen": np.array([model.penalty_, model.alpha_, model.temperature_]),
        }

    found = (model.fit(X, names[y]), said("first"))[1]
    model.partial_fit(late, names[np.full(25, 3)])
    found |= said("late")
    model.refresh(10)
    found |= said("refreshed")
    model.rename_class("apple", "pear")
    model.merge_classes("cup", "bolt")
    found |= said("merged")
    model.forget_class("dish")
    state = model.state()
    floats = {k: v for k, v in state.items() if np.asarray(v).dtype.kind in "fiub"}
    return found | said("forgotten") | state_arrays(floats)


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
    from semiparam_dynamics.learning import (
        IncrementalNystromFeatures,
        NystromFeatures,
        RandomFourierFeatures,
    )

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
