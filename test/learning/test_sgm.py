"""Stochastic gradient in an RKHS against the plain loop over its draws."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning import kernel_descent
from semiparam_dynamics.learning.base import Iteration
from semiparam_dynamics.learning.kernels import Gaussian, Linear
from semiparam_dynamics.learning.rows import Rows
from semiparam_dynamics.learning.sgm import SGM

# Left-hand derivatives, written another way than in the package.
DERIVATIVES = {
    "square": lambda y, f: f - y,
    "hinge": lambda y, f: -y * float(1.0 - y * f > 0.0),
    "logistic": lambda y, f: -y * expit(-y * f),
    "absolute": lambda y, f: np.sign(f - y),
    "epsilon_insensitive": lambda y, f: np.sign(f - y) * float(abs(f - y) > 0.1),
}


def data(n: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(n)


def loop(
    K: np.ndarray, y: np.ndarray, loss: str, step: float, decay: float, passes: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The last iterate's coefficients and the weighted mean of the iterates (thesis 6.3, 6.4)."""
    draw, n = np.random.RandomState(seed), len(K)
    w, mean, total, t = np.zeros(n), np.zeros(n), 0.0, 0
    for _ in range(passes):
        for j in draw.randint(n, size=n):
            t += 1
            size = step * t**-decay
            mean += size * w
            total += size
            w[j] -= size * DERIVATIVES[loss](y[j], K[j] @ w)
    return w, mean / total


@pytest.mark.parametrize("loss", DERIVATIVES)
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_it_equals_the_plain_loop(loss: str, average: bool, kept: bool) -> None:
    X, y = data()
    y = np.sign(y) if loss in ("hinge", "logistic") else y
    K = rbf_kernel(X, gamma=0.5 / 0.8**2)
    expected = loop(K, y, loss, 0.4, 0.3, 3, 5)[average]
    limit = None if kept else 90 * 90 * 8  # the matrix may take three quarters of it
    model = SGM(Gaussian(0.8), loss, 0.4, 0.3, 3, average, random_state=5, memory_limit=limit)
    np.testing.assert_allclose(model.fit(X, y).predict(X), K @ expected, rtol=0, atol=1e-12)
    drawn = np.unique(np.random.RandomState(5).randint(90, size=(3, 90)))
    assert len(model.centers_) == len(drawn) == len(model.coef_)


def test_one_step_by_hand() -> None:
    model = SGM(Linear(), step=0.5, max_iter=1).fit([[2.0]], [3.0])
    # f = 0, so w = 0.5 * 3 * 2 = 3, and f(1) = 3.
    np.testing.assert_allclose(model.predict([[1.0]]), 3.0)
    np.testing.assert_allclose(model.coef_, 1.5)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_the_size_of_the_blocks_changes_nothing(size: int, monkeypatch: Any) -> None:
    X, y = data()
    settings = {"kernel": Gaussian(0.8), "max_iter": 2, "step": 0.5, "random_state": 0}
    expected = SGM(**settings).fit(X, y).predict(X)
    monkeypatch.setattr(kernel_descent, "BLOCK", size)
    np.testing.assert_allclose(SGM(**settings).fit(X, y).predict(X), expected, atol=1e-12)


def test_outputs_and_rows_share_the_draws() -> None:
    X, y = data()
    Y = np.column_stack((y, X[:, 0] ** 2))
    model = SGM(random_state=0, max_iter=2)
    both = model.fit(X, Y).predict(X)
    for t in range(2):
        np.testing.assert_allclose(both[:, t], model.fit(X, Y[:, t]).predict(X), atol=1e-13)
    chunks = Rows([(X[:30], Y[:30]), (X[30:], Y[30:])])
    np.testing.assert_allclose(model.fit(chunks).predict(X), both, atol=1e-13)


def test_a_path_equals_separate_fits() -> None:
    X, y = data()
    Y = np.column_stack((y, X[:, 0] ** 2))
    grid = {"step": [0.05, 0.5], "decay": [0.0, 0.5], "max_iter": [1, 3]}
    model = SGM(Gaussian(0.8), random_state=2, average=True)
    found = list(model.path(X, Y, grid, X[:20]))
    assert len({tuple(setting.values()) for setting, _ in found}) == 8 == len(found)
    for setting, predicted in found:
        fitted = SGM(Gaussian(0.8), random_state=2, average=True, **setting).fit(X, Y)
        np.testing.assert_allclose(predicted, fitted.predict(X[:20]), atol=1e-12)


def test_many_passes_approach_the_interpolant() -> None:
    X, y = data(25)
    K = rbf_kernel(X, gamma=0.5 / 0.15**2)
    assert np.linalg.cond(K) < 1e3
    model = SGM(Gaussian(0.15), step=1.0, max_iter=600, random_state=0).fit(X, y)
    probe = data(50, seed=9)[0]
    expected = rbf_kernel(probe, X, gamma=0.5 / 0.15**2) @ np.linalg.solve(K, y)
    np.testing.assert_allclose(model.predict(probe), expected, atol=1e-6)


