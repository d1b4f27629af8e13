"""Table 7.1 and figures 7.2 and 7.3 of the thesis from what was measured, and all as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter
from recognition_protocol import CURVE_ALPHAS, ProtocolResult, figure_points

from semiparam_dynamics import __version__
from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.offline.page import STYLE

NAMES = {"naive": "naive", "rebalanced": "rebalanced", "recoding": "recoding"}
SCALES = {
    "max": "inputs divided by the greatest number learned",
    "unit": "each input divided by its norm",
    "none": "inputs as they are in the file",
}
PANELS = (("new_class", "New class (%)"), ("balanced", "Other classes (%)"))
LEAST_SPAN = 6.0  # points of the lower panel: less would make noise look like something
RED, BLUE, LIGHT_BLUE = "#d1342b", "#1f5fc4", "#7fa6e0"
ALPHA_COLORS = ("#440154", "#3b528b", "#21918c", "#5ec962", "#d9a514")  # dark to light
DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (4, 1.5)), (0, (2.5, 1.5)), (0, (1, 1)))


def methods(result: ProtocolResult) -> dict[str, str]:
    """The rows of the table, in their order: each method's name in :class:`Score` and in print."""
    tolerance = result.protocol.tolerance
    if tolerance <= 0.0:
        return NAMES
    return NAMES | {"recoding_tolerance": f"recoding, tolerance {tolerance:g} *"}


def recognition_table(result: ProtocolResult) -> str:
    """The table in Markdown; for MNIST a second one beside the thesis' figures."""
    protocol, file = result.protocol, result.file
    sizes, classes = protocol.sizes, len(file.names)
    drawn = "another at random in each trial"
    new = drawn if protocol.new_class is None else file.names[protocol.new_class]
    apart = "rows of the file's test part" if file.test else "rows used for nothing else"
    lines = [
        f"## {file.path.name}: {classes} classes of {file.train.X.shape[1]} inputs",
        "",
        f"{protocol.trials} trials, seed {protocol.seed}. New class: {new}. Of each of the"
        f" {classes - 1} others {sizes.balanced} examples to learn and {sizes.validation} to choose"
        f" by; tested on {sizes.test} of every class, {apart}; {SCALES[protocol.scale]}; penalties"
        f" {', '.join(f'{one:g}' for one in sorted(protocol.penalties))}. Accuracy in %: mean ±"
        " standard deviation over the trials (standard error of the mean); exponent and penalty:"
        " arithmetic and geometric mean of those chosen.",
        "",
        "| new examples | | total | new class | exponent | penalty |",
        "|---|---|---|---|---|---|",
    ]
    for n in sizes.new:
        for method, name in methods(result).items():
            total = _spread(100.0 * result.values(method, n, "total"))
            fresh = _spread(100.0 * result.values(method, n, "new_class"))
            alpha = result.values(method, n, "alpha").mean()
            shown = "" if method == "rebalanced" else f"{alpha:.2f}"
            penalty = float(np.exp(np.log(result.values(method, n, "penalty")).mean()))
            rounded = f"{float(f'{penalty:.2g}'):g}"
            lines.append(f"| {n} | {name} | {total} | {fresh} | {shown} | {rounded} |")
    if protocol.tolerance > 0.0:
        lines += [
            "",
            f"\\* not the thesis' rule: up to {100.0 * protocol.tolerance:g} points of validation"
            " accuracy are given up for a larger exponent.",
        ]
    return "\n".join([*lines, *_comparison(result)]) + "\n"


