"""A self-contained HTML page: nothing is loaded, no script runs, all foreign text is escaped."""

from __future__ import annotations

import html
import io
import math
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from semiparam_dynamics.learner.curves import ModelLook
from semiparam_dynamics.robot.model import RobotModel

# -------------------------------------------------------------------------------------------------
# Names, colours and units, the same in every plot and table of an evaluation.

INK = "#1f2328"
FAINT = "#57606a"


PROTOCOL_TITLES = {
    "sequential": "Sequential",
    "delayed": "Delayed",
    "frozen": "Frozen",
    "sequential_rest": "Sequential, on the frozen part only",
    "delayed_rest": "Delayed, on the frozen part only",
    "frozen_repeated": "Frozen, states learned before",
    "frozen_new": "Frozen, new states",
}
PROTOCOL_MEANINGS = {
    "sequential": "each sample is predicted, scored, then learned",
    "delayed": "blocks of 0.5 s are predicted before the nonparametric parts learn any of them",
    "frozen": "nothing is learned while it is scored",
    "sequential_rest": "the samples that frozen was scored on, so that the two compare",
    "delayed_rest": "the samples that frozen was scored on, so that the two compare",
    "frozen_repeated": "of these samples those as near to a learned one as motion goes in 50 ms",
    "frozen_new": "the other frozen samples",
}


@dataclass(frozen=True)
class AxisGroup:
    """Outputs of one unit, whose errors may be averaged."""

    name: str
    unit: str
    axes: tuple[int, ...]


def axis_groups(model: RobotModel) -> list[AxisGroup]:
    """Force and torque of a wrench; or the joints' efforts, those that slide apart."""
    if model.config.target == "wrench":
        return [AxisGroup("Force", "N", (0, 1, 2)), AxisGroup("Torque", "N m", (3, 4, 5))]
    slide = tuple(k for k, slides in enumerate(model.sliding) if slides)
    turn = tuple(k for k, slides in enumerate(model.sliding) if not slides)
    groups = AxisGroup("Joint effort", "N m", turn), AxisGroup("Joint force", "N", slide)
    return [group for group in groups if group.axes]


def axis_units(model: RobotModel) -> list[str]:
    """The unit of each output."""
    units = {axis: group.unit for group in axis_groups(model) for axis in group.axes}
    return [units[axis] for axis in range(model.n_axes)]


def shorten(name: str, length: int) -> str:
    """`name`, its middle cut out where it is longer than `length`."""
    if len(name) <= length:
        return name
    head = (length - 1) // 2
    return f"{name[:head]}…{name[len(name) - (length - 1 - head) :]}"


def number(value: float, digits: int = 3) -> str:
    """A decimal number to as many significant digits; a dash where there is none."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞"
    if value == 0.0:
        return "0"
    text = f"{value:#.{digits}g}".rstrip(".")
    if "e+" in text and abs(value) < 1e6:
        text = f"{value:.0f}"
    return text.replace("-", "−")


def plain(value: float | None) -> str:
    """A decimal number for a terminal; a hyphen where there is none."""
    return "-" if value is None else f"{value:.4g}"


def setting(value: object) -> str:
    """A parameter's value, as short as it can be."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(setting, value)) or "(empty)"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) or "(empty)"


# -------------------------------------------------------------------------------------------------
# One plot as SVG that can stand inside an HTML page, many on one page.

# matplotlib types the keys as a literal of all its settings, of one version or another.
STYLE: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10.0,
    "axes.edgecolor": "#afb8c1",
    "axes.labelcolor": FAINT,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": "#e4e8ec",
    "grid.linewidth": 0.7,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "lines.solid_capstyle": "round",
    # Text stays text: it can be searched, and the page's font is used.
    "svg.fonttype": "none",
    # Joint names and topics are not formulas.
    "text.parse_math": False,
}


def draw(
    name: str, description: str, plot: Callable[[Axes], None], width: float, height: float
) -> str:
    """Let `plot` fill the axes of a figure of `width` x `height` points; return its <svg>.

    `name` must be unique on the page; `description` is what a screen reader says.
    """
    with rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(width / 72.0, height / 72.0), layout="constrained")
        FigureCanvasSVG(figure)
        plot(figure.add_subplot())
        buffer = io.StringIO()
        with warnings.catch_warnings():
            # The reader's browser has the letters that matplotlib's font lacks.
            warnings.filterwarnings("ignore", message="Glyph")
            # Left to `savefig` the layout costs another drawing, as does any engine.
            if (layout := figure.get_layout_engine()) is not None:
                layout.execute(figure)
            figure.set_layout_engine(None)
            figure.savefig(buffer, format="svg", transparent=True)
    return _inline(buffer.getvalue(), name, description)


