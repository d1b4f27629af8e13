"""Files of results: tried before the work, written whole or not at all, the ones before kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from semiparam_dynamics.base.errors import StorageError
from semiparam_dynamics.base.output_files import check_replaced, reserved, write_files


def test_what_is_replaced_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "results.json"
    for text in ("first", "second", "third"):
        write_files({path: text})
    assert path.read_text() == "third"
    assert (path.parent / "results.previous.json").read_text() == "second"
    assert len(list(path.parent.iterdir())) == 2


def test_text_is_utf8_and_bytes_are_as_they_are(tmp_path: Path) -> None:
    write_files({tmp_path / "text": "Nyström", tmp_path / "bytes": b"\xff"})
    assert (tmp_path / "text").read_bytes() == "Nyström".encode()
    assert (tmp_path / "bytes").read_bytes() == b"\xff"


# In a process of its own: a limit of file sizes makes the system refuse, as a full disk does.
REFUSED = """
import resource, signal, sys
from pathlib import Path
from semiparam_dynamics.base.errors import StorageError
from semiparam_dynamics.base.output_files import reserved, write_files
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
folder = Path(sys.argv[1])
try:
    with reserved([folder / "page"], overwrite=True):
        print("work")
        write_files({folder / "results": "few", folder / "page": "much" * 10000})
except StorageError as error:
    print(error)
"""


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    write_files({tmp_path / "results": "old", tmp_path / "page": "old"})
    told = refused(tmp_path, 10000)
    assert told == f"work\n{tmp_path / 'page'} can't be written: File too large\n"
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"results": "old", "page": "old"}


def test_a_full_disk_is_told_before_the_work(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "deep"
    told = refused(folder, 100)
    assert told == f"the results can't be written to {folder}: File too large\n"
    assert not any(tmp_path.iterdir())


def refused(folder: Path, size: int) -> str:
    command = [sys.executable, "-c", REFUSED, str(folder), str(size)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_nothing_is_replaced_unless_allowed(tmp_path: Path) -> None:
    paths = [tmp_path / "model.npz", tmp_path / "params.yaml"]
    paths[0].write_text("learned")
    with (
        pytest.raises(StorageError, match=r"model\.npz already.*--overwrite.*model\.previous\.npz"),
        reserved(paths, overwrite=False),
    ):
        pytest.fail("the work was begun")
    with reserved(paths, overwrite=True):
        write_files(dict.fromkeys(paths, "new"))
    assert (tmp_path / "model.previous.npz").read_text() == "learned"


def test_files_that_are_there_are_told_with_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["one/page", "two/page", "two/table"]
    for name in names:
        write_files({tmp_path / name: ""})
    for folder in (tmp_path, Path()):
        with pytest.raises(StorageError) as told:
            check_replaced([folder / name for name in names], overwrite=False)
        assert str(told.value).startswith(
            f"{folder} has one/page, two/page and two/table already: name another place"
        )
    with pytest.raises(StorageError) as told:
        check_replaced([Path("one/page"), tmp_path / "two/page"], overwrite=False)
    assert str(told.value).startswith(f"one/page and {tmp_path}/two/page are there already: name")


@pytest.mark.parametrize("within", ["file", "file/new"])
def test_a_folder_that_takes_no_files_is_told_before_the_work(tmp_path: Path, within: str) -> None:
    (tmp_path / "file").write_text("no folder")
    with (
        pytest.raises(StorageError, match="can't be written to"),
        reserved([tmp_path / within / "page"], overwrite=True),
    ):
        pytest.fail("the work was begun")


def test_a_name_that_is_too_long_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / ("n" * 300), tmp_path / ("f" * 300) / "page"):
        with (
            pytest.raises(StorageError, match="can't be written: File name too long"),
            reserved([path], overwrite=False),
        ):
            pytest.fail("the work was begun")


def test_folders_made_for_work_that_fails_are_removed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    folder = tmp_path / "there" / "new" / "deep"
    with pytest.raises(ZeroDivisionError), reserved([folder / "page"], overwrite=False):
        assert folder.is_dir() and not any(folder.iterdir())
        1 / 0  # noqa: B018
    assert list(tmp_path.iterdir()) == [tmp_path / "there"]
    assert not any((tmp_path / "there").iterdir())


def test_the_name_of_a_bag_that_is_no_utf_8_does_not_cost_the_results(tmp_path: Path) -> None:
    write_files({tmp_path / "report.html": "M\udcfcller: ü"})
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "M\\udcfcller: ü"