def results_json(result: ProtocolResult) -> str:
    """All that was measured, as the text of results.json: shares, not per cent."""
    protocol, names = asdict(result.protocol), result.file.names
    if result.protocol.new_class is not None:
        protocol["new_class"] = names[result.protocol.new_class]
    found = {
        "file": result.file.path.name,
        "classes": list(names),
        "inputs": int(result.file.train.X.shape[1]),
        "protocol": protocol,
        "new_classes": [names[number] for number in result.new_classes],
        "scores": [asdict(score) for score in result.scores],
        "seed": result.protocol.seed,
        "version": __version__,
    }
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def _comparison(result: ProtocolResult) -> list[str]:
    """The second table, of what the thesis has too."""
    theirs = published(result)
    if not theirs:
        return []
    lines = [
        "",
        "Beside the thesis (table 7.1). In brackets the difference to it, in standard deviations"
        " of the trials here, and in standard errors of the difference if what the thesis prints"
        " after ± is a standard error too.",
        "",
        "| new examples | | total | thesis | | new class | thesis | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for n, rows in theirs.items():
        for method, name in methods(result).items():
            row = rows[method.partition("_")[0]]
            total = 100.0 * result.values(method, n, "total")
            fresh = 100.0 * result.values(method, n, "new_class")
            lines.append(
                f"| {n} | {name} | {total.mean():.1f} | {row.total} ± {row.total_spread}"
                f" | {_difference(total, row.total, row.total_spread)} | {fresh.mean():.1f}"
                f" | {row.new_class} ± {row.new_class_spread}"
                f" | {_difference(fresh, row.new_class, row.new_class_spread)} |"
            )
    return lines


def _spread(values: Array) -> str:
    if len(values) < 2:
        return f"{values.mean():.1f}"
    return f"{values.mean():.1f} ± {_deviation(values):.1f} ({_error(values):.1f})"


def _difference(values: Array, theirs: float, spread: float) -> str:
    """The difference of the means, and in deviations and in standard errors."""
    difference = float(values.mean()) - theirs
    if abs(difference) < 0.05:
        return "0.0"
    shown = f"{difference:+.1f}"
    if len(values) < 2:
        return shown
    deviation, error = _deviation(values), math.hypot(_error(values), spread)
    parts = [f"{difference / one:+.1f}" if one > 1e-9 else "–" for one in (deviation, error)]
    return f"{shown} ({parts[0]} sd, {parts[1]} se)"


def _deviation(values: Array) -> float:
    return float(values.std(ddof=1))


def _error(values: Array) -> float:
    return _deviation(values) / math.sqrt(len(values))


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
    .png, .svg or .pdf.
    """
    looks = zip(CURVE_ALPHAS, ALPHA_COLORS, DASHES, strict=True)
    curves = [_Curve(f"alpha_{a:g}", f"α = {a:g}", color, style) for a, color, style in looks]
    _plot(result, curves, path)


def plot_comparison(result: ProtocolResult, path: str | Path) -> None:
    """Figure 7.3: naive and recoding, means with +- 1 standard deviation over the trials.

    With a tolerance its curve too. The ending as in :func:`plot_exponents`.
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
        figure.savefig(path)


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


# The thesis' own figures, beside which those of MNIST are shown.

BALANCED = 1000  # examples of each balanced class
MNIST_COUNTS = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)


class Published(NamedTuple):
    """Accuracies in %, and what the thesis prints after +- (it doesn't say of what)."""

    total: float
    total_spread: float
    new_class: float
    new_class_spread: float


# By the number of new examples: naive, rebalanced, recoding.
MNIST = {
    n: dict(zip(NAMES, (Published(*row) for row in rows), strict=True))
    for n, rows in {
        1: ((79.2, 0.3, 0.0, 0.0), (79.7, 0.4, 7.4, 7.7), (79.7, 0.6, 9.5, 4.9)),
        5: ((79.1, 0.3, 0.0, 0.0), (82.5, 0.7, 39.6, 6.2), (80.3, 0.6, 17.5, 6.6)),
        10: ((79.2, 0.3, 0.0, 0.0), (83.6, 0.7, 49.5, 5.7), (81.0, 0.6, 25.1, 5.3)),
        50: ((79.2, 0.3, 0.0, 0.0), (85.5, 0.3, 73.5, 3.3), (83.9, 0.5, 49.1, 3.5)),
        100: ((79.2, 0.4, 2.0, 0.9), (85.9, 0.4, 75.5, 2.7), (85.1, 0.5, 62.7, 2.9)),
        500: ((85.5, 0.3, 66.9, 1.1), (86.2, 0.3, 78.5, 0.9), (86.1, 0.3, 77.8, 1.1)),
    }.items()
}


def published(result: ProtocolResult) -> dict[int, dict[str, Published]]:
    """The thesis' figures, by number of new examples and method; none for anything but MNIST.

    MNIST is known by how many training rows each class has, which no sibling of it shares.
    """
    counts = tuple(result.file.train_counts().tolist())
    if counts != MNIST_COUNTS or result.protocol.sizes.balanced != BALANCED:
        return {}
    return {n: MNIST[n] for n in result.protocol.sizes.new if n in MNIST}
