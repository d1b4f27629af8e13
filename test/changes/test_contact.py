"""When a contact begins and ends."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import signal, stats

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.changes import contact
from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.changes.contact import END_TIME_S, QUICK_RATIO, ContactDetector, as_rare
from semiparam_dynamics.changes.usual_errors import (
    FIRST_S,
    QUICK,
    SHORT_GROWTH,
    UNKNOWN_MOTION_FACTOR,
    USUAL_FACTOR,
)

STD = np.array([0.5, 2.0])
STEP = 10_000_000  # ns


def show(
    detector: ContactDetector, errors: Iterable[Array], start: int, step: int = STEP, **how: Any
) -> dict[int, str]:
    """What is said of samples' errors, by their number from `start` on."""
    said = {k: detector.add((start + k) * step, error, **how) for k, error in enumerate(errors)}
    return {k: what for k, what in said.items() if what}


@functools.cache
def calmed(std: tuple[float, ...], samples: int) -> ContactDetector:
    """A detector that has seen usual errors of these sizes. Not to be changed."""
    detector = ContactDetector(ChangesConfig(contact=0.0), np.ones(len(std)))
    rng = np.random.default_rng(0)
    errors = np.array(std) * np.clip(rng.standard_normal((samples, len(std))), -3.0, 3.0)
    show(detector, errors, 0, tested=False)
    return detector


def calm(
    std: Sequence[float] = tuple(STD), samples: int = 3000, **config: float
) -> tuple[ContactDetector, int]:
    """Another of it, and the number of its next sample."""
    detector = copy.deepcopy(calmed(tuple(std), samples))
    detector.config = ChangesConfig(**{"contact": 6.0, **config})
    return detector, samples


