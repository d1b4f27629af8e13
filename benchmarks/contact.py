"""Pushes on simulated arms at 1 kHz: which are seen, when, and on which link; and false alarms.

    python benchmarks/contact.py pushes --robot ur10 --data DATA
    python benchmarks/contact.py pushes --robot xmate --data DATA
    python benchmarks/contact.py pushes --robot icub
    python benchmarks/contact.py quiet --robot ur10 --data DATA --minutes 60
    python benchmarks/contact.py logs --data DATA
    python benchmarks/contact.py again --kept FILE [FILE ...]

DATA holds robots/ and the logs. Pushes of 5 to 50 N last 0.1 to 1 s; on the iCub they are on the
hand and measured by the sensor, else anywhere on a link but the first, measured by the motors.
Predictions are the node's, of what was learned up to 30 ms before. The detector is compared with a
fixed threshold, in the deviations of each axis before the first push: misses against false alarms.

Simulating and learning take nearly all of the time. `--keep FILE` keeps what a detector was shown,
and `again` shows it to detectors of several thresholds, in some seconds for minutes: their curve of
misses against alarms, and for each alarm at the usual threshold when and by which axis, and how
long before which joint had turned round. Ctrl-C ends a run with what it has. `--warming 0.3`:
friction falls by 30 %, with a time constant of ten minutes.
"""

from __future__ import annotations

import argparse
import math
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from arms import LOGS, log_splits, measurements
from changes import arm_of, learner_of
from output import make_parser, parse

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.changes.config import CONTACT, OVER, ChangesConfig
from semiparam_dynamics.changes.contact import ContactDetector
from semiparam_dynamics.changes.touch import ContactEvent
from semiparam_dynamics.learner.learner import InverseDynamicsLearner, Step
from semiparam_dynamics.learner.nodes.session import BATCH_NS
from semiparam_dynamics.robot.model import RobotModel, expected_scales
from semiparam_dynamics.robot.urdf import parse_urdf
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

LEARN = 45.0  # s before the first push
WARM_S = 600.0  # time constant of friction that warms
TURNED_S = 1.0  # s before an alarm, within which a joint that turned round is reported
USUAL_S = 20.0  # before the first push, whose errors a fixed threshold is relative to
THRESHOLDS = (4.0, 5.0, 6.0, 8.0, 10.0, 13.0, 17.0)  # standard deviations, of a curve


class Push(NamedTuple):
    begin: float  # s
    end: float
    size: float  # N
    link: str


class Kept(ContactDetector):
    """A detector that keeps what it is shown; see `again`."""

    def __init__(self, config: ChangesConfig, scales: Array) -> None:
        super().__init__(config, scales, by_speed=True)
        # s, tested, confidence, errors, speeds, predicted, cut-off
        self.shown: list[list[float]] = []

    def add(self, stamp: int, error: Array, *shown: Any, tested: bool = True, **more: Any) -> str:
        """Keep a sample, and test or count it."""
        confidence, speeds, expected = shown
        changed = np.full_like(error, np.nan) if expected is None else expected
        row = [stamp * 1e-9, float(tested), confidence, *error, *speeds, *changed, more["cutoff"]]
        self.shown.append(row)
        return super().add(stamp, error, *shown, tested=tested, **more)


