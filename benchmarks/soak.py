"""Memory, descriptors and threads of the learner node in an hour at 1 kHz over real DDS.

A seven-joint arm that never repeats its motion, the default residual, a checkpoint every minute.
Every ten seconds what the system knows of the node's process (Linux), and what the node counts:

    python benchmarks/soak.py                                # an hour
    python benchmarks/soak.py --seconds 600 --visitors 2     # peers appear and are killed

Resident memory and its share of what several processes map (Pss), what of it is no file's
(anonymous), mappings, descriptors, threads, and counts of samples. Last the slopes after the
warm-up, in which centres are still added. With `--visitors` so many processes subscribe and publish
on the node's topics at any time, and are killed (SIGKILL) after some seconds, others taking their
place.

The motion is made beforehand and takes 170 kB a second in this process.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import rclpy
from node_peer import Peer, Stream
from output import make_parser, parse, row
from serial_arm import serial_arm_urdf
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.nodes.managed import LATE, UNSENT
from semiparam_dynamics.base.nodes.processes import NodeProcess, use_own_network
from semiparam_dynamics.robot.model import RobotModel

LOOK = 0.005  # s in which diagnostics are taken; nothing is sent meanwhile
COUNTS = ("samples seen", "samples predicted", "samples learned")
LOST = "learning could not keep up"
MEMORY = {"rss": "Rss", "pss": "Pss", "anonymous": "Anonymous"}  # by smaps_rollup's names
HELD = ("mappings", "descriptors", "threads")
HEAD = (
    *("s", "Rss, MB", "Pss, MB", "anonymous, MB", "mappings", "descriptors", "threads"),
    *("sent", "seen", "left out", "predicted", "unsent", "heard", "learned", "not learned"),
    "visitors",
)
# A visitor subscribes to all topics, as a terminal, a dashboard or a recorder does, and publishes.
VISITOR = """
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

rclpy.init()
node = rclpy.create_node("visitor")
for name in ("predicted", "rigid_body", "external"):
    node.create_subscription(JointState, f"inverse_dynamics/{name}", lambda _: None, 10)
node.create_subscription(DiagnosticArray, "/diagnostics", lambda _: None, 10)
publisher = node.create_publisher(JointState, "joint_states", QoSProfile(depth=10))
while True:
    publisher.publish(JointState(name=["no joint of the arm"], position=[0.0]))
    rclpy.spin_once(node, timeout_sec=0.1)
