"""FALKON on other libraries' arrays against FALKON on NumPy's.

array_api_strict has nothing beyond the standard, and a device of its own that NumPy can't read.
PyTorch's and CuPy's arrays are on a GPU where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone

from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning import Falkon, Gaussian, Laplacian, Linear, NystromKRLS, Polynomial
from semiparam_dynamics.learning.backends.devices import DeviceKernelRows, DeviceRows, device_of
from semiparam_dynamics.learning.products import KernelRows, kernel_rows
from semiparam_dynamics.learning.rows import Rows

RNG = np.random.default_rng(0)
X = RNG.standard_normal((700, 4))
Y = np.column_stack((np.sin(X[:, 0]), X[:, 1] * X[:, 2])) + 0.1 * RNG.standard_normal((700, 2))
W = RNG.uniform(0.5, 2.0, 700)
# So much penalty that the iterations converge, and what is left is rounding.
MODEL = Falkon(Gaussian(1.0), 1e-2, 60, max_iter=30, random_state=0)
To = Callable[..., Any]


@pytest.fixture(params=["torch cpu", "torch cuda", "cupy cuda", "array_api_strict device1"])
def to(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[To]:
    """NumPy -> the library's array on a device."""
    name, place = request.param.split()
    library = pytest.importorskip(name)
    if place == "cuda" and not library.cuda.is_available():
        pytest.skip("no GPU")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    device: Any = library.Device(place) if name == "array_api_strict" else place
    options = {} if name == "cupy" else {"device": device}

    def convert(values: Any, dtype: Any = np.float64) -> Any:
        chosen = getattr(library, np.dtype(dtype).name)
        return library.asarray(np.asarray(values, dtype), dtype=chosen, **options)

    with sklearn.config_context(array_api_dispatch=True):
        yield convert


def back(values: Any) -> np.ndarray:
    there = device_of(values)
    assert there is not None
    return there.numpy(values)


