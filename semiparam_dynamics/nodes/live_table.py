"""The demo's progress on a terminal or in a file."""

from __future__ import annotations

from typing import TextIO

from semiparam_dynamics.nodes.monitor import Monitor

HEADER = (
    "                                          force RMSE [N]        torque RMSE [N m]\n"
    "   time  motion     samples  dropped   rigid body  semipar.   rigid body  semipar."
)
ROWS_A_HEADER = 20


class LiveTable:
    """One line a second: how much was learned, and both models' errors over the last seconds."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._rows = 0
        self._waiting = ""
        self._told = 0.0  # s of motion at the last line

    def row(self, monitor: Monitor, motion: str) -> None:
        """Add a line if the arm has moved; says what is awaited before the first prediction."""
        rmse = monitor.rmse()
        if rmse is None:
            waiting = monitor.status.message if monitor.status else "the nodes are starting"
            if waiting != self._waiting:
                self.note(waiting)
                self._waiting = waiting
            return
        if monitor.motion == self._told:
            return
        self._told = monitor.motion
        if self._rows % ROWS_A_HEADER == 0:
            self._print(HEADER)
        self._rows += 1
        rigid, semiparametric = rmse["rigid_body"], rmse["semiparametric"]
        figures = monitor.figures()
        self._print(
            f"{monitor.motion:6.1f} s  {motion:9} {figures.get('samples learned', '0'):>8} "
            f"{dropped(figures):8d}   {rigid[0]:10.3f}  {semiparametric[0]:8.3f}   "
            f"{rigid[1]:10.4f}  {semiparametric[1]:8.4f}"
        )

    def note(self, text: str) -> None:
        """Add a line of text."""
        self._print(f"  {text}")

    def summary(self, monitor: Monitor, messages: int) -> None:
        """Say what came of it all."""
        known = {"samples seen": "0", "samples learned": "0"} | monitor.figures()
        self._print(
            f"{messages} messages recorded; the learner saw {known['samples seen']} samples, "
            f"learned {known['samples learned']}, dropped {dropped(known)}"
        )
        for act in ("predict", "learn"):
            if f"{act} p50 [us]" in known:
                p50, p99 = known[f"{act} p50 [us]"], known[f"{act} p99 [us]"]
                self._print(f"to {act} took the node {p50} us (median), {p99} us (99 %)")

    def _print(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()


def dropped(figures: dict[str, str]) -> int:
    """Everything that the learner left out, for whatever reason."""
    return sum(int(value) for name, value in figures.items() if name.startswith("dropped: "))
