"""A publisher of joint states at a steady rate that takes a node's answers, at the least cost.

Messages are serialised beforehand but for their stamps and numbers, answers are taken as bytes, and
when each came is what DDS noted on it. So a Python process costs about as little here as a driver
and a controller in C++ would, and its own delays count nowhere.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from node_process import NAMESPACE
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from serial_arm import moving

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.nodes.messages import joint_state_message, wrench_message
from semiparam_dynamics.robot.model import RobotModel

STARTING = 120.0  # s that a node may take, compiling included
SPIN = 100e-6  # s before a message is due that are waited for without sleeping
QUEUE = 2000  # answers that may wait to be taken
PIECE = 30.0  # s of motion that are made at once
STAMP = struct.Struct("<iI")  # at STAMP_AT of a serialised message, after four bytes of its kind
STAMP_AT = 4


class Stream:
    """A seven-joint arm's motion as serialised messages, one after the other.

    Joint states with efforts; where `model` has the target wrench, wrenches, and joint states
    without efforts.
    """

    def __init__(self, model: RobotModel, rate: float, seconds: float) -> None:
        pieces = []
        for start in np.arange(0.0, seconds, PIECE):
            _, q, dq, y = moving(model, min(PIECE, seconds - start), rate, start)
            pieces.append(np.concatenate((q, dq, y), axis=1))
        self._numbers: Array = np.concatenate(pieces)
        n, wrench = model.n_joints, model.config.target == "wrench"
        marks = [np.arange(n) + 1000.5 * k for k in (1, 2, 3)]
        joint_state = joint_state_message(0, model.joint_names, *marks)
        columns = [slice(k * n, (k + 1) * n) for k in range(3)]
        if wrench:
            del joint_state.effort[:]
            forces = np.arange(model.n_axes) + 4002.0
            sensor = wrench_message(0, model.config.sensor_frame, forces)
            end = slice(2 * n, 2 * n + model.n_axes)
            self._messages = [
                Template(sensor, [(end, forces)]),
                Template(joint_state, list(zip(columns[:2], marks[:2], strict=True))),
            ]
        else:
            self._messages = [Template(joint_state, list(zip(columns, marks, strict=True)))]
        self._next = 0

    def rewind(self) -> None:
        """Begin again."""
        self._next = 0

    def next(self, stamp: int) -> list[bytes]:
        """The next messages, with their stamp in ns; after the last ones the first.

        That of joint states comes last.
        """
        row = self._numbers[self._next % len(self._numbers)]
        self._next += 1
        return [template.filled(stamp, row) for template in self._messages]


class Template:
    """A serialised message, of which the stamp and some numbers are replaced.

    marks : parts of a row, and the numbers that `message` has for each.
    """

    def __init__(self, message: Any, marks: list[tuple[slice, Array]]) -> None:
        self._bytes = bytearray(serialize_message(message))
        self._places = [
            (slice(place, place + mark.nbytes), columns)
            for columns, mark in marks
            for place in [self._bytes.index(mark.tobytes())]
        ]

    def filled(self, stamp: int, row: Array) -> bytes:
        """The message with a stamp in ns and the numbers of a row."""
        STAMP.pack_into(self._bytes, STAMP_AT, *divmod(stamp, 1_000_000_000))
        for place, columns in self._places:
            self._bytes[place] = row[columns].tobytes()
        return bytes(self._bytes)


@dataclass
class Exchange:
    """Messages sent and answers taken: times in ns, of the clock that stamps are of."""

    arms: int = 1
    sent: list[int] = field(default_factory=list)  # each also the messages' stamp
    late: list[int] = field(default_factory=list)  # how much later than planned each was sent
    heard: list[dict[int, int]] = field(init=False)  # of each arm by the answer's stamp: when

    def __post_init__(self) -> None:
        self.heard = [{} for _ in range(self.arms)]

    def trips(self) -> Array:
        """Seconds from the message that completed an answer, one after its stamp's, to hearing."""
        pairs = list(zip(self.sent, self.sent[1:], strict=False))
        heard = ((one[a] - b) * 1e-9 for one in self.heard for a, b in pairs if a in one)
        return np.fromiter(heard, np.float64)

    def answers(self) -> int:
        """The number of answers taken, of all arms."""
        return sum(map(len, self.heard))

    def unanswered(self, first: int) -> int:
        """The number of messages without an answer, from number `first` on, the last excepted."""
        return sum(stamp not in one for one in self.heard for stamp in self.sent[first:-1])