@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-10), (np.float32, 1e-4)])
@pytest.mark.parametrize("limit", [None, 100_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_is_numpys(to: To, dtype: Any, error: float, limit: Any, weighted: bool) -> None:
    inputs, outputs = X.astype(dtype), Y.astype(dtype)
    weights = W.astype(dtype) if weighted else None
    model = clone(MODEL).set_params(memory_limit=limit)
    expected = clone(model).fit(inputs, outputs, weights)
    there = weights if weights is None else to(weights, dtype)
    model.fit(to(inputs, dtype), to(outputs, dtype), there)
    assert isinstance(model.coef_, np.ndarray) and model.centers_.dtype == dtype
    np.testing.assert_array_equal(model.centers_, expected.centers_)
    predicted = model.predict(to(inputs, dtype))
    assert type(predicted) is type(to(inputs, dtype))
    assert str(predicted.dtype).endswith(np.dtype(dtype).name)
    np.testing.assert_allclose(back(predicted), expected.predict(inputs), rtol=0, atol=error)
    # The model made there predicts on NumPy's arrays, and the other way round.
    np.testing.assert_allclose(model.predict(inputs), expected.predict(inputs), rtol=0, atol=error)
    np.testing.assert_allclose(
        back(expected.predict(to(inputs, dtype))), expected.predict(inputs), rtol=0, atol=error
    )


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Polynomial(2, 0.5, 1.0)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_centres_by_leverage_scores_are_numpys(to: To, kernel: Any, weighted: bool) -> None:
    model = clone(MODEL).set_params(kernel=kernel, centers="leverage_scores")
    expected = clone(model).fit(X, Y, W if weighted else None)
    model.fit(to(X), to(Y), to(W) if weighted else None)
    np.testing.assert_array_equal(model.centers_, expected.centers_)
    np.testing.assert_allclose(back(model.predict(to(X))), expected.predict(X), atol=1e-9)


def test_one_output_validation_data_and_given_centres(to: To) -> None:
    model = clone(MODEL).set_params(centers=X[:50], preconditioner_rows=100)
    held_out = X[600:], Y[600:, 0]
    expected = clone(model).fit(X[:600], Y[:600, 0], validation_data=held_out)
    held_out_there = to(held_out[0]), to(held_out[1])
    model.fit(to(X[:600]), to(Y[:600, 0]), validation_data=held_out_there)
    assert model.predict(to(X)).shape == (700,)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-9)
    np.testing.assert_allclose(model.validation_errors_, expected.validation_errors_, rtol=1e-9)


@pytest.mark.parametrize("kernel", [Polynomial(2, 0.5, 1.0), Linear(1.0), lambda A, B: A @ B.T])
def test_kernels_that_are_made_of_products(to: To, kernel: Any) -> None:
    model = clone(MODEL).set_params(kernel=kernel)
    expected = clone(model).fit(X, Y)
    model.fit(to(X), to(Y))
    np.testing.assert_allclose(back(model.predict(to(X))), expected.predict(X), atol=1e-9)


@pytest.mark.parametrize("limit", [None, 20_000])
@pytest.mark.parametrize("keep", [False, True])
def test_products_are_numpys(to: To, limit: Any, keep: bool) -> None:
    C, B = X[:30], RNG.standard_normal((30, 2))
    there = device_of(to(X))
    assert there is not None
    rows = DeviceRows(there, to(X), to(Y), to(W))
    data = kernel_rows(rows, Gaussian(1.5), C, limit, keep)
    assert isinstance(data, DeviceKernelRows)
    assert data.fits == (keep and limit is None)
    np.testing.assert_allclose(rows.squared_outputs(), W @ Y**2)
    np.testing.assert_allclose(DeviceRows(there, to(X), to(Y)).squared_outputs(), np.sum(Y**2, 0))
    expected = kernel_rows(Rows.from_arrays(X, Y, W), Gaussian(1.5), C)
    assert isinstance(expected, KernelRows)
    for _ in range(2):
        np.testing.assert_allclose(data.normal(B), expected.normal(B), rtol=1e-10)
        np.testing.assert_allclose(data.targets(), expected.targets(), atol=1e-10)
        product = [np.concatenate(list(one.multiply(B))) for one in (data, expected)]
        np.testing.assert_allclose(*product, atol=1e-12)


def test_what_is_unusable_is_said(to: To) -> None:
    with pytest.raises(ConfigurationError, match="for NumPy's arrays only"):
        clone(MODEL).set_params(kernel=Laplacian()).fit(to(X), to(Y))
    with pytest.raises(LearningError, match="and not negative"):
        clone(MODEL).fit(to(X), to(Y), to(-W))
    with pytest.raises(LearningError, match="sum to zero"):
        clone(MODEL).fit(to(X), to(Y), to(0.0 * W))
    with pytest.raises(ValueError, match="NaN"):
        clone(MODEL).fit(to(np.where(X > 2.0, np.nan, X)), to(Y))
    with pytest.raises(ValueError):
        clone(MODEL).fit(to(X), to(Y[:-1]))
    with pytest.raises(LearningError, match="raise the limit"):
        clone(MODEL).set_params(memory_limit=100).fit(to(X), to(Y))


def test_estimators_that_compute_in_numpy_take_the_arrays_too(to: To) -> None:
    model = NystromKRLS(Gaussian(1.0), 1e-2, 60, random_state=0)
    expected = clone(model).fit(X, Y)
    model.fit(to(X), to(Y))
    np.testing.assert_allclose(back(model.predict(to(X))), expected.predict(X), atol=1e-10)


@pytest.mark.parametrize("columns", [1, 2])
def test_an_intercept_is_added_there(to: To, columns: int) -> None:
    signs = np.where(Y[:, :columns] > 0.3, 1.0, -1.0)
    signs = signs[:, 0] if columns == 1 else signs
    model = clone(MODEL).set_params(loss="logistic", fit_intercept=True).fit(X, signs)
    assert np.all(np.abs(model.intercept_) > 0.1)
    predicted = model.predict(to(X))
    assert type(predicted) is type(to(X))
    np.testing.assert_allclose(back(predicted), model.predict(X), atol=1e-10)


def test_off_by_default() -> None:
    torch = pytest.importorskip("torch")
    model = clone(MODEL).fit(torch.from_numpy(X), torch.from_numpy(Y))
    assert isinstance(model.predict(torch.from_numpy(X)), np.ndarray)
