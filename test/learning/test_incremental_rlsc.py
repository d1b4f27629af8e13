"""Incremental classification: against batch solutions, its choices, and edited classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.decomposition import PCA
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning import Gaussian, IncrementalRLSC, Laplacian
from semiparam_dynamics.learning.held_out import EXPONENTS, TEMPERATURES

from .oracles import ridge
from .recursion.cases import same_state

NAMES = np.array(["mug", "book", "ball", "pen"])


def examples(
    n: int = 200, d: int = 7, classes: int = 3, seed: int = 0, spread: float = 1.0
) -> tuple[Any, Any]:
    """Clusters around random centres, of sizes that differ, in random order."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, classes + 1) / np.arange(1, classes + 1).sum()
    numbers = rng.choice(classes, n, p=shares)
    centers = 2.0 * np.random.default_rng(99).normal(size=(classes, d))
    return centers[numbers] + spread * rng.normal(size=(n, d)), NAMES[numbers]


def solution(X: Any, y: Any, classes: Any, penalty: float, recoding: float) -> Any:
    """W Gamma^recoding of thesis (7.15) and algorithm 2, in extended precision."""
    Y = y[:, None] == classes
    W = ridge(X, Y, penalty)
    return np.asarray(W * (len(X) / Y.sum(axis=0)) ** recoding, dtype=float)


def learned(X: Any, y: Any, every: int = 6) -> Any:
    """Which examples are learned: of each class all but every so many-th."""
    seen: dict[str, int] = {}
    kept = []
    for label in y:
        seen[label] = seen.get(label, 0) + 1
        kept.append(seen[label] % every != 0)
    return np.array(kept)


def teach(model: IncrementalRLSC, X: Any, y: Any) -> None:
    """Examples one by one."""
    for k in range(len(X)):
        model.partial_fit(X[k : k + 1], y[k : k + 1])


@pytest.mark.parametrize("recoding", [0.0, 0.3, 1.0])
def test_one_by_one_is_the_batch_solution(recoding: float) -> None:
    X, y = examples()
    model = IncrementalRLSC(0.7, recoding, hold_out=0)
    teach(model, X, y)
    W = solution(X, y, np.array(["ball", "book", "mug"]), 0.7, recoding)
    np.testing.assert_allclose(model.coef_, W, atol=1e-12 * np.abs(W).max())
    new, _ = examples(50, seed=1)
    np.testing.assert_allclose(model.decision_function(new), new @ W, atol=1e-11)
    assert model.classes_.tolist() == ["ball", "book", "mug"]
    assert model.class_count_.tolist() == [np.sum(y == name) for name in model.classes_]


@settings(max_examples=10, deadline=None)
@given(cuts=st.lists(st.integers(1, 199), max_size=6), ridge=st.floats(1e-3, 1e3))
def test_how_examples_are_cut_into_calls_does_not_matter(cuts: list[int], ridge: float) -> None:
    X, y = examples()
    whole = IncrementalRLSC(ridge, recoding=0.5).partial_fit(X, y)
    parts = IncrementalRLSC(ridge, recoding=0.5)
    edges = [0, *sorted(set(cuts)), len(X)]
    for start, end in zip(edges, edges[1:], strict=False):
        parts.partial_fit(X[start:end], y[start:end])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(parts.class_count_, whole.class_count_)
    np.testing.assert_array_equal(parts.class_accuracy()[1], whole.class_accuracy()[1])


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
    for recoding in (0.25, 1.0):
        model.recoding = recoding
        expected = plain * (len(X) / model.class_count_) ** recoding
        np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-12)
        assert model.recoding_ == recoding
    assert same_state(before, model.state())
    rare = model.classes_[np.argmin(model.class_count_)]
    model.recoding = 0.0
    ignored = np.sum(model.predict(X) == rare)
    model.recoding = 1.0
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
    assert same_state(before, model.state())


def answers(model: IncrementalRLSC, X: Any) -> list[Any]:
    return [
        model.ridge_, model.recoding_, model.temperature_, model.least_familiarity(0.2),
        *(ask(X).tolist() for ask in (
            model.predict_proba, model.predict, model.familiarity, model.novelty
        )),
    ]  # fmt: skip


