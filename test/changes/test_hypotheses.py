"""Log likelihood ratios beside the densities of whole stretches, and sums beside naive ones."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from scipy.stats import multivariate_normal

from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.changes.hypotheses import (
    PUSH,
    UNPATTERNED_STDS,
    Causes,
    Finding,
    Hypothesis,
    Sums,
    Windows,
    log_evidence,
    log_evidence_unpatterned,
)
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.robot.model import RobotModel

from .changing_arm import MODEL

RNG = np.random.default_rng(0)


def rows(k: int, n: int = 4) -> tuple[np.ndarray, np.ndarray]:
    A = RNG.standard_normal((k, n))
    return A, A @ RNG.standard_normal(n) + RNG.standard_normal(k)


def density(b: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    return float(multivariate_normal(mean, covariance).logpdf(b))


@pytest.mark.parametrize("rank", [0, 2, 4])
def test_the_ratio_is_that_of_the_densities_of_all_rows(rank: int) -> None:
    A, b = rows(30)
    mean, root = RNG.standard_normal(4), 3.0 * RNG.standard_normal((4, rank))
    caused = density(b, A @ mean, np.eye(30) + A @ root @ root.T @ A.T)
    without = density(b, np.zeros(30), np.eye(30))
    assert log_evidence(Sums.from_rows(A, b), root, mean) == pytest.approx(
        caused - without, abs=1e-8
    )


@pytest.mark.parametrize("size", [np.inf, np.nan, 1e200])
def test_sums_beyond_reckoning_are_no_evidence(size: float) -> None:
    A, b = rows(30)
    beyond = Sums.from_rows(A, b)
    found = log_evidence(
        Sums(size * beyond.information, beyond.moment, beyond.square, beyond.rows), np.eye(4)
    )
    assert found == -np.inf or np.isfinite(found)


def test_columns_that_do_not_matter_are_left_out() -> None:
    A, b = rows(20, 6)
    some = slice(1, 3)
    alone = log_evidence(Sums.from_rows(A[:, some], b), np.eye(2))
    assert log_evidence(Sums.from_rows(A, b).restrict(some), np.eye(2)) == pytest.approx(alone)


def test_what_is_taken_off_before_or_after_summing_is_the_same() -> None:
    A, b = rows(25)
    theta = RNG.standard_normal(4)
    one, other = Sums.from_rows(A, b).shifted(theta), Sums.from_rows(A, b - A @ theta)
    for name in ("information", "moment", "square"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-10)


def test_errors_of_any_size_are_a_mixture_of_white_ones() -> None:
    b = 5.0 * RNG.standard_normal(12)
    sizes = [density(b, np.zeros(12), size**2 * np.eye(12)) for size in UNPATTERNED_STDS]
    ratio = np.log(np.mean(np.exp(np.array(sizes)))) - density(b, np.zeros(12), np.eye(12))
    assert log_evidence_unpatterned(Sums.from_rows(np.zeros((12, 1)), b)) == pytest.approx(ratio)


def test_under_nothing_the_ratio_exceeds_c_at_most_as_often_as_exp_minus_c() -> None:
    A = RNG.standard_normal((15, 4))
    values = np.array(
        [
            float(log_evidence(Sums.from_rows(A, RNG.standard_normal(15)), np.eye(4)))
            for _ in range(4000)
        ]
    )
    for c in (1.0, 2.0, 4.0):
        # Markov's inequality on a mean of 1, with four standard deviations of the count.
        allowed = 4000 * np.exp(-c)
        assert np.sum(values > c) <= allowed + 4.0 * np.sqrt(allowed)


@pytest.mark.parametrize("blocks", [9, 48, 49, 200])
def test_windows_sum_what_they_should(blocks: int) -> None:
    windows, entries, later = Windows(3, (1, 3, 6)), [], []
    for _ in range(blocks):
        entries.append(Sums.from_rows(*rows(2, 3)))
        later.append(Sums.from_rows(*rows(2, 3)))
        windows.push(entries[-1], later[-1])
    lengths, begun = windows.sums(begins=True)
    _, running = windows.sums(begins=False)
    assert lengths.tolist() == [1, 3, 6]
    for i, length in enumerate(lengths):
        first = entries[-length]
        for name in ("information", "moment", "square", "rows"):
            rest = [getattr(s, name) for s in later[len(later) - length :]]
            np.testing.assert_allclose(getattr(running, name)[i], sum(rest), atol=1e-12)
            np.testing.assert_allclose(
                getattr(begun, name)[i], getattr(first, name) + sum(rest[1:]), atol=1e-12
            )


def test_windows_that_are_too_long_yet_are_left_out() -> None:
    windows = Windows(2, (2, 4))
    assert len(windows.sums(begins=True)[0]) == 0
    for _ in range(3):
        windows.push(Sums.from_rows(*rows(1, 2)), Sums.from_rows(*rows(1, 2)))
    lengths, sums = windows.sums(begins=False)
    assert lengths.tolist() == [2] and isinstance(sums, Sums) and len(sums.moment) == 1
    windows.clear()
    assert len(windows.sums(begins=False)[0]) == 0


@pytest.mark.parametrize("beside", [0, 2])
def test_evidence_beside_errors_is_that_of_both_together(beside: int) -> None:
    A, b = rows(30, 5)
    root, std = 3.0 * RNG.standard_normal((3, 2)), 0.5 + RNG.random(beside)
    columns = slice(3, 3 + beside)
    own, other = A[:, :3] @ root, A[:, columns] * std
    caused = density(b, np.zeros(30), np.eye(30) + own @ own.T + other @ other.T)
    found = Hypothesis(PUSH, "", slice(0, 3), np.zeros(3), root)
    ratio = caused - density(b, np.zeros(30), np.eye(30))
    assert found.beside(columns, std).evidence(Sums.from_rows(A, b)) == pytest.approx(ratio)


def test_payloads_are_in_the_hand_in_whatever_order_joints_are_named() -> None:
    names = MODEL.joint_names
    assert Causes(MODEL, ChangesConfig()).link == "gripper"
    for order in (names[::-1], (names[3], *names[:3])):
        causes = Causes(RobotModel(MODEL.urdf_text, joints=order), ChangesConfig())
        assert causes.link == "gripper"


def test_payloads_have_weight_where_a_driver_takes_out_the_robot_s() -> None:
    """The same columns as where all is in the efforts, though the robot's have no gravity."""
    states = RNG.standard_normal((3, 1, 4))
    found = []
    for gravity in ("included", "compensated"):
        model = RobotModel(MODEL.urdf_text, effort_gravity=gravity)
        causes = Causes(model, ChangesConfig())
        sample = Sample(0, *states[:, 0], model.regressors(*states)[0])
        found.append(causes.columns_of(sample))
    np.testing.assert_allclose(*found, atol=1e-10)


