"""RecursiveRLS against batch ridge regression, and continued from batch models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning import recursive_rls
from semiparam_dynamics.learning.falkon import Falkon
from semiparam_dynamics.learning.features import NystromFeatures, RandomFourierFeatures
from semiparam_dynamics.learning.kernels import Gaussian, Matern
from semiparam_dynamics.learning.krls import KRLS
from semiparam_dynamics.learning.nystrom import NystromKRLS
from semiparam_dynamics.learning.nytro import NYTRO
from semiparam_dynamics.learning.random_features import RandomFeaturesKRLS
from semiparam_dynamics.learning.recursion.features import IncrementalNystromFeatures
from semiparam_dynamics.learning.recursive_rls import (
    RecursiveRLS,
    fitted_rows,
    least_explained,
    nystrom_start,
    random_start,
    recursion_from,
)
from semiparam_dynamics.learning.rows import Rows
from semiparam_dynamics.learning.sgm import NystromSGM

from .oracles import ridge, waves

FEATURES = (None, "random_fourier", "nystrom")


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("penalty", [1e-3, 1.0, 30.0])
def test_equals_ridge_on_the_same_features(features: str | None, penalty: float) -> None:
    X, Y, X_new = waves(80)
    model = RecursiveRLS(
        Gaussian(1.5), penalty, features=features, n_features=30, random_state=0
    ).fit(X, Y)
    Z, Z_new = (X, X_new) if features is None else map(model.features_.transform, (X, X_new))
    theirs = Ridge(alpha=penalty, fit_intercept=False).fit(Z, Y)
    np.testing.assert_allclose(model.predict(X_new), theirs.predict(Z_new), atol=1e-9)
    np.testing.assert_allclose(model.coef_, theirs.coef_.T, atol=1e-8)
    exact = ridge(Z, Y, penalty)
    np.testing.assert_allclose(model.predict(X_new), Z_new @ exact, atol=1e-11)


@pytest.mark.parametrize("features", FEATURES)
def test_block_after_block_is_the_same_as_at_once(features: str | None) -> None:
    X, Y, X_new = waves(80)
    model = RecursiveRLS(features=features, n_features=30, random_state=0).fit(X, Y)
    parts = clone(model)
    if features == "nystrom":  # its centres come from the first rows: give both the same
        parts.set_params(features=model.features_)
    for start in range(0, len(X), 7):
        parts.partial_fit(X[start : start + 7], Y[start : start + 7])
    np.testing.assert_allclose(parts.predict(X_new), model.predict(X_new), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(parts.noise_, model.noise_, rtol=1e-12)
    again = model.predict(X_new)
    assert np.array_equal(model.fit(X, Y).predict(X_new), again)  # fit forgets what was


def test_features_are_interchangeable_by_a_parameter_or_a_transformer() -> None:
    X, Y, X_new = waves(80)
    by_name = RecursiveRLS(Gaussian(2.0), features="random_fourier", n_features=20, random_state=3)
    unfitted = RandomFourierFeatures(20, 2.0, random_state=3)
    for features in (unfitted, clone(unfitted).fit(X)):
        given = RecursiveRLS(features=features).fit(X, Y)
        assert np.array_equal(given.predict(X_new), by_name.fit(X, Y).predict(X_new))
    assert not hasattr(unfitted, "frequencies_")  # the parameter stays as it was given
    nystrom = NystromFeatures(Gaussian(2.0), 20, random_state=3)
    by_name.set_params(features="nystrom")
    given = RecursiveRLS(features=nystrom).fit(X, Y)
    assert np.array_equal(given.predict(X_new), by_name.fit(X, Y).predict(X_new))


@pytest.mark.parametrize("mu", [1.0, 0.95])
def test_noise_is_the_running_mean_of_the_errors_met(mu: float) -> None:
    X, Y, X_new = waves(60)
    model = RecursiveRLS(ridge=0.7, forgetting=mu).fit(X, Y)
    A, B = 0.7 * np.eye(3), np.zeros((3, 2))
    squares, count, ridge = np.zeros(2), 0.0, np.full(3, 0.7)
    level = 0.7 if mu == 1.0 else 0.7 * 3.0 * np.log(mu) / (mu**3 - 1.0)
    for k, (x, y) in enumerate(zip(X, Y, strict=True)):
        A, B, squares, count = mu * A, mu * B, mu * squares, mu * count
        ridge *= mu
        A[k % 3, k % 3] += level - ridge[k % 3]  # the ridge put back, a feature at a time
        ridge[k % 3] = level
        squares += (y - x @ np.linalg.solve(A, B)) ** 2 / (1.0 + x @ np.linalg.solve(A, x))
        count += 1.0
        A, B = A + np.outer(x, x), B + np.outer(x, y)
    np.testing.assert_allclose(model.predict(X_new), X_new @ np.linalg.solve(A, B), rtol=1e-9)
    np.testing.assert_allclose(model.noise_, squares / count, rtol=1e-9)
    leverage = np.einsum("ij,ji->i", X_new, np.linalg.solve(A, X_new.T))
    _, std = model.predict(X_new, return_std=True)
    np.testing.assert_allclose(std**2, np.outer(1.0 + leverage, model.noise_), rtol=1e-9)


def test_forgetting_may_begin_and_end_while_rows_come() -> None:
    X, Y, X_new = waves(120)
    model = RecursiveRLS(ridge=1e-6).fit(X[:40], Y[:40])
    model.set_params(forgetting=0.9).partial_fit(X[40:80], Y[40:80])
    model.set_params(forgetting=1.0).partial_fit(X[80:], Y[80:])
    ages = np.minimum(np.arange(80)[::-1], 40)
    weights = np.concatenate((0.9**ages, np.ones(40)))
    expected = Ridge(alpha=1e-6, fit_intercept=False).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(model.predict(X_new), expected.predict(X_new), atol=1e-5)
    with pytest.raises(ConfigurationError, match="forgetting must lie"):
        model.set_params(forgetting=1.5).partial_fit(X, Y)
    np.testing.assert_allclose(model.predict(X_new), expected.predict(X_new), atol=1e-5)


KERNEL = Gaussian(1.2)
MODELS = {
    "krls": KRLS(KERNEL, 1e-3),
    "nystrom_krls": NystromKRLS(KERNEL, 1e-3, 40, random_state=0),
    "falkon": Falkon(KERNEL, 1e-3, 40, max_iter=200, tolerance=1e-14, random_state=0),
    "nytro": NYTRO(KERNEL, n_centers=40, random_state=0),
    "nystrom_sgm": NystromSGM(KERNEL, n_centers=40, random_state=0),
    "random_features": RandomFeaturesKRLS(KERNEL, 1e-3, 60, "pair", random_state=0),
    "phases": RandomFeaturesKRLS(Matern(1.5), 1e-3, 60, "phase", random_state=0),
    "unscaled": RandomFeaturesKRLS(KERNEL, 0.06, 60, "pair", random_state=0, scaled=False),
    "unscaled_phases": RandomFeaturesKRLS(KERNEL, 0.06, 60, random_state=0, scaled=False),
    "importance": RandomFeaturesKRLS(KERNEL, 1e-3, 60, importance="leverage", random_state=0),
}
RANDOM = ("random_features", "phases", "unscaled", "unscaled_phases", "importance")
RIDGES = ("krls", "nystrom_krls", "falkon", *RANDOM)


def continued(name: str) -> tuple[Any, RecursiveRLS, Any, Any, Any]:
    X, Y, X_new = waves(150)
    model = MODELS[name].fit(X, Y)
    penalty = None if hasattr(model, "penalty") else 0.15
    return model, RecursiveRLS.from_batch(model, X, Y, penalty), X, Y, X_new


@pytest.mark.parametrize("name", MODELS)
def test_it_predicts_what_the_batch_model_predicts(name: str) -> None:
    model, recursive, _, _, X_new = continued(name)
    np.testing.assert_allclose(recursive.predict(X_new), model.predict(X_new), atol=1e-8)
    model.fit(*waves(150)[:2])  # the recursion does not depend on it any more


@pytest.mark.parametrize("name", RIDGES)
def test_from_a_ridge_model_it_goes_on_as_if_all_had_come_one_by_one(name: str) -> None:
    model, recursive, X, Y, X_new = continued(name)
    X2, Y2, _ = waves(150, 5)
    recursive.partial_fit(X2, Y2)
    # Unscaled features are sqrt(60) times those of the recursion.
    ridge = model.penalty * len(X) / (60 if name.startswith("unscaled") else 1)
    whole = RecursiveRLS(ridge=ridge, features=recursive.features_)
    whole.fit(np.concatenate((X, X2)), np.concatenate((Y, Y2)))
    np.testing.assert_allclose(recursive.predict(X_new), whole.predict(X_new), atol=1e-8)
    # In batch, on the same centres or frequencies, it is the same ridge on twice the rows.
    both: Any = clone(model).set_params(penalty=0.5 * model.penalty)
    if name not in RANDOM:
        both = NystromKRLS(KERNEL, 0.5 * model.penalty, centers=model.centers_)
    elif name == "importance":  # which draws by the rows
        return
    both.fit(np.concatenate((X, X2)), np.concatenate((Y, Y2)))
    np.testing.assert_allclose(recursive.predict(X_new), both.predict(X_new), atol=1e-7)


@pytest.mark.parametrize("name", ["krls", "nystrom_krls", "nytro", "phases"])
def test_rows_of_a_weighted_model_count_by_their_weights(name: str) -> None:
    X, Y, X_new = waves(150)
    weights = np.random.default_rng(1).integers(1, 4, len(X))
    model = clone(MODELS[name]).fit(X, Y, weights)
    ridge = 0.15 if name == "nytro" else None
    weighed = RecursiveRLS.from_batch(model, X, Y, ridge, sample_weight=weights)
    np.testing.assert_allclose(weighed.predict(X_new), model.predict(X_new), atol=1e-8)
    times = np.repeat(np.arange(len(X)), weights)  # each row as often as it weighs
    several = RecursiveRLS.from_batch(model, X[times], Y[times], ridge)
    np.testing.assert_allclose(weighed.recursion_.R, several.recursion_.R, atol=1e-9)
    assert weighed.recursion_.penalty == several.recursion_.penalty
    if name == "nytro":  # which stopped early: what follows is no ridge regression
        return
    whole = RecursiveRLS(ridge=weighed.ridge, features=weighed.features_)
    X2, Y2, _ = waves(150, 5)
    whole.fit(X, Y, weights)
    np.testing.assert_allclose(weighed.noise_, whole.noise_, rtol=0.5)  # met before, and left out
    weighed.partial_fit(X2, Y2)
    whole.partial_fit(X2, Y2)
    np.testing.assert_allclose(weighed.predict(X_new), whole.predict(X_new), atol=1e-7)


def test_a_model_stopped_early_is_held_by_the_rows_it_has_seen() -> None:
    model, recursive, X, _, _ = continued("nytro")
    before = recursive.coef_
    X2, Y2, _ = waves(150, 5)
    recursive.partial_fit(X2, Y2)
    Z, Z2 = (recursive.features_.transform(A) for A in (X, X2))
    A = 0.15 * np.eye(Z.shape[1]) + Z.T @ Z
    expected = np.linalg.solve(A + Z2.T @ Z2, A @ before + Z2.T @ Y2)
    np.testing.assert_allclose(recursive.coef_, expected, atol=1e-8)


def test_what_a_row_left_out_leaves_is_its_error_in_a_refit() -> None:
    X, Y, _ = waves(30)
    basis, weights = nystrom_start(NystromKRLS(KERNEL, 1e-2, centers=X[:12]).fit(X, Y))
    core = recursion_from(basis.transform, X, weights, 0.3)
    outputs, left = fitted_rows(core, basis.transform, X)
    Z = basis.transform(X)
    for i in (0, 7, 29):
        rest = np.arange(len(X)) != i
        A = 0.3 * np.eye(Z.shape[1]) + Z[rest].T @ Z[rest]
        error = Y[i] - Z[i] @ np.linalg.solve(A, Z[rest].T @ Y[rest])
        np.testing.assert_allclose((Y[i] - outputs[i]) / left[i], error, rtol=1e-8)


def test_the_robot_s_features_and_the_transformer_s_are_the_same() -> None:
    X, _, X_new = waves(150)
    transformer = NystromFeatures(KERNEL, centers=X[:30]).fit(X)
    one_by_one = IncrementalNystromFeatures(3, 1.2, capacity=40, novelty=0.0)
    for x in X[:30]:
        one_by_one.grow(x, one_by_one.transform(x))
    taken = IncrementalNystromFeatures(3, 1.2, capacity=40, novelty=0.0)
    taken.restore(transformer._basis.state())
    for features in (one_by_one, taken):
        for x, expected in zip(X_new, transformer.transform(X_new), strict=True):
            np.testing.assert_allclose(features.transform(x), expected, atol=1e-9)


def test_more_centres_than_there_is_room_for_are_projected() -> None:
    X, Y, X_new = waves(150)
    model = KRLS(KERNEL, 1e-3).fit(X, Y)
    errors = []
    for capacity in (15, 60, 140):
        basis, weights = nystrom_start(model, capacity)
        assert basis.n_features == len(basis.centers) == capacity
        at_centers = basis.transform(basis.centers) @ weights
        np.testing.assert_allclose(at_centers, model.predict(basis.centers), atol=1e-8)
        norm = np.sum(weights**2, axis=0)  # of a projection: never more than the model's
        K = KERNEL(model.centers_)
        assert np.all(norm <= np.einsum("it,ij,jt->t", model.coef_, K, model.coef_) * (1 + 1e-9))
        errors.append(np.abs(basis.transform(X_new) @ weights - model.predict(X_new)).max())
    assert errors[0] > errors[1] > errors[2]


def test_the_least_explained_points_are_far_apart() -> None:
    X = np.concatenate((waves(150)[0], waves(150)[0]))
    chosen = least_explained(KERNEL, X, 20)
    for i in range(1, 20):
        C = X[chosen[:i]]
        explained = np.einsum("ni,in->n", KERNEL(X, C), np.linalg.solve(KERNEL(C), KERNEL(C, X)))
        np.testing.assert_allclose(explained[chosen[i]], explained.min(), atol=1e-9)
    every = least_explained(KERNEL, X, 300).tolist()
    assert len(set(every)) == len(every) <= 300


def test_one_output_and_forgetting() -> None:
    X, Y, X_new = waves(150)
    model = KRLS(KERNEL, 1e-3).fit(X, Y[:, 0])
    recursive = RecursiveRLS.from_batch(model, X, Y[:, 0], forgetting=0.98)
    np.testing.assert_allclose(recursive.predict(X_new), model.predict(X_new), atol=1e-8)
    assert recursive.recursion_.forgetting == 0.98
    mean, std = recursive.predict(X, return_std=True)
    assert 0.9 < np.mean(np.abs(mean - Y[:, 0]) < 2.0 * std) <= 1.0


def test_what_can_t_start_one_is_refused() -> None:
    X, Y, _ = waves(150)
    with pytest.raises(LearningError, match="no centres"):
        nystrom_start(MODELS["random_features"].fit(X, Y))
    with pytest.raises(LearningError, match="no frequencies"):
        random_start(MODELS["krls"].fit(X, Y))
    with pytest.raises(LearningError, match="no penalty"):
        RecursiveRLS.from_batch(MODELS["nytro"].fit(X, Y), X, Y)
    for outputs in (Y[:, 0], np.hstack((Y, Y))):
        with pytest.raises(LearningError, match="outputs and the model 2"):
            RecursiveRLS.from_batch(MODELS["krls"], X, outputs)
    signs = np.sign(Y[:, 0])
    with pytest.raises(LearningError, match="fitted with the loss 'logistic'"):
        RecursiveRLS.from_batch(Falkon(loss="logistic", n_centers=9).fit(X, signs), X, signs)
    for unused in (KRLS(filter="landweber"), KRLS(filter="cutoff")):
        with pytest.raises(LearningError, match="pass a ridge"):
            RecursiveRLS.from_batch(unused.fit(X, Y), X, Y)
        assert RecursiveRLS.from_batch(unused, X, Y, 0.3).recursion_.penalty == 0.3
    for given, why in ((csr_array(X), "sparse inputs"), (Rows([(X, Y)]), "Rows")):
        with pytest.raises(LearningError, match=f"as arrays, not as {why}"):
            RecursiveRLS.from_batch(MODELS["krls"], given, Y)
    with pytest.raises(LearningError, match="y has labels"):
        RecursiveRLS.from_batch(MODELS["krls"], X, np.full(len(X), "left"))
    around = make_pipeline(StandardScaler(), KRLS())
    for model in (around, TransformedTargetRegressor(around)):
        with pytest.raises(LearningError, match="holds the model that can be continued"):
            RecursiveRLS.from_batch(model.fit(X, Y), X, Y)
    with pytest.raises(LearningError, match="object is no model that can be continued"):
        RecursiveRLS.from_batch(object(), X, Y)
    for weights in (np.ones(3), np.zeros(len(X)), np.full(len(X), -1.0)):
        with pytest.raises(LearningError, match="weights"):
            RecursiveRLS.from_batch(MODELS["krls"], X, Y, sample_weight=weights)


@pytest.mark.parametrize("value", [1e155, -1e200, 1e308])
def test_rows_too_large_for_numbers_are_refused_and_change_nothing(
    value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y, X_new = waves(80)
    model = RecursiveRLS().fit(X, Y)
    before = model.predict(X_new, return_std=True)
    large, outputs = X.copy(), Y.copy()
    large[-1, 1], outputs[-1, 0] = value, value
    bad: list[tuple[Any, Any, Any]] = [(large, Y, None), (X, outputs, None)]
    bad.append((X, Y, np.full(len(X), abs(value))))
    for block in (2**21, 12):  # all at once, and four rows at a time
        monkeypatch.setattr(recursive_rls, "BLOCK_VALUES", block)
        for given in bad:
            with pytest.raises(LearningError, match="beyond 1e\\+75 can't be learned"):
                model.partial_fit(*given)
    for mine, was in zip(model.predict(X_new, return_std=True), before, strict=True):
        np.testing.assert_array_equal(mine, was)
        with pytest.raises(LearningError, match="beyond 1e"):
            model.fit(large, Y)  # nor is a fitted model forgotten
        new = RecursiveRLS()
        with pytest.raises(LearningError, match="beyond 1e"):
            new.partial_fit(large, Y)
        assert not vars(new).keys() - vars(RecursiveRLS()).keys()
    for mine, was in zip(model.predict(X_new, return_std=True), before, strict=True):
        np.testing.assert_array_equal(mine, was)
    model.partial_fit(1e60 * X, Y)
    assert np.isfinite(model.noise_).all()