@pytest.mark.parametrize("head", ["least_squares", "discriminant"])
@pytest.mark.parametrize("validated", ["while it learned", "now", "by others", "in part"])
def test_a_restored_model_has_the_same_answers_to_the_last_bit(head: str, validated: str) -> None:
    """Whenever the choice was made, and whatever the exponent was that it was made with."""
    exponents = set()
    for seed in range(2):
        X, y = examples(200, spread=3.0 + 2.0 * seed)
        given: dict[str, Any] = {"false_accepts": 0.2, "threshold": 0.4, "hold_out": 3}
        given |= {"validation_size": 60, "head": head, "refresh_later": validated == "in part"}
        model = IncrementalRLSC([0.1, 1.0, 10.0], **given)
        for i in range(120):  # one by one, as a node learns
            model.partial_fit(X[i : i + 1], y[i : i + 1])
        if validated == "now":
            model.validate()
        elif validated == "by others":
            model.validate(X[120:], y[120:])
        elif validated == "in part":
            model.refresh(20)
        exponents.add(model.recoding_)
        copy = IncrementalRLSC([0.1, 1.0, 10.0], **given).restore(model.state())
        assert answers(copy, X) == answers(model, X)
        assert copy.recursion_.outdated() == model.recursion_.outdated()
        assert same_state(copy.state(), model.state())
        for one in (model, copy):
            one.partial_fit(X[120:], y[120:]).refresh(7)
        assert answers(copy, X) == answers(model, X)
    assert exponents - {0.7}  # with which all begin


@pytest.mark.parametrize("head", ["least_squares", "discriminant"])
def test_validating_twice_is_validating_once(head: str) -> None:
    moved = 0
    for seed in range(6):
        X, y = examples(120 + 20 * seed, spread=2.0 + 0.5 * seed)
        model = IncrementalRLSC([0.1, 1.0, 10.0], hold_out=3, head=head, refresh_later=True)
        model.partial_fit(X, y)
        before = model.recoding_
        once = answers(model.validate(), X)
        moved += model.recoding_ != before
        assert model.recursion_.outdated() == 0
        assert answers(model.validate(), X) == once
        while model.refresh(5):
            pass
        assert answers(model, X)[:3] == once[:3]
        others = answers(model.validate(X[::2], y[::2]), X)
        assert answers(model.validate(X[::2], y[::2]), X) == others
    assert moved


@pytest.mark.parametrize(
    "other", [{"recoding": 1.0}, {"validation_size": 20}, {"min_validation": 30}], ids=str
)
def test_a_model_of_other_choices_is_validated(other: dict[str, Any]) -> None:
    X, y = examples(300, spread=4.0)
    saved = IncrementalRLSC([0.1, 10.0], hold_out=3).fit(X, y).state()
    copy = IncrementalRLSC([0.1, 10.0], hold_out=3, **other).restore(saved)
    before = answers(copy, X)
    assert answers(copy.validate(), X) == before
    if "validation_size" not in other:
        expected = IncrementalRLSC([0.1, 10.0], hold_out=3, **other).fit(X, y)
        assert answers(expected, X)[:3] == before[:3]


def test_a_model_of_other_parameters_is_refused_and_nothing_changes() -> None:
    X, y = examples()
    saved = IncrementalRLSC([0.1, 1.0]).partial_fit(X, y).state()
    fourier = IncrementalRLSC([0.1, 1.0], features="random_fourier", n_features=50, random_state=0)
    others = IncrementalRLSC([0.1, 2.0]), IncrementalRLSC(1.0, features="nystrom")
    for other in (*others, fourier, IncrementalRLSC([0.1, 1.0], head="discriminant")):
        other.partial_fit(X[:50], y[:50])
        before = other.state()
        with pytest.raises(LearningError):
            other.restore(saved)
        assert same_state(before, other.state())


def ring(n: int, seed: int) -> tuple[Any, Any]:
    """A disc inside a ring: no linear classifier tells them apart."""
    rng = np.random.default_rng(seed)
    angle, inside = rng.uniform(0.0, 2.0 * np.pi, n), rng.random(n) < 0.5
    radius = np.where(inside, 1.0, 3.0) + 0.2 * rng.normal(size=n)
    X = np.column_stack((radius * np.cos(angle), radius * np.sin(angle)))
    return X, np.where(inside, "disc", "ring")


