"""Held-out examples: the buffer, and inputs of no class that was taught told by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import _SigmoidCalibration

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.learning import IncrementalRLSC
from semiparam_dynamics.learning.class_heads import DiscriminantHead
from semiparam_dynamics.learning.held_out import Acceptance, HeldOutExamples

RIDGE = 0.5
D, CLASSES = 12, 14


def blobs(n: int, classes: range, seed: int = 0) -> tuple[Any, Any]:
    """Gaussian classes that lie some deviations apart, in random order."""
    rng = np.random.default_rng(seed)
    y = rng.choice(list(classes), n)
    centres = 2.0 * np.random.default_rng(5).normal(size=(40, D))
    return centres[y] + rng.normal(size=(n, D)), y


def model(head: str = "discriminant", **options: Any) -> IncrementalRLSC:
    return IncrementalRLSC(RIDGE, 0.0, head=head, **options)


@pytest.mark.parametrize("share", [0.0101, 0.1, 0.5, 0.25])
def test_at_most_the_share_of_unknown_examples_exceeds_the_limit(share: float) -> None:
    strange = np.random.default_rng(0).normal(size=97)
    limit = Acceptance(strange + 3.0, strange).limit(share)
    assert limit in strange
    assert np.mean(strange > limit) <= share
    lower = np.sort(strange)[np.searchsorted(np.sort(strange), limit) - 1]
    assert np.mean(strange > lower) > share


def test_the_probability_is_platts() -> None:
    rng = np.random.default_rng(1)
    familiar, strange = rng.normal(900.0, 60.0, 80), rng.normal(830.0, 90.0, 80)
    found = Acceptance(familiar, strange)
    values = np.concatenate((familiar, strange))
    reference = _SigmoidCalibration().fit(values, np.repeat([1, 0], 80))
    asked = np.linspace(600.0, 1100.0, 50)
    np.testing.assert_allclose(found.probability(asked), reference.predict(asked), atol=2e-4)


def test_where_strangers_are_the_more_familiar_nothing_is_said() -> None:
    found = Acceptance(np.arange(20.0), np.arange(20.0) + 5.0)
    np.testing.assert_allclose(found.probability(np.array([-9.0, 3.0, 80.0])), 0.5)


def far_from_all(X: Any, y: Any, new: Any, without: int | None = None) -> Any:
    """n x'A^-1 x of new rows (k, D) written out, A without what class `without` adds to it.

    Its examples still make the covariance within classes.
    """
    labels, counts = np.unique(y, return_counts=True)
    means = np.stack([X[y == label].mean(axis=0) for label in labels])
    rest = X - means[np.searchsorted(labels, y)]
    A = rest.T @ rest + RIDGE * np.eye(D)
    for label, count, mean in zip(labels, counts, means, strict=True):
        if label != without:
            A += count * np.outer(mean, mean)
    return len(X) * np.einsum("ij,jk,ik->i", new, np.linalg.inv(A), new)


def test_familiarity_is_relative_mahalanobis_distance_with_and_without_the_class() -> None:
    (X, y), (new, numbers) = blobs(400, range(5)), blobs(30, range(5), 1)
    learned = model(hold_out=0).fit(X, y)
    recursion = learned.recursion_
    head = recursion.head
    assert isinstance(head, DiscriminantHead)
    judged = head.judge(new)
    by_number = {label: k for k, label in enumerate(recursion.classes.labels)}
    truth = np.array([by_number[label] for label in numbers.tolist()])
    apart = far_from_all(X, y, new)
    assert judged.familiarity is not None
    distances = apart[:, None] - judged.familiarity
    scores = head.means.scores(distances)
    np.testing.assert_allclose(scores, judged.scores, rtol=1e-9)
    more = head.withheld(judged, truth)
    for k, label in enumerate(numbers.tolist()):
        without = far_from_all(X, y, new[k : k + 1], without=label)[0]
        assert more[k] == pytest.approx(without - apart[k], rel=1e-7)
    np.testing.assert_allclose(learned.familiarity(new), judged.familiarity.max(axis=1))


@pytest.mark.parametrize(("head", "most"), [("discriminant", 0.12), ("least_squares", 0.5)])
def test_unknown_classes_are_told_and_few_pass(head: str, most: float) -> None:
    """Classes left out are not quite as new ones are, least of all for least squares' scores."""
    X, y = blobs(2000, range(CLASSES))
    learned = model(head, hold_out=4, false_accepts=0.05).fit(X, y)
    (own, labels), (strange, _) = blobs(500, range(CLASSES), 1), blobs(2000, range(20, 40), 2)
    known, unknown = learned.predict(own), learned.predict(strange)
    passed = np.mean(unknown != "unknown")
    right = np.mean([str(a) == str(b) for a, b in zip(known, labels, strict=True)])
    assert passed < most
    assert right > (0.75 if head == "discriminant" else 0.5)
    p_own, p_strange = (learned.known_at(learned.familiarity(Z)) for Z in (own, strange))
    assert p_own.mean() > 0.7 > 0.5 > p_strange.mean()
    without = model(head, hold_out=4).fit(X, y).predict(strange)
    assert "unknown" not in without.tolist()


@pytest.mark.parametrize("head", ["least_squares", "discriminant"])
def test_one_input_is_assessed_as_many_are(head: str) -> None:
    X, y = blobs(600, range(6))
    learned = model(head, hold_out=4).fit(X, y)
    found = [learned.assess(x) for x in X[:20]]
    for name, of_many in (
        ("familiarity", learned.familiarity),
        ("novelty", learned.novelty),
        ("probabilities", learned.predict_proba),
    ):
        np.testing.assert_allclose([getattr(one, name) for one in found], of_many(X[:20]))


def test_without_held_out_examples_all_are_known() -> None:
    X, y = blobs(300, range(5))
    learned = model(hold_out=0, false_accepts=0.01).fit(X, y)
    assert np.all(np.isnan(learned.known_at(learned.familiarity(X))))
    assert learned.least_familiarity(0.01) is None
    assert "unknown" not in learned.predict(100.0 * X).tolist()


@pytest.mark.parametrize("share", [-0.1, 1.0, np.nan])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    X, y = blobs(300, range(5))
    with pytest.raises(ConfigurationError, match="false_accepts"):
        model(false_accepts=share).fit(X, y).predict(X)


def buffer(size: int) -> HeldOutExamples:
    return HeldOutExamples(size, n_inputs=1, n_ridges=2)


def kept(held: HeldOutExamples) -> list[tuple[int, float]]:
    taken = held.numbers >= 0
    return sorted(zip(held.numbers[taken].tolist(), held.inputs[taken, 0].tolist(), strict=True))


def test_when_full_the_largest_class_gives_up_its_oldest() -> None:
    held = buffer(4)
    for k, number in enumerate([0, 0, 1, 0, 1, 2, 2]):
        held.add(np.array([float(k)]), number)
    # 4 took the place of 0, 5 that of 1; then classes 1 and 2 follow 0, the first of the largest.
    assert len(held) == 4
    assert kept(held) == [(0, 3.0), (1, 4.0), (2, 5.0), (2, 6.0)]
