"""The page over many bags' reports: what came of each, and the way to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from semiparam_dynamics.evaluation.appearance import PROTOCOL_TITLES
from semiparam_dynamics.evaluation.page import cell, escape, head, note, page, table

TITLE = "Inverse dynamics, each bag for itself"


def bags_page(summary: Sequence[Mapping[str, Any]]) -> str:
    """The page, as HTML text; `summary` is what bags.json holds."""
    protocols = list(summary[0]["mean_nmse"])
    titles = [(PROTOCOL_TITLES[p], "semiparametric / rigid body, nmse") for p in protocols]
    header = [head("Bag"), head("Samples"), *(head(title, detail) for title, detail in titles)]
    rows = [
        [_link(bag), cell(str(bag["samples"])), *(_score(bag["mean_nmse"][p]) for p in protocols)]
        for bag in summary
        if not bag["error"]
    ]
    failed = [bag for bag in summary if bag["error"]]
    better = [
        bag
        for bag in summary
        if (share := _share(bag["mean_nmse"]["delayed"])) is not None and share < 1.0
    ]
    told = f"The semiparametric model is ahead of the rigid body on {len(better)} of {len(rows)} "
    sections = [
        f'<section id="summary">\n<h1>{TITLE}</h1>\n'
        f'<p class="headline">{told}bags, half a second before it learns them.</p>\n',
        table(header, rows),
        note(
            "Each bag was evaluated as if it were the only one, from the same start. Mean over the "
            "axes; below 1 the residual helps. The bag's name leads to its own report."
        ),
        "</section>",
    ]
    if failed:
        items = "".join(f"<li>{escape(bag['bag'])}: {escape(bag['error'])}</li>" for bag in failed)
        heading = f"{len(failed)} of {len(summary)} bags could not be evaluated"
        sections.insert(
            1, f'<div class="warnings"><h3>{escape(heading)}</h3><ul>{items}</ul></div>'
        )
    return page(TITLE, sections)


def _link(bag: Mapping[str, Any]) -> str:
    target = escape(quote(f"{bag['folder']}/report.html"))
    return f'<th><a href="{target}">{escape(bag["folder"])}</a></th>'


def _share(nmse: Mapping[str, float | None]) -> float | None:
    rigid, both = nmse["rigid_body"], nmse["semiparametric"]
    return both / rigid if rigid and both is not None else None


def _score(nmse: Mapping[str, float | None]) -> str:
    share, both = _share(nmse), nmse["semiparametric"]
    return cell("-" if share is None else f"{share:.3f}", "-" if both is None else f"{both:.4g}")
