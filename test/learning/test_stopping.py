"""Stopping rules against lines fitted by another routine, and in the estimators that take one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.learning import NYTRO, SGM, ErrorSlope, Gaussian, NystromSGM


def first_stop(rule: ErrorSlope, errors: Any) -> int:
    return next((t for t in range(1, len(errors)) if rule(errors[:t])), len(errors))


def stop_by_polyfit(errors: np.ndarray, window: int, threshold: float) -> int:
    for t in range(window, len(errors)):
        slope, _ = np.polyfit(np.arange(window), errors[t - window : t], 1)
        if slope >= -threshold / window:
            return t
    return len(errors)


@pytest.mark.parametrize("window", [2, 7, 10])
@pytest.mark.parametrize("threshold", [0.0, 0.003, 0.02, -0.01])
def test_the_slope_is_that_of_a_fitted_line(window: int, threshold: float) -> None:
    noise = 0.002 * np.random.default_rng(1).standard_normal(200)
    errors = 3.0 + 2.0 / np.arange(1.0, 201.0) + noise
    rule = ErrorSlope(window, threshold)
    assert first_stop(rule, errors) == stop_by_polyfit(errors, window, threshold)


def data(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.3 * rng.standard_normal(n)


KERNEL = Gaussian(0.6)


@pytest.mark.parametrize(
    ("model", "threshold"),
    [
        (NYTRO(KERNEL, 60, max_iter=300, patience=3, tolerance=0.9, random_state=0), 0.002),
        (SGM(KERNEL, max_iter=60, random_state=0), 0.01),
        (SGM(KERNEL, loss="absolute", max_iter=60, random_state=0), 0.01),
        (NystromSGM(KERNEL, 60, max_iter=60, random_state=0), 0.01),
    ],
    ids=["nytro", "sgm", "sgm absolute", "nystrom sgm"],
)
def test_each_iterative_estimator_ends_by_the_rule_it_is_given(
    model: Any, threshold: float
) -> None:
    X, y = data()
    held = data(240)
    rule = ErrorSlope(5, threshold)
    never = clone(model).set_params(patience=None).fit(X, y, validation_data=held)
    stopped = clone(model).set_params(stopping=rule).fit(X, y, validation_data=held)
    all_errors = never.validation_errors_
    seen = all_errors if getattr(model, "loss", "square") == "absolute" else np.sqrt(all_errors)
    count = stop_by_polyfit(seen, 5, threshold)
    assert 5 < count < len(all_errors)
    np.testing.assert_allclose(stopped.validation_errors_, all_errors[:count], rtol=1e-9)
    assert stopped.n_iter_ == 1 + np.argmin(all_errors[:count])


def test_any_function_of_the_errors_is_a_rule() -> None:
    X, y = data()
    seen: list[int] = []

    def fourth(errors: Any) -> bool:
        seen.append(len(errors))
        return len(errors) == 4

    model = NYTRO(KERNEL, 40, validation=0.2, stopping=fourth, random_state=0).fit(X, y)
    assert len(model.validation_errors_) == 4 and seen == [1, 2, 3, 4]


def test_rules_that_make_no_sense_are_refused() -> None:
    X, y = data(40)
    for settings in ({"window": 1}, {"window": 2.5}, {"threshold": np.nan}):
        with pytest.raises(ConfigurationError, match="must be"):
            ErrorSlope(**settings)
    with pytest.raises(ConfigurationError, match="stopping must be None, an ErrorSlope"):
        NYTRO(stopping="slope", validation=0.2).fit(X, y)  # type: ignore[arg-type]
    for model in (NYTRO(KERNEL), SGM(KERNEL), NystromSGM(KERNEL)):
        model.set_params(stopping=ErrorSlope())
        with pytest.raises(ConfigurationError, match="stopping is a rule for validation errors"):
            model.fit(X, y)
