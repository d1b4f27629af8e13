"""Episodes of LeRobot data sets, written here in each version's layout as LeRobot writes them."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.base.errors import MissingExtraError, SampleError
from semiparam_dynamics.offline.cli.main import main
from semiparam_dynamics.offline.conversion.convert import read_log
from semiparam_dynamics.samples.bag import read_measurements

VERSIONS = ("v2.0", "v2.1", "v3.0")
FPS = 50
LENGTHS = (5, 7, 4)  # frames of each episode
NAMES = ["shoulder", "elbow"]
PATHS = {
    "v2": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
    "v3": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
}
STATE, EFFORT = "observation.state", "observation.effort"
needs_pyarrow = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="pyarrow is an extra"
)


def values(episode: int, column: int = 0, joints: int = 2) -> np.ndarray:
    shape = (LENGTHS[episode], joints)
    numbers = np.arange(np.prod(shape)).reshape(shape) / 64 + episode + 4 * column
    return numbers.astype(np.float32)


def write(
    root: Path,
    version: str,
    columns: Sequence[str] = (STATE, EFFORT),
    names: Any = NAMES,
    info: Mapping[str, Any] | None = None,
    jitter: float = 0.0,
    names_of: Mapping[str, Any] | None = None,
) -> Path:
    """Three episodes, the last in a file (version 3) or chunk (version 2) of its own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    width = 2 if isinstance(names, dict) or names is None else len(names)
    tables = [
        pa.table(
            {name: list(values(episode, k, width)) for k, name in enumerate(columns)}
            | {
                "timestamp": (frames / FPS + jitter * (frames % 2)).astype(np.float32),
                "frame_index": frames,
                "episode_index": np.full(len(frames), episode),
            }
        )
        for episode, frames in enumerate(map(np.arange, LENGTHS))
    ]
    if version == "v3.0":
        files = {
            PATHS["v3"].format(chunk_index=0, file_index=k): table
            for k, table in enumerate((pa.concat_tables(tables[:2]), tables[2]))
        }
        places = {"data/chunk_index": [0, 0, 0], "data/file_index": [0, 0, 1]}
        listed = pa.table({"episode_index": [0, 1, 2], **places, "length": LENGTHS})
        files["meta/episodes/chunk-000/file-000.parquet"] = listed
    else:
        files = {
            PATHS["v2"].format(episode_chunk=k // 2, episode_index=k): table
            for k, table in enumerate(tables)
        }
    for name, table in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, root / name)
    each = names_of or {}
    features = {
        name: {"dtype": "float32", "shape": [width], "names": each.get(name, names)}
        for name in columns
    }
    features["observation.images.top"] = {"dtype": "video", "shape": [8, 8, 3], "names": None}
    content = {
        "codebase_version": version,
        "fps": FPS,
        "total_episodes": len(LENGTHS),
        "chunks_size": 2 if version != "v3.0" else 1000,
        "data_path": PATHS[version[:2]],
        "features": features,
        **(info or {}),
    }
    (root / "meta").mkdir(exist_ok=True)
    (root / "meta/info.json").write_text(json.dumps(content))
    return root


@needs_pyarrow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("episode", range(3))
def test_an_episode_is_read_from_each_layout(tmp_path: Path, version: str, episode: int) -> None:
    log = read_log(write(tmp_path, version), episode=episode)
    np.testing.assert_array_equal(log.q, values(episode))
    np.testing.assert_array_equal(log.tau, values(episode, 1))
    assert log.names == tuple(NAMES) and log.dq is None and log.warnings == ()
    # The frames' numbers tell the times exactly, stamps in single precision would not.
    np.testing.assert_array_equal(log.time, np.arange(LENGTHS[episode]) * 20_000_000)


