"""A mistake in a command is one line of error, before anything is written."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.offline.cli.main import main

from ...dynamics.arms import URDF

EXCITE = f"excite --urdf {URDF} --set search.starts=1 --set search.iterations=10 --out"
MISTAKES = [
    ("convert log.npz made --names a", "1 names for 2 joints"),
    ("convert log.npz made --names ''", "1 names for 2 joints"),
    ("convert log.npz made --urdf none.urdf", "the URDF file 'none.urdf' can't be read"),
    ("convert log.npz made --start -1", "the start must be positive"),
    ("evaluate BAG --out out --target wrench", "no topic of type geometry_msgs/msg/WrenchStamped"),
    ("evaluate BAG --out out --joint-states /a/b", "has no topic '/a/b'; it has: /joint_states"),
    ("evaluate BAG --out out --urdf nowhere.urdf", "nowhere.urdf"),
    ("evaluate BAG --out out --set joints=[elbow]", "has no joint 'elbow'; there are: slew"),
    ("evaluate BAG --out out --set nystrom.lengthscale=1", "did you mean 'nystrom.length_scale'?"),
    ("evaluate BAG --out out --set filter.cutoff=-1", "must lie between 0 and 1000 Hz"),
    (
        "evaluate ~no-such-user/bag --out out",
        "a path begins with ~NAME, and there is no user of that",
    ),
    ("convert log.npz .", ". exists already"),
    ("evaluate BAG --out out --params none.yaml", "none.yaml can't be read"),
    ("evaluate BAG --out out --train none", "none"),
    ("evaluate BAG --out file", "the results can't be written to file"),
    ("evaluate BAG --out out --jobs 2", "--cluster go with --each"),
    ("evaluate BAG --out out --each --jobs -1", "can't be less than one process"),
    ("evaluate BAG --out out --each --train BAG", "semiparam train BAG"),
    ("train BAG --out out --set nystrom.penalty=-1", "must lie between"),
    ("tune BAG --out t.yaml --keep nystrom.width", "no such parameter or group"),
    (f"{EXCITE} out --period -1", "'search.period' must lie between"),
    (f"{EXCITE} out --set search.harmonics=1", "'search.harmonics' must lie between"),
    (f"{EXCITE} out --range slew:1:2", "--range needs JOINT=LOW:HIGH, not 'slew:1:2'"),
    (f"{EXCITE} out --range slew=1", "--range needs JOINT=LOW:HIGH"),
    (f"{EXCITE} out --range lift=-3:1", "beyond the URDF's limits"),
    (f"{EXCITE} out --joints lfit", "did you mean 'lift'"),
    (f"{EXCITE} out --target wrench", "needs 'sensor_frame'"),
    (f"{EXCITE} out --urdf nowhere.urdf", "nowhere.urdf"),
    (f"{EXCITE} out --set free_velocity=0", "'free_velocity' must lie between"),
    (f"{EXCITE} file/out", "the results can't be written to file/out"),
    ("doctor BAG --out file", "the results can't be written to file"),
    ("gains BAG --load-mass 1", "--loaded and --load-mass"),
    ("layouts file", "can't be written"),
    ("layouts out --node 'my node'", "'my node' is no name in ROS"),
    ("layouts out --joints a b a", "each joint needs a name of its own, not a, b, a"),
    ("objects missing", "there is no camera, file or folder"),
    ("objects empty", "has no picture that is whole"),
    ("objects --classes 0", "objects has no option --classes"),
    ("objects digits --rate -1", "parameter 'rate' must lie between"),
    ("objects digits --teach -1", "parameter 'teach' must lie between"),
]


@pytest.mark.parametrize(("command", "said"), MISTAKES)
def test_a_mistake_is_one_line(command: str, said: str, bag, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("file").write_text("")
    np.savez("log.npz", q=np.zeros((3, 2)), tau=np.zeros((3, 2)), dt=0.5)
    before = set(tmp_path.iterdir())
    assert main([str(bag) if word == "BAG" else word for word in shlex.split(command)]) == 2
    told = capsys.readouterr()
    assert told.out == "" and said in told.err
    assert told.err.startswith("semiparam: error: ") and told.err.count("\n") == 1
    new = set(tmp_path.iterdir()) - before
    assert not {path for path in new if path.suffix != ".journal"}
