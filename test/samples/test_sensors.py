"""Sensors that stick, are saturated or give nothing, alone and in the stream."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.samples.measurement import StreamConfig
from semiparam_dynamics.samples.sensors import (
    NOT_YET,
    SATURATED,
    SUSPECTED,
    SensorFaults,
    StuckPositions,
    ZeroVelocities,
)
from semiparam_dynamics.samples.stream import MeasurementStream

from .messages import joint_state, wrench

NAMES = ["a", "b"]
STEP = SECOND // 100
CONFIG = StreamConfig(stuck_after=0.2, stuck_motion=0.05, saturation_after=0)


def moving(k: int) -> list[float]:
    return [0.01 * k, -0.02 * k]


def stuck_from(faults: SensorFaults, readings, motion=moving) -> list[int]:
    """The instants at which something was wrong."""
    return [k for k, y in enumerate(readings) if faults((k + 1) * STEP, list(y), motion(k))]


def test_it_says_which_sensor_sticks_and_at_what() -> None:
    faults = SensorFaults(NAMES, CONFIG)
    assert faults(1, [1.0, 2.5], [0.0, 0.0]) == []
    ((axis, reason, text),) = faults(SECOND, [3.0, 2.5], [1.0, 1.0])
    assert (axis, reason) == (1, "effort stuck")
    assert "the effort of b stays exactly 2.5" in text and "samples.stuck_after" in text
    faults(SECOND, [4.0, -0.0], [1.0, 1.0])
    ((_, _, text),) = faults(2 * SECOND, [5.0, -0.0], [2.0, 2.0])
    assert "the effort of b stays exactly 0 " in text  # not -0


def test_an_effort_may_stay_the_same_while_only_other_joints_move() -> None:
    def second_moves(k: int) -> list[float]:
        return [0.0, 0.01 * k]

    readings = [[1.0, 0.1 * k] for k in range(100)]
    assert not stuck_from(SensorFaults(NAMES, CONFIG), readings, second_moves)
    same = [[1.0, 1.0, 1.0, 1.0, 1.0, 0.1 * k] for k in range(100)]
    assert stuck_from(SensorFaults([], CONFIG), same, second_moves)  # but a wrench may not


def test_what_is_no_number_between_ends_no_run() -> None:
    readings = [[1.0 + (k > 0), 0.1 * k] if k % 5 else [np.nan, np.nan] for k in range(1, 100)]
    readings[0] = [3.0, 0.0]
    wrong = stuck_from(SensorFaults(NAMES, CONFIG), readings)
    assert wrong == [k for k in range(22, 99) if (k + 1) % 5]


def test_nothing_sticks_where_it_is_switched_off_or_the_clock_went_back() -> None:
    off = StreamConfig(stuck_after=0.0, saturation_after=0)
    assert not stuck_from(SensorFaults(NAMES, off), [[1.0, 2.0]] * 100)
    faults = SensorFaults(NAMES, CONFIG)
    y = [1.0, 2.0]
    assert not faults(100 * SECOND, y, moving(0))
    assert not faults(100 * SECOND + STEP, y, moving(10))
    assert not faults(50 * SECOND, y, moving(20))
    assert not faults(50 * SECOND + STEP, y, moving(30))
    assert [axis for axis, _, _ in faults(51 * SECOND, y, moving(40))] == [0, 1]


PAIRS = st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=2, max_size=2)


@given(st.lists(st.tuples(st.sampled_from([1, 5, 30]), PAIRS, PAIRS), max_size=40), st.booleans())
def test_readings_stick_by_the_definition_whatever_came_before(instants, own_joint) -> None:
    """The last run of equal readings, searched for anew at each instant."""
    config = StreamConfig(stuck_after=2e-8, stuck_motion=0.5, saturation_after=0)
    faults = SensorFaults(NAMES if own_joint else (), config)
    stamps = np.cumsum([step for step, _, _ in instants])
    for i, (_, values, q) in enumerate(instants):
        wanted = []
        for k in (0, 1):
            start = i
            while start > 0 and instants[start - 1][1][k] == values[k]:
                start -= 1
            never_measured = start == 0 and values[k] == 0.0
            for j in range(start, i + 1):
                motion = np.abs(np.subtract(instants[j][2], instants[start][2]))
                moved = motion[k] > 0.5 if own_joint else max(motion) > 0.5
                if stamps[j] - stamps[start] > 20 and moved and not never_measured:
                    wanted.append(k)
                    break
        found = faults(int(stamps[i]), values if own_joint else values * 3, list(q))
        assert [axis for axis, _, _ in found if axis < 2] == wanted


def test_a_reading_that_sticks_is_searched_for_anew_where_the_clock_goes_back() -> None:
    def swings(k: int) -> list[float]:
        return [np.sin(0.1 * k), np.cos(0.1 * k)]

    faults = SensorFaults(NAMES, CONFIG)
    for k in range(100):
        faults(10 * SECOND + k * STEP, [1.0, 0.2 * k], swings(k))
    assert faults(10 * SECOND + 100 * STEP, [1.0, 99.0], swings(0))
    assert not faults(5 * SECOND, [1.0, 98.0], swings(0))
    assert not faults(5 * SECOND + STEP, [1.0, 97.0], swings(30))


@given(st.lists(st.tuples(st.sampled_from([1, 5, 30]), PAIRS, PAIRS), max_size=40))
def test_positions_stick_by_the_definition_whatever_came_before(instants) -> None:
    config = StreamConfig(stuck_after=0.02, stuck_motion=0.03)  # 1.5 rad/s
    positions = StuckPositions(NAMES, config)
    stamps = np.cumsum([step * SECOND // 1000 for step, _, _ in instants])
    for i, (_, q, dq) in enumerate(instants):
        wanted = -1
        for k in (1, 0):
            start = i
            while (
                start > 0
                and abs(instants[start][2][k]) > 1.5
                and instants[start - 1][1][k] == instants[start][1][k]
            ):
                start -= 1
            if stamps[i] - stamps[start] > SECOND // 50:
                wanted = k
        found = positions(int(stamps[i]), list(q), list(dq))
        assert found.startswith(f"'{NAMES[wanted]}'") if wanted >= 0 else not found


def test_a_position_sticks_while_its_velocity_goes_on() -> None:
    positions = StuckPositions(NAMES, CONFIG)
    q, dq = [0.5, 0.0], [1.0, 0.0]
    told = [positions((k + 1) * STEP, q, dq) for k in range(30)]
    assert [bool(text) for text in told] == [k > 20 for k in range(30)]
    assert "'a' stays exactly at 0.5" in told[-1]
    slow = StuckPositions(NAMES, CONFIG)
    assert not any(slow((k + 1) * STEP, q, [0.2, 0.0]) for k in range(100))  # noise of a velocity
    for none in (None, [np.nan, np.nan]):
        assert not any(slow((k + 1) * STEP, q, none) for k in range(100))


@pytest.mark.parametrize(
    ("given", "reading", "axes"),
    [
        ((10.0,), [9.99, -9.99], []),
        ((10.0,), [0.0, -10.0], [1]),
        ((10.0, 5.0), [9.0, 5.5], [1]),
        ((10.0, 5.0), [-12.0, 5.5], [0, 1]),
        ((), [1e8, 1e8], []),
    ],
)
def test_readings_at_or_beyond_a_given_limit_are_saturated(given, reading, axes) -> None:
    faults = SensorFaults(NAMES, StreamConfig(saturation=given))(1, list(reading), None)
    assert [axis for axis, _, _ in faults] == axes
    assert all(reason == "effort saturated" for _, reason, _ in faults)


def swaying(k: int) -> list[float]:
    return [np.sin(0.02 * k), 0.0]


def saturated(
    efforts: np.ndarray, motion=swaying, what: str = SATURATED, **settings: object
) -> np.ndarray:
    """(k,) where the first joint's effort is said to be saturated, or suspected."""
    faults = SensorFaults(NAMES, StreamConfig(stuck_after=0.0, **settings))
    found = [faults((k + 1) * STEP, [y, 0.0], motion(k)) for k, y in enumerate(efforts.tolist())]
    assert all(axis == 0 for each in found for axis, _, _ in each)
    return np.array([what in [said for _, said, _ in each] for each in found])


