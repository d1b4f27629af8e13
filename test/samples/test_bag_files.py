"""Recordings in every form that people have them: split, compressed, old, empty, damaged."""

from __future__ import annotations

import contextlib
import resource
import shutil
import sqlite3
import warnings
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rosbags.rosbag2 import CompressionMode, Writer
from rosbags.typesys import get_types_from_msg

from semiparam_dynamics.base.errors import BagError, SampleError
from semiparam_dynamics.samples import bag_files
from semiparam_dynamics.samples.bag import BagReader, Recording, read_measurements
from semiparam_dynamics.samples.bag_files import decompress_message, zstd
from semiparam_dynamics.samples.joint_states import JOINT_STATE

from .bags import NAMES, PLUGINS, STORE, add_file, joint_state, old_bag, storage, write

KINDS = ("mcap", "db3")


def numbers(recording: Recording) -> list[int]:
    """Which messages were read."""
    return [int(m.q[0]) for m in recording.measurements]


def read(path: Path) -> Recording:
    return read_measurements(path, NAMES)


@pytest.mark.parametrize("kind", KINDS)
def test_a_split_bag_is_one_recording(tmp_path: Path, kind: str) -> None:
    folder = write(tmp_path / "bag_9", range(30), kind)
    for number, part in ((10, range(30, 50)), (100, range(50, 60))):
        add_file(folder, write(tmp_path / f"bag_{number}", part, kind))
    given = read(folder)
    assert numbers(given) == list(range(60)) and not given.warnings
    with BagReader(folder) as bag:
        assert bag.topics["/joint_states"].count == 60
        assert bag.duration == pytest.approx(0.059)
    (folder / "metadata.yaml").unlink()
    assert numbers(read(folder)) == list(range(60))


