"""Simulator, learner and controller as nodes over DDS: rate, late answers, tracking errors.

The iCub's arm moves with the URDF's feed-forward, then that of the learned rigid body and of the
semiparametric model, switched by a parameter while it moves. Errors are those of about the last
10 s of each, late answers those to all of its questions.

python benchmarks/controller_live.py --seconds 40
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from output import make_parser, parse
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node

from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.nodes.processes import NodeProcess, use_own_network
from semiparam_dynamics.control.config import FEEDFORWARDS

JOINTS = "[r_shoulder_pitch,r_shoulder_roll,r_shoulder_yaw,r_elbow]"
LEARNER = {"target": "effort", "joints": JOINTS, "feedforward": "true", "comparison": "false"}
LEARNER |= {"filter.max_rate": "100.0"}
CONTROLLER = {"joints": JOINTS, "motion": "exciting", "gains.rotor_inertia": "[0.03]"}
SIMULATOR = {"control": "effort", "motion": "exciting", "wait_for_subscribers": "2"}
CONTROL = "computed_torque"
Figures = dict[str, str]


class Watcher(Node):  # type: ignore[misc]
    """Hears the nodes' diagnostics and sets the controller's feed-forward."""

    def __init__(self) -> None:
        super().__init__("watcher")
        self.figures: dict[str, Figures] = {}
        self.create_subscription(DiagnosticArray, "/diagnostics", self._hear, 10)
        self._set = self.create_client(SetParameters, f"/{CONTROL}/set_parameters")

    def _hear(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.figures[status.name] = {pair.key: pair.value for pair in status.values}

    def switch(self, feedforward: str) -> None:
        """Take another feed-forward. Raises SemiparamError where the controller doesn't."""
        value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=feedforward)
        request = SetParameters.Request(parameters=[Parameter(name="feedforward", value=value)])
        if not self._set.wait_for_service(30.0):
            raise SemiparamError("the controller doesn't answer")
        answer = self._set.call_async(request)
        rclpy.spin_until_future_complete(self, answer, timeout_sec=30.0)
        if answer.result() is None:
            raise SemiparamError(f"the controller doesn't answer whether it takes {feedforward}")
        (result,) = answer.result().results
        if not result.successful:
            raise SemiparamError(f"the controller doesn't take {feedforward}: {result.reason}")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=40.0, help="of each feed-forward")
    parser.add_argument("--rate", type=float, default=500.0, help="commands a second, Hz")
    parser.add_argument("--lead", type=float, default=0.03, help="of the questions, s")
    args = parse(parser)
    use_own_network()
    rclpy.init()
    watcher, rate = Watcher(), str(args.rate)
    print("| feed-forward | commands a second | late | fall-back | RMS error of the joints, mrad |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        controller = {**CONTROLLER, "rate": rate, "lead": str(args.lead), "feedforward": "urdf"}
        nodes = {"inverse_dynamics": LEARNER, CONTROL: controller}
        nodes["arm_simulator"] = {**SIMULATOR, "rate": rate}
        processes = [
            stack.enter_context(NodeProcess(name, given, Path(folder) / f"{name}.log"))
            for name, given in nodes.items()
        ]
        while float(watcher.figures.get(CONTROL, {}).get("commands", "0")) == 0.0:
            wait(watcher, processes, 0.2)
        for name in FEEDFORWARDS:
            watcher.switch(name)
            wait(watcher, processes, 1.5)  # the last diagnostics were of the one before
            start, before = time.monotonic(), watcher.figures[CONTROL]
            wait(watcher, processes, args.seconds)
            print(row(name, before, watcher.figures[CONTROL], time.monotonic() - start), flush=True)
    for node, keys in (
        ("inverse_dynamics", ("answer", "predict", "learn")),
        (CONTROL, ("command",)),
    ):
        figures = watcher.figures[node]
        for key in (f"{k} {p} [us]" for k in keys for p in ("p50", "p99")):
            print(f"{node}: {key} {figures.get(key, '-')}")
    rclpy.try_shutdown()


def wait(watcher: Watcher, processes: list[NodeProcess], seconds: float) -> None:
    """Listen for so long. Raises SemiparamError where a node has ended."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0.0:
        rclpy.spin_once(watcher, timeout_sec=left)
    for process in processes:
        process.check()


def row(name: str, before: Figures, after: Figures, seconds: float) -> str:
    """A feed-forward's line of the table."""
    commands = (int(after["commands"]) - int(before["commands"])) / seconds
    errors = [float(v) for k, v in after.items() if k.startswith(f"tracking error {name} ")]
    late, fallback = "-", "-"
    if name != "urdf":
        counts = [[int(n) for n in f["late answers"].split(" of ")] for f in (before, after)]
        (late0, asked0), (late1, asked1) = counts
        late = f"{100.0 * (late1 - late0) / max(asked1 - asked0, 1):.2f} %"
        fallback = f"{100.0 * float(after['share of the fall-back']):.1f} %"
    mrad = ", ".join(f"{1e3 * error:.2f}" for error in errors)
    return (
        f"| {name} | {commands:.0f} | {late} | {fallback} | {mrad}: {1e3 * np.mean(errors):.2f} |"
    )


if __name__ == "__main__":
    main()
