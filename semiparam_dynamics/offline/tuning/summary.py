"""The findings of a tuning in words, and as a table for the terminal."""

from __future__ import annotations

from collections.abc import Callable

from semiparam_dynamics.base.parameters import to_flat
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.page import setting, shorten
from semiparam_dynamics.offline.tuning.candidates import AXIS_LIMIT, Candidate
from semiparam_dynamics.offline.tuning.recordings import PART_NAME
from semiparam_dynamics.offline.tuning.tuner import Tuning

SHORT = 60.0  # s of motion, below which it is a finding
ROWS: tuple[tuple[str, Callable[[Candidate], float]], ...] = (
    ("delayed, mean of the motions", lambda c: c.ratio("delayed")),
    ("delayed, worst motion", lambda c: max(s.ratio("delayed") for s in c.scores)),
    ("frozen, mean of the motions", lambda c: c.ratio("frozen")),
    ("frozen, worst motion", lambda c: max(s.ratio("frozen") for s in c.scores)),
    ("frozen, worst axis", lambda c: max(s.worst_axis for s in c.scores)),
)


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


def summary(tuning: Tuning) -> str:
    """The result, what to know of it, what was changed, and errors on each held-out motion."""
    lines = [headline(tuning), *(f"- {finding}" for finding in findings(tuning)), ""]
    rows = [(name, *map(setting, values)) for name, values in tuning.changes.items()]
    lines += _table("parameter", rows or [("(none changed)", "", "")])
    both = [tuning.confirmed[name] for name in ("configured", "tuned")]
    errors = [(title, *(f"{value(each):.3f}" for each in both)) for title, value in ROWS]
    for k, fold in enumerate(tuning.folds):
        for of in ("delayed", "frozen"):
            ratios = (f"{each.scores[k].ratio(of):.3f}" for each in both)
            errors.append((f"{of}, {shorten(fold.name, 21)}", *ratios))
    resumed = "" if tuning.computed else ", all from the journal"
    lines += ["", *_table("times the rigid body", errors)]
    return "\n".join([*lines, f"{tuning.candidates} candidates{resumed}"])


def _table(title: str, rows: list[tuple[str, ...]]) -> list[str]:
    return [f"{a:<30} {b:>12} {c:>12}".rstrip() for a, b, c in [(title, "before", "tuned"), *rows]]


def _range(ratios: list[float]) -> str:
    low, high = f"{ratios[0]:.2f}", f"{ratios[-1]:.2f}"
    return low if low == high else f"{low} to {high}"