@pytest.mark.parametrize("kind", KINDS)
def test_a_split_bag_that_lost_a_file_gives_the_others(tmp_path: Path, kind: str) -> None:
    folder = write(tmp_path / "bag_0", range(20), kind)
    add_file(folder, write(tmp_path / "bag_1", range(20, 40), kind))
    add_file(folder, write(tmp_path / "bag_2", range(40, 60), kind))
    lost = folder / f"bag_1.{kind}"
    lost.write_bytes(b"nothing that was ever a bag")
    given = read(folder)
    assert numbers(given) == [*range(20), *range(40, 60)]
    assert len(given.warnings) == 1 and str(lost) in given.warnings[0]
    lost.unlink()
    given = read(folder)
    assert numbers(given) == [*range(20), *range(40, 60)]
    assert given.warnings == [f"{folder} lacks bag_1.{kind}, which its metadata.yaml names"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", [CompressionMode.FILE, CompressionMode.MESSAGE])
def test_compressed_bags_are_read_as_folder_without_metadata_and_bare(tmp_path, kind, mode) -> None:
    folder = write(tmp_path / "bag", range(40), kind, mode=mode)
    file = storage(folder)
    assert file.name == (f"bag.{kind}.zstd" if mode == CompressionMode.FILE else f"bag.{kind}")
    for path in (folder, file):
        given = read(path)
        assert numbers(given) == list(range(40)) and not given.warnings
    (folder / "metadata.yaml").unlink()
    given = read(folder)
    assert numbers(given) == list(range(40))
    assert given.warnings == [f"{folder} has no metadata.yaml: the recording was not ended"]


def test_a_file_that_a_player_decompressed_beside_itself_is_read_once(tmp_path: Path) -> None:
    folder = write(tmp_path / "bag", range(40), "db3", mode=CompressionMode.FILE)
    shutil.copy(storage(write(tmp_path / "plain", range(40), "db3")), folder / "bag.db3")
    assert numbers(read(folder)) == list(range(40))
    (folder / "metadata.yaml").unlink()
    assert numbers(read(folder)) == list(range(40))
    (folder / "bag.db3.zstd").unlink()
    assert numbers(read(folder)) == list(range(40))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", [CompressionMode.FILE, CompressionMode.MESSAGE])
def test_a_compressed_bag_that_broke_off_is_read_as_far_as_it_goes(tmp_path, kind, mode) -> None:
    count = 8000  # zstd gives nothing of a block that isn't whole
    folder = write(tmp_path / "bag", range(count), kind, mode=mode)
    file = storage(folder)
    data = file.read_bytes()
    file.write_bytes(data[: int(0.7 * len(data))])
    for path in (folder, file):
        given = read(path)
        found = numbers(given)
        assert 0.3 * count < len(found) < count and found == list(range(len(found)))
        assert any("was not ended" in text and str(file) in text for text in given.warnings)


@pytest.mark.parametrize("version", range(1, 10))
def test_bags_of_older_distributions(tmp_path: Path, version: int) -> None:
    folder = old_bag(tmp_path / "old", range(25), version)
    given = read(folder)
    assert numbers(given) == list(range(25)) and not given.warnings
    assert numbers(read(folder / "old_0.db3")) == list(range(25))


def test_metadata_of_a_version_to_come_or_none_at_all(tmp_path: Path) -> None:
    folder = old_bag(tmp_path / "new", range(25), 9)
    path = folder / "metadata.yaml"
    path.write_text(path.read_text().replace("version: 9", "version: 12"))
    given = read(folder)
    assert numbers(given) == list(range(25)) and not given.warnings
    for text in ("{", "", "- 1", "rosbag2_bagfile_information: {relative_file_paths: 3}", "\x00"):
        path.write_text(text)
        given = read(folder)
        assert numbers(given) == list(range(25))
        assert "metadata.yaml can't be read" in given.warnings[0]


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_bag_is_said_to_be_empty(tmp_path: Path, kind: str) -> None:
    folder = write(tmp_path / "bag", [], kind)
    for path in (folder, storage(folder)):
        with pytest.raises(BagError, match="no message on /joint_states of .* it is empty"):
            read(path)
        with BagReader(path) as bag:
            assert bag.duration == 0.0 and list(bag.messages()) == []
    bare = write(tmp_path / "bare", [], kind, topics=())
    with pytest.raises(BagError, match="has no topic of type .*JointState; it has: no topics"):
        read(bare)


@pytest.mark.parametrize("kind", KINDS)
def test_topics_of_unknown_types_beside_cost_nothing(tmp_path: Path, kind: str) -> None:
    own = "arm_msgs/msg/Gripper"
    STORE.register(get_types_from_msg("float64 width\n", own))
    with Writer(tmp_path / "bag", version=9, storage_plugin=PLUGINS[kind]) as writer:
        gripper = writer.add_connection("/gripper", own, typestore=STORE)
        joints = writer.add_connection("/joint_states", JOINT_STATE, typestore=STORE)
        for k in range(20):
            stamp, message = joint_state(k)
            writer.write(gripper, stamp, STORE.serialize_cdr(STORE.types[own](0.1 * k), own))
            writer.write(joints, stamp, STORE.serialize_cdr(message, JOINT_STATE))
    given = read(tmp_path / "bag")
    assert numbers(given) == list(range(20)) and not given.warnings and not given.dropped
    with BagReader(tmp_path / "bag") as bag:
        assert bag.topics["/gripper"].type == own
        with pytest.raises(BagError, match=f"'/gripper' of .* has the unknown type {own}"):
            next(bag.messages(["/gripper"]))


@pytest.mark.parametrize("column", ["name", "type"])
def test_a_topic_whose_name_or_type_is_missing_is_left_out(tmp_path: Path, column: str) -> None:
    folder = write(tmp_path / "bag", range(5), "db3")
    (file,) = folder.glob("*.db3")
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        sql = "SELECT sql FROM sqlite_master WHERE name = 'topics'"
        (columns,) = database.execute(sql).fetchone()
        database.execute("ALTER TABLE topics RENAME TO old")
        database.execute(columns.replace(" NOT NULL", ""))
        database.execute("INSERT INTO topics SELECT * FROM old")
        database.execute(f"UPDATE topics SET {column} = NULL")
    with pytest.raises(BagError, match="no topics at all"):
        read(file)
    with BagReader(file) as bag:
        assert not list(bag.messages())
        assert any("without a name or a type" in told for told in bag.warnings)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, CompressionMode], Path]:
    """Bags of 12 messages, in each storage and compression."""
    root = tmp_path_factory.mktemp("small")
    modes = (CompressionMode.NONE, CompressionMode.FILE, CompressionMode.MESSAGE)
    return {
        (kind, mode): write(root / f"{kind}_{mode.name}", range(12), kind, mode=mode)
        for kind in KINDS
        for mode in modes
    }