def test_an_effort_that_stays_at_its_own_extreme_while_its_joint_moves_is_saturated() -> None:
    t = 0.02 * np.arange(1500)
    true = 10.0 * np.cos(t) + 2.0 * np.sin(3.1 * t)
    clipped = np.clip(true, -6.0, 7.0)
    wrong = clipped != true
    found = saturated(clipped)
    assert not found[~wrong].any()
    for limit in (-6.0, 7.0):
        # All but the first readings, which it takes to notice.
        missed = np.flatnonzero((clipped == limit) & ~found)
        assert 5 <= len(missed) <= 40 and found[clipped == limit][40:].all()
    assert not saturated(true).any() and not saturated(clipped, saturation_after=0).any()


def test_what_is_exceeded_was_no_limit_and_a_joint_at_rest_has_none() -> None:
    t = 0.02 * np.arange(1000)
    clipped = np.minimum(10.0 * np.sin(t), 6.0)
    assert not saturated(clipped, lambda k: [0.5, 0.0]).any()
    beyond = np.append(clipped, [6.5, 6.0, 6.0])
    found = saturated(beyond)
    assert found[:-3].any() and not found[-3:].any()
    assert not saturated(np.maximum(clipped, 0.0) * (t > 1.0))[clipped <= 0.0].any()  # of zero