class Watched:
    """A learner that detects contacts, as the node has it; `keep`: what its detector is shown."""

    def __init__(self, learner: InverseDynamicsLearner, keep: bool = False) -> None:
        self.learner = learner
        self.kept: Kept | None = None
        if keep:
            scales = expected_scales(learner.model).output
            learner._detector = self.kept = Kept(learner.config.changes, scales)
        learner.predict_beside_learning(True)
        self._steps: list[Step] = []  # to be learned together
        self._stamp = 0  # ns, of the last of them
        self.events: list[tuple[float, ContactEvent]] = []  # each with the time of its report
        self.samples: list[tuple[float, Array]] = []  # of each time, what is external on each axis

    def take(self, measurement: Measurement) -> None:
        """Predict, detect and learn what a measurement completes."""
        learner, now = self.learner, measurement.stamp * 1e-9
        if (step := learner.predict(measurement, contacts=True)) is None:
            return
        reported = learner.contacts.total
        learner.detect_contact(step)
        admitted = learner.admit(step)
        new = learner.contacts.total - reported
        self.events += [(now, event) for event in list(learner.contacts.events)[-new:] if new]
        if learner.external is not None and learner.external_at == step.stamp:
            self.samples.append((now, learner.external))
        for one in admitted:
            self._steps.append(one)
            ahead, self._stamp = one.stamp - self._stamp, one.stamp
            if not 0 <= one.stamp - self._steps[0].stamp < BATCH_NS - ahead:
                learner.update(self._steps)
                learner.publish()
                self._steps = []


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("study", choices=("pushes", "quiet", "logs", "again"))
    parser.add_argument("--robot", choices=("ur10", "xmate", "icub"), default="ur10")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--pushes", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=1000.0, help="Hz, of the joint states")
    parser.add_argument("--warming", type=float, default=0.0, help="share by which friction falls")
    parser.add_argument("--detect", action="store_true", help="other changes, too")
    parser.add_argument("--keep", type=Path, help="file of what the detector is shown, by efforts")
    parser.add_argument("--kept", type=Path, nargs="+", default=[], help="such files, for again")
    arguments = parse(parser)
    if arguments.study == "again" and not arguments.kept:
        parser.error("again needs --kept FILE")
    if arguments.keep and (arguments.robot == "icub" or arguments.detect):
        parser.error("--keep needs an arm by efforts, without --detect")
    if arguments.study == "logs":
        return logs(arguments.data)
    if arguments.study == "again":
        return again(arguments.kept)
    arm = arm_of(arguments.robot, arguments.data, rate=arguments.rate, seed=arguments.seed)
    detect = {"changes.detect": arguments.detect, "filter.cutoff": 5.0}
    watched = Watched(learner_of(arm, **detect), keep=arguments.keep is not None)
    pushes: list[Push] = []
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in the background
    try:
        if arguments.study == "quiet":
            quiet(arm, watched, arguments.minutes, arguments.warming)
        else:
            pushes += pushed(arm, watched, arguments)
    except KeyboardInterrupt:
        print("stopped: of what was until then")
    if arguments.study == "pushes":
        shown(pushes, watched)
    else:
        told_in_quiet(watched)
    if watched.kept is not None:
        times = np.array([push[:3] for push in pushes], dtype=float).reshape(-1, 3)
        scales = expected_scales(watched.learner.model).output
        shown_to = np.array(watched.kept.shown)
        np.savez_compressed(arguments.keep, shown=shown_to, pushes=times, scales=scales)
    return None


def pushed(arm: ArmSimulator, watched: Watched, arguments: argparse.Namespace) -> Iterator[Push]:
    """Push after push, one and a half to two seconds apart."""
    model = watched.learner.model
    rng = np.random.default_rng([arguments.seed, 11])
    tree, source = parse_urdf(model.urdf_text), simulated(arm, model.config.target)
    links = [tree.joints[name].child for name in model.joint_names]

    def until(end: float) -> float:
        for measurement in source:
            watched.take(measurement)
            if measurement.stamp * 1e-9 >= end:
                return measurement.stamp * 1e-9
        return end

    now = until(LEARN)
    for _ in range(arguments.pushes):
        begin = now = until(now + rng.uniform(1.5, 2.0))
        force, size = rng.standard_normal(3), 5.0 * 10.0 ** rng.uniform()
        force *= size / np.linalg.norm(force)
        link, point = "", rng.uniform(-0.04, 0.04, 3)
        if arguments.robot != "icub":
            link = links[int(rng.integers(1, len(links)))]
            point = point + rng.uniform(0.4, 1.0) * way(tree, model.joint_names, link)
        arm.hand.push(force, point, link)
        now = until(begin + 0.1 * 10.0 ** rng.uniform())
        arm.hand.push(np.zeros(3), point, link)
        yield Push(begin, now, size, link)
    until(now + 2.0)


def way(tree: Any, joints: tuple[str, ...], link: str) -> Array:
    """From a link's joint to the next one, in its frame, m."""
    for name in joints:
        if tree.joints[name].parent == link:
            return np.array(tree.joints[name].element.find("origin").get("xyz").split(), float)
    return np.array([0.0, 0.0, 0.05])