@pytest.fixture
def sudden_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are tested sample by sample, but their average is not."""
    monkeypatch.setattr(contact, "ABOVE", (1.0, 1e6, 1e6))


def limits(detector: ContactDetector, *, turning: bool = False) -> Array:
    """Of each axis and of all together, in other motion or in reversals."""
    usual = detector.state()["usual"][:-2].reshape(2, -1)[int(turning)]
    least = np.full(len(usual), detector.config.contact)
    least[-1] = as_rare(detector.config.contact, len(usual) - 1)
    return np.maximum(USUAL_FACTOR * usual, least)


def run(detector: ContactDetector, deviations: list[float], start: int) -> dict[int, str]:
    """What is said, by sample from `start` on, where axis 1 deviates so many of `STD`."""
    return show(detector, np.array([[0.05, -2.0 * size] for size in deviations]), start)


def test_the_first_sample_beyond_begins_it_and_calm_ends_it() -> None:
    detector, start = calm()
    still = round(END_TIME_S * 1e9 / STEP)
    said = run(detector, [1.0] * 5 + [7.0] + [4.0] * 9 + [1.0] * 50, start)
    assert said == {5: "begins", 14 + still: "over"}


@pytest.mark.parametrize(
    ("size", "lasts", "told_after"),
    [
        (6.1, 6, None),
        (6.1, 12, 10),
        (7.5, 4, None),
        (7.5, 8, 6),
        (20.0, 2, 2),
        (4.9, 15, None),
        (4.9, 30, 21),
        (3.8, 1000, None),
    ],
)
def test_at_a_kilohertz_a_deviation_must_last_the_shorter_the_larger_it_is(
    sudden_alone: None, size: float, lasts: int, told_after: int | None
) -> None:
    detector, start = calm()
    assert limits(detector)[1] == 6.0
    first = start * STEP
    for k, deviation in enumerate([0.0] * 300 + [size] * lasts + [0.0] * 100):
        stamp = first + k * STEP // 10
        error = np.array([0.0, deviation * detector.spread(1.0)[1]])
        if detector.add(stamp, error) == "begins":
            assert told_after is not None and abs(k - 300 + 1 - told_after) <= 1
            assert detector.since == first + 300 * STEP // 10
            return
    assert told_after is None


def test_a_short_pause_does_not_end_it() -> None:
    detector, start = calm()
    said = run(detector, [9.0] * 5 + [1.0] * 20 + [9.0] * 5 + [1.0] * 10, start)
    assert said == {0: "begins"}


def test_what_lasts_is_given_up_until_it_is_over() -> None:
    detector, start = calm(contact_longest=1.0)
    said = run(detector, [9.0] * 400, start)
    assert said == {0: "begins", 101: "given up"} and not detector.active
    assert run(detector, [1.0] * 100 + [300.0], start + 400) == {100: "begins"}


def test_the_next_one_is_told_as_soon_as_the_last_is_over() -> None:
    """Whatever time the last one took."""
    still = round(END_TIME_S * 1e9 / STEP)
    for lasts in (5, 60, 200):
        detector, start = calm()
        again = lasts + still + 3
        said = run(detector, [10.0] * lasts + [1.0] * (still + 3) + [10.0] * 5 + [1.0] * 50, start)
        assert [k for k, what in said.items() if what == "begins"] == [0, again]


@pytest.mark.parametrize("pause", [0.0, 3.0])
def test_what_is_over_is_not_told_again_at_a_kilohertz(pause: float) -> None:
    """Neither after one that was given up, nor after what filters show of a pause."""
    detector, start = calm(contact_longest=1.0)
    errors = np.zeros((6000, 2))
    errors[: 150 if pause else 3000, 1] = 24.0
    said = show(detector, errors, 10 * start + round(1e3 * pause), STEP // 10)
    assert [*said.values()] == ([] if pause else ["begins", "given up"])


def test_without_a_threshold_or_before_errors_were_seen_there_is_none() -> None:
    detector, start = calm(contact=0.0)
    assert run(detector, [1e6] * 10, start) == {} and not detector.suspicious
    detector = ContactDetector(ChangesConfig(contact=6.0), np.ones(2))
    assert run(detector, [1e6] * 10, 1) == {} and detector.deviation == 0.0


def test_deviations_are_in_what_the_errors_are() -> None:
    detector, start = calm()
    detector.add(start * STEP, np.array([0.0, 3.0 * 2.0]))
    np.testing.assert_allclose(detector.scaled, [0.0, 3.0], rtol=0.1)
    np.testing.assert_allclose(detector.spread(1.0), STD, rtol=0.1)
    np.testing.assert_allclose(
        detector.spread(0.0), UNKNOWN_MOTION_FACTOR * detector.spread(1.0), rtol=1e-12
    )
    detector.add((start + 1) * STEP, np.array([np.nan, 2.0]))
    assert detector.scaled[0] == 0.0


@pytest.mark.parametrize("lacks", [0.01, 0.15])  # random features, and a local residual
def test_errors_count_for_less_in_motion_that_is_new_and_ten_seconds_after(lacks: float) -> None:
    detector = ContactDetector(ChangesConfig(contact=6.0), np.ones(2))
    rng = np.random.default_rng(0)

    def look(k: int, lacking: float, size: float = 1.0) -> str:
        error = size * STD * np.clip(rng.standard_normal(2), -3.0, 3.0)
        return detector.add(k * STEP, error, 1.0 - lacking)

    for k in range(3000):
        assert look(k, lacks * rng.uniform(0.2, 1.8)) == ""
    usual = detector.spread(1.0)
    np.testing.assert_allclose(usual, STD, rtol=0.1)
    for k in range(3000, 3100):
        look(k, 6.0 * lacks)
    assert (detector.spread(1.0) > 2.0 * usual).all()
    # Now it is known, but its errors are three times as large.
    for k in range(3100, 3900):
        assert look(k, lacks, 3.0) == ""
    for k in range(3900, 3900 + round(4.0 * FIRST_S * 1e9 / STEP)):
        look(k, lacks)
    assert (detector.spread(1.0) < 2.0 * usual).all()


def test_each_axis_has_its_own_usual_errors() -> None:
    detector = ContactDetector(ChangesConfig(contact=6.0), np.ones(2))
    rng = np.random.default_rng(0)
    # Axis 0 is off by twenty times its usual error now and then, axis 1 never is.
    errors = STD * np.clip(rng.standard_normal((3000, 2)), -3.0, 3.0)
    errors[::200, 0] *= 40.0
    show(detector, errors, 0, tested=False)
    first, second, both = limits(detector)
    assert first > 10.0 and second == 6.0 and both >= first - 1.0
    assert detector.add(3000 * STEP, np.array([0.9 * first * detector.spread(1.0)[0], 0.1])) == ""
    assert run(detector, [7.0], 3001) == {0: "begins"}
    assert detector.threshold == 6.0 and detector.deviation > 6.0


def test_a_push_that_was_not_seen_hardly_moves_the_limits(sudden_alone: None) -> None:
    detector, start = calm()
    before, sizes = limits(detector).copy(), detector.spread(1.0)
    assert run(detector, [5.0] * 50, start) == {}
    run(detector, [0.1] * 200, start + 50)
    assert (limits(detector) <= before * 1.1).all()
    assert (detector.spread(1.0) <= 1.2 * sizes).all()


def test_what_is_over_at_once_becomes_usual() -> None:
    detector, start = calm()
    said = run(detector, [0.1] * 5 + [8.0, 8.0] + [0.1] * 60, start)
    assert said[5] == "begins" and "over" in said.values()
    assert 8.0 < limits(detector)[1] <= SHORT_GROWTH * 6.0 + 1e-9
    assert run(detector, [8.0] * 2 + [0.1] * 60, start + 67) == {}
    assert limits(detector)[1] <= USUAL_FACTOR * 9.0


def test_means_of_errors_have_a_covariance_of_their_own() -> None:
    rng, detector = np.random.default_rng(4), ContactDetector(ChangesConfig(), np.ones(2))
    mixed = np.array([[1.0, 0.0], [0.8, 0.6]])
    errors = rng.standard_normal((6200, 2)) @ mixed.T + 3.0 * (-1.0) ** np.arange(6200)[:, None]
    show(detector, errors[:6000], 1, tested=False)
    found = detector.mean_covariance()
    expected = mixed @ mixed.T / 10.0  # of ten errors each, in which the large ones cancel
    np.testing.assert_allclose(found, expected, rtol=0.15)
    errors[6000:6030] = 1000.0, np.nan  # a push that was missed
    show(detector, errors[6000:], 6001, tested=False)
    assert (np.diag(detector.mean_covariance()) < 1.2 * np.diag(found)).all()
    detector = calm()[0]
    np.testing.assert_allclose(np.diag(detector.mean_covariance()), STD**2 / 10.0, rtol=0.4)
    few = calm(samples=20)[0]
    np.testing.assert_allclose(few.mean_covariance(), np.diag(few.spread(1.0) ** 2))


def test_a_push_against_the_usual_correlation_counts_for_more() -> None:
    detector = ContactDetector(ChangesConfig(contact=6.0), np.ones(2))
    rng = np.random.default_rng(0)
    common = np.clip(rng.standard_normal((20_000, 1)), -2.5, 2.5)
    show(detector, common + 0.05 * rng.standard_normal((20_000, 2)), 0, tested=False)
    detector.add(20_000 * STEP, np.array([2.0, 2.0]))
    along = detector.deviation
    detector.add(20_001 * STEP, np.array([2.0, -2.0]))
    assert detector.deviation > 2.0 * along


def test_the_usual_errors_of_another_number_of_axes_are_refused() -> None:
    one, other = (ContactDetector(ChangesConfig(contact=6.0), np.ones(n)) for n in (2, 3))
    with pytest.raises(ValueError, match="another number of axes"):
        other.restore(one.state())


def test_a_little_on_every_axis_is_a_contact_where_it_is_as_rare() -> None:
    n = 7
    for limit in (1.0, 3.0, 6.0, 30.0):
        length = as_rare(limit, n)
        assert stats.chi(n).logsf(length) == pytest.approx(stats.chi(1).logsf(limit), rel=1e-6)
    assert as_rare(6.0, 1) == pytest.approx(6.0)
    assert as_rare(31.0, n) - as_rare(30.0, n) == pytest.approx(1.0)
    detector, start = calm(np.ones(n))
    each = float(limits(detector)[n]) / np.sqrt(n) * detector.spread(1.0)
    white = np.linalg.norm(detector.state()["white"] @ np.ones(n)) / np.sqrt(n)
    assert limits(detector)[n] >= as_rare(6.0, n) and (each < 6.0).all()
    assert detector.add(start * STEP, 0.99 / white * each) == ""
    assert detector.add((start + 1) * STEP, 1.01 / white * each) == "begins"
    assert detector.nearest["axis"] == n  # all together


@pytest.mark.parametrize(("share", "told_after"), [(0.77, None), (0.9, 20), (1.01, 10)])
def test_all_together_must_come_nearer_to_the_threshold_to_count(
    sudden_alone: None, share: float, told_after: int | None
) -> None:
    """Their length is beyond 0.7 of its threshold for long where no push is: see docs."""
    n = 7
    detector, start = calm(np.ones(n))
    white = np.linalg.norm(detector.state()["white"] @ np.ones(n)) / np.sqrt(n)
    each = share * float(limits(detector)[n]) / np.sqrt(n) / white * detector.spread(1.0)
    assert (each < 0.6 * limits(detector)[:n]).all()  # of none alone
    errors = np.outer(np.arange(120) > 20, each)  # at a kilohertz
    told = [k - 20 for k in show(detector, errors, 10 * start + 10, STEP // 10)]
    assert told == ([] if told_after is None else [pytest.approx(told_after, abs=2)])


def test_noise_of_all_axes_ends_a_contact() -> None:
    """The length of seven usual errors is often beyond half of its threshold."""
    detector, start = calm(np.ones(7))
    rng = np.random.default_rng(2)
    errors = rng.standard_normal((4000, 7))
    errors[np.arange(4000) % 200 < 10, 0] = 9.0
    told = np.array([*show(detector, errors, start)]).reshape(20, 2)
    assert np.median(np.diff(told)) * STEP * 1e-9 < 0.1 + 1.5 * END_TIME_S


def reversals(heights: list[float], *, turning: bool) -> ContactDetector:
    """A detector of two joints that has seen peaks of 30 ms of such heights, and 2 s without.

    The first joint turns round meanwhile, or it does not.
    """
    detector = ContactDetector(ChangesConfig(contact=6.0), np.ones(2), by_speed=True)
    rng = np.random.default_rng(0)
    for k in range(3000 + 200 * len(heights)):
        peak, place = divmod(max(k - 3000, -200), 200)
        within = 100 <= place < 103 and peak >= 0
        # From the first sample on, so that reversals have their size.
        turns = 95 <= k % 200 < 105 and turning
        speeds = np.array([0.0 if turns else 1.0, 1.0])
        error = np.clip(rng.standard_normal(2), -3.0, 3.0)
        if within:
            error[0] = heights[peak] * detector.spread(1.0)[0]
        assert detector.add(k * STEP, error, 1.0, speeds) == ""
    return detector


def test_what_recurs_where_a_joint_turns_round_is_usual_there_alone(sudden_alone: None) -> None:
    detector = reversals([5.5] * 5, turning=True)
    assert (limits(detector)[:2] == 6.0).all()
    assert USUAL_FACTOR * 5.0 < limits(detector, turning=True)[0] < USUAL_FACTOR * 6.0
    assert limits(detector, turning=True)[1] == 6.0
    unturned = reversals([5.5] * 5, turning=False)
    assert limits(unturned)[0] == limits(unturned, turning=True)[0] == 6.0


def test_errors_are_learned_after_the_clock_was_set_back() -> None:
    """As where a recording is played in a loop."""
    detector, start = calm()
    before = detector.spread(1.0)
    show(detector, 1.5 * STD * (-1.0) ** np.arange(3000)[:, None], start // 10)
    assert (detector.spread(1.0) > 1.1 * before).all()


def test_collisions_of_a_tenth_of_a_second_do_not_become_usual() -> None:
    """Though the joint turns round in each, and one that is told so often is no noise."""
    detector = reversals([], turning=True)
    begun = 0
    for k in range(10 * 200):
        hit = k % 200 < 10
        speeds = np.array([0.0 if hit else 1.0, 1.0])
        error = np.array([9.0 * detector.spread(1.0)[0] if hit else 0.5, 0.5])
        begun += detector.add((3000 + k) * STEP, error, 1.0, speeds) == "begins"
    assert begun == 10
    assert (detector.state()["usual"][:-2] < 4.0).all()


def test_weak_errors_that_last_are_a_contact_by_their_average() -> None:
    """At a kilohertz, of noise whose average is a sixth of it; an instant of it is none."""
    rng = np.random.default_rng(5)
    detector = ContactDetector(ChangesConfig(contact=6.0), np.ones(2))
    noise = np.clip(rng.standard_normal((44_000, 2)), -2.5, 2.5) * STD
    said = {}
    for k, error in enumerate(noise):
        pushed = k >= 40_000 and 40_000 <= k < 40_300
        error = error + [0.0, 2.0 * STD[1] if pushed else 0.0]
        if k < 20_000:
            detector.add(k * STEP // 10, error, 1.0, tested=False)
        elif what := detector.add(k * STEP // 10, error):
            said[k - 40_000] = what
            if what == "begins":
                assert detector.nearest["axis"] in (1, 2)
                assert detector.largest < 1.0 and detector.pressed
    (begun, first), (ended, last) = said.items()
    assert (first, last) == ("begins", "over")
    assert 5 < begun < 80 and 550 < ended < 700
    state = detector.state()
    lasting = np.sqrt(state["lasting.sizes.squares"][-1] / state["lasting.sizes.weights"][-1])
    average = STD * np.sqrt(STEP * 1e-10 / (2.0 * contact.LASTING_S))  # of white noise
    np.testing.assert_allclose(lasting, average, rtol=0.35)


def test_what_messages_left_out_hide_is_not_an_average() -> None:
    """One sample after 0.3 s counts for no more than one of 20 ms."""
    detector, start = calm()
    for k in range(200):
        detector.add((start + 30 * k) * STEP, np.array([0.0, 2.0 * 2.0 * (-1.0) ** k]))
        assert not detector.active and detector.nearest["share"] < 1.0


def test_the_average_begins_anew_where_another_cause_is_found_and_after_a_pause() -> None:
    for pause in (0.0, 2.0):
        detector, start = calm()
        run(detector, [5.0] * 2, start)  # not yet a contact
        if not pause:
            detector.reset()
        later = round(pause * 1e9 / STEP)
        said = run(detector, [0.0] * 100, start + 2 + later)
        assert said == {} and detector.nearest["share"] < 0.1


def test_where_predictions_change_between_two_samples_errors_are_larger() -> None:
    """As where messages are too far apart for the filter; by a uniform instant between two."""
    detector, start = calm()
    usual = detector.spread(1.0)
    for k in range(30):
        expected = np.array([0.0, 10.0 if k >= 25 else 0.0])
        detector.add((start + k) * STEP, np.zeros(2), expected=expected)
        if k == 25:
            width = 10.0 / np.sqrt(12.0)
            np.testing.assert_allclose(
                detector.spread(1.0), np.hypot(usual, [0.0, width]), rtol=0.01
            )
    after = detector.spread(1.0)
    kept = width * np.exp(-4.0 * STEP * 1e-9 / contact.BETWEEN_S)
    np.testing.assert_allclose(after, np.hypot(usual, [0.0, kept]), rtol=0.01)


CALM = 15_000


@functools.cache
def calmed_at_a_kilohertz(cutoff: float) -> ContactDetector:
    """A detector that has seen calm errors behind a low-pass. Not to be changed."""
    detector = ContactDetector(ChangesConfig(contact=6.0), np.ones(len(STD)))
    white = np.random.default_rng(0).standard_normal((CALM, len(STD)))
    filtered = behind_low_pass(white, STEP // 10)
    errors = filtered * STD / filtered.std(axis=0)
    show(detector, errors, 0, STEP // 10, cutoff=cutoff, tested=False)
    return detector


def at_a_kilohertz(errors: Array, cutoff: float) -> tuple[ContactDetector, list]:
    """Another of it that then was shown these; what it said, by sample."""
    detector = copy.deepcopy(calmed_at_a_kilohertz(cutoff))
    return detector, [*show(detector, errors, CALM, STEP // 10, cutoff=cutoff).items()]


def behind_low_pass(values: Array, step: int, cutoff: float = 20.0) -> Array:
    """Rows behind a second-order Butterworth low-pass, `step` ns apart."""
    return signal.sosfilt(signal.butter(2, cutoff, fs=1e9 / step, output="sos"), values, axis=0)


def sharpened(detector: ContactDetector) -> Array:
    """The last sample's errors as the quick test has them."""
    known = detector._errors
    return known.parts["error"][known.now["slot"][0], QUICK, :-1].copy()


