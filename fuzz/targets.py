"""The targets: for each parser a function of bytes, which raises only what is a fault of ours.

`SEEDS` are whole inputs to begin from, so that the first bytes need not be guessed.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from semiparam_dynamics.base.config_files import dump_yaml, load_yaml
from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.storage import (
    MALFORMED,
    load_state,
    read_archive,
    write_archive,
)
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.conversion.convert import read_log
from semiparam_dynamics.recognition.config import LimitsConfig
from semiparam_dynamics.recognition.labels import checked_label, parse_edit
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.bag import (
    JOINT_STATE,
    BagReader,
    read_measurements,
)
from semiparam_dynamics.samples.bag_files import decompress_message, zstd

URDF = """<robot name="r"><link name="base"/><link name="arm"><inertial>
<origin xyz="0.1 0 0" rpy="0 0 0"/><mass value="2"/>
<inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><origin xyz="0 0 1" rpy="0 0 0"/><parent link="base"/>
<child link="arm"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="9" velocity="2"/>
</joint></robot>"""
SMALL = "inverse_dynamics:\n  ros__parameters:\n    target: effort\n    filter: {cutoff: 1e1}\n"


@contextmanager
def _file(data: bytes, name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="semiparam_fuzz_") as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        yield path


def urdf(data: bytes) -> None:
    """A robot_description."""
    try:
        model = RobotModel("<" + data.decode("utf-8", "replace").lstrip("<"))
        model.regressor(*[np.zeros(model.n_joints)] * 3)
    except SemiparamError:
        pass


def parameters_file(data: bytes) -> None:
    """A node's YAML."""
    with _file(data, "params.yaml") as path:
        try:
            load_yaml(path, InverseDynamicsConfig, "inverse_dynamics")
        except SemiparamError:
            pass


def metadata(data: bytes) -> None:
    """A recording's metadata.yaml, beside a file that is no bag."""
    with _file(data, "metadata.yaml") as path:
        (path.parent / "bag_0.mcap").write_bytes(b"")
        _read(path.parent)


def mcap(data: bytes) -> None:
    """A bare .mcap."""
    with _file(data, "bag.mcap") as path:
        _read(path)


def sqlite(data: bytes) -> None:
    """A bare .db3."""
    with _file(data, "bag.db3") as path:
        _read(path)


def compressed_bag(data: bytes) -> None:
    """A storage file in Zstandard."""
    with _file(data, "bag.mcap.zstd") as path:
        _read(path)


def _read(path: Path) -> None:
    try:
        with BagReader(path) as bag:
            bag.robot_description()
        read_measurements(path, ["a"])
    except SemiparamError:
        pass


def compressed_message(data: bytes) -> None:
    """One message in Zstandard."""
    try:
        decompress_message(data)
    except (zstd.ZstdError, ValueError, EOFError):
        pass


def archive(data: bytes) -> None:
    """A sealed archive, whatever its seal."""
    try:
        read_archive(data)
    except MALFORMED:
        pass


def model(data: bytes) -> None:
    """A saved model."""
    with _file(data, "model.npz") as path:
        try:
            load_state(path, {"joints": ["a"]})
        except SemiparamError:
            pass


def npz_log(data: bytes) -> None:
    """A log to be converted."""
    with _file(data, "log.npz") as path:
        try:
            read_log(path)
        except SemiparamError:
            pass


def labels(data: bytes) -> None:
    """Labels and edits, as a teacher and a user write them."""
    text = data.decode("utf-8", "surrogateescape" if data[:1] == b"\0" else "replace")
    for parse in (
        lambda: checked_label(text, LimitsConfig(), "unknown"),
        lambda: parse_edit(text),
    ):
        try:
            parse()
        except SemiparamError:
            pass


TARGETS: dict[str, Callable[[bytes], None]] = {
    function.__name__: function
    for function in (
        *(urdf, parameters_file, metadata, mcap, sqlite, compressed_bag),
        *(compressed_message, archive, model, npz_log, labels),
    )
}


def _bag(plugin: StoragePlugin, compressed: bool = False) -> bytes:
    store = get_typestore(Stores.ROS2_KILTED)
    with tempfile.TemporaryDirectory(prefix="semiparam_fuzz_") as folder:
        path = Path(folder) / "bag"
        writer = Writer(path, version=9, storage_plugin=plugin)
        if compressed:
            writer.set_compression(CompressionMode.FILE, CompressionFormat.ZSTD)
        with writer:
            connection = writer.add_connection("/joint_states", JOINT_STATE, typestore=store)
            header = store.types["std_msgs/msg/Header"](
                store.types["builtin_interfaces/msg/Time"](1, 2), ""
            )
            values = np.array([0.5])
            message = store.types[JOINT_STATE](header, ["a"], values, values, values)
            writer.write(connection, 10**9, store.serialize_cdr(message, JOINT_STATE))
        (file,) = (one for one in path.iterdir() if one.name != "metadata.yaml")
        return file.read_bytes()


def _archive(compressed: bool = False, **arrays: object) -> bytes:
    file = io.BytesIO()
    plain = {name: np.asarray(value) for name, value in arrays.items()}
    if compressed:
        np.savez_compressed(file, **plain)
    else:
        write_archive(file, plain)
    return file.getvalue()


def _saved() -> bytes:
    from semiparam_dynamics.base.storage import save_state

    with tempfile.TemporaryDirectory(prefix="semiparam_fuzz_") as folder:
        path = Path(folder) / "model.npz"
        save_state(path, {"joints": ["a"]}, {"R": np.eye(2)})
        return path.read_bytes()


LOG = {"t": [0.0, 0.1, 0.2], "q": [[0.0], [0.1], [0.2]], "tau": [[1.0], [2.0], [3.0]]}
METADATA = (
    b"rosbag2_bagfile_information:\n  version: 9\n  storage_identifier: mcap\n"
    b"  relative_file_paths: [bag_0.mcap]\n"
)
SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "urdf": lambda: [URDF.encode()],
    "parameters_file": lambda: [
        SMALL.encode(),
        dump_yaml(InverseDynamicsConfig(), "inverse_dynamics").encode(),
    ],
    "metadata": lambda: [METADATA],
    "mcap": lambda: [_bag(StoragePlugin.MCAP)],
    "sqlite": lambda: [_bag(StoragePlugin.SQLITE3)],
    "compressed_bag": lambda: [_bag(StoragePlugin.MCAP, compressed=True)],
    "compressed_message": lambda: [zstd.compress(b"\0\1\0\0" + bytes(40))],
    "archive": lambda: [_archive(a=np.eye(2), b=np.array("text"))],
    "model": lambda: [_saved()],
    "npz_log": lambda: [_archive(**LOG), _archive(compressed=True, **LOG)],
    "labels": lambda: [b"red mug", b"rename mug -> cup", b"teach mug 30\nask 60\npause 2"],
}
