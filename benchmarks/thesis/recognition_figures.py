"""Figures 7.2 and 7.3 of the thesis: accuracy on the new class and on the others as it grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter
from recognition_protocol import CURVE_ALPHAS, ProtocolResult, figure_points

from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.page import STYLE

PANELS = (("new_class", "New class (%)"), ("balanced", "Other classes (%)"))
LEAST_SPAN = 6.0  # points of the lower panel: less would make noise look like something
RED, BLUE, LIGHT_BLUE = "#d1342b", "#1f5fc4", "#7fa6e0"
ALPHA_COLORS = ("#440154", "#3b528b", "#21918c", "#5ec962", "#d9a514")  # dark to light
DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (4, 1.5)), (0, (2.5, 1.5)), (0, (1, 1)))


@dataclass(frozen=True)
class _Curve:
    method: str
    label: str
    color: str
    style: Any = "-"
    band: bool = False


def plot_exponents(result: ProtocolResult, path: str | Path) -> None:
    """Figure 7.2: fixed exponents, each with the best penalty for it on the validation set.

    Lines are means over the trials, of test accuracy. The path's ending says how it is written:
    .png, .svg or .pdf. Raises StorageError where it can't be.
    """
    looks = zip(CURVE_ALPHAS, ALPHA_COLORS, DASHES, strict=True)
    curves = [_Curve(f"alpha_{a:g}", f"α = {a:g}", color, style) for a, color, style in looks]
    _plot(result, curves, path)


def plot_comparison(result: ProtocolResult, path: str | Path) -> None:
    """Figure 7.3: naive and recoding, means with +- 1 standard deviation over the trials.

    With a tolerance its curve too. Ending and error as in :func:`plot_exponents`.
    """
    curves = [
        _Curve("naive", "naive", RED, band=True),
        _Curve("recoding", "recoding", BLUE, band=True),
    ]
    tolerance = result.protocol.tolerance
    if tolerance > 0.0:
        label = f"recoding, tolerance {tolerance:g}"
        curves.append(_Curve("recoding_tolerance", label, LIGHT_BLUE, (0, (4, 1.5))))
    _plot(result, curves, path)


def _plot(result: ProtocolResult, curves: Sequence[_Curve], path: str | Path) -> None:
    with rc_context({**STYLE, "savefig.dpi": 160}):
        figure = Figure(figsize=(6.0, 5.6), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(2, 1, sharex=True)
        for axes, (quantity, label) in zip(panels, PANELS, strict=True):
            _draw_panel(axes, result, curves, quantity)
            axes.set_ylabel(label)
        panels[0].set_ylim(-2.0, 102.0)
        low, high = panels[1].get_ylim()
        wider = max(LEAST_SPAN - (high - low), 0.0) / 2.0
        panels[1].set_ylim(low - wider, min(high + wider, 102.0))
        panels[1].set_xlabel("Examples of the new class")
        above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False}
        panels[0].legend(ncols=len(curves), **above)
        try:
            figure.savefig(path)
        except (OSError, ValueError) as error:
            raise StorageError(f"the figure can't be written to {path}: {error}") from error


def _draw_panel(
    axes: Axes, result: ProtocolResult, curves: Sequence[_Curve], quantity: str
) -> None:
    last = result.protocol.sizes.new[-1]
    points = figure_points(last)
    for curve in curves:
        parts = 100.0 * np.array([result.values(curve.method, n, quantity) for n in points])
        mean, deviation = parts.mean(axis=1), parts.std(axis=1)
        if curve.band:
            low, high = np.maximum(mean - deviation, 0.0), np.minimum(mean + deviation, 100.0)
            axes.fill_between(points, low, high, color=curve.color, alpha=0.15, linewidth=0.0)
        axes.plot(
            points, mean, color=curve.color, linestyle=curve.style, linewidth=1.6, label=curve.label
        )
    if last > 1:
        axes.set_xscale("log")
        axes.set_xlim(1.0, last)
        ticks = [n for n in (10**i * k for i in range(7) for k in (1, 2, 5)) if n <= last]
        axes.set_xticks(ticks)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
