from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rosbags.interfaces import QosDurability
from rosbags.rosbag2 import Reader

from semiparam_dynamics.base.errors import BagError, SampleError
from semiparam_dynamics.samples.bag import BagReader
from semiparam_dynamics.samples.bag_writer import BagWriter


def write(path: Path, position: float, **options: bool) -> None:
    with BagWriter(path, **options) as bag:
        bag.joint_state(1, ["a"], [position])


def read(path: Path) -> list[float]:
    with BagReader(path) as bag:
        return [float(message.position[0]) for _, message, _ in bag.messages()]


def test_messages_have_every_field(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag", joint_states_topic="/arm", wrench_topic="/ft") as bag:
        bag.joint_state(2_000_000_003, ["a", "b"], [1, 2], effort=[3, 4])
        bag.wrench(2_000_000_004, range(6), "sensor")
    with BagReader(tmp_path / "bag") as bag:
        (_, joints, at), (topic, wrench, _) = bag.messages()
    assert (joints.header.stamp.sec, joints.header.stamp.nanosec, at) == (2, 3, 2_000_000_003)
    assert (joints.name, list(joints.position), list(joints.effort)) == (["a", "b"], [1, 2], [3, 4])
    assert len(joints.velocity) == 0
    assert (topic, wrench.header.frame_id) == ("/ft", "sensor")
    force, torque = wrench.wrench.force, wrench.wrench.torque
    assert [force.x, force.y, force.z, torque.x, torque.y, torque.z] == list(range(6))


def test_the_description_is_offered_to_subscribers_that_come_later(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as bag:
        bag.robot_description("<robot/>", 1)
    with Reader(tmp_path / "bag") as reader:
        (qos,) = reader.connections[0].ext.offered_qos_profiles
    assert qos.durability == QosDurability.TRANSIENT_LOCAL


def test_a_bag_is_replaced_only_where_asked(tmp_path: Path) -> None:
    write(tmp_path / "bag", 1.0)
    with pytest.raises(BagError, match="exists already"):
        write(tmp_path / "bag", 2.0)
    assert read(tmp_path / "bag") == [1.0]
    for position in (2.0, 3.0):
        write(tmp_path / "bag", position, overwrite=True)
        assert read(tmp_path / "bag") == [position]
        assert read(tmp_path / "bag.previous") == [position - 1.0]


def test_what_is_no_bag_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    write(tmp_path / "mixed", 1.0)
    (tmp_path / "mixed" / "notes.txt").write_text("which run was this?")
    (tmp_path / "file").write_text("something")
    write(tmp_path / "bag", 1.0)
    (tmp_path / "bag.previous").write_text("something")
    for name in ("thesis", "mixed", "file", "bag"):
        with pytest.raises(BagError, match="is not only a bag"):
            write(tmp_path / name, 2.0, overwrite=True)
    assert read(tmp_path / "bag") == [1.0]
    assert (tmp_path / "thesis" / "chapter.tex").exists()
    assert (tmp_path / "mixed" / "notes.txt").exists()


def test_a_failure_leaves_no_half_a_bag(tmp_path: Path) -> None:
    with (
        pytest.raises(SampleError, match="a message of 2 values"),
        BagWriter(tmp_path / "b") as bag,
    ):
        bag.joint_state(1, ["a", "b"], [1.0, 2.0])
        bag.joint_state(2, ["a", "b"], [1.0])
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_bag_that_was_there(tmp_path: Path) -> None:
    write(tmp_path / "bag", 1.0)
    with pytest.raises(ZeroDivisionError), BagWriter(tmp_path / "bag", overwrite=True) as bag:
        bag.joint_state(1, ["a"], [2.0])
        1 / 0  # noqa: B018
    assert read(tmp_path / "bag") == [1.0]
    assert [path.name for path in tmp_path.iterdir()] == ["bag"]


# In a process of its own: a limit of file sizes makes the system refuse, as a full disk does.
REFUSED = """
import resource, signal, sys
from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.samples.bag_writer import BagWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
try:
    with BagWriter(sys.argv[1]) as bag:
        for stamp in range(1, int(sys.argv[2])):
            bag.joint_state(stamp, ["a"], [0.1 * stamp])
except BagError as error:
    print(error)
"""


@pytest.mark.parametrize("messages", [2000, 100000])  # refused at the end; on the way
def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, messages: int) -> None:
    command = [sys.executable, "-c", REFUSED, str(tmp_path / "bag"), str(messages)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told == f"the bag {tmp_path / 'bag'} can't be written: File too large\n"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_can_t_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BagError, match="can't be written"):
        write(tmp_path / "file" / "bag", 1.0)
