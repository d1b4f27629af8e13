"""What is chosen by held-out examples, and how sure the classifier is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from semiparam_dynamics.learning import IncrementalRLSC
from semiparam_dynamics.learning.class_recursion import ALPHAS, TEMPERATURES

from .rlsc_oracle import examples, learned, solution


def test_the_rule_chooses_what_a_naive_search_chooses() -> None:
    X, y = examples(600, d=4, classes=4, spread=4.0)
    penalties = [0.01, 1.0, 100.0, 10_000.0]
    model = IncrementalRLSC(penalties, min_validation=8).fit(X, y)
    own = learned(X, y)
    held_X, held_y = X[~own], y[~own]
    names, sizes = np.unique(held_y, return_counts=True)
    enough = np.isin(held_y, names[sizes >= 8])
    shares = np.array(
        [
            [
                np.mean(
                    names[np.argmax(held_X @ solution(X[own], y[own], names, p, a), axis=1)][enough]
                    == held_y[enough]
                )
                for a in ALPHAS
            ]
            for p in penalties
        ]
    )
    best = shares.max(axis=0)
    exponent = max(j for j in range(len(ALPHAS)) if best[j] >= best[0])
    assert model.alpha_ == ALPHAS[exponent]
    assert shares[penalties.index(model.penalty_), exponent] == best[exponent]
    by_given = IncrementalRLSC(penalties, hold_out=0).partial_fit(X[own], y[own])
    by_given.validate(held_X[enough], held_y[enough])
    assert (by_given.alpha_, by_given.penalty_) == (model.alpha_, model.penalty_)


def test_before_there_is_something_to_choose_by_recoding_is_on() -> None:
    X, y = examples(20)
    model = IncrementalRLSC([0.1, 1.0, 10.0]).fit(X, y)
    assert model.class_accuracy()[1].max() < model.min_validation
    assert (model.alpha_, model.penalty_) == (0.7, 1.0)


def test_a_tolerance_allows_more_recoding() -> None:
    X, y = examples(600, d=4, classes=4, spread=4.0)
    strict = IncrementalRLSC([0.1, 1.0]).fit(X, y)
    lenient = IncrementalRLSC([0.1, 1.0], tolerance=1.0).fit(X, y)
    assert strict.alpha_ < lenient.alpha_ == 1.0


def test_accuracy_of_each_class_on_held_out_examples() -> None:
    X, y = examples(600, spread=4.0)
    model = IncrementalRLSC(1.0, 0.5).fit(X, y)
    own = learned(X, y)
    found = model.predict(X[~own])
    shares, sizes = model.class_accuracy()
    for name, share, size in zip(model.classes_, shares, sizes, strict=True):
        of_class = y[~own] == name
        assert size == of_class.sum()
        assert share == pytest.approx(np.mean(found[of_class] == name))


def test_pauses_bring_what_is_held_out_up_to_date() -> None:
    X, y = examples(600, spread=4.0)
    model = IncrementalRLSC([0.1, 1.0, 10.0]).partial_fit(X, y)
    model.partial_fit(X[:50], y[:50])
    left = [model.refresh(7)]
    while left[-1]:
        left.append(model.refresh(7))
        assert len(left) < 100
    assert left == sorted(left, reverse=True) and left[0] > 0
    paused = model.alpha_, model.penalty_, model.temperature_, model.class_accuracy()[0].tolist()
    model.validate()
    whole = model.alpha_, model.penalty_, model.temperature_, model.class_accuracy()[0].tolist()
    assert paused == whole


def test_held_out_examples_may_wait_for_pauses() -> None:
    X, y = examples(300, spread=4.0)
    waiting = IncrementalRLSC([0.1, 1.0, 10.0], refresh_later=True)
    for k in range(len(X)):
        waiting.partial_fit(X[k : k + 1], y[k : k + 1])
    assert (waiting.alpha_, waiting.penalty_) == (0.7, 1.0)
    while waiting.refresh(5):
        pass
    at_once = IncrementalRLSC([0.1, 1.0, 10.0]).partial_fit(X, y).validate()
    assert (waiting.alpha_, waiting.penalty_) == (at_once.alpha_, at_once.penalty_)
    np.testing.assert_allclose(waiting.predict_proba(X), at_once.predict_proba(X), rtol=1e-9)


def test_probabilities_are_calibrated_on_held_out_examples() -> None:
    X, y = examples(1200, spread=4.0)
    model = IncrementalRLSC(1.0, 0.5, validation_size=300).fit(X, y)
    own = learned(X, y)
    scores = model.decision_function(X[~own]) / 3.0**0.5
    truth = np.searchsorted(model.classes_, y[~own])

    def loss(temperature: float) -> float:
        chances = softmax(scores / temperature, axis=1)
        return float(-np.mean(np.log(chances[np.arange(len(truth)), truth])))

    losses = [loss(temperature) for temperature in TEMPERATURES]
    assert model.temperature_ == TEMPERATURES[int(np.argmin(losses))]
    expected = softmax(scores / model.temperature_, axis=1)
    np.testing.assert_allclose(model.predict_proba(X[~own]), expected, rtol=1e-9)
    new, labels = examples(3000, seed=5, spread=4.0)
    sure = model.predict_proba(new).max(axis=1)
    right = model.predict(new) == labels
    assert abs(sure.mean() - right.mean()) < 0.05


def test_what_is_not_sure_is_unknown() -> None:
    X, y = examples(600, spread=4.0)
    model = IncrementalRLSC(1.0, threshold=0.8, unknown="?").fit(X, y)
    sure = model.predict_proba(X).max(axis=1) >= 0.8
    found = model.predict(X)
    np.testing.assert_array_equal(found == "?", ~sure)
    assert 0 < sure.sum() < len(X)
    assert np.mean((found == y)[sure]) > np.mean(
        model.set_params(threshold=0.0).predict(X)[~sure] == y[~sure]
    )


def test_novelty_is_the_leverage_beside_that_of_held_out_examples() -> None:
    X, y = examples(300)
    model = IncrementalRLSC([0.5, 5.0]).fit(X, y)
    own = learned(X, y)
    A = X[own].T @ X[own] + 0.5 * np.eye(X.shape[1])

    def leverages(rows: Any) -> Any:
        return np.einsum("ij,ij->i", rows, np.linalg.solve(A, rows.T).T)

    new, _ = examples(50, seed=4)
    expected = leverages(new) / np.median(leverages(X[~own]))
    np.testing.assert_allclose(model.novelty(new), expected, rtol=1e-9)
    assert not IncrementalRLSC(hold_out=0).fit(X, y).novelty(new).any()
    for x, probabilities, novelty in zip(
        new, model.predict_proba(new), model.novelty(new), strict=True
    ):
        np.testing.assert_allclose(model.look(x)[0], probabilities, rtol=1e-9)
        assert model.look(x)[1] == pytest.approx(novelty, rel=1e-9)


def test_what_is_like_nothing_taught_is_unknown_even_with_one_class() -> None:
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(40, 5)), np.zeros((40, 5))]
    foreign = np.c_[np.zeros((40, 5)), rng.normal(size=(40, 5))]
    model = IncrementalRLSC(0.03, max_novelty=5.0).fit(X, ["mug"] * 40)
    more = np.c_[rng.normal(size=(200, 5)), np.zeros((200, 5))]
    assert np.mean(model.predict(more) == "mug") > 0.98
    assert np.mean(model.predict(foreign) == "unknown") > 0.95
    assert set(model.set_params(max_novelty=0.0, threshold=0.9).predict(foreign)) == {"mug"}
