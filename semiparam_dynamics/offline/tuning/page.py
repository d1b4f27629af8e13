"""The findings of a tuning as a self-contained page of curves, and as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.parameters import to_flat
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
    section,
    setting,
    table,
)
from semiparam_dynamics.offline.tuning.candidates import AXIS_LIMIT, Curve, Outcome, Step, Tuning
from semiparam_dynamics.offline.tuning.folds import PART

DELAYED = LOOKS["semiparametric"].color
FROZEN = LOOKS["rigid_body"].color
HARMFUL = LOOKS["nonparametric"].color
EVIDENCE = "#8250df"
WIDTH, HEIGHT = 330.0, 230.0  # points
HIGHEST = 1.6  # times the rigid body: what is worse is drawn there


def tuning_page(tuning: Tuning) -> str:
    """The page: the result, what changed, every stage's curves, and how it was judged."""
    sections = [
        f'<h1>Tuning</h1>\n<p class="headline">{escape(headline(tuning))}</p>\n'
        f'<div class="warnings">{bullets(findings(tuning))}</div>',
        section("changes", "What was changed", _changes(tuning)),
        section("result", "Before and after", note(RESULT_NOTE), _result(tuning)),
        _rigid_body(tuning),
        *(_step(k, step) for k, step in enumerate(tuning.steps)),
        section("how", "How it was judged", bullets(HOW)),
    ]
    return page("Tuning", [s for s in sections if s])


RESULT_NOTE = (
    "The learner itself, sample by sample, on each held-out motion: normalised mean squared error, "
    "mean over the axes, times that of the rigid body alone under the same protocol. Both columns "
    "with the filter that was chosen."
)
CURVE_NOTE = (
    "Normalised mean squared error of the identified rigid body on held-out motion, for each "
    "value; for the memory (0: for ever) while it goes on being identified. Cut-offs are compared "
    "on the same signals."
)
STEP_NOTE = (
    "Each point is the best of the candidates with that value. Delayed: while learning goes on. "
    "Frozen: mean of the held-out motions, not learned. Where it has not been: the worst held-out "
    "region or motion. Evidence: the log marginal likelihood a sample, by which nothing is chosen "
    "unless asked for; filtered signals err alike from sample to sample, and it then prefers "
    "too small a ridge."
)
HOW = (
    "Whole recordings were held out in turn, or each third of the only one; never samples between "
    "those that were learned.",
    "Regions were held out as well: the third of the positions at either end of each of the "
    "positions' main directions. What the residual says there shows whether its kernel is too "
    "wide.",
    "A candidate that makes the rigid body's error larger, on the mean of any such fold or by more "
    f"than {AXIS_LIMIT - 1.0:.0%} on any axis, is not chosen, however good it is elsewhere.",
    "The configuration stays where no candidate is better on every held-out motion.",
    "Candidates were screened with the rigid body's parameters of the end of each fold; the "
    "configuration before and the choice were then run through the learner itself.",
)


def _rigid_body(tuning: Tuning) -> str:
    if not tuning.curves:
        return ""
    panels = grid(map(_curve, tuning.curves))
    return section("rigid-body", "The rigid body's own", note(CURVE_NOTE), panels)


def _changes(tuning: Tuning) -> str:
    rows = [
        [cell(name, style="unit"), cell(setting(old)), cell(setting(new), style="best")]
        for name, (old, new) in tuning.changes.items()
    ]
    if not rows:
        return note("Nothing: the configuration stays as it is.")
    return table([head("Parameter", style="unit"), head("Before"), head("Tuned")], rows)


def _result(tuning: Tuning) -> str:
    names = ("configured", "tuned")
    rows = []
    for title, value in ROWS:
        pair = [value(tuning.confirmed[name]) for name in names]
        best = int(np.argmin(np.round(pair, 3))) if round(pair[0], 3) != round(pair[1], 3) else -1
        cells = [cell(f"{v:.3f}", style="best" if i == best else "") for i, v in enumerate(pair)]
        rows.append([cell(title, style="unit"), *cells])
    for split in tuning.splits:
        scores = [s for n in names for s in tuning.confirmed[n].scores if s.fold == split.name]
        rows.append(
            [
                cell(split.name, f"held out, {split.held_out.seconds:.0f} s", style="unit"),
                *(cell(f"{s.ratio:.3f}", f"frozen {s.worst_mean:.3f}") for s in scores),
            ]
        )
    return table([head("Times the rigid body", style="unit"), head("Before"), head("Tuned")], rows)