def test_saturated_before_its_joint_has_moved_is_suspected_while_another_joint_moves() -> None:
    def beginning(k: int) -> list[float]:
        return [1e-5 * k, 1e-4 * k]

    t = 0.02 * np.arange(1500)
    true = -10.0 * np.cos(0.02 * t) + np.sin(3.1 * t)
    limited = np.maximum(true, -6.0)
    suspected, found = (saturated(limited, beginning, what) for what in (SUSPECTED, SATURATED))
    wrong = limited != true
    assert wrong[:1000].all()
    assert suspected[6:1000].all() and not suspected[~wrong].any() and not found[:1000].any()
    assert not saturated(limited, lambda k: [1e-5 * (k % 3), 1e-4 * (k % 2)], SUSPECTED).any()
    assert not saturated(true, beginning, SUSPECTED).any()


@pytest.mark.parametrize(("steps", "noise"), [(0.1, 0.03), (0.5, 0.15), (2.0, 0.0)])
def test_coarse_steps_are_no_saturation(steps: float, noise: float) -> None:
    t = 0.02 * np.arange(3000)
    true = 10.0 * np.sin(t + 0.3) + 3.0 * np.sin(2.7 * t)
    assert not saturated(steps * np.round(true / steps)).any()
    true += np.random.default_rng(0).normal(0.0, noise, len(t))
    assert not saturated(steps * np.round(true / steps)).any()


def test_limits_for_another_number_of_axes_are_refused() -> None:
    config = StreamConfig(saturation=(1.0, 2.0, 3.0))
    with pytest.raises(ConfigurationError, match="samples.saturation.*each of the 2 axes, not 3"):
        MeasurementStream(NAMES, config=config)
    with pytest.raises(ConfigurationError, match="each of the 6 axes"):
        MeasurementStream(NAMES, "wrench", config)


def noticed(
    positions: list[float], velocities: list[float], steps: list[int] | None = None
) -> list[int]:
    """The messages at which the velocity of a joint beside another one is unknown."""
    of, stamp, found = ZeroVelocities(CONFIG), 0, []
    steps = [STEP] * len(positions) if steps is None else steps
    for k, (q, dq, step) in enumerate(zip(positions, velocities, steps, strict=True)):
        stamp, before = stamp + step, stamp
        unknown, new = of(stamp, before, [1.0, dq], [0.1 * k, q])
        assert new in ([], [1]) and unknown in ([], [1]) and set(new) <= set(unknown)
        found += [k] if unknown else []
    return found


