"""Several bags at once against the same recordings in memory; wrenches of another frame."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.cli.main import main
from semiparam_dynamics.offline.evaluation.bags import (
    MIN_READINGS,
    BagFacts,
    Bags,
    BagToRead,
    check_motion,
    evaluate_bags,
    robot_of,
)
from semiparam_dynamics.offline.evaluation.experiment import evaluate
from semiparam_dynamics.offline.evaluation.report import warnings_of
from semiparam_dynamics.offline.evaluation.training import train_on_bags
from semiparam_dynamics.offline.identification.identify import identify_on_bags
from semiparam_dynamics.offline.tuning.tuner import tune_on_bags
from semiparam_dynamics.robot.model import RobotModel, message_checks
from semiparam_dynamics.samples.bag import Recording, read_measurements
from semiparam_dynamics.samples.bag_writer import BagWriter, write_measurements
from semiparam_dynamics.samples.measurement import Measurement

from ...dynamics.arms import URDF, measurements, small_arm
from .conftest import CONFIG

WRENCH = replace(
    InverseDynamicsConfig(),
    **{"target": "wrench", "sensor_frame": "boom_sensor", "filter.cutoff": 5.0},
)
SEEDS = {"zulu": 0, "alpha": 1, "mike": 2}


def motion(name: str) -> list[Measurement]:
    return list(measurements(small_arm(), 2.0, extra=1.0, seed=SEEDS[name]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bags")
    for name in SEEDS:
        write_measurements(path / name, small_arm().joint_names, motion(name), "effort")
    return path


def test_bags_are_gone_through_in_the_order_they_are_named(folder: Path) -> None:
    order = ("zulu", "alpha")  # neither that of their names nor of their stamps
    found = evaluate_bags(Bags([folder / name for name in order], urdf=URDF), CONFIG)
    assert found.tested_on == order
    expected = evaluate(small_arm(), CONFIG, [motion(name) for name in order])
    assert found.samples == expected.samples
    for protocol, scores in expected.scores().items():
        for model in ("rigid_body", "semiparametric"):
            np.testing.assert_array_equal(
                found.scores()[protocol].rmse(model), scores.rmse(model), err_msg=protocol
            )


def test_what_could_not_be_read_of_one_bag_is_said_and_the_others_count(folder, tmp_path) -> None:
    (file,) = (folder / "alpha").glob("*.mcap")
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    bags = Bags([folder / "zulu", broken, folder / "mike"], urdf=URDF)
    found = evaluate_bags(bags, CONFIG)
    whole = len(motion("zulu")) + len(motion("mike"))
    assert whole < found.samples < whole + len(motion("alpha"))
    assert len(bags.warnings) == 1 and str(broken) in bags.warnings[0]
    broken.write_bytes(b"")
    with pytest.raises(BagError, match="can't be read"):
        evaluate_bags(bags, CONFIG)


def test_joint_states_without_efforts_are_said_to_be_the_reason(tmp_path: Path) -> None:
    recording = [dataclasses.replace(m, y=None) for m in motion("alpha")]
    write_measurements(tmp_path / "bag", small_arm().joint_names, recording)
    with pytest.raises(BagError, match="no joint state .* measured effort: 200 times no effort"):
        evaluate_bags(Bags([tmp_path / "bag"], urdf=URDF), CONFIG)


def described(path: Path, urdf: str) -> Path:
    write_measurements(path, small_arm().joint_names, motion("zulu")[:50], robot_description=urdf)
    return path


TEXT = URDF.read_text()
HEAVY = TEXT.replace('<mass value="1.1"/>', '<mass value="2.2"/>')
# The limits of a joint, how a number is written and a frame without a mass are no other dynamics.
SAME = (
    TEXT.replace('effort="87"', 'effort="12"')
    .replace('<mass value="1.1"/>', '<mass value="1.10"/>')
    .replace(
        "</robot>",
        '<link name="tool"/><joint name="tool" type="fixed"><parent link="boom"/>'
        '<child link="tool"/></joint></robot>',
    )
)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (TEXT, ""),
        (SAME, ""),
        ("", ""),  # the bag holds none
        (HEAVY, "another robot_description, which differs in link 'boom': that of"),
        (TEXT.replace('xyz="0 1 0"', 'xyz="0 -1 0"'), "differs in joint 'lift': that of"),
        (TEXT.replace('xyz="0.05 0 0.3"', 'xyz="0.05 0 0.4"'), "differs in joint 'lift': that of"),
        ("<robot/>", "holds a robot_description that can't be used (the URDF has no links)"),
    ],
)
def test_a_bag_of_a_robot_with_other_dynamics_is_told(tmp_path: Path, other, told) -> None:
    assert HEAVY != TEXT != SAME
    one, two = described(tmp_path / "one", TEXT), described(tmp_path / "two", other)
    for bags in (Bags([one, two, two, one]), Bags([two], [one])):
        model, _ = robot_of(bags, CONFIG)
        assert model.urdf_text == TEXT
        assert len(bags.warnings) == bool(told)
        assert not told or (told in bags.warnings[0] and str(two) in bags.warnings[0])
        assert not told or f"that of {one} is used" in bags.warnings[0]
    named = Bags([one, two], urdf=URDF)
    robot_of(named, CONFIG)
    assert not named.warnings


def test_bags_of_robots_with_other_joints_are_refused(tmp_path: Path) -> None:
    one = described(tmp_path / "one", TEXT)
    two = described(tmp_path / "two", TEXT.replace('joint name="lift"', 'joint name="hoist"'))
    with pytest.raises(BagError, match=r"one and \S+two are of different .* has hoist and lift: "):
        robot_of(Bags([one, two]), CONFIG)
    robot_of(Bags([one, two], urdf=URDF), CONFIG)


@pytest.fixture(scope="module")
def sensor_model() -> RobotModel:
    return RobotModel(URDF, WRENCH.robot)


def bag(folder: Path, model: RobotModel, frame: str) -> Path:
    recording = measurements(model, 2.0)
    write_measurements(folder / "bag", model.joint_names, recording, "wrench", wrench_frame=frame)
    return folder / "bag"


@pytest.mark.parametrize("frame", ["boom", "/boom_sensor", ""])
def test_the_sensor_s_frame_has_several_names(tmp_path, sensor_model, frame) -> None:
    path = bag(tmp_path, sensor_model, frame)
    names, checks = sensor_model.joint_names, message_checks(sensor_model)
    given = read_measurements(path, names, "wrench", **checks)
    assert not given.dropped
    assert all(m.y is not None for m in given.measurements)


def test_another_frame_is_refused_and_the_sentence_says_what_to_do(tmp_path, sensor_model) -> None:
    path = bag(tmp_path, sensor_model, "flange")
    with pytest.raises(BagError, match="'flange', not 'boom_sensor'.*samples.wrench_frames"):
        evaluate_bags(Bags(test=[path], urdf=URDF), WRENCH)
    named = replace(WRENCH, **{"samples.wrench_frames": ("flange",)})
    assert not evaluate_bags(Bags(test=[path], urdf=URDF), named).skipped


def stamped(folder: Path, stamps: np.ndarray, recording: list[Measurement]) -> Path:
    """A bag whose messages came every 10 ms, with other stamps (ns) in them."""

    class Clocked(BagWriter):
        came = 1_000_000_000

        def _write(self, topic, kind, stamp, message, *options) -> None:
            super()._write(topic, kind, self.came, message, *options)
            self.came += 10_000_000

    names = small_arm().joint_names
    with Clocked(folder / "bag") as writer:
        for stamp, m in zip(stamps.tolist(), recording, strict=True):
            writer.joint_state(stamp, names, m.q, m.dq, m.y)
    return folder / "bag"


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("none", ""),
        ("uneven", "uneven stamps"),
        ("missing", "missing messages"),
        ("gap", ""),
        ("gaps", "gaps"),
        ("back", "out of order: 2"),
        ("zero", "zero stamp: 1"),
        ("stuck", "effort stuck: "),
    ],
)
def test_a_recording_with_faults_leads_to_the_doctor_who_names_them(tmp_path, fault, told) -> None:
    recording = list(measurements(small_arm(), 3.0))  # too short for more than the messages
    stamps = np.array([m.stamp for m in recording])
    if fault == "uneven":
        stamps = stamps + np.random.default_rng(0).integers(-2_000_000, 2_000_000, len(stamps))
    lost = {"missing": range(0, 300, 20), "gap": range(100, 150)}.get(fault, ())
    if fault == "gaps":
        lost = (*range(100, 150), *range(200, 230))
    stamps = np.delete(stamps, lost)
    recording = [m for k, m in enumerate(recording) if k not in lost]
    if fault == "back":
        stamps[150:] -= 100_000_000
    if fault == "zero":
        stamps[150] = 0
    if fault == "stuck":
        held = recording[80].y[2]
        for k in range(80, 280):
            y = recording[k].y.copy()
            y[2] = held
            recording[k] = dataclasses.replace(recording[k], y=y)
    path = stamped(tmp_path, stamps, recording)
    bags = Bags([path], urdf=URDF)
    assert len(list(BagToRead(path, bags, small_arm(), CONFIG))) > 150
    assert len(bags.doubts) == (told != "")
    for doubt in bags.doubts:
        assert doubt.startswith(f"{path} has faults (") and told in doubt
        command = shlex.split(doubt.split("`")[1])
        assert command == ["semiparam", "doctor", str(path), "--urdf", str(URDF)]
        assert main(command[1:]) == 1


def test_an_evaluation_warns_of_it_once_though_the_bag_is_learned_and_scored(tmp_path) -> None:
    recording = motion("alpha")
    del recording[60:90], recording[110:140]
    path = tmp_path / "bag"
    write_measurements(path, small_arm().joint_names, recording, "effort")
    evaluation = evaluate_bags(Bags([path], [path], urdf=URDF), CONFIG)
    (warning,) = (one for one in warnings_of(evaluation) if "semiparam doctor" in one)
    assert (warning,) == evaluation.doubts and "(gaps)" in warning


# Recordings that teach nothing are refused in one sentence by all that learns from bags.


def recorded(path: Path, seconds: float, efforts: Callable[[Any], Any]) -> Path:
    """The small arm's motion, with efforts made of its own."""
    model = small_arm()
    given = [dataclasses.replace(m, y=efforts(m.y)) for m in measurements(model, seconds)]
    write_measurements(path, model.joint_names, given, "effort", robot_description=URDF.read_text())
    return path


