"""The clock behind stamps, against motion whose true times are known."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.dynamics.clock import CLOCK, FIRST_STEPS, clocked_step, restart_clock
from semiparam_dynamics.dynamics.filtering import FilterConfig, SampleFilter
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.samples.measurement import Measurement

from .arms import small_arm

RATE = 100.0


def even_times(seconds: float = 20.0, missing: float = 0.0) -> np.ndarray:
    t = np.arange(seconds * RATE) / RATE
    return t[np.random.default_rng(1).random(len(t)) >= missing]


def jitter(t: np.ndarray, size: float) -> np.ndarray:
    return t + np.random.default_rng(0).uniform(-size, size, len(t)) + size


def swaying(t: np.ndarray, stamps: np.ndarray) -> list[Measurement]:
    """The small arm's first joint at 0.3 sin 3t at true times t (n,), stamped otherwise; s."""
    arm = small_arm()
    first, y = np.eye(arm.n_joints)[0], np.zeros(arm.n_axes)
    return [
        Measurement(SECOND + round(stamp * SECOND), 0.3 * np.sin(3.0 * now) * first, None, y)
        for now, stamp in zip(t, stamps, strict=True)
    ]


def filtered(messages: list[Measurement]) -> list[Sample]:
    return list(SampleFilter(small_arm(), FilterConfig()).filter_recording(messages))


def followed(t: np.ndarray, stamps: np.ndarray) -> np.ndarray:
    """The steps between stamps (n,) as the clock has them, for two joints that sway with t."""
    clock, steps, went = np.zeros(1, dtype=CLOCK), np.zeros(FIRST_STEPS), np.zeros(2)
    restart_clock(clock[0])
    q = np.column_stack((0.3 * np.sin(3.0 * t), 0.5 * np.cos(2.0 * t)))
    return np.array(
        [
            clocked_step(clock[0], steps, went, q[k], q[k - 1], stamps[k] - stamps[k - 1], 1)
            for k in range(1, len(t))
        ]
    )


@pytest.mark.parametrize(
    ("size", "missing"), [(1e-3, 0.0), (1e-3, 0.1), (3e-3, 0.0), (3e-3, 0.1), (4.5e-3, 0.0)]
)
def test_accelerations_at_even_times_are_those_of_true_stamps(size: float, missing: float) -> None:
    t = even_times(missing=missing)
    stamps = jitter(t, size)
    true, found = filtered(swaying(t, t)), filtered(swaying(t, stamps))
    # It begins in motion: what comes in the wide filter's first 0.1 s is none.
    first, *expected = [SECOND + round(s * SECOND) for s in stamps[:-1]]
    assert [s.stamp for s in found] == [s for s in expected if s > first + SECOND // 10]
    n = min(len(found), len(true))
    errors = np.array([found[k].ddq[0] - true[k].ddq[0] for k in range(-n, 0)])
    assert errors[:30].std() > 200.0 * size  # before the clock is known: of at most 2.7 rad/s^2
    assert errors[300:].std() < 10.0 * size


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_true_stamps_stay_to_the_last_bit(missing: float) -> None:
    t = jitter(even_times(missing=missing), 3e-3)
    np.testing.assert_array_equal(followed(t, t), np.diff(t))


def test_wrong_stamps_stay_while_nothing_moves() -> None:
    stamps = jitter(even_times(), 3e-3)
    np.testing.assert_array_equal(followed(np.zeros(len(stamps)), stamps), np.diff(stamps))


def test_after_hours_at_rest_steps_are_numbers_and_the_clock_is_found_again() -> None:
    """A position that stays to the last bit says nothing, and what others said fades to nothing."""
    t = np.arange(10.0 * 3600.0 * 4.0) / 4.0
    motion = np.where((t < 60.0) | (t > t[-1] - 600.0), t, 0.0)
    wrong = jitter(t, 0.05)
    errors = followed(motion, wrong) - np.diff(t)
    assert np.isfinite(errors).all()
    assert errors[-200:].std() < 0.5 * (np.diff(wrong) - np.diff(t))[-200:].std()


def test_the_clock_goes_on_through_gaps_and_another_rate() -> None:
    times = [np.arange(1000) / 100.0, 10.3 + np.arange(2000) / 200.0, 20.4 + np.arange(500) / 25.0]
    t = np.concatenate(times)
    wrong = jitter(t, 1.5e-3)
    errors = followed(t, wrong) - np.diff(t)
    for begin, end in ((300, 999), (1500, 2999), (3300, 3499)):
        raw = (np.diff(wrong) - np.diff(t))[begin:end].std()
        assert errors[begin:end].std() < 0.1 * raw


def test_time_never_goes_back_and_stays_with_the_stamps_of_messages_in_bursts() -> None:
    rng = np.random.default_rng(2)
    t = even_times()
    # Each message may wait for one that is held up.
    stamps = np.maximum.accumulate(t + rng.exponential(0.004, len(t))) + 1e-5 * np.arange(len(t))
    steps = followed(t, stamps)
    assert steps.min() > 0.0
    assert np.abs(np.cumsum(steps) - (stamps[1:] - stamps[0])).max() < 0.05
    assert (steps - np.diff(t)).std() < (np.diff(stamps) - np.diff(t)).std()


@pytest.mark.parametrize("size", [3, 10])
def test_messages_stamped_in_bursts_were_sampled_at_even_times(size: int) -> None:
    """Each burst is stamped at its last reading, 0.1 ms apart; from the second on it is exact."""
    t = np.arange(2000) / RATE
    k = np.arange(len(t))
    stamps = t[np.minimum(k // size * size + size - 1, len(t) - 1)] + 1e-4 * (k % size)
    steps = followed(t, stamps)
    known = FIRST_STEPS + size
    np.testing.assert_allclose(steps[known:], 1.0 / RATE, rtol=1e-9)
    # Nor is anything predicted of the motion until then: its differences would be absurd.
    found = filtered(swaying(t, stamps))
    true = {s.q.tobytes(): s for s in filtered(swaying(t, t))}
    assert len(found) > len(t) - known - 2 * size - 12 and len(true) > len(found)
    worst = max(np.abs(s.ddq).max() for s in found)
    assert worst < 1.2 * max(np.abs(s.ddq).max() for s in true.values())
