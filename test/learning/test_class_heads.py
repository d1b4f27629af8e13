"""Discriminant analysis from least squares' recursion, against the formulas written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning import IncrementalRLSC, class_heads
from semiparam_dynamics.learning.class_heads import ClassMeans, DiscriminantHead

RIDGE = 0.5


def examples(n: int = 300, d: int = 8, classes: int = 5, seed: int = 0) -> tuple[Any, Any]:
    """Gaussian classes of one covariance and of sizes that differ, in random order."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1.0, classes + 1.0)
    y = rng.choice(classes, n, p=shares / shares.sum())
    y[:classes] = rng.permutation(classes)
    mix = np.random.default_rng(98).normal(size=(d, d)) / 2.0
    return 1.5 * np.random.default_rng(99).normal(size=(classes, d))[y] + rng.normal(
        size=(n, d)
    ) @ mix, y


def model(**options: Any) -> IncrementalRLSC:
    given = {"ridge": RIDGE, "recoding": 0.0, "hold_out": 0, "head": "discriminant"} | options
    return IncrementalRLSC(**given)


def teach(of: IncrementalRLSC, X: Any, y: Any) -> IncrementalRLSC:
    for x, label in zip(X, y, strict=True):
        of.partial_fit(x[None], [label])
    return of


def expected(X: Any, y: Any, new: Any, dimension: float | None = None) -> tuple[Any, float]:
    """The logarithms of N_c p(x | c) of new rows as the module's docstring has them, and tau."""
    labels, counts = np.unique(y, return_counts=True)
    n, T = len(X), len(labels)
    means = np.stack([X[y == label].mean(axis=0) for label in labels])
    rest = X - means[np.searchsorted(labels, y)]
    within = rest.T @ rest
    precision = n * np.linalg.inv(within + RIDGE * np.eye(X.shape[1]))
    if dimension is None:
        dimension = float(np.trace(precision @ within)) / n
    middle = means.mean(axis=0)
    apart = means - middle
    spread = np.einsum("ij,jk,ik->", apart, precision, apart) / ((T - 1) * dimension)
    spread = max(spread - np.mean(1.0 / counts), 1e-3)
    scores = np.empty((len(new), T))
    for c in range(T):
        draw = spread / (spread + 1.0 / counts[c])
        off = new - middle - draw * apart[c]
        width = 1.0 + spread * (1.0 - draw)
        distance = np.einsum("ij,jk,ik->i", off, precision, off)
        scores[:, c] = np.log(counts[c] / n) - 0.5 * (distance / width + dimension * np.log(width))
    return scores, spread


def means(of: IncrementalRLSC) -> ClassMeans:
    head = of.recursion_.head
    assert isinstance(head, DiscriminantHead)
    return head.means


