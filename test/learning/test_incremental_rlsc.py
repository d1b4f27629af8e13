"""Incremental classification: against batch solutions, and against what a teacher expects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning import Gaussian, IncrementalRLSC, Laplacian, RandomFourierFeatures

from .rlsc_oracle import NAMES, examples, learned, solution, unchanged


@parametrize_with_checks(
    [
        IncrementalRLSC(),
        IncrementalRLSC([0.1, 1.0], 0.5, hold_out=0, features="random_fourier", random_state=0),
        IncrementalRLSC(features="nystrom"),
    ]
)
def test_scikit_learns_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_one_by_one_is_the_batch_solution(alpha: float) -> None:
    X, y = examples()
    model = IncrementalRLSC(0.7, alpha, hold_out=0)
    for k in range(len(X)):
        model.partial_fit(X[k : k + 1], y[k : k + 1])
    W = solution(X, y, np.array(["ball", "book", "mug"]), 0.7, alpha)
    np.testing.assert_allclose(model.coef_, W, atol=1e-12 * np.abs(W).max())
    new, _ = examples(50, seed=1)
    np.testing.assert_allclose(model.decision_function(new), new @ W, atol=1e-11)
    assert model.classes_.tolist() == ["ball", "book", "mug"]
    assert model.class_count_.tolist() == [np.sum(y == name) for name in model.classes_]


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(1, 199), max_size=6), penalty=st.floats(1e-3, 1e3))
def test_how_examples_are_cut_into_calls_does_not_matter(cuts: list[int], penalty: float) -> None:
    X, y = examples()
    whole = IncrementalRLSC(penalty, alpha=0.5).partial_fit(X, y)
    parts = IncrementalRLSC(penalty, alpha=0.5)
    edges = [0, *sorted(set(cuts)), len(X)]
    for start, end in zip(edges, edges[1:], strict=False):
        parts.partial_fit(X[start:end], y[start:end])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(parts.class_count_, whole.class_count_)
    np.testing.assert_array_equal(parts.class_accuracy()[1], whole.class_accuracy()[1])


def test_a_hundred_thousand_examples_stay_the_batch_solution() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 5)) + 0.3
    y = NAMES[rng.integers(0, 4, len(X))]
    model = IncrementalRLSC(0.1, 0.5, hold_out=0)
    for start in range(0, len(X), 1):
        if start == 2000:
            break
        model.partial_fit(X[start : start + 1], y[start : start + 1])
    recursion = model.recursion_
    numbers = np.array([recursion.classes.number(name) for name in y[2000:].tolist()])
    for x, number in zip(X[2000:, None], numbers[:, None], strict=True):
        recursion.learn(x, number)  # what partial_fit does once it has checked its input
    W = solution(X, y, model.classes_, 0.1, 0.5)
    np.testing.assert_allclose(model.coef_, W, rtol=1e-9, atol=1e-9 * np.abs(W).max())


def test_held_out_examples_are_not_learned() -> None:
    X, y = examples()
    model = IncrementalRLSC(1.0, 0.0, hold_out=4).partial_fit(X, y)
    own = learned(X, y, 4)
    np.testing.assert_allclose(
        model.coef_, solution(X[own], y[own], model.classes_, 1.0, 0.0), atol=1e-12
    )
    assert model.class_accuracy()[1].sum() == np.sum(~own)


def test_a_class_that_comes_late_is_as_if_it_had_been_known() -> None:
    X, y = examples()
    first = np.flatnonzero(y != "ball")
    last = np.flatnonzero(y == "ball")
    late = IncrementalRLSC(1.0, 0.5, hold_out=0).partial_fit(X[first], y[first])
    assert late.classes_.tolist() == ["book", "mug"]
    late.partial_fit(X[last], y[last])
    known = IncrementalRLSC(1.0, 0.5, hold_out=0)
    order = np.concatenate((first, last))
    known.partial_fit(X[order], y[order], classes=NAMES)
    assert known.classes_.tolist() == sorted(NAMES)
    np.testing.assert_allclose(known.coef_[:, [0, 1, 2]], late.coef_, rtol=1e-10)


def test_a_class_without_examples_is_never_predicted() -> None:
    X, y = examples()
    model = IncrementalRLSC(1.0).partial_fit(X, y, classes=NAMES)
    far = 100.0 * np.random.default_rng(0).normal(size=(500, X.shape[1]))
    assert "pen" not in set(model.predict(far))
    model.threshold = 0.9
    assert "pen" not in set(model.predict(far))
    assert np.all(model.predict_proba(far)[:, 3] == 0.0)


def test_recoding_may_change_at_any_moment() -> None:
    X, y = examples(spread=3.0)
    model = IncrementalRLSC(1.0, 0.0, hold_out=0).partial_fit(X, y)
    before = model.state()
    plain = model.decision_function(X)
    for alpha in (0.25, 1.0):
        model.alpha = alpha
        expected = plain * (len(X) / model.class_count_) ** alpha
        np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-12)
        assert model.alpha_ == alpha
    assert unchanged(before, model.state())
    rare = model.classes_[np.argmin(model.class_count_)]
    model.alpha = 0.0
    ignored = np.sum(model.predict(X) == rare)
    model.alpha = 1.0
    assert np.sum(model.predict(X) == rare) > ignored


def test_memory_does_not_grow_with_examples() -> None:
    X, y = examples(3000)
    model = IncrementalRLSC([0.1, 1.0], validation_size=40).partial_fit(X[:500], y[:500])
    sizes = {name: np.shape(array) for name, array in model.state().items()}
    model.partial_fit(X[500:], y[500:])
    assert sizes == {name: np.shape(array) for name, array in model.state().items()}
    assert model.class_accuracy()[1].sum() == 40


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.full((1, 7), np.nan), ["mug"]),
        (np.full((1, 7), np.inf), ["mug"]),
        (np.ones((1, 6)), ["mug"]),
        (np.ones((1, 8)), ["mug"]),
        (np.ones((2, 7)), ["mug"]),
        (np.ones((1, 7)), [3]),
        (np.ones(7), ["mug"]),
        (np.ones((0, 7)), []),
        ([["text"] * 7], ["mug"]),
    ],
    ids=lambda value: None,
)
def test_bad_examples_change_nothing(X: Any, y: Any) -> None:
    good = examples()
    model = IncrementalRLSC([0.1, 1.0]).partial_fit(*good)
    before = model.state()
    with pytest.raises(ValueError):
        model.partial_fit(X, y)
    assert unchanged(before, model.state())


def test_a_saved_model_goes_on_as_if_nothing_had_been() -> None:
    X, y = examples(600, spread=3.0)
    model = IncrementalRLSC([0.1, 1.0, 10.0]).partial_fit(X[:400], y[:400]).validate()
    copy = IncrementalRLSC([10.0, 0.1, 1.0]).restore(model.state())
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert copy.classes_.tolist() == model.classes_.tolist()
    for one in (model, copy):
        one.partial_fit(X[400:], y[400:]).validate()
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert copy.alpha_ == model.alpha_


def test_a_model_of_other_parameters_is_refused_and_nothing_changes() -> None:
    X, y = examples()
    saved = IncrementalRLSC([0.1, 1.0]).partial_fit(X, y).state()
    fourier = IncrementalRLSC([0.1, 1.0], features="random_fourier", n_features=50, random_state=0)
    for other in (IncrementalRLSC([0.1, 2.0]), fourier, IncrementalRLSC(1.0, features="nystrom")):
        other.partial_fit(X[:50], y[:50])
        before = other.state()
        with pytest.raises(LearningError):
            other.restore(saved)
        assert unchanged(before, other.state())


def ring(n: int, seed: int) -> tuple[Any, Any]:
    """A disc inside a ring: no linear classifier tells them apart."""
    rng = np.random.default_rng(seed)
    angle, inside = rng.uniform(0.0, 2.0 * np.pi, n), rng.random(n) < 0.5
    radius = np.where(inside, 1.0, 3.0) + 0.2 * rng.normal(size=n)
    X = np.column_stack((radius * np.cos(angle), radius * np.sin(angle)))
    return X, np.where(inside, "disc", "ring")


@pytest.mark.parametrize("features", ["random_fourier", "nystrom"])
def test_features_make_it_nonlinear(features: str) -> None:
    X, y = ring(600, 0)
    new, labels = ring(600, 1)
    plain = IncrementalRLSC(1.0).partial_fit(X, y)
    assert plain.score(new, labels) < 0.8
    model = IncrementalRLSC(
        1e-2, features=features, kernel=Gaussian(1.0), n_features=100, random_state=0
    )
    for k in range(len(X)):
        model.partial_fit(X[k : k + 1], y[k : k + 1])
    assert model.score(new, labels) > 0.97
    copy = IncrementalRLSC(
        1e-2, features=features, kernel=Gaussian(1.0), n_features=100, random_state=1
    ).restore(model.state())
    np.testing.assert_array_equal(copy.predict_proba(new), model.predict_proba(new))


def test_random_features_are_those_of_the_transformer() -> None:
    X, y = ring(200, 0)
    features = RandomFourierFeatures(60, 1.5, random_state=3).fit(X)
    model = IncrementalRLSC(0.1, 0.5, features=features, hold_out=0).partial_fit(X, y)
    W = solution(features.transform(X), y, model.classes_, 0.1, 0.5)
    np.testing.assert_allclose(model.coef_, W, atol=1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"penalty": 0.0},
        {"penalty": []},
        {"penalty": [1.0, -1.0]},
        {"alpha": "most"},
        {"alpha": 1.5},
        {"hold_out": 1},
        {"hold_out": -2},
        {"validation_size": 0},
        {"features": "wavelets"},
        {"features": "nystrom", "kernel": Laplacian(1.0)},
    ],
    ids=str,
)
def test_wrong_parameters_say_so(wrong: dict[str, Any]) -> None:
    X, y = examples()
    with pytest.raises(ConfigurationError, match=next(iter(wrong)) if len(wrong) == 1 else "."):
        IncrementalRLSC(**wrong).fit(X, y).predict(X)
