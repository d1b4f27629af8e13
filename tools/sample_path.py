"""The files that a joint state, an array and a bag pass through the package, in order.

    python tools/sample_path.py [message] [falkon] [evaluate] [--write]

`message` runs the node with its defaults in this process on a small arm, gives it messages until
every stage works, and follows some to their published predictions, of which it shows the median,
and, in the learner's thread, a hundred to being learned, whose calls it divides by that. `falkon`
follows an array through `Falkon.fit`, `evaluate` a bag through the command `semiparam evaluate`.
Python calls come from a profiler, compiled functions from the names in the code that calls them.
`--write` puts the result into CONTRIBUTING.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import re
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from operator import attrgetter
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
JOINTS = ["shoulder", "elbow"]
RATE = 50.0  # Hz
MESSAGES = 900  # before the one that is followed: longer than the residual's window
ANSWERED = 9  # that are followed to their predictions: of some more is done, and the median counts
LEARNED = 100  # whose learning is followed, as some is only done now and then


class Follower:
    """The package's files in the order in which something enters them, while it is active.

    Attributes
    ----------
    files: names below the package, each once.
    calls, changes: Python calls of the package's functions, and how many led into another file.
    messages: by how many these two are divided.
    until: files, calls and changes when the function whose code is `end` had returned.
    """

    def __init__(self, end: CodeType | None = None) -> None:
        self._end = end
        self.until: tuple[int, int, int] | None = None
        self.files: list[str] = []
        self.calls = self.changes = 0
        self.messages = 1
        self._seen: set[CodeType] = set()
        self._last = ""
        self._active = False

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Follow what is called meanwhile, in this thread and those started by now."""
        self._active = True
        sys.setprofile(self.profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            self._active = False

    def profile(self, frame: Any, event: str, argument: object) -> None:
        """A profiler for `sys.setprofile` and `threading.setprofile`."""
        if self._active and event == "return" and frame.f_code is self._end and not self.until:
            self.until = len(self.files), self.calls, self.changes
        if self._active and event == "call" and (name := file_of(frame.f_code)):
            self.calls += 1
            self.changes += name != self._last
            self._last = name
            self._enter(frame.f_code, frame.f_globals)

    def _enter(self, code: CodeType, names: dict[str, Any]) -> None:
        name = file_of(code)
        if code in self._seen or not name:
            return
        self._seen.add(code)
        if name not in self.files:
            self.files.append(name)
        for used in code.co_names:
            compiled = getattr(names.get(used), "py_func", None)
            if compiled is not None:
                self._enter(compiled.__code__, compiled.__globals__)

    def __str__(self) -> str:
        rows = "\n".join(f"{k:>4}  {name}" for k, name in enumerate(self.files, 1))
        found = counted(len(self.files), *(n // self.messages for n in (self.calls, self.changes)))
        if self.until:
            found = f"{counted(*self.until)}; to the end of the callback {found}"
        return f"{found}\n{rows}"


def counted(files: int, calls: int, changes: int) -> str:
    """The counts in words."""
    return f"{files} files, {calls} Python calls, {changes} changes of file"


def file_of(code: CodeType) -> str:
    """The file of the package that code is from; empty where it is from elsewhere."""
    path = Path(code.co_filename)
    return str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else ""


def state(t: float) -> dict[str, list[float]]:
    """Positions, velocities and efforts of the arm at a time in seconds."""
    return {
        "position": [0.8 * np.sin(2.0 * t), 0.5 * np.sin(3.1 * t)],
        "velocity": [1.6 * np.cos(2.0 * t), 1.55 * np.cos(3.1 * t)],
        "effort": [np.cos(t), np.sin(2.0 * t)],
    }


def message() -> Iterator[tuple[str, Follower]]:
    """Follow one message through a node that has learned for some seconds."""
    import rclpy
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import JointState

    from semiparam_dynamics.learner.nodes.inverse_dynamics import InverseDynamicsNode
    from semiparam_dynamics.learner.nodes.outputs import Outputs

    answers = [Follower(Outputs.publish.__code__) for _ in range(ANSWERED)]
    learned = Follower()

    def serialized() -> Iterator[bytes]:
        """Joint states as the subscription gets them."""
        for k in itertools.count():
            t = k / RATE
            data = JointState(name=JOINTS, **state(t))
            data.header.stamp.sec, data.header.stamp.nanosec = 1 + int(t), int(t % 1 * 1e9)
            yield serialize_message(data)

    rclpy.init(args=["--ros-args", "-p", f"urdf:={URDF}".replace("\n", " ")])
    threading.setprofile(learned.profile)  # of the learner's thread, which starts below
    node = InverseDynamicsNode()
    try:
        node.start()
        (subscription,) = node._inputs
        messages = serialized()
        for _ in range(MESSAGES):
            subscription._receive(next(messages))
        node.session.drain()
        for answered in answers:
            with answered.active():
                subscription._receive(next(messages))
        node.session.drain()
        with learned.active():
            sys.setprofile(None)  # of the thread alone
            node.session.drain()
            for _ in range(LEARNED):
                subscription._receive(next(messages))
                node.session.drain()
        learned.messages = LEARNED
    finally:
        threading.setprofile(None)
        node.destroy_node()
        rclpy.try_shutdown()
    answers.sort(key=attrgetter("calls"))
    yield "A joint state to its published prediction", answers[ANSWERED // 2]
    yield "From there to being learned, in the learner's thread", learned


def falkon() -> Iterator[tuple[str, Follower]]:
    """Follow an array through Falkon.fit."""
    from semiparam_dynamics.learning import Falkon

    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    y = np.sin(X).sum(axis=1)
    follower, model = Follower(), Falkon(n_centers=200, random_state=0).fit(X, y)  # compiled
    with follower.active():
        model.fit(X, y)
    yield "An array through Falkon.fit", follower


def evaluate() -> Iterator[tuple[str, Follower]]:
    """Follow a bag through the command `semiparam evaluate`."""
    from semiparam_dynamics.offline.cli.main import main

    times = np.arange(3000) / RATE
    states = [state(t) for t in times]
    arrays = {
        name: np.array([each[key] for each in states])
        for name, key in (("q", "position"), ("dq", "velocity"), ("tau", "effort"))
    }
    follower = Follower()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        log, bag, urdf, out = (Path(folder) / name for name in ("a.npz", "bag", "arm.urdf", "out"))
        np.savez(log, t=times, names=JOINTS, **arrays)
        urdf.write_text(URDF)
        main(["convert", str(log), str(bag)])
        with follower.active():
            main(["evaluate", str(bag), "--urdf", str(urdf), "--out", str(out)])
    yield "A bag through `semiparam evaluate`", follower


PATHS: dict[str, Callable[[], Iterator[tuple[str, Follower]]]] = {
    "message": message,
    "falkon": falkon,
    "evaluate": evaluate,
}


def main() -> int:
    """Print the files of each path that is asked for; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", choices=[*PATHS, []], metavar="PATH")
    parser.add_argument("--write", action="store_true", help="replace them in CONTRIBUTING.md")
    args = parser.parse_args()
    for name in args.paths or PATHS:
        for title, follower in PATHS[name]():
            print(f"{title}: {follower}", flush=True)
            if args.write:
                write(title, follower)
    return 0


def write(title: str, follower: Follower) -> None:
    """Replace the block of this title in CONTRIBUTING.md, or add it at the end."""
    path = ROOT / "CONTRIBUTING.md"
    text = path.read_text(encoding="utf-8")
    block = textwrap.indent(f"{title}: {follower}", "    ") + "\n"
    known = re.compile(rf"^    {re.escape(title)}: .*\n(?:     +\d+  .*\n)*", re.MULTILINE)
    if known.search(text):
        text = known.sub(lambda _: block, text, count=1)
    else:
        text = f"{text}\n{block}"
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
