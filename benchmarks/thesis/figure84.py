"""Figure 8.4 of the thesis: the errors of three models while they learn a new motion."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.evaluation.prediction_plots import scale_axis
from semiparam_dynamics.page import LOOKS, STYLE

LOG_RATIO = 12.0  # curves that span more than this, in either panel, are drawn logarithmically
PANELS = (("force", "Force RMSE (N)"), ("torque", "Torque RMSE (N m)"))
# Rigid body below, semiparametric on top.
MODELS = {"rigid_body": "P", "nonparametric": "NP", "semiparametric": "SP"}


def plot_experiment(
    times: Array, curves: Mapping[str, Mapping[str, Array]], path: str | Path
) -> None:
    """Plot RMSE over time, its mean over the parts as a line and +- 1 standard deviation as a band.

    Parameters
    ----------
    times: (k,) s since a part's beginning, one for each window.
    curves: curves["force"] and curves["torque"] are, by model name ("rigid_body",
        "nonparametric", "semiparametric"), (parts, k): RMSE in N or N m averaged over components.
    path: where to; its ending says how: .png, .svg or .pdf.

    Raises StorageError where the file can't be written.

    """
    with rc_context({**STYLE, "savefig.dpi": 160}):
        figure = Figure(figsize=(7.0, 5.6), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(2, 1, sharex=True)
        limits = []
        for axes, (kind, label) in zip(panels, PANELS, strict=True):
            limits.append(_draw_panel(axes, times, curves[kind]))
            axes.set_ylabel(label)
            axes.set_xlim(float(times[0]), float(times[-1]))
        log = any(high > LOG_RATIO * low > 0.0 for low, high in limits)
        for axes, (low, high) in zip(panels, limits, strict=True):
            scale_axis(axes, low / 1.2 if log else 0.0, high * 1.1, log)
        panels[-1].set_xlabel("Time (s)")
        handles, labels = panels[0].get_legend_handles_labels()
        above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3, "frameon": False}
        panels[0].legend(handles[::-1], labels[::-1], **above)
        try:
            figure.savefig(path)
        except (OSError, ValueError) as error:
            raise StorageError(f"the figure can't be written to {path}: {error}") from error


def _draw_panel(axes: Axes, times: Array, curves: Mapping[str, Array]) -> tuple[float, float]:
    """Draw the models' curves; return the smallest and largest value drawn."""
    lowest, highest = np.inf, 0.0
    for model, short in MODELS.items():
        look, parts = LOOKS[model], np.asarray(curves[model], dtype=np.float64)
        mean, deviation = parts.mean(axis=0), parts.std(axis=0)
        # On a logarithmic axis a band must not reach zero: the best part bounds it.
        low, high = np.maximum(mean - deviation, parts.min(axis=0)), mean + deviation
        axes.fill_between(times, low, high, color=look.color, alpha=0.18, linewidth=0.0)
        label = f"{short}: {look.name.lower()}"
        axes.plot(times, mean, color=look.color, linewidth=1.6, label=label)
        lowest, highest = min(lowest, float(low.min())), max(highest, float(high.max()))
    return lowest, highest