class Peer:
    """The publisher and the hearer. Needs `rclpy.init` to have been called.

    arms : to how many nodes it publishes the same, each in a namespace of its own but the first.
    """

    def __init__(self, *, wrench: bool = False, arms: int = 1) -> None:
        self.node = rclpy.create_node("node_peer")
        self._arms = arms
        queue = QoSProfile(depth=QUEUE)
        kinds: list[tuple[type, str]] = [(JointState, "joint_states")]
        if wrench:
            kinds.insert(0, (WrenchStamped, "wrench"))
        self._answer: type = kinds[0][0]
        spaces = ["", *(f"{NAMESPACE}{k}/" for k in range(1, arms))]
        self._publishers = [
            [self.node.create_publisher(kind, space + topic, QUEUE) for kind, topic in kinds]
            for space in spaces
        ]
        self._answers = [
            self.node.create_subscription(
                self._answer, f"{space}inverse_dynamics/predicted", print, queue, raw=True
            )
            for space in spaces
        ]
        self._diagnosed = self.node.create_subscription(DiagnosticArray, "/diagnostics", print, 10)

    def send(self, stream: Stream, rate: float, count: int, until_heard: bool = False) -> Exchange:
        """Send messages at a rate (Hz); with `until_heard` no more once an answer has come."""
        done, period = Exchange(self._arms), 1.0 / rate
        start = time.monotonic()
        for k in range(count):
            due = start + k * period
            if (left := due - time.monotonic() - SPIN) > 0.0:
                time.sleep(left)
            while (late := time.monotonic() - due) < 0.0:
                pass
            stamp = time.time_ns()
            messages = stream.next(stamp)
            for arm in self._publishers:
                for publisher, message in zip(arm, messages, strict=True):
                    publisher.publish(message)
            done.sent.append(stamp)
            done.late.append(round(late * 1e9))
            self._hear(done)
            if until_heard and all(done.heard):
                break
        return done

    def meet(self, stream: Stream, log: Path) -> None:
        """Send slowly until each node has answered. Ends the program where one does not."""
        done = self.send(stream, 100.0, round(100.0 * STARTING), until_heard=True)
        if not all(done.heard):
            sys.exit(f"no prediction within {STARTING:g} s: {log.read_text()}")
        stream.rewind()

    def listen(
        self, done: Exchange, seconds: float, patience: float = 0.0
    ) -> dict[str, dict[str, str]]:
        """Take what still comes in so many seconds; returns each node's last diagnostics by name.

        If not all arms' have come by then it waits for them, `patience` seconds more at most.
        """
        figures: dict[str, dict[str, str]] = {}
        end = time.monotonic() + seconds
        while time.monotonic() < (end if len(figures) >= self._arms else end + patience):
            self._hear(done)
            while (taken := self._take(self._diagnosed, DiagnosticArray, False)) is not None:
                for status in taken[0].status:
                    figures[status.name] = {pair.key: pair.value for pair in status.values}
            time.sleep(0.01)
        return figures

    def _hear(self, done: Exchange) -> None:
        for answers, heard in zip(self._answers, done.heard, strict=True):
            while (taken := self._take(answers, self._answer, True)) is not None:
                seconds, nanoseconds = STAMP.unpack_from(taken[0], STAMP_AT)
                stamp = seconds * 1_000_000_000 + nanoseconds
                heard[stamp] = taken[1]["received_timestamp"]

    @staticmethod
    def _take(subscription: Any, kind: type, raw: bool) -> Any:
        with subscription.handle:
            return subscription.handle.take_message(kind, raw)


def resident_mb(pid: int) -> float:
    """Memory of a process that is not swapped out, MB (Linux)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024.0


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stolen_seconds() -> float:
    """Processor time that was wanted and went to other virtual machines (Linux)."""
    return int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]) / os.sysconf(
        "SC_CLK_TCK"
    )
