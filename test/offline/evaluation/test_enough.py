"""Recordings that teach nothing: refused in one sentence by all that learns from bags."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.bags import (
    MIN_READINGS,
    Bags,
    check_motion,
    check_varies,
    evaluate_bags,
)
from semiparam_dynamics.offline.evaluation.identification import identify_on_bags
from semiparam_dynamics.offline.evaluation.training import train_on_bags
from semiparam_dynamics.offline.tuning.on_bags import tune_on_bags
from semiparam_dynamics.samples.bag_writer import write_measurements
from semiparam_dynamics.samples.measurement import Measurement

from ...dynamics.arms import URDF, measurements, small_arm

NAMES = ("a", "b")


def bag(path: Path, seconds: float, efforts: Callable[[Any], Any]) -> Path:
    """The small arm's motion, with efforts made of its own."""
    model = small_arm()
    given = [dataclasses.replace(m, y=efforts(m.y)) for m in measurements(model, seconds)]
    write_measurements(path, model.joint_names, given, "effort", robot_description=URDF.read_text())
    return path


@pytest.mark.parametrize("learn", [tune_on_bags, identify_on_bags, train_on_bags, evaluate_bags])
@pytest.mark.parametrize("value", [-0.0, 1.25])
def test_efforts_that_never_vary_are_refused(
    tmp_path: Path, learn: Callable[..., Any], value: float
) -> None:
    path = bag(tmp_path / "same", 6.0, lambda y: np.full(len(y), value))
    bags = Bags([path]) if learn is evaluate_bags else Bags((), [path])
    joint = small_arm().joint_names[0]
    with pytest.raises(BagError) as told:
        learn(bags, InverseDynamicsConfig())
    assert f"every effort in {path} is always the same ({joint} {value + 0.0:g}, " in str(
        told.value
    )


@pytest.mark.parametrize("learn", [identify_on_bags, train_on_bags])
def test_much_too_little_motion_is_refused_and_little_is_told(
    tmp_path: Path, learn: Callable[..., Any]
) -> None:
    with pytest.raises(BagError, match=r"samples in 0\.\d s of motion are too few, 1.5 s are"):
        learn(Bags((), [bag(tmp_path / "blink", 0.8, lambda y: y)]), InverseDynamicsConfig())
    bags = Bags((), [bag(tmp_path / "short", 5.0, lambda y: y)])
    learn(bags, InverseDynamicsConfig())
    assert [w for w in bags.warnings if "s only, so that little is known of it: record" in w]


def readings(y: list[list[float]]) -> list[Measurement]:
    return [
        Measurement(10_000_000 * (k + 1), np.zeros(2), None, np.array(row))
        for k, row in enumerate(y)
    ]


def test_one_axis_that_varies_is_enough() -> None:
    nothing, n = float("nan"), MIN_READINGS
    for row, other in (([0.0, 1.0], [0.0, 2.0]), ([nothing, 1.0], [nothing, 2.0])):
        check_varies("bag", readings([row] * n + [other]), NAMES, "effort")
    check_varies("bag", readings([[0.0, 0.0]] * (n - 1)), NAMES, "effort")  # too few to tell
    check_varies("bag", readings([[nothing, nothing]] * n), NAMES, "effort")  # told elsewhere
    with pytest.raises(BagError, match=r"every axis of the wrench in bag is always .*\(b 3\)"):
        check_varies("bag", readings([[nothing, 3.0]] * n), NAMES, "wrench")


def test_enough_motion_has_no_warning() -> None:
    assert check_motion([20_000_000 * k for k in range(600)]) == ""
