"""How large errors usually are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.changes.contact import ContactDetector
from semiparam_dynamics.changes.usual_errors import LEVEL_DELAY_S, STANDING_S, USUAL_LEVEL

STEP = 10_000_000  # ns


def watched(
    n: int,
    samples: int,
    sizes: Callable[[int], Array],
    speeds: Callable[[int], Array],
    confidence: float = 1.0,
) -> ContactDetector:
    """A detector by speed that has seen errors of such sizes (n,) at such speeds (n,)."""
    detector = ContactDetector(ChangesConfig(contact=6.0), np.ones(n), by_speed=True)
    rng = np.random.default_rng(0)
    for k in range(samples):
        error = np.clip(rng.standard_normal(n), -3.0, 3.0) * sizes(k)
        detector.add(k * STEP, error, confidence, speeds(k), tested=False)
    return detector


def test_errors_have_sizes_by_speed_and_by_the_time_since_each_joint_was_slow() -> None:
    """Joint 0 stands for 50 ms of 300; the errors of all but joint 2 are large 50 ms longer."""
    large = np.array([5.0, 2.0, 0.5, 3.0])
    detector = watched(
        4,
        20_000,
        lambda k: large if k % 30 < 10 else np.full(4, 0.5),
        lambda k: np.array([0.005 if k % 30 < 5 else 1.0, 1.0, 1.0, 1.0]),
    )
    at = 20_000 * STEP
    found = {}
    for name, later, speed in (("slow", 0.0, 0.0), ("just after", 0.02, 1.0), ("fast", 0.2, 1.0)):
        detector.add(at + round(later * 1e9), np.zeros(4), 1.0, np.array([speed, 1.0, 1.0, 1.0]))
        found[name] = detector.spread(1.0)
    np.testing.assert_allclose(found["slow"], large, rtol=0.1)
    np.testing.assert_allclose(found["just after"], large, rtol=0.1)
    np.testing.assert_allclose(found["fast"], np.full(4, 0.5), rtol=0.1)


def test_of_two_joints_that_turn_round_the_one_with_the_larger_errors_counts() -> None:
    """Joint 1 jerks joint 2 and joint 0 does not; they turn round in turns, then both."""
    detector = watched(
        3,
        20_000,
        lambda k: np.array([1.0, 1.0, 4.0 if k % 60 < 5 else 1.0]),
        lambda k: np.array([0.0 if 30 <= k % 60 < 35 else 1.0, 0.0 if k % 60 < 5 else 1.0, 1.0]),
    )
    at = 20_000 * STEP
    for speeds, expected in (([0.0, 1.0], 1.0), ([0.0, 0.0], 4.0), ([1.0, 0.0], 4.0)):
        at += STEP
        detector.add(at, np.zeros(3), 1.0, np.array([*speeds, 1.0]))
        assert detector.spread(1.0)[2] == pytest.approx(expected, rel=0.1)


def test_a_joint_that_stands_does_not_jerk_others() -> None:
    """Errors of joint 1 are by its own speed then."""
    detector = watched(
        2,
        19_980,
        lambda k: np.array([1.0, 4.0 if k % 60 < 25 else 1.0]),
        lambda k: np.array([0.0 if k % 60 < 20 else 1.0, 1.0]),
    )
    at, apart = 19_980 * STEP, round(STANDING_S * 1e9 / STEP)
    for k in range(100):
        detector.add(at + k * STEP, np.zeros(2), 1.0, np.array([0.0, 1.0]), tested=False)
        if k not in (apart - 1, apart, apart + 1):
            assert (detector.spread(1.0)[1] > 3.5) == (k < apart)
    detector.add(at + 100 * STEP, np.zeros(2), 1.0, np.ones(2))
    assert detector.spread(1.0)[1] == pytest.approx(4.0, rel=0.15)


def test_sizes_grow_by_the_level_of_the_errors_of_now() -> None:
    """As where noise is larger for some seconds in another posture."""
    usual, now = 2000, 500  # samples
    detector = watched(2, usual, lambda k: np.array([1.0, 3.0]), lambda k: np.ones(2))
    before = detector.spread(1.0)
    rng = np.random.default_rng(1)
    for k, error in enumerate(rng.standard_normal((now, 2)) * [2.0, 3.0], usual):
        detector.add(k * STEP, error, 1.0, np.ones(2))
    after = detector.spread(1.0)
    assert after[0] == pytest.approx(2.0 / np.sqrt(USUAL_LEVEL), rel=0.2)
    assert after[1] == pytest.approx(before[1], rel=0.15)


def test_one_error_after_a_pause_is_no_level() -> None:
    detector = watched(1, 3000, lambda k: np.ones(1), lambda k: np.ones(1))
    before = detector.spread(1.0)[0]
    for k in range(50):
        large = 2.9 if k == 21 else 0.5  # the first that counts once filters show no pause
        detector.add((4000 + k) * STEP, np.array([large]), 1.0, np.ones(1), tested=False)
        assert detector.spread(1.0)[0] < 1.6 * before


def test_a_push_does_not_hide_itself_in_the_level() -> None:
    detector = watched(1, 3000, lambda k: np.ones(1), lambda k: np.ones(1))
    before, said = detector.spread(1.0)[0], []
    rng = np.random.default_rng(1)
    rising = np.linspace(0.0, 7.0, round(0.7 * LEVEL_DELAY_S * 1e9 / STEP))
    for k, push in enumerate([*rising, *[8.0] * 100, *[0.0] * 40]):
        error = push + 0.5 * np.clip(rng.standard_normal(1), -2.0, 2.0)
        said.append(detector.add((3000 + k) * STEP, error, 1.0, np.ones(1)))
        assert detector.spread(1.0)[0] < 1.05 * before
    assert [what for what in said if what] == ["begins", "over"]


def test_a_contact_that_leads_into_new_motion_does_not_hide_itself() -> None:
    detector = watched(1, 3000, lambda k: np.full(1, 0.5), lambda k: np.ones(1), 0.9)
    before = detector.spread(1.0)
    for k in range(3000, 3100):
        detector.add(k * STEP, np.full(1, 9.0), 0.0, np.ones(1))
        assert detector.active and detector.spread(1.0) < 1.1 * before
    detector.reset()
    detector.add(3100 * STEP, np.zeros(1), 0.0, np.ones(1))
    assert detector.spread(1.0) > 1.5 * before


def test_means_of_an_axis_are_those_of_when_it_was_measured() -> None:
    rng, detector = np.random.default_rng(5), ContactDetector(ChangesConfig(), np.ones(2))
    for k in range(20_000):
        error = rng.standard_normal(2)
        error[1] = error[1] if k // 500 % 4 == 0 else np.nan
        detector.add((k + 1) * STEP, error, tested=False)
    np.testing.assert_allclose(np.diag(detector.mean_covariance()), 0.1, rtol=0.25)


def test_a_joint_that_turns_round_between_two_messages_was_slow() -> None:
    """At 50 Hz it may never be found below 0.01 rad/s."""
    detector = watched(
        2,
        20_000,
        lambda k: np.array([4.0 if k % 60 < 8 else 1.0, 1.0]),
        lambda k: np.array([0.0 if k % 60 < 4 else 0.3, 1.0]),
    )
    for k, speed in enumerate((0.5, 0.3, 0.3, -0.3, -0.3)):
        speeds = np.array([speed, 1.0])
        detector.add((20_030 + 2 * k) * STEP, np.zeros(2), 1.0, speeds, tested=False)
        expected = 1.0 if speed > 0.0 else 4.0
        assert detector.spread(1.0)[0] == pytest.approx(expected, rel=0.15)
