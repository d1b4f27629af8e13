"""Arms' logs made from a small repository, and the entries of the arms that are there."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from semiparam_dynamics.base.errors import BagError, SampleError

from ..documents import ROOT

IDBENCH = ROOT / "benchmarks" / "idbench"
ARMS = yaml.safe_load((IDBENCH / "arms.yaml").read_text(encoding="utf-8"))
MOTORS = {"file": "log.csv", "skip": 1, "columns": [1, 3]}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes a recipe's files in tmp_path / "data" from a repository."""
    monkeypatch.syspath_prepend(str(IDBENCH))
    import fetch

    (clone := tmp_path / "me+arm").mkdir()
    (clone / "log.csv").write_text("t,m1,m2\n5,0,0\n6,1,2\n7,2,4\n8,3,6\n")
    (clone / "big.csv").write_bytes(fetch.POINTER + b"v1\noid sha256:0\n")
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "logs"]):
        subprocess.run([*git, *words], check=True, cwd=clone)
    source = {"source": {"repository": "me/arm", "commit": "HEAD"}}
    return lambda files: fetch.fetch(source | {"recipe": files}, tmp_path / "data", tmp_path)


def test_a_log_comes_in_joint_coordinates(made: Any, tmp_path: Path) -> None:
    gears = {"ratio": [[2.0, 0.0], [1.0, 4.0]], "constant": [1.0, 1.0]}
    arrays = {"t": MOTORS | {"columns": [0, 1]}, "q": MOTORS | {"over": gears}}
    arrays["tau"] = MOTORS | {"times": gears, "plus": {"zero": [1.0, 0.0]}}
    made({"log.npz": {"arrays": arrays | {"names": ["a", "b"]}}})
    log = np.load(tmp_path / "data" / "log.npz")
    assert list(log["t"]) == [0, 1, 2, 3] and list(log["names"]) == ["a", "b"]
    assert log["q"][3] == pytest.approx([1.5, 1.125]) and list(log["tau"][3]) == [13.0, 24.0]


def test_of_files_that_are_not_there_none_is_written(made: Any, tmp_path: Path) -> None:
    for path, said in (("big.csv", "pointer of Git LFS"), ("absent.csv", "has no file absent.csv")):
        with pytest.raises(BagError, match=said):
            made({"a.csv": {"copy": "log.csv"}, "b.csv": {"copy": path}})
    with pytest.raises(SampleError, match="log.csv has 3 columns; its recipe names 9"):
        made({"x.npz": {"arrays": {"q": MOTORS | {"columns": [0, 9]}}}})
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(("arm", "entry"), ARMS.items(), ids=ARMS)
def test_an_entry_is_complete_and_the_data_has_its_files(arm, entry, request) -> None:
    assert entry["name"] and entry["licence"] and entry["source"].keys() == {"repository", "commit"}
    files = [entry["urdf"], *entry["logs"], *([entry["loaded"]] if "loaded" in entry else [])]
    folder = request.getfixturevalue("data_folder") / "robots" / arm
    assert all(name in entry["recipe"] and (folder / name).is_file() for name in files)
