"""Faults of a recording that only the dynamics show: those of efforts, and of joints' names."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.dynamics.effort_faults import EXCHANGED, Finding, Verdict, effort_findings
from semiparam_dynamics.dynamics.effort_trials import Columns, Hypothesis, Trial
from semiparam_dynamics.offline.doctor.dynamics import make_columns
from semiparam_dynamics.offline.doctor.joint_log import JointLog
from semiparam_dynamics.offline.doctor.messages import STANDING_RANGE
from semiparam_dynamics.robot.model import RobotModel

MAX_UNEXPLAINED = 0.15  # of the efforts' variance: with less, names are in doubt by a fault alone


@dataclass(frozen=True)
class Physics:
    """The findings, and the columns with efforts' signs and gravity as they were found."""

    findings: list[Finding]
    columns: Columns
    explained: Array  # (k,) share of each effort's variance, by free parameters
    delay: float = 0.0  # s by which the efforts seem to come late
    untold: tuple[str, ...] = ()  # joints of which too few efforts are as measured


def physics_findings(part: JointLog, model: RobotModel, cutoff: float, used: Mask) -> Physics:
    """Ask what the efforts of the joints `used` (k,) are, and whose names; part: a motion.

    Raises BagError where the motion is too short.
    """
    columns = make_columns(part, model, cutoff)
    if not (used & columns.enough).any():
        raise BagError("too little of the efforts is as measured")
    verdict = effort_findings(part.names, columns, used, delays=True)
    found: list[Finding] = []
    faults = any(finding.fault for finding in verdict.findings)
    if faults or verdict.trial.error(verdict.hypothesis) > MAX_UNEXPLAINED:
        found, verdict = _renamed(part, model, cutoff, used, verdict)
    found += verdict.findings
    columns, best = verdict.trial.columns, verdict.hypothesis
    if (np.ptp(columns.q, axis=0) < STANDING_RANGE).any():
        # If the joint moves after all, gravity does more than what is seen of it.
        found = [_doubted(f) if any("gravity" in name for name in f.mends) else f for f in found]
    explained = np.full(len(used), np.nan)
    explained[verdict.trial.used] = np.maximum(1.0 - verdict.trial.each(best, "free"), 0.0)
    y, grid = columns.y * np.sign(best.factor), columns.y_grid * np.sign(best.factor)
    columns = replace(columns, y=y, y_grid=grid, gravity=best.gravity)
    untold = np.flatnonzero(used & ~columns.enough).tolist()
    names = tuple(part.names[k] for k in untold)
    return Physics(found, columns, explained, verdict.delay, names)


def _doubted(finding: Finding) -> Finding:
    """As a note that mends nothing."""
    evidence = f"{finding.evidence}; or the joint that stands does not"
    return replace(finding, evidence=evidence, mends={}, fault=False)


def _renamed(
    part: JointLog, model: RobotModel, cutoff: float, used: Mask, verdict: Verdict
) -> tuple[list[Finding], Verdict]:
    """Compare with the dynamics with two joints' names exchanged, if that explains the efforts.

    Unlike exchanged efforts, positions are the other joint's as well: the motion is that of another
    arm, and every joint's effort is off.
    """
    told, found = verdict.trial, None
    least = told.error(verdict.hypothesis)
    assert part.y is not None
    q, y = part.q, part.y

    def exchanged(i: int, j: int, *, free: bool) -> tuple[Trial, Hypothesis]:
        order = np.arange(len(part.names))
        order[[i, j]] = j, i
        other = replace(part, q=q[:, order], y=y[:, order])
        trial = Trial(make_columns(other, model, cutoff, free=free), used[order])
        return trial, Hypothesis(np.ones(len(order)), np.arange(len(order)), trial.columns.gravity)

    for i, j in itertools.combinations(range(len(part.names)), 2):
        trial, as_is = exchanged(i, j, free=False)
        if (error := trial.error(as_is)) < least:
            least, found = error, (i, j)
    if found is None:
        return [], verdict
    i, j = found
    trial, as_is = exchanged(i, j, free=True)
    if not trial.shown(as_is, verdict.hypothesis, told):
        return [], verdict
    pair = part.names[i], part.names[j]
    finding = Finding(
        EXCHANGED,
        f"{pair[0]} and {pair[1]} have each other's names, in positions and efforts: with them "
        f"exchanged {100.0 * least:.1f} % of the efforts' variance is unexplained, else "
        f"{100.0 * told.error(verdict.hypothesis):.0f} %",
        "put the names in the order of the values where the messages are filled",
        pair,
        amount=least / told.error(verdict.hypothesis),
    )
    return [finding], effort_findings(part.names, trial.columns, trial.used, delays=True)