@needs_pyarrow
def test_a_data_set_becomes_a_bag(tmp_path: Path, capsys) -> None:
    data = write(tmp_path / "set", "v3.0", [STATE, "observation.velocity", "torque"])
    bag = tmp_path / "bag"
    options = ["--episode", "1", "--effort-column", "torque", "--degrees"]
    assert main(["convert", str(data), str(bag), *options]) == 0
    told = f"{bag}: 7 samples at 50 Hz on /joint_states; joints shoulder, elbow\n"
    assert capsys.readouterr().out == told
    given = read_measurements(bag, NAMES).measurements
    np.testing.assert_allclose([m.q for m in given], np.deg2rad(values(1)))
    np.testing.assert_allclose([m.y for m in given], values(1, 2))


@needs_pyarrow
def test_kinds_within_the_state_are_told_by_its_names(tmp_path: Path) -> None:
    names = ["a.pos", "b.pos", "b.torque", "a.torque", "a.vel", "b.vel", "gripper.width"]
    log = read_log(write(tmp_path, "v3.0", [STATE], names))
    rows = values(0, joints=7)
    assert log.names == ("a", "b") and log.warnings == ("not used: gripper.width",)
    for found, at in ((log.q, [0, 1]), (log.tau, [3, 2]), (log.dq, [4, 5])):
        np.testing.assert_array_equal(found, rows[:, at])


@needs_pyarrow
def test_efforts_and_velocities_of_other_columns_are_told_by_their_names(tmp_path: Path) -> None:
    state, other = ["a.pos", "b.pos", "gripper"], ["gripper", "b.torque", "a.torque"]
    velocity = "observation.velocity"
    columns = [STATE, EFFORT, velocity]
    own = {EFFORT: other, velocity: ["b", "a", "gripper"]}
    log = read_log(write(tmp_path, "v3.0", columns, state, names_of=own))
    assert log.names == ("a", "b")
    np.testing.assert_array_equal(log.q, values(0, 0, 3)[:, :2])
    np.testing.assert_array_equal(log.tau, values(0, 1, 3)[:, [2, 1]])
    np.testing.assert_array_equal(log.dq, values(0, 2, 3)[:, [1, 0]])


@needs_pyarrow
@pytest.mark.parametrize(
    ("state", "effort"),
    [
        (["a.pos", "b.pos", "c.pos"], ["c.current", "a.current", "b.current"]),
        (["main_a", "main_b", "main_c"], ["c_torque", "a_torque", "b_torque"]),
        (["arm-a-pos", "arm-b-pos", "arm-c-pos"], ["tau c", "tau a", "tau b"]),
        (["joint_1", "joint_2", "joint_3"], ["motor_3.load", "motor_1.load", "motor_2.load"]),
        (["left_a_q", "left_b_q", "left_c_q"], ["left_c.effort", "left_a.effort", "left_b.effort"]),
    ],
)
def test_names_match_without_what_all_of_a_column_have(tmp_path, state, effort) -> None:
    log = read_log(write(tmp_path, "v3.0", names=state, names_of={EFFORT: effort}))
    np.testing.assert_array_equal(log.q, values(0, 0, 3))
    np.testing.assert_array_equal(log.tau, values(0, 1, 3)[:, [1, 2, 0]])


@needs_pyarrow
@pytest.mark.parametrize(
    ("state", "effort"),
    [
        (["a.pos", "b.pos"], ["c.effort", "d.effort"]),
        (["a.pos", "b.pos", "gripper.pos"], ["a", "b", "hand"]),
        (["joint_1", "joint_2"], ["motor_0", "motor_1"]),
        (["a", "b"], ["a.torque", "a.effort"]),
        (["a"], ["b"]),
    ],
)
def test_names_that_do_not_match_are_refused(tmp_path, state: list[str], effort: list[str]) -> None:
    with pytest.raises(SampleError, match="Write names that agree into meta/info.json") as told:
        read_log(write(tmp_path, "v2.1", names=state, names_of={EFFORT: effort}))
    joints = ", ".join(name.removesuffix(".pos") for name in state)
    assert f"{EFFORT} can't be assigned by their names, {', '.join(effort)}; the" in str(told.value)
    assert f"those of {joints}." in str(told.value)


