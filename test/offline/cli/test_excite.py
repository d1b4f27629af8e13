"""`semiparam excite`: files that a robot can run."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from semiparam_dynamics.offline.cli.main import main

from ...dynamics.arms import URDF
from ..identification.test_collisions import ARM, HEAD

FAST = ["--period", "8", "--set", "search.harmonics=2", "--set", "search.starts=1"]
FAST += ["--set", "search.iterations=10"]


def test_files_that_hold_the_same_motion(tmp_path, capsys) -> None:
    out = tmp_path / "new" / "out"
    options = [*FAST, "--rate", "20", "--repeat", "2", "--joints", "lift,slew"]
    options += ["--range", "slew=-0.5:0.75"]
    assert main(["excite", "--urdf", str(URDF), "--out", str(out), *options]) == 0
    printed = capsys.readouterr()
    assert "median of 20" in printed.out and "Collisions were not checked" in printed.out
    assert "the URDF has no velocity limit of slew: 1 is used" in printed.err
    assert (out / "trajectory.png").stat().st_size > 10_000

    with (out / "trajectory.csv").open() as file:
        header, *rows = csv.reader(file)
    assert header == "t q_lift q_slew dq_lift dq_slew ddq_lift ddq_slew".split()
    table = np.array(rows, dtype=float)
    t, motion = table[:, 0], table[:, 1:]
    np.testing.assert_allclose(t, np.arange(321) * 0.05, atol=1e-9)
    np.testing.assert_allclose(motion[[0, 160, 320], 2:], 0.0, atol=1e-8)  # each period's ends
    np.testing.assert_allclose(motion[:161], motion[160:], atol=1e-7)
    assert motion[:, 1].min() >= -0.5 + 0.125 - 0.01 and motion[:, 1].max() <= 0.75 - 0.125 + 0.01

    topic, message, times = trajectory_in(out / "trajectory_bag")
    assert topic == "/joint_trajectory_controller/joint_trajectory"
    assert message.joint_names == ["lift", "slew"]
    assert message.header.stamp.sec == message.header.stamp.nanosec == 0
    lead = times[0]
    np.testing.assert_allclose(times - lead, t, atol=1e-8)
    points = [np.concatenate([p.positions, p.velocities, p.accelerations]) for p in message.points]
    np.testing.assert_allclose(points, motion, atol=1e-7)
    # A quintic from rest to rest takes 1.875 times what a steady speed would.
    farthest = (1.2 + abs(motion[0, 0])) / 1.6
    assert lead >= 1.875 * farthest and lead == round(lead)

    _, slow, slow_times = trajectory_in(out / "trial_bag")
    np.testing.assert_allclose(slow_times, 4.0 * times[:161], atol=1e-8)
    for k in (0, 50, 160):
        np.testing.assert_allclose(slow.points[k].positions, motion[k, :2], atol=1e-8)
        np.testing.assert_allclose(slow.points[k].velocities, motion[k, 2:4] / 4, atol=1e-8)
        np.testing.assert_allclose(slow.points[k].accelerations, motion[k, 4:] / 16, atol=1e-8)


def trajectory_in(bag: Path) -> tuple[str, Any, np.ndarray]:
    """The topic, the only message of the bag, and its points' times."""
    with AnyReader([bag], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
        ((connection, _, data),) = reader.messages()
        message = reader.deserialize(data, connection.msgtype)
    times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points]
    return connection.topic, message, np.array(times)


def test_a_sensor_s_wrench_and_the_node_s_yaml(tmp_path: Path) -> None:
    params, out = tmp_path / "params.yaml", tmp_path / "out"
    text = "inverse_dynamics: {ros__parameters: {target: wrench, sensor_frame: boom_sensor, "
    params.write_text(text + "model_file: x, filter: {cutoff: 5.0}}}")
    found = []
    for options in ([], ["--params", str(params)]):  # the second run replaces the first one's files
        command = ["excite", "--urdf", str(URDF), *options, "--out", str(out), *FAST]
        assert main([*command, "--overwrite"]) == 0
        _, message, times = trajectory_in(out / "trajectory_bag")
        assert message.joint_names == ["slew", "lift", "reach", "grip"] and len(times) > 100
        found.append(message.points[-1].positions.tolist())
    assert found[0] != found[1]  # what excites efforts is another motion


def test_a_folder_that_is_no_bag_is_left_alone(tmp_path, capsys) -> None:
    base = ["excite", "--urdf", str(URDF), *FAST]
    (tmp_path / "trajectory_bag").mkdir()
    (tmp_path / "trajectory_bag" / "thesis.tex").write_text("")
    assert main([*base, "--out", str(tmp_path), "--overwrite"]) == 2
    assert "is not only a bag" in capsys.readouterr().err
    assert (tmp_path / "trajectory_bag" / "thesis.tex").exists()


def test_the_smallest_distance_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["excite", "--urdf", str(tmp_path / "arm.urdf"), *FAST, "--out", str(tmp_path / "out")]
    (tmp_path / "arm.urdf").write_text(ARM.replace(HEAD, '<mesh filename="head.stl"/>'))
    assert main([*base, "--floor", "-0.1", "--clearance", "0.05"]) == 0
    printed = capsys.readouterr()
    found = re.search(r"smallest distance (\S+) m, between (post|upper|fore)", printed.out)
    assert found and float(found[1]) >= 0.05
    assert "3 pairs with a floor at -0.1 m" in printed.out
    assert "meshes of head can't be found" in printed.err
    assert main([*base, "--overwrite", "--floor", "low"]) == 2
    assert "--floor must be a height" in capsys.readouterr().err
