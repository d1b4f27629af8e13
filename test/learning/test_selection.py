"""Selection against refits, scikit-learn's search, and leave-one-out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    ShuffleSplit,
    cross_val_predict,
)

from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.classification import KernelClassifier
from semiparam_dynamics.learning.falkon import Falkon
from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.krls import KRLS
from semiparam_dynamics.learning.rows import Rows
from semiparam_dynamics.learning.selection import Selection, select

PENALTIES = [10.0, 1e-1, 1e-3, 1e-5]
GRID = {"penalty": PENALTIES, "kernel__length_scale": [0.2, 1.0, 4.0]}


def data(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    Y = np.column_stack((np.sin(2.0 * X[:, 0]), X[:, 1])) + 0.2 * rng.standard_normal((n, 2))
    return X, Y


class CountingKRLS(KRLS):
    """Counts its fits and paths."""

    fits = paths = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KRLS:
        CountingKRLS.fits += 1
        return super().fit(X, y, sample_weight)

    def path(self, *arguments: Any, **named: Any) -> Iterator[Any]:
        CountingKRLS.paths += 1
        yield from super().path(*arguments, **named)


def test_it_equals_scikit_learns_search_with_a_fraction_of_the_fits() -> None:
    X, Y = data()
    search = GridSearchCV(KRLS(Gaussian()), GRID, cv=4, scoring="neg_mean_squared_error")
    search.fit(X, Y)
    CountingKRLS.fits = CountingKRLS.paths = 0
    found = select(CountingKRLS(Gaussian()), X, Y, GRID, validation=4)
    assert (CountingKRLS.fits, CountingKRLS.paths) == (1, 3 * 4)
    assert found.errors.shape == (12, 4)
    # scikit-learn's order is the names' alphabetical one, this one's is the grid's.
    order = [found.settings.index(dict(setting)) for setting in search.cv_results_["params"]]
    for j in range(4):
        expected = -search.cv_results_[f"split{j}_test_score"]
        np.testing.assert_allclose(found.errors[order, j], expected, rtol=1e-10)
    assert found.best == search.best_params_
    assert found.best_error == pytest.approx(-search.best_score_, rel=1e-10)
    np.testing.assert_allclose(found.estimator.predict(X), search.predict(X), rtol=1e-12)


def test_hold_out_is_a_random_share_and_equal_seeds_give_equal_results() -> None:
    X, Y = data()
    model, grid = KRLS(filter="landweber"), {"max_iter": [1, 10, 100, 1000]}
    first, again, other = (
        select(model, X, Y, grid, validation=0.25, random_state=seed).errors for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()
    splitter = ShuffleSplit(1, test_size=0.25, random_state=0)
    train, held_out = next(splitter.split(X))
    assert len(held_out) == 15
    given = select(model, X[train], Y[train], grid, validation=(X[held_out], Y[held_out]))
    np.testing.assert_allclose(first, given.errors, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_equals_n_refits(weighted: bool) -> None:
    X, Y = data(n=15)
    weights = np.linspace(0.5, 2.0, 15) if weighted else None
    grid = {"kernel__length_scale": [0.5, 2.0], "penalty": [1e-1, 1e-4]}
    found = select(KRLS(Gaussian()), X, Y, grid, validation="leave_one_out", sample_weight=weights)
    assert found.errors.shape == (4, 1)
    for setting, error in zip(found.settings, found.mean, strict=True):
        refit = KRLS(Gaussian()).set_params(**setting)
        predicted = np.array(
            [
                refit.fit(X[t], Y[t], None if weights is None else weights[t]).predict(X[v])[0]
                for t, v in LeaveOneOut().split(X)
            ]
        )
        squared = ((Y - predicted) ** 2).mean(axis=1)
        assert error == pytest.approx(np.average(squared, weights=weights), rel=1e-8)


def test_leave_one_out_works_without_a_closed_form() -> None:
    X, Y = data(n=15)
    predicted = cross_val_predict(Ridge(2.0), X, Y, cv=LeaveOneOut())
    found = select(Ridge(), X, Y, {"alpha": [2.0]}, validation="leave_one_out", error="rmse")
    assert found.best_error == pytest.approx(np.sqrt(np.mean((Y - predicted) ** 2)), rel=1e-10)
    path = select(
        KRLS(filter="nu"), X, Y, {"max_iter": [3, 9]}, validation="leave_one_out", refit=False
    )
    for setting, error in zip(path.settings, path.mean, strict=True):
        model = KRLS(filter="nu", **setting)
        predicted = cross_val_predict(model, X, Y, cv=LeaveOneOut())
        assert error == pytest.approx(np.mean((Y - predicted) ** 2), rel=1e-9)


def test_a_splitter_with_groups_and_the_other_errors() -> None:
    X, Y = data()
    groups = np.arange(60) // 10
    named: dict[Any, Any] = {
        "mae": lambda Y, P: np.mean(np.abs(Y - P)),
        "rmse": lambda Y, P: np.sqrt(np.mean((Y - P) ** 2)),
        "classification": lambda Y, P: np.mean(Y.argmax(axis=1) != P.argmax(axis=1)),
    }
    for name, function in named.items():
        results = [
            select(KRLS(), X, Y, {}, validation=GroupKFold(3), groups=groups, error=error)
            for error in (name, function)
        ]
        expected = [
            function(Y[v], KRLS().fit(X[t], Y[t]).predict(X[v]))
            for t, v in GroupKFold(3).split(X, Y, groups)
        ]
        for result in results:
            np.testing.assert_allclose(result.errors, [expected], rtol=1e-12)
        assert results[0].settings == [{}]


def test_the_path_may_depend_on_another_parameter() -> None:
    X, Y = data()
    grid = {"filter": ["tikhonov", "cutoff", "nu"], "penalty": [1e-1, 1e-3]}
    found = select(KRLS(), X, Y, grid, validation=3)
    for setting, errors in zip(found.settings, found.errors, strict=True):
        for (t, v), error in zip(KFold(3).split(X), errors, strict=True):
            predicted = KRLS(**setting).fit(X[t], Y[t]).predict(X[v])
            assert error == pytest.approx(np.mean((Y[v] - predicted) ** 2), rel=1e-9)


def test_signs_and_labels() -> None:
    X, Y = data()
    signs = np.sign(Y[:, 0])
    found = select(KRLS(), X, signs, {"penalty": [1e-2]}, validation=3, error="classification")
    for (t, v), error in zip(KFold(3).split(X), found.errors[0], strict=True):
        predicted = KRLS(penalty=1e-2).fit(X[t], signs[t]).predict(X[v])
        assert error == pytest.approx(np.mean(np.sign(predicted) != signs[v]), abs=1e-15)
    labels = np.where(signs > 0.0, "left", "right")
    search = GridSearchCV(LogisticRegression(), {"C": [1e-4, 1.0]}, cv=3).fit(X, labels)
    by_labels = select(LogisticRegression(), X, labels, {"C": [1e-4, 1.0]}, validation=3)
    np.testing.assert_allclose(by_labels.mean, 1.0 - search.cv_results_["mean_test_score"])
    with pytest.raises(LearningError, match="outputs of 1 and -1"):
        select(KRLS(), X, Y[:, 0], {}, error="classification")


def test_rows_need_validation_arrays() -> None:
    X, Y = data()
    rows = Rows([(X[:20], Y[:20]), (X[20:40], Y[20:40])])
    found = select(KRLS(), rows, None, {"penalty": PENALTIES}, validation=(X[40:], Y[40:]))
    expected = select(KRLS(), X[:40], Y[:40], {"penalty": PENALTIES}, validation=(X[40:], Y[40:]))
    np.testing.assert_allclose(found.errors, expected.errors, rtol=1e-12)
    with pytest.raises(ConfigurationError, match="arrays"):
        select(KRLS(), rows, None, {"penalty": PENALTIES}, validation=0.5)


def test_a_curve_has_the_other_parameters_at_their_best() -> None:
    X, Y = data()
    found = select(KRLS(Gaussian()), X, Y, GRID, validation=3, refit=False)
    assert found.estimator is None
    for name in GRID:
        values, errors = found.curve(name)
        assert values == GRID[name]
        for value, error in zip(values, errors, strict=True):
            assert error == found.mean[found.settings.index({**found.best, name: value})]
    with pytest.raises(ConfigurationError, match="no alpha"):
        found.curve("alpha")


class _Broken(Ridge):
    """Predicts what isn't finite for a small alpha."""

    def predict(self, X: Any) -> Any:
        return super().predict(X) * (np.nan if self.alpha < 1.0 else 1.0)


