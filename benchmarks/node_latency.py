"""The learner node at a high rate, over real DDS: predictions lost, their latency, what is learned.

One process publishes a seven-joint arm's joint states and hears the node's predictions. A
prediction answers the message after the one whose stamp it bears, which completes the central
difference: its time counts from just before that message is published until DDS has the answer.
`left out` are those that the node says it did not answer since they had waited for too long.
`late` is how much later than planned messages were sent: what else the machine was doing; `stolen`
what the host of a virtual machine gave to others of the time that was wanted.
Beside it a bare echo of the same messages in rclpy, which is what no learner in rclpy can beat.

    python benchmarks/node_latency.py --seconds 600                          # the default residual
    python benchmarks/node_latency.py --residual random_fourier --features 1000 --seconds 600
    python benchmarks/node_latency.py --busy 3 --set changes.detect=true
    python benchmarks/node_latency.py --busy 3 --fifo 20     # needs the right to it
    python benchmarks/node_latency.py --arms 2
    python benchmarks/node_latency.py --page chromium                        # the live page, open
    python benchmarks/node_latency.py --target wrench
    python benchmarks/node_latency.py --residual random_fourier --features 300 --rate 4000
    python benchmarks/node_latency.py --seconds 30 --executors events single
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import rclpy
from node_peer import (
    STARTING,
    Exchange,
    Peer,
    Stream,
    cpu_seconds,
    resident_mb,
    stolen_seconds,
)
from output import make_parser, parse, row
from serial_arm import serial_arm_urdf
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.nodes.managed import LATE
from semiparam_dynamics.base.nodes.processes import NodeProcess, answers, free_port, use_own_network
from semiparam_dynamics.robot.model import RobotModel

PROGRAM = Path(__file__).resolve().parent / "node_process.py"
SENSOR = "joint3"  # with the target wrench
PAUSE = 2.0  # s in which diagnostics come
LEFT_OUT = f"dropped: {LATE}"
COUNTS = ("samples seen", "samples predicted", "samples learned", LEFT_OUT)
HEAD = (
    *("node", "executor", "sent", "late p99, us", "left out", "lost to it", "lost from it"),
    *("p50, us", "p99, us", "max, us", "over 2 ms", "learned"),
    *("node, cores", "peer, cores", "stolen, cores", "startup, s", "memory, MB"),
)


def main() -> None:
    arguments = read_arguments()
    use_own_network()
    threadpool_limits(1)
    if arguments.fifo:  # inherited by all threads and processes to come
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(arguments.fifo))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        urdf = folder / "arm.urdf"
        urdf.write_text(serial_arm_urdf())
        total = arguments.seconds + arguments.first + 1.0
        robot = {"target": arguments.target, "sensor_frame": SENSOR}
        if arguments.target == "effort":
            robot = {}
        stream = Stream(RobotModel(str(urdf), **robot), arguments.rate, total)
        print(f"{arguments.rate:g} Hz for {arguments.seconds:g} s, {described(arguments)}\n")
        print(row(HEAD), row(["---"] * len(HEAD)), sep="\n", flush=True)
        for executor in arguments.executors:
            for node in arguments.nodes:
                print(row(measure(arguments, node, executor, urdf, stream)), flush=True)


def read_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="that count")
    parser.add_argument(
        "--first",
        type=float,
        default=12.0,
        help="seconds before those; the inputs' scales come from the first ten",
    )
    parser.add_argument("--rate", type=float, default=1000.0, help="messages a second [Hz]")
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--residual", default="nystrom", choices=("nystrom", "random_fourier"))
    parser.add_argument("--target", default="effort", choices=("effort", "wrench"))
    parser.add_argument("--arms", type=int, default=1, help="nodes in the one process")
    parser.add_argument(
        "--page",
        metavar="BROWSER",
        help="the node live_page beside the learner, open in this headless browser; `none`: unread",
    )
    parser.add_argument(
        "--fifo",
        type=int,
        default=0,
        metavar="PRIORITY",
        help="of publisher, echo and node, with realtime_priority, as a driver has it",
    )
    parser.add_argument("--busy", type=int, default=0, help="further processes that want a core")
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="further parameters of the node"
    )
    parser.add_argument(
        "--nodes", nargs="+", choices=("echo", "learner"), default=["echo", "learner"]
    )
    parser.add_argument("--executors", nargs="+", choices=("single", "events"), default=["events"])
    parser.add_argument("--figures", action="store_true", help="show the node's own timings")
    return parse(parser)


def described(arguments: argparse.Namespace) -> str:
    parts = [arguments.residual, f"D = {arguments.features}", f"target {arguments.target}"]
    parts += [f"{arguments.arms} arms"] if arguments.arms > 1 else []
    parts += [f"{arguments.busy} busy processes"] if arguments.busy else []
    parts += [f"live page in {Path(arguments.page).name}"] if arguments.page else []
    parts += [f"SCHED_FIFO {arguments.fifo}"] if arguments.fifo else []
    return ", ".join(parts + arguments.set)


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes of normal priority that never rest."""
    program = [sys.executable, "-c", "while True: pass"]
    if hasattr(os, "sched_getscheduler") and os.sched_getscheduler(0) == os.SCHED_FIFO:
        program = ["chrt", "--other", "0", *program]  # else they would keep all others out
    processes = [subprocess.Popen(program) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextmanager
def watched(arguments: argparse.Namespace, node: str, urdf: Path) -> Iterator[int]:
    """The live page of the learner, and a browser that shows it; gives the page's process."""
    if not arguments.page or node == "echo":
        yield 0
        return
    port, log = free_port(0), urdf.parent / "page.log"
    with NodeProcess("live_page", {"urdf": urdf, "port": port}, log) as page:
        for _ in range(round(STARTING / 0.1)):
            page.check()
            if answers(port):
                break
            time.sleep(0.1)
        if arguments.page == "none":
            yield page.pid
            return
        flags = "--headless --no-sandbox --disable-gpu --no-first-run --remote-debugging-port=0"
        folder = f"--user-data-dir={urdf.parent / 'browser'}"
        program = [arguments.page, *flags.split(), folder, f"http://127.0.0.1:{port}/"]
        browser = subprocess.Popen(program, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            yield page.pid
            if browser.poll() is not None:
                sys.exit(f"{arguments.page} ended by itself, with exit code {browser.returncode}")
        finally:
            browser.terminate()
            browser.wait()


def parameters(arguments: argparse.Namespace, node: str, urdf: Path) -> dict[str, object]:
    if node == "echo":
        return {}
    return {
        "urdf": urdf,
        "residual": arguments.residual,
        "random_fourier.n_features": arguments.features,
        "nystrom.max_centers": arguments.features,
        f"{arguments.residual}.window": min(10.0, 0.8 * arguments.first),
        "target": arguments.target,
        "realtime_priority": arguments.fifo,
        **({"sensor_frame": SENSOR} if arguments.target == "wrench" else {}),
        **dict(pair.split("=", 1) for pair in arguments.set),
    }


def counted(
    before: dict[str, dict[str, str]], after: dict[str, dict[str, str]], arms: int
) -> list[int]:
    """The growth of each of COUNTS between two diagnostics, of all nodes together."""
    if not len(before) == len(after) == arms:
        sys.exit(f"diagnostics of {len(before)} and {len(after)} of {arms} nodes came")
    return [
        sum(
            int(figures.get(name, 0)) - int(before[node].get(name, 0))
            for node, figures in after.items()
        )
        for name in COUNTS
    ]


def measure(
    arguments: argparse.Namespace, node: str, executor: str, urdf: Path, stream: Stream
) -> list[str]:
    """A row of the table."""
    program = [str(PROGRAM), node, "--executor", executor, "--arms", str(arguments.arms)]
    wrench = arguments.target == "wrench"
    program += ["--wrench"] if wrench else []
    log = urdf.parent / "log"
    log.unlink(missing_ok=True)
    stream.rewind()
    rclpy.init()
    peer, rate = Peer(wrench=wrench, arms=arguments.arms), arguments.rate
    started = time.monotonic()
    with (
        busy(arguments.busy),
        NodeProcess(node, parameters(arguments, node, urdf), log, program=program) as process,
        ExitStack() as beside,
    ):
        peer.meet(stream, log)
        startup = time.monotonic() - started
        page = beside.enter_context(watched(arguments, node, urdf))
        peer.send(stream, rate, round(arguments.first * rate))
        patience = 20.0 if node == "learner" else 0.0
        before = peer.listen(Exchange(arguments.arms), PAUSE, patience)
        memory = resident_mb(process.pid)
        shown = cpu_seconds(page) if page else 0.0
        used, own, stolen = cpu_seconds(process.pid), cpu_seconds(os.getpid()), stolen_seconds()
        done = peer.send(stream, rate, round(arguments.seconds * rate))
        used, own = cpu_seconds(process.pid) - used, cpu_seconds(os.getpid()) - own
        stolen = stolen_seconds() - stolen
        shown = cpu_seconds(page) - shown if page else 0.0
        after = peer.listen(done, PAUSE, patience)
        process.check()
        grown = resident_mb(process.pid)
    peer.node.destroy_node()
    rclpy.try_shutdown()
    if arguments.figures:
        for name, figures in after.items():
            shown_of = {k: v for k, v in figures.items() if not k.startswith("nmse")}
            print(name, shown_of, file=sys.stderr)
    trips = done.trips() * 1e6
    sent, elapsed = len(done.sent), (done.sent[-1] - done.sent[0]) * 1e-9
    left_out = lost_to = learned = "-"
    # A pause came before: the first message that the filters answer is the second.
    lost_from = str(done.unanswered(1 if node == "learner" else 0))
    if node == "learner":
        seen, predicted, known, late = counted(before, after, arguments.arms)
        left_out, lost_to = str(late), str(arguments.arms * sent - seen - late)
        learned = f"{100.0 * known / predicted:.1f} %"
    if page:
        print(f"live_page: {shown / elapsed:.3f} cores", file=sys.stderr)
    p50, p99 = np.percentile(trips, (50, 99))
    return [
        *(node, executor, str(sent), f"{np.percentile(done.late, 99) * 1e-3:.0f}"),
        *(left_out, lost_to, lost_from),
        *(f"{p50:.0f}", f"{p99:.0f}", f"{trips.max():.0f}", f"{np.mean(trips > 2000):.4%}"),
        *(learned, f"{used / elapsed:.2f}", f"{own / elapsed:.2f}", f"{stolen / elapsed:.2f}"),
        f"{startup:.2f}",
        f"{memory:.1f} to {grown:.1f}",
    ]


if __name__ == "__main__":
    main()
