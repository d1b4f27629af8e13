"""`semiparam doctor`: findings on the terminal, a page, and a YAML that other verbs take."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.cli.main import main
from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.config_files import load_yaml
from semiparam_dynamics.doctor.joint_log import read_joint_log
from semiparam_dynamics.samples.bag_writer import BagWriter

from ..doctor.logs import arm_log
from ..dynamics.arms import URDF


def write(path: Path, *, turned: int | None = None, extra: tuple[str, ...] = ()) -> Path:
    """A bag of the arm with one effort's sign turned, and joints that the URDF hasn't."""
    log = arm_log(15.0)
    if turned is not None:
        y = log.y.copy()
        y[:, turned] *= -1.0
        log = dataclasses.replace(log, y=y)
    more = np.zeros((len(log), len(extra)))
    with BagWriter(path) as bag:
        bag.robot_description(URDF.read_text(), int(log.stamps[0]))
        for stamp, *rows in zip(log.stamps.tolist(), log.q, log.dq, log.y, more, strict=True):
            values = [np.concatenate((rows[3], row)) for row in rows[:3]]
            bag.joint_state(stamp, (*extra, *log.names), *values)
    return path


def test_a_good_bag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(write(tmp_path / "bag"))]) == 0
    said = capsys.readouterr().out
    assert "No fault was found." in said
    assert "1500 joint states" in said and "at 100 Hz" in said


def test_a_turned_sign_is_told_shown_and_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bag, out = write(tmp_path / "bag", turned=1, extra=("<b>finger</b>",)), tmp_path / "out"
    joint = arm_log(1.0).names[1]
    assert main(["doctor", str(bag), "--urdf", str(URDF), "--out", str(out)]) == 1
    said = capsys.readouterr().out
    assert f"! effort sign: the effort of {joint} has the opposite sign" in " ".join(said.split())
    assert "- names not in the URDF" in said and "samples.effort_scale" in said
    page = (out / "doctor.html").read_text()
    assert "opposite sign" in page and "<svg" in page
    assert "&lt;b&gt;finger" in page and "<b>finger" not in page
    config = load_yaml(out / "doctor.yaml", InverseDynamicsConfig, "inverse_dynamics")
    assert config.samples.effort_scale[1] == -1.0
    # With the file the same bag is in order.
    assert main(["doctor", str(bag), "--params", str(out / "doctor.yaml")]) == 0
    assert "No fault was found." in capsys.readouterr().out


def test_a_bag_of_another_robot_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bag = write(tmp_path / "bag")
    urdf = tmp_path / "other.urdf"
    urdf.write_text(URDF.read_text().replace('"lift"', '"hoist"').replace('"reach"', '"extend"'))
    log = read_joint_log(bag, ("reach",))
    assert log.names == ("reach",) and "lift" in log.unknown
    main(["doctor", str(bag), "--urdf", str(urdf)])
    said = " ".join(capsys.readouterr().out.split())
    assert "no message names" in said and "hoist" in said
    assert main(["doctor", str(bag), "--set", "joints=hoist", "--urdf", str(urdf)]) == 2
    assert "names a joint of the URDF" in capsys.readouterr().err