def test_predictions_that_are_not_finite_are_never_chosen() -> None:
    X, Y = data()
    found: Selection = select(_Broken(), X, Y, {"alpha": [0.1, 1e6, 0.2]}, validation=3)
    assert found.best == {"alpha": 1e6}
    assert np.isposinf(found.errors[[0, 2]]).all()
    with pytest.raises(LearningError, match="finite predictions"):
        select(_Broken(), X, Y, {"alpha": [0.1]})


def test_the_share_done_is_told() -> None:
    X, Y = data()
    shares: list[float] = []
    select(KRLS(Gaussian()), X, Y, GRID, validation=2, callback=shares.append, verbose=True)
    np.testing.assert_allclose(shares, np.arange(1, 25) / 24)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"grid": {"width": [1.0]}}, "cannot take"),
        ({"grid": {"kernel__width": [1.0]}}, "cannot take"),
        ({"grid": {"penalty": []}}, "one value or more for penalty, not none"),
        ({"grid": {"penalty": 1e-3}}, "one value or more for penalty, not 0.001"),
        ({"grid": {"filter": "nu"}}, "one value or more for filter, not 'nu'"),
        ({"grid": {"kernel": Gaussian()}}, "one value or more for kernel"),
        ({"validation": 1.5}, "between 0 and 1"),
        ({"validation": 1}, "between 0 and 1"),
        ({"validation": "holdout"}, "must be a share"),
        ({"error": "r2"}, "error must be"),
        ({"validation": (np.ones((3, 2)), np.ones(3))}, "validation outputs"),
    ],
)
def test_what_means_nothing_is_refused(settings: dict[str, Any], message: str) -> None:
    X, Y = data()
    with pytest.raises((ConfigurationError, LearningError), match=message):
        select(KRLS(), X, Y, **{"grid": {"penalty": [1.0]}, **settings})


def test_validation_arrays_may_come_in_a_list() -> None:
    X, Y = data()
    train, held = (X[:40], Y[:40]), (X[40:], Y[40:])
    expected = select(KRLS(Gaussian()), *train, GRID, validation=held)
    found = select(KRLS(Gaussian()), *train, GRID, validation=list(held))
    np.testing.assert_array_equal(found.errors, expected.errors)
    # A list of two splits is none of two arrays.
    splits = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    assert select(KRLS(Gaussian()), X, Y, GRID, validation=splits).errors.shape == (12, 2)


def test_parameters_of_the_estimator_that_a_classifier_has_by_default() -> None:
    X, Y = data()
    labels, grid = Y[:, 0] > 0.0, {"estimator__penalty": [1e-1, 1e-4]}
    explicit = KernelClassifier(Falkon(random_state=0))
    expected = select(explicit, X, labels, grid, random_state=0)
    found = select(KernelClassifier(), X, labels, grid, random_state=0)
    np.testing.assert_array_equal(found.errors, expected.errors)
    assert found.estimator.estimator.penalty == expected.best["estimator__penalty"]
    given = KernelClassifier().set_params(estimator=KRLS(), estimator__penalty=0.5)
    assert given.estimator.penalty == 0.5