@pytest.mark.parametrize("head", ["least_squares", "discriminant"])
@pytest.mark.parametrize("features", ["random_fourier", "random_relu", "nystrom"])
def test_features_make_it_nonlinear(features: str, head: str) -> None:
    X, y = ring(300, 0)
    new, labels = ring(600, 1)
    # Without an offset, a ReLU's features grow with the radius and all scores with them.
    X, new = (np.column_stack((rows, np.full(len(rows), 2.0))) for rows in (X, new))
    plain = IncrementalRLSC(1.0, head=head).partial_fit(X, y)
    assert plain.score(new, labels) < 0.8
    given: dict[str, Any] = {"features": features, "kernel": Gaussian(1.0), "n_features": 100}
    model = IncrementalRLSC(1e-2, head=head, random_state=0, **given)
    teach(model, X, y)
    assert model.score(new, labels) > 0.97
    copy = IncrementalRLSC(1e-2, head=head, random_state=1, **given).restore(model.state())
    np.testing.assert_array_equal(copy.predict_proba(new), model.predict_proba(new))


def test_restoring_takes_the_transformer_as_it_was_fitted() -> None:
    X, y = examples()
    X = X * [1.0, 100.0, 1.0, 1.0, 1.0, 0.01, 1.0] + 5.0
    model = IncrementalRLSC(features=StandardScaler()).fit(X, y)
    before, saved = answers(model, X), model.state()
    assert answers(model.restore(saved), X) == before
    fitted = IncrementalRLSC(features=model.features_).restore(saved)
    assert answers(fitted, X) == before
    stateless = IncrementalRLSC(features=FunctionTransformer(np.tanh)).fit(X, y)
    copy = IncrementalRLSC(features=FunctionTransformer(np.tanh)).restore(stateless.state())
    assert answers(copy, X) == answers(stateless, X)


@pytest.mark.parametrize("earlier", [None, "random_relu", PCA(7)], ids=str)
def test_without_a_fitted_transformer_nothing_is_restored(earlier: Any) -> None:
    X, y = examples()
    saved = IncrementalRLSC(features=StandardScaler()).fit(X, y).state()
    other = IncrementalRLSC(features=earlier, n_features=7).fit(X, y)
    other.set_params(features=StandardScaler())
    before = other.state()
    for model in (other, IncrementalRLSC(features=StandardScaler())):
        with pytest.raises(LearningError, match="pass the one that it was learned with, fitted"):
            model.restore(saved)
    assert same_state(before, other.state())


@pytest.mark.parametrize(
    "wrong",
    [
        {"ridge": 0.0},
        {"ridge": []},
        {"ridge": [1.0, -1.0]},
        {"recoding": "most"},
        {"recoding": 1.5},
        {"hold_out": 1},
        {"hold_out": -2},
        {"validation_size": 0},
        {"head": "lda"},
        {"features": "wavelets"},
        {"features": "nystrom", "kernel": Laplacian(1.0)},
    ],
    ids=str,
)
def test_wrong_parameters_say_so(wrong: dict[str, Any]) -> None:
    X, y = examples()
    with pytest.raises(ConfigurationError, match=next(iter(wrong)) if len(wrong) == 1 else "."):
        IncrementalRLSC(**wrong).fit(X, y).predict(X)


def test_the_rule_chooses_what_a_naive_search_chooses() -> None:
    X, y = examples(600, d=4, classes=4, spread=4.0)
    ridges = [0.01, 1.0, 100.0, 10_000.0]
    model = IncrementalRLSC(ridges, min_validation=8).fit(X, y)
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
                for a in EXPONENTS
            ]
            for p in ridges
        ]
    )
    best = shares.max(axis=0)
    exponent = max(j for j in range(len(EXPONENTS)) if best[j] >= best[0])
    assert model.recoding_ == EXPONENTS[exponent]
    assert shares[ridges.index(model.ridge_), exponent] == best[exponent]
    by_given = IncrementalRLSC(ridges, hold_out=0).partial_fit(X[own], y[own])
    by_given.validate(held_X[enough], held_y[enough])
    assert (by_given.recoding_, by_given.ridge_) == (model.recoding_, model.ridge_)


def test_before_there_is_something_to_choose_by_recoding_is_on() -> None:
    X, y = examples(20)
    model = IncrementalRLSC([0.1, 1.0, 10.0]).fit(X, y)
    assert model.class_accuracy()[1].max() < model.min_validation
    assert (model.recoding_, model.ridge_) == (0.7, 1.0)


def test_a_tolerance_allows_more_recoding() -> None:
    X, y = examples(600, d=4, classes=4, spread=4.0)
    strict = IncrementalRLSC([0.1, 1.0]).fit(X, y)
    lenient = IncrementalRLSC([0.1, 1.0], tolerance=1.0).fit(X, y)
    assert strict.recoding_ < lenient.recoding_ == 1.0


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


