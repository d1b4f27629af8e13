"""One plot as SVG that can stand inside an HTML page, many on one page."""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Callable
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from semiparam_dynamics.evaluation.appearance import FAINT, INK

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
            figure.savefig(buffer, format="svg", transparent=True)
    return _inline(buffer.getvalue(), name, description)


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
