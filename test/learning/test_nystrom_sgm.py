"""Nyström stochastic gradient against the plain loop over its batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import check_estimator

from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning import kernel_descent as nystrom_descent
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.kernel_descent import NystromDescent
from semiparam_dynamics.learning.kernels import Gaussian, Linear
from semiparam_dynamics.learning.losses import Square
from semiparam_dynamics.learning.rows import Rows
from semiparam_dynamics.learning.sgm import SGM, NystromSGM
from semiparam_dynamics.learning.stochastic import Steps

KERNEL = Gaussian(0.8)


def data(n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(n)


def loop(
    X: np.ndarray, y: np.ndarray, C: np.ndarray, batch: int, step: float, decay: float, passes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Predictions at X of the last and of the mean iterate: (2.3) of the paper, with another S.

    S comes from an eigendecomposition; the draws are those of seed 5.
    """
    values, vectors = np.linalg.eigh(rbf_kernel(C, gamma=0.5 / 0.8**2))
    S = vectors / np.sqrt(values)
    A = rbf_kernel(X, C, gamma=0.5 / 0.8**2) @ S
    draw, n = np.random.RandomState(5), len(X)
    beta, mean, total, t = np.zeros(len(C)), np.zeros(len(C)), 0.0, 0
    count = int(np.ceil(n / batch))
    for _ in range(passes):
        for J in draw.randint(n, size=count * batch).reshape(count, batch):
            t += 1
            size = step * t**-decay
            mean += size * beta
            total += size
            beta = beta - size / batch * A[J].T @ (A[J] @ beta - y[J])
    return A @ beta, A @ mean / total


@pytest.mark.parametrize("batch", [1, 4, 40, 90])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("limit", [None, 90 * 12 * 8])
def test_it_equals_the_plain_loop(batch: int, average: bool, limit: int | None) -> None:
    X, y = data()
    C = X[:12]
    expected = loop(X, y, C, batch, 0.7, 0.2, 3)[average]
    model = NystromSGM(
        KERNEL,
        centers=C,
        step=0.7,
        decay=0.2,
        batch_size=batch,
        max_iter=3,
        average=average,
        random_state=5,
        memory_limit=limit,
    )
    np.testing.assert_allclose(model.fit(X, y).predict(X), expected, atol=1e-11)
    assert model.coef_.shape == (12,)


@pytest.mark.parametrize("batch", [1, 5, 50])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("size", [3, 64])
def test_features_and_kernels_lead_to_the_same_iterates(
    batch: int, kept: bool, size: int, monkeypatch: Any
) -> None:
    monkeypatch.setattr(nystrom_descent, "BLOCK", size)
    X, y = data()
    rows = Rows.from_arrays(X, np.column_stack((y, X[:, 0])))
    basis = NystromBasis(KERNEL, np.concatenate((X[:10], X[3:5])))  # two of them twice
    steps = Steps.of([(0.5, 0.0), (0.9, 0.5)], 1.0)
    found = []
    for features in (False, True):
        draw = np.random.RandomState(0)
        budget = 10**9 if kept else 90 * 10 * 8
        descent = NystromDescent(rows, basis, Square(), steps, batch, 2, draw, budget, features)
        assert (descent.memory > 0) == kept
        for _ in range(2):
            descent.run_pass()
        found.append([KERNEL(X, descent.centers) @ descent.coefficients(a) for a in (0, 1)])
    assert found[0][0].shape == (90, 4)
    np.testing.assert_allclose(found[0], found[1], atol=1e-10)


def test_with_all_rows_as_centres_and_batches_of_one_it_is_sgm() -> None:
    X, y = data(40)
    settings = {"step": 0.5, "max_iter": 2, "random_state": 1}
    model = NystromSGM(Gaussian(0.3), centers=X, batch_size=1, loss="absolute", **settings)
    plain = SGM(Gaussian(0.3), loss="absolute", **settings)
    np.testing.assert_allclose(model.fit(X, y).predict(X), plain.fit(X, y).predict(X), atol=1e-9)


