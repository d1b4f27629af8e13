"""The learner node's round trip: joint states in at a high rate, predictions out, over DDS.

One process publishes a 7-joint arm's joint states and hears the node's predictions; both read the
same clock. A prediction answers the message after the one whose stamp it bears, which completes
the central difference; that is the message from which its round trip is counted.

    python benchmarks/node_latency.py --seconds 30
    python benchmarks/node_latency.py --seconds 30 --residual random_fourier
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.nodes.messages import joint_state_message, stamp_of
from semiparam_dynamics.nodes.processes import NodeProcess, use_own_network
from semiparam_dynamics.nodes.runtime import make_executor

JOINTS = 7


def main() -> None:
    arguments = parse()
    use_own_network()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        urdf = arguments.urdf or folder / "arm.urdf"
        if arguments.urdf is None:
            urdf.write_text(serial_arm(JOINTS))
        parameters = {
            "urdf": urdf,
            "residual": arguments.residual,
            "nystrom.max_centers": arguments.features,
            "comparison": arguments.comparison,
            "random_fourier.n_features": arguments.features,
            "filter.max_rate": float(arguments.max_rate),
        }
        messages = trajectory(RobotModel(str(urdf)), arguments.rate, arguments.seconds)
        with NodeProcess("inverse_dynamics", parameters, folder / "log") as node:
            report(arguments, *exchange(node, messages, arguments.rate))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=1000.0, help="messages a second [Hz]")
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--residual", default="nystrom", choices=("nystrom", "random_fourier"))
    parser.add_argument(
        "--max-rate", type=float, default=0.0, help="the node's filter.max_rate; 0: all [Hz]"
    )
    parser.add_argument(
        "--no-comparison",
        dest="comparison",
        action="store_false",
        help="without the nonparametric model alone",
    )
    parser.add_argument("--urdf", type=Path, help="another arm than the built-in one")
    return parser.parse_args()


def serial_arm(joints: int) -> str:
    """A URDF of links of 0.3 m and ever less mass, each turning across the one before."""
    parts = ['<robot name="serial"><link name="link_0"/>']
    for k in range(1, joints + 1):
        mass, axis = 4.0 / k, ("0 0 1", "0 1 0")[k % 2]
        inertia = f'ixx="{0.03 / k}" iyy="{0.04 / k}" izz="{0.02 / k}" ixy="0.001" ixz="0" iyz="0"'
        parts.append(
            f'<link name="link_{k}"><inertial><origin xyz="0.02 0.01 0.15"/><mass value="{mass}"/>'
            f'<inertia {inertia}/></inertial></link><joint name="joint_{k}" type="revolute">'
            f'<parent link="link_{k - 1}"/><child link="link_{k}"/><origin xyz="0 0 0.3"/>'
            f'<axis xyz="{axis}"/><limit lower="-3" upper="3" effort="90" velocity="3"/></joint>'
        )
    return "".join(parts) + "</robot>"


def trajectory(model: RobotModel, rate: float, seconds: float) -> list[JointState]:
    """Messages of a motion that doesn't repeat, with friction and noise; stamps filled in later."""
    rng = np.random.default_rng(0)
    t = np.arange(round(rate * seconds)) / rate
    frequencies = 2.0 * np.pi * rng.uniform(0.05, 0.5, (4, model.n_joints))
    phases = rng.uniform(0.0, 2.0 * np.pi, frequencies.shape)
    angle = frequencies[:, None] * t[:, None] + phases[:, None]
    q = 0.3 * np.sin(angle).sum(0)
    dq = 0.3 * (frequencies[:, None] * np.cos(angle)).sum(0)
    ddq = -0.3 * (frequencies[:, None] ** 2 * np.sin(angle)).sum(0)
    effort = np.array([model.inverse_dynamics(*x) for x in zip(q, dq, ddq, strict=True)])
    effort += np.tanh(20.0 * dq) + 0.5 * np.sin(3.0 * q) + rng.normal(0.0, 0.05, q.shape)
    names = model.joint_names
    rows = zip(q, dq, effort, strict=True)
    return [joint_state_message(0, names, *row) for row in rows]


def exchange(
    node: NodeProcess, messages: list[JointState], rate: float
) -> tuple[np.ndarray, int, float, dict[str, str]]:
    """Round trips (s), messages sent, the node's processor use (1: one core) and diagnostics."""
    rclpy.init()
    peer = rclpy.create_node("node_latency")
    executor = make_executor()
    executor.add_node(peer)
    publisher = peer.create_publisher(JointState, "joint_states", QoSProfile(depth=100))
    answered: dict[int, int] = {}
    figures: dict[str, str] = {}

    def predicted(message: JointState) -> None:
        answered[stamp_of(message)] = time.monotonic_ns()

    def diagnosed(message: DiagnosticArray) -> None:
        figures.update({pair.key: pair.value for pair in message.status[0].values})

    peer.create_subscription(
        JointState, "inverse_dynamics/predicted", predicted, QoSProfile(depth=100)
    )
    peer.create_subscription(DiagnosticArray, "/diagnostics", diagnosed, 10)
    while not publisher.get_subscription_count():
        node.check()
        executor.spin_once(timeout_sec=0.1)
    until = time.monotonic() + 1.0  # the other direction's discovery
    while time.monotonic() < until:
        executor.spin_once(timeout_sec=0.1)
    used, start = cpu_seconds(node.pid), time.monotonic()
    sent = []
    for k, message in enumerate(messages):
        while (delay := start + k / rate - time.monotonic()) > 0:
            executor.spin_once(timeout_sec=delay)
        now = time.monotonic_ns()
        header = message.header
        header.stamp.sec, header.stamp.nanosec = divmod(now, 1_000_000_000)
        sent.append(now)
        publisher.publish(message)
    used, elapsed = cpu_seconds(node.pid) - used, time.monotonic() - start
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        executor.spin_once(timeout_sec=0.1)
    peer.destroy_node()
    rclpy.try_shutdown()
    trips = [answered[a] - b for a, b in zip(sent, sent[1:], strict=False) if a in answered]
    return np.array(trips) * 1e-9, len(sent), used / elapsed, figures


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report(
    arguments: argparse.Namespace,
    trips: np.ndarray,
    sent: int,
    processor: float,
    figures: dict[str, str],
) -> None:
    rows = {
        "messages": f"{sent} at {arguments.rate:g} Hz, {arguments.residual}, {arguments.features}",
        "messages lost on the way": f"{sent - int(figures['samples seen'])}",
        "predictions lost on the way": f"{int(figures['samples predicted']) - len(trips)}",
        "round trip p50 [us]": f"{np.percentile(trips, 50) * 1e6:.0f}",
        "round trip p99 [us]": f"{np.percentile(trips, 99) * 1e6:.0f}",
        "round trip max [us]": f"{trips.max() * 1e6:.0f}",
        "node's processor use [cores]": f"{processor:.2f}",
    }
    wanted = ("samples", "dropped", "predict", "learn ")
    rows |= {name: value for name, value in figures.items() if name.startswith(wanted)}
    for name, value in rows.items():
        print(f"{name:50} {value}")


if __name__ == "__main__":
    main()
