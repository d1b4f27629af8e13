"""What tuning found, in words and as a table for the terminal."""

from __future__ import annotations

from collections.abc import Callable

from semiparam_dynamics.parameters import Value
from semiparam_dynamics.tuning.candidates import AXIS_LIMIT, Outcome
from semiparam_dynamics.tuning.result import Tuning

SHORT = 60.0  # s
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
    """What to know before the result is used."""
    tuned, own = tuning.confirmed["tuned"], tuning.confirmed["configured"]
    found = []
    if not tuning.changes:
        found.append(
            "Nothing that was tried was better than the configuration on every held-out motion."
        )
    else:
        found.append(
            f"The configuration before, with the same filter: {own.delayed:.2f} times the rigid "
            f"body's error while learning, {own.frozen:.2f} times without."
        )
    if tuned.delayed > own.delayed or tuned.frozen > own.frozen + 0.01:
        found.append(
            "Judged by the learner itself the choice is not better in everything: compare the "
            "table's columns before you take it."
        )
    chosen = tuning.screened["tuned"]
    if chosen.harm > 0.0:
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
    if tuning.splits and tuning.splits[0].name.startswith("part "):
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
    changes = tuning.changes or {"(none changed)": ("", "")}
    for name, (old, new) in changes.items():
        lines.append(f"{name:<30} {shown(old):>12} {shown(new):>12}")
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


def shown(value: Value | str) -> str:
    """A parameter's value, as short as it can be."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times"


def _range(ratios: list[float]) -> str:
    low, high = f"{ratios[0]:.2f}", f"{ratios[-1]:.2f}"
    return low if low == high else f"{low} to {high}"
