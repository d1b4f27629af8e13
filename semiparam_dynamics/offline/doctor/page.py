"""The examination on a page, and its findings for a terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from semiparam_dynamics.base.config_files import dump_yaml
from semiparam_dynamics.base.errors import listing
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.base.parameters import to_flat
from semiparam_dynamics.learner.curves import LOOKS, MEASURED
from semiparam_dynamics.offline.doctor.examination import Examination
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

WIDTH, HEIGHT = 320.0, 150.0  # points, of a picture
SHOWN = 1500  # points of a line


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


FILES = ("doctor.html", "doctor.yaml")


def write_examination(examination: Examination, directory: Path, name: str) -> None:
    """Write doctor.html and doctor.yaml into `directory`, made if need be.

    Raises StorageError where that fails.
    """
    page_file, parameters_file = (directory / file for file in FILES)
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
            every = max(1, len(log) // SHOWN)
            seconds = (log.stamps[::every] - log.stamps[0]) * 1e-9
            axes.plot(seconds, log.q[::every, k], color=MEASURED.color, linewidth=0.8)
            axes.set_title(shorten(title, 60))
            axes.set_ylabel("position as sent")

        panels.append(draw(f"q{k}", f"position of {name}", positions, WIDTH, HEIGHT))
        if physics is None:
            continue

        def efforts(axes: Axes, k: int = k) -> None:
            columns, urdf = physics.columns, LOOKS["urdf"]
            every = max(1, len(columns.times) // SHOWN)
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
