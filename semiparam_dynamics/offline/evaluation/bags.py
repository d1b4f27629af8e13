"""Evaluation of bags: the robot and its sensor found in them where they are not given."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.base.errors import BagError, RobotModelError, listing
from semiparam_dynamics.base.parameters import parameters, replace, to_flat
from semiparam_dynamics.base.storage import saved_header
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.sample import Sample, seconds_of
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import LOCKED
from semiparam_dynamics.offline.doctor.joint_log import read_description
from semiparam_dynamics.offline.doctor.messages import (
    LITTLE_MOTION,
    MIN_GAP,
    MIN_MISSING_SHARE,
    stamp_findings,
)
from semiparam_dynamics.offline.evaluation.experiment import Evaluation, Origin, Recording, evaluate
from semiparam_dynamics.robot.model import RobotModel, message_checks, told_of_urdf
from semiparam_dynamics.robot.urdf import (
    UrdfTree,
    different_dynamics,
    locked_positions,
    parse_urdf,
    positions_told,
    read_urdf,
)
from semiparam_dynamics.samples.bag import WRENCH, BagReader, read_measurements
from semiparam_dynamics.samples.bag import Recording as BagRecording
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
    no `joints` are those of the URDF that the joint states have. The bags are gone through in
    order and read one after the other: reading takes a quarter of what learning does, and holds
    Python's lock, so that a thread would gain nothing.
    Raises BagError, RobotModelError or ConfigurationError with what is missing.
    """
    model, config = robot_of(bags, config, start)
    if start and (others := differences(start, config)):
        bags.warnings.append(f"{start} was learned under {', '.join(others)}")
    dropped: Counter[str] = Counter()
    train = [measurements_of(path, bags, model, config, dropped) for path in bags.train]
    dropped.clear()  # the results are of the test bags
    received: list[int] = []
    test = [measurements_of(path, bags, model, config, dropped, received) for path in bags.test]
    if all(m.y is None for recording in test for m in recording):
        why = ", ".join(f"{count} times {reason}" for reason, count in dropped.items())
        told = "".join(f"; {warning}" for warning in bags.warnings)
        raise BagError(f"no joint state comes with a measured {config.robot.target}: {why}{told}")
    with threadpool_limits(limits=1):  # a sample's products are too small to be spread
        evaluation = evaluate(model, config, test, train, progress, start=start)
    evaluation.skipped.update(dropped)
    evaluation.received = sum(received)
    evaluation.tested_on = tuple(Path(path).name for path in bags.test)
    evaluation.trained_on = tuple(Path(path).name for path in bags.train)
    evaluation.doubts = tuple(dict.fromkeys(bags.doubts))  # a bag may be learned and scored
    evaluation.command = bags.command
    evaluation.origin = Origin(
        tested=tuple(map(_recording, bags.test, test)),
        trained=tuple(map(_recording, bags.train, train)),
        urdf=str(bags.urdf or read_description((*bags.train, *bags.test))[0]),
        urdf_sha256=model.urdf_sha256,
        model=str(start),
    )
    return evaluation


def differences(start: str | Path, config: InverseDynamicsConfig) -> list[str]:
    """List the parameters under which the saved model `start` was learned differently.

    Its numbers mean something else then, such as under another filter. Live parameters are meant to
    differ; others are part of the model's identity, so that it is not loaded. Raises
    DamagedModelError where there is no whole file.
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
    the saved model `start` if that is near. Where no URDF is named the first bag's is used for all:
    bags that hold another one are named in `bags.warnings`. Raises BagError where the joints of one
    are others.
    """
    urdf = bags.urdf or read_description((*bags.train, *bags.test))[1]
    tree = parse_urdf(read_urdf(urdf))
    _check_descriptions(bags, tree)
    with BagReader((*bags.train, *bags.test)[0]) as bag:
        messages = bag.first_joint_states(bag.choose(JOINT_STATE, bags.joint_states))
    published = first_positions(messages, tree.joints)
    config = _with_joints(bags, tree, messages, published, _with_sensor_frame(bags, config))
    before = saved_header(start)[1].get(LOCKED) if start else None
    joints = config.robot.joints or tree.actuated()
    locked = locked_positions(tree, [j for j in joints if j in tree.joints], published, before)
    if locked:
        bags.warnings.append(f"locked at its published position: {positions_told(locked)}")
    model = RobotModel(urdf, config.robot, locked=locked)
    bags.warnings.extend(told_of_urdf(model))
    return model, config


def measurements_of(
    path: str | Path,
    bags: Bags,
    model: RobotModel,
    config: InverseDynamicsConfig,
    dropped: Counter[str],
    received: list[int] | None = None,
) -> list[Measurement]:
    """A bag's measurements in order; what could not be read is counted in `dropped`.

    `received` is given the number of its messages, of the topic that has most. Raises BagError
    where it can't be read, or what is measured never varies.
    """
    recording = read_measurements(
        path,
        model.joint_names,
        config.robot.target,
        config.samples,
        joint_states_topic=bags.joint_states,
        wrench_topic=bags.wrench,
        **message_checks(model),
    )
    often = MAX_INCOMPLETE_SHARE * recording.received["joint states"]
    for reason, told in recording.details.items():
        lost = reason in MeasurementStream.INCOMPLETE and recording.dropped[reason] > often
        if lost or reason in (OTHER_FRAME, MOVED):
            bags.warnings.append(f"{path}: {told}")
    dropped.update(recording.dropped)
    if received is not None:
        received.append(max(recording.received.values(), default=0))
    bags.warnings.extend(recording.warnings)
    if faults := _faults(recording):
        bags.doubts.append(
            f"{path} has faults ({listing(faults)}): {_doctor(path, bags, config)} shows how "
            "large they are and what to do."
        )
    check_varies(path, recording.measurements, model.axes, config.robot.target)
    return recording.measurements


