"""The findings of a tuning as a self-contained page, and as text for the terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from semiparam_dynamics.base.config_files import dump_yaml
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.base.parameters import to_flat
from semiparam_dynamics.learner.config import InverseDynamicsConfig, InverseDynamicsNodeConfig
from semiparam_dynamics.offline.page import (
    LOOKS,
    ModelLook,
    bullets,
    cell,
    draw,
    escape,
    grid,
    head,
    legend,
    note,
    page,
    plain_numbers,
    section,
    setting,
    table,
    warning_box,
)
from semiparam_dynamics.offline.tuning.candidates import AXIS_LIMIT, SIGNIFICANCE, Candidate
from semiparam_dynamics.offline.tuning.recordings import PART_NAME
from semiparam_dynamics.offline.tuning.tuner import Search, Tuning, number_of

RIVAL = LOOKS["semiparametric"].color
OUT = LOOKS["persistence"].color
WIDTH, HEIGHT = 330.0, 230.0  # points
MAX_DRAWN = 1.6  # times the configured error: what is worse is drawn there
SHORT = 60.0  # s of motion, below which the page warns

RESULT_NOTE = (
    "On each held-out motion, with all samples: normalised mean squared error, mean over the axes, "
    "times that of the rigid body alone under the same protocol. Both columns are judged on the "
    "same signals, filtered as configured before."
)
SEARCH_NOTE = (
    "Each point is a candidate: its error on held-out motion, times that of the configuration with "
    "which the stage began. Candidates that were no better on the first motions, or did harm, were "
    "given up there. The line is the value taken, or the one that stayed."
)
HOW = (
    "Whole recordings were held out in turn, or each third of the only one with all that repeats "
    "it; never samples between those that were learned.",
    "A value is taken only if it makes the error smaller on every held-out motion, by more than "
    f"chance: a paired test over pieces of it, one-sided at {100 * SIGNIFICANCE:g} %.",
    "With learning switched off it may not make the rigid body's error larger, on the mean of any "
    f"held-out motion or by more than {100.0 * (AXIS_LIMIT - 1.0):.0f} % on any axis, where the "
    "configuration did not.",
    "The searches left out samples that repeat their neighbours. The configuration and the choice "
    "were then compared once more, with all samples, by the same test.",
)


def write_tuning(tuning: Tuning, path: Path, urdf: str | Path = "") -> None:
    """Write the node's YAML to `path`, and the page of the searches next to it.

    Raises StorageError where that fails.
    """
    config = InverseDynamicsNodeConfig(
        urdf=str(Path(urdf).expanduser().absolute()) if urdf else "", learner=tuning.config
    )
    write_files({path: dump_yaml(config), path.with_suffix(".html"): tuning_page(tuning)})


def tuning_page(tuning: Tuning) -> str:
    """The page: the result, what changed, every stage's candidates, and how they were judged."""
    drawn = [search for search in tuning.searches if _names(search)]
    sections = [
        f'<h1>Tuning</h1>\n<p class="headline">{escape(headline(tuning))}</p>\n'
        + warning_box("Be careful", findings(tuning)),
        section("changes", "What was changed", _changes(tuning)),
        section("result", "Before and after", note(RESULT_NOTE), _result(tuning)),
        *(_search(k, search, tuning) for k, search in enumerate(drawn)),
        section("how", "How it was judged", bullets(HOW), folded=True),
    ]
    return page("Tuning", sections)


def _changes(tuning: Tuning) -> str:
    rows = [
        [cell(name, style="unit"), cell(setting(old)), cell(setting(new), style="best")]
        for name, (old, new) in tuning.changes.items()
    ]
    if not rows:
        return note("Nothing: the configuration stays as it is.")
    return table([head("Parameter", style="unit"), head("Before"), head("Tuned")], rows)


