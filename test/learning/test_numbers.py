"""Every estimator and transformer ends in finite numbers, or in a sentence."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import semiparam_dynamics.learning as learning
from semiparam_dynamics.base.errors import ConfigurationError, LearningError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = X[:, 0] + np.sin(X[:, 1])
KERNELS = [
    None,
    "laplacian",
    learning.Gaussian(1.0),
    learning.Matern("scale", 2.5),
    learning.Linear(),
    learning.Polynomial(3),
]
MODELS: list[Any] = [
    learning.KRLS(),
    learning.KRLS(memory_limit=20_000, max_iter=5),  # by blocks
    learning.KRLS(filter="cutoff"),
    learning.KRLS(filter="nu", max_iter=20),
    learning.NystromKRLS(n_centers=20, random_state=0),
    learning.NystromKRLS(n_centers=20, penalty=1e-14, random_state=0),
    learning.Falkon(n_centers=20, random_state=0),
    learning.Falkon(n_centers=20, penalty=1e-14, random_state=0),
    learning.NYTRO(n_centers=20, max_iter=20, random_state=0),
    learning.SGM(max_iter=2, random_state=0),
    learning.NystromSGM(n_centers=20, max_iter=2, random_state=0),
    learning.NystromAggregator(n_centers=(5, 20), random_state=0),
    learning.RandomFeaturesKRLS(n_features=20, random_state=0),
    learning.RecursiveRLS(n_features=20, random_state=0),
    learning.RecursiveRLS(features="nystrom", n_features=20, random_state=0),
    learning.NystromFeatures(n_centers=20, random_state=0),
    *(learning.RandomFourierFeatures(20, width, random_state=0) for width in ("scale", 1.0)),
    learning.RandomFeatures(n_features=20, random_state=0),
    learning.RandomReLUFeatures(20, random_state=0),
]
LABELS: list[Any] = [
    learning.KernelClassifier(learning.Falkon(n_centers=20, random_state=0)),
    learning.KernelClassifier(learning.Falkon(n_centers=20, loss="logistic", random_state=0)),
    learning.SGM(loss="hinge", max_iter=2, random_state=0),
    learning.SGM(loss="logistic", max_iter=2, random_state=0),
]


def data() -> Iterator[tuple[str, Any, Any]]:
    """Names, inputs (60, 3 or so) and outputs (60,)."""
    for power in (-300, -155, -30, 30, 155, 300):
        yield f"X 1e{power}", X * 10.0**power, Y
        yield f"y 1e{power}", X, Y * 10.0**power
        if abs(power) == 30:
            yield f"float32 X 1e{power}", (X * 10.0**power).astype(np.float32), Y
            yield f"float32 y 1e{power}", X.astype(np.float32), Y * 10.0**power
    yield "float32", X.astype(np.float32), Y
    yield "float16", X.astype(np.float16), Y.astype(np.float16)
    yield "constant", np.ones((60, 3)), np.ones(60)
    yield "constant column", np.column_stack((X, np.full(60, 1e10))), Y
    yield "equal columns", np.column_stack((X, X[:, [0, 0]])), Y
    yield "equal rows", X[np.arange(60) % 2], Y
    outliers = X.astype(np.float32)
    outliers[:3] *= 1e4
    yield "float32 outliers", outliers, Y
    heavy = X / np.abs(RNG.standard_normal((60, 3))) ** 3
    yield "heavy tails", heavy, Y


DATA = list(data())


def finite_or_said(model: Any, inputs: Any, outputs: Any) -> None:
    """Fit, and predict or transform, at the inputs and at others between them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(inputs, outputs)
            apply = getattr(model, "predict", None) or model.transform
            new = 0.5 * inputs[:30] + 0.5 * inputs[30:]
            found = [np.asarray(apply(each), dtype=float) for each in (inputs, new)]
        except LearningError as said:
            assert str(said).endswith(".")
            return
    for each in found:
        assert np.isfinite(each).all()


# The default kernel meets all data, each of the others a quarter of them.
MET = [(*d, k) for i, k in enumerate(KERNELS) for d in DATA[max(i - 1, 0) % 4 :: 4 if i else 1]]


@pytest.mark.parametrize(
    ("inputs", "outputs", "kernel"), [m[1:] for m in MET], ids=[f"{m[0]}-{m[-1]}" for m in MET]
)
def test_predictions_are_finite_or_a_sentence_says_why(
    inputs: Any, outputs: Any, kernel: Any
) -> None:
    for model in MODELS:
        one = clone(model)
        if "kernel" in one.get_params():
            try:
                finite_or_said(one.set_params(kernel=kernel), inputs, outputs)
            except ConfigurationError as refused:  # noqa: PERF203
                assert "spectral density" in str(refused) or "Gaussian kernel only" in str(refused)
        elif kernel is None:
            finite_or_said(one, inputs, outputs)
    for model in LABELS:
        one, name = clone(model), "estimator__kernel"
        one.set_params(
            **{name if isinstance(model, learning.KernelClassifier) else "kernel": kernel}
        )
        finite_or_said(one, inputs, np.where(outputs > 0.0, 1.0, -1.0))
