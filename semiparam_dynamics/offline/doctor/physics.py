"""Faults that only the dynamics show: signs, scales, exchanged efforts, gravity, tilt, delay.

Each is a hypothesis that has to explain the efforts much better than what is configured does. Two
fits judge: one of the URDF's own torques with a factor and friction that can't be negative, joint
by joint, and one with free inertial parameters for all joints. The thresholds keep a distance from
what the logs of five real arms show without any fault (benchmarks/results/doctor.md): a URDF with
wrong masses, a payload or a missing friction effect is no fault here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.dynamics.effort_faults import (
    MAX_GRAVITY_RATIO,
    MIN_WEIGHT_SHARE,
    Finding,
    JointEfforts,
    fault_count,
    scale_findings,
    turned_or_exchanged,
)
from semiparam_dynamics.offline.doctor.dynamics import Columns, FreeFit, anchored
from semiparam_dynamics.offline.doctor.messages import LITTLE_MOTION, STANDING_RANGE

MAX_TILTED_RATIO = 0.92  # of the error, with another gravity direction
MIN_TILT = 2.5  # degrees
LIKELY_RATIO = 1.1  # times the least error: as likely
MAX_WEIGHTLESS_RATIO = 1.02  # times the error: gravity explains nothing
SMALL_DELAY, MIN_DELAY = 0.005, 0.017  # s of delay: worth a note, and a fault
MAX_DELAYED_RATIO = 0.97  # of the squared errors with a shift and as is: missing columns do as much
MIN_DEVIATIONS = 2.0  # standard deviations, by blocks of a second, of what a delay explains
DIRECTIONS = 200  # of gravity that are tried: 15 degrees apart
LAGS = 0.001 * np.arange(-40, 61, 5)  # s


@dataclass(frozen=True)
class Physics:
    """The findings, and the columns with efforts' signs and gravity as they were found."""

    findings: list[Finding]
    columns: Columns
    explained: Array  # (k,) share of each effort's variance, by free parameters
    delay: float = 0.0  # s by which the efforts seem to come late


@dataclass(frozen=True)
class Hypothesis:
    """Efforts' signs (k,), exchanged joints and gravity (3,), the findings that say so, the error.

    alone: (k,) the joints with efforts that aren't exchanged.
    error: of the anchored fits, which know that friction can't push.
    """

    findings: list[Finding]
    sign: Array
    gravity: Array
    alone: Mask
    error: float


def physics_findings(names: tuple[str, ...], columns: Columns, used: Mask) -> Physics:
    """Compare the hypotheses, the coarsest first; `used` (k,) are the joints with efforts."""
    likeliest = _efforts_then_gravity(names, columns, used)
    if likeliest.findings:
        # Turned efforts look like another gravity, and the other way round: the fewest faults.
        candidates = [likeliest, _gravity_then_efforts(names, columns, used)]
        if likeliest.gravity.any():
            candidates.append(_upside_down(names, columns, used))
        likeliest = min(candidates, key=lambda h: (fault_count(h.findings, h.sign, used), h.error))
    findings, alone = list(likeliest.findings), likeliest.alone
    if (np.ptp(columns.q, axis=0) < STANDING_RANGE).any():
        doubt = "; or the joint that stands does not"
        findings = [_doubted(finding, "tilted base", doubt) for finding in findings]
        findings = [_doubted(finding, "gravity left out", doubt) for finding in findings]
    elif columns.grid[-1] - columns.grid[0] < LITTLE_MOTION:
        doubt = "; in so little motion contacts look the same"
        findings = [_doubted(finding, "gravity left out", doubt) for finding in findings]
    scale = likeliest.sign.copy()
    columns = _turned(columns, likeliest.sign, likeliest.gravity)
    for finding, factors in scale_findings(_joint_efforts(names, columns), alone):
        findings.append(finding)
        scale *= factors
    if (scale != 1.0).any():
        mend = {"samples.effort_scale": tuple(float(f"{v:.4g}") for v in scale)}
        kinds = ("effort sign", "effort scale")
        findings = [replace(f, mends=mend) if f.kind in kinds else f for f in findings]
    explained, delay = np.full(len(names), np.nan), 0.0
    if alone.any():
        fit = FreeFit(columns, alone)
        explained[alone] = 1.0 - fit.errors(columns.gravity)
        if alone.sum() == used.sum():
            late, delay = _delay(columns, fit.sharpened((columns.gravity,)))
            findings += late
    return Physics(findings, columns, explained, delay)


def _doubted(finding: Finding, kind: str, doubt: str) -> Finding:
    """A finding of a kind as a note that mends nothing, with what may be the matter instead."""
    if finding.kind != kind:
        return finding
    return replace(finding, evidence=finding.evidence + doubt, mends={}, fault=False)


def _turned(columns: Columns, sign: Array, gravity: Array) -> Columns:
    y, grid = columns.y * sign, columns.y_grid * sign
    return replace(columns, y=y, y_grid=grid, gravity=gravity)


