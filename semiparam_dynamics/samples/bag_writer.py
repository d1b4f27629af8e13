"""Writing rosbag2 recordings (MCAP): joint states, wrenches, description and trajectories."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rosbags.interfaces import (
    Connection,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import StoragePlugin, Writer, WriterError
from rosbags.typesys import Stores, get_typestore

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.base.errors import BagError, SampleError
from semiparam_dynamics.base.storage import previous_of
from semiparam_dynamics.samples.bag import STRING, WRENCH
from semiparam_dynamics.samples.joint_states import JOINT_STATE
from semiparam_dynamics.samples.measurement import Measurement

JOINT_TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
_BAG_FILES = (".db3", ".mcap", ".zstd", ".yaml", ".db3-wal", ".db3-shm")
_FOREVER = QosTime(9223372036, 854775807)


def offered_qos(depth: int, latched: bool) -> Qos:
    """The QoS that a player publishes a topic with again; latched: to later subscribers, too."""
    return Qos(
        history=QosHistory.KEEP_LAST,
        depth=depth,
        reliability=QosReliability.RELIABLE,
        durability=QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE,
        deadline=_FOREVER,
        lifespan=_FOREVER,
        liveliness=QosLiveliness.AUTOMATIC,
        liveliness_lease_duration=_FOREVER,
        avoid_ros_namespace_conventions=False,
    )


class BagWriter:
    """A new rosbag2 folder in MCAP, open for writing; a context manager.

    A topic is in the bag once its first message is written. Each message's time of recording is
    its stamp. The folder is there once the block has ended, whole: where it ends by an exception,
    on a full disk for instance, nothing has changed. Raises BagError where the system refuses.

    Parameters
    ----------
    path: the folder to make; BagError where it exists, unless `overwrite` and it is a bag,
        which is then kept beside, see :func:`semiparam_dynamics.base.storage.previous_of`.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        joint_states_topic: str = "/joint_states",
        wrench_topic: str = "/wrench",
        overwrite: bool = False,
    ) -> None:
        self.path = Path(path).expanduser()
        place = self.path.absolute()  # of "." only so there is a name
        self._part = place.parent / f".{place.name}.part"
        self._joint_states_topic = joint_states_topic
        self._wrench_topic = wrench_topic
        self._overwrite = overwrite
        self._store = get_typestore(Stores.ROS2_KILTED)
        self._connections: dict[str, Connection] = {}

    def __enter__(self) -> BagWriter:
        check_bag_place(self.path, overwrite=self._overwrite)
        try:
            shutil.rmtree(self._part, ignore_errors=True)  # of a process that was killed
            self._part.mkdir(parents=True)
            # The files in it are named after it.
            part = self._part / self.path.name
            self._writer = Writer(part, version=9, storage_plugin=StoragePlugin.MCAP)
            self._writer.open()
        except (OSError, WriterError) as error:
            raise self._refused(error) from None
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._writer.close()
                if self.path.exists():
                    shutil.rmtree(previous_of(self.path), ignore_errors=True)
                    self.path.rename(previous_of(self.path))
                (self._part / self.path.name).rename(self.path)
            else:
                with suppress(OSError):  # a full disk: it is removed
                    self._writer.close()
        except OSError as problem:
            raise self._refused(problem) from None
        finally:
            shutil.rmtree(self._part, ignore_errors=True)

    def _refused(self, error: Exception) -> BagError:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        return BagError(f"the bag {self.path} can't be written: {why}")

    def joint_state(
        self,
        stamp: int,
        names: Sequence[str],
        position: npt.ArrayLike,
        velocity: npt.ArrayLike | None = None,
        effort: npt.ArrayLike | None = None,
    ) -> None:
        """Write one JointState; `stamp` in ns, arrays (len(names),) in rad, rad/s, N m."""
        arrays = [_floats(values, len(names)) for values in (position, velocity, effort)]
        kind = self._store.types[JOINT_STATE]
        message = kind(self._header(stamp, ""), list(names), *arrays)
        self._write(self._joint_states_topic, JOINT_STATE, stamp, message)

    def wrench(self, stamp: int, values: npt.ArrayLike, frame: str = "") -> None:
        """Write one WrenchStamped; `values` (6,): fx, fy, fz (N), tx, ty, tz (N m)."""
        x = [float(value) for value in _floats(values, 6)]
        types = self._store.types
        vector = types["geometry_msgs/msg/Vector3"]
        wrench = types["geometry_msgs/msg/Wrench"](vector(*x[:3]), vector(*x[3:]))
        message = types[WRENCH](self._header(stamp, frame), wrench)
        self._write(self._wrench_topic, WRENCH, stamp, message)

    def robot_description(self, urdf: str, stamp: int, topic: str = "/robot_description") -> None:
        """Write the URDF text, as robot_state_publisher offers it."""
        latched = [offered_qos(1, latched=True)]
        self._write(topic, STRING, stamp, self._store.types[STRING](urdf), latched)

    def joint_trajectory(
        self,
        stamp: int,
        names: Sequence[str],
        times: npt.ArrayLike,
        motion: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
        topic: str,
    ) -> None:
        """Write one JointTrajectory, recorded at `stamp` (ns), with no stamp of its own.

        times: (n,) s from the start. motion: q, dq, ddq, each (n, len(names)). A header without a
        stamp means, to the controllers of ros2_control, that it begins when it arrives.
        """
        types = self._store.types
        point = types["trajectory_msgs/msg/JointTrajectoryPoint"]
        duration = types["builtin_interfaces/msg/Duration"]
        arrays = [np.asarray(values, dtype=np.float64) for values in motion]
        points = [
            point(
                *(_floats(values[k], len(names)) for values in arrays),
                effort=np.empty(0),
                time_from_start=duration(*divmod(round(float(t) * SECOND), SECOND)),
            )
            for k, t in enumerate(np.asarray(times, dtype=np.float64))
        ]
        message = types[JOINT_TRAJECTORY](self._header(0, ""), list(names), points)
        self._write(topic, JOINT_TRAJECTORY, stamp, message)

    def _header(self, stamp: int, frame: str) -> Any:
        time = self._store.types["builtin_interfaces/msg/Time"](*divmod(stamp, SECOND))
        return self._store.types["std_msgs/msg/Header"](time, frame)

    def _write(
        self, topic: str, kind: str, stamp: int, message: Any, qos: Sequence[Qos] = ()
    ) -> None:
        data = self._store.serialize_cdr(message, kind)
        self.serialized(topic, kind, stamp, data, qos)

    def serialized(
        self,
        topic: str,
        kind: str,
        stamp: int,
        data: bytes | memoryview,
        qos: Sequence[Qos] = (),
    ) -> None:
        """Write one message of the type `kind` in CDR, recorded at `stamp` (ns)."""
        connection = self._connections.get(topic)
        if connection is None:
            connection = self._writer.add_connection(
                topic, kind, typestore=self._store, offered_qos_profiles=qos
            )
            self._connections[topic] = connection
        try:
            self._writer.write(connection, stamp, data)
        except OSError as error:
            raise self._refused(error) from None


