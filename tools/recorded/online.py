"""The learning library's incremental estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from .batch import TRAIN, gaussian, known, table, two
from .table import Arrays, case, state_arrays


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
    """Batch models that continue learning."""
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
@case("batch/rlsc/one_alpha", features=None, recoding=0.7, refresh_later=True)
def rlsc(**values: Any) -> Arrays:
    """Classes of different sizes, one of which comes late; then they are edited."""
    from semiparam_dynamics.learning import IncrementalRLSC

    rng = np.random.default_rng(5)
    sizes = (150, 80, 20)
    y = rng.permutation(np.repeat(np.arange(3), sizes))
    X = rng.standard_normal((len(y), 16)) + 1.2 * np.eye(3, 16)[y]
    late = rng.standard_normal((25, 16)) + 1.5 * np.eye(5, 16)[4]
    X_test = rng.standard_normal((60, 16)) + 1.5 * np.eye(5, 16)[rng.integers(0, 5, 60)]
    settings: dict[str, Any] = {"ridge": (0.1, 1.0, 10.0), "n_features": 40, "random_state": 3}
    model = IncrementalRLSC(kernel=gaussian(), **(settings | values))
    names = np.array(["apple", "bolt", "cup", "dish"])

    def said(prefix: str) -> Arrays:
        return {
            f"{prefix}/scores": model.decision_function(X_test),
            f"{prefix}/probabilities": model.predict_proba(X_test),
            f"{prefix}/novelty": model.novelty(X_test),
            f"{prefix}/looks": np.array([model.assess(x).novelty for x in X_test]),
            f"{prefix}/chosen": np.array([model.ridge_, model.recoding_, model.temperature_]),
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
