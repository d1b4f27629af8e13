"""LeRobot data sets, versions 2.0, 2.1 and 3.0, as logs: one episode of a folder on this machine.

Version 2 has one Parquet file an episode; version 3 puts many into one, and ``meta/episodes/`` says
which (https://huggingface.co/docs/lerobot/lerobot-dataset-v3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.config_files import read_small
from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.base.extras import require
from semiparam_dynamics.offline.conversion.csv_log import joint_column

INFO = Path("meta", "info.json")
VERSIONS = ("v2.0", "v2.1", "v3.0")
# No version prescribes these names: they are what recording scripts write.
POSITIONS = ("observation.state", "observation.position", "observation.qpos")
VELOCITIES = ("observation.velocity", "observation.qvel", "observation.state.velocity")
EFFORTS = (
    "observation.effort",
    "observation.torque",
    "observation.tau",
    "observation.efforts",
    "observation.torques",
    "observation.state.effort",
    "observation.state.torque",
)
WORDS = re.compile(r"[\s._/-]+")  # what stands between the words of a name
STAMP_TOLERANCE_S = 1e-4  # s: by so much LeRobot lets a time stamp differ from the frame's number
# A field of a path: a file from the network is no format string to be trusted.
FIELD = re.compile(r"\{(\w+)(?::0?(\d{1,2})d)?\}")


def read_lerobot(
    path: Path, episode: int = 0, effort_column: str = ""
) -> tuple[dict[str, Array], tuple[str, ...], list[str]]:
    """Arrays of an episode, as `read_log` takes them, the joints' names, and the columns not used.

    Positions are the column ``observation.state``. Where its names have kinds (``elbow.pos``,
    ``elbow.vel``, ``elbow.torque``), velocities and efforts are taken from it, too. Efforts are
    otherwise the column `effort_column`, or the first of `EFFORTS` that is there. Where its names
    are the joints', whatever their order, what all of them begin or end with, and other names,
    each joint gets its own.

    Raises SampleError where the data set, the episode or a column is missing or malformed, or
    values can't be assigned by their names, and MissingExtraError without pyarrow.
    """
    if not (path / INFO).is_file():
        raise SampleError(f"{path} is a folder without {INFO}: a LeRobot data set has one")
    require("a LeRobot data set", "lerobot")
    info = _info(path)
    features = {
        name: entry
        for name, entry in info["features"].items()
        if isinstance(entry, dict) and re.match(r"(float|int)\d+$", str(entry.get("dtype")))
    }
    found = [column for column in POSITIONS if column in features]
    if not found:
        raise SampleError(f"{path} has no column {POSITIONS[0]}; it has: {_list(features)}")
    state = found[0]
    if effort_column and effort_column not in features:
        raise SampleError(f"{path} has no column {effort_column}; it has: {_list(features)}")
    velocity = next((column for column in VELOCITIES if column in features), "")
    effort = effort_column or next((column for column in EFFORTS if column in features), "")
    names = _names(features[state])
    kinds = _kinds(path, names)
    if not effort and "tau" not in kinds:
        raise SampleError(
            f"{path} has no column of efforts, which are what is learned; it has: "
            f"{_list(features)}. --effort-column names one"
        )
    wanted = [column for column in (state, velocity, effort) if column]
    columns = _columns(path, info, episode, wanted)
    arrays = {"t": columns["t"]}
    values = columns[state]
    if kinds and values.shape[1] != len(names):
        raise SampleError(
            f"{path}: {state} has {values.shape[1]} values, and {len(names)} names in {INFO}"
        )
    joints = tuple(kinds["q"]) if kinds else names
    for kind, at in kinds.items():
        arrays[kind] = values[:, list(at.values())]
    if not kinds:
        arrays["q"] = values
    if velocity and "dq" not in arrays:
        arrays["dq"] = _of_joints(path, velocity, columns, _names(features[velocity]), joints)
    if effort and (effort_column or "tau" not in arrays):
        arrays["tau"] = _of_joints(path, effort, columns, _names(features[effort]), joints)
    taken = {at for part in kinds.values() for at in part.values()}
    unused = [name for at, name in enumerate(names) if kinds and at not in taken]
    return arrays, joints, unused


def _info(path: Path) -> Mapping[str, Any]:
    """The content of ``meta/info.json``, as far as it is used checked."""
    where = path / INFO
    try:
        info = json.loads(read_small(where))
    except (OSError, ValueError, RecursionError) as error:
        raise SampleError(f"{where} can't be read: {error}") from None
    if not isinstance(info, dict) or not isinstance(info.get("features"), dict):
        raise SampleError(f"{where} lists no features: is this a LeRobot data set?")
    version = info.get("codebase_version")
    if version not in VERSIONS:
        raise SampleError(
            f"{path} is a LeRobot data set of version {version}; {_list(VERSIONS)} are read"
        )
    fps = info.get("fps")
    if isinstance(fps, bool) or not isinstance(fps, int | float) or not fps > 0:
        raise SampleError(f"{where}: fps must be a positive number, not {fps}")
    if not isinstance(info.get("data_path"), str):
        raise SampleError(f"{where} does not name the files by data_path")
    return info


def _names(feature: Mapping[str, Any]) -> tuple[str, ...]:
    """A column's names: a list, or a list within a mapping such as {"motors": [...]}; or none."""
    names = feature.get("names")
    if isinstance(names, dict):
        names = next((part for part in names.values() if isinstance(part, list)), None)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return ()
    shape = feature.get("shape")
    if isinstance(shape, list) and len(shape) == 1 and shape[0] != len(names):
        return ()  # a name for the whole, such as "dim"
    return tuple(names)


