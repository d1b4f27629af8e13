"""Rows from every source, refused data and memory limits."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning import (
    KRLS,
    NYTRO,
    SGM,
    Falkon,
    Gaussian,
    Linear,
    NystromKRLS,
    NystromSGM,
    RandomFeaturesKRLS,
)
from semiparam_dynamics.learning import rows as rows_module
from semiparam_dynamics.learning.rows import Rows, free_memory, memory_budget, training_rows

RNG = np.random.default_rng(0)
X, Y, W = RNG.standard_normal((23, 3)), RNG.standard_normal((23, 2)), RNG.uniform(0, 2, 23)
CUTS = (0, 5, 6, 20, 23)
CHUNKS = [(X[i:j], Y[i:j], W[i:j]) for i, j in zip(CUTS, CUTS[1:], strict=False)]

ESTIMATORS = [
    KRLS(Gaussian(2.0)),
    NystromKRLS(Gaussian(2.0), 1e-3, 15, random_state=0),
    NystromKRLS(Gaussian(2.0), 1e-3, centers=np.zeros((1, 3))),
    Falkon(Gaussian(2.0), 1e-3, 15, random_state=0),
    Falkon(Gaussian(2.0), 1e-3, centers=np.zeros((1, 3))),
    Falkon(Gaussian(2.0), 1e-3, 15, random_state=0, memory_limit=20_000),
    NYTRO(Gaussian(2.0), 15, random_state=0),
    NYTRO(Gaussian(2.0), centers=np.zeros((1, 3))),
    RandomFeaturesKRLS(n_features=10, random_state=0),
    SGM(Gaussian(2.0), random_state=0),
    NystromSGM(Gaussian(2.0), 15, random_state=0),
    NystromSGM(Gaussian(2.0), centers=np.zeros((1, 3)), random_state=0),
]


def npy_folder(folder: Path) -> Rows:
    for name, array in (("X", X), ("y", Y), ("sample_weight", W)):
        np.save(folder / f"{name}.npy", array)
    return Rows.from_folder(folder)


def npz_folder(folder: Path) -> Rows:
    for i, (x, y, w) in enumerate(CHUNKS):
        np.savez(folder / f"part{i:03}.npz", X=x, y=y, sample_weight=w)
    return Rows.from_folder(folder)


def memory_maps(folder: Path) -> Rows:
    npy_folder(folder)
    return Rows.from_arrays(*(np.load(folder / f"{n}.npy", "r") for n in ("X", "y")), W)


EMPTY = (np.empty((0, 3)), np.empty((0, 2)), np.empty(0))
SOURCES: dict[str, Any] = {
    "arrays": lambda folder: Rows.from_arrays(X, Y, W),
    "lists": lambda folder: Rows.from_arrays(X.tolist(), Y.tolist(), W.tolist()),
    "list of chunks": lambda folder: Rows(CHUNKS),
    "some without rows": lambda folder: Rows([EMPTY, CHUNKS[0], EMPTY, *CHUNKS[1:]]),
    "function": lambda folder: Rows(lambda: (chunk for chunk in CHUNKS)),
    "npy": npy_folder,
    "npz": npz_folder,
    "memmap": memory_maps,
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_rows(source: str, tmp_path: Path) -> None:
    rows = SOURCES[source](tmp_path)
    assert (rows.n_samples, rows.n_features, rows.n_outputs) == (23, 3, 2)
    assert rows.weighted and not rows.one_output
    assert rows.total_weight == pytest.approx(W.sum(), rel=1e-14)
    for size in (1, 4, 1000):
        blocks = list(rows.blocks(size))
        assert max(len(block.X) for block in blocks) <= size
        np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), X)
        np.testing.assert_array_equal(np.concatenate([b.Y for b in blocks]), Y)
        np.testing.assert_array_equal(np.concatenate([b.weights for b in blocks]), W)
    chosen = np.array([22, 0, 7, 7, 5])
    np.testing.assert_array_equal(rows.take(chosen), X[chosen])
    np.testing.assert_array_equal(rows.weights(), W)


def test_precision_is_the_arrays_or_as_asked() -> None:
    single = X.astype(np.float32)
    assert Rows.from_arrays(single, Y).dtype == np.float32
    assert Rows.from_arrays(np.arange(6).reshape(3, 2), np.ones(3)).dtype == np.float64
    rows = Rows(CHUNKS, np.float32)
    assert {part.X.dtype for part in rows.blocks(5)} == {np.dtype(np.float32)}


@pytest.mark.parametrize("model", [ESTIMATORS[0], ESTIMATORS[1], ESTIMATORS[3]], ids=str)
def test_outputs_that_single_precision_lacks_are_refused(model: Any) -> None:
    single, y = X.astype(np.float32), Y[:, 0]
    for scale in (1e60, 1e39, 1e-60):
        with pytest.raises(LearningError, match="scale y, or pass X in float64"):
            clone(model).fit(single, scale * y)
        double = clone(model).fit(X, scale * y).predict(X) / scale
        np.testing.assert_allclose(double, clone(model).fit(X, y).predict(X), rtol=1e-6, atol=1e-9)
    for scale in (1.0, 2.0**100, 2.0**-100):
        found = clone(model).fit(single, scale * y).predict(single)
        assert found.dtype == np.float32
        same = clone(model).fit(single, (scale * y).astype(np.float32)).predict(single)
        np.testing.assert_array_equal(found, same)
        np.testing.assert_allclose(found / scale, clone(model).fit(single, y).predict(single), 1e-4)
    with pytest.raises(LearningError, match="infinity"):
        clone(model).fit(Rows([(single, 1e60 * y)], np.float32))


def test_what_can_be_read_only_once_is_refused() -> None:
    with pytest.raises(LearningError, match="only once"):
        Rows(chunk for chunk in CHUNKS)
    once = iter(CHUNKS)
    rows = Rows(lambda: once)  # a function that doesn't make it
    for read in (
        rows.whole,
        rows.weights,
        rows.squared_outputs,
        lambda: rows.take(np.array([1])),
        lambda: list(rows.blocks(4)),
    ):
        with pytest.raises(LearningError, match="only once"):
            read()


@pytest.mark.parametrize("model", ESTIMATORS, ids=str)
@pytest.mark.parametrize("later", [0, 9, 46])
def test_each_pass_must_bring_as_many_rows(model: Any, later: int) -> None:
    twice, passes = (np.vstack((X, X)), np.vstack((Y, Y))), 0

    def chunks() -> Any:
        nonlocal passes
        passes += 1
        n = 23 if passes == 1 else later
        for i in range(0, n, 10):
            yield tuple(array[i : min(i + 10, n)] for array in twice)

    with pytest.raises(LearningError, match="The data are read more than once"):
        clone(model).fit(Rows(chunks))


BAD_CHUNKS: list[tuple[list[Any], str]] = [
    ([], "no rows"),
    ([(X,)], r"must be \(X, y\)"),
    ([(X[:, 0], Y)], r"must be \(rows, inputs\)"),
    ([(X, Y[:5])], "as many rows as y"),
    ([(X, Y), (X[:, :2], Y)], "2 inputs and 2 outputs where the first had 3 and 2"),
    ([(X, Y), (X, Y[:, 0])], "1 outputs"),
    ([(X, Y), (X, Y, W)], "only one of them has weights"),
    ([(X, Y, W[:3])], "one for each row"),
    ([(X, Y, -W)], "not negative"),
    ([(X, Y, 0 * W)], "sum to zero"),
    ([(X, Y, np.full(23, np.nan))], "weights must be"),
    ([(np.where(X > 1.9, np.nan, X), Y)], "X contains"),
    ([(X, Y), (X, np.full((23, 2), np.inf))], "y contains"),
]


@pytest.mark.parametrize(("chunks", "message"), BAD_CHUNKS)
def test_bad_chunks_are_refused(chunks: list[Any], message: str) -> None:
    assert X.max() > 1.9  # so that there is a NaN
    with pytest.raises(LearningError, match=message):
        Rows(chunks)


def test_bad_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LearningError, match="neither X.npy"):
        Rows.from_folder(tmp_path)
    np.savez(tmp_path / "a.npz", X=X)
    with pytest.raises(LearningError, match="needs arrays X and y"):
        Rows.from_folder(tmp_path)
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(LearningError, match="no y.npy"):
        Rows.from_folder(tmp_path)
    with pytest.raises(LearningError, match="23 rows and y has 5"):
        Rows.from_arrays(X, Y[:5])


def test_training_rows_are_checked_and_counted() -> None:
    model = Ridge()
    rows = training_rows(model, X.tolist(), Y[:, 0].tolist(), W.tolist())
    assert (model.n_features_in_, rows.one_output, rows.weighted) == (3, True, True)
    assert training_rows(model, rows, None) is rows
    with pytest.raises(LearningError, match="bring their y"):
        training_rows(model, rows, Y)
    with pytest.raises(ValueError, match="NaN"):
        training_rows(model, X * np.nan, Y)


def test_a_memory_map_isn_t_copied(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", "r")
    rows = training_rows(Ridge(), mapped, Y)
    assert all(np.shares_memory(block.X, mapped) for block in rows.blocks(7))


def test_maps_that_are_no_rows_are_refused_as_arrays_are(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X[:, 0])
    with pytest.raises(ValueError, match="Expected 2D array"):
        training_rows(Ridge(), np.load(tmp_path / "X.npy", "r"), Y)


def test_rows_and_maps_have_no_names_of_an_earlier_fit(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X)
    for arguments in ((Rows([(X, Y)]), None), (np.load(tmp_path / "X.npy", "r"), Y)):
        model = Ridge()
        model.feature_names_in_ = np.array(["a", "b", "c"], dtype=object)
        training_rows(model, *arguments)
        assert model.n_features_in_ == 3 and not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("version", [1, 2])
def test_what_is_free_is_within_the_containers_limit(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "CONTROL_GROUPS", tmp_path)
    machine = free_memory()
    prefix = "total_" if version == 1 else ""
    files = {
        "memory.max": "5000000",
        "memory.current": "4000000",
        "memory.stat": f"anon 1\n{prefix}inactive_file 70000\n{prefix}active_file 30000\n",
    }
    if version == 1:
        names = ("limit_in_bytes", "usage_in_bytes", "stat")
        files = {
            f"memory/memory.{name}": text for name, text in zip(names, files.values(), strict=True)
        }
        (tmp_path / "memory").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert free_memory() == 1_100_000 and memory_budget(None) == 275_000
    for unlimited in ("max", str(2**63 - 4096)):
        (tmp_path / next(iter(files))).write_text(unlimited)
        assert 0.5 * machine < free_memory() < 2.0 * machine


@pytest.mark.parametrize("limit", [0, -1, np.nan, "1 GB"])
def test_a_limit_must_be_positive(limit: Any) -> None:
    with pytest.raises(ConfigurationError, match="positive number of bytes"):
        memory_budget(limit)


def test_inputs_that_nobody_scaled_are_told() -> None:
    inputs = np.random.default_rng(1).uniform(0.0, 1000.0, (300, 6))
    model = NystromKRLS(Gaussian(1.0), n_centers=50)
    with pytest.warns(UserWarning, match="nearly zero between all rows of X.*StandardScaler"):
        model.fit(inputs, inputs[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit((inputs - 500.0) / 300.0, inputs[:, 0])
        clone(model).set_params(kernel=Linear()).fit(inputs, inputs[:, 0])
        # Narrow, but each row has others beside it.
        line = np.linspace(0.0, 1.0, 3000)[:, None]
        clone(model).set_params(kernel=Gaussian(length_scale=1e-3)).fit(line, line[:, 0])


NUMBERS = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("chunk", "sentence"),
    [
        ((NUMBERS, ["1", "b"]), r"labels \('b'\): KernelClassifier"),
        ((NUMBERS, np.array(["a", "b"])), r"labels \('[ab]'\): KernelClassifier"),
        ((NUMBERS, np.array([b"a", b"b"])), "y is no array of numbers"),
        ((NUMBERS, [[1.0, 2.0], [3.0]]), "y is no array of numbers: .*inhomogeneous"),
        (([[1.0, 2.0], [3.0]], [1.0, 2.0]), "X is no array of numbers: .*inhomogeneous"),
        ((NUMBERS, [1.0, 2.0], ["a", "b"]), "sample_weight is no array of numbers"),
    ],
)
def test_chunks_that_are_no_numbers_are_refused(chunk: Any, sentence: str) -> None:
    with pytest.raises(LearningError, match=sentence):
        Rows([chunk])
    with pytest.raises(LearningError, match=sentence):
        Rows.from_arrays(*chunk)