def test_joints_may_have_names_of_several_words() -> None:
    text = MODEL.urdf_text
    for name in MODEL.joint_names:
        text = text.replace(f'joint name="{name}"', f'joint name="the {name}"')
    found = Causes(RobotModel(text), ChangesConfig())
    for cause, same in zip(found.all, Causes(MODEL, ChangesConfig()).all, strict=True):
        np.testing.assert_allclose(cause.prior, same.prior)


def test_a_push_costs_the_efforts_of_its_power() -> None:
    """-J' w for any wrench w: its power is that of the hand's motion, by differences."""
    causes, model = Causes(MODEL, ChangesConfig()), MODEL.kinematics
    data, frame = model.createData(), model.getFrameId(causes.link)
    q, dq, step = RNG.standard_normal(4), RNG.standard_normal(4), 1e-6
    sample = Sample(0, q, dq, 0.0 * q, MODEL.regressors(*(one[None] for one in (q, dq, dq)))[0])
    places = []
    for way in (-step, step):
        pin.forwardKinematics(model, data, pin.integrate(model, pin.neutral(model), q + way * dq))
        places.append(pin.updateFramePlacement(model, data, frame).copy())
    speed = (places[1].translation - places[0].translation) / (2.0 * step)
    turning = pin.log3(places[1].rotation @ places[0].rotation.T) / (2.0 * step)
    columns = causes.columns_of(sample)[:, causes.n_held :]
    np.testing.assert_allclose(columns.T @ dq, np.concatenate((speed, turning)), atol=1e-6)


def test_a_known_payload_explains_a_stretch_where_nothing_unusual_is_left() -> None:
    A = RNG.standard_normal((40, 4))
    b = A[:, 1:3] @ np.array([20.0, -30.0]) + RNG.standard_normal(40)
    for share, explained in ((1.0, True), (0.5, False), (0.0, False)):
        mean = share * np.array([20.0, -30.0])
        cup = Hypothesis("payload", "cup", slice(1, 3), mean, np.zeros((2, 0)))
        found = Finding(cup, 40, 0.0, 0.0, Sums.from_rows(A, b))
        assert found.explains() is explained
