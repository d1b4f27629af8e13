"""Faults of recordings that `semiparam doctor` names and corrects, and its false accusations.

    python benchmarks/doctor.py DATA [--faults 200] [--logs ur10 sim_small] [--conditions tilt late]

Draws conditions of benchmarks/field at random, puts each on a log of DATA/robots or of a simulated
arm, and examines it. Counts by kind of fault: named; mended, where a parameter can; and accusations
that are neither the fault, nor what follows from it, nor found without it. Before that every log is
examined as it is: a delay counts from what it seems to be there, which elasticity has a part in,
and a fault that the log has already, such as rest, counts as none: it would be named without it.
At the end: how long an examination has kept a core busy.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from arms import log_splits
from field.conditions import CONDITIONS, Truth
from output import make_parser, parse

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.effort_faults import Finding
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.doctor.examination import Examination, examine
from semiparam_dynamics.offline.doctor.joint_log import JointLog, made_good
from semiparam_dynamics.robot.model import COMPENSATED, RobotModel

# Findings that follow from a fault.
FOLLOWS = {
    "missing messages": {"gaps"},
    "uneven stamps": {"missing messages"},
    "stamps go back": {"gaps"},
    "gaps": {"missing messages"},
    "wraps": {"limits"},
}
MENDED = (
    "effort sign",
    "effort scale",
    "tilted base",
    "gravity left out",
    "clipped efforts",
    "effort delay",
)
DELAY = 0.005  # s: as a delay is found
DOWN = np.array([0.0, 0.0, -9.81])

Log = tuple[str, str, InverseDynamicsConfig, JointLog]


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("data", type=Path, help="folder with robots/")
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--logs", nargs="+", default=[], metavar="NAME")
    parser.add_argument(
        "--conditions", nargs="+", default=[""], metavar="WORDS", help="those whose names hold one"
    )
    parser.add_argument("--seconds", type=float, default=0.0, help="of each log, 0: all")
    parser.add_argument("--seed", type=int, default=0)
    args = parse(parser, argv)
    logs: list[Log] = []
    for split in log_splits(args.data, args.logs, args.seconds):
        config = replace(InverseDynamicsConfig(), joints=split.config.robot.joints)
        if split.config.filter.cutoff > 10.0:  # a fast arm, whose users set that
            config = replace(config, filter__cutoff=10.0)
        recordings = [*split.train, split.test] if len(split.train) > 1 else split.train
        logs += [(f"{split.name} {k + 1}", split.urdf, config, r) for k, r in enumerate(recordings)]
    chosen = [c for name, c in CONDITIONS.items() if any(word in name for word in args.conditions)]
    if not logs or not chosen:
        parser.error("no log, or no condition, has such a name")
    clean: dict[str, list[Finding]] = {}
    delays: dict[str, float] = {}
    seconds: list[float] = []

    def examined(log: JointLog, urdf: str, config: InverseDynamicsConfig) -> Examination:
        begun = time.process_time()
        examination = examine(log, urdf, config)
        seconds.append(time.process_time() - begun)
        return examination

    for name, urdf, config, log in logs:
        as_is = examined(log, urdf, config)
        clean[name], delays[name] = as_is.findings, as_is.physics.delay if as_is.physics else 0.0
        print(
            f"{name}, as it is: {', '.join(sorted(faults(as_is.findings))) or 'no fault'}, efforts "
            f"{1e3 * delays[name]:.1f} ms late",
            flush=True,
        )
    drawn, named, mended, wrong = Counter(), Counter(), Counter(), Counter()
    rng = np.random.default_rng(args.seed)
    while drawn.total() < args.faults:
        name, urdf, config, log = logs[rng.integers(len(logs))]
        condition = chosen[rng.integers(len(chosen))]
        model = RobotModel(urdf, replace(config.robot, joints=log.names))
        truth = condition.change(log, np.random.default_rng(rng.integers(2**31)), model)
        examination = examined(made_good(truth.log), urdf, replace(config, **truth.settings))
        there = is_named(truth, clean[name], delays[name])
        hit = is_named(truth, examination.findings, delays[name])
        kind = truth.finding if truth.finding and not there else f"({condition.name})"
        drawn[kind] += 1
        named[kind] += hit and not there
        mended[kind] += is_mended(truth, log, examination, delays[name])
        others = accusations(truth, examination.findings, clean[name])
        wrong[kind] += bool(others)
        if others or (truth.finding and not hit):
            what = f"accused of {', '.join(sorted(others))}" if others else "not named"
            print(f"{name}, {condition.name} {', '.join(truth.joints)}: {what}", flush=True)
    width = max(map(len, drawn))
    print(f"\n{'fault':<{width}}  drawn  named  mended  with a false accusation")
    for kind in sorted(drawn):
        can = f"{mended[kind]:6}" if kind in MENDED else "     -"
        found = f"{named[kind]:5}" if not kind.startswith("(") else "    -"
        print(f"{kind:<{width}}  {drawn[kind]:5}  {found}  {can}  {wrong[kind]:5}")
    print(f"{'all':<{width}}  {drawn.total():5}  {named.total():5}  {mended.total():6}  ", end="")
    print(f"{wrong.total():5}")
    print(f"seconds of a core: {np.median(seconds):.1f} median, {max(seconds):.1f} at most")
    return 0


def is_named(truth: Truth, findings: list[Finding], delay: float) -> bool:
    """True where the fault is found, on its joint if it is of one; a delay with its size.

    delay: what the log seems to have without the fault.
    """
    return any(
        finding.kind == truth.finding
        and (not truth.joints or bool(set(truth.joints) & set(finding.joints)))
        and (truth.finding != "effort delay" or abs(finding.amount - delay - truth.amount) < DELAY)
        for finding in findings
    )


def is_mended(truth: Truth, log: JointLog, examination: Examination, delay: float) -> bool:
    """True where the parameters are those that correct the fault; `delay` as for `is_named`."""
    config = examination.config
    if truth.finding == "effort delay":
        return abs(config.samples.effort_delay - delay - truth.amount) < DELAY
    if truth.finding in ("effort sign", "effort scale"):
        assert log.y is not None and truth.log.y is not None
        scale = np.broadcast_to(config.samples.effort_scale, (len(log.names),))
        ratio = scale * truth.log.y.std(axis=0) / np.maximum(log.y.std(axis=0), 1e-300)
        signs = np.array([-1.0 if name in truth.joints else 1.0 for name in log.names])
        right = np.sign(scale) == (signs if truth.finding == "effort sign" else 1.0)
        moved = log.y.std(axis=0) > 0.0
        return bool((right & (np.abs(ratio) > 1 / 3) & (np.abs(ratio) < 3.0))[moved].all())
    gravity = np.array(config.robot.gravity)
    if truth.finding == "tilted base":
        cosine = gravity @ DOWN / max(float(np.linalg.norm(gravity)) * 9.81, 1e-300)
        return bool(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))) < 3.0)
    if truth.finding == "gravity left out":
        return config.robot.effort_gravity == COMPENSATED
    return truth.finding == "clipped efforts" and bool(config.samples.saturation)


def accusations(truth: Truth, findings: list[Finding], clean: list[Finding]) -> set[str]:
    """The kinds of faults found that aren't there."""
    follows = FOLLOWS.get(truth.finding, set())
    return faults(findings) - faults(clean) - {truth.finding} - follows


def faults(findings: list[Finding]) -> set[str]:
    """The kinds of those that are faults."""
    return {finding.kind for finding in findings if finding.fault}


if __name__ == "__main__":
    sys.exit(main())
