"""The files that one joint state passes, to its published prediction and to being learned.

    python tools/sample_path.py

Runs the node in this process on a small arm, gives it messages until every stage works, and then
follows one message through the package: Python calls by a profiler, compiled functions by the
names in the code that calls them. `CONTRIBUTING.md` lists the result.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "semiparam_dynamics"
URDF = """<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="100" velocity="10"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
    <origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="100" velocity="10"/></joint>
</robot>"""
RATE = 50.0  # Hz
MESSAGES = 300  # before the one that is followed: longer than the residual's window


class Follower:
    """The package's files in the order in which a message enters them."""

    def __init__(self, publish: CodeType) -> None:
        """`publish` is the code that has published the prediction when it returns."""
        self.publish = publish
        self.files: list[str] = []
        self._seen: set[CodeType] = set()
        self.published: int | None = None  # how many there were when the prediction was out

    def profile(self, frame: Any, event: str, argument: object) -> None:
        """A profiler for `sys.setprofile`."""
        if event == "call":
            self._enter(frame.f_code, frame.f_globals)
        elif event == "return" and frame.f_code is self.publish:
            self.published = self.published or len(self.files)

    def _enter(self, code: CodeType, names: dict[str, Any]) -> None:
        path = Path(code.co_filename)
        if code in self._seen or not path.is_relative_to(PACKAGE):
            return
        self._seen.add(code)
        name = str(path.relative_to(PACKAGE))
        if name not in self.files:
            self.files.append(name)
        for used in code.co_names:
            compiled = getattr(names.get(used), "py_func", None)
            if compiled is not None:
                self._enter(compiled.__code__, compiled.__globals__)


def follow() -> Follower:
    """Follow one message through a node that has learned for some seconds."""
    import rclpy
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import JointState

    from semiparam_dynamics.learner.nodes.inverse_dynamics import InverseDynamicsNode
    from semiparam_dynamics.learner.nodes.outputs import Outputs

    values = {"urdf": URDF, "defer_learning": False, "nystrom.window": 1.0}
    given = [text for name, value in values.items() for text in ("-p", f"{name}:={value}")]
    given = [text.replace("\n", " ") for text in given]
    rclpy.init(args=["--ros-args", *given])
    node, follower = InverseDynamicsNode(), Follower(Outputs.publish.__code__)
    try:
        node.start()
        (subscription,) = node._inputs
        times = np.arange(MESSAGES + 1) / RATE
        for k, t in enumerate(times):
            message = JointState(name=["shoulder", "elbow"])
            message.header.stamp.sec, message.header.stamp.nanosec = 1 + int(t), int(t % 1 * 1e9)
            message.position = [0.8 * np.sin(2.0 * t), 0.5 * np.sin(3.1 * t)]
            message.velocity = [1.6 * np.cos(2.0 * t), 1.55 * np.cos(3.1 * t)]
            message.effort = [np.cos(t), np.sin(2.0 * t)]
            data = serialize_message(message)  # as the subscription gets it
            if k == MESSAGES:
                sys.setprofile(follower.profile)
            subscription._receive(data)
            sys.setprofile(None)
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    return follower


def listed(files: Iterable[str]) -> str:
    """A line for each file, numbered."""
    return "\n".join(f"{k:>4}  {name}" for k, name in enumerate(files, 1))


def main() -> int:
    """Print the files; the exit code."""
    description = (__doc__ or "").splitlines()[0]
    argparse.ArgumentParser(description=description).parse_args()
    found = follow()
    if found.published is None:
        print("the message was not answered", file=sys.stderr)
        return 1
    print(f"To the published prediction, {found.published} files:\n{listed(found.files)}")
    print(f"of which the last {len(found.files) - found.published} only learn.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