def _curve(curve: Curve) -> str:
    values, errors = (np.array(v) for v in zip(*sorted(curve.errors.items()), strict=True))

    def plot(axes: Axes) -> None:
        x = np.where(values > 0.0, values, 2.0 * values.max())  # 0 s of memory: for ever
        line = "-" if values.min() > 0.0 else ""  # none leads to the memory that is for ever
        axes.semilogx(x, errors, color=FROZEN, marker="o", markersize=4, linestyle=line)
        chosen = float(x[values.tolist().index(curve.chosen)])
        axes.axvline(chosen, color=DELAYED, linewidth=1.2, linestyle=(0, (4, 2)))
        axes.set_ylim(0.0, 1.1 * float(np.nanmax(errors)))
        axes.set_title(curve.name)
        axes.set_ylabel("nmse, held out")
        _ticks(axes, x, values.tolist())

    return draw(f"curve-{curve.name}", f"Held-out error over {curve.name}", plot, WIDTH, HEIGHT)


def _step(number: int, step: Step) -> str:
    names = [
        name
        for name in step.outcomes[0].settings
        if len({o.settings[name] for o in step.outcomes}) > 1
    ]
    panels = [_panel(number, step, name) for name in names]
    taken = step.chosen.settings
    settings = ", ".join(f"{name} = {setting(taken[name])}" for name in names if name in taken)
    o = step.chosen
    words = (
        f"Taken: {settings}. Delayed {o.delayed:.3f}, frozen {o.frozen:.3f}, where it has not been "
        f"{o.worst_mean:.3f} (worst axis {o.worst_axis:.3f}); {len(step.outcomes)} candidates, "
        f"{sum(outcome.harm == 0.0 for outcome in step.outcomes)} of them harmless."
    )
    key = _key() if number == 0 else ""
    title = step.title[0].upper() + step.title[1:]
    explained = note(STEP_NOTE) if number == 0 else ""
    return section(f"step-{number}", title, explained, note(words), key, grid(panels))


def _key() -> str:
    marks = {"Delayed": DELAYED, "Frozen": FROZEN, "Where it has not been": HARMFUL}
    marks |= {"Evidence (right scale)": EVIDENCE}
    return legend(ModelLook(name, color, 4.0 / 3.0) for name, color in marks.items())


def _panel(number: int, step: Step, name: str) -> str:
    values = sorted({o.settings[name] for o in step.outcomes})
    best = [_best(step, name, value) for value in values]

    def plot(axes: Axes) -> None:
        x = np.array([max(v, 0.5 * min(u for u in values if u > 0.0)) for v in values])
        for color, of in (
            (DELAYED, [o.delayed for o in best]),
            (FROZEN, [o.frozen for o in best]),
            (HARMFUL, [o.worst_mean for o in best]),
        ):
            axes.semilogx(x, np.minimum(of, HIGHEST), color=color, marker="o", markersize=3.5)
        if name in step.chosen.settings:
            chosen = x[values.index(step.chosen.settings[name])]
            axes.axvline(chosen, color=DELAYED, linewidth=1.2, linestyle=(0, (4, 2)))
        axes.axhline(1.0, color="#8c959f", linewidth=0.9)
        axes.set_title(name)
        axes.set_ylabel("times the rigid body")
        other = axes.twinx()
        other.plot(x, [o.evidence for o in best], color=EVIDENCE, linewidth=1.0, linestyle=":")
        other.grid(False)
        other.tick_params(labelsize=8)
        _ticks(axes, x, values)

    return draw(f"step-{number}-{name}", f"Errors over {name}", plot, WIDTH, HEIGHT)


def _best(step: Step, name: str, value: float) -> Outcome:
    """Of the candidates with this value the chosen settings' neighbour: the best harmless one."""
    own = [o for o in step.outcomes if o.settings[name] == value]
    return min(own, key=lambda o: (round(o.harm, 3), o.delayed))


def _ticks(axes: Axes, x: Array, labels: Sequence[float]) -> None:
    axes.set_xticks(x, [f"{v:g}" for v in labels], fontsize=8)
    axes.minorticks_off()


# -------------------------------------------------------------------------------------------------
# In words, and as a table for the terminal.

SHORT = 60.0  # s
FURTHER = {"smallest": "smaller", "largest": "larger"}
WORST_PROMISE = 1.0  # a ratio to the rigid body that isn't below this is no gain