@pytest.mark.parametrize("way", ["one by one", "a late class", "at once", "in parts"])
def test_scores_are_those_of_the_formula(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However examples come; the inverse that is kept up is made anew after 40 of them."""
    monkeypatch.setattr(class_heads, "REFACTOR_AFTER", 40)
    (X, y), (new, _) = examples(150), examples(40, seed=1)
    found = model()
    if way == "a late class":
        late = np.argsort(y == 2, kind="stable")
        X, y = X[late], y[late]
    if way in ("one by one", "a late class"):
        for x, label in zip(X, y, strict=True):
            found.partial_fit(x[None], [label])
            found.predict(X[:1])  # so that there is an inverse to be kept up
    elif way == "at once":
        found.fit(X, y)
    else:
        found.partial_fit(X[:90], y[:90])
        teach(found, X[90:94], y[90:94]).partial_fit(X[94:], y[94:])
    scores, spread = expected(X, y, new, found.recursion_.head.dimension())
    np.testing.assert_allclose(found.decision_function(new), scores, rtol=1e-9, atol=1e-8)
    assert means(found).spread == pytest.approx(spread, rel=1e-9)


def test_the_directions_that_scatter_are_estimated_closely() -> None:
    X, y = examples(d=40)
    found = model().fit(X, y)
    labels = np.unique(y)
    rest = X - np.stack([X[y == c].mean(axis=0) for c in labels])[y]
    within = rest.T @ rest
    exact = np.trace(np.linalg.solve(within + RIDGE * np.eye(40), within))
    assert found.recursion_.head.dimension() == pytest.approx(exact, rel=0.02)


def test_of_many_examples_it_is_linear_discriminant_analysis() -> None:
    (X, y), (new, _) = examples(20_000), examples(500, seed=1)
    rival = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    found = model(ridge=1e-6).fit(X, y)
    np.testing.assert_array_equal(found.predict(new), rival.predict(new))
    ours, theirs = found.decision_function(new), rival.decision_function(new)
    np.testing.assert_allclose(
        ours - ours[:, :1], theirs - theirs[:, :1], atol=0.02 * np.abs(theirs).max()
    )


def test_recoding_goes_from_the_shares_of_the_examples_to_equal_ones() -> None:
    (X, y), (new, _) = examples(), examples(20, seed=1)
    found = model().fit(X, y)
    plain, shares = found.decision_function(new), np.bincount(y) / len(y)
    for recoding in (0.0, 0.4, 1.0):
        found.recoding = recoding
        off = found.decision_function(new) - plain + recoding * np.log(shares)
        np.testing.assert_allclose(off, 0.0, atol=1e-9)


def test_a_class_of_one_example_is_recognised() -> None:
    X, y = examples(600, d=20)
    first = np.flatnonzero(y == 4)[0]
    kept = (y != 4) | (np.arange(len(y)) == first)
    new, labels = examples(600, d=20, seed=1)
    few = new[labels == 4]
    found = teach(model(recoding=1.0), X[kept], y[kept])
    plain = IncrementalRLSC(RIDGE, 0.0, hold_out=0).fit(X[kept], y[kept])
    assert np.mean(found.predict(few) == 4) > 0.5 > 0.1 > np.mean(plain.predict(few) == 4)


@pytest.mark.parametrize("head", ["least_squares", "discriminant"])
def test_a_merged_class_is_as_if_it_had_been_taught_so(head: str) -> None:
    (X, y), (new, _) = examples(), examples(20, seed=1)
    found = model(head=head, ridge=[0.1, RIDGE]).fit(X, y)
    found.merge_classes(3, 1)
    same = model(head=head, ridge=[0.1, RIDGE]).fit(X, np.where(y == 3, 1, y))
    np.testing.assert_allclose(found.decision_function(new), same.decision_function(new), rtol=1e-9)
    np.testing.assert_array_equal(found.class_count_, same.class_count_)


def test_a_forgotten_class_leaves_the_scatter_of_the_others() -> None:
    X, y = examples()
    found = teach(model(), X, y)
    before = found.recursion_.head.E
    stay = [k for k, label in enumerate(found.recursion_.classes.labels) if label != 3]
    found.forget_class(3)
    np.testing.assert_allclose(found.recursion_.head.E, before[np.ix_(stay, stay)])
    assert 3 not in found.predict(X)


def test_coefficients_are_refused() -> None:
    X, y = examples()
    with pytest.raises(LearningError, match="no coefficients"):
        model().fit(X, y).coef_  # noqa: B018


def test_announced_classes_are_never_predicted() -> None:
    X, y = examples()
    found = model().partial_fit(X, y, classes=[7, 8])
    teach(found, X[:9], y[:9])
    assert set(found.predict(X)) <= set(range(5))
    assert np.isfinite(found.decision_function(X)[:, :5]).all()
    np.testing.assert_array_equal(found.predict_proba(X)[:, 5:], 0.0)


def test_examples_that_least_squares_fits_leave_a_finite_answer() -> None:
    rows = np.eye(3)
    found = teach(IncrementalRLSC(1e-12, 1.0, hold_out=0, head="discriminant"), rows, [0, 1, 2])
    assert np.isfinite(found.decision_function(rows)).all()
