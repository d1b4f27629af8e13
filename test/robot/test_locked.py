"""Joints that are not learned: where they are locked, which of them matter, and a model's name."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.robot.model import RobotModel, message_checks, told_of_urdf
from semiparam_dynamics.robot.urdf import Lock, carrying, locked_positions, parse_urdf, turned_up

from .standing_arm import FOLLOWING, LEARNED, URDF, model

TREE = parse_urdf(URDF)
THERE = {"lift": 0.3512, "tilt": 0.262, "other": 0.4, "finger": 0.021, "shoulder": 0.1}


def test_what_carries_or_hangs_on_learned_joints_is_locked_on_a_grid() -> None:
    locked = locked_positions(TREE, LEARNED, THERE)
    assert locked == pytest.approx({"lift": 0.35, "tilt": 0.25, "finger": 0.02})
    assert locked_positions(TREE, ("other",), THERE).keys() == {"lift", "tilt"}
    assert not locked_positions(TREE, LEARNED, {"other": 1.0})


@pytest.mark.parametrize(("tilt", "expected"), [(0.34, 0.3), (0.26, 0.3), (0.36, 0.35)])
def test_a_saved_model_s_positions_stay_where_they_are_near(tilt, expected) -> None:
    locked = locked_positions(TREE, LEARNED, {"tilt": tilt}, {"tilt": 0.3, "gone": 1.0})
    assert locked == pytest.approx({"tilt": expected})


def test_more_joints_turn_up_unless_they_are_a_hand_on_the_learned_arm() -> None:
    assert turned_up(TREE, LEARNED, ("finger",)) and carrying(TREE, LEARNED, ("finger",))
    assert turned_up(TREE, (*LEARNED, "finger"), LEARNED)  # those and more
    assert not carrying(TREE, (*LEARNED, "finger"), LEARNED)
    assert not turned_up(TREE, ("finger",), LEARNED) and not turned_up(TREE, LEARNED, LEARNED)
    assert not turned_up(TREE, ("elbow", "finger"), ("shoulder",))
    assert turned_up(TREE, ("tilt", "elbow"), ("shoulder",))


def test_only_joints_that_change_the_predictions_matter() -> None:
    locks = message_checks(model(tilt=0.25, lift=0.35))["locks"]
    assert locks == {"tilt": Lock(0.25, 0.05, True)}
    heavy = URDF.replace('<mass value="0.01"/>', '<mass value="1.0"/>')
    assert message_checks(RobotModel(heavy, joints=LEARNED))["locks"].keys() == {"tilt", "finger"}


def test_a_joint_that_follows_a_learned_one_is_told_of_where_it_matters_and_is_no_lock() -> None:
    heavy = RobotModel(FOLLOWING, joints=LEARNED)
    assert message_checks(heavy)["locks"].keys() == {"tilt"}
    (told,) = told_of_urdf(heavy)
    assert told.startswith("finger moves with elbow (<mimic>), which the model does not represent")
    light = FOLLOWING.replace('<mass value="1.0"/>', '<mass value="0.01"/>')
    assert not told_of_urdf(RobotModel(light, joints=LEARNED))
    # Without the elbow it is a joint like others, and with itself among the learned ones it moves.
    assert not told_of_urdf(RobotModel(FOLLOWING, joints=("shoulder",)))
    alone = message_checks(RobotModel(FOLLOWING, joints=("shoulder",)))
    assert alone["locks"].keys() == {"tilt", "elbow", "finger"}
    assert not told_of_urdf(RobotModel(FOLLOWING, joints=(*LEARNED, "finger")))


def test_a_joint_that_follows_a_learned_one_stays_locked_where_a_saved_model_has_it() -> None:
    tree = parse_urdf(FOLLOWING)
    first = locked_positions(tree, LEARNED, {"finger": 0.031})
    assert first == pytest.approx({"finger": 0.03})
    assert locked_positions(tree, LEARNED, {"finger": -0.04}, first) == first
    elsewhere = locked_positions(TREE, LEARNED, {"finger": -0.04}, first)
    assert elsewhere == pytest.approx({"finger": -0.04})


def test_a_lock_holds_within_its_tolerance_and_over_whole_turns() -> None:
    revolute, slider = Lock(0.25, 0.05, True), Lock(0.25, 0.01, False)
    assert revolute.holds(0.29) and not revolute.holds(0.31)
    assert revolute.holds(0.25 + 2.0 * np.pi) and not slider.holds(0.25 + 2.0 * np.pi)
    assert slider.holds(0.242) and not slider.holds(0.238)


def test_a_model_s_name_depends_on_locked_joints_where_the_regressor_does() -> None:
    name = model(tilt=0.25, finger=0.02, lift=0.0).fingerprint()
    for change in ({"finger": 0.04}, {"lift": 0.35}):
        assert model(**{"tilt": 0.25, **change}).fingerprint() == name
    rounded = locked_positions(TREE, LEARNED, {"tilt": 0.252, "finger": 0.021})
    assert model(**rounded).fingerprint() == name
    assert model(tilt=0.3).fingerprint() != name
