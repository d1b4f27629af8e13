"""Results of a comparison of feed-forwards: a page, JSON, and a table for a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from semiparam_dynamics import __version__
from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.control.comparison import ClosedLoop, Comparison
from semiparam_dynamics.offline.evaluation.prediction_plots import plot_line
from semiparam_dynamics.offline.page import (
    FAINT,
    LOOKS,
    bullets,
    cell,
    draw,
    escape,
    grid,
    head,
    legend,
    note,
    number,
    page,
    section,
    shorten,
    table,
)

TITLE = "Tracking error by feed-forward"
MILLI = 1e3
WINDOW_S = 0.5  # of the errors over time


def control_report(comparison: Comparison, facts: Sequence[str]) -> str:
    """The page, as HTML text; `facts` are sentences on the run."""
    rms = comparison.rms()
    means = {name: MILLI * float(values.mean()) for name, values in rms.items()}
    last = comparison.runs["semiparametric"]
    share = 1.0 - float(last.share[last.time >= comparison.since].mean())
    verdicts = [
        f"The learned rigid body alone, friction included: {number(means['rigid_body'])} mrad, "
        f"{number(comparison.ratio('rigid_body'))} times the URDF's.",
        f"The controller fell back on the URDF for {number(100.0 * share)} % of the efforts.",
        _told_clipped(comparison),
    ]
    summary = (
        f'<section id="summary">\n<h1>{TITLE}</h1>\n'
        f'<p class="headline">{escape(headline(comparison))}</p>\n{bullets(verdicts, "verdicts")}\n'
        + legend(LOOKS[name] for name in rms)
        + _plot_by_joint(comparison).replace("<svg ", '<svg style="max-width:44rem" ', 1)
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
                    "Root mean square of desired minus actual position in mrad, after the learning "
                    "phase: of the motors, which are measured, and below it of the links, beyond "
                    "elastic transmissions that aren't measured. Bold: the best of the column."
                ),
                _table(comparison),
            ),
            section(
                "time",
                "While it learns",
                note(
                    f"Root mean square error in windows of {WINDOW_S:g} s. The learner learns "
                    "while it is used; the grey part isn't counted above. The residual begins once "
                    "its inputs' scales are known (nystrom.window)."
                ),
                legend(LOOKS[name] for name in rms),
                grid(_plots_over_time(comparison)),
            ),
            section("run", "The run", bullets(facts)),
        ],
    )


def headline(comparison: Comparison) -> str:
    """What a controller gains by the learner, or that the arm did not follow, in words."""
    if lost := comparison.lost():
        told = "; ".join(
            f"with the feed-forward '{LOOKS[name].name}' {joint} was off by {number(error)} rad "
            f"({number(math.degrees(error))} degrees)"
            for name, (joint, error) in lost.items()
        )
        return (
            f"The arm did not follow the motion, so that no feed-forward is judged by these "
            f"figures: {told}. A controller gives the motion up at "
            f"{number(comparison.following_error)} (controller.bounds.following_error)."
        )
    rms = {name: MILLI * float(values.mean()) for name, values in comparison.rms().items()}
    return (
        "With the learner's feed-forward the tracking error is "
        f"{number(rms['semiparametric'])} mrad instead of {number(rms['urdf'])} mrad: "
        f"{number(comparison.ratio('semiparametric'))} times the URDF's."
    )


def _clipped(comparison: Comparison) -> dict[str, float]:
    """The share of the commands that were clipped, over all the motion, by feed-forward."""
    return {name: float(done.clipped.mean()) for name, done in comparison.runs.items()}


def _told_clipped(comparison: Comparison) -> str:
    shares = _clipped(comparison)
    if not any(shares.values()):
        return "No command was clipped (controller.bounds.effort_share)."
    told = ", ".join(f"{LOOKS[k].name} {number(100.0 * v)} %" for k, v in shares.items())
    return f"Commands clipped at the effort's bound (controller.bounds.effort_share): {told}."


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
    """The headline, and a table of root mean square errors of the motors, mrad, as text."""
    rms = comparison.rms()
    names = ["mean", *comparison.joint_names]
    width = max(9, *(len(name) + 2 for name in names))
    lines = [f"{'RMS error (mrad)':18}" + "".join(f"{name:>{width}}" for name in names)]
    for name, values in rms.items():
        numbers = MILLI * np.array([values.mean(), *values])
        lines.append(f"{LOOKS[name].name:18}" + "".join(f"{v:>{width}.3g}" for v in numbers))
    return "\n".join([headline(comparison), _told_clipped(comparison), *lines])


def control_results(comparison: Comparison, seed: int) -> str:
    """JSON text: by feed-forward, errors in rad, shares of commands and learner, late answers."""
    motors, links = comparison.rms(), comparison.rms(links=True)
    runs, clipped = {}, _clipped(comparison)
    for name, done in comparison.runs.items():
        counted = done.time >= comparison.since
        runs[name] = {
            "rms": motors[name].tolist(),
            "rms_links": links[name].tolist(),
            "largest": np.abs(done.error).max(axis=0).tolist(),
            "clipped": clipped[name],
            "learner_share": float(done.share[counted].mean()),
            "asked": done.asked,
            "late": 0 if name == "urdf" else done.late,
        }
    result = {
        "joints": list(comparison.joint_names),
        "since_s": comparison.since,
        "following_error": comparison.following_error,
        "lost": sorted(comparison.lost()),
        "feedforward": runs,
        "seed": seed,
        "version": __version__,
    }
    return json.dumps(result, indent=2) + "\n"


def _windowed_rms(done: ClosedLoop) -> tuple[Array, Array]:
    """Time (m,) in s and root mean square error (m, n_joints) in rad, window by window."""
    period = float(done.time[1] - done.time[0]) if len(done.time) > 1 else WINDOW_S
    size = max(1, round(WINDOW_S / period))
    m = len(done.time) // size
    squares = done.error[: m * size].reshape(m, size, -1) ** 2
    time = done.time[: m * size].reshape(m, size).mean(axis=1)
    return time, np.sqrt(squares.mean(axis=1))


def _plots_over_time(comparison: Comparison) -> list[str]:
    """An <svg> for each joint: its error in windows, from the beginning on."""
    curves = {name: _windowed_rms(done) for name, done in comparison.runs.items()}
    return [_plot_joint(comparison, curves, j) for j in range(len(comparison.joint_names))]


def _plot_joint(comparison: Comparison, curves: Mapping[str, tuple[Array, Array]], j: int) -> str:
    joint = comparison.joint_names[j]

    def plot(axes: Axes) -> None:
        for name, (time, rms) in curves.items():
            plot_line(axes, time, MILLI * rms[:, j], LOOKS[name])
        axes.axvspan(0.0, comparison.since, color="#f3f5f7", zorder=0.5)
        axes.set_title(shorten(joint, 30))
        axes.set_xlabel("Time of motion (s)")
        axes.set_ylabel("RMS error (mrad)")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlim(0.0, max(float(time[-1]) for time, _ in curves.values()))

    return draw(f"tracking-{j}", f"Tracking error of {joint} over time", plot, 330, 215)


def _plot_by_joint(comparison: Comparison) -> str:
    """An <svg>: the errors of all joints side by side."""
    rms, names = comparison.rms(), comparison.joint_names

    def plot(axes: Axes) -> None:
        width = 0.8 / len(rms)
        for k, (name, values) in enumerate(rms.items()):
            place = np.arange(len(names)) + (k - 0.5 * (len(rms) - 1)) * width
            axes.bar(place, MILLI * values, 0.92 * width, color=LOOKS[name].color)
        axes.set_xticks(range(len(names)), [shorten(name, 14) for name in names])
        axes.tick_params(axis="x", labelrotation=30 if len(names) > 4 else 0, labelcolor=FAINT)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("RMS error (mrad)")

    return draw("tracking-joints", "Tracking error of each joint by feed-forward", plot, 680, 240)
