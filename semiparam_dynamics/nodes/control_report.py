"""What the `computed_torque` node says on `/diagnostics`."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from semiparam_dynamics.control.session import ControlSession
from semiparam_dynamics.nodes.diagnostics import timing_values

MOSTLY = 0.5  # share of the URDF's feed-forward from which on the node warns


class ControlReport:
    """Sums a session up, once a second, and looks at what came since the last time."""

    def __init__(self, session: ControlSession, joint_names: Sequence[str]) -> None:
        self._session, self._names = session, joint_names
        self._told = time.monotonic()
        self._commands = self._begun = self._late = 0
        self._followed = 0.0

    def status(self, name: str) -> DiagnosticStatus:
        """The state of the node of that name."""
        session, controller = self._session, self._session.controller
        now, (begun, late) = time.monotonic(), session.blocks()
        new = controller.commands - self._commands
        rate = new / max(now - self._told, 1e-9)
        followed = (controller.followed - self._followed) / new if new else 0.0
        late_share = (late - self._late) / max(begun - self._begun, 1)
        self._told, self._commands, self._followed = now, controller.commands, controller.followed
        self._begun, self._late = begun, late
        model = controller.config.feedforward
        values = {"feed-forward": model, "commands": str(controller.commands)}
        values |= {"rate [Hz]": f"{rate:.1f}"}
        if model != "urdf":
            values |= {
                "share of the fall-back": f"{1.0 - followed:.3f}",
                "late answers": f"{late} of {begun}",
                "late answers, share in the last second": f"{late_share:.4f}",
            }
        for used, square in session.tracking.items():
            for joint, mean in zip(self._names, square.value, strict=True):
                values[f"tracking error {used} {joint} [rad]"] = f"{np.sqrt(mean):.3g}"
        counts = session.counts + controller.counts + controller.correction.counts
        values |= {reason: str(count) for reason, count in sorted(counts.items())}
        values |= timing_values({"command": session.command_us})
        level, summary = DiagnosticStatus.OK, f"{rate:.0f} commands a second, {model} feed-forward"
        if not new:
            level, summary = DiagnosticStatus.WARN, "no joint states: no commands"
        elif model != "urdf" and 1.0 - followed > MOSTLY:
            level = DiagnosticStatus.WARN
            summary += f"; {100 * (1.0 - followed):.0f} % of it the URDF's: see the counts"
        pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
        return DiagnosticStatus(level=level, name=name, message=summary, values=pairs)
