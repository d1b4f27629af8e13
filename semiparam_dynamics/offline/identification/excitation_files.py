"""An exciting trajectory as files: CSV, bags for a ros2_control controller, a plot, a table."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.base.parameters import parameter
from semiparam_dynamics.offline.identification.excitation import Excitation
from semiparam_dynamics.offline.identification.joint_motion import FourierTrajectory, Motion
from semiparam_dynamics.offline.page import FAINT, STYLE, number, shorten
from semiparam_dynamics.samples.bag_writer import BagWriter

_BAG_START_NS = 1_000_000_000  # stamps of 0 mean "none" to some tools
# Largest velocity, acceleration and jerk of the polynomial from rest to rest, way and time being 1.
_QUINTIC_PEAKS = (1.875, 10.0 / math.sqrt(3.0), 60.0)
_LINE_COLOR, _LIMIT_COLOR = "#1f5fc4", "#d1342b"


@dataclass(frozen=True)
class ExportConfig:
    """Sampling, repetitions and topic of the files."""

    rate: float = parameter(100.0, "points written", unit="Hz", low=1.0, high=10000.0)
    repeat: int = parameter(
        3, "periods written, one after the other: repeated motion shows the noise", low=1, high=1000
    )
    trial_slowdown: float = parameter(
        4.0, "how many times slower the bag for a first trial is", low=1.0, high=100.0
    )
    topic: str = parameter(
        "/joint_trajectory_controller/joint_trajectory", "the bag's JointTrajectory topic"
    )


def sample_times(excitation: Excitation, config: ExportConfig) -> Array:
    """(n,) s from 0 to the end of the last period, at rest at both."""
    total = config.repeat * excitation.trajectory.period
    return np.linspace(0.0, total, max(round(total * config.rate), 1) + 1)


def lead_in(excitation: Excitation) -> float:
    """s to reach the start from anywhere in the URDF's ranges, within the limits of motion allowed.

    A controller goes there from where the arm is parked on a quintic polynomial, from rest to rest.
    Rounded up to a second.
    """
    limits = excitation.limits
    lower, upper = limits.parked or (limits.lower, limits.upper)
    start = excitation.trajectory([0.0])[0][0]
    farthest = np.maximum(start - lower, upper - start)
    rates = (limits.velocity, limits.acceleration, limits.jerk)
    times = [
        np.max(peak * farthest / limit) ** (1.0 / order)
        for order, (peak, limit) in enumerate(zip(_QUINTIC_PEAKS, rates, strict=True), 1)
    ]
    return float(math.ceil(max(times)))


def write_csv(excitation: Excitation, config: ExportConfig, path: Path) -> None:
    """Write columns t (s), then q_, dq_ and ddq_ of each joint by name (rad or m, and per s, s^2).

    Raises StorageError where the file can't be written.
    """
    times = sample_times(excitation, config)
    names = [f"{kind}_{joint}" for kind in ("q", "dq", "ddq") for joint in excitation.joint_names]
    rows = np.column_stack([times, *excitation.trajectory(times)])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["t", *names])
    writer.writerows([f"{value:.9g}" for value in row] for row in rows)
    write_files({path: text.getvalue()})


def write_trajectory_bag(excitation: Excitation, config: ExportConfig, path: Path) -> None:
    """Write a rosbag2 folder with one JointTrajectory, whose first point comes after `lead_in`.

    So the controller has time to go there. A bag that exists is replaced and kept as a backup.
    Raises BagError where it can't be written.
    """
    times = sample_times(excitation, config)
    motion = excitation.trajectory(times)
    _write_bag(path, excitation.joint_names, times + lead_in(excitation), motion, config)


def write_trial_bag(excitation: Excitation, config: ExportConfig, path: Path) -> None:
    """Write one period through the same positions, slowed by `trial_slowdown`, lead-in included.

    It shows what the arm comes close to. Errors as in :func:`write_trajectory_bag`.
    """
    slow, original = config.trial_slowdown, excitation.trajectory
    trajectory = FourierTrajectory(original.coefficients, slow * original.period)
    times = np.linspace(0.0, trajectory.period, max(round(original.period * config.rate), 1) + 1)
    start = slow * lead_in(excitation)
    _write_bag(path, excitation.joint_names, times + start, trajectory(times), config)


def _write_bag(
    path: Path, names: tuple[str, ...], times: Array, motion: Motion, config: ExportConfig
) -> None:
    with BagWriter(path, overwrite=True) as bag:
        bag.joint_trajectory(_BAG_START_NS, names, times, motion, config.topic)


def plot_excitation(excitation: Excitation, path: Path) -> None:
    """Plot positions and velocities of each joint over a period, with their limits dashed, as PNG.

    Raises StorageError where the file can't be written.
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
        image = io.BytesIO()
        figure.savefig(image, format="png")
    write_files({path: image.getvalue()})


def _draw(axes: Axes, t: Array, values: Array, low: float, high: float) -> None:
    axes.plot(t, values, color=_LINE_COLOR, linewidth=1.4)
    for limit in (low, high):
        axes.axhline(limit, color=_LIMIT_COLOR, linewidth=1.0, linestyle=(0, (5, 2)))
    if low < 0.0 < high:
        axes.axhline(0.0, color=FAINT, linewidth=0.5)
    room = 0.08 * (high - low)
    axes.set_ylim(low - room, high + room)


def excitation_table(excitation: Excitation) -> str:
    """Text of condition numbers, the posture at the start, and the largest use of each limit.

    Efforts are those of the URDF's rigid body, without friction.
    """
    random = excitation.random_conditions
    conditions = [
        (f"random motion within the limits, median of {len(random)}", float(np.median(random))),
        ("start of the search", excitation.start_condition),
        ("result", excitation.condition),
    ]
    width = max(len(text) for text, _ in conditions)
    lines = [
        f"condition number of the regressor, {excitation.n_parameters} base parameters, one period",
        *(f"  {text:<{width}}  {number(value):>9}" for text, value in conditions),
        "",
    ]
    names = [shorten(name, 24) for name in excitation.joint_names]
    width = max(5, *(len(name) for name in names))
    start, limits = excitation.trajectory([0.0])[0][0], excitation.limits
    shown = ["position", "velocity", "acceleration", "jerk", "effort"]
    free = {kind: np.isinf(getattr(limits, kind)) for kind in shown[1:]}
    shown = [kind for kind in shown if kind == "effort" or not np.all(free.get(kind, False))]
    header = f"{'start':>9}" + "".join(f"{kind:>{len(kind) + 3}}" for kind in shown)
    lines.append(f"{'joint':<{width}}{header}    (share of what may be used)")
    for i, name in enumerate(names):
        line = f"{name:<{width}}{float(start[i]):>9.3f}"
        for kind in shown:
            share = float(getattr(excitation.use, kind)[i])
            text = "free" if kind in free and free[kind][i] else f"{share:.0%}"
            line += f"{text:>{len(kind) + 3}}"
        lines.append(line)
    return "\n".join(lines)
