"""FALKON and Nyström KRLS on a cluster, against one process.

Among the cases: a worker that is killed in the middle of its task, and data that don't fit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from semiparam_dynamics.base.errors import ConfigurationError, LearningError, MissingExtraError
from semiparam_dynamics.learning import (
    Falkon,
    Gaussian,
    KernelClassifier,
    Laplacian,
    NystromKRLS,
    RandomFeaturesKRLS,
)
from semiparam_dynamics.learning.backends.dask_arrays import DaskKernelRows, DaskRows
from semiparam_dynamics.learning.products import KernelRows
from semiparam_dynamics.learning.rows import Rows

distributed = pytest.importorskip("distributed", reason="the extra 'distributed' isn't installed")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((900, 4))
Y = np.column_stack((np.sin(X[:, 0]), X[:, 1] * X[:, 2])) + 0.1 * RNG.standard_normal((900, 2))
W = RNG.uniform(0.5, 2.0, 900)
W[:250] = 0.0  # a chunk without any weight
SIZES = (200, 50, 250, 1, 199, 200)
# So much penalty that the iterations converge, and what is left is rounding.
FALKON = Falkon(Gaussian(1.0), 3e-2, 60, max_iter=8, random_state=0)
NYSTROM = NystromKRLS(Gaussian(1.0), 1e-4, 60, random_state=0)


@pytest.fixture(scope="module", autouse=True)
def client(near_scheduler: str) -> Iterator[Any]:
    with distributed.Client(near_scheduler) as client:
        yield client


def chunks(values: Any, sizes: tuple[int, ...] = SIZES) -> Any:
    """In chunks of those rows, and of two columns where there are more."""
    return da.from_array(values, chunks=(sizes, *((2,) * (values.ndim - 1))))


@pytest.mark.parametrize("model", [FALKON, NYSTROM], ids=["falkon", "nystrom"])
@pytest.mark.parametrize(
    ("weighted", "dtype", "error"), [(False, np.float64, 1e-10), (True, np.float32, 1e-4)]
)
def test_the_fit_is_one_process(model: Any, weighted: bool, dtype: Any, error: float) -> None:
    inputs, outputs = X.astype(dtype), Y.astype(dtype)
    weights = W.astype(dtype) if weighted else None
    expected = clone(model).fit(inputs, outputs, weights)
    there = None if weights is None else chunks(weights)
    fitted = clone(model).fit(chunks(inputs), chunks(outputs), there)
    assert fitted.n_features_in_ == 4 and fitted.centers_.dtype == dtype
    np.testing.assert_array_equal(fitted.centers_, expected.centers_)
    assert isinstance(fitted.coef_, np.ndarray)
    difference = fitted.predict(inputs) - expected.predict(inputs)
    assert np.abs(difference).max() < error
    if weighted:  # again, the same to the last bit, whichever worker was quicker
        again = clone(model).fit(chunks(inputs), chunks(outputs), there)
        np.testing.assert_array_equal(again.coef_, fitted.coef_)


@pytest.mark.parametrize(("model", "columns"), [(FALKON, 1), (NYSTROM, 2)])
def test_predictions_are_dask_arrays(model: Any, columns: int) -> None:
    outputs = Y if columns == 2 else Y[:, 0]
    fitted = clone(model).fit(chunks(X), outputs)  # outputs of NumPy, too
    predicted = fitted.predict(chunks(X))
    assert isinstance(predicted, da.Array) and predicted.shape == outputs.shape
    assert predicted.chunks[0] == SIZES and predicted.dtype == float
    np.testing.assert_allclose(predicted.compute(), fitted.predict(X), rtol=0, atol=1e-12)
    with pytest.raises(LearningError, match="4"):
        fitted.predict(chunks(X[:, :3]))


CLASSIFIER = KernelClassifier(Falkon(Gaussian(1.0), 1e-2, 60, loss="logistic", random_state=0))


@pytest.mark.parametrize(
    ("model", "methods", "n_classes"),
    [
        (RandomFeaturesKRLS(importance="leverage", n_features=60, random_state=0), ["predict"], 3),
        (KernelClassifier(NYSTROM), ["predict", "decision_function"], 2),
        (CLASSIFIER, ["predict", "decision_function", "predict_proba"], 3),
    ],
)
def test_predictions_of_other_estimators_are_dask_arrays(
    model: Any, methods: list[str], n_classes: int
) -> None:
    y = Y[:, : n_classes - 1].squeeze()
    if isinstance(model, KernelClassifier):
        y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5][: n_classes - 1])]
    fitted = clone(model).fit(X, y)
    for method in methods:
        apply = getattr(fitted, method)
        expected, found = apply(X), apply(chunks(X))
        assert isinstance(found, da.Array) and found.shape == expected.shape
        assert found.chunks[0] == SIZES and found.dtype == expected.dtype
        if method == "predict" and isinstance(model, KernelClassifier):
            np.testing.assert_array_equal(found.compute(), expected)
        else:
            np.testing.assert_allclose(found.compute(), expected, rtol=0, atol=1e-12)
        assert apply(chunks(X)[X[:, 0] > 9.0]).compute().shape[0] == 0
        with pytest.raises(LearningError, match="4"):
            apply(chunks(X[:, :3]))
    assert fitted.score(chunks(X), y) == pytest.approx(fitted.score(X, y))


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(2.0)], ids=str)
def test_products_equal_those_of_the_whole_matrix(kernel: Any) -> None:
    from semiparam_dynamics.learning.kernels import as_kernel

    rows = DaskRows(chunks(X), chunks(Y), chunks(W))
    data = DaskKernelRows(rows, as_kernel(kernel), X[:50], 10**6)
    K, B = np.asarray(as_kernel(kernel)(X, X[:50])), RNG.standard_normal((50, 5))
    np.testing.assert_allclose(data.normal(B), K.T @ (W[:, None] * (K @ B)), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(data.targets(), K.T @ (W[:, None] * Y), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(rows.squared_outputs(), W @ Y**2)
    assert isinstance(rows.like(X), Rows) and not isinstance(rows.like(X), DaskRows)
    local = KernelRows(rows, as_kernel(kernel), X[:50])  # through this process, chunk by chunk
    np.testing.assert_allclose(local.normal(B), data.normal(B), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("penalty", [1e-4, 1e-13], ids=["cholesky", "qr"])
def test_a_path_is_that_of_one_process(penalty: float) -> None:
    model = clone(NYSTROM).set_params(centers="leverage_scores")
    grid = {"n_centers": [20, 60], "penalty": [penalty, 1e-2]}
    expected = list(model.path(X, Y, grid, X[:100]))
    found = list(model.path(chunks(X), chunks(Y), grid, X[:100]))
    assert [s for s, _ in found] == [s for s, _ in expected]
    for (_, one), (_, other) in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)


def test_falkons_other_parts_are_those_of_one_process() -> None:
    model = clone(FALKON).set_params(preconditioner_rows=200)
    held_out = {"validation_data": (X[:100], Y[:100])}
    expected = clone(model).fit(X, Y, W, **held_out)
    fitted = clone(model).fit(chunks(X), chunks(Y), chunks(W), **held_out)
    np.testing.assert_allclose(fitted.validation_errors_, expected.validation_errors_, rtol=1e-7)
    for part in (X, chunks(X)):
        rows = DaskRows(part, Y)
        draw = RNG.permutation(900)[:70]
        np.testing.assert_array_equal(rows.take(draw), X[draw])


def test_chunks_of_unknown_sizes_and_empty_ones() -> None:
    there, outputs = chunks(X), chunks(Y)
    some = there[:, 0] > 0.0
    some = da.where(da.arange(900, chunks=(SIZES,)) < 200, False, some)  # none of the first chunk
    rows = DaskRows(there[some], outputs[some])
    mask = some.compute()
    assert rows.n_samples == mask.sum() and rows.total_weight == mask.sum()
    np.testing.assert_array_equal(np.concatenate([b.X for b in rows.blocks(64)]), X[mask])
    predicted = clone(NYSTROM).fit(rows).predict(there[some])
    expected = clone(NYSTROM).fit(X[mask], Y[mask]).predict(X[mask])
    np.testing.assert_allclose(predicted.compute(), expected, rtol=0, atol=1e-8)


def killing(folder: Path) -> Callable[[Any, Any], Any]:
    """A kernel that kills the worker in which it is evaluated once the folder has the file "do"."""

    def kernel(A: Any, C: Any) -> Any:
        import os
        import signal

        import numpy as np

        # The centres' own matrix is this process's. The files count blocks, so that it dies late.
        if len(A) > 60 and (folder / "do").exists():
            (folder / f"block{len(list(folder.iterdir()))}").touch()
            if len(list(folder.iterdir())) > 3:
                try:
                    (folder / "do").rename(folder / f"killed{os.getpid()}")
                except FileNotFoundError:  # the other worker was first
                    pass
                else:
                    os.kill(os.getpid(), signal.SIGKILL)
        return np.exp(-0.5 * ((A[:, None, :] - C[None]) ** 2).sum(axis=2))

    return kernel


def test_a_worker_killed_in_its_task_changes_nothing(tmp_path: Path) -> None:
    """On a cluster of processes: that of the other tests is in this one."""
    model = clone(NYSTROM).set_params(kernel=killing(tmp_path))
    there = chunks(X)
    expected = clone(model).fit(there, Y)
    (tmp_path / "do").touch()
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(processes=True, **settings) as cluster,
        distributed.Client(cluster, set_as_default=False) as doomed,
    ):
        fitted = clone(model).fit(DaskRows(there, Y, client=doomed))
    (killed,) = tmp_path.glob("killed*")
    assert int(killed.name.removeprefix("killed")) != os.getpid()
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)


def test_labels_are_refused() -> None:
    labels = da.from_array(np.where(X[:, 0] > 0.0, "left", "right"), chunks=450)
    with pytest.raises(LearningError, match=r"labels \('(left|right)'\): KernelClassifier"):
        NystromKRLS().fit(chunks(X), labels)


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    there = chunks(X)
    wrong = X.copy()
    wrong[500, 1] = np.nan
    with pytest.raises(LearningError, match="NaN"):
        clone(FALKON).fit(chunks(wrong), chunks(Y))
    with pytest.raises(LearningError, match="900 rows and y has 899"):
        clone(FALKON).fit(there, chunks(Y)[:-1])
    with pytest.raises(LearningError, match="weights sum to zero"):
        clone(NYSTROM).fit(there, Y, 0.0 * W)
    with pytest.raises(LearningError, match="not negative"):
        clone(NYSTROM).fit(there, Y, -W)
    with pytest.raises(LearningError, match="outputs y"):
        clone(FALKON).fit(there)
    with pytest.raises(ConfigurationError, match="length_scale"):
        clone(FALKON).set_params(kernel=Gaussian(-1.0)).fit(there, Y)

    def none() -> Any:
        raise ValueError("No global client found and no address provided")

    monkeypatch.setattr(distributed, "get_client", none)
    with pytest.raises(ConfigurationError, match="needs a client"):
        clone(FALKON).fit(there, Y)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"'dask\[array,distributed\]'"):
        clone(FALKON).fit(there, Y)
