"""A self-contained HTML page: nothing is loaded, no script runs, all foreign text is escaped."""

from __future__ import annotations

import html
import io
import math
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from semiparam_dynamics.robot.model import RobotModel

# -------------------------------------------------------------------------------------------------
# Names, colours and units, the same in every plot and table of an evaluation.

INK = "#1f2328"
FAINT = "#57606a"


@dataclass(frozen=True)
class ModelLook:
    """The name and the line of a model."""

    name: str
    color: str
    width: float  # points
    dashes: tuple[float, ...] = ()  # points on and off; none: solid. Colour alone fails in print.


# Green, red and blue are those of the thesis' figure 8.4.
LOOKS = {
    "urdf": ModelLook("URDF", "#9a6700", 1.0, (1.5, 1.5)),
    "plain_rigid_body": ModelLook("Plain rigid body", "#6f9a2a", 1.0, (4.0, 1.0, 1.0, 1.0)),
    "batch": ModelLook("Least squares", "#7a5fa8", 1.0, (1.0, 2.0)),
    # Wider than what is drawn over it: two lines that agree are both seen.
    "rigid_body": ModelLook("Rigid body", "#2a8f3c", 2.8),
    "nonparametric": ModelLook("Nonparametric", "#d1342b", 1.1, (5.0, 1.5)),
    "semiparametric": ModelLook("Semiparametric", "#1f5fc4", 1.2),
    "persistence": ModelLook("Persistence", "#8c959f", 0.9, (2.5, 1.5)),
}
MEASURED = ModelLook("Measured", INK, 0.8)

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


CSS = """
:root { --font: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", Arial,
    sans-serif; --ink: #1f2328; --faint: #57606a; --line: #d8dee4; --accent: #1f5fc4; }
* { box-sizing: border-box; }
html { color-scheme: light; -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 72rem; background: #fff;
    color: var(--ink); font: 16px/1.5 var(--font); overflow-wrap: break-word; }
h1 { font-size: 1.1rem; font-weight: 600; color: var(--faint); margin: 0 0 .75rem; }
h2 { font-size: 1.3rem; margin: 3rem 0 .25rem; padding-top: 1rem;
    border-top: 1px solid var(--line); }
summary { cursor: pointer; margin-top: 1rem; padding: .6rem 0; border-top: 1px solid var(--line); }
summary h2 { display: inline; padding: 0; border: 0; font-size: 1.1rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
h3 small { font-weight: 400; color: var(--faint); }
p { margin: .4rem 0; max-width: 48rem; }
p.headline { font-size: 1.45rem; line-height: 1.35; font-weight: 600; margin: 0 0 .75rem; }
p.note, caption { color: var(--faint); font-size: .9rem; }
ul.verdicts { padding-left: 1.2rem; max-width: 48rem; }
ul.verdicts li { margin: .3rem 0; }
.warnings { border-left: 4px solid #d29922; background: #fff8e5; padding: .7rem 1rem;
    margin: 1.25rem 0; }
.warnings.none { border-color: #2a8f3c; background: #effaf1; }
.warnings h3 { margin: 0 0 .3rem; }
.warnings ul { margin: 0; padding-left: 1.2rem; }
.warnings li { margin: .25rem 0; }
.scroll { overflow-x: auto; margin: .5rem 0 1rem; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line);
    vertical-align: top; white-space: nowrap; }
thead th { color: var(--faint); font-weight: 600; vertical-align: bottom; }
tr > :first-child { text-align: left; position: sticky; left: 0; background: #fff; }
td small, th small { display: block; color: var(--faint); font-weight: 400; }
td.best { font-weight: 700; }
td.words, th.words { text-align: left; white-space: normal; overflow-wrap: break-word; }
td.words:last-child { min-width: 14rem; }
td.unit, th.unit { text-align: left; }
tbody th { white-space: normal; min-width: 7.5rem; }
table.parameters td:first-child { white-space: normal; min-width: 11rem; max-width: 24rem; }
td.weak { color: #9a6700; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0;
    margin: .6rem 0; font-size: .9rem; }
.legend svg { width: 2.2rem; height: .8rem; vertical-align: middle; margin-right: .4rem; }
figure { margin: 0; min-width: 0; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr));
    gap: 1.25rem 1.5rem; margin: .75rem 0; }
.pairs { grid-template-columns: repeat(auto-fill, minmax(min(26rem, 100%), 1fr)); }
.grid svg { display: block; width: 100%; height: auto; }
svg text { font-family: var(--font) !important; }
svg path { stroke-linejoin: round; }
svg.bar { width: 11rem; height: 1rem; vertical-align: middle; }
code { font: .85em ui-monospace, "DejaVu Sans Mono", monospace; }
/* On a phone a row that ends in a sentence is a paragraph: columns would leave the screen. */
@media (max-width: 40rem) { body { padding: 1.25rem .9rem 3rem; }
    p.headline { font-size: 1.2rem; } th, td { padding: .3rem .4rem; }
    #summary table { font-size: .8rem; } #summary tbody th { min-width: 5rem; }
    #summary td small, tr > .unit:first-child { white-space: normal; }
    table:has(td.words:last-child) thead { display: none; }
    tr:has(> td.words:last-child) { display: block; border-bottom: 1px solid var(--line); }
    tr:has(> td.words:last-child) > * { display: inline-block; min-width: 0; border: 0; }
    tr > td.words:last-child { display: block; min-width: 0; } }
/* In the dark all is dark with its hues kept, the plots too; the window itself is not body. */
@media screen and (prefers-color-scheme: dark) { html { color-scheme: dark; background: #1a1a1a; }
    body { min-height: 100vh; filter: invert(.9) hue-rotate(180deg); } }
@media print { details::details-content { content-visibility: visible; }
    body { max-width: none; padding: 0; font-size: 10.5pt; }
    .scroll { overflow: visible; }
    .grid { grid-template-columns: repeat(3, 1fr); gap: .6rem .8rem; }
    .pairs { grid-template-columns: repeat(2, 1fr); }
    .grid svg, tr, li { break-inside: avoid; } h2, h3 { break-after: avoid; }
    table { font-size: 7.5pt; }
    th, td { padding: .15rem .35rem; } .warnings { print-color-adjust: exact; }
    table:not(.parameters) { break-inside: avoid; } @page { margin: 14mm; } }
"""


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
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n"
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
