"""What every estimator of the library owes its user, and the library's public names."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import semiparam_dynamics.learning as learning
from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning import (
    KRLS,
    NYTRO,
    SGM,
    Falkon,
    Gaussian,
    IncrementalRLSC,
    Iteration,
    KernelClassifier,
    Laplacian,
    Linear,
    Matern,
    NystromAggregator,
    NystromFeatures,
    NystromKRLS,
    NystromSGM,
    Polynomial,
    RandomFeatures,
    RandomFeaturesKRLS,
    RandomFourierFeatures,
    RandomReLUFeatures,
    RecursiveRLS,
    Rows,
)

RNG = np.random.default_rng(0)
X, X_NEW = RNG.standard_normal((90, 3)), RNG.standard_normal((20, 3))
Y = np.column_stack((np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1], X[:, 1] * X[:, 2]))
Y += 0.1 * RNG.standard_normal(Y.shape)
TIMES = RNG.integers(0, 4, len(X))
KERNEL = Gaussian(1.5)
C = X[:15]
STEPS = {"step": [0.05, 0.5], "decay": [0.0, 0.5], "max_iter": [1, 3]}
CENTERS = {"n_centers": [3, 40, 41, 500], "penalty": [1e-2, 1e-7, 1e-12]}


@dataclass
class Case:
    """A regressor, and what holds for it.

    path : a grid of settings that share their work.
    weighted : None: sample weights mean nothing to it.
    chunked : whether it takes Rows, and reads them in blocks within `limit` bytes.
    single : how far its predictions in single precision may be from those in double.
    """

    model: Any
    path: dict[str, list[Any]] | None = None
    weighted: bool = True
    chunked: bool = True
    limit: int | None = 120_000
    single: float = 1e-3

    def fit(self, *data: Any, **settings: Any) -> Any:
        return clone(self.model).set_params(**settings).fit(*data)


CASES: dict[str, Case] = {
    "krls": Case(  # by blocks within the limit
        KRLS(KERNEL, 1e-2, tolerance=1e-10),
        {"penalty": [10.0, 1e-1, 1e-4, 1e-1]},
        limit=30_000,
    ),
    "cutoff": Case(KRLS(KERNEL, 1e-2, "cutoff"), {"penalty": [10.0, 1e-1, 1e-4]}, limit=None),
    "landweber": Case(KRLS(KERNEL, filter="landweber"), {"max_iter": [3, 1, 50, 3]}, limit=None),
    "landweber kernel": Case(
        KRLS(KERNEL, filter="landweber", step="kernel"), {"max_iter": [3, 1, 50]}, limit=None
    ),
    "nu": Case(KRLS(KERNEL, filter="nu", max_iter=20), {"max_iter": [3, 1, 50]}, limit=None),
    "ols": Case(KRLS(Polynomial(1), filter="ols"), {}, limit=None),
    "nystrom": Case(NystromKRLS(KERNEL, 1e-3, 15, random_state=0), CENTERS),
    "nystrom by qr": Case(NystromKRLS(Gaussian(0.8), 1e-12, 10, random_state=0), single=np.inf),
    "nystrom laplacian": Case(NystromKRLS(Laplacian(1.0), 1e-3, 15, random_state=0), CENTERS),
    "nystrom given": Case(NystromKRLS(KERNEL, 1e-3, centers=C), {"penalty": [1e-2, 1e-6]}),
    "falkon": Case(
        Falkon(KERNEL, 1e-2, 15, random_state=0), {"penalty": [1e-2, 1e-3], "max_iter": [3, 1, 60]}
    ),
    "falkon given": Case(Falkon(KERNEL, 1e-2, centers=C, preconditioner_rows=40, random_state=0)),
    "nytro direct": Case(
        NYTRO(KERNEL, centers=C, step="kernel", max_iter=50, solver="direct"),
        {"max_iter": [25, 1, 7]},
    ),
    "nytro gram": Case(
        NYTRO(KERNEL, centers=C, step="spectral", max_iter=50, solver="gram"),
        {"max_iter": [25, 1, 7]},
    ),
    "random features": Case(
        RandomFeaturesKRLS(KERNEL, 1e-3, 40, random_state=0),
        {"n_features": [2, 51, 300], "penalty": [1e-2, 1e-6]},
    ),
    "random features unscaled": Case(
        RandomFeaturesKRLS(KERNEL, 1e-3, 40, random_state=0, scaled=False),
        {"n_features": [2, 51, 300], "penalty": [1e-2, 1e-6]},
    ),
    "random features by qr": Case(
        RandomFeaturesKRLS(KERNEL, 1e-11, 30, "pair", random_state=0),
        {"n_features": [2, 51, 300], "penalty": [1e-12]},
        single=np.inf,
    ),
    "aggregator": Case(NystromAggregator(KERNEL, 1e-3, (5, 15), C)),
    "sgm": Case(SGM(KERNEL, max_iter=2, random_state=0), STEPS, weighted=False),
    "sgm average": Case(SGM(KERNEL, average=True, random_state=0), STEPS, weighted=False),
    "sgm reshuffled": Case(
        SGM(KERNEL, max_iter=2, replacement=False, random_state=0), STEPS, weighted=False
    ),
    "sgm fixed": Case(
        SGM(KERNEL, max_iter=2, replacement="fixed", random_state=0), STEPS, weighted=False
    ),
    "fixed batches": Case(
        NystromSGM(KERNEL, 20, batch_size=7, max_iter=2, replacement="fixed", random_state=0),
        STEPS,
        weighted=False,
    ),
    "nystrom sgm": Case(NystromSGM(KERNEL, 20, max_iter=2, random_state=0), STEPS, weighted=False),
    "small batches": Case(NystromSGM(KERNEL, 20, batch_size=2, random_state=0), STEPS, False),
    "recursive": Case(RecursiveRLS(), chunked=False, single=0.0),
    "recursive nystrom": Case(
        RecursiveRLS(KERNEL, features=NystromFeatures(KERNEL, centers=C)), chunked=False, single=0.0
    ),
}
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
CHECKED: list[Any] = [
    KRLS(),
    NystromKRLS(),
    Falkon(),
    NYTRO(),
    SGM(),
    NystromSGM(),
    RandomFeaturesKRLS(),
    NystromAggregator(),
    RecursiveRLS(random_state=0),
    KernelClassifier(),
    IncrementalRLSC(features="nystrom"),
    IncrementalRLSC(head="discriminant"),
    NystromFeatures(),
    RandomFourierFeatures(n_features=10),
    RandomFeatures(n_features=10, importance="leverage"),
    RandomReLUFeatures(n_features=10),
]


def close(found: Any, expected: Any, tolerance: float = 1e-8) -> None:
    """Equal to rounding; `expected` may have lost its second dimension."""
    scale = max(float(np.abs(expected).max()), 1.0)
    np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("estimator", CHECKED, ids=str)
def test_scikit_learns_conventions(estimator: Any) -> None:
    check_estimator(estimator)


def test_each_public_name_is_there_and_where_it_is_defined() -> None:
    tree = ast.parse(Path(inspect.getfile(learning)).read_text())
    sources = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(learning.__name__)
        for alias in node.names
    }
    assert set(sources) == set(learning.__all__)
    assert set(sources) <= set(dir(learning))
    for name, module in sources.items():
        assert getattr(learning, name).__module__ == module
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        learning.nothing  # noqa: B018
    estimators = {
        name
        for name in learning.__all__
        if isinstance(one := getattr(learning, name), type)
        and issubclass(one, BaseEstimator)
        and not issubclass(one, learning.Kernel)
    }
    assert estimators == {type(estimator).__name__ for estimator in CHECKED}
    assert {type(case.model).__name__ for case in CASES.values()} == {
        name for name in estimators if is_regressor(getattr(learning, name)())
    }


@each
def test_outputs_are_separate_fits_and_have_the_shape_of_y(case: Case) -> None:
    both = case.fit(X, Y).predict(X_NEW)
    assert both.shape == (20, 2)
    for t in range(2):
        one = case.fit(X, Y[:, t]).predict(X_NEW)
        assert one.shape == (20,)
        close(both[:, t], one, 1e-7)
    assert case.fit(X, Y[:, :1]).predict(X_NEW).shape == (20, 1)


@each
def test_equal_seeds_give_equal_fits_and_the_data_are_left_alone(case: Case) -> None:
    inputs, outputs = X.copy(), Y.copy()
    model = case.fit(inputs, outputs)
    expected = model.predict(X_NEW)
    np.testing.assert_array_equal(inputs, X)
    np.testing.assert_array_equal(outputs, Y)
    inputs[:], outputs[:] = 0.0, 0.0  # the model has its own
    np.testing.assert_array_equal(model.predict(X_NEW), expected)
    np.testing.assert_array_equal(case.fit(X, Y).predict(X_NEW), expected)
    if getattr(case.model, "random_state", None) == 0 and not isinstance(
        getattr(case.model, "centers", None), np.ndarray
    ):
        assert (case.fit(X, Y, random_state=1).predict(X_NEW) != expected).any()


@each
def test_integer_weights_are_repeated_rows(case: Case) -> None:
    if not case.weighted:
        with pytest.raises(LearningError, match="weights have no place"):
            case.fit(Rows([(X, Y, TIMES)]))
        return
    model = clone(case.model)
    if hasattr(model, "centers"):  # those that are drawn would be others
        model.set_params(centers=C)
    weighted = clone(model).fit(X, Y, sample_weight=TIMES).predict(X_NEW)
    repeated = clone(model).fit(X.repeat(TIMES, axis=0), Y.repeat(TIMES, axis=0))
    close(weighted, repeated.predict(X_NEW), 1e-7)


@each
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_path_equals_refits(case: Case, weighted: bool) -> None:
    if case.path is None or (weighted and not case.weighted):
        return
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(X)) if weighted else None
    found = list(clone(case.model).path(X, Y, case.path, X_NEW, sample_weight=weights))
    sizes = [len(values) for values in case.path.values()]
    unique = {tuple(setting.items()) for setting, _ in found}
    wanted = int(np.prod([len(set(values)) for values in case.path.values()], dtype=int))
    assert len(unique) == wanted and len(found) in (wanted, int(np.prod(sizes, dtype=int)))
    for setting, predicted in found:
        assert setting.keys() == case.path.keys()
        model = clone(case.model).set_params(**setting)
        model = model.fit(X, Y) if weights is None else model.fit(X, Y, weights)
        # Sums of kernels round by that much of their terms, in whatever order.
        close(predicted, model.predict(X_NEW), 1e-8 + 1e-14 * float(np.abs(model.coef_).sum()))


@each
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_path_leaves_a_fitted_estimator_alone(case: Case) -> None:
    if case.path is None or case.model.get_params().get("centers") is C:
        return
    model = case.fit(X, Y)
    expected = model.predict(X_NEW)
    list(model.path(X[:, :2], Y, {}, X_NEW[:, :2]))
    if hasattr(model, "leave_one_out"):
        list(model.leave_one_out(X[:, :2], Y, {}))
    np.testing.assert_array_equal(model.predict(X_NEW), expected)


@each
def test_single_precision_in_single_precision_out(case: Case) -> None:
    if case.single == 0.0:
        return  # computes in double precision
    single = case.fit(X.astype(np.float32), Y.astype(np.float32)).predict(X_NEW.astype(np.float32))
    assert single.dtype == np.float32 and np.isfinite(single).all()
    if np.isfinite(case.single):
        close(single, case.fit(X, Y).predict(X_NEW), case.single)


@each
def test_centres_given_twice_change_nothing(case: Case) -> None:
    if not hasattr(case.model, "centers") or isinstance(case.model, NystromAggregator):
        return  # the aggregator's candidates have so many of the first centres
    once, twice = (case.fit(X, Y, centers=c) for c in (C, np.repeat(C, 2, axis=0)))
    assert np.count_nonzero(twice.coef_) == np.count_nonzero(once.coef_) == 30
    close(twice.predict(X_NEW), once.predict(X_NEW), 1e-6)


def sources(folder: Path, weights: Any) -> Iterator[tuple[Any, ...]]:
    """The same data in other clothes: arguments of fit."""
    w = () if weights is None else (weights,)
    for name, array in (("X", X), ("y", Y), ("sample_weight", weights)):
        if array is not None:
            np.save(folder / f"{name}.npy", array)
    edges = [0, 1, 7, 55, len(X)]
    parts = [slice(a, b) for a, b in zip(edges, edges[1:], strict=False)]
    yield X, Y, *w
    yield np.load(folder / "X.npy", mmap_mode="r"), Y, *w
    yield (Rows.from_folder(folder),)
    yield (Rows([(X[part], Y[part], *(a[part] for a in w)) for part in parts]),)


@each
def test_chunks_maps_and_memory_limits_are_arrays(case: Case, tmp_path: Path) -> None:
    if not case.chunked:
        return
    weights = np.linspace(0.0, 2.0, len(X)) if case.weighted else None
    arguments = list(sources(tmp_path, weights))
    expected = case.fit(*arguments[0]).predict(X_NEW)
    for data in arguments:
        for limit in (None, case.limit):
            close(case.fit(*data, memory_limit=limit).predict(X_NEW), expected)
    if case.path is not None:
        (rows,) = arguments[-1]
        given = {"sample_weight": weights}
        for (_, one), (_, other) in zip(
            clone(case.model).path(X, Y, case.path, X_NEW, **given),
            clone(case.model).path(rows, None, case.path, X_NEW),
            strict=True,
        ):
            close(one, other, 1e-7)


@each
def test_pipelines_and_searches(case: Case) -> None:
    model = clone(case.model)
    if isinstance(getattr(model, "centers", None), np.ndarray):
        model.set_params(centers="uniform")
    grid = {f"{type(model).__name__.lower()}__kernel": [Gaussian(0.7), Gaussian(2.0)]}
    search = GridSearchCV(make_pipeline(StandardScaler(), model), grid, cv=3).fit(X, Y)
    assert is_regressor(search) and search.predict(X_NEW).shape == (20, 2)
    assert search.score(X, Y) > 0.0


WRONG: list[tuple[Any, str]] = [
    *((make(penalty=0.0), "penalty must be a positive") for make in (KRLS, NystromKRLS, Falkon)),
    (NystromKRLS(penalty=-1.0), "penalty must be a positive"),
    (Falkon(penalty=np.nan), "penalty must be a positive"),
    *(
        (KRLS(penalty=one), "penalty must be a positive number")  # type: ignore[arg-type]
        for one in ("small", [1e-3, 1e-4], np.ones(2))
    ),
    *(
        (NystromKRLS(n_centers=one), "n_centers must be a whole number")  # type: ignore[arg-type]
        for one in (None, "all", [10, 20], np.arange(2), np.nan, np.inf)
    ),
    (RandomFeaturesKRLS(penalty=0.0), "penalty must be a positive"),
    (NystromAggregator(penalty=0.0), "penalty must be a positive"),
    (RecursiveRLS(ridge=0.0), "ridge must be a positive"),
    (KRLS(filter="lasso"), "filter must be one of tikhonov, cutoff"),
    *((make(n_centers=0), "n_centers must be") for make in (NystromKRLS, Falkon, NYTRO)),
    *((make(centers="some"), "centers must be") for make in (NystromKRLS, Falkon, NystromSGM)),
    *((make(kernel=3), "kernel must be a kernel") for make in (KRLS, Falkon, SGM)),
    *((make(max_iter=0), "max_iter must be") for make in (Falkon, NYTRO, SGM)),
    (Falkon(max_iter=2.5), "max_iter must be"),  # type: ignore[arg-type]
    (Falkon(tolerance=-1.0), "tolerance must not be negative"),
    (Falkon(tolerance=np.nan), "tolerance must not be negative"),
    (Falkon(loss="hinge"), "loss must be one of square, logistic"),
    (Falkon(memory_limit=0), "memory_limit must be a positive"),
    (NYTRO(step="big"), "step must be"),
    (NYTRO(step=0.0), "step must be"),
    (NYTRO(solver="qr"), "solver must be"),
    (SGM(step=-1.0), "step must be"),
    (SGM(decay=-0.5), "decay must not"),
    (SGM(replacement="never"), 'replacement must be True, False or "fixed"'),
    (NystromSGM(replacement=2), "replacement must be"),  # type: ignore[arg-type]
    (KRLS(filter="landweber", step="big"), "step must be"),
    (KRLS(filter="landweber", step=-1.0), "step must be"),
    (SGM(validation=1.5), "validation must be a share"),
    (NystromSGM(batch_size=0), "batch_size must be"),
    (RandomFeaturesKRLS(kernel=Linear()), "spectral density"),
    (RandomFeaturesKRLS(kind="sine"), "kind must be"),
    (RandomFeaturesKRLS(n_features=0), "n_features must be a whole number"),
    *(
        (make(n_features=n), "n_features must be a whole number")
        for make in (RandomFeaturesKRLS, RandomFeatures)
        for n in (10.5, "a", None, True)
    ),
    *(
        (NystromAggregator(n_centers=n), "n_centers must be a whole number")
        for n in (10.7, True, "a", np.nan, None, [10, 20.5], [[3, 4], [5]])
    ),
    *(
        (make(tolerance=one), "tolerance must not be negative")
        for make in (Falkon, NYTRO, SGM, NystromSGM)
        for one in ("a", None, [0.1])
    ),
    *(
        (make(**{name: one}), f"{name} must not be negative")
        for make in (SGM, NystromSGM)
        for name in ("decay", "epsilon")
        for one in ("a", None)
    ),
    *((KRLS(filter="nu", nu=one), "nu must be a positive number") for one in ("a", None)),  # type: ignore[arg-type]
    *((KRLS(Polynomial(one)), "degree must be") for one in ("a", None)),  # type: ignore[arg-type]
    *((KRLS(Linear(one)), "offset must not be") for one in ("a", None)),  # type: ignore[arg-type]
    *((KRLS(Gaussian(one)), "length_scale must be a number") for one in ("a", [[1.0, 2.0], [3]])),
    (KRLS(filter=["nu"]), "filter must be one of"),  # type: ignore[arg-type]
    *((RecursiveRLS(forgetting=one), "forgetting must lie") for one in ("a", None)),
    *(
        (Falkon(preconditioner_rows=one), "preconditioner_rows must be a whole number")
        for one in (0, -1, 2.5, "a", np.nan)
    ),
    *((NystromAggregator(n_centers=n), "n_centers must be") for n in ((), (0, 3), 0)),
    (NystromAggregator(centers=C, independent=True), "drawn independently"),
    (RecursiveRLS(features="fourier"), "features must be None"),
    (RecursiveRLS(Matern(), features="random_fourier"), "of a Gaussian kernel only"),
    (RecursiveRLS(forgetting=0.0), "forgetting must lie"),
]


@pytest.mark.parametrize(
    ("model", "sentence"), WRONG, ids=lambda one: re.sub(" at 0x\\w+", "", str(one))[:60]
)
def test_wrong_parameters_are_said(model: Any, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        model.fit(X, Y)


WRONG_GRIDS: list[tuple[Any, dict[str, Any], str]] = [
    (NystromKRLS(), {"kernel": [None]}, "can only go over"),
    (KRLS(filter="nu"), {"penalty": [1.0]}, "can only go over"),
    (Falkon(), {"n_centers": [3]}, "can only go over"),
    (Falkon(loss="logistic"), {"max_iter": [3]}, "can only go over .*penalty"),
    (NYTRO(), {"penalty": [1.0]}, "can only go over .*max_iter"),
    (SGM(), {"penalty": [1.0]}, "can only go over .*step"),
    (NystromKRLS(), {"penalty": []}, "one value or more for penalty, not none"),
    (NystromKRLS(), {"penalty": 1e-3}, "one value or more for penalty, not 0.001"),
    (NystromKRLS(), {"penalty": np.array(1.0)}, "one value or more for penalty"),
    (NystromKRLS(), {"penalty": [0.0]}, "penalty must be"),
    (NystromKRLS(), {"n_centers": [0]}, "n_centers must be"),
    (NystromKRLS(centers=C), {"n_centers": [3]}, "where the centres are given"),
    (RandomFeaturesKRLS(kind="pair"), {"n_features": [1, 10]}, "n_features=1 is too few"),
]


@pytest.mark.parametrize(
    ("model", "grid", "sentence"),
    WRONG_GRIDS,
    ids=lambda one: re.sub(" at 0x\\w+", "", str(one))[:60],
)
def test_wrong_grids_are_said(model: Any, grid: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        list(model.path(X, Y, grid, X_NEW))


HOPELESS: list[tuple[Any, Any, str]] = [
    (KRLS(memory_limit=90 * 90 * 24 - 1, filter="nu"), X, "90 rows needs .* NystromKRLS or Falkon"),
    (KRLS(Polynomial(100)), 1e6 * X, "not finite: scale"),
    (KRLS(lambda A, B: -rbf_kernel(A, B)), X, "not positive semidefinite"),
    (KRLS(lambda A, B: -rbf_kernel(A, B), 1e-3, memory_limit=30_000), X, "not positive semi"),
    (Falkon(memory_limit=100), X, "raise the limit"),
    (Falkon(loss="logistic"), X, "y must be -1 or 1"),
    (NystromKRLS(memory_limit=1000), X, "memory_limit"),
    (SGM(memory_limit=1000), X, "memory_limit"),
    (NYTRO(KERNEL, 80, solver="gram", memory_limit=40_000), X, "Gram"),
    (NYTRO(step=1e6), X, "diverged"),
    (KRLS(filter="landweber", step=1e6), X, "diverges"),
    (SGM(step=1e3, max_iter=50), X, "diverged"),
    (NystromSGM(step=1e3, max_iter=100), X, "diverged"),
    *(
        (make(Linear()), 0.0 * X, "zero on every centre")
        for make in (NYTRO, NystromSGM, NystromKRLS, Falkon)
    ),
    (NystromFeatures(Linear()), 0.0 * X, "zero on every centre"),
]


@pytest.mark.parametrize(
    ("model", "inputs", "sentence"),
    HOPELESS,
    ids=lambda one: re.sub(" at 0x\\w+", "", str(one))[:60],
)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_what_cannot_be_computed_is_said(model: Any, inputs: Any, sentence: str) -> None:
    with pytest.raises(LearningError, match=sentence):
        model.fit(inputs, Y)


@pytest.mark.parametrize("model", [KRLS(), NystromSGM(max_iter=100)], ids=str)
def test_rows_so_far_away_that_kernels_are_rounding_are_named(model: Any) -> None:
    far = np.random.default_rng(0).standard_normal((300, 3)).astype(np.float32)
    far[:60] += 9999.0
    with pytest.raises(LearningError, match="far from the others") as caught:
        model.fit(far, far[:, 0])
    assert "None chooses" not in str(caught.value)


@pytest.mark.parametrize("model", [Falkon(), NYTRO(), SGM(), NystromSGM()], ids=str)
def test_validation_data_that_do_not_fit_are_refused(model: Any) -> None:
    with pytest.raises(LearningError, match="outputs"):
        model.fit(X, Y, validation_data=(X, Y[:, 0]))
    with pytest.raises(LearningError, match="20 and 90 rows"):
        model.fit(X, Y, validation_data=(X_NEW, Y))
    for wrong in (X, (X, Y, Y), (X,)):
        with pytest.raises(ConfigurationError, match="validation_data must be"):
            model.fit(X, Y, validation_data=wrong)


@pytest.mark.parametrize(
    "model",
    [
        Falkon(KERNEL, 1e-6, 15, preconditioner_rows=None),
        NYTRO(KERNEL),
        SGM(KERNEL),
        NystromSGM(KERNEL),
    ],
    ids=str,
)
def test_validation_errors_are_those_met_and_a_callback_ends_the_fit(model: Any) -> None:
    seen: list[Iteration] = []

    def stop_at_five(iteration: Iteration) -> bool:
        seen.append(iteration)
        return iteration.number == 5

    new = np.column_stack((np.sin(2.0 * X_NEW[:, 0]), X_NEW[:, 1]))
    model = clone(model).set_params(callback=stop_at_five, random_state=0)
    model.fit(X, Y, validation_data=(X_NEW, new))
    errors = [iteration.validation_error for iteration in seen]
    assert [i.number for i in seen] == [1, 2, 3, 4, 5] and errors == list(model.validation_errors_)
    best = 5 if isinstance(model, Falkon) else 1 + int(np.argmin(errors))
    assert model.n_iter_ == best
    kept = np.mean((model.predict(X_NEW) - new) ** 2)
    np.testing.assert_allclose(errors[best - 1], kept, rtol=1e-8)
    without = clone(model).fit(X, Y)
    assert without.n_iter_ == 5 and seen[-1].validation_error is None
    for again in (without, model.fit(X, Y)):  # what an earlier fit found is gone
        assert len(getattr(again, "validation_errors_", ())) == 0


@pytest.mark.parametrize(
    "model",
    [Falkon(KERNEL, 1e-6, 15, max_iter=3), NYTRO(KERNEL, 15, max_iter=3)],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_of_validation_rows_count(model: Any) -> None:
    model = clone(model).set_params(random_state=0)
    held, times = np.column_stack((np.sin(2.0 * X_NEW[:, 0]), X_NEW[:, 1])), np.arange(20) % 3
    weighted = model.fit(X, Y, validation_data=Rows([(X_NEW, held, times)])).validation_errors_
    repeated = model.fit(X, Y, validation_data=(X_NEW.repeat(times, 0), held.repeat(times, 0)))
    np.testing.assert_allclose(weighted, repeated.validation_errors_, rtol=1e-9)


def test_weights_that_make_no_sense_are_refused() -> None:
    for model in (KRLS(), Falkon(), RecursiveRLS(), KernelClassifier()):
        y = Y[:, 0] > 0.0 if isinstance(model, KernelClassifier) else Y
        for weights in (-np.ones(90), np.ones(89), np.full(90, np.nan), np.ones((90, 1))):
            with pytest.raises(LearningError, match="one for each row, and not negative"):
                model.fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="zero"):  # scikit-learn's own from 1.9 on
        KernelClassifier().fit(X, Y[:, 0] > 0.0, np.zeros(90))
    model = RecursiveRLS().fit(X, Y)
    with pytest.raises(LearningError, match="1 outputs"):
        model.partial_fit(X, Y[:, 0])


def test_classes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(LearningError, match="one class"):
        KernelClassifier().fit(X, np.zeros(90, dtype=int))
    for wrong in ("even", 3):
        with pytest.raises(ConfigurationError, match="class_weight"):
            KernelClassifier(class_weight=wrong).fit(X, Y[:, 0] > 0.0)


@pytest.mark.parametrize("model", [case.model for case in CASES.values()], ids=list(CASES))
def test_labels_for_a_regressor_are_refused_with_what_learns_them(model: Any) -> None:
    for labels in (np.where(Y[:, 0] > 0.0, "left", "right"), ["1.5", *["left"] * 89]):
        with pytest.raises(LearningError, match=r"labels \('(left|right)'\): KernelClassifier"):
            clone(model).fit(X, labels)
    with pytest.raises(ValueError, match="NaN"):  # what is no label is scikit-learn's to say
        clone(model).fit(X, np.full(90, np.nan))


@pytest.mark.parametrize("features", [RandomFourierFeatures(6), RandomReLUFeatures(5)])
def test_random_features_have_names_for_tables(features: Any) -> None:
    X = np.random.default_rng(0).standard_normal((20, 3))
    names = features.set_output(transform="default").fit(X).get_feature_names_out()
    assert len(names) == features.transform(X).shape[1] == len(set(names))
    assert names[0] == f"{type(features).__name__.lower()}0"