@pytest.mark.parametrize("step", [1_000_000, 2_000_000, 4_000_000])
def test_sharpened_errors_are_those_behind_the_wider_low_pass(step: int) -> None:
    """Between samples of any distance, by SciPy's filters of the errors that nothing passed."""
    rng = np.random.default_rng(1)
    raw = behind_low_pass(rng.standard_normal((600, 3)), step, 60.0)  # what a trapezoid can follow
    given, wanted = behind_low_pass(raw, step), behind_low_pass(raw, step, 20.0 * QUICK_RATIO)
    detector, found = ContactDetector(ChangesConfig(), np.ones(3)), []
    for k, row in enumerate(given):
        detector.add((k + 1) * step, row, cutoff=20.0, tested=False)
        found.append(sharpened(detector))
    # The bilinear transformation of either filter bends frequencies, the less the finer the step.
    assert np.abs(found - wanted)[300:].max() < 1e4 * (step * 1e-9) ** 2 * wanted.std()


def test_sharpened_errors_begin_at_rest_and_anew_where_they_were_not_measured() -> None:
    constant, beside = np.array([3.0, -2.0]), np.array([np.nan, -2.0])
    detector, now = ContactDetector(ChangesConfig(), np.ones(2)), 0
    # A quarter of a cut-off's period between two: neither is sharpened, and the next is at rest.
    others = (1, beside, 20.0), (25, constant, 20.0), (1, constant, 20.0), (1, constant, 0.0)
    for ahead, given, cutoff in ((1, constant, 20.0),) * 500 + others + others[2:3] * 2:
        now += ahead * 1_000_000
        detector.add(now, given, cutoff=cutoff, tested=False)
        if ahead == 1 and cutoff:
            np.testing.assert_allclose(sharpened(detector), given, rtol=1e-12)