"""


def main() -> None:
    arguments = read_arguments()
    use_own_network()
    threadpool_limits(1)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        urdf = folder / "arm.urdf"
        urdf.write_text(serial_arm_urdf())
        stream = Stream(
            RobotModel(str(urdf)), arguments.rate, arguments.seconds + 2.0 * arguments.every
        )
        print(f"{arguments.rate:g} Hz for {arguments.seconds:g} s\n")
        print(row(HEAD), row(["---"] * len(HEAD)), sep="\n", flush=True)
        rclpy.init()
        log = Path(arguments.log or folder / "log")
        given = {"urdf": urdf, "model_file": folder / "model.npz", "save_interval": arguments.save}
        with NodeProcess("inverse_dynamics", given, log) as process:
            peer = Peer()
            peer.meet(stream, log)
            visitors = Visitors(arguments.visitors, arguments.stay)
            with contextlib.closing(visitors):
                soaked = np.array(list(watched(arguments, peer, stream, process, visitors)))
        peer.node.destroy_node()
        rclpy.try_shutdown()
        print(f"\n{slopes(soaked, arguments.warm_up)}")


def read_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--rate", type=float, default=1000.0, help="messages a second [Hz]")
    parser.add_argument("--every", type=float, default=10.0, help="a line of the table [s]")
    parser.add_argument("--warm-up", type=float, default=300.0, help="before what counts [s]")
    parser.add_argument("--save", type=float, default=60.0, help="a checkpoint every so much [s]")
    parser.add_argument("--visitors", type=int, default=0, help="other processes on the topics")
    parser.add_argument("--stay", type=float, default=5.0, help="how long each lives [s]")
    parser.add_argument("--log", type=Path, default=None, help="file of what the node logs")
    parser.add_argument("--folder", type=Path, default=None, help="where the node saves")
    return parse(parser)


def watched(
    arguments: argparse.Namespace,
    peer: Peer,
    stream: Stream,
    process: NodeProcess,
    visitors: Visitors,
) -> Iterator[tuple[float, ...]]:
    """Send for so long; yields time, memory (MB) and :func:`holdings` of each line."""
    started, sent, heard = time.monotonic(), 0, 0
    for _ in range(round(arguments.seconds / arguments.every)):
        visitors.renew()
        done = peer.send(stream, arguments.rate, round(arguments.every * arguments.rate))
        figures = next(iter(peer.listen(done, LOOK).values()), {})
        process.check()
        sent, heard = sent + len(done.sent), heard + done.answers()
        elapsed = time.monotonic() - started
        memory, held = memory_mb(process.pid), holdings(process.pid)
        seen, predicted, learned = (figures.get(name, "-") for name in COUNTS)
        late, unsent, unlearned = (figures.get(f"dropped: {n}", "0") for n in (LATE, UNSENT, LOST))
        line = [
            *(f"{elapsed:.0f}", *(f"{mb:.2f}" for mb in memory), *(str(count) for count in held)),
            *(str(sent), seen, late, predicted, unsent, str(heard), learned, unlearned),
            str(visitors.killed),
        ]
        print(row(line), flush=True)
        yield (elapsed, *memory, *held)


def slopes(soaked: np.ndarray, warm_up: float) -> str:
    """Growth after the warm-up: from the median of its first quarter to that of its last.

    While a checkpoint is written its copy is there too, which medians leave out.
    """
    late = soaked[soaked[:, 0] >= warm_up]
    if len(late) < 4:
        return "too short: nothing is left after the warm-up"
    quarters = np.array_split(late, 4)
    first, last = (np.median(quarter, axis=0) for quarter in (quarters[0], quarters[-1]))
    hours = (last[0] - first[0]) / 3600.0
    lines = [f"after {warm_up:g} s, medians of the first and the last quarter:"]
    for k, name in enumerate((*MEMORY, *HELD), 1):
        unit = " MB" if name in MEMORY else ""
        least, most = late[:, k].min(), late[:, k].max()
        lines.append(
            f"{name} {first[k]:.2f} to {last[k]:.2f}{unit}, {(last[k] - first[k]) / hours:+.2f} an "
            f"hour; least {least:.2f}, most {most:.2f}"
        )
    return "\n".join(lines)


def memory_mb(pid: int) -> list[float]:
    """Rss, Pss and anonymous memory of a process, MB (Linux)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kb = {name: value.split()[0] for name, value in (line.split(":") for line in lines)}
    return [int(kb[name]) / 1024.0 for name in MEMORY.values()]


def holdings(pid: int) -> list[int]:
    """The numbers of mappings, open descriptors and threads of a process (Linux)."""
    process = Path(f"/proc/{pid}")
    mappings = len((process / "maps").read_text().splitlines())
    return [mappings, len(os.listdir(process / "fd")), len(os.listdir(process / "task"))]


class Visitors:
    """`count` processes at a time, renewed by :meth:`renew`; each is killed after `stay` s."""

    def __init__(self, count: int, stay: float) -> None:
        self._stay = stay
        self._count = count
        self._present: list[tuple[float, subprocess.Popen[bytes]]] = []
        self.killed = 0

    def renew(self) -> None:
        """Kill those whose time is over and start others in their place."""
        now = time.monotonic()
        self._kill(now - self._stay)
        while len(self._present) < self._count:
            process = subprocess.Popen([sys.executable, "-c", VISITOR], stdin=subprocess.DEVNULL)
            self._present.append((now, process))

    def close(self) -> None:
        """Kill all."""
        self._kill(time.monotonic())

    def _kill(self, before: float) -> None:
        for began, process in [one for one in self._present if one[0] <= before]:
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.killed += 1
            self._present.remove((began, process))


if __name__ == "__main__":
    main()