def _faults(recording: BagRecording) -> list[str]:
    """Faults of a recording's stamps, and of sensors that stick, in the words that count them."""
    stamps = np.array([m.stamp for m in recording.measurements], dtype=np.int64)
    dropped, most = recording.dropped, MIN_MISSING_SHARE * recording.received["joint states"]
    kinds = [finding.kind for finding in stamp_findings(stamps) if finding.fault]
    if np.count_nonzero(np.diff(stamps) > MIN_GAP * SECOND) == 1:  # such as between two motions
        kinds = [kind for kind in kinds if kind != "gaps"]
    kinds += [f"{reason}: {dropped[reason]}" for reason in BAD_STAMPS if dropped[reason]]
    if dropped["repeated stamp"] > most:
        kinds.append(f"repeated stamp: {dropped['repeated stamp']}")
    return kinds + [f"{reason}: {dropped[reason]}" for reason in STUCK_REASONS if dropped[reason]]


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
) -> Iterator[tuple[int, Sequence[Measurement], Sample]]:
    """Bags' samples, each with its bag's number and measurements."""
    for k, path in enumerate(paths):
        measurements = measurements_of(path, bags, model, config, Counter())
        sampler = SampleFilter(model, config.filter)
        for i, sample in enumerate(sampler.filter_recording(measurements)):
            yield k, measurements, sample
            if i % 100 == 0:
                progress((k + i / len(measurements)) / len(paths))


def _descriptions(bags: Bags) -> Iterator[tuple[str | Path, str]]:
    """The bags that hold a URDF, in order, each with its text."""
    for path in dict.fromkeys((*bags.train, *bags.test)):
        with BagReader(path) as bag:
            text = bag.robot_description()
        if text is not None:
            yield path, text


def _check_descriptions(bags: Bags, tree: UrdfTree) -> None:
    """Warn of bags whose URDF has other dynamics than `tree`, of the first bag that holds one.

    One URDF is used for all bags. Raises BagError where the joints of another differ.
    """
    if bags.urdf:
        return
    (first, used), *others = _descriptions(bags)
    for path, text in others:
        if text == used:
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


def _recording(path: str | Path, measurements: Sequence[Measurement]) -> Recording:
    begin, end = (measurements[k].stamp for k in (0, -1)) if measurements else (0, 0)
    chosen = measurements[:: max(len(measurements) // 16, 1)]
    positions = np.round([m.q for m in chosen], 9) + 0.0  # no negative zeros
    states = hashlib.sha256(positions.tobytes()).hexdigest()[:16]
    return Recording(str(path), begin, (end - begin) * 1e-9, len(measurements), states)


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


def _with_sensor_frame(bags: Bags, config: InverseDynamicsConfig) -> InverseDynamicsConfig:
    if config.robot.target != "wrench" or config.robot.sensor_frame:
        return config
    with BagReader((*bags.train, *bags.test)[0]) as bag:
        messages = [m for _, m, _ in islice(bag.messages([bag.choose(WRENCH, bags.wrench)]), 1)]
    frame = messages[0].header.frame_id.lstrip("/") if messages else ""
    return replace(config, sensor_frame=frame)


# -------------------------------------------------------------------------------------------------
# Recordings that nothing can be learned from, refused by one rule for all commands.

MIN_MOTION = 1.5  # s: in less hardly a parameter shows
MIN_READINGS = 50  # of which some may be left out as stuck: fewer are not judged
MORE = "record a minute or more of varied motion (semiparam excite finds one)"


def check_varies(
    path: str | Path, measurements: Sequence[Measurement], axes: Sequence[str], target: str
) -> None:
    """Raise BagError where a bag's readings are constant on every axis that is measured."""
    rows = [m.y for m in measurements if m.y is not None]
    if len(measurements) < MIN_READINGS or len(rows) < 2:
        return
    y = np.array(rows)
    measured = ~np.isnan(y)
    low = np.min(y, axis=0, where=measured, initial=np.inf)
    high = np.max(y, axis=0, where=measured, initial=-np.inf)
    there = np.flatnonzero(measured.any(axis=0)).tolist()
    if not there or (high > low).any():
        return
    # Adding 0 makes -0 a 0.
    told = listing([f"{axes[k]} {low[k] + 0.0:g}" for k in there])
    what = "effort" if target == "effort" else "axis of the wrench"
    raise BagError(
        f"every {what} in {path} is always the same ({told}): nothing can be learned from it; "
        "look whether the driver measures it at all"
    )


def check_motion(stamps: Sequence[int]) -> str:
    """Raise BagError where samples, by their stamps (ns), show too little motion to learn from.

    Where it is little, the answer is a warning; else it is empty.
    """
    seconds = seconds_of(np.array(stamps, dtype=np.int64))
    if seconds < MIN_MOTION:
        raise BagError(
            f"{len(stamps)} samples in {seconds:.1f} s of motion are too few, "
            f"{MIN_MOTION:g} s are needed at least: {MORE}"
        )
    if seconds < LITTLE_MOTION:
        return f"the arm moves for {seconds:.1f} s only, so that little is known of it: {MORE}"
    return ""
