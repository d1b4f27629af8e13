"""Tracking errors by feed-forward, as plots for a page."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.control.closed_loop import ClosedLoop
from semiparam_dynamics.control.comparison import Comparison
from semiparam_dynamics.evaluation.appearance import FAINT, LOOKS, shorten
from semiparam_dynamics.evaluation.error_plots import plot_line
from semiparam_dynamics.evaluation.svg import draw

MILLI = 1e3
WINDOW = 0.5  # s


def windowed_rms(done: ClosedLoop) -> tuple[Array, Array]:
    """Time (m,) in s and root mean square error (m, n_joints) in rad, window by window."""
    period = float(done.time[1] - done.time[0]) if len(done.time) > 1 else WINDOW
    size = max(1, round(WINDOW / period))
    m = len(done.time) // size
    squares = done.error[: m * size].reshape(m, size, -1) ** 2
    time = done.time[: m * size].reshape(m, size).mean(axis=1)
    return time, np.sqrt(squares.mean(axis=1))


def over_time(comparison: Comparison) -> list[str]:
    """An <svg> for each joint: its error in windows, while the learner meets the motion."""
    curves = {name: windowed_rms(done) for name, done in comparison.runs.items()}
    return [_joint(comparison, curves, j) for j in range(len(comparison.joint_names))]


def _joint(comparison: Comparison, curves: Mapping[str, tuple[Array, Array]], j: int) -> str:
    joint = comparison.joint_names[j]

    def plot(axes: Axes) -> None:
        for name, (time, rms) in curves.items():
            plot_line(axes, time, MILLI * rms[:, j], LOOKS[name])
        axes.axvspan(0.0, comparison.since, color="#f3f5f7", zorder=0.5)
        axes.set_title(shorten(joint, 30))
        axes.set_xlabel("Time of motion (s)")
        axes.set_ylabel("RMS error (mrad)")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlim(0.0, max(float(time[-1]) for time, _ in curves.values()))

    return draw(f"tracking-{j}", f"Tracking error of {joint} over time", plot, 330, 215)


def by_joint(comparison: Comparison) -> str:
    """An <svg>: the errors of all joints side by side."""
    rms, names = comparison.rms(), comparison.joint_names

    def plot(axes: Axes) -> None:
        width = 0.8 / len(rms)
        for k, (name, values) in enumerate(rms.items()):
            place = np.arange(len(names)) + (k - 0.5 * (len(rms) - 1)) * width
            axes.bar(place, MILLI * values, 0.92 * width, color=LOOKS[name].color)
        axes.set_xticks(range(len(names)), [shorten(name, 14) for name in names])
        axes.tick_params(axis="x", labelrotation=30 if len(names) > 4 else 0, labelcolor=FAINT)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("RMS error (mrad)")

    return draw("tracking-joints", "Tracking error of each joint by feed-forward", plot, 680, 240)