def shown(pushes: list[Push], watched: Watched) -> None:
    """Print which of them were detected, and when."""
    begun = [(now, event) for now, event in watched.events if event.kind == CONTACT]
    begun = [(now, event) for now, event in begun if event.touch is None]
    delays, right, near, used = [], [], [], set()
    tree = parse_urdf(watched.learner.model.urdf_text)
    links = [tree.joints[name].child for name in watched.learner.model.joint_names]
    for push in pushes:
        seen = [now for now, _ in begun if push.begin < now < push.end + 0.05]
        used.update(seen)
        delays.append(1e3 * (seen[0] - push.begin) if seen else np.nan)
        ends = [e for now, e in watched.events if e.kind == OVER and push.begin < e.since * 1e-9]
        touch = next((e.touch for e in ends if e.since * 1e-9 < push.end + 0.05), None)
        if seen and touch is not None and push.link:
            right.append(touch.link == push.link)
            near.append(abs(links.index(touch.link) - links.index(push.link)) <= 1)
    found, sizes = np.array(delays), np.array([push.size for push in pushes])
    for least in (5.0, 10.0, 20.0):
        chosen = found[sizes >= least]
        known = chosen[np.isfinite(chosen)]
        median, most = np.percentile(known, (50, 95)) if len(known) else (np.nan, np.nan)
        print(
            f"of {least:g} N and more: {len(known)} of {len(chosen)} seen, after "
            f"{median:.0f} ms in the median, {most:.0f} ms in 95 %"
        )
    if right:
        print(f"right link {np.mean(right):.0%}, it or a neighbour {np.mean(near):.0%}")
    calm = sum(now not in used for now, _ in begun)
    print(f"contacts reported without a push: {calm} in {watched.samples[-1][0] / 60.0:.1f} min")
    if watched.learner.changes is not None:
        print("changes named:", dict(watched.learner.changes.counts))
    curve(pushes, watched.samples)


def curve(pushes: list[Push], samples: list[tuple[float, Array]]) -> None:
    """Misses of 10 N and more, and alarms without a push, of fixed thresholds.

    They are in the deviations of each axis' errors before the first push.
    """
    times, external = (np.array(each) for each in zip(*samples, strict=True))
    before = external[(times > LEARN - USUAL_S) & (times <= LEARN)]
    sizes = np.nanmax(np.abs(external) / np.sqrt(np.nanmean(before**2, axis=0)), axis=1)
    calm = times > LEARN
    for push in pushes:
        calm &= ~((times > push.begin - 0.05) & (times < push.end + 0.6))
    hard = [push for push in pushes if push.size >= 10.0]
    for threshold in np.quantile(sizes[calm], (0.99, 0.999, 0.9999, 1.0)):
        beyond = calm & (sizes > threshold)
        alarms = int(np.sum(np.diff(times[beyond]) > 0.3) + beyond.any())
        missed = sum(
            not (sizes[(times > p.begin) & (times < p.end + 0.05)] > threshold).any() for p in hard
        )
        print(
            f"a fixed threshold of {threshold:.3g} deviations: {missed} of {len(hard)} missed, "
            f"{alarms} alarms without a push"
        )


def quiet(arm: ArmSimulator, watched: Watched, minutes: float, warming: float) -> None:
    """False alarms while nothing happens, but for friction that falls by a share `warming`."""
    friction = arm._friction
    cold = friction._coulomb, friction._stribeck, friction._viscous
    for measurement in simulated(arm, watched.learner.model.config.target):
        watched.take(measurement)
        left = 1.0 - warming * (1.0 - math.exp(-measurement.stamp * 1e-9 / WARM_S))
        friction._coulomb, friction._stribeck, friction._viscous = (left * part for part in cold)
        if measurement.stamp * 1e-9 >= LEARN + 60.0 * minutes:
            break


def told_in_quiet(watched: Watched) -> None:
    reported = [round(e.since * 1e-9, 2) for _, e in watched.events if e.kind == OVER]
    reported = [since for since in reported if since >= LEARN]
    minutes = (watched.samples[-1][0] - LEARN) / 60.0
    print(f"{len(reported)} contacts reported in {minutes:.1f} min: {reported}")


