"""Losses against numerical differentiation and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.base import LOSSES, LOSSES_OF_LABELS, as_loss
from semiparam_dynamics.learning.rows import ArrayRows


def targets_and_predictions(labels: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    f = 3.0 * rng.standard_normal(200)
    y = np.where(rng.random(200) < 0.5, -1.0, 1.0) if labels else rng.standard_normal(200)
    return y, f


@pytest.mark.parametrize(
    ("name", "y", "kink"),
    [
        ("hinge", 1.0, 1.0),
        ("hinge", -1.0, -1.0),
        ("absolute", 0.5, 0.5),
        ("epsilon_insensitive", 0.0, 0.25),
        ("epsilon_insensitive", 0.0, -0.25),
    ],
)
def test_at_a_kink_the_derivative_is_the_one_from_the_left(
    name: str, y: float, kink: float
) -> None:
    loss = as_loss(name, 0.25)
    at, left, right = np.array([kink]), np.array([kink - 1e-6]), np.array([kink + 1e-6])
    target = np.array([y])
    assert loss.derivative(target, at) == loss.derivative(target, left)
    assert loss.derivative(target, at) != loss.derivative(target, right)


@pytest.mark.parametrize("name", LOSSES)
def test_values_and_slopes_are_the_definitions_row_by_row(name: str) -> None:
    loss = as_loss(name, 0.3)
    y, f = targets_and_predictions(name in LOSSES_OF_LABELS)
    found, slopes = loss.value(y, f), loss.derivative(y, f)
    for i, (target, prediction) in enumerate(zip(y.tolist(), f.tolist(), strict=True)):
        margin, distance = target * prediction, prediction - target
        sign = 1.0 if distance > 0.0 else -1.0
        value, slope = {
            "square": (distance * distance / 2.0, distance),
            "hinge": (1.0 - margin, -target) if margin < 1.0 else (0.0, 0.0),
            "logistic": (math.log(1.0 + math.exp(-margin)), -target / (1.0 + math.exp(margin))),
            "exponential": (math.exp(-margin), -target * math.exp(-margin)),
            "absolute": (abs(distance), sign),
            "epsilon_insensitive": (
                (abs(distance) - 0.3, sign) if abs(distance) > 0.3 else (0.0, 0.0)
            ),
        }[name]
        assert found[i] == pytest.approx(value, rel=1e-12, abs=1e-15)
        assert slopes[i] == pytest.approx(slope, rel=1e-12, abs=1e-15)


def test_the_logistic_loss_does_not_overflow() -> None:
    loss = as_loss("logistic")
    y, f = np.array([1.0, 1.0]), np.array([-1e4, 1e4])
    np.testing.assert_allclose(loss.value(y, f), [1e4, 0.0])
    np.testing.assert_allclose(loss.derivative(y, f), [-1.0, 0.0])


def test_labels_and_parameters_are_checked() -> None:
    labels, others = (ArrayRows(np.eye(2), np.array([one, 1.0])) for one in (-1.0, 0.0))
    with pytest.raises(LearningError, match="-1 or 1"):
        as_loss("hinge").check(others)
    as_loss("hinge").check(labels)
    as_loss("square").check(others)
    with pytest.raises(ConfigurationError, match="hinge"):
        as_loss("huber")
    with pytest.raises(ConfigurationError, match="epsilon"):
        as_loss("epsilon_insensitive", -0.1)
