"""Nodes as processes of their own, as `ros2 run` would start them."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import BinaryIO

from semiparam_dynamics.base.config_files import dump_yaml
from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.nodes.live_server import HOST
from semiparam_dynamics.base.output_files import write_files

EXECUTABLES = "semiparam_dynamics.base.nodes.executables"
END_TIMEOUT_S = 5.0  # for a node to end by itself
PAGE_TIMEOUT_S = 20.0  # until a page must be there
PARTICIPANTS = 16  # whose ports are tried to find a domain that is free
DOMAINS = range(1, 102)  # higher domains' ports may collide with those the system hands out


class NodeProcess:
    """One node of this package in a process of its own; a context manager that ends it.

    Parameters
    ----------
    name: the node's name, one of `executables.ROOMS`.
    parameters: its parameters by name; values as on the command line.
    log: file that its output goes to.
    params_file: YAML file of further parameters.
    namespace: of the node and its topics.
    program: Python's arguments to run it, such as a script's path; empty: as ROS 2 does.
    """

    def __init__(
        self,
        name: str,
        parameters: Mapping[str, object],
        log: Path,
        params_file: Path | None = None,
        namespace: str = "",
        program: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._log = log
        arguments = ["--ros-args"]
        if params_file is not None:
            arguments += ["--params-file", str(params_file)]
        if namespace:
            arguments += ["-r", f"__ns:=/{namespace}"]
        for key, value in parameters.items():
            arguments += ["-p", f"{key}:={value}"]
        with log.open("ab") as output:
            self._process = self._begin(
                [
                    sys.executable,
                    *(program or ("-m", EXECUTABLES, name)),
                    *arguments,
                ],
                output,
            )

    def _begin(self, command: Sequence[str], output: BinaryIO) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C in the terminal must not end it before what listens to it.
            start_new_session=True,
        )

    def check(self) -> None:
        """Raise SemiparamError, with the last line it wrote, if the node has ended by itself."""
        code = self._process.poll()
        if code is not None:
            lines = self._log.read_text(errors="replace").strip().splitlines()
            last = lines[-1] if lines else "it wrote nothing"
            raise SemiparamError(
                f"the node {self.name} ended with exit code {code} ({self._log}): {last}"
            )

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    def wait(self, timeout: float) -> int:
        """Wait until it ends by itself; returns its exit code. Raises subprocess.TimeoutExpired."""
        return self._process.wait(timeout)

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def stop(self) -> int:
        """Interrupt it, as Ctrl-C does, and wait; returns its exit code."""
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                self._process.send_signal(how)
            try:
                return self._process.wait(END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                continue
        return self._process.wait()

    def __enter__(self) -> NodeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def write_params(folder: Path, node: str, config: object) -> Path:
    """Write a node's parameters to FOLDER/NODE.yaml; returns the file.

    A file of that name that says something else is kept, see
    :func:`semiparam_dynamics.base.storage.previous_of`. Raises StorageError.
    """
    path = folder / f"{node}.yaml"
    text = dump_yaml(config)
    if not path.is_file() or path.read_bytes() != text.encode():
        write_files({path: text})
    return path


def make_logs(folder: Path, nodes: Iterable[str]) -> Path:
    """Make FOLDER/log, without earlier logs NODE.log of these nodes; returns the folder of logs.

    Other logs in it are not ours.
    """
    logs = folder / "log"
    logs.mkdir(parents=True, exist_ok=True)
    for node in nodes:
        (logs / f"{node}.log").unlink(missing_ok=True)
    return logs


def use_own_network() -> int:
    """Keep the nodes that this process starts apart from others; returns the ROS domain.

    What the user has set stays. Call it before `rclpy.init`.
    """
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    os.environ.setdefault("ROS_DOMAIN_ID", str(free_domain()))
    return int(os.environ["ROS_DOMAIN_ID"])


def free_domain(candidates: Sequence[int] = DOMAINS) -> int:
    """A ROS domain in which no node runs on this machine; the first candidate if all are taken."""
    shuffled = random.sample(candidates, len(candidates))
    return next((domain for domain in shuffled if is_free(domain)), candidates[0])


def is_free(domain: int) -> bool:
    """Return whether no node of this machine runs in a ROS domain, by the ports of DDS."""
    for participant in range(PARTICIPANTS):  # the first may have ended, and others go on
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("", 7400 + 250 * domain + 10 + 2 * participant))  # DDSI-RTPS 9.6.1.1
            except OSError:
                return False
    return True


@contextmanager
def serve_page(
    node: str,
    parameters: Mapping[str, object],
    logs: Path,
    port: int | None,
    interrupted: Event,
    show: Callable[[str], object] | None,
) -> Iterator[bool]:
    """Run a node that serves a page meanwhile, and say where; one that does not come stops nothing.

    port: another free one where it is taken; None: no page. show: gets the page's address. Yields
    whether there is a page.
    """
    if port is None:
        yield False
        return
    port = free_port(port)
    with NodeProcess(node, {**parameters, "port": port}, logs / f"{node}.log") as page:
        end = time.monotonic() + PAGE_TIMEOUT_S
        while not (there := answers(port)) and time.monotonic() < end and not interrupted.is_set():
            try:
                page.check()
            except SemiparamError as error:
                print(f"  no live page: {error}", flush=True)
                break
            time.sleep(0.05)
        if there:
            url = f"http://{HOST}:{port}/"
            print(f"watch it at {url} while it runs", flush=True)
            if show is not None:
                show(url)
        yield there


def free_port(wanted: int) -> int:
    """The port of this machine, or one that is free where it is taken."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the page's server
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    return wanted


def answers(port: int) -> bool:
    """Return whether something listens at the port of this machine."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0
