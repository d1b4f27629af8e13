"""Joint states of a log as messages, and an arm that learns from them as a node of its own.

They are published over DDS as fast as asked, and learned by the node `inverse_dynamics`; what it
has saved is then tested, frozen, on a log.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from arms import LogSplit, measurements, received

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.nodes.processes import NodeProcess, use_own_network, write_params
from semiparam_dynamics.offline.doctor.messages import JointLog
from semiparam_dynamics.offline.evaluation.experiment import evaluate
from semiparam_dynamics.offline.evaluation.report import mean_nmse
from semiparam_dynamics.robot.model import RobotModel

LOST = "learning could not keep up"
PAUSE = 5 * SECOND  # ns between two logs, one after the other
SETTLED_S = 3.0  # without a newly learned sample everything that came is learned
PATIENCE_S = 60.0  # for that
QUEUE = 100  # messages, far more than come while the node is busy with one


class Message(NamedTuple):
    """A sensor_msgs/JointState; arrays are empty where it has none of these."""

    stamp: int
    names: tuple[str, ...]
    q: Array
    dq: Array
    y: Array


def messages(log: JointLog) -> list[Message]:
    """A log's rows, each without the quantities that no joint has there."""
    none = np.empty(0)

    def row(values: Array | None, k: int) -> Array:
        return none if values is None or np.isnan(values[k]).all() else values[k]

    return [
        Message(int(stamp), log.names, log.q[k], row(log.dq, k), row(log.y, k))
        for k, stamp in enumerate(log.stamps)
    ]


def halves(given: Iterable[Message]) -> Iterable[Message]:
    """An arm in two messages of one stamp, each of half the joints."""
    for m in given:
        k = len(m.names) // 2
        for part in (slice(None, k), slice(k, None)):
            yield Message(m.stamp, *(values[part] for values in m[1:]))


def whole(given: Iterable[Message]) -> Iterable[Message]:
    """The messages as they are."""
    return given


Change = Callable[[Iterable[Message]], Iterable[Message]]
# By name; those of conditions.py are put on the log before.
LIVE: dict[str, Change] = {
    "as it is": whole,
    "an arm in two messages of one stamp": halves,
    "a second publisher at 10 Hz": whole,
    "velocities in every second message": whole,
    "efforts in every second message": whole,
}


class Learned(NamedTuple):
    """Frozen error of what was learned, and how many samples the node had no time to learn."""

    error: float
    lost: int = 0


def learn_offline(split: LogSplit, train: list[JointLog], change: Change) -> Learned:
    """Learn the messages in this process."""
    model = RobotModel(split.urdf, split.config.robot)
    learned = [received(change(messages(log)), model, split.config.samples) for log in train]
    test = [measurements(split.test, model, split.config)]
    done = evaluate(model, split.config, test, learned)
    return Learned(mean_nmse(done.runs["frozen"].scores, "semiparametric"))


def learn_over_dds(split: LogSplit, train: list[JointLog], change: Change, speed: float) -> Learned:
    """Publish the messages of the logs, one after the other, to a node of its own.

    speed: how much faster than they were recorded.
    """
    use_own_network()
    sent: list[Message] = []
    for log in train:
        shift = (sent[-1].stamp if sent else 0) + PAUSE - int(log.stamps[0])
        sent += [m._replace(stamp=m.stamp + shift) for m in change(messages(log))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "arm.urdf").write_text(split.urdf)
        params = write_params(folder, "inverse_dynamics", split.config)
        given = {"urdf": folder / "arm.urdf", "model_file": folder / "model.npz"}
        with NodeProcess("inverse_dynamics", given, folder / "log", params) as process:
            figures = publish(sent, process.check, speed)
            if process.stop() != 0:
                raise SemiparamError((folder / "log").read_text())
        model = RobotModel(split.urdf, split.config.robot)
        test = [measurements(split.test, model, split.config)]
        done = evaluate(model, split.config, test, start=folder / "model.npz")
    error = mean_nmse(done.runs["frozen"].scores, "semiparametric")
    return Learned(error, int(figures.get(f"dropped: {LOST}", "0")))


def publish(sent: list[Message], check: Callable[[], None], speed: float) -> dict[str, str]:
    """Publish messages to the node once it is active; returns its figures when it has learned all.

    Messages with positions alone come from a publisher of their own, as joint_state_publisher's do.
    """
    import rclpy
    from diagnostic_msgs.msg import DiagnosticArray
    from rclpy.executors import SingleThreadedExecutor
    from sensor_msgs.msg import JointState

    from semiparam_dynamics.base.nodes.messages import joint_state_message
    from semiparam_dynamics.samples.nodes.bag_player import wait_until_active

    figures: dict[str, str] = {}

    def note(array: DiagnosticArray) -> None:
        for status in array.status:
            figures.update({pair.key: pair.value for pair in status.values})

    rclpy.init()
    try:
        node = rclpy.create_node("player")
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        node.create_subscription(DiagnosticArray, "/diagnostics", note, QUEUE)
        arm, other = (node.create_publisher(JointState, "joint_states", QUEUE) for _ in range(2))
        wait_until_active(node, executor, "inverse_dynamics")
        while arm.get_subscription_count() < 1 or other.get_subscription_count() < 1:
            executor.spin_once(timeout_sec=0.1)
        made = [joint_state_message(*m) for m in sent]
        begun = time.monotonic() - sent[0].stamp / SECOND / speed
        for m, message in zip(sent, made, strict=True):
            while (left := begun + m.stamp / SECOND / speed - time.monotonic()) > 0.0:
                executor.spin_once(timeout_sec=left)
            (arm if len(m.dq) or len(m.y) else other).publish(message)
        wait_until_learned(figures, lambda: executor.spin_once(timeout_sec=0.1), check)
    finally:
        rclpy.try_shutdown()
    return figures


def wait_until_learned(
    figures: dict[str, str], spin: Callable[[], None], check: Callable[[], None]
) -> None:
    """Spin until no sample was learned for a while."""
    counts, begun = [(0.0, "")], time.monotonic()
    while time.monotonic() - counts[-1][0] < SETTLED_S and time.monotonic() - begun < PATIENCE_S:
        spin()
        check()
        if (learned := figures.get("samples learned", "")) != counts[-1][1]:
            counts.append((time.monotonic(), learned))