def test_held_out_examples_may_wait_for_pauses() -> None:
    X, y = examples(300, spread=4.0)
    waiting = IncrementalRLSC([0.1, 1.0, 10.0], refresh_later=True)
    teach(waiting, X, y)
    assert (waiting.recoding_, waiting.ridge_) == (0.7, 1.0)
    while waiting.refresh(5):
        pass
    at_once = IncrementalRLSC([0.1, 1.0, 10.0]).partial_fit(X, y).validate()
    assert (waiting.recoding_, waiting.ridge_) == (at_once.recoding_, at_once.ridge_)
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


def test_numbers_stay_numbers_beside_the_unknown() -> None:
    X, names = examples(600, spread=4.0)
    y = np.searchsorted(np.sort(NAMES), names)
    model = IncrementalRLSC(1.0, threshold=0.8).fit(X, y)
    found = model.predict(X)
    sure = model.predict_proba(X).max(axis=1) >= 0.8
    assert 0 < sure.sum() < len(X)
    assert set(found[~sure]) == {"unknown"}
    np.testing.assert_array_equal(found[sure], model.set_params(threshold=0.0).predict(X)[sure])
    negative = model.set_params(threshold=0.8, unknown=-1).predict(X)
    np.testing.assert_array_equal(negative == -1, ~sure)
    assert negative.dtype == y.dtype


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


def test_what_is_like_nothing_taught_is_unknown_even_with_one_class() -> None:
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(40, 5)), np.zeros((40, 5))]
    foreign = np.c_[np.zeros((40, 5)), rng.normal(size=(40, 5))]
    model = IncrementalRLSC(0.03, max_novelty=5.0).fit(X, ["mug"] * 40)
    more = np.c_[rng.normal(size=(200, 5)), np.zeros((200, 5))]
    assert np.mean(model.predict(more) == "mug") > 0.98
    assert np.mean(model.predict(foreign) == "unknown") > 0.95
    assert set(model.set_params(max_novelty=0.0, threshold=0.9).predict(foreign)) == {"mug"}


def growing(**given: Any) -> IncrementalRLSC:
    settings = {"features": "nystrom", "kernel": Gaussian(1.0), "n_features": 200}
    return IncrementalRLSC(**(settings | given))


@pytest.mark.parametrize("head", ["least_squares", "discriminant"])
def test_novelty_of_growing_features_is_the_leverage_of_the_whole_kernel(head: str) -> None:
    X, y = examples(150)
    whole = growing(ridge=[0.1, 2.0], head=head).fit(X, y)
    parts = growing(ridge=[0.1, 2.0], head=head)
    teach(parts, X, y)
    parts.validate()
    own = learned(X, y)
    # Each example learned is a centre, so that what their kernels leave is what the centres leave.
    assert len(whole.state()["centers"]) == np.sum(own)
    kernel = Gaussian(1.0)
    K = kernel(X[own]) + 0.1 * np.eye(np.sum(own))

    def leverages(rows: Any) -> Any:
        k = kernel(rows, X[own])
        return (1.0 - np.einsum("ij,ij->i", k, np.linalg.solve(K, k.T).T)) / 0.1

    new = np.concatenate((examples(50, seed=4)[0], X[:5] + 20.0))
    expected = leverages(new) / np.median(leverages(X[~own]))
    for model in (whole, parts):
        np.testing.assert_allclose(model.novelty(new), expected, rtol=1e-6)
        looks = [model.assess(x)[1] for x in new]
        np.testing.assert_allclose(looks, expected, rtol=1e-6)


def test_a_forgotten_class_is_as_if_its_examples_had_been_none_of_the_others() -> None:
    X, y = examples(400, classes=4)
    model = IncrementalRLSC(0.5, 0.0).partial_fit(X, y)
    model.forget_class("book")
    assert "book" not in model.classes_
    own = learned(X, y)
    rest = np.array(["ball", "mug", "pen"])
    Z, Y = X[own], (y[own][:, None] == rest).astype(float)
    W = np.linalg.solve(Z.T @ Z + 0.5 * np.eye(Z.shape[1]), Z.T @ Y)
    np.testing.assert_allclose(model.coef_, W, rtol=1e-9)
    assert not set(model.predict(X)) & {"book"}
    assert len(model.class_accuracy()[0]) == 3
    # It can be taught again, from nothing.
    model.partial_fit(X[y == "book"], y[y == "book"])
    assert np.mean(model.predict(X) == y) > 0.8


