"""A self-contained HTML page: nothing is loaded, no script runs, all foreign text is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from semiparam_dynamics.evaluation.appearance import ModelLook

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
.grid svg { display: block; width: 100%; height: auto; }
svg text { font-family: var(--font) !important; }
svg path { stroke-linejoin: round; }
svg.bar { width: 11rem; height: 1rem; vertical-align: middle; }
code { font: .85em ui-monospace, "DejaVu Sans Mono", monospace; }
@media (max-width: 40rem) { body { padding: 1.25rem .9rem 3rem; }
    p.headline { font-size: 1.2rem; } th, td { padding: .3rem .5rem; } }
@media print { body { max-width: none; padding: 0; font-size: 10.5pt; }
    .scroll { overflow: visible; }
    .grid { grid-template-columns: repeat(3, 1fr); gap: .6rem .8rem; } .grid svg, tr, li
    { break-inside: avoid; } h2, h3 { break-after: avoid; } table { font-size: 7.5pt; }
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


def section(name: str, title: str, *parts: str) -> str:
    """A section with a heading; `title` is escaped, the parts are HTML."""
    body = "\n".join(part for part in parts if part)
    return f'<section id="{name}">\n<h2>{escape(title)}</h2>\n{body}\n</section>'


def note(text: str) -> str:
    """A paragraph of explanation, escaped."""
    return f'<p class="note">{escape(text)}</p>'


def bullets(items: Iterable[str], style: str = "") -> str:
    """A list, its items escaped."""
    inner = "".join(f"<li>{escape(item)}</li>" for item in items)
    kind = f' class="{style}"' if style else ""
    return f"<ul{kind}>{inner}</ul>" if inner else ""


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


def grid(panels: Iterable[str]) -> str:
    """Plots beside each other, as many as the page is wide."""
    return f'<div class="grid">{"".join(f"<figure>{panel}</figure>" for panel in panels)}</div>'


def legend(looks: Iterable[ModelLook], band: str = "") -> str:
    """What the colours mean; `band` names a shaded area of the last one's colour."""
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
