"""Classes that are merged, forgotten and renamed, without learning again."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning import IncrementalRLSC

from .rlsc_oracle import examples, learned, unchanged


def test_a_merged_class_is_as_if_it_had_been_taught_so() -> None:
    X, y = examples(400, classes=4)
    model = IncrementalRLSC([0.1, 1.0], 0.5, hold_out=0).partial_fit(X, y)
    model.merge_classes("pen", "mug")
    direct = IncrementalRLSC([0.1, 1.0], 0.5, hold_out=0)
    direct.partial_fit(X, np.where(y == "pen", "mug", y))
    np.testing.assert_allclose(model.coef_, direct.coef_, rtol=1e-10)
    np.testing.assert_array_equal(model.class_count_, direct.class_count_)


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
    assert unchanged(before, model.state())
