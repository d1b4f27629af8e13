"""`semiparam gains`: gains on the terminal, and a YAML whose efforts are in N m."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.cli.main import main
from semiparam_dynamics.offline.doctor.drive_gains import DriveGains, gains_table
from semiparam_dynamics.offline.doctor.messages import JointLog
from semiparam_dynamics.samples.bag_writer import BagWriter

from ...dynamics.arms import URDF
from ..doctor.logs import arm_log, write_log
from ..doctor.test_drive_gains import GAINS, MASS, loaded_log

FOLDERS = {"bare": "", "described": URDF.read_text()}  # with their robot_description


def write(path: Path, log: JointLog, urdf: str = "") -> Path:
    return write_log(path, dataclasses.replace(log, y=log.y / GAINS), urdf)


def test_they_are_absolute_by_a_known_load(tmp_path, capsys) -> None:
    bare, out = write(tmp_path / "bare", arm_log(20.0)), tmp_path / "gains.yaml"
    held = write(tmp_path / "held", loaded_log())
    given = ["--loaded", str(held), "--load-mass", str(MASS), "--out", str(out)]
    assert main(["gains", str(bare), "--urdf", str(URDF), *given]) == 0
    said = capsys.readouterr().out
    assert "absolute: their common factor is the known load's" in said
    assert f"negative: {arm_log(20.0).names[1]}. The URDF's torques explain" in said
    config = load_yaml(out, InverseDynamicsConfig, "inverse_dynamics")
    std = np.array(config.changes.effort_gain_std)
    told = std < 0.12
    assert told.sum() >= 3
    assert np.allclose(np.array(config.samples.effort_scale)[told], GAINS[told], rtol=0.05)
    assert 0.0 < config.changes.effort_gain_common_std < 0.1


def test_the_robot_description_in_the_bag_is_enough(tmp_path, capsys) -> None:
    bare, described = (write(tmp_path / n, arm_log(14.0), u) for n, u in FOLDERS.items())
    assert main(["gains", str(described)]) == 0
    told = "relative: their common factor is that of the URDF's masses"
    assert told in capsys.readouterr().out
    assert main(["gains", str(bare)]) == 2
    assert f"{bare} holds no robot_description: add --urdf FILE" in capsys.readouterr().err


@pytest.mark.parametrize("apart", [True, False])
def test_a_joint_without_efforts_is_left_out(tmp_path, capsys, apart: bool) -> None:
    """A gripper's state comes in messages of its own, or with the arm's and without an effort."""
    log, path, out = arm_log(20.0), tmp_path / "bag", tmp_path / "gains.yaml"
    y = log.y / GAINS
    names, last = log.names[:-1], log.names[-1]
    with BagWriter(path) as bag:
        for stamp, q, dq, effort in zip(log.stamps.tolist(), log.q, log.dq, y, strict=True):
            if apart:
                bag.joint_state(stamp, names, q[:-1], dq[:-1], effort[:-1])
                bag.joint_state(stamp + 1_000_000, [last], q[-1:], dq[-1:], None)
            else:
                bag.joint_state(stamp, log.names, q, dq, [*effort[:-1], np.nan])
    options = ["gains", str(path), "--urdf", str(URDF)]
    assert main([*options, "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert f"without {last}: " in said.err and f"{last} " not in said.out
    config = load_yaml(out, InverseDynamicsConfig, "inverse_dynamics")
    assert config.robot.joints == names
    assert len(config.samples.effort_scale) == len(names)
    assert main([*options, "--set", f"joints=[{', '.join(log.names)}]"]) == 2
    told = capsys.readouterr().err
    assert f"has no joint {last} in the messages" in told or f"an effort of {last}" in told


def test_only_a_minus_that_is_told_has_a_sentence() -> None:
    found = DriveGains(("a", "b"), np.array([2.0, -2.0]), np.ones(2), 0.1, np.ones(2, bool), False)
    assert "negative: b." in gains_table(found)
    untold = dataclasses.replace(found, told=np.array([True, False]))
    assert "negative" not in gains_table(untold)