@pytest.mark.parametrize(
    ("learn", "value"),
    [
        (tune_on_bags, 1.25),
        (identify_on_bags, 1.25),
        (train_on_bags, 1.25),
        (evaluate_bags, 1.25),
        (evaluate_bags, -0.0),
    ],
)
def test_efforts_that_never_vary_are_refused(tmp_path, learn, value) -> None:
    path = recorded(tmp_path / "same", 6.0, lambda y: np.full(len(y), value))
    bags = Bags([path]) if learn is evaluate_bags else Bags((), [path])
    joint = small_arm().joint_names[0]
    with pytest.raises(BagError) as told:
        learn(bags, InverseDynamicsConfig())
    assert f"every effort in {path} is always the same ({joint} {value + 0.0:g}, " in str(
        told.value
    )


@pytest.mark.parametrize("learn", [identify_on_bags, train_on_bags])
def test_much_too_little_motion_is_refused_and_little_is_told(tmp_path, learn) -> None:
    with pytest.raises(BagError, match=r"samples in 0\.\d s of motion are too few, 1.5 s are"):
        learn(Bags((), [recorded(tmp_path / "blink", 0.8, lambda y: y)]), InverseDynamicsConfig())
    bags = Bags((), [recorded(tmp_path / "short", 5.0, lambda y: y)])
    learn(bags, InverseDynamicsConfig())
    assert [w for w in bags.warnings if "s only, so that little is known of it: record" in w]
    assert check_motion([20_000_000 * k for k in range(600)]) == ""


def check_varies(y: list[list[float]], target: str = "effort") -> None:
    facts = BagFacts(Recording("bag", ("a", "b")))
    for k, row in enumerate(y):
        facts.add(Measurement(10_000_000 * (k + 1), np.zeros(2), None, np.array(row)))
    facts.check_varies(("a", "b"), target)


def test_one_axis_that_varies_is_enough() -> None:
    nothing, n = float("nan"), MIN_READINGS
    for row, other in (([0.0, 1.0], [0.0, 2.0]), ([nothing, 1.0], [nothing, 2.0])):
        check_varies([row] * n + [other])
    check_varies([[0.0, 0.0]] * (n - 1))  # too few to tell
    check_varies([[nothing, nothing]] * n)  # told elsewhere
    with pytest.raises(BagError, match=r"every axis of the wrench in bag is always .*\(b 3\)"):
        check_varies([[nothing, 3.0]] * n, "wrench")