def _efforts_then_gravity(names: tuple[str, ...], columns: Columns, used: Mask) -> Hypothesis:
    findings, sign, alone = turned_or_exchanged(_joint_efforts(names, columns), used)
    right = _turned(columns, sign, columns.gravity)
    # Constants that differ from joint to joint would look like another gravity.
    for _, factors in scale_findings(_joint_efforts(names, right), alone):
        right = _turned(right, factors, columns.gravity)
    whole = alone.sum() == used.sum()  # without some joints' efforts small tilts can't be found
    more, gravity = _gravity(right, alone) if whole else ([], columns.gravity)
    error = unexplained(_turned(columns, sign, gravity), alone)
    return Hypothesis(findings + more, sign, gravity, alone, error)


def _gravity_then_efforts(names: tuple[str, ...], columns: Columns, used: Mask) -> Hypothesis:
    findings, gravity = _gravity(columns, used)
    tilted = replace(columns, gravity=gravity)
    more, sign, alone = turned_or_exchanged(_joint_efforts(names, tilted), used)
    error = unexplained(_turned(columns, sign, gravity), alone)
    return Hypothesis(findings + more, sign, gravity, alone, error)


def _upside_down(names: tuple[str, ...], columns: Columns, used: Mask) -> Hypothesis:
    """An arm on the ceiling that is configured on the floor: free parameters hardly show it."""
    columns = replace(columns, gravity=-columns.gravity)
    findings, sign, alone = turned_or_exchanged(_joint_efforts(names, columns), used)
    error = unexplained(_turned(columns, sign, columns.gravity), alone)
    finding = Finding(
        "tilted base",
        "gravity is 180 degrees from where it is configured: with the URDF's torques and friction "
        f"{100 * error:.1f} % of the efforts' variance is unexplained upside down",
        "gravity is set in the frame of the root link",
        amount=180.0,
        mends={"gravity": tuple(columns.gravity.tolist())},
    )
    return Hypothesis([finding, *findings], sign, columns.gravity, alone, error)


def _joint_efforts(names: tuple[str, ...], columns: Columns) -> JointEfforts:
    inertia, weight = anchored(columns, columns.gravity)
    return JointEfforts(names, columns.y, inertia, weight, columns.effects)


def unexplained(columns: Columns, used: Mask) -> float:
    """Mean over the joints; unlike the free fit it knows that friction can't push."""
    names = tuple(map(str, range(len(used))))
    return _joint_efforts(names, columns).unexplained(used)


def _gravity(columns: Columns, used: Mask) -> tuple[list[Finding], Array]:
    """The finding on gravity, if there is one, and gravity as it is (3,)."""
    findings, gravity = _gravity_now(columns, used)
    if findings:
        # It has to be there without a delay, too, which looks like a little tilt.
        fit = FreeFit(columns, used)
        _, lag = _delay(columns, fit.sharpened((gravity,)))
        if abs(lag) > SMALL_DELAY:
            return _gravity_now(replace(columns, y=columns.shifted(lag)), used)
    return findings, gravity


def _gravity_now(columns: Columns, used: Mask) -> tuple[list[Finding], Array]:
    gravity = columns.gravity
    if not used.any() or not gravity.any():
        return [], gravity
    fit = FreeFit(columns, used)
    nothing = np.zeros(3)
    fit = fit.sharpened((gravity, nothing, _best_direction(fit, gravity)[0]))
    told, without = fit.error(gravity), fit.error(nothing)
    direction, best = _best_direction(fit, gravity)
    if _weighed(columns, used) and without < min(MAX_WEIGHTLESS_RATIO * told, LIKELY_RATIO * best):
        finding = Finding(
            "gravity left out",
            "the efforts have no gravity in them: without gravity the squared errors are "
            f"{100 * without / told:.0f} % of those with it",
            "the driver gives what it commands beyond its own gravity compensation: gravity is set "
            "to 0",
            mends={"gravity": (0.0, 0.0, 0.0)},
            amount=without / told,
        )
        return [finding], nothing
    if _angle(direction, gravity) <= MIN_TILT:
        return [], gravity
    if _opposite(columns, used, direction):
        direction, best = _narrowed(fit, -direction)
    angle = _angle(direction, gravity)
    by = ""
    if best >= MAX_TILTED_RATIO * told:
        # Where the arm moves little, free parameters can put on another gravity.
        best = unexplained(replace(columns, gravity=direction), used)
        told = unexplained(columns, used)
        if best >= MAX_GRAVITY_RATIO * told:
            return [], gravity
        by = " by the URDF's torques"
    direction = np.round(direction, 3) + 0.0  # no -0
    text = ", ".join(f"{v:.2f}" for v in direction)
    finding = Finding(
        "tilted base",
        f"gravity is {angle:.1f} degrees from where it is configured: with [{text}] the squared "
        f"errors{by} are {100 * best / told:.0f} % of those as told",
        "gravity is set in the frame of the root link; or the URDF's first joints are turned",
        amount=angle,
        mends={"gravity": tuple(direction.tolist())},
    )
    return [finding], direction


