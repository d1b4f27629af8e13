from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from .recognition_files import one_part, two_parts

SHORT = ["--trials", "2", "--penalties", "0.1,1,10", "--balanced", "40", "--test", "20"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return one_part(tmp_path / "pets.npz")


def test_the_table_is_printed_and_the_files_are_written(
    thesis, file, tmp_path: Path, capsys
) -> None:
    out = tmp_path / "made" / "here"
    arguments = [*SHORT, "--new", "5,1", "--new-class", "bee", "--out", str(out)]
    assert thesis(["recognize", str(file), *arguments]) == 0
    told = capsys.readouterr()
    table = (out / "table.md").read_text()
    assert told.out.startswith(table) and "\r" not in told.err
    assert told.out.split()[-3:] == [
        str(out / name) for name in ("table.md", "figure72.png", "figure73.png")
    ]
    assert table.count("| recoding |") == 2 and "New class: bee" in table
    assert json.loads((out / "results.json").read_text())["new_classes"] == ["bee", "bee"]
    for name in ("figure72.png", "figure73.png"):
        image = imread(out / name)
        assert min(image.shape[:2]) > 500 and image[..., :3].std() > 0.05


def test_sizes_that_are_not_given_are_what_the_file_has(thesis, file, capsys) -> None:
    assert thesis(["recognize", str(file), "--trials", "1", "--new-class", "ant"]) == 0
    told = capsys.readouterr()
    assert "rows for 60 balanced examples of each class, not the thesis' 1000" in told.err
    assert "60 examples to learn and 12 to choose by; tested on 18" in told.out
    assert "| 50 | naive |" in told.out and "| 100 | naive |" not in told.out


def test_each_of_several_files_has_its_table_and_folder(
    thesis, file, tmp_path: Path, capsys
) -> None:
    other = two_parts(tmp_path / "others.npz")
    arguments = [*SHORT, "--new", "3", "--seed", "4", "--out", str(tmp_path / "out")]
    assert thesis(["recognize", str(file), str(other), *arguments]) == 0
    printed = capsys.readouterr().out
    tables = [(tmp_path / "out" / name / "table.md").read_text() for name in ("pets", "others")]
    assert all(table in printed for table in tables) and "others.npz" in tables[1]
    assert "test part" in tables[1] and "test part" not in tables[0]
    assert thesis(["recognize", str(file), str(file), *arguments]) == 2
    assert "the same name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--balanced", "70"], "enough for 60 balanced examples"),
        (["--new", "1,73"], "has 72 rows to learn of the new class"),
        (["--new-class", "cow"], "no class 'cow'; it has: ant, bee, cat, dog"),
        (["--trials", "0"], "at least one trial"),
        (["--penalties", "1,-1"], "penalties must be positive"),
        (["--tolerance", "2"], "tolerance"),
    ],
)
def test_a_mistake_is_one_line(thesis, file, capsys, arguments, message) -> None:
    assert thesis(["recognize", str(file), *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == "" and message in told.err
    assert told.err.splitlines()[-1].startswith("thesis: error:")


def test_a_file_that_is_none_and_a_folder_that_cannot_be(
    thesis, file, tmp_path: Path, capsys
) -> None:
    assert thesis(["recognize", str(tmp_path / "nowhere.npz")]) == 2
    assert "there is no file" in capsys.readouterr().err
    np.savez(tmp_path / "bad.npz", X=np.full((4, 2), np.nan), y=[0, 1, 0, 1])
    assert thesis(["recognize", str(tmp_path / "bad.npz")]) == 2
    assert "4 rows of 'X' are not finite" in capsys.readouterr().err
    (tmp_path / "taken").write_text("")
    assert thesis(["recognize", str(file), *SHORT, "--out", str(tmp_path / "taken")]) == 2
    assert "taken can't be made" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--new", "1;5"], "--new: '1;5' isn't whole numbers like 1,5,10"),
        (["--penalties", "a"], "--penalties: 'a' isn't numbers like 0.1,1,10"),
        (["--scale", "half"], "--scale"),
    ],
)
def test_text_that_is_no_number_is_refused(thesis, file, capsys, arguments, message) -> None:
    with pytest.raises(SystemExit) as end:
        thesis(["recognize", str(file), *arguments])
    assert end.value.code == 2 and message in capsys.readouterr().err