def test_velocities_are_zeros_that_nobody_filled_once_their_joint_has_moved() -> None:
    moves, zeros = [0.01 * k for k in range(60)], [0.0] * 60
    assert noticed(moves, zeros) == list(range(16, 60))
    # One velocity tells that they are measured, however coarse they are.
    for at in (0, 15):
        assert noticed(moves, [*zeros[:at], 0.01, *zeros[at + 1 :]]) == []
    assert noticed(moves, [*zeros[:40], 0.01, *zeros[41:]]) == list(range(16, 40))
    # What is no number tells nothing.
    assert noticed(moves, [*zeros[:5], np.nan, *zeros[6:]]) == list(range(16, 60))
    assert noticed(moves, [*zeros[:30], np.nan, *zeros[31:]]) == [*range(16, 30), *range(31, 60)]


def test_zeros_are_the_velocities_of_a_joint_that_stands() -> None:
    zeros = [0.0] * 60
    stands = [1.0 + 0.01 * (-1.0) ** k for k in range(60)]
    assert noticed(stands, zeros) == []
    # Some wrong positions, as in a message of zeros, are no motion; nor is a full turn.
    assert noticed([*stands[:30], *[0.0] * 10, *stands[40:]], zeros) == []
    assert noticed([1.0, 0.0, 0.0, 1.0], zeros[:4], [SECOND // 6] * 4) == []
    assert noticed([*stands[:30], *(q - 2.0 * np.pi for q in stands[30:])], zeros) == []
    # Nor is that somebody else moved it in a pause, or that a recording is played again.
    elsewhere = [*stands[:30], *(q + 0.5 for q in stands[30:])]
    assert noticed(elsewhere, zeros) == list(range(40, 60))
    for pause in (10 * SECOND, -5 * STEP):
        assert noticed(elsewhere, zeros, [*[STEP] * 30, pause, *[STEP] * 29]) == []


def test_in_the_stream_a_stuck_effort_costs_that_joint_and_a_stuck_position_all() -> None:
    stream = MeasurementStream(NAMES, config=CONFIG)
    for k in range(40):
        (m,) = stream.joint_state(joint_state((k + 1) * STEP, NAMES, moving(k), [], [1.0, k]))
        assert m.y is not None and m.y[1] == k and np.isnan(m.y[0]) == (k > 20)
    assert stream.dropped == {"effort stuck": 19}
    stream = MeasurementStream(NAMES, config=CONFIG)
    for k in range(40):
        effort = [1.0 + (k > 15), 2.0]
        (m,) = stream.joint_state(joint_state((k + 1) * STEP, NAMES, moving(k), [], effort))
        # Before the first change nothing is known to be measured at all.
        assert (m.y is None) == (10 <= k <= 15 or k > 36)
    assert stream.dropped == {"effort stuck": 19, NOT_YET: 6}
    told = stream.details["effort stuck"]
    assert "the effort of a stays exactly 2 " in told and "the effort of b" in told
    stream = MeasurementStream(NAMES, config=CONFIG)
    for k in range(40):
        message = joint_state((k + 1) * STEP, NAMES, [1.0, 0.1 * k], [2.0, 2.0], [k, k])
        assert len(stream.joint_state(message)) == (k <= 20)
    assert stream.dropped == {"position stuck": 19}


def test_in_the_stream_a_bad_wrench_pairs_with_nothing() -> None:
    config = StreamConfig(saturation=(100.0,), stuck_after=0.2)
    stream = MeasurementStream(NAMES, "wrench", config)
    measured = []
    for k in range(60):
        stamp = (k + 1) * STEP
        value = 500.0 if 10 <= k < 20 else min(k, 30)
        measured += stream.wrench(wrench(stamp, [value] * 6))
        measured += stream.joint_state(joint_state(stamp, NAMES, moving(k)))
    measured += stream.flush()
    without = [round(m.stamp / STEP) - 1 for m in measured if m.y is None]
    assert without == [*range(10, 20), *range(51, 60)]
    assert stream.dropped["wrench saturated"] == 10
    assert stream.dropped["wrench stuck"] == 9
    assert all(m.y is None or abs(m.y[0]) <= 30 for m in measured)
