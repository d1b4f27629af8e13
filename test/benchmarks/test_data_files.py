"""Tables of data sets with files of their own, from small files in the published formats."""

from __future__ import annotations

import gzip
import re
import zipfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import falkon_tables_2_and_3
import numpy as np
import pytest
from scipy.sparse import random as sparse_random
from scipy.sparse import save_npz
from sklearn.datasets import dump_svmlight_file

from semiparam_dynamics.base.errors import SampleError

from .test_scripts import run as run  # a fixture

N = 400


@pytest.fixture
def data_files(monkeypatch: pytest.MonkeyPatch) -> Any:
    import importlib

    from ..documents import ROOT

    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "tables"))
    return importlib.import_module("data_files")


@pytest.fixture
def made() -> tuple[np.ndarray, np.ndarray]:
    """Inputs (N, 22) and a function of them."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (N, 22))
    return X, X[:, 0] + X[:, 1] ** 2


def csv(columns: list[np.ndarray]) -> str:
    table = np.column_stack(columns)
    return "".join(",".join(f"{value:.17g}" for value in row) + "\n" for row in table)


def test_each_format_gives_the_numbers_that_were_written(data_files, made, tmp_path: Path) -> None:
    X, y = made
    songs = tmp_path / "YearPredictionMSD.txt.zip"
    with zipfile.ZipFile(songs, "w") as archive:
        archive.writestr("YearPredictionMSD.txt", csv([y, X]))
    part = data_files.million_songs([songs], 0)
    np.testing.assert_array_equal(part.X_test, X[360:])
    np.testing.assert_array_equal(np.sort(part.y), np.sort(y[:360]))
    unit = data_files.FILES["YearPrediction"].read([songs], 0)
    assert (unit.y.min(), unit.y.max()) == (0.0, 1.0)
    np.testing.assert_array_equal(unit.X, part.X)

    kinds = np.arange(N) % 7 + 1.0
    cover = tmp_path / "covtype.data.gz"
    cover.write_bytes(gzip.compress(csv([X, kinds]).encode()))
    part = data_files.FILES["CovertypeBinary"].read([cover], 1)
    assert len(part.X) == 360 and sum(part.y == 1.0) + sum(part.y_test == 1.0) == sum(kinds == 2.0)
    row = np.flatnonzero((X == part.X[0]).all(axis=1))
    assert len(row) == 1 and part.y[0] == (1.0 if kinds[row[0]] == 2.0 else -1.0)

    slices = tmp_path / "slice_localization_data.csv"
    slices.write_text("patientId," + "v," * 22 + "reference\n" + csv([kinds, X, y]))
    part = data_files.FILES["CT slices"].read([slices], 2)
    assert part.X.shape == (320, 22) and part.X_test.shape == (80, 22)
    row = np.flatnonzero((X == part.X_test[5]).all(axis=1))
    assert part.y_test[5] == y[row[0]]

    rows, tested = tmp_path / "ijcnn1", tmp_path / "ijcnn1.t"
    dump_svmlight_file(X, np.sign(y), str(rows), zero_based=False)
    dump_svmlight_file(X[:50], np.sign(y[:50]), str(tested), zero_based=False)
    part = data_files.FILES["ijcnn1"].read([rows, tested], 3)
    np.testing.assert_allclose(part.X_test, X[:50], rtol=1e-12)
    assert set(part.y) == {-1.0, 1.0} and len(part.y) == N


def test_the_thesis_tables_take_them(run, made, tmp_path: Path, data_folder: Path) -> None:
    X, y = made
    paths = [str(tmp_path / name) for name in ("ijcnn1", "ijcnn1.t")]
    for path in paths:
        dump_svmlight_file(X, np.sign(y - 0.3), path, zero_based=False)
    own = ["--files", *paths]
    few = ["--trials", "1", "--m", "30", "--published-trials", "1"]
    output = run("tables/table_4_3.py", str(data_folder), "--sets", "ijcnn1", *own, *few)
    assert "ijcnn1: n = 400" in output and "NYTRO, published settings" in output
    assert "published settings: inputs raw, 1 trials" in output
    assert output.count("not run") == 3 and "nan" not in output
    sets = ["--sets", "ijcnn1", "--full-passes", "2", "--published"]
    output = run("tables/table_6_2.py", str(data_folder), *sets, *own)
    assert "ijcnn1, published settings: n = 400" in output and "nan" not in output
    slices = tmp_path / "slices.csv"
    slices.write_text("a" + ",b" * 23 + "\n" + csv([np.zeros(N), X, y]))
    sizes = ["--set", "CT slices", "--file", str(slices), "--trials", "1", "--largest", "64"]
    output = run("tables/table_4_1_and_5_1.py", str(data_folder), *sizes)
    error = float(re.search(r"Nyström, m chosen\s*\|[^|]*\|\s*([\d.]+)", output)[1])
    assert "CT slices: 320 training rows" in output and error < 0.6 * np.std(y)
    songs = tmp_path / "YearPredictionMSD.txt"
    songs.write_text(csv([y, X]))
    sizes = ["--set", "YearPrediction", "--file", str(songs), "--trials", "1", "--largest", "64"]
    output = run("tables/table_4_1_and_5_1.py", str(data_folder), *sizes)
    assert "YearPrediction: 360 training rows" in output  # the set's own split, whatever the share


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_falkon_takes_sparse_rows_in_the_precision_asked_for(tmp_path: Path, dtype: str) -> None:
    X = sparse_random(300, 20, 0.3, "csr", random_state=0)
    y = X @ np.tile([1.0, -1.0], 10)  # of mean zero: the kernel has no offset
    files = [tmp_path / "grams.npz", tmp_path / "stars.npy"]
    save_npz(files[0], X)
    np.save(files[1], y)
    part = falkon_tables_2_and_3.read("YELP", files, 0)
    assert part.X.shape == (240, 20) and part.X_test.shape == (60, 20)
    options = {"penalty": None, "centers": 100, "iterations": 20, "preconditioner_rows": None}
    asked = Namespace(dtype=dtype, seed=0, verbose=False, **options)
    found, _, fitted = falkon_tables_2_and_3.run("YELP", part, asked)
    assert fitted.centers_.dtype == dtype and found["RMSE"] < 0.5 * y.std()
    with pytest.raises(SampleError, match="YELP's files can't be read"):
        falkon_tables_2_and_3.read("YELP", files[::-1], 0)


def test_falkon_takes_files_of_two_classes_and_of_more(run, made, tmp_path: Path) -> None:
    X, y = made
    table = tmp_path / "SUSY.csv"
    table.write_text(csv([y > 0.3, X[:, :18]]))
    few = ["--centers", "60", "--penalty", "1e-4", "--dtype", "float64"]
    output = run("tables/falkon_tables_2_and_3.py", "SUSY", str(table), *few)
    error = float(re.search(r"classification error\s*\|\s*([\d.]+)", output)[1])
    assert "320 rows to train on" in output and error < 15.0
    classes = np.digitize(y, np.quantile(y, (1 / 3, 2 / 3)))
    np.savez(tmp_path / "timit.npz", X=X, y=classes)
    output = run("tables/falkon_tables_2_and_3.py", "TIMIT", str(tmp_path / "timit.npz"), *few)
    assert float(re.search(r"classification error\s*\|\s*([\d.]+)", output)[1]) < 50.0