def check_bag_place(path: Path, *, overwrite: bool) -> None:
    """Raise BagError unless a bag can be written to `path`, replacing one with `overwrite`.

    A mistyped path must not cost a folder of something else, and neither must the place beside,
    where a bag that is replaced is kept.
    """
    if path.exists() and not overwrite:
        raise BagError(
            f"{path} exists already: name another, or add --overwrite, which keeps the one before "
            f"as {previous_of(path).name}"
        )
    for place in (path, previous_of(path)) if path.exists() else ():
        if place.exists() and not _is_bag(place):
            raise BagError(f"{place} is not only a bag, so it is not replaced")


def _is_bag(path: Path) -> bool:
    """True if a folder holds a bag and nothing else."""
    described = path.is_dir() and (path / "metadata.yaml").exists()
    return described and all(file.suffix in _BAG_FILES for file in path.iterdir())


def write_measurements(
    path: str | Path,
    joint_names: Sequence[str],
    measurements: Iterable[Measurement],
    target: str = "effort",
    *,
    robot_description: str = "",
    wrench_frame: str = "",
    overwrite: bool = False,
) -> None:
    """Write measurements to a bag: y as the joint states' effort, or as wrenches (by `target`)."""
    described = not robot_description
    with BagWriter(path, overwrite=overwrite) as bag:
        for m in measurements:
            if not described:
                bag.robot_description(robot_description, m.stamp)
                described = True
            bag.joint_state(m.stamp, joint_names, m.q, m.dq, m.y if target == "effort" else None)
            if target == "wrench" and m.y is not None:
                bag.wrench(m.stamp, m.y, wrench_frame)


def _floats(values: npt.ArrayLike | None, n: int) -> npt.NDArray[np.float64]:
    if values is None:
        return np.empty(0)
    array = np.array(values, dtype=np.float64)
    if array.shape != (n,):
        raise SampleError(f"a message of {n} values can't hold an array of shape {array.shape}")
    return array