def test_the_default_step_is_one_over_root_n_in_units_of_the_kernels_size() -> None:
    X, y = data(64)
    kappa2 = np.max(np.sum(X**2, axis=1))
    default = SGM(Linear(), random_state=0).fit(X, y).predict(X)
    explicit = SGM(Linear(), random_state=0, step=1 / (8 * kappa2)).fit(X, y).predict(X)
    np.testing.assert_allclose(default, explicit, rtol=1e-12)


def test_seeds_and_single_precision() -> None:
    X, y = data()
    first, again, other = (SGM(random_state=s).fit(X, y).predict(X) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3
    single = SGM(random_state=0).fit(X.astype(np.float32), y.astype(np.float32))
    assert single.predict(X).dtype == np.float32
    np.testing.assert_allclose(single.predict(X), first, atol=1e-5)


def test_the_best_pass_is_kept_and_patience_ends_the_fit() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 3)), rng.standard_normal(80)  # nothing but noise
    validation = rng.standard_normal((60, 3)), 0.1 * rng.standard_normal(60)
    settings = {"kernel": Gaussian(0.5), "step": 0.5, "random_state": 0}
    model = SGM(max_iter=30, patience=4, **settings).fit(X, y, validation_data=validation)
    errors = model.validation_errors_
    assert model.n_iter_ == 1 + np.argmin(errors)
    assert len(errors) == model.n_iter_ + 4 < 30
    at_best = SGM(max_iter=model.n_iter_, **settings).fit(X, y)
    np.testing.assert_allclose(model.predict(X), at_best.predict(X), atol=1e-13)
    score = np.mean((model.predict(validation[0]) - validation[1]) ** 2)
    np.testing.assert_allclose(errors.min(), score, rtol=1e-10)


def test_a_share_can_be_held_out_and_a_callback_ends_the_fit() -> None:
    X, y = data(100)
    seen: list[Iteration] = []

    def callback(iteration: Iteration) -> bool:
        seen.append(iteration)
        return iteration.number == 2

    model = SGM(validation=0.2, random_state=0, callback=callback).fit(X, y)
    assert [i.number for i in seen] == [1, 2]
    assert [i.validation_error for i in seen] == list(model.validation_errors_)
    assert len(model.centers_) <= 80


def test_the_sign_of_a_hinge_fit_classifies() -> None:
    X, y = data(300)
    y = np.sign(y)
    model = SGM(Gaussian(0.8), "hinge", random_state=0)
    model.fit(X[:200], y[:200])
    assert np.mean(np.sign(model.predict(X[200:])) == y[200:]) > 0.85
    with pytest.raises(LearningError, match="-1 or 1"):
        model.fit(X, y + 1.0)


def test_what_cannot_be_learned_is_said() -> None:
    X, y = data()
    with pytest.raises(LearningError, match="diverged"):
        SGM(step=1e3, max_iter=50).fit(X, y)
    with pytest.raises(LearningError, match="weights"):
        SGM().fit(Rows([(X, y, np.ones(len(X)))]))
    for wrong in ({"step": -1.0}, {"decay": -0.5}, {"max_iter": 0}, {"validation": 1.5}):
        with pytest.raises(ConfigurationError):
            SGM(**wrong).fit(X, y)
    with pytest.raises(ConfigurationError, match="step"):
        list(SGM().path(X, y, {"penalty": [1.0]}, X))
    with pytest.raises(LearningError, match="memory_limit"):
        SGM(memory_limit=1000).fit(X, y)


def test_a_diverging_step_in_a_path_is_finite_and_hopeless() -> None:
    X, y = data()
    grid = {"step": [0.1, 1e3], "max_iter": [60]}
    (_, good), (_, bad) = SGM(random_state=0).path(X, y, grid, X)
    assert np.mean((good[:, 0] - y) ** 2) < 1.0
    assert np.isfinite(bad).all()
    assert np.abs(bad).min() > 1e6
    np.testing.assert_allclose(
        good[:, 0], SGM(step=0.1, max_iter=60, random_state=0).fit(X, y).predict(X), atol=1e-12
    )


def test_scikit_learns_conventions() -> None:
    check_estimator(SGM())
    X, y = data(60)
    search = GridSearchCV(SGM(Gaussian(), random_state=0), {"kernel__length_scale": [0.1, 1.0]})
    assert search.fit(X, y).best_params_ == {"kernel__length_scale": 1.0}


def test_a_tuned_step_classifies_adult_as_in_the_thesis(data_file: Callable[[str], Path]) -> None:
    with np.load(data_file("tables/adult.npz")) as table:
        X, y = table["X_train"][:1000].astype(float), 2.0 * table["y_train"][:1000] - 1.0
        X_test, y_test = table["X_test"].astype(float), 2.0 * table["y_test"] - 1.0
    model = SGM(Gaussian(4.0), "hinge", max_iter=1, random_state=0)
    grid = {"step": np.logspace(-3, 0, 30)}
    path = model.path(X[:800], y[:800], grid, X[800:])
    errors = {s["step"]: np.maximum(1 - y[800:] * p[:, 0], 0).mean() for s, p in path}
    best = min(errors, key=lambda step: errors[step])
    predicted = model.set_params(step=best).fit(X, y).predict(X_test)
    # Table 6.2, n = 1000: hinge loss 0.380, 16.6 % errors.
    assert np.maximum(1 - y_test * predicted, 0).mean() < 0.42
    assert np.mean(np.sign(predicted) != y_test) < 0.18