@needs_pyarrow
def test_values_without_names_go_by_position(tmp_path: Path) -> None:
    log = read_log(write(tmp_path, "v2.1", names_of={EFFORT: None}))
    np.testing.assert_array_equal(log.tau, values(0, 1))


@needs_pyarrow
@pytest.mark.parametrize(
    ("names", "expected"), [({"motors": NAMES}, tuple(NAMES)), (None, ()), ({"axes": ["dim"]}, ())]
)
def test_names_in_a_mapping_and_none(tmp_path: Path, names: Any, expected: tuple[str]) -> None:
    assert read_log(write(tmp_path, "v2.1", names=names)).names == expected


@needs_pyarrow
def test_stamps_that_differ_from_the_frames_count(tmp_path: Path) -> None:
    log = read_log(write(tmp_path, "v2.1", jitter=0.004))
    np.testing.assert_allclose(np.diff(log.time), [24e6, 16e6, 24e6, 16e6], atol=100)


@needs_pyarrow
@pytest.mark.parametrize("version", VERSIONS)
def test_an_episode_that_does_not_exist(tmp_path: Path, version: str) -> None:
    data = write(tmp_path, version)
    for episode in (3, -1):
        with pytest.raises(SampleError, match=rf"no episode {episode}; it has 3, from 0 on"):
            read_log(data, episode=episode)
    shutil.rmtree(tmp_path / "data")
    with pytest.raises(SampleError, match="no episode 2: there is no file .*; it has 3"):
        read_log(data, episode=2)


@needs_pyarrow
@pytest.mark.parametrize(
    ("columns", "effort", "message"),
    [
        (["observation.state"], "", "no column of efforts.*observation.state. --effort-column"),
        (["observation.state"], "tau", "has no column tau; it has: observation.state$"),
        (["action", EFFORT], "", "no column observation.state; it has: action, observation.effort"),
    ],
)
def test_a_missing_column_is_told_with_those_there(tmp_path, columns, effort, message) -> None:
    with pytest.raises(SampleError, match=message):
        read_log(write(tmp_path, "v2.1", columns), effort_column=effort)


@needs_pyarrow
@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({"codebase_version": "v1.6"}, "version v1.6; v2.0, v2.1, v3.0 are read"),
        ({"fps": 0}, "fps must be a positive number"),
        ({"features": []}, "lists no features"),
        ({"data_path": None}, "data_path"),
        ({"data_path": "data/{episode_index.__class__}"}, "there is no file"),
        ({"data_path": "data/{video_key}.parquet"}, "unknown field {video_key}"),
        ({"data_path": "../../etc/passwd"}, "leads out of the data set"),
        ({"data_path": "meta/info.json"}, "can't be read as LeRobot's Parquet"),
        ({"chunks_size": "many", "data_path": PATHS["v3"]}, "unknown field {chunk_index:03d}"),
    ],
)
def test_malformed_data_sets_are_refused(tmp_path, info: dict[str, Any], message: str) -> None:
    with pytest.raises(SampleError, match=message):
        read_log(write(tmp_path, "v2.1", info=info))


def test_folders_and_files_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(SampleError, match=r"a folder without meta/info\.json"):
        read_log(tmp_path)
    np.savez(tmp_path / "log.npz", q=np.zeros((2, 1)), tau=np.zeros((2, 1)), dt=0.1)
    for options in ({"episode": 0}, {"effort_column": "tau"}):
        with pytest.raises(SampleError, match="those of LeRobot data sets"):
            read_log(tmp_path / "log.npz", **options)


def test_without_pyarrow_a_sentence_says_how_to_install_it(tmp_path: Path, monkeypatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pyarrow" else find(name)
    )
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta/info.json").write_text("{}")
    with pytest.raises(MissingExtraError, match="pip install pyarrow"):
        read_log(tmp_path)
