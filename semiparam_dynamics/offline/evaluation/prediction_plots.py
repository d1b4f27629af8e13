"""Predicted against measured, and whether the predicted standard deviations can be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.learner.curves import LOOKS, MEASURED, ModelLook
from semiparam_dynamics.learner.learner import MODELS
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun
from semiparam_dynamics.offline.page import (
    FAINT,
    PROTOCOL_TITLES,
    AxisGroup,
    draw,
    plain_numbers,
    shorten,
)

MOTION_TIME = "Time of motion (s)"
SHOWN_S = 10.0  # s of motion in which predictions and measurements are still distinct lines
NOMINAL = 0.9545  # share of a normal distribution within two standard deviations
MARKERS = {"sequential": "o", "delayed": "D", "frozen": "s"}
LOG_RATIO = 12.0  # curves that span more than this are drawn on a logarithmic scale


def plot_line(axes: Axes, x: Array, y: Array, look: ModelLook) -> None:
    """Draw a curve in its model's colour; where it isn't finite there is none."""
    y = np.where(np.isfinite(y), y, np.nan)
    (line,) = axes.plot(x, y, color=look.color, linewidth=look.width)
    if look.dashes:
        line.set_dashes(look.dashes)


def mean_rmse(run: ProtocolRun, group: AxisGroup) -> tuple[Array, dict[str, Array]]:
    """Time (k,) in s and each model's RMSE (k,) in windows, averaged over a group's axes.

    Axes that were not measured have no part; NaN in windows where none was.
    """
    time, rmse, measured = run.trace.rmse()
    chosen = list(group.axes)
    rmse, measured = rmse[:, :, chosen], measured[:, None, chosen]
    with np.errstate(invalid="ignore"):
        mean = rmse.sum(axis=2, where=measured) / measured.sum(axis=2)
    return time, {name: mean[:, i] for i, name in enumerate(run.trace.models)}


def error_panels(runs: Mapping[str, ProtocolRun], group: AxisGroup) -> list[str]:
    """RMSE over time of one group of axes, an <svg> per protocol, all on the same scale."""
    curves = {name: mean_rmse(run, group) for name, run in runs.items() if run.scores.samples}
    ends = {name: runs[name].trace.seconds for name in curves}
    last = max(ends.values(), default=0.0)
    low, high, log = _limits([models for _, models in curves.values()])

    def plot(protocol: str, axes: Axes) -> None:
        time, models = curves[protocol]
        # All protocols end together; frozen may begin later than the others.
        time = time + (last - ends[protocol])
        for name, curve in models.items():
            known = curve[~np.isnan(curve)]
            if name in MODELS or (known.size and np.median(known) < high):
                plot_line(axes, time, curve, LOOKS[name])
        axes.set(title=PROTOCOL_TITLES[protocol], xlabel=MOTION_TIME, ylabel=f"RMSE ({group.unit})")
        axes.set_xlim(0.0, max(last, time[-1]))
        scale_axis(axes, low, high, log)
        if time[0] > 0.25 * last:
            axes.axvspan(0.0, time[0], color="#f3f5f7", zorder=0.5)
            where = axes.get_xaxis_transform()
            text = axes.text(0.5 * time[0], 0.5, "learning", transform=where, color=FAINT)
            text.set(ha="center", va="center", fontsize=9.0)

    return [
        draw(
            f"error-{protocol}-{group.name.replace(' ', '-').lower()}",
            f"{group.name}: RMSE over time, {PROTOCOL_TITLES[protocol]}",
            partial(plot, protocol),
            330,
            215,
        )
        for protocol in curves
    ]


def scale_axis(axes: Axes, low: float, high: float, log: bool) -> None:
    """Limit the vertical axis, with plain numbers where it is logarithmic."""
    if log:
        axes.set_yscale("log")
        plain_numbers(axes.yaxis, low, high)
    axes.set_ylim(low, high)


def _limits(curves: list[dict[str, Array]]) -> tuple[float, float, bool]:
    """Limits of the vertical axis, and whether it is logarithmic: by the models, not baselines."""
    values = [models[name] for models in curves for name in MODELS]
    found = np.concatenate(values) if values else np.zeros(0)
    found = found[np.isfinite(found) & (found > 0.0)]
    if not found.size:
        return 0.0, 1.0, False
    low, high = np.percentile(found, [0.5, 99.5])
    if high > LOG_RATIO * low:
        return float(low / 1.3), float(high * 1.3), True
    return 0.0, float(high * 1.1), False


def prediction_panels(run: ProtocolRun, names: Sequence[str], units: Sequence[str]) -> list[str]:
    """The last seconds of a run, an <svg> per axis."""
    time, y, values, std = run.trace.points()
    recent = time >= time[-1] - SHOWN_S
    time, y, values, std = time[recent], y[recent], values[recent], std[recent]
    models = {name: values[:, i] for i, name in enumerate(run.trace.models)}

    def plot(axis: int, axes: Axes) -> None:
        mean, spread = models["semiparametric"][:, axis], 2.0 * std[:, axis]
        look = LOOKS["semiparametric"]
        axes.fill_between(
            time, mean - spread, mean + spread, color=look.color, alpha=0.16, linewidth=0.0
        )
        plot_line(axes, time, models["rigid_body"][:, axis], LOOKS["rigid_body"])
        plot_line(axes, time, mean, look)
        plot_line(axes, time, y[:, axis], MEASURED)
        axes.set(title=shorten(names[axis], 40), xlabel=MOTION_TIME, ylabel=units[axis])
        axes.margins(x=0.0)

    return [
        draw(f"prediction-{axis}", f"Predicted, measured: {name}", partial(plot, axis), 320, 190)
        for axis, name in enumerate(names)
    ]


def residual_panels(run: ProtocolRun, names: Sequence[str], units: Sequence[str]) -> list[str]:
    """Histograms of the errors of rigid body and semiparametric model, an <svg> per axis."""
    _, y, values, _ = run.trace.points()
    errors = {name: y - values[:, i] for i, name in enumerate(run.trace.models)}

    def plot(axis: int, axes: Axes) -> None:
        both = {m: errors[m][:, axis] for m in ("rigid_body", "semiparametric")}
        both = {m: error[np.isfinite(error)] for m, error in both.items()}
        largest = [np.percentile(np.abs(e), 99.5) for e in both.values() if e.size]
        reach = max([float(v) for v in largest if v > 0.0], default=1.0)
        for model, error in both.items():
            counts, edges = np.histogram(error, 40, (-reach, reach))
            percent, look = 100.0 * counts / max(error.size, 1), LOOKS[model]
            if model == "semiparametric":
                axes.stairs(percent, edges, fill=True, color=look.color, alpha=0.22)
            axes.stairs(percent, edges, color=look.color, linewidth=look.width)
        axes.axvline(0.0, color=FAINT, linewidth=0.8)
        label = f"Measured minus predicted ({units[axis]})"
        axes.set(title=shorten(names[axis], 40), xlabel=label, ylabel="Samples (%)")
        axes.margins(x=0.0)
        axes.locator_params(axis="x", nbins=6)

    return [
        draw(f"residual-{axis}", f"Residuals of {name}", partial(plot, axis), 320, 175)
        for axis, name in enumerate(names)
    ]


def score_histogram(runs: Mapping[str, ProtocolRun]) -> str:
    """An <svg>: errors over their predicted standard deviation, with the normal distribution."""

    def plot(axes: Axes) -> None:
        edges = np.linspace(-5.0, 5.0, 51)
        middle = 0.5 * (edges[1:] + edges[:-1])
        normal = np.exp(-0.5 * middle**2) / math.sqrt(2.0 * math.pi)
        axes.fill_between(middle, normal, color=FAINT, alpha=0.2, linewidth=0.0, label="Normal")
        for scores, style in _normalised_errors(runs):
            density = np.histogram(np.clip(scores, -5.0, 5.0), edges)[0] / scores.size / 0.2
            axes.plot(middle, density, **style)
        axes.set(title="Error / predicted sd", xlabel="Standard deviations (±5: and beyond)")
        axes.set(ylabel="Density", xlim=(-5.0, 5.0), ylim=(0.0, axes.get_ylim()[1]))
        _legend_below(axes)

    return draw("calibration-scores", "Errors over predicted sd", plot, 320, 260)


def calibration_curve(runs: Mapping[str, ProtocolRun]) -> str:
    """An <svg>: share of errors inside an interval over the share that it promises."""

    def plot(axes: Axes) -> None:
        promised = np.linspace(0.02, 0.99, 98)
        reach = np.array([NormalDist().inv_cdf(0.5 + 0.5 * p) for p in promised])
        axes.plot([0, 100], [0, 100], color=FAINT, linewidth=0.8, label="As promised")
        for scores, style in _normalised_errors(runs):
            inside = np.searchsorted(np.sort(np.abs(scores)), reach, side="right") / scores.size
            axes.plot(100 * promised, 100 * inside, **style)
        axes.set(title="Calibration, all axes", xlabel="Promised inside the interval (%)")
        axes.set(ylabel="Found inside (%)", xlim=(0, 100), ylim=(0, 100))
        _legend_below(axes)

    return draw("calibration-curve", "Calibration of the predicted sd", plot, 320, 260)


def coverage_plot(runs: Mapping[str, ProtocolRun], names: Sequence[str]) -> str:
    """An <svg>: share of samples within two predicted standard deviations, per axis."""

    def plot(axes: Axes) -> None:
        rows = np.arange(len(names), dtype=float)
        axes.axvline(100 * NOMINAL, color=FAINT, linewidth=0.8, label="Nominal 95 %")
        lowest = 80.0
        for protocol, run in runs.items():
            coverage = 100.0 * run.scores.coverage("semiparametric")
            lowest = min(lowest, float(np.nanmin(coverage, initial=100.0)) - 3.0)
            filled = protocol == "sequential"
            axes.plot(
                coverage,
                rows,
                MARKERS[protocol],
                markeredgecolor=LOOKS["semiparametric"].color,
                color=LOOKS["semiparametric"].color if filled else "white",
                markersize=5.5,
                label=PROTOCOL_TITLES[protocol],
            )
        axes.set_yticks(rows, [shorten(name, 24) for name in names])
        axes.set(title="Within two predicted sd", xlabel="Samples (%)")
        axes.set(xlim=(max(lowest, 0.0), 101.0), ylim=(len(names) - 0.5, -0.5))
        axes.locator_params(axis="x", nbins=6)
        _legend_below(axes)

    height = max(260.0, 100.0 + 18.0 * len(names))
    return draw("calibration-coverage", "Coverage per axis", plot, 320, height)


def _normalised_errors(runs: Mapping[str, ProtocolRun]) -> Iterator[tuple[Array, dict[str, Any]]]:
    """The last samples' semiparametric errors over their predicted sd, and each run's line."""
    for (protocol, run), style in zip(runs.items(), ("-", "--", ":"), strict=False):
        _, y, values, std = run.trace.points()
        error = y - values[:, run.trace.models.index("semiparametric")]
        with np.errstate(divide="ignore", invalid="ignore"):
            scores: Array = error / std
        if (scores := scores[np.isfinite(scores)]).size:
            look = {"color": LOOKS["semiparametric"].color, "linestyle": style, "linewidth": 1.3}
            yield scores, look | {"label": PROTOCOL_TITLES[protocol]}


def _legend_below(axes: Axes) -> None:
    # Loc "outside lower center" of a figure's legend would need a newer matplotlib than Jazzy's.
    figure = axes.get_figure()
    assert figure is not None  # the axes of a figure that is being drawn
    lower = axes.transAxes + ScaledTranslation(0.0, -36.0 / 72.0, figure.dpi_scale_trans)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=lower,
        borderaxespad=0.0,
        ncols=2,
        frameon=False,
        fontsize=9.0,
    )