def _result(tuning: Tuning) -> str:
    both = [tuning.confirmed[name] for name in ("configured", "tuned")]
    rows = []
    for title, value in ROWS:
        pair = [round(value(each), 3) for each in both]
        best = int(np.argmin(pair)) if pair[0] != pair[1] else -1
        cells = [cell(f"{v:.3f}", style="best" if i == best else "") for i, v in enumerate(pair)]
        rows.append([cell(title, style="unit"), *cells])
    for k, fold in enumerate(tuning.folds):
        cells = [
            cell(
                f"{each.scores[k].ratio('delayed'):.3f}",
                f"frozen {each.scores[k].ratio('frozen'):.3f}",
            )
            for each in both
        ]
        rows.append([cell(fold.name, f"held out, {fold.seconds:.0f} s", style="unit"), *cells])
    return table([head("Times the rigid body", style="unit"), head("Before"), head("Tuned")], rows)


def _names(search: Search) -> list[str]:
    """The parameters of which several values were tried."""
    names = search.tried[0].settings if search.tried else ()
    return [
        name for name in names if len({candidate.settings[name] for candidate in search.tried}) > 1
    ]


def _search(number: int, search: Search, tuning: Tuning) -> str:
    taken = search.chosen is not search.own
    settings = ", ".join(f"{name} = {setting(v)}" for name, v in search.chosen.settings.items())
    gain = search.chosen.relative(search.own, tuning.criterion)
    outcome = (
        f"Taken: {settings}, {gain:.3f} times the error."
        if taken
        else "None was better by more than chance: the configuration stays."
    )
    panels = [_panel(number, search, name, tuning) for name in _names(search)]
    key = [ModelLook("May be chosen", RIVAL, 4.0 / 3.0), ModelLook("Given up", OUT, 4.0 / 3.0)]
    first = (note(SEARCH_NOTE), legend(key)) if number == 0 else ()
    title = search.title[0].upper() + search.title[1:]
    words = note(f"{len(search.tried)} candidates. {outcome}")
    return section(f"search-{number}", title, *first, words, grid(panels), folded=True)


def _panel(number: int, search: Search, name: str, tuning: Tuning) -> str:
    values = np.array([number_of(c.settings[name]) for c in search.tried])
    own, criterion = search.own, tuning.criterion
    errors = np.array([c.relative(own, criterion) for c in search.tried])
    whole = np.array(
        [c.rivals(own, criterion) and len(c.scores) == len(own.scores) for c in search.tried]
    )

    def plot(axes: Axes) -> None:
        for rows, color in ((~whole, OUT), (whole, RIVAL)):
            x, y = values[rows], np.minimum(errors[rows], MAX_DRAWN)
            axes.plot(x, y, color=color, marker="o", markersize=4, linestyle="")
        if values.min() > 0.0:
            axes.set_xscale("log")
            plain_numbers(axes.xaxis, values.min(), values.max())
        start = to_flat(tuning.before)[name]
        axes.axvline(
            number_of(search.chosen.settings.get(name, start)),
            color=RIVAL,
            linewidth=1.2,
            linestyle=(0, (4, 2)),
        )
        axes.axhline(1.0, color=OUT, linewidth=0.9)
        axes.set_title(name)
        axes.set_ylabel("times the error before")
        axes.tick_params(labelsize=8)

    return draw(f"search-{number}-{name}", f"Errors over {name}", plot, WIDTH, HEIGHT)


# -------------------------------------------------------------------------------------------------
# In words, and as a table for the terminal.


def headline(tuning: Tuning) -> str:
    """The result in a sentence, promising no more than the worst held-out motion showed."""
    tuned = tuning.confirmed["tuned"]
    ratios = sorted(score.ratio("delayed") for score in tuned.scores)
    frozen = sorted(score.ratio("frozen") for score in tuned.scores)
    errors = (
        f"{_range(ratios)} times the rigid body's error while learning continues, and "
        f"{_range(frozen)} times with learning switched off"
    )
    if not tuning.changes:
        defaults = to_flat(tuning.before.estimator) == to_flat(InverseDynamicsConfig().estimator)
        what = "defaults" if defaults else "configuration"
        return (
            f"Keep the {what}: nothing that was tried is better on every held-out motion by more "
            f"than chance. It makes {errors}."
        )
    return f"On motion that was held out, the tuned learner makes {errors}."


