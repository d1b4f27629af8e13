"""When a contact begins and ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.changes.contact import (
    END_TIME_S,
    UNKNOWN_MOTION_FACTOR,
    ContactDetector,
    as_rare,
)

STD = np.array([0.5, 2.0])
STEP = 10_000_000  # ns


def run(detector: ContactDetector, deviations: list[float], start: int = 0) -> dict[int, str]:
    """What is said, by sample, where axis 1 deviates so many standard deviations."""
    said = {}
    for k, size in enumerate(deviations, start):
        what = detector.add(k * STEP, np.array([0.1, -2.0 * size]), STD)
        if what:
            said[k] = what
    return said


def test_the_first_sample_beyond_begins_it_and_calm_ends_it() -> None:
    detector = ContactDetector(ChangesConfig(contact=6.0), 2)
    calm = round(END_TIME_S * 1e9 / STEP)
    said = run(detector, [1.0] * 5 + [6.1] + [4.0] * 9 + [1.0] * 50)
    assert said == {5: "begins", 14 + calm: "over"}


def test_a_short_pause_does_not_end_it() -> None:
    detector = ContactDetector(ChangesConfig(contact=6.0), 2)
    said = run(detector, [9.0] * 5 + [1.0] * 20 + [9.0] * 5 + [1.0] * 10)
    assert said == {0: "begins"}


def test_what_lasts_is_given_up_until_it_is_over() -> None:
    detector = ContactDetector(ChangesConfig(contact=6.0, contact_longest=1.0), 2)
    said = run(detector, [9.0] * 400)
    assert said == {0: "begins", 101: "given up"} and not detector.active
    assert run(detector, [1.0] * 100 + [300.0], 400) == {500: "begins"}


def test_without_a_threshold_there_is_none() -> None:
    detector = ContactDetector(ChangesConfig(contact=0.0), 2)
    assert run(detector, [1e6] * 10) == {} and not detector.suspicious


def test_errors_that_are_usual_for_the_robot_are_no_contact() -> None:
    detector = ContactDetector(ChangesConfig(contact=6.0), 2)
    rng = np.random.default_rng(0)
    # Predicted standard deviations a third of the errors, and twelve times as much now and then.
    for k in range(3000):
        error = 3.0 * STD * rng.standard_normal(2) * (4.0 if k % 50 == 0 else 1.0)
        detector.observe(k * STEP, error, STD, 1.0)
    assert (detector.limits > 9.0).all()
    usual = float(detector.limits[1]) / 1.5
    detector.add(3000 * STEP, np.array([0.0, 3.0 * 2.0]), STD)
    assert 0.7 < detector.deviation < 1.3  # in what the errors are, not in what was predicted
    said = run(detector, [3.0 * usual] * 3, 3001)
    assert said == {}
    assert run(detector, [6.0 * usual], 3004) == {3004: "begins"}


def test_each_axis_has_its_own_usual_errors() -> None:
    detector = ContactDetector(ChangesConfig(contact=6.0), 2)
    rng = np.random.default_rng(0)
    # Axis 0 is off by twenty times its usual error now and then, axis 1 never is.
    for k in range(3000):
        error = STD * rng.standard_normal(2)
        error[0] *= 20.0 if k % 50 == 0 else 1.0
        detector.observe(k * STEP, error, STD, 1.0)
    assert detector.limits[0] > 10.0 and detector.limits[1] == 6.0
    assert detector.add(3000 * STEP, np.array([4.0, 0.1]), STD) == ""
    assert detector.threshold in detector.limits[[0, 2]]
    assert run(detector, [7.0], 3001) == {3001: "begins"}
    assert detector.threshold == 6.0 and detector.deviation > 6.0


def test_the_usual_errors_of_another_number_of_axes_are_refused() -> None:
    one, other = (ContactDetector(ChangesConfig(contact=6.0), n) for n in (2, 3))
    with pytest.raises(ValueError, match="another number of axes"):
        other.restore(one.state())


def test_a_little_on_every_axis_is_a_contact_where_it_is_as_rare() -> None:
    n = 7
    for limit in (1.0, 3.0, 6.0, 30.0):
        length = as_rare(limit, n)
        assert stats.chi(n).logsf(length) == pytest.approx(stats.chi(1).logsf(limit), rel=1e-6)
    assert as_rare(6.0, 1) == pytest.approx(6.0)
    assert as_rare(31.0, n) - as_rare(30.0, n) == pytest.approx(1.0)
    detector = ContactDetector(ChangesConfig(contact=6.0), n)
    each = as_rare(6.0, n) / np.sqrt(n)
    assert each < 3.0
    assert detector.add(STEP, np.full(n, 0.99 * each), np.ones(n)) == ""
    assert detector.add(2 * STEP, np.full(n, 1.01 * each), np.ones(n)) == "begins"
    assert detector.threshold == pytest.approx(as_rare(6.0, n))


def test_errors_smaller_than_predicted_are_expected_only_where_the_motion_is_known() -> None:
    detector = ContactDetector(ChangesConfig(contact=6.0), 2)
    rng = np.random.default_rng(0)
    for k in range(1000):
        detector.observe(k * STEP, 0.2 * STD * rng.standard_normal(2), STD, 1.0)
    np.testing.assert_allclose(detector.spread(STD, 1.0), 0.2 * STD, rtol=0.1)
    np.testing.assert_allclose(detector.spread(STD, 0.0), UNKNOWN_MOTION_FACTOR * STD)
