"""A page on a controlled motion: the feed-forwards side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from semiparam_dynamics.control.comparison import Comparison
from semiparam_dynamics.evaluation.appearance import LOOKS, number
from semiparam_dynamics.evaluation.control_plots import MILLI, by_joint, over_time
from semiparam_dynamics.evaluation.page import (
    bullets,
    cell,
    escape,
    grid,
    head,
    legend,
    note,
    page,
    section,
    table,
)

TITLE = "Tracking error by feed-forward"


def control_report(comparison: Comparison, facts: Sequence[str]) -> str:
    """The whole page, as HTML text; `facts` are sentences on how it was made."""
    rms = comparison.rms()
    means = {name: MILLI * float(values.mean()) for name, values in rms.items()}
    best = comparison.ratio("semiparametric")
    headline = (
        f"With the learner's feed-forward the joints follow with {number(means['semiparametric'])}"
        f" mrad of error instead of {number(means['urdf'])}: {number(best)} times the URDF's."
    )
    last = comparison.runs["semiparametric"]
    share = 1.0 - float(last.share[last.time >= comparison.since].mean())
    verdicts = [
        f"The learned rigid body alone, friction included: {number(means['rigid_body'])} mrad, "
        f"{number(comparison.ratio('rigid_body'))} times the URDF's.",
        f"The controller fell back on the URDF for {number(100.0 * share)} % of the efforts.",
    ]
    summary = (
        f'<section id="summary">\n<h1>{TITLE}</h1>\n'
        f'<p class="headline">{escape(headline)}</p>\n{bullets(verdicts, "verdicts")}\n'
        + legend(LOOKS[name] for name in rms)
        + by_joint(comparison).replace("<svg ", '<svg style="max-width:44rem" ', 1)
        + "</section>"
    )
    return page(
        TITLE,
        [
            summary,
            section(
                "joints",
                "Joint by joint",
                note(
                    "Root mean square of desired minus actual position, once the learner has met "
                    "the motion, in mrad: of the motors, which feedback and learner see, and below "
                    "it of the links, beyond elastic transmissions that nobody measures. Bold: the "
                    "best of the column."
                ),
                _table(comparison),
            ),
            section(
                "time",
                "While it learns",
                note(
                    "Root mean square error in windows of 0.5 s. The learner learns while it is "
                    "used; the grey part isn't counted above. The residual begins once its inputs' "
                    "scales are known (nystrom.window)."
                ),
                legend(LOOKS[name] for name in rms),
                grid(over_time(comparison)),
            ),
            section("run", "The run", bullets(facts)),
        ],
    )


def _table(comparison: Comparison) -> str:
    motors, links = comparison.rms(), comparison.rms(links=True)
    values = np.array([[rms.mean(), *rms] for rms in motors.values()])
    beyond = np.array([[rms.mean(), *rms] for rms in links.values()])
    best = values.argmin(axis=0)
    rows = []
    for k, name in enumerate(motors):
        cells = [
            cell(number(MILLI * motor), number(MILLI * link), "best" if best[i] == k else "")
            for i, (motor, link) in enumerate(zip(values[k], beyond[k], strict=True))
        ]
        rows.append([head(LOOKS[name].name), *cells])
    return table([head("Feed-forward"), head("Mean"), *map(head, comparison.joint_names)], rows)


def control_table(comparison: Comparison) -> str:
    """The same as text for a terminal: root mean square errors of the motors, mrad."""
    rms = comparison.rms()
    names = ["mean", *comparison.joint_names]
    width = max(9, *(len(name) + 2 for name in names))
    lines = [f"{'RMS error (mrad)':18}" + "".join(f"{name:>{width}}" for name in names)]
    for name, values in rms.items():
        numbers = MILLI * np.array([values.mean(), *values])
        lines.append(f"{LOOKS[name].name:18}" + "".join(f"{v:>{width}.3g}" for v in numbers))
    return "\n".join(lines)
