"""Faults of recordings that `semiparam doctor` names and corrects, and its false accusations.

    python benchmarks/doctor.py DATA [--logs ur10 lwr4]
    python benchmarks/doctor.py DATA --faults 200 [--logs ur10 sim_small] [--conditions tilt late]

The first examines every recording of DATA/robots, whole and in halves, and prints each accusation:
as it is; mounted in four directions that `gravity` gives; and with each of six faults, before and
after its parameter undoes it. Of halves one direction and one fault each are examined, in turn. The
weight of another mounting is by the bodies that the whole recording identifies beside the URDF's.

The second draws conditions of benchmarks/field at random, puts each on a log of DATA/robots or of a
simulated arm, and examines it. Counts by kind of fault: named; mended, where a parameter can; and
accusations that are neither the fault, nor what follows from it, nor found without it. Before that
every log is examined as it is: a delay counts from what it seems to be there, which elasticity has
a part in, and a fault that the log has already, such as rest, counts as none: it would be named
without it. At the end: how long an examination has kept a core busy.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from arms import ARMS, log_splits, read_arm_log
from field.conditions import CONDITIONS, Truth
from output import make_parser, parse

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.effort_faults import Finding
from semiparam_dynamics.dynamics.effort_trials import inertial_parts
from semiparam_dynamics.dynamics.evidence import INFORMATION_SHARE
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.conversion.convert import read_log
from semiparam_dynamics.offline.doctor.drive_gains import prior_std
from semiparam_dynamics.offline.doctor.examination import Examination, examine
from semiparam_dynamics.offline.doctor.messages import JointFacts, JointLog, made_good, repaired
from semiparam_dynamics.offline.doctor.physics import make_columns
from semiparam_dynamics.offline.doctor.wrench import WrenchLog, wrench_findings
from semiparam_dynamics.robot.model import COMPENSATED, RobotModel

# Findings that follow from a fault.
FOLLOWS = {
    "missing messages": {"gaps"},
    "uneven stamps": {"missing messages"},
    "stamps go back": {"gaps"},
    "gaps": {"missing messages"},
    "wraps": {"limits"},
    "clipped efforts": {"effort missing"},  # that are at the limit throughout
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

# Facts of the recordings themselves, looked up in the messages: no accusations.
TRUE = {
    "panda": {"missing messages", "uneven stamps", "repeated readings"},
    "tiago": {"uneven stamps", "efforts mostly zero"},
}
MOUNTS = {
    "ceiling": (0.0, 0.0, 9.81),
    "wall": (9.81, 0.0, 0.0),
    "other wall": (0.0, -9.81, 0.0),
    "slope": (0.0, 6.937, -6.937),
}
TILT = (9.81 * np.sin(np.radians(15.0)), 0.0, -9.81 * np.cos(np.radians(15.0)))
FAULTS = {
    "sign": "sign of one effort turned",
    "unit": "efforts as currents",
    "weight": "gravity left out of efforts",
    "clipping": "efforts clipped at 60 %",
    "delay": "efforts 20 ms late",
    "tilt": "",
}
URDF_SHARE, NOISE, CUTOFF = 0.3, 0.1, 5.0  # of the weight in another mounting

Log = tuple[str, str, InverseDynamicsConfig, JointLog]


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("data", type=Path, help="folder with robots/")
    parser.add_argument("--faults", type=int, default=0, help="that are drawn; 0: all recordings")
    parser.add_argument("--logs", nargs="+", default=[], metavar="NAME")
    parser.add_argument(
        "--conditions", nargs="+", default=[""], metavar="WORDS", help="those whose names hold one"
    )
    parser.add_argument("--seconds", type=float, default=0.0, help="of each log, 0: all")
    parser.add_argument("--seed", type=int, default=0)
    args = parse(parser, argv)
    return drawn(parser, args) if args.faults else every_recording(args)


# -------------------------------------------------------------------------------------------------
# All recordings


class Tables:
    """Counts of examinations, accusations, and faults named and mended, by condition."""

    def __init__(self) -> None:
        self.examined, self.accused, self.put_on, self.named = (Counter[str]() for _ in range(4))

    def accusations(self, condition: str, recording: str, kinds: list[Finding]) -> None:
        """Count an examination, and print its accusations."""
        self.examined[condition] += 1
        self.accused[condition] += bool(kinds)
        for f in kinds:
            joints = f" ({', '.join(f.joints)})" if f.joints else ""
            print(
                f"{recording}, {condition}: accused of {f.kind}{joints}: {f.evidence}", flush=True
            )

    def show(self) -> None:
        """Print the table."""
        print("\n| condition | examined | with a false accusation | put on | named |")
        print("|---" * 5 + "|")
        for name, count in self.examined.items():
            cells = self.put_on[name] or "", self.named[name] if self.put_on[name] else ""
            print(f"| {name} | {count} | {self.accused[name]} | {cells[0]} | {cells[1]} |")
        total = [c.total() for c in (self.examined, self.accused, self.put_on, self.named)]
        print(f"| all | {' | '.join(map(str, total))} |")


def every_recording(args: argparse.Namespace) -> int:
    """Examine all recordings as they are, mounted otherwise, and with faults."""
    tables, robots, turn, begun = Tables(), args.data / "robots", 0, time.process_time()
    for arm, entry in ARMS.items():
        if args.logs and arm not in args.logs:
            continue
        urdf = (robots / arm / entry.urdf).read_text(encoding="utf-8")
        for path in sorted((robots / arm).iterdir()):
            if path.suffix not in (".npz", ".db3"):
                continue
            name = f"{arm} {path.stem}"
            if entry.target == "wrench":
                of_a_sensor(tables, name, urdf, path)
                continue
            log = read_arm_log(path, urdf)
            config = replace(InverseDynamicsConfig(), joints=log.names)
            weight = weight_of(log, urdf, config)
            half = len(log) // 2
            for part, rows in enumerate((slice(None), slice(0, half), slice(half, None))):
                turn += part > 0
                told = f"{name}{('', ', first half', ', second half')[part]}"
                chosen = [
                    list(names)[turn % len(names)] if part else None for names in (MOUNTS, FAULTS)
                ]
                recording = Recording(
                    tables, told, TRUE.get(arm, set()), urdf, config, log, weight, rows
                )
                recording.study(*chosen)
    tables.show()
    print(f"seconds of a core: {time.process_time() - begun:.0f}")
    return 0


@dataclass(frozen=True)
class Recording:
    """A part of a recording, and how its weight changes with the direction of gravity.

    true: kinds of faults that it has. weight: (n, k, 3) efforts for a unit of gravity along each
    axis, of the whole `log`. rows: of it.
    """

    tables: Tables
    name: str
    true: set[str]
    urdf: str
    config: InverseDynamicsConfig
    log: JointLog
    weight: Array
    rows: slice

    def study(self, mount: str | None, fault: str | None) -> None:
        """Examine it as it is, in one mounting or all, and with one fault or all."""
        log = self.log.rows(self.rows)
        as_is = examine(log, self.urdf, self.config)
        self._count("as it is", as_is, self.true)
        for name in [mount] if mount else MOUNTS:
            turned = examine(self._mounted(MOUNTS[name]), self.urdf, self._at(MOUNTS[name]))
            self._count(f"mounted: {name}", turned, self.true | faults(as_is.findings))
        for name in [fault] if fault else FAULTS:
            self._with(name, log, as_is)

    def _with(self, fault: str, log: JointLog, as_is: Examination) -> None:
        """Examine it with a fault, and with that undone by its parameter."""
        tables, known = self.tables, self.true | faults(as_is.findings)
        delay = as_is.physics.delay if as_is.physics else 0.0
        if fault == "tilt":
            truth = Truth(self._mounted(TILT), "tilted base", amount=15.0)
        else:
            model = RobotModel(self.urdf, self.config.robot, joints=log.names)
            rng = np.random.default_rng(0)
            truth = CONDITIONS[FAULTS[fault]].change(log, rng, model)
        found = examine(truth.log, self.urdf, self.config)
        tables.put_on[fault] += 1
        named = is_named(truth, found.findings, delay)
        tables.named[fault] += named
        if not named:
            print(f"{self.name}, {fault} {', '.join(truth.joints)}: not named", flush=True)
        known = known | FOLLOWS.get(truth.finding, set())
        self._count(fault, found, known | {truth.finding})
        config = undone(fault, truth, log, self.config, delay)
        self._count(f"{fault}, mended", examine(truth.log, self.urdf, config), known)

    def _count(self, condition: str, examination: Examination, known: set[str]) -> None:
        accused = [f for f in examination.findings if f.fault and f.kind not in known]
        self.tables.accusations(condition, self.name, accused)

    def _mounted(self, gravity: tuple[float, float, float]) -> JointLog:
        """The part with the efforts that the arm has with another gravity."""
        more = self.weight @ (np.array(gravity) - self.config.robot.gravity)
        return dataclasses.replace(self.log, y=self.log.y + more).rows(self.rows)

    def _at(self, gravity: tuple[float, float, float]) -> InverseDynamicsConfig:
        return replace(self.config, gravity=gravity)


def undone(
    fault: str, truth: Truth, log: JointLog, config: InverseDynamicsConfig, delay: float
) -> InverseDynamicsConfig:
    """The configuration that undoes a fault; delay: what the log seems to have without it."""
    if fault in ("sign", "unit"):
        size = np.abs(truth.log.y).max(axis=0)
        scale = np.abs(log.y).max(axis=0) / np.where(size > 0.0, size, 1.0)
        scale = np.where([name in truth.joints for name in log.names], -scale, scale)
        return replace(config, samples__effort_scale=tuple(np.where(scale, scale, 1.0).tolist()))
    if fault == "clipping":
        limits = np.abs(truth.log.y).max(axis=0) * (1.0 - 1e-6)
        return replace(config, samples__saturation=tuple(np.where(limits, limits, 1e9).tolist()))
    if fault == "delay":
        return replace(config, samples__effort_delay=truth.amount + delay)
    if fault == "tilt":
        return replace(config, gravity=TILT)
    return replace(config, effort_gravity=COMPENSATED)


def weight_of(log: JointLog, urdf: str, config: InverseDynamicsConfig) -> Array:
    """(n, k, 3) efforts of the arm's weight for a unit of gravity along each axis.

    By the bodies that the log identifies, as near to the URDF's as it tells no other.
    """
    model = RobotModel(urdf, config.robot, joints=log.names)
    columns = make_columns(repaired(log, JointFacts.of(model)), model, CUTOFF)
    precision = (URDF_SHARE * prior_std(columns.prior)) ** -2.0
    A, b = np.diag(precision), np.zeros(len(precision))
    bodies = columns.inertial(columns.gravity)
    seconds = float(columns.times[-1] - columns.times[0])
    count = 2.0 * CUTOFF * seconds * INFORMATION_SHARE / len(bodies)
    for k in range(len(log.names)):
        y = columns.y[:, k] - bodies[:, k] @ columns.prior
        own = np.linalg.qr(columns.effects[:, k] + 1e-12 * np.eye(len(y), 4))[0]
        Y, y = (a - own @ (own.T @ a) for a in (bodies[:, k], y))
        share = count / max(NOISE * float(columns.y[:, k].std()), 1e-9) ** 2
        A, b = A + share * Y.T @ Y, b + share * Y.T @ y
    found = columns.prior + np.linalg.solve(A, b)
    parts = []
    for start in range(0, len(log), 2000):
        q = log.q[start : start + 2000]
        parts.append(np.array(inertial_parts(model, q, 0.0 * q, 0.0 * q))[1:] @ found)
    return np.moveaxis(np.concatenate(parts, axis=1), 0, -1)


def of_a_sensor(tables: Tables, name: str, urdf: str, path: Path) -> None:
    """The same of a wrench as it is and mounted otherwise, whose weight is the URDF's."""
    data = read_log(path)
    config = replace(InverseDynamicsConfig(), joints=data.names, sensor_frame="sensor")
    config = replace(config, target="wrench")
    stamps, down = data.time + SECOND, np.array(config.robot.gravity)
    joints, still = JointLog(data.names, stamps, data.q, None, None), 0.0 * data.q

    def told(gravity: tuple[float, float, float]) -> Array:
        model = RobotModel(urdf, replace(config, gravity=gravity).robot)
        return np.asarray(model.regressors(data.q, still, still) @ model.prior)

    half = len(stamps) // 2
    for mount, gravity in {"": tuple(down.tolist()), **MOUNTS}.items():
        values = data.wrench + told(gravity) - told(tuple(down.tolist()))
        log = WrenchLog(stamps, values, ("sensor",))
        for part, rows in enumerate((slice(None), slice(0, half), slice(half, None))):
            piece = WrenchLog(stamps[rows], log.values[rows], log.frames)
            at = replace(config, gravity=gravity)
            found, _ = wrench_findings(piece, joints.rows(rows), urdf, at)
            condition = f"mounted: {mount}" if mount else "as it is"
            whole = f"{name}{('', ', first half', ', second half')[part]}"
            tables.accusations(condition, whole, [f for f in found if f.fault])


# -------------------------------------------------------------------------------------------------
# Faults that are drawn


def drawn(parser: argparse.ArgumentParser, args: argparse.Namespace) -> int:
    """Print the table of conditions drawn at random."""
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
    drawn, named, mended, wrong = (Counter[str]() for _ in range(4))
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