def test_many_passes_approach_the_ridgeless_nystrom_estimator() -> None:
    X, _ = data()
    C = X[:8]
    K = rbf_kernel(X, C, gamma=0.5 / 0.3**2)
    y = K @ np.arange(8.0)  # in the span, so that the gradients' noise vanishes at the solution
    model = NystromSGM(Gaussian(0.3), centers=C, max_iter=1500, random_state=0).fit(X, y)
    alpha = np.linalg.lstsq(K, y)[0]
    np.testing.assert_allclose(model.coef_, alpha, atol=1e-3)


def test_default_step_and_batch_follow_the_papers_regimes() -> None:
    X, y = data(100)
    kappa2 = np.max(np.sum(X**2, axis=1))
    for batch, explicit, step in ((1, 1, 0.1), (None, 10, 1.0), (5, 5, 0.5)):
        settings = {"centers": X[:4], "random_state": 0}
        default = NystromSGM(Linear(), batch_size=batch, **settings)
        same = NystromSGM(Linear(), batch_size=explicit, step=step / kappa2, **settings)
        np.testing.assert_allclose(
            default.fit(X, y).predict(X), same.fit(X, y).predict(X), rtol=1e-10
        )


def test_a_path_equals_separate_fits() -> None:
    X, y = data()
    Y = np.column_stack((y, X[:, 0] ** 2))
    grid = {"step": [0.05, 0.5], "decay": [0.0, 0.5], "max_iter": [1, 3]}
    for batch in (None, 2):
        model = NystromSGM(KERNEL, n_centers=20, batch_size=batch, random_state=2)
        found = list(model.path(X, Y, grid, X[:20]))
        assert len(found) == 8
        for setting, predicted in found:
            fitted = NystromSGM(
                KERNEL, n_centers=20, batch_size=batch, random_state=2, **setting
            ).fit(X, Y)
            np.testing.assert_allclose(predicted, fitted.predict(X[:20]), atol=1e-10)


def test_memory_maps_are_read_in_blocks(tmp_path: Path) -> None:
    X, y = data(400)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    rows = Rows.from_folder(tmp_path)
    settings = {"n_centers": 30, "random_state": 0, "max_iter": 2}
    expected = NystromSGM(KERNEL, **settings).fit(X, y).predict(X)
    for limit in (None, 60_000):  # the matrix would take 96 000 bytes
        model = NystromSGM(KERNEL, memory_limit=limit, **settings).fit(rows)
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-10)


def test_single_precision_and_seeds() -> None:
    X, y = data(200)
    model = NystromSGM(Gaussian(0.3), n_centers=40, random_state=0)
    expected = model.fit(X, y).predict(X)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), expected)
    single = model.fit(X.astype(np.float32), y.astype(np.float32)).predict(X)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-4)


def test_the_best_pass_is_kept() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 3)), rng.standard_normal(80)
    validation = rng.standard_normal((60, 3)), 0.1 * rng.standard_normal(60)
    model = NystromSGM(Gaussian(0.5), random_state=0, max_iter=20)
    model.fit(X, y, validation_data=validation)
    assert len(model.validation_errors_) == 20
    assert model.n_iter_ == 1 + np.argmin(model.validation_errors_)
    score = np.mean((model.predict(validation[0]) - validation[1]) ** 2)
    np.testing.assert_allclose(model.validation_errors_.min(), score, rtol=1e-10)


def test_what_cannot_be_learned_is_said() -> None:
    X, y = data()
    with pytest.raises(LearningError, match="diverged"):
        NystromSGM(step=1e3, max_iter=100).fit(X, y)
    with pytest.raises(LearningError, match="every centre"):
        NystromSGM(Linear()).fit(np.zeros((10, 2)), np.ones(10))
    with pytest.raises(ConfigurationError, match="batch_size"):
        NystromSGM(batch_size=0).fit(X, y)


def test_scikit_learns_conventions() -> None:
    check_estimator(NystromSGM())
