"""Bags read as they are, bad messages included."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.offline.doctor.messages import _fits, read_joint_log
from semiparam_dynamics.robot.urdf import parse_urdf
from semiparam_dynamics.samples.bag_writer import BagWriter

from ...dynamics.arms import small_arm

STEP = 10_000_000


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "bag"
    with BagWriter(path) as writer:
        writer.joint_state(1, ["finger"], [0.5])
        for k in range(20):
            stamp, nan = (k + 1) * STEP, float("nan") if k == 7 else 1.0
            writer.joint_state(stamp, ["b", "finger", "a"], [k, 9.0, -k], None, [nan, 0.0, 2.0])
    return path


def test_joints_are_in_the_wanted_order_with_what_each_message_has(bag: Path) -> None:
    log = read_joint_log(bag, ("a", "b", "c"))
    assert log.names == ("a", "b") and log.missing == ("c",) and log.unknown == ("finger",)
    assert log.others == 1 and len(log) == 20
    assert np.array_equal(log.q, np.column_stack((-np.arange(20.0), np.arange(20.0))))
    assert log.dq is None and log.y is not None
    assert np.isnan(log.y[7, 1]) and np.sum(np.isnan(log.y)) == 1
    assert log.times.tolist() == pytest.approx([0.01 * k for k in range(20)])


def test_a_joint_that_is_named_twice_is_told(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as writer:
        writer.joint_state(1, ["a", "b", "a"], [0.0, 1.0, 2.0])
    assert read_joint_log(tmp_path / "bag", ("a", "b")).doubled == ("a",)


def test_a_bag_of_other_joints_is_refused_with_both_lists(bag: Path) -> None:
    with pytest.raises(BagError, match=r"it has a, b, finger, the URDF elbow, wrist"):
        read_joint_log(bag, ("elbow", "wrist"))


@pytest.mark.parametrize(
    ("sizes", "fit"),
    [((2, 0, 2), True), ((2, 2, 2), True), ((2, 2, 1), False), ((1, 2, 2), False)],
)
def test_arrays_that_do_not_fit_the_names_are_counted(sizes, fit) -> None:
    arrays = zip(("position", "velocity", "effort"), ([0.0] * n for n in sizes), strict=True)
    assert _fits(SimpleNamespace(name=["a", "b"], **dict(arrays))) == fit


def test_of_an_arm_s_and_its_gripper_s_messages_the_arm_s_are_read(tmp_path: Path) -> None:
    tree = parse_urdf(small_arm().urdf_text)
    *arm, hand = tree.actuated()
    with BagWriter(tmp_path / "bag") as writer:
        for k in range(300):
            if k % 3 == 0:
                writer.joint_state(k * STEP + 1, arm, [0.1 * k] * len(arm))
            else:
                writer.joint_state(k * STEP + 1, [hand], [0.5])
        # One that names all of them is another publisher's.
        writer.joint_state(300 * STEP + 1, tree.actuated(), [0.0] * len(tree.actuated()))
    log = read_joint_log(tmp_path / "bag", tree.actuated(), tree=tree)
    assert log.names == tuple(arm) and len(log) == 100
    assert log.missing == () and log.others == 201