def _weighed(columns: Columns, used: Mask) -> bool:
    """Test that the URDF's weight is a good part of some effort."""
    _, weight = anchored(columns, columns.gravity)
    return bool((weight.std(axis=0) > MIN_WEIGHT_SHARE * columns.scale)[used].any())


def _angle(a: Array, b: Array) -> float:
    """Degrees between two directions."""
    cosine = float(a @ b) / float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def _opposite(columns: Columns, used: Mask, direction: Array) -> bool:
    """Test whether the URDF's weight explains the efforts much better with the opposite gravity.

    The free fit can't tell the two apart: with negative masses the opposite direction explains as
    much, and that of an arm on a wall is as far from the told one.
    """
    as_found, turned = (
        unexplained(replace(columns, gravity=sign * direction), used) for sign in (1.0, -1.0)
    )
    return turned < MAX_GRAVITY_RATIO * as_found


def _best_direction(fit: FreeFit, gravity: Array) -> tuple[Array, float]:
    """The direction of gravity with the least error: of many, then by rings that narrow down.

    Where the arm moves little there are several minima, tens of degrees apart. Half of them stand
    for negative masses: of what is upside down :func:`_upside_down` judges, and of walls
    :func:`_opposite`.
    """
    around = float(np.linalg.norm(gravity)) * _sphere(DIRECTIONS)
    return _narrowed(fit, min((gravity, *around[around @ gravity > 0.0]), key=fit.error))


def _narrowed(fit: FreeFit, best: Array) -> tuple[Array, float]:
    """The direction with the least error near `best` (3,), and that error."""
    size, error = float(np.linalg.norm(best)), fit.error(best)
    for width in np.radians([12.0, 7.0, 4.0, 2.0, 1.0, 0.5]):
        for candidate in _ring(best, width):
            if (e := fit.error(size * candidate)) < error:
                best, error = size * candidate, e
    # On floors, walls and ceilings gravity is along an axis: that is taken where it is as likely.
    axes = size * np.vstack((np.eye(3), -np.eye(3)))
    nearest = axes[int(np.argmax(axes @ best))]
    if (e := fit.error(nearest)) < LIKELY_RATIO * error:
        best, error = nearest, e
    return best, error


def _sphere(count: int) -> Array:
    """(count, 3) unit vectors on a spiral, about evenly over all directions."""
    k = np.arange(count) + 0.5
    z, turn = 1.0 - 2.0 * k / count, np.pi * (1.0 + np.sqrt(5.0)) * k
    flat = np.sqrt(1.0 - z**2)
    return np.column_stack((flat * np.cos(turn), flat * np.sin(turn), z))


def _ring(center: Array, width: float, count: int = 8) -> Array:
    """(count, 3) unit vectors `width` rad from `center`."""
    axis = center / np.linalg.norm(center)
    other = np.eye(3)[int(np.argmin(np.abs(axis)))]
    u = np.cross(axis, other)
    u /= np.linalg.norm(u)
    v = np.cross(axis, u)
    turn = 2.0 * np.pi * np.arange(count)[:, None] / count
    ring: Array = np.cos(width) * axis + np.sin(width) * (np.cos(turn) * u + np.sin(turn) * v)
    return ring


def _delay(columns: Columns, fit: FreeFit) -> tuple[list[Finding], float]:
    """The finding on the efforts' delay, if there is one, and the delay as it seems, s."""
    squares = [fit.delayed_squares(float(lag)) for lag in LAGS]
    errors = np.array([values.sum() for values in squares])
    k = int(np.argmin(errors))
    if not 0 < k < len(LAGS) - 1:
        return [], 0.0
    a, b, c = errors[k - 1 : k + 2]
    lag = float(LAGS[k] + 0.5 * (LAGS[1] - LAGS[0]) * (a - c) / max(a - 2.0 * b + c, 1e-300))
    now = squares[int(np.argmin(np.abs(LAGS)))]
    slight = errors[k] > MAX_DELAYED_RATIO * now.sum()
    slight |= _deviations(columns.times, now - squares[k]) < MIN_DEVIATIONS
    if abs(lag) < SMALL_DELAY or slight:
        return [], lag
    finding = Finding(
        "effort delay",
        f"efforts come about {1e3 * abs(lag):.0f} ms {'late' if lag > 0.0 else 'early'} against "
        f"the positions: shifted, the squared errors are {100 * errors[k] / now.sum():.0f} % of "
        "those as they are",
        "read both in one cycle of the driver; or samples.effort_delay shifts them. Elasticity "
        "looks like a few ms",
        amount=lag,
        mends={"samples.effort_delay": round(lag, 4)},
        fault=abs(lag) > MIN_DELAY,
    )
    return [finding], lag


def _deviations(times: Array, values: Array) -> float:
    """The sum of values (n,) in standard deviations, by blocks of a second."""
    blocks = np.floor(times - times[0]).astype(int)
    sums = np.bincount(blocks, values)[np.unique(blocks)]
    spread = float(np.sqrt(sums.size) * sums.std())
    return float(sums.sum()) / max(spread, 1e-300)
