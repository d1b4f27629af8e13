from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer

from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.offline.doctor.messages import read_joint_log
from semiparam_dynamics.samples.bag import (
    WRENCH,
    BagReader,
    Topic,
    read_measurements,
)
from semiparam_dynamics.samples.bag_writer import BagWriter, write_measurements
from semiparam_dynamics.samples.joint_states import JOINT_STATE
from semiparam_dynamics.samples.measurement import Measurement

from .bags import MS, NAMES, STORE, joint_state, storage


def motion(n: int = 600) -> list[Measurement]:
    rng = np.random.default_rng(3)
    return [Measurement(MS * (k + 1), *rng.normal(size=(3, len(NAMES)))) for k in range(n)]


def assert_equal(given: Iterable[Measurement], expected: Iterable[Measurement]) -> None:
    for m, e in zip(given, expected, strict=True):
        assert m.stamp == e.stamp
        for name in ("q", "dq", "y"):
            np.testing.assert_array_equal(getattr(m, name), getattr(e, name))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bag in MCAP, as the package writes it."""
    path = tmp_path_factory.mktemp("bags") / "arm"
    write_measurements(path, NAMES, motion(), robot_description="<robot/>")
    return path


@pytest.fixture(scope="module")
def database(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same messages as a bag in SQLite."""
    path = tmp_path_factory.mktemp("bags") / "arm"
    plugin = StoragePlugin.SQLITE3
    with BagReader(folder) as bag, Writer(path, version=9, storage_plugin=plugin) as writer:
        connections = {
            name: writer.add_connection(name, topic.type, typestore=STORE)
            for name, topic in bag.topics.items()
        }
        for topic, message, stamp in bag.messages():
            data = STORE.serialize_cdr(message, bag.topics[topic].type)
            writer.write(connections[topic], stamp, data)
    return path


@pytest.fixture(params=["mcap", "db3"])
def recording(request: pytest.FixtureRequest, folder: Path, database: Path, tmp_path: Path) -> Path:
    """A copy of either folder."""
    source = folder if request.param == "mcap" else database
    return Path(shutil.copytree(source, tmp_path / "arm"))


MESSAGE = joint_state(1)[1]
SILENT = replace(MESSAGE, effort=np.zeros(0))