@pytest.mark.parametrize("head", ["least_squares", "discriminant"])
def test_a_forgotten_class_no_longer_tells_known_from_unknown(head: str) -> None:
    X, y = examples(400, classes=4, spread=3.0)
    given: dict[str, Any] = {"false_accepts": 0.2, "hold_out": 3, "head": head}
    model = IncrementalRLSC(1.0, **given).fit(X, y)
    # What is only learned dates the results, and forgetting would date them no later.
    model.set_params(hold_out=0).partial_fit(X[:1], y[:1])
    model.predict(X)
    before = model.least_familiarity(0.2)
    model.forget_class("book")
    copy = IncrementalRLSC(1.0, **given).restore(model.state())
    assert answers(model, X) == answers(copy, X)
    assert model.least_familiarity(0.2) != before


@pytest.mark.parametrize("head", ["least_squares", "discriminant"])
def test_without_a_class_there_is_an_answer_only_after_teaching(head: str) -> None:
    X, y = examples()
    model = IncrementalRLSC(1.0, head=head).partial_fit(X, np.full(len(X), "mug"))
    model.forget_class("mug")
    assert model.validate().classes_.tolist() == []
    for ask in (model.predict, model.predict_proba, model.decision_function, model.familiarity):
        with pytest.raises(LearningError, match="All classes were forgotten: teach"):
            ask(X)
    assert IncrementalRLSC(1.0, head=head).restore(model.state()).classes_.tolist() == []
    assert set(model.partial_fit(X, y).predict(X)) <= set(NAMES)


def test_a_renamed_class_is_the_same_class() -> None:
    X, y = examples()
    model = IncrementalRLSC(1.0).partial_fit(X, y)
    found = model.predict(X)
    model.rename_class("mug", "zebra")
    np.testing.assert_array_equal(model.predict(X), np.where(found == "mug", "zebra", found))
    assert model.classes_.tolist() == ["ball", "book", "zebra"]


def test_editing_classes_that_are_not_there_is_refused() -> None:
    X, y = examples()
    model = IncrementalRLSC(1.0).partial_fit(X, y)
    before = model.state()
    for wrong in (
        lambda: model.rename_class("cup", "mug"),
        lambda: model.rename_class("mug", "book"),
        lambda: model.rename_class("mug", 3),
        lambda: model.merge_classes("cup", "mug"),
        lambda: model.merge_classes("mug", "mug"),
        lambda: model.forget_class("x" * 10_000),
    ):
        with pytest.raises(LearningError) as refusal:
            wrong()
        assert len(str(refusal.value)) < 200
    assert same_state(before, model.state())


@pytest.mark.parametrize("limit", ["threshold", "max_novelty", "false_accepts"])
def test_a_class_is_not_named_as_what_is_none(limit: str) -> None:
    X = np.random.default_rng(0).standard_normal((12, 2))
    labels = np.repeat(["cup", "pen", "unknown"], 4)
    model = IncrementalRLSC(**{limit: 0.5})
    with pytest.raises(LearningError, match="can't be named 'unknown'"):
        model.fit(X, labels)
    model.fit(X[:8], labels[:8])
    for bad in (
        lambda: model.partial_fit(X[8:], labels[8:]),
        lambda: model.partial_fit(X[:1], labels[:1], classes=labels),
        lambda: model.rename_class("cup", "unknown"),
    ):
        with pytest.raises(LearningError, match="can't be named 'unknown'"):
            bad()
    assert model.classes_.tolist() == ["cup", "pen"]
    assert model.class_count_.sum() == 8
    model.set_params(unknown="none").partial_fit(X[8:], labels[8:])
    assert IncrementalRLSC().fit(X, labels).classes_.tolist() == ["cup", "pen", "unknown"]


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["mug", 1], None),
        ((1, "mug"), None),
        ([["mug"], [1.5]], None),
        (np.array(["mug", 1], dtype=object), None),
        (["mug", "book"], ["pen", 3]),
        (["mug", "book"], (3,)),
        ([1, 2], ["mug"]),
        ([1, 2], np.array(["mug", 3], dtype=object)),
    ],
)
def test_labels_that_mix_text_and_numbers_are_refused_as_they_were_given(y, classes):
    X = np.eye(2, 4)
    model = IncrementalRLSC()
    with pytest.raises(LearningError, match="all text or all numbers"):
        model.partial_fit(X, y, classes)
    assert not hasattr(model, "recursion_")
    model.partial_fit(X, ["mug", np.str_("book")])
    before = model.state()
    with pytest.raises(LearningError, match="all text or all numbers"):
        model.partial_fit(X, y, classes)
    assert same_state(model.state(), before)
    assert IncrementalRLSC().fit(X, [1, np.float64(2)]).classes_.tolist() == [1, 2]
