"""`semiparam doctor`: findings on the terminal, a page, and a YAML that other verbs take."""

from __future__ import annotations

import dataclasses
import re
import subprocess

import numpy as np

from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.cli.main import main
from semiparam_dynamics.offline.doctor.messages import read_joint_log
from semiparam_dynamics.robot.urdf import parse_urdf
from semiparam_dynamics.samples.bag_writer import BagWriter
from semiparam_dynamics.samples.joint_names import naming_remedy

from ...dynamics.arms import URDF
from ...robot import standing_arm
from ..doctor.logs import arm_log, write_log


def test_a_turned_sign_is_told_shown_and_mended(tmp_path, capsys) -> None:
    """Beside it is a joint that the URDF has not."""
    log, out = arm_log(15.0), tmp_path / "out"
    joint = log.names[1]
    log.y[:, 1] *= -1.0
    q, dq, y = (np.insert(a, 0, 0.0, axis=1) for a in (log.q, log.dq, log.y))
    log = dataclasses.replace(log, names=("<b>finger</b>", *log.names), q=q, dq=dq, y=y)
    bag = write_log(tmp_path / "bag", log, URDF.read_text())
    assert main(["doctor", str(bag), "--urdf", str(URDF), "--out", str(out)]) == 1
    said = capsys.readouterr().out
    assert (
        said.startswith("1 fault found: effort sign.\n") and max(map(len, said.split("\n"))) < 101
    )
    assert f"! effort sign: the effort of {joint} has the opposite sign" in " ".join(said.split())
    assert "- names not in the URDF" in said and "samples.effort_scale" in said
    page = (out / "doctor.html").read_text()
    assert 'class="grid pairs"' in page  # a joint's position and effort beside each other
    assert "opposite sign" in page and page.count("<svg viewBox") >= 8
    assert "samples.effort_scale: [1.0, -1.0, 1.0, 1.0]" in page
    assert "&lt;b&gt;finger" in page and "<b>finger" not in page
    config = load_yaml(out / "doctor.yaml", InverseDynamicsConfig, "inverse_dynamics")
    assert config.samples.effort_scale[1] == -1.0
    # With the file the same bag is in order.
    assert main(["doctor", str(bag), "--params", str(out / "doctor.yaml")]) == 0
    said = capsys.readouterr().out
    assert "No fault was found." in said and "1500 joint states, 15.0 s at 100 Hz" in said


def test_a_bag_of_another_robot_is_refused(tmp_path, capsys) -> None:
    bag = write_log(tmp_path / "bag", arm_log(2.0))
    urdf = tmp_path / "other.urdf"
    urdf.write_text(URDF.read_text().replace('"lift"', '"hoist"').replace('"reach"', '"extend"'))
    log = read_joint_log(bag, ("reach",))
    assert log.names == ("reach",) and "lift" in log.unknown
    main(["doctor", str(bag), "--urdf", str(urdf)])
    said = " ".join(capsys.readouterr().out.split())
    assert "no message names" in said and "hoist" in said
    assert main(["doctor", str(bag), "--set", "joints=hoist", "--urdf", str(urdf)]) == 2
    assert "names a joint of the URDF" in capsys.readouterr().err


def test_a_wrench_that_is_to_be_learned_has_to_be_there(tmp_path, capsys) -> None:
    log = arm_log(2.0)
    bag = str(write_log(tmp_path / "bag", log, URDF.read_text()))
    for options in (["--target", "wrench"], ["--wrench", "/ft"]):
        assert main(["doctor", bag, *options]) == 2
        assert "/joint_states (sensor_msgs/msg/JointState)" in capsys.readouterr().err
    with BagWriter(tmp_path / "sensor") as writer:
        for stamp, q in zip(log.stamps.tolist(), log.q, strict=True):
            writer.joint_state(stamp, log.names, q, None, None)
            writer.wrench(stamp, np.ones(6), "tool")
    found = {}
    for target in ("effort", "wrench"):
        main(["doctor", str(tmp_path / "sensor"), "--urdf", str(URDF), "--target", target])
        found[target] = capsys.readouterr().out
    assert "no efforts:" in found["effort"] and "no efforts:" not in found["wrench"]
    both = ["--target", "effort", "--wrench", "/wrench"]
    main(["doctor", str(tmp_path / "sensor"), "--urdf", str(URDF), *both])
    assert "no efforts:" in capsys.readouterr().out


def test_a_torso_that_is_not_learned_stands_where_it_is_published(tmp_path, capsys) -> None:
    """Taken to stand at 0, it would tilt the base."""
    names, tilt = ("tilt", *standing_arm.LEARNED), 0.3
    with BagWriter(tmp_path / "bag") as writer:
        writer.robot_description(standing_arm.URDF, 1)
        for m in standing_arm.moving(14.0, tilt=tilt):
            assert m.dq is not None and m.y is not None
            rows = [np.append(first, row) for first, row in ((tilt, m.q), (0.0, m.dq), (0.0, m.y))]
            writer.joint_state(m.stamp, names, *rows)
    command = ["doctor", str(tmp_path / "bag"), "--set", f"joints={','.join(standing_arm.LEARNED)}"]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "No fault was found." in said and "names not in the URDF" not in said


def test_names_with_a_prefix_are_told_the_remedy(tmp_path, capsys) -> None:
    log = arm_log(2.0)
    longer = tuple(f"panda_{name}" for name in log.names)
    write_log(tmp_path / "bag", dataclasses.replace(log, names=longer))
    urdf = tmp_path / "robot.urdf"
    urdf.write_text(URDF.read_text())
    for verb in (["doctor"], ["evaluate", "--out", str(tmp_path / "out")]):
        assert main([verb[0], str(tmp_path / "bag"), "--urdf", str(urdf), *verb[1:]]) == 2
        said = capsys.readouterr().err
        assert "the bag's names begin with 'panda_', which the URDF's lack" in said
    # The command does what it says, there and back.
    command = re.search(r"sed -E '.*' robot.urdf > renamed.urdf", said)
    assert command
    subprocess.run(command[0], shell=True, cwd=tmp_path, check=True)
    renamed = tmp_path / "renamed.urdf"
    assert read_joint_log(tmp_path / "bag", parse_urdf(renamed.read_text()).actuated()).q.shape[1]
    back = naming_remedy(log.names, longer)
    command = re.search(r"sed -E '.*' robot.urdf", back)
    assert command and "the URDF's names begin with 'panda_'" in back
    urdf.write_text(renamed.read_text())
    done = subprocess.run(command[0], shell=True, cwd=tmp_path, check=True, capture_output=True)
    assert parse_urdf(done.stdout.decode()).actuated() == parse_urdf(URDF.read_text()).actuated()