def findings(tuning: Tuning) -> list[str]:
    """Facts to know before the result is used."""
    tuned, own = tuning.confirmed["tuned"], tuning.confirmed["configured"]
    found = [*tuning.doubts]
    if tuning.changes:
        found.append(
            f"The configuration before: {own.ratio('delayed'):.2f} times the rigid body's error "
            f"while learning, {own.ratio('frozen'):.2f} times without."
        )
    if max(score.ratio("delayed") for score in tuned.scores) >= 1.0:
        found.append(
            "On at least one held-out motion the learner is no better than the rigid body alone: "
            "do not count on the residual for this robot before there are more recordings."
        )
    for name in tuning.at_bounds:
        found.append(
            f"{name} {setting(tuning.changes[name][1])} is near the end of the range that was "
            "searched: tune again from the result (--params), which searches around it."
        )
    if tuning.refused:
        refused = ", ".join(f"{name} {setting(new)}" for name, (_, new) in tuning.refused.items())
        found.append(
            f"{refused} looked better in the searches, but was not with all samples by the "
            "delayed protocol."
        )
    if round(tuned.harm, 2) > 0.0:
        worst = max(score.worst_axis for score in tuned.scores)
        found.append(
            f"With learning switched off the residual makes up to {worst:.2f} times the rigid "
            f"body's error on an axis (the limit is {AXIS_LIMIT:g}). Record more varied motion if "
            "learning is to be switched off."
        )
    if len(tuning.folds) < 3:
        found.append(
            "Only two recordings were there to hold out in turn: the figures are two draws, not "
            "a distribution."
        )
    seconds = sum(fold.seconds for fold in tuning.folds)
    if seconds < SHORT:
        found.append(
            f"The recordings show {seconds:.0f} s of motion in all. That is little to choose by: "
            f"record {SHORT:.0f} s or more, of several motions."
        )
    if tuning.folds[0].name == PART_NAME.format(1):
        found.append(
            "There was one recording: its thirds were held out in turn, each with what repeats it. "
            "They are less new than another recording."
        )
    found.append(
        "The figures were used to choose: to know what the choice is worth, evaluate it on a "
        "recording that had no part in this."
    )
    return found


def text(tuning: Tuning) -> str:
    """The table for the terminal."""
    lines = [headline(tuning), *(f"- {finding}" for finding in findings(tuning)), ""]
    lines.append(f"{'parameter':<30} {'before':>12} {'tuned':>12}")
    for name, (old, new) in tuning.changes.items():
        lines.append(f"{name:<30} {setting(old):>12} {setting(new):>12}")
    if not tuning.changes:
        lines.append("(none changed)")
    lines.append("")
    lines.append(f"{'times the rigid body':<30} {'before':>12} {'tuned':>12}")
    for title, value in ROWS:
        pair = [value(tuning.confirmed[name]) for name in ("configured", "tuned")]
        lines.append(f"{title:<30} {pair[0]:>12.3f} {pair[1]:>12.3f}")
    resumed = "" if tuning.computed else ", all from the journal"
    lines.append(f"{tuning.candidates} candidates{resumed}")
    return "\n".join(lines)


ROWS: tuple[tuple[str, Callable[[Candidate], float]], ...] = (
    ("delayed, mean of the motions", lambda c: c.ratio("delayed")),
    ("delayed, worst motion", lambda c: max(s.ratio("delayed") for s in c.scores)),
    ("frozen, mean of the motions", lambda c: c.ratio("frozen")),
    ("frozen, worst motion", lambda c: max(s.ratio("frozen") for s in c.scores)),
    ("frozen, worst axis", lambda c: max(s.worst_axis for s in c.scores)),
)


def _range(ratios: list[float]) -> str:
    low, high = f"{ratios[0]:.2f}", f"{ratios[-1]:.2f}"
    return low if low == high else f"{low} to {high}"
