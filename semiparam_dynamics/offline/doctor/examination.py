"""A bag examined: its findings, the parameters that mend what parameters can mend, and a page."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.config_files import dump_yaml
from semiparam_dynamics.base.errors import BagError, listing
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.base.parameters import from_flat, one_or_each, to_flat
from semiparam_dynamics.dynamics.effort_faults import Finding
from semiparam_dynamics.dynamics.effort_trials import MIN_EVIDENCE_S
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.curves import LOOKS, MEASURED
from semiparam_dynamics.offline.doctor.messages import (
    JointFacts,
    JointLog,
    as_evidence,
    found,
    liveliest_stretch,
    message_findings,
    moving,
    read_description,
    read_joint_log,
    read_locks,
    repaired,
)
from semiparam_dynamics.offline.doctor.physics import Physics, physics_findings
from semiparam_dynamics.offline.doctor.wrench import read_wrench_log, wrench_findings
from semiparam_dynamics.offline.page import (
    bullets,
    cell,
    draw,
    escape,
    grid,
    head,
    legend,
    note,
    number,
    page,
    section,
    shorten,
    table,
)
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
    if active.sum() < 100 or np.ptp(clean.times[active]) < MIN_EVIDENCE_S:
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


# -------------------------------------------------------------------------------------------------
# The page, and the findings for a terminal


WIDTH, HEIGHT = 320.0, 150.0  # points, of a picture
MAX_DRAWN_POINTS = 1500  # points of a line


def verdict(examination: Examination) -> str:
    """Sum the examination up in one sentence."""
    faults = [finding.kind for finding in examination.findings if finding.fault]
    if not faults and (left := _not_examined(examination)):
        return f"No fault was found, but not all was examined. Not examined: {'; '.join(left)}."
    if not faults:
        return "No fault was found."
    kinds = [f"{kind} ({n} times)" if n > 1 else kind for kind, n in Counter(faults).items()]
    return f"{len(faults)} {'fault' if len(faults) == 1 else 'faults'} found: {listing(kinds)}."


def summary(examination: Examination) -> str:
    """The verdict, and a line for each finding with what to do, for a terminal."""
    lines = [*textwrap.wrap(verdict(examination), 98), *textwrap.wrap(_subject(examination), 98)]
    after = [*examination.findings, None][1:]
    for finding, following in zip(examination.findings, after, strict=True):
        mark = "!" if finding.fault else "-"
        text = f"{finding.kind}: {finding.evidence}."
        # The same advice for several joints in a row is printed once, after the last.
        if following is None or (following.kind, following.advice) != (
            finding.kind,
            finding.advice,
        ):
            text += f" To do: {finding.advice}."
        lines += textwrap.wrap(text, 98, initial_indent=f"{mark} ", subsequent_indent="  ")
    if examination.mended:
        told = f"The doctor.yaml of --out sets {listing(examination.mended)}: see --params."
        lines += textwrap.wrap(told, 98)
    return "\n".join(lines)


EXAMINATION_FILES = ("doctor.html", "doctor.yaml")


def write_examination(examination: Examination, directory: Path, name: str) -> None:
    """Write doctor.html and doctor.yaml into `directory`, made if need be.

    Raises StorageError where that fails.
    """
    page_file, parameters_file = (directory / file for file in EXAMINATION_FILES)
    parameters = dump_yaml(examination.config)
    write_files({page_file: html_page(examination, name), parameters_file: parameters})


def html_page(examination: Examination, name: str) -> str:
    """The page: verdict, findings with evidence and advice, and pictures of every joint."""
    findings = examination.findings
    rows = [
        [
            cell("fault" if f.fault else "note"),
            cell(f.kind, style="words"),
            cell(f.evidence, style="words"),
            cell(f.advice, ", ".join(f.mends), style="words"),
        ]
        for f in findings
    ]
    headers = [head(""), *(head(t, style="words") for t in ("Finding", "Evidence", "What to do"))]
    flat = to_flat(examination.config)
    values = {
        key: list(v) if isinstance(v := flat[key], tuple) else v for key in examination.mended
    }
    mended = [f"{key}: {value}" for key, value in values.items()]
    body = [
        f"<h1>semiparam doctor</h1>\n<p class='headline'>{escape(verdict(examination))}</p>",
        note(f"{name}: {_subject(examination)}"),
        table(headers, rows) if findings else "",
        section("mended", "What doctor.yaml sets", bullets(mended)) if mended else "",
        section("joints", "Joint by joint", *_pictures(examination), folded=True),
    ]
    return page(f"semiparam doctor: {name}", [part for part in body if part])


def _subject(examination: Examination) -> str:
    log = examination.log
    times = log.stamps - log.stamps.min()
    seconds = float(times.max()) * 1e-9
    usual = float(np.median(np.diff(np.sort(log.stamps)))) * 1e-9 if len(log) > 1 else 0.0
    rate = f" at {1.0 / usual:.0f} Hz" if usual > 0.0 else ""
    wrenches = f", {examination.wrenches} wrenches" if examination.wrenches else ""
    left = _not_examined(examination) if any(f.fault for f in examination.findings) else []
    skipped = f" Not examined: {'; '.join(left)}." if left else ""
    joints = f"{len(log)} joint states, {seconds:.1f} s{rate}, {len(log.names)} joints"
    return f"{joints}{wrenches}.{skipped}"


def _not_examined(examination: Examination) -> list[str]:
    """List what was not examined, each with the reason."""
    efforts = f"the efforts beside the robot's dynamics: {examination.skipped}"
    return [efforts] * bool(examination.skipped) + list(examination.not_examined)


def _pictures(examination: Examination) -> list[str]:
    """Draw each joint's position, and its effort with the URDF's torque."""
    log, physics = examination.log, examination.physics
    by_joint = {
        name: [f.kind for f in examination.findings if name in f.joints] for name in log.names
    }
    panels = []
    for k, name in enumerate(log.names):
        title = shorten(name, 30) + (f": {', '.join(by_joint[name])}" if by_joint[name] else "")

        def positions(axes: Axes, k: int = k, title: str = title) -> None:
            every = max(1, len(log) // MAX_DRAWN_POINTS)
            seconds = (log.stamps[::every] - log.stamps[0]) * 1e-9
            axes.plot(seconds, log.q[::every, k], color=MEASURED.color, linewidth=0.8)
            axes.set_title(shorten(title, 60))
            axes.set_ylabel("position as sent")

        panels.append(draw(f"q{k}", f"position of {name}", positions, WIDTH, HEIGHT))
        if physics is None:
            continue

        def efforts(axes: Axes, k: int = k) -> None:
            columns, urdf = physics.columns, LOOKS["urdf"]
            every = max(1, len(columns.times) // MAX_DRAWN_POINTS)
            torque = columns.inertial(columns.gravity)[::every, k] @ columns.prior
            seconds = columns.times[::every]
            axes.plot(seconds, columns.y[::every, k], color=MEASURED.color, linewidth=0.8)
            (line,) = axes.plot(seconds, torque, color=urdf.color, linewidth=urdf.width)
            line.set_dashes(urdf.dashes)
            share = physics.explained[k]
            known = "" if np.isnan(share) else f", {number(100.0 * float(share))} % explained"
            axes.set_ylabel("effort")
            axes.set_title(f"Filtered effort{known}")

        panels.append(draw(f"y{k}", f"effort of {name}", efforts, WIDTH, HEIGHT))
    if physics is None:
        return [grid(panels)]
    told = note(
        "Efforts have the sign that was found, and are filtered; beside them what the URDF's own "
        "masses make of the motion, without friction. The share is what free parameters with "
        "friction explain of the effort's variance."
    )
    return [legend([MEASURED, LOOKS["urdf"]]), grid(panels, pairs=True), told]
