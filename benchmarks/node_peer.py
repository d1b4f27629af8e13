"""A publisher of joint states at a steady rate that takes a node's answers, at the least cost.

Messages are serialised beforehand but for their stamps and numbers, answers are taken as bytes, and
when each came is what DDS noted on it. So a Python process costs about as little here as a driver
and a controller in C++ would, and its own delays count nowhere.
"""

from __future__ import annotations

import os
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from serial_arm import moving

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.nodes.messages import joint_state_message
from semiparam_dynamics.robot.model import RobotModel

SPIN = 100e-6  # s before a message is due that are waited for without sleeping
QUEUE = 2000  # answers that may wait to be taken
PIECE = 30.0  # s of motion that are made at once
STAMP = struct.Struct("<iI")  # at STAMP_AT of a serialised message, after four bytes of its kind
STAMP_AT = 4


class Stream:
    """A seven-joint arm's motion as serialised joint states, one after the other."""

    def __init__(self, model: RobotModel, rate: float, seconds: float) -> None:
        pieces = []
        for start in np.arange(0.0, seconds, PIECE):
            _, q, dq, y = moving(model, min(PIECE, seconds - start), rate, start)
            pieces.append(np.concatenate((q, dq, y), axis=1))
        self._numbers: Array = np.concatenate(pieces)
        n = model.n_joints
        marks = [np.arange(n) + 1000.5 * k for k in (1, 2, 3)]
        message = joint_state_message(0, model.joint_names, *marks)
        self._bytes = bytearray(serialize_message(message))
        places = [self._bytes.index(mark.tobytes()) for mark in marks]
        self._places = [slice(place, place + 8 * n) for place in places]
        self._columns = [slice(k * n, (k + 1) * n) for k in range(3)]
        self._next = 0

    def rewind(self) -> None:
        """Begin again."""
        self._next = 0

    def next(self, stamp: int) -> bytes:
        """The next message, with its stamp in ns; after the last one the first."""
        row = self._numbers[self._next % len(self._numbers)]
        self._next += 1
        STAMP.pack_into(self._bytes, STAMP_AT, *divmod(stamp, 1_000_000_000))
        for place, columns in zip(self._places, self._columns, strict=True):
            self._bytes[place] = row[columns].tobytes()
        return bytes(self._bytes)


@dataclass
class Exchange:
    """Messages sent and answers taken: times in ns, of the clock that stamps are of."""

    sent: list[int] = field(default_factory=list)  # each also the message's stamp
    late: list[int] = field(default_factory=list)  # how much later than planned each was sent
    heard: dict[int, int] = field(default_factory=dict)  # by the answer's stamp, when it came

    def trips(self) -> Array:
        """Seconds from the message that completed an answer, one after its stamp's, to hearing."""
        pairs = zip(self.sent, self.sent[1:], strict=False)
        return 1e-9 * np.array([self.heard[a] - b for a, b in pairs if a in self.heard])

    def unanswered(self, first: int) -> int:
        """The number of messages without an answer, from number `first` on, the last excepted."""
        return sum(stamp not in self.heard for stamp in self.sent[first:-1])


class Peer:
    """The publisher and the hearer. Needs `rclpy.init` to have been called."""

    def __init__(self) -> None:
        self.node = rclpy.create_node("node_peer")
        queue = QoSProfile(depth=QUEUE)
        self._publisher = self.node.create_publisher(JointState, "joint_states", QUEUE)
        self._answers = self.node.create_subscription(
            JointState, "inverse_dynamics/predicted", print, queue, raw=True
        )
        self._diagnosed = self.node.create_subscription(DiagnosticArray, "/diagnostics", print, 10)

    def send(self, stream: Stream, rate: float, count: int, until_heard: bool = False) -> Exchange:
        """Send messages at a rate (Hz); with `until_heard` no more once an answer has come."""
        done, period = Exchange(), 1.0 / rate
        start = time.monotonic()
        for k in range(count):
            due = start + k * period
            if (left := due - time.monotonic() - SPIN) > 0.0:
                time.sleep(left)
            while (late := time.monotonic() - due) < 0.0:
                pass
            stamp = time.time_ns()
            self._publisher.publish(stream.next(stamp))
            done.sent.append(stamp)
            done.late.append(round(late * 1e9))
            self._hear(done)
            if until_heard and done.heard:
                break
        return done

    def listen(self, done: Exchange, seconds: float, patience: float = 0.0) -> dict[str, str]:
        """Take what still comes in so many seconds; returns the last diagnostics by name.

        If none have come by then it waits for them, `patience` seconds more at most.
        """
        figures: dict[str, str] = {}
        end = time.monotonic() + seconds
        while time.monotonic() < (end if figures else end + patience):
            self._hear(done)
            while (taken := self._take(self._diagnosed, DiagnosticArray, False)) is not None:
                figures = {pair.key: pair.value for pair in taken[0].status[0].values}
            time.sleep(0.01)
        return figures

    def _hear(self, done: Exchange) -> None:
        while (taken := self._take(self._answers, JointState, True)) is not None:
            seconds, nanoseconds = STAMP.unpack_from(taken[0], STAMP_AT)
            stamp = seconds * 1_000_000_000 + nanoseconds
            done.heard[stamp] = taken[1]["received_timestamp"]

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
