"""A bag examined: its findings, and the parameters that mend what parameters can mend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.base.parameters import from_flat, one_or_each, to_flat
from semiparam_dynamics.dynamics.effort_faults import Finding
from semiparam_dynamics.dynamics.effort_trials import MIN_SECONDS
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.doctor.joint_log import (
    JointLog,
    read_description,
    read_joint_log,
    read_locks,
)
from semiparam_dynamics.offline.doctor.messages import (
    JointFacts,
    as_evidence,
    found,
    liveliest_stretch,
    message_findings,
    moving,
    repaired,
)
from semiparam_dynamics.offline.doctor.physics import Physics, physics_findings
from semiparam_dynamics.offline.doctor.wrench import read_wrench_log, wrench_findings
from semiparam_dynamics.robot.model import RobotModel, told_of_urdf
from semiparam_dynamics.robot.urdf import ONE_DOF, parse_urdf, read_urdf
from semiparam_dynamics.samples.bag import WRENCH, BagReader
from semiparam_dynamics.samples.measurement import IMPLAUSIBLE


@dataclass(frozen=True)
class Examination:
    """The findings in a log."""

    log: JointLog  # as it was sent, efforts times the configured scale
    clean: JointLog  # without what would spoil the columns of the dynamics
    findings: list[Finding]  # faults first
    physics: Physics | None  # None where the efforts were not compared with the dynamics
    skipped: str  # why not
    config: InverseDynamicsConfig  # with what parameters mend
    mended: tuple[str, ...]  # the names of these parameters
    not_examined: tuple[str, ...] = ()  # what else was left out, each with the reason
    wrenches: int = 0  # that were examined


def examine_bag(
    path: str | Path,
    config: InverseDynamicsConfig,
    *,
    urdf: str | Path = "",
    joint_states: str = "",
    target: str = "",
    wrench: str = "",
) -> Examination:
    """Examine the joint states of a bag.

    target : what is learned, "effort" or "wrench", which need no efforts; empty: either.
    wrench : the wrenches' topic; empty: the only one of its type.

    The URDF is the file, or the robot_description in the bag. Raises BagError or RobotModelError
    where one of them can't be read, or no message names a joint of the URDF.
    """
    text = read_urdf(urdf or read_description([path])[1])
    tree = parse_urdf(text)
    joints = config.robot.joints or tree.actuated()
    moving_ones = [name for name, joint in tree.joints.items() if joint.type in ONE_DOF]
    log = read_joint_log(path, joints, joint_states, others=moving_ones, tree=tree)
    locked = read_locks(path, tree, log.names, joint_states)
    sensor = target == "wrench" or bool(wrench)
    if log.y is None and target != "effort" and not sensor:
        with BagReader(path) as bag:
            sensor = len(bag.measured(WRENCH)) == 1
    wrenches = read_wrench_log(path, wrench) if sensor else None
    efforts = (target or config.robot.target) != "wrench"
    examination = examine(log, text, config, locked, efforts=efforts)
    if wrenches is None:
        return examination
    learned = target != "effort"  # so that no efforts are needed
    found, why = wrench_findings(wrenches, examination.clean, text, examination.config, locked)
    findings = [f for f in examination.findings if not learned or f.kind != "no efforts"] + found
    findings.sort(key=lambda finding: not finding.fault)
    left = (f"the wrenches beside the URDF's weight: {why}",) if why else ()
    skipped = "" if learned and log.y is None else examination.skipped
    return replace(
        examination,
        findings=findings,
        skipped=skipped,
        not_examined=examination.not_examined + left,
        wrenches=len(wrenches),
    )


def examine(
    log: JointLog,
    urdf: str,
    config: InverseDynamicsConfig,
    locked: Mapping[str, float] | None = None,
    *,
    efforts: bool = True,
) -> Examination:
    """Examine a log of joints that `urdf` has, as a file's path or its text.

    locked : positions of its other joints, rad or m; 0 where not given.
    efforts : whether they are what is learned, so that limits of readings are theirs.
    """
    model = RobotModel(urdf, config.robot, locked=locked, joints=log.names, target="effort")
    facts = JointFacts.of(model)
    given = config.samples.effort_scale
    scale = one_or_each("samples.effort_scale", given, len(log.names), "joints")
    if log.y is not None:
        log = replace(log, y=scale * log.y)
    with threadpool_limits(limits=1):  # the products are small, and other work may be running
        findings = list(message_findings(log, facts, config.samples))
        findings += [found("URDF", told=told) for told in told_of_urdf(model)]
        clean = repaired(log, facts)
        lively = liveliest_stretch(as_evidence(clean, config.samples))
        delay = config.samples.effort_delay
        physics, skipped = _physics(lively, model, config.filter.cutoff or 5.0, delay)
    findings += physics.findings if physics is not None else []
    findings.sort(key=lambda finding: not finding.fault)
    values, mended = _mends(findings, log.names, config, efforts=efforts)
    flat = to_flat(config) | values
    mends, left = from_flat(InverseDynamicsConfig, flat), physics.untold if physics else ()
    untold = tuple(f"the effort of {name}: too little of it is as measured" for name in left)
    return Examination(log, clean, findings, physics, skipped, mends, mended, untold)


def _physics(
    clean: JointLog, model: RobotModel, cutoff: float, delay: float
) -> tuple[Physics | None, str]:
    """Compare with the dynamics, with efforts that are configured to come `delay` s late."""
    if clean.y is None:
        return None, "there are no efforts"
    if not len(clean):
        return None, "no message has stamp, positions and efforts in order"
    if len(clean) < 3:
        return None, "there is too little motion"
    y = clean.y
    used = np.array([np.unique(c[np.isfinite(c)]).size > 1 for c in y.T])
    if not used.any():
        return None, "no joint has efforts that vary"
    active = moving(clean)
    if active.sum() < 100 or np.ptp(clean.times[active]) < MIN_SECONDS:
        return None, "there is too little motion"
    first, last = np.flatnonzero(active)[[0, -1]]
    part = clean.rows(slice(int(first), int(last) + 1))
    filled: Array = np.where(used, y[first : last + 1], 0.0)
    if delay:
        at = part.times
        filled = np.column_stack([np.interp(at + delay, at, column) for column in filled.T])
    part = JointLog(part.names, part.stamps, part.q, None, filled)
    try:
        return physics_findings(part, model, cutoff, used), ""
    except BagError as error:  # of messages that come in bursts few are enough apart
        return None, str(error)


def _mends(
    findings: list[Finding], names: tuple[str, ...], config: InverseDynamicsConfig, *, efforts: bool
) -> tuple[dict[str, object], tuple[str, ...]]:
    """The parameters' values that all findings ask for, on top of those that were given."""
    values: dict[str, object] = {}
    samples, n = config.samples, len(names)
    given = one_or_each("samples.effort_scale", samples.effort_scale, n, "joints")
    limits = np.full(n, IMPLAUSIBLE)
    if efforts and samples.saturation:
        limits = one_or_each("samples.saturation", samples.saturation, n, "joints")
    for finding in findings:
        for name, value in finding.mends.items():
            if name == "samples.saturation":
                where = [names.index(joint) for joint in finding.joints]
                limits[where] = np.minimum(limits[where], np.array(value, np.float64))
                values |= {name: ()} if efforts else {}
            elif name == "samples.effort_delay":
                values[name] = round(finding.amount + samples.effort_delay, 4)
            else:
                values[name] = value
    scale = np.array(values.get("samples.effort_scale", np.ones(n)), dtype=np.float64)
    if "samples.effort_scale" in values:
        values["samples.effort_scale"] = tuple((scale * given).tolist())
        values |= {"samples.saturation": ()} if efforts and samples.saturation else {}
    if "samples.saturation" in values:
        limits = np.minimum(limits * np.abs(scale), IMPLAUSIBLE)
        values["samples.saturation"] = tuple(limits.tolist())
    return values, tuple(sorted(values))
