"""No verb replaces what an earlier run wrote, unless --overwrite says so, and then it is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from semiparam_dynamics.offline.cli.main import main

from ...dynamics.arms import URDF

# Each verb with a file that it writes. The bag is missing: it would be told if work were begun.
VERBS = [
    ("evaluate no-bag", "results.json"),
    ("evaluate no-bag", "report.html"),
    ("evaluate no-bag --each", "bags.json"),
    ("evaluate no-bag --each", "no-bag/results.json"),
    ("train no-bag", "model.npz"),
    ("train no-bag", "params.yaml"),
    ("identify no-bag", "identified.urdf"),
    ("identify no-bag", "parameters.csv"),
    ("tune no-bag", "tuned.yaml"),
    ("gains no-bag --urdf URDF", "gains.yaml"),
    ("doctor no-bag", "doctor.yaml"),
    ("doctor no-bag", "doctor.html"),
    ("excite --urdf URDF", "trajectory.csv"),
    ("excite --urdf URDF", "trajectory_bag"),
    ("layouts", "plotjuggler/effort.xml"),
]


@pytest.mark.parametrize(("verb", "file"), VERBS, ids=lambda text: text)
def test_earlier_results_stay(verb: str, file: str, tmp_path, capsys) -> None:
    command = verb.replace("URDF", str(URDF)).split()
    earlier = tmp_path / file
    earlier.parent.mkdir(exist_ok=True)
    earlier.write_text("earlier")
    out = [] if command[0] == "layouts" else ["--out"]
    assert main([*command, *out, str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "--overwrite" in told and earlier.name in told
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [earlier]
    assert earlier.read_text() == "earlier"


def test_what_is_replaced_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "foxglove").mkdir()
    (tmp_path / "foxglove" / "effort.json").write_text("edited")
    assert main(["layouts", str(tmp_path), "--overwrite"]) == 0
    assert (tmp_path / "foxglove" / "effort.previous.json").read_text() == "edited"
