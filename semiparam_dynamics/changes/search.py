"""Where among the last blocks, and for which causes, a change is looked for."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.changes.causes import FRICTION, OFFSET, PAYLOAD, Causes
from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.changes.correction import Correction
from semiparam_dynamics.changes.estimate import Estimate
from semiparam_dynamics.changes.evidence import Windows
from semiparam_dynamics.changes.hypotheses import Finding, Hypothesis, hypotheses, weigh
from semiparam_dynamics.changes.snapshots import Snapshots

HEAVY = 3.0  # standard deviations that a new payload's mass must differ from 0 by


def is_plausible(finding: Finding) -> bool:
    """Whether a new payload weighs anything.

    A jerk that the model does not follow looks like inertia at the hand, which has no weight. No
    body does.
    """
    found = finding.hypothesis
    if found.cause != PAYLOAD or found.name:
        return True
    scale = np.sqrt(np.sum(found.root**2, axis=1))
    estimate = Estimate.prior(scale) + finding.sums.of(found.columns)
    return bool(abs(estimate.mean[0]) > HEAVY * np.sqrt(estimate.covariance[0, 0]))


def candidates(
    causes: Causes, config: ChangesConfig, snapshots: Snapshots, correction: Correction
) -> list[Hypothesis]:
    """What may have changed beyond `correction`: a new cause, or to a payload known before."""
    wanted = {PAYLOAD}
    wanted |= {FRICTION} if config.friction else set()
    wanted |= {OFFSET} if config.offset else set()
    names = (name for name in snapshots.names if name != correction.name)
    known = {name: snapshots[name] for name in names}
    return hypotheses(causes, wanted, correction.held.mean, known)


def best_explanation(
    windows: Windows, among: list[Hypothesis], correction: Correction, *, began_before: bool
) -> tuple[Finding | None, dict[str, float]]:
    """The best of all stretches, and every candidate's best score by its name.

    began_before: whether to look also at stretches that a change, such as one that seemed a contact
    at first, was there before.
    """
    found: Finding | None = None
    table: dict[str, float] = {}
    for begins in (True, False) if began_before else (True,):
        lengths, sums = windows.sums(begins=begins)
        if not len(lengths):
            continue
        sums = sums.shifted(correction.theta)
        finding, named = weigh(lengths, sums, among, correction.uncertainty)
        table = {name: max(value, table.get(name, -np.inf)) for name, value in named.items()}
        if finding is not None and (found is None or finding.score > found.score):
            found = finding
    return found, table
