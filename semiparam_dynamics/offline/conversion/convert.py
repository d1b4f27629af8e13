"""Logs of scripts, MATLAB, spreadsheets and LeRobot turned into rosbag2."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.arrays import SECOND, Array, Mask, Stamps
from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.base.storage import MALFORMED
from semiparam_dynamics.offline.conversion.csv_log import first_back, read_csv
from semiparam_dynamics.offline.conversion.lerobot_log import read_lerobot
from semiparam_dynamics.robot.urdf import ONE_DOF, parse_urdf, read_urdf
from semiparam_dynamics.samples.bag_writer import BagWriter

KNOWN = ("t", "dt", "q", "dq", "tau", "wrench", "names")
MAX_SPAN = 9e9  # s: more nanoseconds have no room in 64 bits
MAX_PLAUSIBLE_ANGLE = 20.0  # rad: joints that turn further than this three times over are rare
MAX_PERIOD = 1.0  # s: no filter follows motion sampled so seldom, and 1 kHz is 1 in ms
BEGINNING = 256  # bytes: enough to distinguish text from numbers
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # spreadsheets begin such text with one
CONTROL = frozenset(range(32)) - frozenset(b"\t\n\r\f") | {127}  # bytes that no text has
TO_NPZ = (
    "load its arrays in Python (scipy.io.loadmat for MATLAB's files, h5py for HDF5) and "
    "write them with numpy.savez('log.npz', t=..., q=..., dq=..., tau=...)"
)
START = 1.0  # s: a stamp of zero is an unset one


@dataclass(frozen=True)
class Conversion:
    """Facts of a bag: the joints' names, the number of instants, their rate, and warnings."""

    names: tuple[str, ...]
    samples: int
    rate: float
    topics: tuple[str, ...]
    warnings: tuple[str, ...]


def convert_log(
    log: str | Path,
    bag: str | Path,
    *,
    names: Sequence[str] = (),
    urdf: str = "",
    start: float = START,
    wrench_frame: str = "",
    overwrite: bool = False,
    episode: int | None = None,
    effort_column: str = "",
    degrees: bool = False,
) -> Conversion:
    """Write the log `log` (see `read_log`, with its last arguments) to the rosbag2 folder `bag`.

    The same log always gives the same messages: the first stamp is `start`, in seconds, whatever
    ``t`` begins with. The joints' names are `names`, or those in the log, or the URDF's actuated
    joints in order, or joint_1, joint_2, ...; the URDF (text or path) is put into the bag as its
    robot_description.

    Raises SampleError on a bad log or wrong names, RobotModelError on a bad URDF, BagError where
    the bag can't be written.
    """
    data = read_log(log, episode=episode, effort_column=effort_column, degrees=degrees)
    joints = data.q.shape[1]
    if not 0 < start < 2**31 - data.time[-1] / SECOND:
        raise SampleError(f"the start must be positive seconds before the year 2038, not {start}")
    text, actuated, slides = _describe(urdf) if urdf else ("", (), {})
    if names:
        check_names(names, joints, "the names given")
    names = tuple(names) or data.names or actuated or tuple(f"joint_{j + 1}" for j in range(joints))
    if len(names) != joints:  # those of the URDF
        raise SampleError(
            f"the log has {joints} joints, the URDF {len(names)} that move"
            f" ({', '.join(names)}): name the log's joints"
        )
    # Those that follow another one (<mimic>) move as well, and joint states name them.
    unknown = [name for name in names if text and name not in slides]
    if unknown:
        known = ", ".join(slides)
        raise SampleError(
            f"the URDF has no joint {', '.join(unknown)} that moves; it has: {known}; --names says "
            "which of them the log's joints are, in the log's order"
        )
    warnings = data.warnings
    if text:  # what slides was never in degrees
        slid = data.degrees & np.array([slides[name] for name in names])
        factor = np.where(slid, np.rad2deg(1.0), 1.0)
        dq = None if data.dq is None else factor[1] * data.dq
        data = replace(data, q=factor[0] * data.q, dq=dq)
    elif data.degrees.any():
        warnings += (
            "every joint's positions and velocities were taken as degrees: with --urdf those of "
            "prismatic joints stay in metres",
        )
    topics = ["/joint_states"] + (["/wrench"] if data.wrench is not None else [])
    first = round(start * SECOND)
    with BagWriter(bag, overwrite=overwrite) as writer:
        if text:
            writer.robot_description(text, first)
            topics.append("/robot_description")
        for row, time in enumerate(data.time.tolist()):
            stamp = first + time
            dq, tau = (None if a is None else a[row] for a in (data.dq, data.tau))
            writer.joint_state(stamp, names, data.q[row], dq, tau)
            if data.wrench is not None:
                writer.wrench(stamp, data.wrench[row], wrench_frame)
    n = len(data.time)
    rate = (n - 1) / (int(data.time[-1]) / SECOND)
    return Conversion(names, n, rate, tuple(topics), warnings)


