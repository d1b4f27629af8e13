"""Evaluation of bags: the robot and its sensor found in them where they are not given."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.base.errors import BagError, RobotModelError, listing
from semiparam_dynamics.base.parameters import parameters, replace, to_flat
from semiparam_dynamics.base.storage import saved_header
from semiparam_dynamics.dynamics.sample import Sample, seconds_of
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import LOCKED
from semiparam_dynamics.offline.doctor.messages import (
    LITTLE_MOTION,
    MIN_GAP,
    MIN_MISSING_SHARE,
    read_description,
    stamp_findings,
)
from semiparam_dynamics.offline.evaluation.experiment import (
    CoveredTime,
    Evaluation,
    Filtered,
    NothingScoredError,
    Origin,
    RecordingOrigin,
    evaluate,
)
from semiparam_dynamics.robot.model import RobotModel, message_checks, told_of_urdf
from semiparam_dynamics.robot.urdf import (
    UrdfTree,
    different_dynamics,
    locked_positions,
    parse_urdf,
    positions_told,
    read_urdf,
)
from semiparam_dynamics.samples.bag import WRENCH, BagReader, Recording
from semiparam_dynamics.samples.joint_names import (
    first_positions,
    joints_together,
    naming_remedy,
    whole_messages,
    without_strays,
)
from semiparam_dynamics.samples.joint_states import JOINT_STATE
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.samples.stream import MOVED, OTHER_FRAME, MeasurementStream

READING_SHARE = 0.25  # of what reading and learning takes together: reading alone
TOLD_EVERY = 256  # measurements, between two calls of progress
MAX_STAMPS = 1 << 20  # that are judged together: their faults are shares of them
MIN_READINGS = 50  # of which some may be left out as stuck: fewer are not judged
KEPT_STATES = 16  # of a recording, that identify it
MAX_INCOMPLETE_SHARE = 0.01  # of a bag's joint states: what more of them lack is a warning
# Reasons of `MeasurementStream.dropped` that `semiparam doctor` names and measures.
BAD_STAMPS = ("zero stamp", "out of order", "clock jumped")
STUCK_REASONS = ("effort stuck", "wrench stuck")


@dataclass(frozen=True)
class Bags:
    """The bags that are read, and their topics."""

    test: Sequence[str | Path]
    train: Sequence[str | Path] = ()
    urdf: str | Path = ""  # file; empty: the robot_description in the first bag
    joint_states: str = ""  # topic; empty: the only one of its type, or with efforts
    wrench: str = ""
    warnings: list[str] = field(default_factory=list)  # what could not be read, once it was tried
    doubts: list[str] = field(default_factory=list)  # which of them the doctor should look at
    command: str = ""  # that asked for them, for results.json


def evaluate_bags(
    bags: Bags,
    config: InverseDynamicsConfig,
    progress: Callable[[float], None] = lambda share: None,
    *,
    start: str | Path = "",
) -> Evaluation:
    """Evaluate the learner on bags; `start` is a saved model that it resumes from.

    A wrench target without a `sensor_frame` takes the frame that the wrench messages name, and
    no `joints` are those of the URDF that the joint states have. The bags are read as streams, by
    the thread that learns: reading holds Python's lock, so that another would gain nothing.
    Raises BagError, RobotModelError or ConfigurationError with what is missing.
    """
    model, config = robot_of(bags, config, start)
    if start and (others := differences(start, config)):
        bags.warnings.append(f"{start} was learned under {', '.join(others)}")
    only_read = () if bags.train or start else bags.test  # for its time, before it is learned
    shares = [READING_SHARE] * len(only_read) + [1.0] * (len(bags.train) + len(bags.test))
    told = in_turn(progress, shares)
    train, test = (
        [BagToRead(path, bags, model, config, told) for path in paths]
        for paths in (bags.train, bags.test)
    )
    try:
        with threadpool_limits(limits=1):  # as in the node; products are too small to be spread
            evaluation = evaluate(model, config, test, train, start=start)
    except NothingScoredError as error:
        if any(bag.facts.measured for bag in test):
            raise
        counts = sum((bag.recording.dropped for bag in test), Counter[str]())
        why = ", ".join(f"{count} times {reason}" for reason, count in counts.items())
        why += "".join(f"; {warning}" for warning in bags.warnings)
        what = f"no joint state comes with a measured {config.robot.target}"
        raise BagError(f"{what}: {why}") from error
    for bag in test:
        evaluation.skipped.update(bag.recording.dropped)
    evaluation.received = sum(max(b.recording.received.values(), default=0) for b in test)
    evaluation.tested_on = tuple(Path(path).name for path in bags.test)
    evaluation.trained_on = tuple(Path(path).name for path in bags.train)
    evaluation.doubts = tuple(dict.fromkeys(bags.doubts))  # a bag may be learned and scored
    evaluation.command = bags.command
    evaluation.origin = Origin(
        tested=tuple(bag.facts.origin() for bag in test),
        trained=tuple(bag.facts.origin() for bag in train),
        urdf=str(bags.urdf or read_description((*bags.train, *bags.test))[0]),
        urdf_sha256=model.urdf_sha256,
        model=str(start),
    )
    return evaluation


def differences(start: str | Path, config: InverseDynamicsConfig) -> list[str]:
    """List the parameters under which the saved model `start` was learned differently.

    Live parameters are meant to differ, and others are part of the model's identity, so that it is
    not loaded. Raises DamagedModelError where there is no whole file.
    """
    there = saved_header(start)[1]
    here = json.loads(json.dumps(to_flat(config)))
    return [
        f"{entry.name} {there[entry.name]} (here {here[entry.name]})"
        for entry in parameters(InverseDynamicsConfig)
        if not entry.live
        and entry.name != "joints"  # those that are learned are kept, chosen or not
        and there.get(entry.name, here[entry.name]) != here[entry.name]
    ]


def robot_of(
    bags: Bags, config: InverseDynamicsConfig, start: str | Path = ""
) -> tuple[RobotModel, InverseDynamicsConfig]:
    """The robot that bags are of, and the configuration with its joints and sensor frame.

    Joints that are not learned are locked where they are published first, or where they were in
    the saved model `start` if that is near. Where no URDF is named the first bag's is used for all,
    see `bags.warnings`. Raises BagError where the joints of one are others.
    """
    urdf = bags.urdf or read_description((*bags.train, *bags.test))[1]
    tree = parse_urdf(read_urdf(urdf))
    _check_descriptions(bags, tree)
    with BagReader((*bags.train, *bags.test)[0]) as bag:
        messages = bag.first_joint_states(bag.choose(JOINT_STATE, bags.joint_states))
        if config.robot.target == "wrench" and not config.robot.sensor_frame:
            for _, first, _ in islice(bag.messages([bag.choose(WRENCH, bags.wrench)]), 1):
                config = replace(config, sensor_frame=first.header.frame_id.lstrip("/"))
    published = first_positions(messages, tree.joints)
    config = _with_joints(bags, tree, messages, published, config)
    before = saved_header(start)[1].get(LOCKED) if start else None
    joints = config.robot.joints or tree.actuated()
    locked = locked_positions(tree, [j for j in joints if j in tree.joints], published, before)
    if locked:
        bags.warnings.append(f"locked at its published position: {positions_told(locked)}")
    model = RobotModel(urdf, config.robot, locked=locked)
    bags.warnings.extend(told_of_urdf(model))
    return model, config


def in_turn(progress: Callable[[float], None], parts: Sequence[float]) -> Callable[[float], None]:
    """A function to be called with the share done of one part of the work after the other.

    parts: what each costs. The share 1 ends one.
    """
    done, total = 0, sum(parts)

    def read(share: float) -> None:
        nonlocal done
        if done < len(parts):
            progress((sum(parts[:done]) + share * parts[done]) / total)
        done += share == 1.0

    return read


class BagToRead:
    """A bag's measurements in order, read anew by each iteration, whose `facts` are of the last.

    What is to be said of the bag is put into `bags` at the end of the first one. An iteration
    raises BagError where the bag can't be read, or what is measured never varies.
    """

    def __init__(
        self,
        path: str | Path,
        bags: Bags,
        model: RobotModel,
        config: InverseDynamicsConfig,
        progress: Callable[[float], None] = lambda share: None,
    ) -> None:
        self._bags, self._model, self._config, self._progress = bags, model, config, progress
        self.recording = Recording(
            path,
            model.joint_names,
            config.robot.target,
            config.samples,
            joint_states_topic=bags.joint_states,
            wrench_topic=bags.wrench,
            **message_checks(model),
        )
        self.facts = BagFacts(self.recording)
        self._told = False

    def __iter__(self) -> Iterator[Measurement]:
        self.facts = facts = BagFacts(self.recording)
        for measurement in self.recording:
            facts.add(measurement)
            if facts.count % TOLD_EVERY == 0:
                self._progress(min(self.recording.share, 0.999))
            yield measurement
        self._progress(1.0)
        if not self._told:
            self._tell()
            self._told = True
        facts.check_varies(self._model.axes, self._config.robot.target)

    def _tell(self) -> None:
        recording, bags = self.recording, self._bags
        often = MAX_INCOMPLETE_SHARE * recording.received["joint states"]
        for reason, told in recording.details.items():
            lost = reason in MeasurementStream.INCOMPLETE and recording.dropped[reason] > often
            if lost or reason in (OTHER_FRAME, MOVED):
                bags.warnings.append(f"{recording.path}: {told}")
        bags.warnings.extend(recording.warnings)
        if faults := self.facts.faults():
            command = _doctor(recording.path, bags, self._config)
            bags.doubts.append(
                f"{recording.path} has faults ({listing(faults)}): {command} shows how large they "
                "are and what to do."
            )


class BagFacts:
    """Facts of a recording's measurements, kept as they pass in little memory.

    count: measurements until now. measured: whether one of them had efforts or a wrench.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.count, self.measured, self._varies = 0, False, False
        self._begin = self._end = self._gaps = self._read = 0
        self._low = self._high = np.zeros(0)
        self._stamps, self._kinds = array("q"), dict[str, None]()
        self._stride = 1
        self._states: list[Array] = []

    def add(self, m: Measurement) -> None:
        """Take in the next measurement."""
        if not self.count:
            self._begin = m.stamp
            self._stride = max(self._recording.messages // KEPT_STATES, 1)
        if self.count % self._stride == 0:
            self._states.append(m.q)
        self._end = m.stamp
        self.count += 1
        self._stamps.append(m.stamp)
        if len(self._stamps) == MAX_STAMPS:
            self._look_at_stamps()
        if m.y is not None and not self._varies:
            self._low = np.fmin(self._low, m.y) if self.measured else m.y
            self._high = np.fmax(self._high, m.y) if self.measured else m.y
            self._read, self.measured = self._read + 1, True
            self._varies = bool((self._high > self._low).any())

    def _look_at_stamps(self) -> None:
        stamps = np.array(self._stamps)
        self._gaps += int(np.count_nonzero(np.diff(stamps) > MIN_GAP * SECOND))
        self._kinds |= {finding.kind: None for finding in stamp_findings(stamps) if finding.fault}
        self._stamps = self._stamps[-1:]  # the step to the next one counts, too

    def faults(self) -> list[str]:
        """Faults of the stamps, and of sensors that stick, in the words that count them."""
        self._look_at_stamps()
        dropped = self._recording.dropped
        # A single gap is such as between two motions.
        kinds = [kind for kind in self._kinds if kind != "gaps" or self._gaps != 1]
        kinds += [f"{reason}: {dropped[reason]}" for reason in BAD_STAMPS if dropped[reason]]
        most = MIN_MISSING_SHARE * self._recording.received["joint states"]
        if dropped["repeated stamp"] > most:
            kinds.append(f"repeated stamp: {dropped['repeated stamp']}")
        return kinds + [f"{why}: {dropped[why]}" for why in STUCK_REASONS if dropped[why]]

    def check_varies(self, axes: Sequence[str], target: str) -> None:
        """Raise BagError where the readings are constant on every axis that is measured."""
        there = np.flatnonzero(np.isfinite(self._low)).tolist()
        if self._varies or self.count < MIN_READINGS or self._read < 2 or not there:
            return
        # Adding 0 makes -0 a 0.
        told = listing([f"{axes[k]} {self._low[k] + 0.0:g}" for k in there])
        what = "effort" if target == "effort" else "axis of the wrench"
        raise BagError(
            f"every {what} in {self._recording.path} is always the same ({told}): nothing can be "
            "learned from it; look whether the driver measures it at all"
        )

    def origin(self) -> RecordingOrigin:
        """Identification of the measurements in results."""
        positions = np.round(self._states, 9) + 0.0  # no negative zeros
        states = hashlib.sha256(positions.tobytes()).hexdigest()[:16]
        seconds = (self._end - self._begin) * 1e-9
        return RecordingOrigin(str(self._recording.path), self._begin, seconds, self.count, states)


def _doctor(path: str | Path, bags: Bags, config: InverseDynamicsConfig) -> str:
    """The command that examines a bag as it is read here."""
    options = {"--urdf": bags.urdf, "--joint-states": bags.joint_states}
    if config.robot.target == "wrench":
        options |= {"--target": "wrench", "--wrench": bags.wrench}
    given = [part for name, value in options.items() if value for part in (name, str(value))]
    return f"`{shlex.join(['semiparam', 'doctor', str(path), *given])}`"


def samples_of(
    paths: Sequence[str | Path],
    bags: Bags,
    model: RobotModel,
    config: InverseDynamicsConfig,
    progress: Callable[[float], None] = lambda share: None,
    hold_out: float = 0.0,
) -> Iterator[tuple[int, bool, Sample]]:
    """Bags' samples in order, each with its bag's number, and whether it is held out.

    hold_out : the last share of the time of each bag, which is read twice then.
    """
    gap = config.filter.max_gap
    done = in_turn(progress, ([READING_SHARE, 1.0] if hold_out else [1.0]) * len(paths))
    read = [BagToRead(path, bags, model, config, done) for path in paths]
    for number, bag in enumerate(read):
        border = math.inf
        if hold_out:
            border = (1.0 - hold_out) * CoveredTime(gap, (m.stamp for m in bag)).total
        for sample, elapsed, _ in Filtered(model, config.filter, bag):
            yield number, elapsed > border, sample


def _check_descriptions(bags: Bags, tree: UrdfTree) -> None:
    """Warn of bags whose URDF has other dynamics than `tree`; BagError where its joints differ."""
    if bags.urdf:
        return
    first, used = "", ""
    for path in dict.fromkeys(map(str, (*bags.train, *bags.test))):
        with BagReader(path) as bag:
            text = bag.robot_description()
        if text is None or text == used:
            continue
        if not used:
            first, used = path, text
            continue
        try:
            other = parse_urdf(text)
        except RobotModelError as error:
            told = f"{path} holds a robot_description that can't be used ({error}): that of {first}"
            bags.warnings.append(f"{told} is used")
            continue
        if joints := sorted(set(tree.actuated()) ^ set(other.actuated())):
            raise BagError(
                f"{first} and {path} are of different robots: only one of their robot_descriptions "
                f"has {listing(joints)}: name the right URDF with --urdf, or leave one of them out"
            )
        if changed := different_dynamics(tree, other):
            bags.warnings.append(
                f"{path} holds another robot_description, which differs in {listing(changed)}: "
                f"that of {first} is used for all bags; name the right one with "
                "--urdf, or leave the bag out"
            )


def _with_joints(
    bags: Bags,
    tree: UrdfTree,
    messages: Sequence[Any],
    published: Mapping[str, float],
    config: InverseDynamicsConfig,
) -> InverseDynamicsConfig:
    if config.robot.joints:
        return config
    actuated = tree.actuated()
    lists = without_strays(m.name for m in whole_messages(messages))
    there = joints_together(tree, lists, actuated)
    named = [name for message in messages for name in message.name]
    if not there and (remedy := naming_remedy(named, actuated)):
        raise BagError(f"no joint state names a joint of the URDF: {remedy}")
    if not there or there == actuated:
        return config
    others = [name for name in actuated if name not in there and name not in published]
    told = f"; taken to stand at 0: {', '.join(others)}" if others else ""
    bags.warnings.append(
        f"the URDF has {len(actuated)} joints, the bag {len(there)} of them, which are learned: "
        f"{', '.join(there)}{told}"
    )
    return replace(config, joints=there)


MIN_MOTION_S = 1.5  # s: in less hardly a parameter shows
MORE = "record a minute or more of varied motion (semiparam excite finds one)"


def check_motion(stamps: Sequence[int]) -> str:
    """Raise BagError where samples, by their stamps (ns), show too little motion to learn from.

    Where it is little, the answer is a warning; else it is empty.
    """
    seconds = seconds_of(np.array(stamps, dtype=np.int64))
    if seconds < MIN_MOTION_S:
        raise BagError(
            f"{len(stamps)} samples in {seconds:.1f} s of motion are too few, "
            f"{MIN_MOTION_S:g} s are needed at least: {MORE}"
        )
    if seconds < LITTLE_MOTION:
        return f"the arm moves for {seconds:.1f} s only, so that little is known of it: {MORE}"
    return ""
