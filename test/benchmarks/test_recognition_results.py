from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recognition_data import FeatureFile, LabelledRows, Sizes, read_features
from recognition_protocol import Protocol, ProtocolResult, Score, run_protocol
from recognition_results import (
    MNIST_COUNTS,
    recognition_table,
)

from .recognition_files import one_part


@pytest.fixture(scope="module")
def result(tmp_path_factory) -> ProtocolResult:
    file = read_features(one_part(tmp_path_factory.mktemp("features") / "pets.npz"))
    protocol = Protocol(
        Sizes(40, 20, (1, 6)), trials=3, penalties=(0.1, 10.0), tolerance=0.05, new_class=3
    )
    return run_protocol(file, protocol)


def cells(table: str) -> list[list[str]]:
    """The cells of the rows that begin with a number."""
    rows = re.findall(r"^\| (\d+ .*) \|$", table, re.MULTILINE)
    return [[cell.strip() for cell in row.split("|")] for row in rows]


def test_the_table_s_numbers_are_those_of_the_scores(result) -> None:
    table = recognition_table(result)
    rows = cells(table)
    names = ["naive", "rebalanced", "recoding", "recoding, tolerance 0.05 *"]
    assert [row[:2] for row in rows] == [[n, name] for n in ("1", "6") for name in names]
    keys = dict(zip(names, ("naive", "rebalanced", "recoding", "recoding_tolerance"), strict=True))
    for n, name, total, fresh, _, _ in rows:
        for cell, quantity in ((total, "total"), (fresh, "new_class")):
            of = [s for s in result.scores if (s.new, s.method) == (int(n), keys[name])]
            values = [100 * getattr(score, quantity) for score in of]
            assert len(values) == 3
            mean, deviation, error = map(float, re.findall(r"[\d.]+", cell))
            assert mean == pytest.approx(np.mean(values), abs=0.0501)
            spread = np.sqrt(sum((v - np.mean(values)) ** 2 for v in values) / 2)
            assert deviation == pytest.approx(spread, abs=0.0501)
            assert error == pytest.approx(spread / np.sqrt(3), abs=0.0501)
    assert "pets.npz: 4 classes of 6 inputs" in table and "New class: dog" in table
    assert "thesis' rule" in table and "Beside the thesis" not in table


def made(counts: tuple[int, ...], balanced: int = 1000) -> ProtocolResult:
    """Two trials of a file with these numbers of rows: totals of 0.78 and 0.80, new class 0."""
    numbers = np.repeat(np.arange(len(counts)), counts)
    rows = LabelledRows(np.zeros((len(numbers), 1)), numbers)
    file = FeatureFile(Path("f.npz"), tuple(map(str, range(len(counts)))), rows, None)
    protocol = Protocol(Sizes(balanced, 200, (1, 2)), trials=2, tolerance=0.0)
    naive = Score(0, 1, "naive", 0.78, 0.0, 0.9, 0.0, 1.0, 0.9)
    scores = [
        replace(naive, trial=trial, new=new, method=method, total=total)
        for trial, total in enumerate((0.78, 0.80))
        for new in (1, 2)
        for method in ("naive", "recoding", "rebalanced")
    ]
    return ProtocolResult(file, protocol, scores, [0, 1])


def test_mnist_stands_beside_the_thesis() -> None:
    table = recognition_table(made(MNIST_COUNTS))
    (naive, _, recoding) = cells(table[table.index("Beside") :])
    # Differences of -0.2 and -0.7 with standard deviation sqrt 2 and standard errors 1 here, 0.3
    # and 0.6 there; the thesis has no row for 2 examples.
    assert naive[2:5] == ["79.0", "79.2 ± 0.3", "-0.2 (-0.1 sd, -0.2 se)"]
    assert naive[5:] == ["0.0", "0.0 ± 0.0", "0.0"]
    assert recoding[2:5] == ["79.0", "79.7 ± 0.6", "-0.7 (-0.5 sd, -0.6 se)"]
    assert recoding[5:] == ["0.0", "9.5 ± 4.9", "-9.5 (– sd, -1.9 se)"]
