from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from recognition_data import FeatureFile, LabelledRows, read_features
from recognition_splits import Sizes, choose_sizes, draw_split

from semiparam_dynamics.errors import ConfigurationError

from .recognition_files import one_part, two_parts


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


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"balanced": 70}, "enough for 66 balanced examples"),
        ({"balanced": 4}, "not 4 .at least 5."),
        ({"test": 97}, "enough for 2 balanced"),
        ({"test": 0}, "rows to test on"),
        ({"new": [1, 81]}, r"has 80 rows .* \[1, 81\]"),
        ({"new": [0, 5]}, "between 1 and that"),
        ({"new": []}, "between 1 and that"),
    ],
)
def test_what_there_is_not_is_refused(asked, message) -> None:
    with pytest.raises(ConfigurationError, match=message):
        choose_sizes(file_of(100, 100), **asked)


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


def test_trials_differ_and_can_be_repeated(tmp_path: Path) -> None:
    file = read_features(one_part(tmp_path / "a.npz"))
    sizes = Sizes(50, 20, (1,))
    splits = [draw_split(file, sizes, 0, trial) for trial in range(20)]
    again = draw_split(file, sizes, 0, 7)
    np.testing.assert_array_equal(splits[7].learned, again.learned)
    np.testing.assert_array_equal(splits[7].test, again.test)
    assert {split.new_class for split in splits} == {0, 1, 2, 3}
    assert not np.array_equal(splits[0].test, splits[1].test)
    fixed = draw_split(file, sizes, 0, 7, new_class=2)
    assert fixed.new_class == 2
    assert not np.array_equal(splits[7].test, draw_split(file, sizes, 1, 7).test)
