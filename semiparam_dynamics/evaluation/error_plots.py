"""The models' errors while the motion goes on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.evaluation.appearance import (
    FAINT,
    LOOKS,
    PROTOCOL_TITLES,
    AxisGroup,
    ModelLook,
)
from semiparam_dynamics.evaluation.protocols import ProtocolRun
from semiparam_dynamics.evaluation.svg import draw

LOG_RATIO = 12.0  # curves that span more than this are drawn on a logarithmic scale
MUST_SHOW = ("rigid_body", "nonparametric", "semiparametric")


def plot_line(axes: Axes, x: Array, y: Array, look: ModelLook) -> None:
    """Draw a curve in its model's colour; where it isn't finite there is none."""
    y = np.where(np.isfinite(y), y, np.nan)
    (line,) = axes.plot(x, y, color=look.color, linewidth=look.width)
    if look.dashes:
        line.set_dashes(look.dashes)


def mean_rmse(run: ProtocolRun, group: AxisGroup) -> tuple[Array, dict[str, Array]]:
    """Time (k,) in s and each model's RMSE (k,) in windows, averaged over a group's axes."""
    time, rmse = run.trace.rmse()
    mean = rmse[:, :, list(group.axes)].mean(axis=2)
    return time, {name: mean[:, i] for i, name in enumerate(run.trace.models)}


def error_panels(runs: Mapping[str, ProtocolRun], group: AxisGroup) -> list[str]:
    """RMSE over time of one group of axes, an <svg> per protocol, all on the same scale."""
    curves = {name: mean_rmse(run, group) for name, run in runs.items() if run.scores.samples}
    ends = {name: float(runs[name].trace.points()[0][-1]) for name in curves}
    last = max(ends.values(), default=0.0)
    low, high, log = _limits([models for _, models in curves.values()])
    panels = []
    for protocol, (time, models) in curves.items():
        # All protocols end together; frozen may begin later than the others.
        offset = last - ends[protocol]

        def plot(
            axes: Axes,
            protocol: str = protocol,
            time: Array = time + offset,
            models: Mapping[str, Array] = models,
        ) -> None:
            for name, curve in models.items():
                if name in MUST_SHOW or np.median(curve) < high:
                    plot_line(axes, time, curve, LOOKS[name])
            axes.set_title(PROTOCOL_TITLES[protocol])
            axes.set_xlabel("Time of motion (s)")
            axes.set_ylabel(f"RMSE ({group.unit})")
            axes.set_xlim(0.0, max(last, time[-1]))
            scale_axis(axes, low, high, log)
            if time[0] > 0.25 * last:
                axes.axvspan(0.0, time[0], color="#f3f5f7", zorder=0.5)
                where = axes.get_xaxis_transform()
                text = axes.text(0.5 * time[0], 0.5, "learning", transform=where, color=FAINT)
                text.set(ha="center", va="center", fontsize=9.0)

        name = f"error-{protocol}-{group.name.split()[0].lower()}"
        title = f"{group.name}: RMSE over time, {PROTOCOL_TITLES[protocol]}"
        panels.append(draw(name, title, plot, 330, 215))
    return panels


def scale_axis(axes: Axes, low: float, high: float, log: bool) -> None:
    """Limit the vertical axis, with plain numbers where it is logarithmic."""
    if log:
        axes.set_yscale("log")
        decades = np.log10(high / low)
        subs = (1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)
        axes.yaxis.set_major_locator(LogLocator(subs=subs, numticks=12))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(low, high)


def _limits(curves: list[dict[str, Array]]) -> tuple[float, float, bool]:
    """Of the vertical axis, and whether it is logarithmic: set by the models, not the baselines."""
    values = [models[name] for models in curves for name in MUST_SHOW]
    found = np.concatenate(values) if values else np.zeros(0)
    found = found[np.isfinite(found) & (found > 0.0)]
    if not found.size:
        return 0.0, 1.0, False
    low, high = np.percentile(found, [0.5, 99.5])
    if high > LOG_RATIO * low:
        return float(low / 1.3), float(high * 1.3), True
    return 0.0, float(high * 1.1), False
