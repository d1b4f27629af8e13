from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from recognition_data import (
    FeatureFile,
    LabelledRows,
    Sizes,
    choose_sizes,
    draw_split,
    read_features,
)

from semiparam_dynamics.base.errors import ConfigurationError, SampleError

from .recognition_files import CLASSES, blobs, one_part, two_parts


def test_one_part_and_its_names(tmp_path: Path) -> None:
    file = read_features(one_part(tmp_path / "a.npz"))
    X, y = blobs()
    np.testing.assert_allclose(file.train.X, X, rtol=1e-6)
    np.testing.assert_array_equal(file.train.numbers, y)
    assert file.names == CLASSES and file.test is None and file.test_counts() is None
    assert file.train_counts().tolist() == [90] * 4
    assert file.class_number("cat") == 2
    with pytest.raises(SampleError, match="no class 'cow'; it has: ant, bee, cat, dog"):
        file.class_number("cow")


def test_two_parts_in_any_letters(tmp_path: Path) -> None:
    X = np.arange(24, dtype=np.uint8).reshape(6, 2, 2)
    np.savez(tmp_path / "a.npz", x_train=X, y_train=list("bbaaba"), x_test=X[:2], y_test=["a", "c"])
    file = read_features(tmp_path / "a.npz")
    np.testing.assert_array_equal(file.train.X, X.reshape(6, 4))
    assert file.names == ("a", "b", "c")
    assert file.train.numbers.tolist() == [1, 1, 0, 0, 1, 0]
    assert file.test is not None and file.test.numbers.tolist() == [0, 2]
    assert file.test_counts().tolist() == [1, 0, 1]
    assert read_features(two_parts(tmp_path / "b.npz")).test_counts().tolist() == [30] * 4


def file_of(*counts: int, test: tuple[int, ...] | None = None) -> FeatureFile:
    """A file with that many rows of each class."""

    def rows(of: tuple[int, ...]) -> LabelledRows:
        numbers = np.repeat(np.arange(len(of)), of)
        return LabelledRows(np.zeros((len(numbers), 1)), numbers)

    names = tuple("abcdefgh"[: len(counts)])
    return FeatureFile(Path("f.npz"), names, rows(counts), None if test is None else rows(test))


def test_the_default_is_the_thesis_where_there_is_enough() -> None:
    thesis = Sizes(1000, 200, (1, 5, 10, 50, 100, 500))
    assert choose_sizes(file_of(1400, 1400)) == thesis
    assert choose_sizes(file_of(1200, 1500, test=(200, 300))) == thesis
    assert thesis.validation == 200


def test_the_default_is_what_there_is_otherwise() -> None:
    # 800 to learn and to choose by: 665 and 133.
    assert choose_sizes(file_of(1000, 1000)) == Sizes(665, 200, (1, 5, 10, 50, 100, 500))
    assert choose_sizes(file_of(60, 100)) == Sizes(40, 12, (1, 5, 10))
    assert choose_sizes(file_of(12, 12, test=(3, 4))) == Sizes(10, 3, (1, 5, 10))


def test_a_small_class_may_be_the_new_one() -> None:
    assert choose_sizes(file_of(30, 1400), new_class=0, test=20).balanced == 1000
    assert choose_sizes(file_of(30, 1400), new_class=0, test=20).new == (1, 5, 10)
    assert choose_sizes(file_of(30, 1400), test=20).balanced < 10


def test_too_few_test_rows_name_the_class() -> None:
    with pytest.raises(ConfigurationError, match="3 test rows of class b, fewer than 4"):
        choose_sizes(file_of(100, 100, test=(5, 3)), test=4)


@pytest.mark.parametrize("make", [one_part, two_parts])
def test_rows_are_disjoint_and_of_the_right_classes(tmp_path: Path, make) -> None:
    file = read_features(make(tmp_path / "a.npz"))
    sizes = Sizes(50, 20, (1, 40))
    split = draw_split(file, sizes, seed=3, trial=1)
    y = file.train.numbers
    used = [split.learned, split.validation, split.stream]
    tested = y if file.test is None else file.test.numbers
    if file.test is None:
        used.append(split.test)
    together = np.concatenate(used)
    assert len(set(together.tolist())) == len(together)
    others = np.arange(4) != split.new_class
    for rows, each in ((split.learned, 50), (split.validation, 10)):
        np.testing.assert_array_equal(np.bincount(y[rows], minlength=4), others * each)
    np.testing.assert_array_equal(y[split.stream], np.full(40, split.new_class))
    np.testing.assert_array_equal(np.bincount(tested[split.test]), [20] * 4)