@dataclass(frozen=True)
class ArmLog:
    """A log of n instants, checked: sizes agree, all is finite, times increase.

    Attributes
    ----------
    time: (n,) int64, nanoseconds since the first instant.
    q: (n, joints), rad.  dq: the same, rad/s, or None.  tau: the same, N m, or None.
    wrench: (n, 6), N and N m, or None.
    names: the joints' names, empty where the file has none.
    warnings: sentences on what looks wrong without being impossible.
    degrees: (2, joints), whether a joint's q and dq were taken as degrees.
    """

    time: Stamps
    q: Array
    dq: Array | None
    tau: Array | None
    wrench: Array | None
    names: tuple[str, ...]
    warnings: tuple[str, ...]
    degrees: Mask


def read_log(
    path: str | Path, *, episode: int | None = None, effort_column: str = "", degrees: bool = False
) -> ArmLog:
    """Read and check a log; SampleError says what is missing or wrong in it.

    Arrays: ``q`` (n, joints); ``t`` (n,) in seconds or the scalar ``dt``; at least one of ``tau``
    (n, joints) and ``wrench`` (n, 6); optionally ``dq`` (n, joints) and ``names`` (joints,). Text
    is a table with a line of names, see `csv_log.read_csv`; a folder is a LeRobot data set, see
    `lerobot_log.read_lerobot`, of which `episode` (default 0) and `effort_column` are.

    degrees : positions and velocities are in degrees and become radians; of a table those columns
        that name no unit.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        arrays, unused, assumed = _named(*read_lerobot(path, episode or 0, effort_column))
    elif episode is not None or effort_column:
        raise SampleError(f"{path} is a file: episodes and columns are those of LeRobot data sets")
    else:
        arrays, unused, assumed = _load(path, degrees)
    if "q" not in arrays:
        found = ", ".join(arrays) or "nothing"
        raise SampleError(f"{path} has no array 'q' (joint positions); it has: {found}")
    q = _matrix(path, "q", arrays["q"])
    n, joints = q.shape
    if n < 2 or joints < 1:
        raise SampleError(f"{path}: 'q' has shape {q.shape}; a log has at least two rows")
    parts: dict[str, Array | None] = {"dq": None, "tau": None, "wrench": None}
    for name, columns in (("dq", joints), ("tau", joints), ("wrench", 6)):
        if name in arrays:
            parts[name] = _matrix(path, name, arrays[name], (n, columns))
    if assumed is None:
        assumed = np.full((2, joints), float(degrees))
        q = np.deg2rad(q) if degrees else q
        parts["dq"] = np.deg2rad(dq) if degrees and (dq := parts["dq"]) is not None else parts["dq"]
    if parts["tau"] is None and parts["wrench"] is None:
        raise SampleError(f"{path} has neither 'tau' nor 'wrench': there is nothing to learn from")
    names: tuple[str, ...] = ()
    if "names" in arrays:
        names = _names(path, arrays["names"])
        check_names(names, joints, f"'names' of {path}")
    time, warnings = _times(path, arrays, n), _warnings(unused, q)
    return ArmLog(time, q, **parts, names=names, warnings=warnings, degrees=assumed != 0.0)


def _names(path: Path, values: npt.NDArray[np.generic]) -> tuple[str, ...]:
    """Names as text; libraries of other languages write them as bytes."""
    if values.dtype.kind == "S":
        try:
            values = np.char.decode(values, "utf-8")  # type: ignore[arg-type]
        except UnicodeDecodeError:
            raise SampleError(f"{path}: 'names' is text in another encoding than UTF-8") from None
    return tuple(str(name) for name in np.atleast_1d(values))


def check_names(names: Sequence[str], joints: int, where: str) -> None:
    """Raise SampleError unless there is one name, not empty and not repeated, for each joint."""
    if len(names) != joints:
        raise SampleError(f"{where}: {len(names)} names for {joints} joints")
    if len(set(names)) < joints or not all(names):
        raise SampleError(f"{where}: each joint needs a name of its own, not {', '.join(names)}")


def _describe(urdf: str) -> tuple[str, tuple[str, ...], dict[str, bool]]:
    """The URDF's text, its actuated joints in the order in which they are learned, and all moving.

    Of all that move, with those that follow another one (<mimic>), it is whether they slide.
    """
    text = read_urdf(urdf)
    tree = parse_urdf(text)
    moving = [joint for joint in tree.below(tree.root) if joint.type in ONE_DOF]
    actuated = tuple(joint.name for joint in moving if joint.actuated)
    return text, actuated, {joint.name: joint.type == "prismatic" for joint in moving}


# The arrays of an npz file, or those that were made of another log, and the names of what is not
# used: in a table they may be those of arrays. Then what of a table was in degrees, see `read_csv`.
Read = tuple[dict[str, npt.NDArray[np.generic]], Sequence[str], Array | None]


def _load(path: Path, degrees: bool) -> Read:
    if not path.is_file():
        raise SampleError(f"there is no file {path}")
    try:
        with path.open("rb") as stream:
            start = stream.read(BEGINNING)
        if not start:
            raise SampleError(f"{path}: the file is empty")
        if not start.startswith(b"PK"):
            if CONTROL & set(start) and not start.startswith(UTF_16):
                raise SampleError(f"{path} is neither an npz file nor text, or damaged: {TO_NPZ}")
            text = _decoded(path, path.read_bytes())
            return _named(*read_csv(path, text, degrees=degrees))
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: _plain(path, name, file) for name in file.files}
            return arrays, [name for name in arrays if name not in KNOWN], None
    except SampleError:
        raise
    except (*MALFORMED, OSError, AttributeError, zlib.error) as error:
        raise SampleError(f"{path} is a damaged npz file: {error}") from None


def _decoded(path: Path, text: bytes) -> str:
    """A table's text, UTF-8 or, where it begins with a mark of that, UTF-16."""
    try:
        return text.decode("utf-16" if text.startswith(UTF_16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        if text.startswith(UTF_16):
            raise SampleError(f"{path} is damaged text in UTF-16: {error.reason}") from None
        before = text[: error.start]
        line = before.count(b"\n") + 1
        shown = before.rpartition(b"\n")[2].decode("utf-8", "replace").lstrip("\ufeff")[-20:]
        raise SampleError(
            f"{path} is text in another encoding than UTF-8: byte 0x{text[error.start]:02x} in "
            f"line {line} after '{shown}' is none of it; save the file as UTF-8"
        ) from None


def _named(read: Mapping[str, Array], names: tuple[str, ...], unused: Sequence[str]) -> Read:
    """A log of another kind as the arrays of an npz file."""
    arrays: dict[str, npt.NDArray[np.generic]] = {k: v for k, v in read.items() if k in KNOWN}
    if names:
        arrays["names"] = np.array(names)
    return arrays, unused, read.get("degrees")


def _plain(path: Path, name: str, file: Mapping[str, Any]) -> npt.NDArray[np.generic]:
    """An array of an npz file. Raises SampleError where it holds Python objects."""
    try:
        array: npt.NDArray[np.generic] = file[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise SampleError(
            f"{path}: '{name}' holds Python objects, which are never read: save an array of "
            "numbers, or of text for names"
        ) from None
    return array


def _matrix(
    path: Path, name: str, values: npt.NDArray[np.generic], shape: tuple[int, int] | None = None
) -> Array:
    if values.dtype.kind not in "fiu":
        raise SampleError(f"{path}: '{name}' holds {values.dtype}, not numbers")
    matrix = values.astype(np.float64)
    if matrix.ndim == 1:
        matrix = matrix[:, None]  # one joint
    if matrix.ndim != 2 or (shape is not None and matrix.shape != shape):
        wanted = shape or "(samples, joints)"
        raise SampleError(f"{path}: '{name}' has shape {values.shape}, it must be {wanted}")
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        row, column = bad[0]
        raise SampleError(
            f"{path}: {len(bad)} values of '{name}' are not finite, the first in row {row},"
            f" column {column}"
        )
    return matrix


def _times(path: Path, arrays: dict[str, npt.NDArray[np.generic]], n: int) -> Stamps:
    if "t" in arrays:
        t = _matrix(path, "t", np.ravel(arrays["t"]), (n, 1))[:, 0]
        if np.ptp(t) > MAX_SPAN:
            raise SampleError(f"{path}: 't' spans {np.ptp(t):.3g} s: is it in seconds?")
        time: Stamps = np.rint((t - t[0]) * SECOND).astype(np.int64)
        if (row := first_back(t)) is not None:
            raise SampleError(f"{path}: 't' doesn't increase at row {row}: {t[row - 1]}, {t[row]}")
        period = float(np.median(np.diff(time))) / SECOND
        if period >= MAX_PERIOD:
            raise SampleError(f"{path}: the steps of 't' are {period:.4g} s: is it in seconds?")
        return time
    if "dt" not in arrays:
        raise SampleError(f"{path} has neither 't' (seconds) nor 'dt' (the sampling period)")
    if arrays["dt"].size != 1:
        raise SampleError(f"{path}: 'dt' is one number, not an array of {arrays['dt'].shape}")
    dt = float(_matrix(path, "dt", np.ravel(arrays["dt"]))[0, 0])
    if not 1e-6 <= dt < MAX_PERIOD:
        raise SampleError(
            f"{path}: 'dt' is {dt:.6g}; it must be a sampling period in seconds, from 1e-6 to "
            f"below {MAX_PERIOD:g} (20 ms are 0.02)"
        )
    steps: Stamps = np.rint(np.arange(n) * (dt * SECOND)).astype(np.int64)
    return steps


def _warnings(unused: Sequence[str], q: Array) -> tuple[str, ...]:
    warnings = []
    if unused:
        warnings.append(f"not used: {', '.join(unused)}")
    largest = float(np.abs(q).max())
    if largest > MAX_PLAUSIBLE_ANGLE:
        warnings.append(
            f"'q' reaches {largest:.4g}: are these degrees? they are taken as "
            "radians without --degrees"
        )
    return tuple(warnings)
