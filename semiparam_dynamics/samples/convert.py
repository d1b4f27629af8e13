"""A log in an npz file turned into a rosbag2, so that every tool of ROS 2 can read and play it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from semiparam_dynamics.errors import SampleError
from semiparam_dynamics.samples.bag_writer import BagWriter
from semiparam_dynamics.samples.npz_log import check_names, read_npz

START = 1.0  # s: a stamp of zero is an unset one


@dataclasses.dataclass(frozen=True)
class Conversion:
    """What was written: the joints' names, the number of instants, their rate, and warnings."""

    names: tuple[str, ...]
    samples: int
    rate: float
    topics: tuple[str, ...]
    warnings: tuple[str, ...]


def convert_npz(
    log: str | Path,
    bag: str | Path,
    *,
    names: Sequence[str] = (),
    urdf: str = "",
    start: float = START,
    wrench_frame: str = "",
    overwrite: bool = False,
) -> Conversion:
    """Write the npz file `log` (see `read_npz`) to the rosbag2 folder `bag`.

    The same log always gives the same messages: the first stamp is `start`, in seconds, whatever
    ``t`` begins with. The joints' names are `names`, or those in the log, or the URDF's actuated
    joints in order, or joint_1, joint_2, ...; the URDF (text or path) is put into the bag as its
    robot_description.

    Raises SampleError on a bad log or wrong names, RobotModelError on a bad URDF, BagError where
    the bag can't be written.
    """
    data = read_npz(log)
    joints = data.q.shape[1]
    if not 0 < start < 2**31 - data.time[-1] / 1e9:
        raise SampleError(f"the start must be positive seconds before the year 2038, not {start}")
    text, actuated = _describe(urdf) if urdf else ("", ())
    if names:
        check_names(names, joints, "the names given")
    names = tuple(names) or data.names or _from_urdf(actuated, joints) or _numbered(joints)
    unknown = [name for name in names if text and name not in actuated]
    if unknown:
        known = ", ".join(actuated)
        raise SampleError(f"the URDF has no joint {', '.join(unknown)} that moves; it has: {known}")
    topics = ["/joint_states"] + (["/wrench"] if data.wrench is not None else [])
    first = round(start * 1e9)
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
    rate = (n - 1) / (int(data.time[-1]) / 1e9)
    return Conversion(names, n, rate, tuple(topics), data.warnings)


def _describe(urdf: str) -> tuple[str, tuple[str, ...]]:
    """The URDF's text, and its actuated joints in the order in which they are learned."""
    from semiparam_dynamics.dynamics.urdf_tree import parse_urdf, read_urdf

    text = read_urdf(urdf)
    tree = parse_urdf(text)
    return text, tuple(joint.name for joint in tree.below(tree.root) if joint.actuated)


def _from_urdf(actuated: tuple[str, ...], joints: int) -> tuple[str, ...]:
    if actuated and len(actuated) != joints:
        raise SampleError(
            f"the log has {joints} joints, the URDF {len(actuated)} that move"
            f" ({', '.join(actuated)}): name the log's joints"
        )
    return actuated


def _numbered(joints: int) -> tuple[str, ...]:
    return tuple(f"joint_{j + 1}" for j in range(joints))
