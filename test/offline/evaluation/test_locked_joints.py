"""Bags of an arm on a torso that is published and not learned: locked, and told when it moves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.offline.evaluation.bags import Bags, evaluate_bags, robot_of
from semiparam_dynamics.samples.bag_writer import BagWriter, write_measurements
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.samples.stream import MOVED

from ...dynamics.arms import FEW_CENTERS
from ...robot.standing_arm import FOLLOWING, LEARNED, URDF, model, moving

CONFIG = from_flat(InverseDynamicsConfig, {"nystrom.window": 1.0, "joints": LEARNED} | FEW_CENTERS)
NAMES = ("tilt", *LEARNED)


def with_tilt(
    measurements: Iterable[Measurement], tilt: Callable[[float], float]
) -> list[Measurement]:
    """The torso's angle, by the time in s, before the others'."""
    return [
        dataclasses.replace(
            m,
            q=np.concatenate(([tilt(m.stamp * 1e-9 - 1.0)], m.q)),
            dq=np.concatenate(([0.0], m.dq)),
            y=np.concatenate(([0.0], m.y)),
        )
        for m in measurements
    ]


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The torso stands at 0.3 rad."""
    path = tmp_path_factory.mktemp("torso") / "bag"
    write_measurements(path, NAMES, with_tilt(moving(6.0, tilt=0.3), lambda t: 0.301), "effort")
    return path


def test_a_torso_is_locked_where_it_is_published(bag: Path) -> None:
    bags = Bags([bag], urdf=URDF)
    found = evaluate_bags(bags, CONFIG)
    assert found.model.locked == pytest.approx({"tilt": 0.3})
    assert bags.warnings == ["locked at its published position: tilt 0.3"]
    # The URDF is the truth, up to the offsets of a filtered record.
    assert found.runs["sequential"].scores.nmse("urdf").max() < 5e-3
    assert not found.skipped[MOVED]


def test_a_joint_that_follows_a_learned_one_is_warned_of(bag: Path) -> None:
    bags = Bags([bag], urdf=FOLLOWING)
    robot_of(bags, CONFIG)
    assert any("finger moves with elbow (<mimic>)" in warning for warning in bags.warnings)


def test_without_the_parameter_joints_it_is_one_of_the_learned(bag: Path) -> None:
    robot, config = robot_of(Bags([bag], urdf=URDF), InverseDynamicsConfig())
    assert robot.joint_names == NAMES == config.robot.joints and not robot.locked


def test_while_it_stands_elsewhere_nothing_is_learned_or_scored(tmp_path: Path) -> None:
    def tilt(t: float) -> float:
        return 0.4 if 2.0 <= t < 3.0 else 0.3

    there, away = (list(moving(6.0, tilt=angle)) for angle in (0.3, 0.4))
    mixed = [away[k] if 200 <= k < 300 else there[k] for k in range(len(there))]
    write_measurements(tmp_path / "bag", NAMES, with_tilt(mixed, tilt), "effort")
    bags = Bags([tmp_path / "bag"], urdf=URDF)
    found = evaluate_bags(bags, CONFIG)
    assert found.skipped[MOVED] == 100
    assert found.runs["sequential"].scores.nmse("urdf").max() < 5e-3
    assert any("tilt is at 0.4, and locked at 0.3" in warning for warning in bags.warnings)


def test_a_saved_model_is_loaded_where_a_reading_is_a_little_off(bag, tmp_path: Path) -> None:
    InverseDynamicsLearner(model(tilt=0.3), CONFIG).save(tmp_path / "model.npz")
    near = tmp_path / "near"
    tilted = with_tilt(moving(3.0, tilt=0.3), lambda t: 0.327)  # 0.35 on its own
    write_measurements(near, NAMES, tilted, "effort")
    bags = Bags([near], urdf=URDF)
    assert robot_of(bags, CONFIG)[0].locked == pytest.approx({"tilt": 0.35})
    start = tmp_path / "model.npz"
    found = evaluate_bags(bags, CONFIG, start=start)
    assert found.model.locked == pytest.approx({"tilt": 0.3})


@pytest.mark.parametrize("early", [0, 300])
def test_what_is_published_seldom_or_later_counts_as_well(tmp_path: Path, early: int) -> None:
    """A torso at 2 Hz on the arm's topic, and a gripper's driver that is there 3 s before."""
    with BagWriter(tmp_path / "bag") as writer:
        for k in range(early):
            writer.joint_state(SECOND + k * 10_000_000, ["tilt"], [0.3], [0.0], [0.0])
        for k, m in enumerate(moving(6.0, tilt=0.3)):
            stamp = m.stamp + early * 10_000_000
            writer.joint_state(stamp, LEARNED, m.q, m.dq, m.y)
            if k % 50 == 49 and k > 200:
                writer.joint_state(stamp + 1_000_000, ["tilt"], [0.3], [0.0], [0.0])
    bags = Bags([tmp_path / "bag"], urdf=URDF)
    robot, _ = robot_of(bags, InverseDynamicsConfig())
    assert robot.joint_names == LEARNED and robot.locked == pytest.approx({"tilt": 0.3})