def _kinds(path: Path, names: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """For each kind in the names its joints, in the positions' order, and their places."""
    kinds: dict[str, dict[str, int]] = {}
    for at, name in enumerate(names):
        if found := joint_column(name):
            kinds.setdefault(found[0], {}).setdefault(found[1], at)
    if "q" not in kinds:
        return {}
    for kind, places in kinds.items():
        if missing := [joint for joint in kinds["q"] if joint not in places]:
            raise SampleError(f"{path} has '{kind}' of some, not of {', '.join(missing)}")
        kinds[kind] = {joint: places[joint] for joint in kinds["q"]}
    return kinds


def _of_joints(
    path: Path,
    column: str,
    columns: Mapping[str, Array],
    names: tuple[str, ...],
    joints: tuple[str, ...],
) -> Array:
    """A column's values (n, k) in the order of `joints`; as they are without names.

    Raises SampleError where the k names are not those of the joints, even without what all have.
    """
    values = columns[column]
    if not joints or not names or len(names) != values.shape[1]:
        return values
    own = tuple((joint_column(name) or ("", name))[1] for name in names)
    for wanted in (joints, _without_common(joints)):
        for found in (names, own, _without_common(own)):
            if all(found.count(joint) == 1 for joint in wanted):
                return values[:, [found.index(joint) for joint in wanted]]
    raise SampleError(
        f"{path}: the values of {column} can't be assigned by their names, {', '.join(names)}; the "
        f"positions are those of {', '.join(joints)}. Write names that agree into {INFO}"
    )


def _without_common(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names without the words that all of them begin or end with, such as ``main_`` or ``.pos``."""
    words = [WORDS.split(name) for name in names]
    if len(words) < 2:
        return names
    shortest = min(map(len, words)) - 1  # each keeps a word
    first = next((k for k in range(shortest) if len({each[k] for each in words}) > 1), shortest)
    left = shortest - first
    last = next((k for k in range(left) if len({each[-1 - k] for each in words}) > 1), left)
    return tuple("_".join(each[first : len(each) - last]) for each in words)


def _columns(
    path: Path, info: Mapping[str, Any], episode: int, wanted: list[str]
) -> dict[str, Array]:
    """The wanted columns of an episode (n, values), and its times ``t`` (n,), s."""
    fields = _place(path, info, episode)
    file = path / _filled(path, info["data_path"], fields)
    if not file.resolve().is_relative_to(path.resolve()):
        raise SampleError(f"{path / INFO}: data_path leads out of the data set")
    if not file.is_file():
        raise _no_episode(path, info, episode, f"there is no file {file}")
    read = _read(file, ["frame_index", "timestamp", *wanted], episode)
    if not len(read["frame_index"]):
        raise _no_episode(path, info, episode, f"{file} does not hold it")
    order = np.argsort(read["frame_index"][:, 0], kind="stable")
    columns = {name: values[order] for name, values in read.items()}
    frames = (columns["frame_index"][:, 0] - columns["frame_index"][0, 0]) / float(info["fps"])
    stamps = columns["timestamp"][:, 0] - columns["timestamp"][0, 0]
    # Stamps are stored in single precision: the frames' numbers are exact where both agree.
    agree = float(np.abs(stamps - frames).max()) <= STAMP_TOLERANCE_S
    columns["t"] = frames if agree else stamps
    return columns


def _place(path: Path, info: Mapping[str, Any], episode: int) -> dict[str, int]:
    """The numbers that make of data_path the episode's file."""
    total, size = info.get("total_episodes"), info.get("chunks_size", 1000)
    if episode < 0 or (isinstance(total, int) and episode >= total):
        raise _no_episode(path, info, episode)
    if info["codebase_version"] != "v3.0":
        chunk = episode // size if isinstance(size, int) and size > 0 else 0
        fields = {"episode_index": episode, "episode_chunk": chunk}
        return {**fields, "total_episodes": total} if isinstance(total, int) else fields
    wanted = ["data/chunk_index", "data/file_index"]
    for file in sorted((path / "meta" / "episodes").glob("*/*.parquet")):
        read = _read(file, wanted, episode)
        if len(read[wanted[0]]):
            chunk, number = (int(read[name][0, 0]) for name in wanted)
            return {"chunk_index": chunk, "file_index": number}
    raise _no_episode(path, info, episode, f"{path / 'meta' / 'episodes'} does not list it")


def _no_episode(path: Path, info: Mapping[str, Any], episode: int, why: str = "") -> SampleError:
    total = info.get("total_episodes")
    has = f"; it has {total}, from 0 on" if isinstance(total, int) else ""
    return SampleError(f"{path} has no episode {episode}{': ' + why if why else ''}{has}")


def _filled(path: Path, template: str, fields: Mapping[str, int]) -> str:
    """The path that `template` gives with the numbers of `fields`."""

    def number(match: re.Match[str]) -> str:
        if match[1] not in fields:
            raise SampleError(f"{path / INFO}: data_path has an unknown field {match[0]}")
        return f"{fields[match[1]]:0{match[2] or 1}d}"

    return FIELD.sub(number, template)


def _read(file: Path, wanted: list[str], episode: int) -> dict[str, Array]:
    """The wanted columns (n, values) of a file's rows that are of an episode."""
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(
            file, columns=wanted, filters=[("episode_index", "=", episode)]
        )
        if missing := [name for name in wanted if name not in table.column_names]:
            raise SampleError(f"{file} has no column {', '.join(missing)}")
        values = {name: np.asarray(table[name].to_pylist(), dtype=float) for name in wanted}
    except (pyarrow.ArrowException, OSError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SampleError(f"{file} can't be read as LeRobot's Parquet: {reason}") from None
    return {name: array.reshape(len(array), array[:1].size) for name, array in values.items()}


def _list(names: Any) -> str:
    return ", ".join(names) or "none of numbers"
