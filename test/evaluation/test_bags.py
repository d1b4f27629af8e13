"""Several bags at once against the same recordings in memory; wrenches of another frame."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.errors import BagError
from semiparam_dynamics.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.evaluation.experiment import evaluate
from semiparam_dynamics.parameters import from_flat, replace
from semiparam_dynamics.robot.model import RobotModel, message_checks
from semiparam_dynamics.samples.bag import read_measurements
from semiparam_dynamics.samples.bag_writer import write_measurements
from semiparam_dynamics.samples.measurement import Measurement

from ..dynamics.arms import URDF, measurements, small_arm

CONFIG = from_flat(InverseDynamicsConfig, {"nystrom.window": 1.0})
WRENCH = replace(
    InverseDynamicsConfig(),
    **{"target": "wrench", "sensor_frame": "boom_sensor", "filter.cutoff": 5.0},
)
SEEDS = {"zulu": 0, "alpha": 1, "mike": 2}


def motion(name: str) -> list[Measurement]:
    return list(measurements(small_arm(), 3.0, extra=1.0, seed=SEEDS[name]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bags")
    for name in SEEDS:
        write_measurements(path / name, small_arm().joint_names, motion(name), "effort")
    return path


def test_bags_are_gone_through_in_the_order_they_are_named(folder: Path) -> None:
    errors = []
    for order in (("zulu", "alpha", "mike"), ("mike", "zulu", "alpha")):
        found = evaluate_bags(Bags([folder / name for name in order], urdf=URDF), CONFIG)
        expected = evaluate(small_arm(), CONFIG, [motion(name) for name in order])
        assert found.tested_on == order
        assert found.samples == expected.samples
        for protocol, scores in expected.scores().items():
            for model in ("rigid_body", "semiparametric"):
                np.testing.assert_array_equal(
                    found.scores()[protocol].rmse(model), scores.rmse(model), err_msg=protocol
                )
        errors.append(found.scores()["sequential"].rmse("semiparametric"))
    assert np.all(errors[0] != errors[1])  # the order counts


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
    with pytest.raises(BagError, match="no joint state .* measured effort: 300 times no effort"):
        evaluate_bags(Bags([tmp_path / "bag"], urdf=URDF), CONFIG)


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