DAMAGES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 7)), max_size=12)


@given(
    kind=st.sampled_from(KINDS),
    mode=st.sampled_from([CompressionMode.NONE, CompressionMode.FILE, CompressionMode.MESSAGE]),
    end=st.floats(0, 1) | st.just(1.0),
    flips=DAMAGES,
    bare=st.booleans(),
)
@example(kind="mcap", mode=CompressionMode.NONE, end=0.0, flips=[], bare=True)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_happens_to_its_bytes_a_bag_gives_less_or_a_sentence(
    small, tmp_path_factory, kind, mode, end, flips, bare
) -> None:
    folder = tmp_path_factory.getbasetemp() / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(small[kind, mode], folder)
    file = storage(folder)
    data = bytearray(file.read_bytes())
    for at, bit in flips:
        data[min(int(at * len(data)), len(data) - 1)] ^= 1 << bit
    file.write_bytes(bytes(data[: round(end * len(data))]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            given = read(file if bare else folder)
        except (BagError, SampleError) as error:
            assert "\n" not in str(error)
        else:
            assert 1 <= len(given.measurements) <= given.received["joint states"] <= 12
            if end == 1.0 and not flips:
                assert numbers(given) == list(range(12))


@given(at=st.floats(0, 1), byte=st.integers(0, 255), end=st.floats(0, 1) | st.just(1.0))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_damaged_metadata_costs_no_message(small, tmp_path_factory, at, byte, end) -> None:
    folder = tmp_path_factory.getbasetemp() / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(small["db3", CompressionMode.NONE], folder)
    path = folder / "metadata.yaml"
    data = bytearray(path.read_bytes())
    data[min(int(at * len(data)), len(data) - 1)] = byte
    path.write_bytes(bytes(data[: round(end * len(data))]))
    given = read(folder)
    assert numbers(given) == list(range(12))
    try:
        named = yaml.safe_load(path.read_text())["rosbag2_bagfile_information"]
        fine = named["relative_file_paths"] == ["db3_NONE.db3"]
    except (TypeError, KeyError, UnicodeDecodeError, yaml.YAMLError):
        fine = False
    assert fine == (not given.warnings)


PLAIN = b"\0\1\0\0" + bytes(range(200))


def test_plain_bytes_pass_and_frames_are_joined() -> None:
    assert decompress_message(PLAIN) is PLAIN
    assert decompress_message(zstd.compress(PLAIN)) == PLAIN
    assert decompress_message(memoryview(zstd.compress(PLAIN))) == PLAIN
    two = zstd.compress(PLAIN) + zstd.compress(b"more")
    assert decompress_message(two) == zstd.decompress(two) == PLAIN + b"more"


def test_a_few_bytes_that_become_gigabytes_are_refused_before_they_do(monkeypatch) -> None:
    monkeypatch.setattr(bag_files, "MAX_UNPACKED", 1 << 20)
    exact = zstd.compress(bytes(1 << 20))
    assert len(decompress_message(exact)) == 1 << 20
    bomb = zstd.compress(bytes(1 << 27)) * 8  # a gigabyte in all
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="longer than 1048576 bytes"):
        decompress_message(bomb)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