def written(path: Path, *given: tuple[str, Any]) -> Path:
    """A bag of joint states, or of bytes in their place, on these topics in this order."""
    with Writer(path, version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        topics = dict.fromkeys(topic for topic, _ in given)
        there = {t: writer.add_connection(t, JOINT_STATE, typestore=STORE) for t in topics}
        for k, (topic, message) in enumerate(given):
            is_bytes = isinstance(message, bytes)
            data = message if is_bytes else STORE.serialize_cdr(message, JOINT_STATE)
            writer.write(there[topic], k + 1, data)
    return path


def truncate(path: Path, share: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def test_what_was_written_is_read_back_from_folder_and_bare_file(recording: Path) -> None:
    for path in (recording, storage(recording)):
        given = read_measurements(path, NAMES)
        assert_equal(given.measurements, motion())
        assert given.received["joint states"] == 600
        assert not given.dropped and not given.warnings
        assert given.joint_states_topic == "/joint_states"


def test_topics_duration_and_description(recording: Path) -> None:
    with BagReader(recording) as bag:
        assert bag.topics["/joint_states"].count == 600
        assert bag.topics["/joint_states"].type == JOINT_STATE
        assert bag.duration == pytest.approx(0.599)
        assert bag.robot_description() == "<robot/>"


def test_joints_are_found_by_name_in_the_asked_order(folder: Path) -> None:
    for m, e in zip(read_measurements(folder, NAMES[::-1]).measurements, motion(), strict=True):
        np.testing.assert_array_equal(m.y, e.y[::-1])


def test_wrenches_are_paired_in_a_bag_as_live(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    expected = [Measurement(m.stamp, m.q, m.dq, rng.normal(size=6)) for m in motion(50)]
    write_measurements(tmp_path / "bag", NAMES, expected, "wrench", wrench_frame="sensor")
    given = read_measurements(tmp_path / "bag", NAMES, "wrench", wrench_frame="sensor")
    assert_equal(given.measurements, expected)
    assert given.frames == {"sensor"} and given.wrench_topic == "/wrench"
    other = read_measurements(tmp_path / "bag", NAMES, "wrench", wrench_frame="base")
    assert other.dropped["wrench in another frame"] == 50
    assert all(m.y is None for m in other.measurements)


def test_a_node_s_outputs_are_not_taken_for_measurements(tmp_path: Path) -> None:
    topics = ["/arm/predicted", "/arm/rigid_body", "/arm/external_fast", "/joint_states"]
    with BagReader(written(tmp_path / "bag", *((topic, MESSAGE) for topic in topics))) as bag:
        assert bag.choose(JOINT_STATE) == "/joint_states"
        assert bag.choose(JOINT_STATE, "/arm/predicted") == "/arm/predicted"
        bag.topics = {name: bag.topics[name] for name in topics[:3]}
        with pytest.raises(BagError, match=f"no topic of type {JOINT_STATE}"):
            bag.choose(JOINT_STATE)
        # A sensor's topic may have such a name, too.
        bag.topics = {name: bag.topics[name] for name in topics[1:2]}
        assert bag.choose(JOINT_STATE) == "/arm/rigid_body"


def test_a_topic_that_is_missing_or_one_of_several_is_explained(tmp_path: Path) -> None:
    bag = written(tmp_path / "bag", ("/left", MESSAGE), ("/right", MESSAGE))
    with pytest.raises(
        BagError,
        match=f"several topics of type {JOINT_STATE}, name one with --joint-states: /left, /r",
    ):
        read_measurements(bag, NAMES)
    with pytest.raises(BagError, match=rf"no topic '/up'; it has: /left \({JOINT_STATE}\), /ri"):
        read_measurements(bag, NAMES, joint_states_topic="/up")
    with pytest.raises(BagError, match=f"no topic of type {WRENCH}"):
        read_measurements(bag, NAMES, "wrench", joint_states_topic="left")
    assert len(read_measurements(bag, NAMES, joint_states_topic="left").measurements)


def test_of_an_arm_s_and_a_gripper_s_joint_states_those_with_efforts_are_taken(
    tmp_path: Path,
) -> None:
    still = replace(MESSAGE, effort=np.zeros(len(NAMES)))
    unknown = replace(MESSAGE, effort=np.full(len(NAMES), np.nan))
    given = (("/gripper", SILENT), ("/hand", still), ("/arm", unknown), ("/base", unknown))
    # A driver's first message may have no effort yet.
    with BagReader(written(tmp_path / "bag", *given, ("/arm", MESSAGE))) as bag:
        assert bag.choose(JOINT_STATE) == "/arm"
        bag.topics = {name: bag.topics[name] for name in ("/gripper", "/hand")}
        with pytest.raises(BagError, match="several topics"):
            bag.choose(JOINT_STATE)


def test_looking_for_the_topic_counts_no_message_twice(tmp_path: Path) -> None:
    bad = bytes.fromhex("00010000ffffff")
    given = (("/gripper", bad), ("/arm", bad), ("/gripper", SILENT), ("/arm", MESSAGE))
    with BagReader(written(tmp_path / "bag", *given)) as bag:
        assert bag.choose(JOINT_STATE) == "/arm" and not bag.undecodable
        assert len(list(bag.messages(["/arm"]))) == bag.undecodable.total() == 1
        assert bag.unreadable == read_joint_log(bag.path, NAMES).unreadable
        assert bag.unreadable[0].startswith("1 messages can't be decoded: a joint state that")


def test_a_bag_without_one_usable_message_says_why(folder: Path) -> None:
    with pytest.raises(BagError, match="600 times missing joint .no wrist among .*elbow"):
        read_measurements(folder, ["elbow", "wrist"])


@pytest.mark.parametrize("share", [0.9, 0.4])
def test_a_recording_that_broke_off_is_read_as_far_as_it_goes(recording, share) -> None:
    truncate(storage(recording), share)
    for path in (recording, storage(recording)):
        given = read_measurements(path, NAMES)
        n = len(given.measurements)
        assert 0.5 * share * 600 < n <= 600  # the last tenth may be the index alone
        assert_equal(given.measurements, motion()[:n])
        assert any("not ended" in warning for warning in given.warnings)


def test_transactions_that_a_killed_recorder_left_beside_the_file_are_read(database, tmp_path):
    path = tmp_path / "live.db3"
    shutil.copyfile(storage(database), path)
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    (data,) = writer.execute("SELECT data FROM messages ORDER BY id DESC LIMIT 1").fetchone()
    later = data[:4] + (50).to_bytes(4, "little") + data[8:]  # the stamp's seconds
    (topic,) = writer.execute("SELECT id FROM topics WHERE name = '/joint_states'").fetchone()
    writer.execute(
        "INSERT INTO messages (topic_id, timestamp, data) VALUES (?, ?, ?)", (topic, 50000, later)
    )
    writer.commit()
    killed = tmp_path / "killed.db3"
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{path}{suffix}", f"{killed}{suffix}")
    writer.close()
    given = read_measurements(killed, NAMES)
    assert given.received["joint states"] == 601
    assert "journal" in given.warnings[0]


def test_bytes_that_are_no_message_are_counted(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.db3"
    shutil.copyfile(storage(database), path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE messages SET data = x'00010000ffffff' WHERE id % 100 = 50")
    connection.close()
    given = read_measurements(path, NAMES)
    assert given.dropped == {"undecodable": 6} and given.details["undecodable"]
    assert len(given.measurements) == 594


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.mcap", None, "there is no bag"),
        ("notes.txt", b"1,2", "is no bag: it must be a rosbag2 folder"),
        ("my log.csv", b"1,2", "semiparam convert '/.*/my log.csv' 'my log_bag'"),
        ("old.bag", b"#ROSBAG V2.0", "is a ROS 1 bag"),
        ("empty.mcap", b"", "can't be read"),
        ("text.mcap", b"nothing of the kind", "can't be read"),
        ("text.db3", b"nothing of the kind" * 100, "can't be read"),
        ("empty.db3", b"", "can't be read"),
    ],
)
def test_what_is_no_bag_is_refused_in_one_line(tmp_path, name, content, message) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BagError, match=message) as error, BagReader(tmp_path / name):
        pass
    assert "\n" not in str(error.value)


def test_a_folder_that_is_no_bag_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BagError, match="is no rosbag2 folder"), BagReader(tmp_path):
        pass


def test_a_folder_of_bags_names_them(tmp_path: Path) -> None:
    for name in ("second", "first"):
        (tmp_path / name).mkdir()
        for number in range(2):
            (tmp_path / name / f"{name}_{number}.mcap").touch()
    (tmp_path / "notes").mkdir()
    with (
        pytest.raises(BagError, match="; bags are in it, name one: first and second$"),
        BagReader(tmp_path),
    ):
        pass


def test_a_recorded_robot_s_bare_file(data_file) -> None:
    joints = ["shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint"]
    joints += [f"wrist_{k}_joint" for k in (1, 2, 3)]
    given = read_measurements(data_file("robots/ur10/ur10_exciting_trajectory.db3"), joints)
    assert len(given.measurements) == 3441 and not given.dropped
    last = given.measurements[-1]
    assert last.stamp == 27_520_000_000 and last.y is not None and last.dq is not None


def test_names_that_damage_has_left_are_told_in_one_line(tmp_path: Path) -> None:
    reader = BagReader(tmp_path)
    reader.topics = {"/joint\nstates": Topic("sensor_msgs/msg\x00/JointState\n", 3)}
    for ask in (lambda: reader.choose(JOINT_STATE), lambda: list(reader.messages())):
        with pytest.raises(BagError) as told:
            ask()
        assert str(told.value).isprintable() and "/joint?states" in str(told.value)


def test_the_first_joint_states_are_those_of_some_seconds(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as writer:
        for k in range(1500):
            names, at = (["torso"], [0.3]) if k % 250 == 249 else (["a", "b"], [0.0, 1.0])
            writer.joint_state((k + 1) * 10_000_000, names, at)
    with BagReader(tmp_path / "bag") as bag:
        first = bag.first_joint_states("/joint_states")
    assert 1000 <= len(first) <= 1002  # of 10 s at 100 Hz
    assert [k for k, message in enumerate(first) if message.name == ["torso"]] == [
        249,
        499,
        749,
        999,
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_a_folder_that_may_not_be_entered_is_explained(tmp_path: Path) -> None:
    (tmp_path / "bag").mkdir(mode=0o000)
    with pytest.raises(BagError, match="bag can't be read: Permission denied"):
        read_measurements(tmp_path / "bag", NAMES)