def test_a_strong_push_is_told_sooner_by_sharpened_errors() -> None:
    push = np.zeros((300, 2))
    push[100:] = 0.0, 30.0
    pushed = behind_low_pass(push, 1_000_000)
    _, slow = at_a_kilohertz(pushed, 0.0)
    detector, quick = at_a_kilohertz(pushed, 20.0)
    assert [what for _, what in slow] == [what for _, what in quick] == ["begins"]
    assert 100 < quick[0][0] <= slow[0][0] - 3  # ms
    assert 0 <= CALM + quick[0][0] - detector.since / (STEP // 10) <= 10


def test_a_jerk_that_only_sharpened_errors_show_is_over_soon_and_becomes_usual() -> None:
    step = 1_000_000
    jerk = np.zeros((2000, 2))
    jerk[100:108, 1] = 28.0
    shown = behind_low_pass(jerk, step)
    assert at_a_kilohertz(shown, 0.0)[1] == []
    detector, said = at_a_kilohertz(shown, 20.0)
    assert [what for _, what in said] == ["begins", "over"]
    assert 0 <= said[1][0] - said[0][0] - 1e3 * END_TIME_S <= 60
    # The next such jerk is not told.
    assert show(detector, shown, CALM + len(jerk), step, cutoff=20.0) == {}


def test_what_sharpened_errors_tell_lasts_until_calm_though_others_are_usual() -> None:
    step = 1_000_000
    detector, _ = at_a_kilohertz(np.zeros((1, 2)), 20.0)
    state = detector.state()
    for test in ("", "lasting."):
        state[f"{test}sizes.squares"] *= 100.0  # as if such errors were usual there
    detector.restore(state)
    push = np.zeros((600, 2))
    push[100:110, 1] = 30.0
    said = show(detector, behind_low_pass(push, step), CALM + 1, step, cutoff=20.0)
    (begun, first), (ended, last) = said.items()
    assert (first, last) == ("begins", "over") and ended - begun >= 1e3 * END_TIME_S


def test_what_is_expected_is_saved_for_all_three_tests() -> None:
    detector, _ = at_a_kilohertz(np.zeros((1, 2)), 20.0)
    other = ContactDetector(detector.config, np.ones(2))
    other.restore(state := detector.state())
    for part in ("quick.", "lasting.", "sizes.", "means", "unknown"):
        assert any(name.startswith(part) for name in state)
    for name, value in other.state().items():
        np.testing.assert_array_equal(value, state[name], err_msg=name)
    np.testing.assert_array_equal(other.spread(1.0), detector.spread(1.0))
    np.testing.assert_array_equal(other.mean_covariance(), detector.mean_covariance())
    np.testing.assert_array_equal(limits(other), limits(detector))
