from __future__ import annotations

import json
from pathlib import Path

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
