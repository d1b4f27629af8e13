"""Columns of a recorded motion, and the faults that only the dynamics tell.

Filters are of zero phase, on an even grid of time. As in the learner, positions and efforts pass a
wide low-pass, the columns are computed, and both sides pass the same narrow one.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import binary_dilation, binary_opening
from scipy.signal import butter, sosfiltfilt

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.dynamics.effort_faults import (
    EXCHANGED,
    LAGS,
    Finding,
    Verdict,
    effort_findings,
)
from semiparam_dynamics.dynamics.effort_trials import Columns, Hypothesis, Trial, inertial_parts
from semiparam_dynamics.offline.doctor.messages import REST_VELOCITY, STANDING_RANGE, JointLog
from semiparam_dynamics.robot.model import RobotModel

MAX_UNEXPLAINED = 0.15  # of the efforts' variance: with less, names are in doubt by a fault alone
MAX_RATE = 100.0  # Hz, of the grid at most
WIDE_RATIO = 4.0  # times the cut-off
MIN_ROWS = 100  # rows of the grid, half of them between its ends, that least squares needs
MAX_ROWS = 2500  # rows of the grid that least squares gets
MORE_MOTION = "record a minute of varied motion"


def make_columns(log: JointLog, model: RobotModel, cutoff: float, *, free: bool = True) -> Columns:
    """The columns of a log without faults in single messages; efforts that are no evidence are NaN.

    `model` is of the log's joints in their order. Without `free` bodies the URDF's torques are the
    only inertial column, which takes a fraction of the time. Raises BagError for too short a log.
    """
    assert log.y is not None
    if len(log) < 3:
        raise BagError(f"{len(log)} joint states in order are too few to look at: {MORE_MOTION}")
    times = log.times
    rate = min(1.0 / float(np.median(np.diff(times))), MAX_RATE)
    n = int((times[-1] - times[0]) * rate) + 1
    edge = int(0.5 * rate)  # what the filters know nothing before or after
    if n < MIN_ROWS or n - 2 * edge < MIN_ROWS // 2:
        seconds = times[-1] - times[0]
        raise BagError(f"{seconds:.2f} s of joint states are too few to look at: {MORE_MOTION}")
    own = 1.0 / float(np.median(np.diff(times)))
    wide, narrow = (min(f, 0.4 * rate) for f in (WIDE_RATIO * cutoff, cutoff))
    grid = times[0] + np.arange(n) / rate
    seen = _evident(times, log.y, grid, cutoff)
    q, y = (_on_grid(times, a, own, grid, wide) for a in (log.q, log.y))
    dq = np.gradient(q, 1.0 / rate, axis=0)
    ddq = np.gradient(dq, 1.0 / rate, axis=0)
    kept = np.arange(edge, n - edge)
    lively = kept[~_resting(dq, rate)[kept]]
    kept = lively if lively.size > n // 10 else kept
    kept = kept[:: max(1, kept.size // MAX_ROWS)]

    def smooth(values: Array) -> Array:
        flat = _low_pass(values.reshape(n, -1), narrow, rate)
        return flat.reshape(values.shape)

    v = model.config.coulomb_velocity
    effects = np.stack((dq, np.tanh(dq / v), np.ones_like(dq), ddq), axis=-1)
    parts, prior = inertial_parts(model, q, dq, ddq), model.inertial_prior
    if not free:
        parts, prior = (parts @ prior)[..., None], np.ones(1)
    y_grid = smooth(y)
    return Columns(
        grid[kept],
        smooth(q)[kept],
        smooth(dq)[kept],
        np.array([smooth(part)[kept] for part in parts]),
        smooth(effects)[kept],
        y_grid[kept],
        grid,
        y_grid,
        prior,
        model.gravity,
        seen[kept],
    )


def _evident(times: Array, y: Array, grid: Array, cutoff: float) -> Mask:
    """(m, k) where on the grid no NaN of y (n, k) is mixed with the efforts, delayed or not."""
    reach = 0.5 / cutoff + float(np.abs(LAGS).max())
    seen = np.ones((len(grid), y.shape[1]), dtype=bool)
    for column, lost in zip(seen.T, np.isnan(y).T, strict=True):
        if lost.any():
            at = times[lost]
            before = np.searchsorted(at, grid - reach), np.searchsorted(at, grid + reach)
            column[:] = before[0] == before[1]
    return seen


def _resting(dq: Array, rate: float) -> Mask:
    """(n,) whether the arm rests for more than a second, or did or will within half a second."""
    still = (np.abs(dq) < REST_VELOCITY).all(axis=1)
    second = np.ones(max(1, round(rate)), dtype=bool)
    return np.asarray(binary_dilation(binary_opening(still, second), second))


def _on_grid(times: Array, values: Array, rate: float, grid: Array, cutoff: float) -> Array:
    """Values on the grid, after a low-pass at their own rate."""
    even = times[0] + np.arange(int((times[-1] - times[0]) * rate) + 1) / rate
    good = np.isfinite(values)
    at_rate = np.column_stack(
        [np.interp(even, times[g], column[g]) for g, column in zip(good.T, values.T, strict=True)]
    )
    smooth = _low_pass(at_rate, cutoff, rate)
    return np.column_stack([np.interp(grid, even, column) for column in smooth.T])


def _low_pass(values: Array, cutoff: float, rate: float) -> Array:
    return np.asarray(sosfiltfilt(butter(2, cutoff, fs=rate, output="sos"), values, axis=0))


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
    """Compare with the dynamics with two joints' names exchanged, in positions and efforts."""
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
