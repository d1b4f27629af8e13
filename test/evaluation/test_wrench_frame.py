"""Wrenches of another frame than the sensor's are refused offline as they are live."""

from __future__ import annotations

from pathlib import Path

import pytest

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.errors import BagError
from semiparam_dynamics.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.parameters import replace
from semiparam_dynamics.robot.model import RobotModel, message_checks
from semiparam_dynamics.samples.bag import read_measurements
from semiparam_dynamics.samples.bag_writer import write_measurements

from ..dynamics.arms import URDF, measurements

CONFIG = replace(
    InverseDynamicsConfig(),
    **{"target": "wrench", "sensor_frame": "boom_sensor", "filter.cutoff": 5.0},
)


@pytest.fixture(scope="module")
def model() -> RobotModel:
    return RobotModel(URDF, CONFIG.robot)


def bag(folder: Path, model: RobotModel, frame: str) -> Path:
    recording = measurements(model, 2.0)
    write_measurements(folder / "bag", model.joint_names, recording, "wrench", wrench_frame=frame)
    return folder / "bag"


@pytest.mark.parametrize("frame", ["boom", "/boom_sensor", ""])
def test_the_sensor_s_frame_has_several_names(tmp_path, model, frame) -> None:
    path = bag(tmp_path, model, frame)
    given = read_measurements(path, model.joint_names, "wrench", **message_checks(model))
    assert not given.dropped
    assert all(m.y is not None for m in given.measurements)


def test_another_frame_is_refused_and_the_sentence_says_what_to_do(tmp_path, model) -> None:
    path = bag(tmp_path, model, "flange")
    with pytest.raises(BagError, match="'flange', not 'boom_sensor'.*samples.wrench_frames"):
        evaluate_bags(Bags(test=[path], urdf=URDF), CONFIG)
    named = replace(CONFIG, **{"samples.wrench_frames": ("flange",)})
    assert not evaluate_bags(Bags(test=[path], urdf=URDF), named).skipped