def plain_numbers(axis: Axis, low: float, high: float) -> None:
    """Mark a logarithmic axis with plain numbers: a page has no formulas."""
    subs = (1.0, 2.0, 5.0) if high < 10.0**2.5 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs, numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _inline(text: str, name: str, description: str) -> str:
    """Leave out what belongs to a file, and make ids unique."""
    body = text[text.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r"<style[^>]*>.*?</style>", "", body, flags=re.DOTALL)
    view = re.search(r'viewBox="([^"]+)"', body)
    box = view.group(1) if view else "0 0 1 1"
    body = re.sub(r"<[^>]*>", lambda tag: _clean(tag.group(), name), body[body.index(">") + 1 :])
    body = re.sub(r"\s*\n\s*", "\n", body)
    return f'<svg viewBox="{box}" role="img" aria-label="{html.escape(description)}">{body}'


def _clean(tag: str, name: str) -> str:
    """A tag with ids of its own, in the page's font, and no digits that nobody can see."""
    tag = re.sub(r'<g id="[^"]*"', "<g", tag)
    tag = re.sub(r'(\bid="|xlink:href="#|url\(#)', rf"\g<1>{name}-", tag)
    tag = re.sub(r" ?font-family: [^;\"]*;?", "", tag)
    tag = re.sub(r"(font: [^;\"']*px) [^;\"]*", r"\1 sans-serif", tag)  # older matplotlib
    tag = re.sub(r' transform="rotate\(-?0 [^"]*"', "", tag)
    return re.sub(r"(?<=\d\.\d\d)\d+", "", tag)


CSS = (Path(__file__).parents[1] / "web" / "report.css").read_text(encoding="utf-8")


def escape(text: object) -> str:
    """Text that comes from files, safe inside elements and attributes."""
    return html.escape(str(text))


def page(title: str, sections: Iterable[str]) -> str:
    """The whole document; `title` is escaped, the sections are HTML."""
    body = "\n".join(sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # Even if something slipped through: nothing may be loaded or run. The empty icon spares
        # a browser the search for one.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{CSS}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def section(name: str, title: str, *parts: str, folded: bool = False) -> str:
    """A section with a heading; `title` is escaped, the parts are HTML.

    folded: its parts are shown when the heading is clicked, and in print.
    """
    body, heading = "\n".join(part for part in parts if part), f"<h2>{escape(title)}</h2>"
    if folded:
        body = f"<details><summary>{heading}</summary>\n{body}\n</details>"
        heading = ""
    return f'<section id="{name}">\n{heading}{body}\n</section>'


def note(text: str) -> str:
    """A paragraph of explanation, escaped."""
    return f'<p class="note">{escape(text)}</p>'


def bullets(items: Iterable[str], style: str = "") -> str:
    """A list, its items escaped."""
    inner = "".join(f"<li>{escape(item)}</li>" for item in items)
    kind = f' class="{style}"' if style else ""
    return f"<ul{kind}>{inner}</ul>" if inner else ""


def warning_box(title: str, items: Iterable[str]) -> str:
    """A box with a list of warnings, all escaped; green and without a list where there are none."""
    inner = bullets(items)
    if not inner:
        return f'<div class="warnings none"><p>{escape(title)}</p></div>'
    return f'<div class="warnings"><h3>{escape(title)}</h3>{inner}</div>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]], style: str = "") -> str:
    """A table that scrolls sideways where it is too wide; all cells are whole elements."""
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="{style}"><thead><tr>{"".join(header)}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def head(text: str, detail: str = "", style: str = "") -> str:
    """A table's heading cell, escaped, with a smaller second line."""
    kind = f' class="{style}"' if style else ""
    return f"<th{kind}>{escape(text)}{f'<small>{escape(detail)}</small>' if detail else ''}</th>"


def cell(text: str, detail: str = "", style: str = "") -> str:
    """A table's cell, escaped, with a smaller second line."""
    return head(text, detail, style).replace("<th", "<td", 1).removesuffix("</th>") + "</td>"


def grid(panels: Iterable[str], *, pairs: bool = False) -> str:
    """Plots in rows, as many as the page is wide; `pairs`: two, or one on a phone."""
    kind = "grid pairs" if pairs else "grid"
    return f'<div class="{kind}">{"".join(f"<figure>{panel}</figure>" for panel in panels)}</div>'


def legend(looks: Iterable[ModelLook], band: str = "") -> str:
    """The meaning of the colours; `band` names a shaded area of the last one's colour."""
    entries = []
    color = ""
    for look in looks:
        dashes = " ".join(f"{length * 1.2:g}" for length in look.dashes)
        line = (
            f'<svg viewBox="0 0 35 12" aria-hidden="true"><line x1="0" y1="6" x2="35" y2="6" '
            f'stroke="{look.color}" stroke-width="{1.5 * look.width:g}" '
            f'stroke-dasharray="{dashes or "none"}"/></svg>'
        )
        entries.append(f"<li>{line}{escape(look.name)}</li>")
        color = look.color
    if band:
        area = f'<rect width="35" height="12" fill="{color}" opacity="0.2"/>'
        area = f'<svg viewBox="0 0 35 12" aria-hidden="true">{area}</svg>'
        entries.append(f"<li>{area}{escape(band)}</li>")
    return f'<ul class="legend">{"".join(entries)}</ul>'