def again(files: list[Path]) -> None:
    """Misses, times and alarms of the detector at several thresholds, of what was kept."""
    kept = [dict(np.load(file)) for file in files]
    for file, of in zip(files, kept, strict=True):
        for alarm in without_push(begins(of, ChangesConfig().contact), of["pushes"]):
            print(f"{file.stem}: {alarm_of(alarm, of)}")
    for threshold in THRESHOLDS:
        delays: list[float] = []
        hard: list[bool] = []
        minutes, alarms = 0.0, 0
        for of in kept:
            found = begins(of, threshold)
            begun = np.array([alarm.at for alarm in found])
            for begin, end, size in of["pushes"]:
                during = (begun > begin) & (begun < end + 0.05)
                delays.append(1e3 * (begun[during][0] - begin) if during.any() else np.nan)
                hard.append(size >= 10.0)
            alarms += len(without_push(found, of["pushes"]))
            minutes += float(of["shown"][-1, 0] - of["shown"][0, 0]) / 60.0
        seen = np.array(delays)[np.array(hard, dtype=bool)]
        known = seen[np.isfinite(seen)]
        reported = ""
        if len(known):
            median, most = np.percentile(known, (50, 95))
            reported = f"{len(known)} of {len(seen)} of 10 N seen, {median:.0f} and {most:.0f} ms; "
        print(f"changes.contact {threshold:g}: {reported}{alarms} alarms in {minutes:.1f} min")


class Alarm(NamedTuple):
    at: float  # s
    axis: int  # the number of axes: all together
    limit: float  # that it exceeded there, in standard deviations


def begins(kept: dict[str, Array], threshold: float) -> list[Alarm]:
    """The beginnings of contacts, detected in kept samples."""
    n = len(kept["scales"])
    detector = ContactDetector(ChangesConfig(contact=threshold), kept["scales"], by_speed=True)
    reported = []
    for second, tested, confidence, *values, cutoff in kept["shown"].tolist():
        stamp, (error, speeds, expected) = round(second * 1e9), np.array(values).reshape(3, n)
        sample = stamp, error, confidence, speeds, expected
        if detector.add(*sample, cutoff=cutoff, tested=bool(tested)) == "begins":
            reported.append(Alarm(second, int(detector.nearest["axis"]), detector.threshold))
    return reported


def without_push(reported: list[Alarm], pushes: Array) -> list[Alarm]:
    return [a for a in reported if not any(b < a.at < end + 0.05 for b, end, _ in pushes)]


def alarm_of(alarm: Alarm, kept: dict[str, Array]) -> str:
    """An alarm's axis, and the joints that reversed shortly before."""
    shown, n = kept["shown"], len(kept["scales"])
    times = shown[:, 0]
    before = slice(*np.searchsorted(times, (alarm.at - TURNED_S, alarm.at)))
    turned = []
    for joint, speeds in enumerate(shown[before, 3 + n : 3 + 2 * n].T):
        turns = np.flatnonzero(np.diff(np.sign(speeds)))
        if len(turns):
            turned.append(f"{joint} {1e3 * (alarm.at - times[before][turns[-1]]):.0f} ms")
    axis = "all" if alarm.axis == n else f"axis {alarm.axis}"
    joints = ", ".join(turned) or "none"
    return f"{alarm.at:.2f} s, {axis} beyond {alarm.limit:.1f}; turned round before: {joints}"


def logs(data: Path) -> None:
    """False alarms on recordings of real arms that nothing touched."""
    total = 0.0
    for name in LOGS:
        for split in log_splits(data, [name]):
            model = RobotModel(split.urdf, split.config.robot)
            watched = Watched(InverseDynamicsLearner(model, split.config))
            log: list[Measurement] = []
            for part in (*split.train, split.test):
                log += measurements(part, model, split.config)
            for measurement in log:
                watched.take(measurement)
            total += told_of(name, watched, log)
    print(f"{total / 60.0:.1f} min in all")


def told_of(name: str, watched: Watched, log: list[Measurement]) -> float:
    steps = np.diff([m.stamp for m in log]) * 1e-9
    seconds = float(steps[(steps > 0.0) & (steps < 1.0)].sum())
    over = [event for _, event in watched.events if event.kind == OVER]
    reported = [
        f"{e.since * 1e-9:.1f} s, {e.deviation:.2g} times its threshold for {e.seconds:.2f} s"
        for e in over
    ]
    print(f"{name}: {len(reported)} contacts reported in {seconds:.0f} s: {reported}")
    return seconds


if __name__ == "__main__":
    main()
