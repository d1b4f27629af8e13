"""One period of an exciting trajectory, joint by joint, between its limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.evaluation.appearance import FAINT, shorten
from semiparam_dynamics.evaluation.svg import STYLE
from semiparam_dynamics.identification.excitation import Excitation

_LINE, _LIMIT = "#1f5fc4", "#d1342b"


def plot_excitation(excitation: Excitation, path: str | Path) -> None:
    """Positions and velocities of each joint, and as dashed lines what they may use.

    The path's ending says how it is written: .png, .svg or .pdf. Raises StorageError where it
    can't be.
    """
    trajectory, limits = excitation.trajectory, excitation.limits
    n = len(excitation.joint_names)
    t = np.linspace(0.0, trajectory.period, 1000)
    q, dq, _ = trajectory(t)
    with rc_context({**STYLE, "savefig.dpi": 120}):
        figure = Figure(figsize=(9.0, 0.6 + 1.25 * n), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(n, 2, sharex=True, squeeze=False)
        for i, (left, right) in enumerate(panels):
            _draw(left, t, q[:, i], float(limits.lower[i]), float(limits.upper[i]))
            _draw(right, t, dq[:, i], -float(limits.velocity[i]), float(limits.velocity[i]))
            left.set_ylabel(shorten(excitation.joint_names[i], 18), fontsize=8.0)
        panels[0, 0].set_title("Position (rad or m)")
        panels[0, 1].set_title("Velocity (rad/s or m/s)")
        for axes in panels[-1]:
            axes.set_xlabel("Time (s)")
            axes.set_xlim(0.0, trajectory.period)
        try:
            figure.savefig(path)
        except (OSError, ValueError) as error:
            raise StorageError(f"the figure can't be written to {path}: {error}") from error


def _draw(axes: Axes, t: Array, values: Array, low: float, high: float) -> None:
    axes.plot(t, values, color=_LINE, linewidth=1.4)
    for limit in (low, high):
        axes.axhline(limit, color=_LIMIT, linewidth=1.0, linestyle=(0, (5, 2)))
    if low < 0.0 < high:
        axes.axhline(0.0, color=FAINT, linewidth=0.5)
    room = 0.08 * (high - low)
    axes.set_ylim(low - room, high + room)
