"""The package's public names, and what every estimator among them owes scikit-learn."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import semiparam_dynamics.learning as learning
from semiparam_dynamics.learning.rows import Rows

X = np.random.default_rng(0).standard_normal((80, 3))
y = np.sin(X[:, 0]) + 0.5 * X[:, 1]
REGRESSORS = [
    "KRLS", "NystromKRLS", "NYTRO", "RandomFeaturesKRLS", "SGM", "NystromSGM",
    "NystromAggregator", "Falkon", "RecursiveRLS",
]  # fmt: skip
# What reads its data in blocks; SGM draws single rows of all of them.
IN_BLOCKS = ["KRLS", "NystromKRLS", "NYTRO", "RandomFeaturesKRLS", "NystromSGM", "Falkon"]


def test_each_name_is_there_and_typed_alike() -> None:
    tree = ast.parse(Path(inspect.getfile(learning)).read_text())
    typed = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(learning.__name__)
        for alias in node.names
    }
    assert set(typed) == set(learning.__all__)
    for name in learning.__all__:
        assert getattr(learning, name).__module__ in (typed[name], f"{typed[name]}")
    with pytest.raises(AttributeError, match="Falcon"):
        _ = learning.Falcon  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", REGRESSORS)
def test_pipelines_searches_and_clones(name: str) -> None:
    estimator = getattr(learning, name)(kernel=None)
    assert is_regressor(estimator)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), clone(estimator)),
        {f"{name.lower()}__kernel": [learning.Gaussian(0.7), learning.Gaussian(2.0)]},
        cv=3,
    ).fit(X, y)
    assert search.predict(X).shape == (80,)
    assert np.mean((search.predict(X) - y) ** 2) < 0.7 * np.var(y)


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outputs_and_precision_are_those_of_y(name: str, dtype: type) -> None:
    inputs, outputs = X.astype(dtype), np.column_stack((y, -y)).astype(dtype)
    model = getattr(learning, name)().fit(inputs, outputs)
    assert model.predict(inputs).shape == (80, 2)
    assert np.isfinite(model.predict(inputs)).all()
    np.testing.assert_allclose(model.predict(inputs)[:, 0], -model.predict(inputs)[:, 1], atol=1e-3)


@pytest.mark.parametrize("name", IN_BLOCKS)
def test_chunks_are_as_good_as_arrays(name: str) -> None:
    make = getattr(learning, name)
    seed = {"random_state": 0} if "random_state" in inspect.signature(make).parameters else {}
    rows = Rows([(X[:30], y[:30]), (X[30:], y[30:])])
    expected = make(**seed).fit(X, y).predict(X)
    np.testing.assert_allclose(make(**seed).fit(rows).predict(X), expected, atol=1e-9)