def headline(tuning: Tuning) -> str:
    """The result in a sentence, promising no more than the worst held-out motion showed."""
    tuned = tuning.confirmed["tuned"]
    ratios = sorted(s.ratio for s in tuned.motions)
    if ratios[-1] >= WORST_PROMISE:
        return (
            "On at least one held-out motion the tuned learner was no better than the rigid body "
            f"alone ({_times(ratios[-1])} its error while learning goes on): do not count on the "
            "residual for this robot before there are more recordings."
        )
    return (
        f"On motion that was held out, the tuned learner made {_range(ratios)} times the rigid "
        "body's error while learning went on, and "
        f"{_range(sorted(s.worst_mean for s in tuned.motions))} times with learning switched off."
    )


def findings(tuning: Tuning) -> list[str]:
    """Facts to know before the result is used."""
    tuned, own = tuning.confirmed["tuned"], tuning.confirmed["configured"]
    found = [*tuning.doubts]
    if not tuning.changes:
        found.append(
            "Nothing that was tried was better than the configuration on every held-out motion."
        )
    else:
        found.append(
            f"The configuration before, with the same filter: {own.delayed:.2f} times the rigid "
            f"body's error while learning, {own.frozen:.2f} times without."
        )
    new = to_flat(tuning.config)
    for name, end in tuning.extremes.items():
        found.append(
            f"{name} {setting(new[name])} is the {end} value that was tried: a "
            f"{FURTHER[end]} one may be better still. Tune again from the result (--params) with "
            f"--set {name}=VALUE to have it tried."
        )
    if tuning.refused:
        refused = ", ".join(f"{name} {setting(new)}" for name, (_, new) in tuning.refused.items())
        found.append(
            f"{refused} looked better in blocks, but the learner itself, sample by sample, was no "
            "better with it on every held-out motion: the residual stays as it was."
        )
    if tuned.delayed > own.delayed or tuned.frozen > own.frozen + 0.01:
        found.append(
            "Judged by the learner itself the choice is not better in everything: compare the "
            "table's columns before you take it."
        )
    chosen = tuning.screened["tuned"]
    if tuning.refused and tuned.harm > 0.0:
        found.append(
            "With learning switched off that residual makes up to "
            f"{tuned.worst_axis:.2f} times the rigid body's error on an axis (the limit is "
            f"{AXIS_LIMIT:g}); what was harmless erred more while learning. Record more varied "
            "motion if learning is to be switched off."
        )
    elif tuning.refused:
        pass  # what blocks say of harm is not what the learner does
    elif chosen.harm > 0.0:
        found.append(
            "No candidate was harmless everywhere: where the robot had not been, the one chosen "
            f"made {chosen.worst_mean:.2f} times the rigid body's error on the mean and "
            f"{chosen.worst_axis:.2f} times on the worst axis. More varied motion would help."
        )
    else:
        found.append(
            "Where the robot had not been (a third of the positions held out, at either end of "
            f"each direction) the residual did no harm: {chosen.worst_mean:.3f} times the rigid "
            f"body's error at most, {chosen.worst_axis:.3f} on the worst axis (the limit is "
            f"{AXIS_LIMIT:g})."
        )
    if len(tuning.splits) < 3 and len({s.name for s in tuning.splits}) < 3:
        found.append(
            "Only two recordings were there to hold out in turn: the figures are two draws, not "
            "a distribution."
        )
    seconds = sum(split.held_out.seconds for split in tuning.splits)
    if seconds < SHORT:
        found.append(
            f"The recordings show {seconds:.0f} s of motion in all. That is little to choose by: "
            f"record {SHORT:.0f} s or more, of several motions."
        )
    if tuning.splits and tuning.splits[0].name == PART.format(1):
        found.append(
            "There was one recording: its thirds were held out in turn. If the motion repeats, "
            "they are not new motion, and the figures flatter."
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
    lines.append(
        f"{tuning.candidates} candidates, {tuning.seconds:.0f} s"
        + ("" if tuning.computed else ", all from the journal")
    )
    return "\n".join(lines)


ROWS: tuple[tuple[str, Callable[[Outcome], float]], ...] = (
    ("delayed, mean of the motions", lambda o: o.delayed),
    ("delayed, worst motion", lambda o: max(s.ratio for s in o.motions)),
    ("frozen, mean of the motions", lambda o: o.frozen),
    ("frozen, worst motion", lambda o: o.worst_mean),
    ("frozen, worst axis", lambda o: o.worst_axis),
)


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times"


def _range(ratios: list[float]) -> str:
    low, high = f"{ratios[0]:.2f}", f"{ratios[-1]:.2f}"
    return low if low == high else f"{low} to {high}"
