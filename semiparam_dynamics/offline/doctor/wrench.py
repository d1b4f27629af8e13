"""Faults of a six-axis sensor's readings: messages, stuck and clipped axes, signs, axes and units.

Of slow motion the force is f = s Q g(q) + c, with the URDF's weight g(q) there, an offset c,
a rotation Q by right angles, and a factor s that is free within the bounds of a joint's effort.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from semiparam_dynamics.base.arrays import SECOND, WRENCH_AXES, Array, Indices, Mask, Stamps
from semiparam_dynamics.base.errors import RobotModelError, listing
from semiparam_dynamics.dynamics.effort_faults import Finding
from semiparam_dynamics.dynamics.effort_trials import MAX_SCALE, MIN_SCALE
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.doctor.messages import (
    JointLog,
    clipped,
    found,
    left_out,
    moving,
    spikes,
    stamp_findings,
)
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import frame_names, parse_urdf
from semiparam_dynamics.samples.bag import WRENCH, BagReader
from semiparam_dynamics.samples.joint_names import stamp_of
from semiparam_dynamics.samples.measurement import StreamConfig

AVERAGED = 0.2  # s over which readings are averaged before they are compared with weight
MIN_WEIGHT_BLOCKS = 15
MIN_WEIGHT_SPREAD = 0.1  # of the weight: the sensor has to turn that far in it
MAX_FORCE_UNEXPLAINED = 0.3  # of the variance: what leaves less explains the readings
MAX_TURNED_RATIO = 0.5  # of the errors with another sign, or other axes, and as it is
MAX_REPEATED_SHARE = 0.1  # share of the messages in motion that repeat the reading before
MIN_COVERED_SHARE = 0.5  # share of the wrenches that the joint states must cover
# The 24 rotations by right angles, and -1.
RIGHT_ANGLES = [*np.round(Rotation.create_group("O").as_matrix()), -np.eye(3)]


@dataclass(frozen=True)
class WrenchLog:
    """n wrenches as they were sent."""

    stamps: Stamps  # (n,) ns
    values: Array  # (n, 6) force (N) and moment (N m)
    frames: tuple[str, ...]  # the messages' frame_ids

    def __len__(self) -> int:
        return len(self.stamps)


def read_wrench_log(path: str | Path, topic: str = "") -> WrenchLog:
    """The wrenches of a bag; `topic` is the bag's only one of its type where it isn't named.

    Raises BagError where the bag can't be read or has no such topic.
    """
    stamps, rows, frames = [], [], set()
    with BagReader(path) as bag:
        for _, message, _ in bag.messages([bag.choose(WRENCH, topic)]):
            force, moment = message.wrench.force, message.wrench.torque
            stamps.append(stamp_of(message))
            rows.append([force.x, force.y, force.z, moment.x, moment.y, moment.z])
            frames.add(str(message.header.frame_id).lstrip("/"))  # as ROS 1 had it
    values = np.array(rows, dtype=np.float64).reshape(-1, 6)
    return WrenchLog(np.array(stamps, dtype=np.int64), values, tuple(sorted(frames)))


def wrench_findings(
    log: WrenchLog,
    joints: JointLog,
    urdf: str,
    config: InverseDynamicsConfig,
    locked: Mapping[str, float] | None = None,
) -> tuple[list[Finding], str]:
    """Find faults of wrenches, and the reason why they were not compared with the URDF's weight.

    joints: without what would spoil a comparison. urdf: text. locked: positions of its other
    joints. The second is empty where they were.
    """
    if not len(log):
        return [found("no wrench")], "there are no wrenches"
    findings = [
        replace(f, kind=f"wrench: {f.kind}", evidence=f"of the wrenches: {f.evidence}")
        for f in stamp_findings(log.stamps)
    ]
    findings += _numbers(log)
    whole = np.isfinite(log.values).all(axis=1)
    clean = replace(log, stamps=log.stamps[whole], values=log.values[whole])
    if len(clean) < 3 or len(joints) < 3:
        return findings, "there are too few readings"
    inside = (clean.stamps >= joints.stamps.min()) & (clean.stamps <= joints.stamps.max())
    if (outside := float(np.mean(~inside))) > 1.0 - MIN_COVERED_SHARE:
        findings.append(found("wrench: another clock", amount=outside, percent=100 * outside))
        return findings, "the wrenches are not of the joint states' time"
    clean = replace(clean, stamps=clean.stamps[inside], values=clean.values[inside])
    times = (clean.stamps - joints.stamps[0]) / SECOND
    q = np.column_stack([np.interp(times, joints.times, column) for column in joints.q.T])
    active = np.interp(times, joints.times, moving(joints).astype(float)) > 0.5
    findings += _axes(clean, q, active, config.samples)
    more, skipped = _weight(clean, q, joints.names, urdf, config, locked)
    return findings + more, skipped


def _numbers(log: WrenchLog) -> Iterator[Finding]:
    share = np.mean(~np.isfinite(log.values), axis=0)
    if most := float(share.max()):
        axes = listing([WRENCH_AXES[k] for k in np.flatnonzero(share)])
        yield found("wrench: not a number", amount=most, axes=axes, percent=100 * most)
    if len(log.frames) > 1:
        yield found("wrench: several frames", frames=listing(log.frames))


def _axes(log: WrenchLog, q: Array, active: Mask, samples: StreamConfig) -> Iterator[Finding]:
    """Check single axes while the arm moves."""
    if active.sum() < 50:
        return
    constant = np.ptp(log.values[active], axis=0) == 0.0
    if constant.any():
        first = log.values[active][0]
        axes = [f"{WRENCH_AXES[k]} {first[k]:g}" for k in np.flatnonzero(constant)]
        yield found("wrench: axis missing", axes=listing(axes))
    same = np.zeros(len(log), dtype=bool)
    same[1:] = (log.values[1:] == log.values[:-1]).all(axis=1)
    held = float(np.mean(same[active]))
    if not constant.all() and held > MAX_REPEATED_SHARE:
        yield found("wrench: repeated readings", amount=held, percent=100 * held)
    faults = left_out((), log.stamps, log.values, q, samples)
    stuck = {} if held > MAX_REPEATED_SHARE else faults["wrench stuck"]
    if stuck:
        yield found("wrench: stuck", told="; ".join(sentence for sentence, _ in stuck.values()))
    wrong = 0
    for k in set(np.flatnonzero(~constant).tolist()) - set(stuck):
        column = log.values[:, k]
        if (clip := clipped(column[active])) is not None:
            extreme, share = clip
            axis, size, percent = WRENCH_AXES[k], abs(extreme), 100 * share
            yield found("wrench: clipped", amount=size, axis=axis, extreme=extreme, percent=percent)
        wrong += int(spikes(column[:, None], float(column.std())).sum())
    if wrong:
        yield found("wrench: wrong readings", amount=wrong, count=wrong)


def _weight(
    log: WrenchLog,
    q: Array,
    names: tuple[str, ...],
    urdf: str,
    config: InverseDynamicsConfig,
    locked: Mapping[str, float] | None,
) -> tuple[list[Finding], str]:
    """Sign, axes and units, by the weight that the URDF has behind the sensor."""
    frame = config.robot.sensor_frame or (log.frames[0] if len(log.frames) == 1 else "")
    if not frame:
        return [], "neither the messages nor sensor_frame name the sensor's frame"
    given = {"joints": names, "target": "wrench", "sensor_frame": frame}
    try:
        model = RobotModel(urdf, config.robot, locked=locked, **given)
    except RobotModelError as error:
        lack = found("wrench: frame", told=error, what="name a joint or link with sensor_frame")
        return [lack], "the sensor's place in the URDF is not known"
    accepted = {"", *frame_names(parse_urdf(urdf), frame)}
    accepted |= {name.lstrip("/") for name in config.samples.wrench_frames}
    if other := [name for name in log.frames if name not in accepted]:
        what = (
            "all of them are dropped: name the messages' frame with sensor_frame, or list it in "
            "samples.wrench_frames if it is the same place"
        )
        where = f"the wrenches are in {listing(other)}, not in sensor_frame ({frame})"
        return [found("wrench: frame", told=where, what=what)], "the wrenches are in another frame"
    block = np.asarray((log.stamps - log.stamps[0]) // round(AVERAGED * SECOND), dtype=np.int64)
    _, first, of = np.unique(block, return_index=True, return_inverse=True)
    if first.size < MIN_WEIGHT_BLOCKS:
        return [], "there are too few readings"
    y = _means(log.values, of)
    q = _means(q, of)
    told: Array = model.regressors(q, 0.0 * q, 0.0 * q) @ model.prior
    force, weight = _centered(y[:, :3]), _centered(told[:, :3])
    size = float(np.linalg.norm(told[:, :3], axis=1).mean())
    if size < 1e-6:
        return [], "the URDF has no mass behind the sensor"
    if float(np.sqrt(np.mean(np.sum(weight**2, axis=1)))) < MIN_WEIGHT_SPREAD * size:
        return [], "the sensor hardly turns, so that weight tells nothing of its axes"
    if not force.any():
        return [], "the forces never change"
    return list(_compared(y, told, force, weight)), ""


def _compared(y: Array, told: Array, force: Array, weight: Array) -> Iterator[Finding]:
    factor, error = _fit(force, weight)
    best_error, best = min(
        ((_fit(force @ Q, weight), Q) for Q in RIGHT_ANGLES),
        key=lambda pair: pair[0][1] if pair[0][0] > 0.0 else 2.0,
    )
    percent, least = 100 * min(error, 1.0), best_error[1]
    if least > MAX_FORCE_UNEXPLAINED:
        yield found("wrench: not the URDF's weight", amount=error, percent=percent)
        return
    if factor < 0.0 or least < MAX_TURNED_RATIO * error:
        axes = listing(
            [
                f"{axis} is the URDF's {'-' if best[k].sum() < 0.0 else ''}"
                f"{'xyz'[int(np.argmax(np.abs(best[k])))]}"
                for k, axis in enumerate("xyz")
            ]
        )
        kind = "wrench: sign" if (best == -np.eye(3)).all() else "wrench: axes"
        yield found(kind, amount=least, percent=percent, least=100 * least, axes=axes)
        factor = best_error[0]
    if not MIN_SCALE < factor < MAX_SCALE:
        yield _unit("forces", "N", factor)
    torque_factor, left = _fit(_centered(y[:, 3:]), _centered(told[:, 3:]))
    right = MIN_SCALE < torque_factor / factor < MAX_SCALE
    if left < MAX_FORCE_UNEXPLAINED and torque_factor > 0.0 and not right:
        yield _unit("moments", "N m", torque_factor)


def _unit(what: str, unit: str, factor: float) -> Finding:
    return found(f"wrench: unit of {what}", amount=factor, what=what, unit=unit, factor=factor)


def _fit(measured: Array, told: Array) -> tuple[float, float]:
    """The factor of `told` in `measured`, both about their means, and the share left over."""
    power, total = float(np.sum(told**2)), float(np.sum(measured**2))
    if power <= 0.0 or total <= 0.0:
        return 1.0, 1.0
    factor = float(np.sum(measured * told)) / power
    return factor, float(np.sum((measured - factor * told) ** 2)) / total


def _means(values: Array, of: Indices) -> Array:
    count = np.bincount(of)
    return np.column_stack([np.bincount(of, column) / count for column in values.T])


def _centered(values: Array) -> Array:
    return np.asarray(values - values.mean(axis=0))
