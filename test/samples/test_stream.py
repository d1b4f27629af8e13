"""From messages to measurements: joints by name, checks, stamps."""

from __future__ import annotations

import array
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.robot.urdf import Lock, UrdfTree, extent, parse_urdf, turned_up
from semiparam_dynamics.samples.joint_names import (
    JointMatcher,
    joint_positions,
    joints_together,
    whole_messages,
)
from semiparam_dynamics.samples.measurement import OTHER_PUBLISHER, StreamConfig
from semiparam_dynamics.samples.sensors import MIN_LACKING, NO_EFFORT, NO_VELOCITY
from semiparam_dynamics.samples.stream import MOVED, MeasurementStream

from .messages import joint_state, wrench

NAMES = ["a", "b"]
SOME_NAMES = st.lists(st.text(max_size=3), min_size=1, max_size=8, unique=True)
FLOATS = st.floats(allow_nan=True, allow_infinity=True)
# Whole and broken messages alike: stamps near each other, from all over, negative.
STAMPS = st.integers(0, 50) | st.integers(-(2**31) * SECOND, 2**31 * SECOND)
JOINT_STATES = st.builds(
    joint_state,
    STAMPS,
    st.lists(st.sampled_from([*NAMES, "c"]), max_size=4) | st.just(NAMES),
    *[st.lists(FLOATS, max_size=3) | st.just([1.0, 2.0])] * 3,
)
WRENCHES = st.builds(
    wrench,
    STAMPS,
    st.lists(FLOATS, min_size=6, max_size=6) | st.just([1.0] * 6),
    st.sampled_from(["", "sensor", "other"]),
)
JUNK = st.sampled_from([None, 3, SimpleNamespace(name=None), SimpleNamespace(name=NAMES)])


@given(
    st.sampled_from(["effort", "wrench"]),
    st.sampled_from([0.0, 0.01, -0.01]),
    st.lists(
        st.tuples(st.just(True), JOINT_STATES | JUNK) | st.tuples(st.just(False), WRENCHES | JUNK),
        max_size=30,
    ),
)
@example("effort", 0.0, [(True, joint_state(1, NAMES, [1.0, 2.0], [1.0, 2.0], [0.0, 2e9]))])
def test_no_message_raises_or_gives_what_can_not_be(target, delay, messages) -> None:
    config = StreamConfig(effort_delay=delay)
    stream = MeasurementStream(NAMES, target, config, wrench_frame="sensor")
    last = 0
    for is_joint_state, message in messages:
        jumps = stream.dropped["clock jumped"]
        measurements = (stream.joint_state if is_joint_state else stream.wrench)(message)
        for m in measurements:
            assert m.q.shape == (2,) and np.isfinite(m.q).all()
            assert m.dq is None or (m.dq.shape == (2,) and np.isfinite(m.dq).all())
            # NaN is an axis without a reading, which costs that axis alone.
            assert m.y is None or np.isfinite(m.y).any() and np.abs(np.nan_to_num(m.y)).max() <= 1e9
            assert m.stamp > last or stream.dropped["clock jumped"] > jumps
            last = m.stamp
    assert stream.received.total() == len(messages)


def test_an_effort_measurement_has_the_message_s_values_in_the_wanted_order() -> None:
    stream = MeasurementStream(NAMES)
    (m,) = stream.joint_state(
        joint_state(SECOND + 7, ["c", "b", "a"], [9, 2, 1], [9, 4, 3], [9, 6, 5])
    )
    assert m.stamp == SECOND + 7
    assert np.array_equal(m.q, [1, 2])
    assert np.array_equal(m.dq, [3, 4])
    assert np.array_equal(m.y, [5, 6])
    assert not stream.dropped


def test_a_measurement_does_not_change_with_the_message_s_memory() -> None:
    position = array.array("d", [1.0, 2.0])  # as rclpy holds it
    message = joint_state(1, NAMES, [], [3.0, 4.0], [5.0, 6.0])
    message.position = position
    (m,) = MeasurementStream(NAMES).joint_state(message)
    position[0] = 100.0
    assert np.array_equal(m.q, [1.0, 2.0])


NAN, INF = math.nan, math.inf
GOOD = ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0])


@pytest.mark.parametrize(
    ("stamp", "names", "arrays", "reason"),
    [
        (2, ["a"], [[1.0]] * 3, "missing joint"),
        (2, ["a", "b", "a"], [[1.0] * 3] * 3, "duplicate joint name"),
        (2, NAMES, ([1.0], [], []), "wrong length"),
        (2, NAMES, ([1.0, 2.0], [1.0], []), "wrong length"),
        (2, NAMES, ([1.0, 2.0], [], [1.0, 2.0, 3.0]), "wrong length"),
        (2, NAMES, ([1.0, NAN], [], []), "not finite"),
        (2, NAMES, ([-INF, 0.0], [], []), "not finite"),
        (2, NAMES, ([1e200, 0.0], [], []), "implausible value"),
        (0, NAMES, GOOD, "zero stamp"),
        (10, NAMES, GOOD, "repeated stamp"),
        (9, NAMES, GOOD, "out of order"),
    ],
)
def test_a_bad_joint_state_is_counted_and_what_follows_is_untouched(
    stamp, names, arrays, reason
) -> None:
    stream, clean = MeasurementStream(NAMES), MeasurementStream(NAMES)
    first, last = joint_state(10, NAMES, *GOOD), joint_state(20, NAMES, *GOOD)
    stream.joint_state(first)
    clean.joint_state(first)
    assert stream.joint_state(joint_state(stamp, names, *arrays)) == []
    assert stream.dropped == {reason: 1}
    (after,), (expected,) = stream.joint_state(last), clean.joint_state(last)
    assert after.stamp == expected.stamp
    assert np.array_equal(after.dq, expected.dq)
    assert stream.dropped == {reason: 1}


@pytest.mark.parametrize(
    ("velocity", "effort", "reason"),
    [
        ([3.0, 4.0], [], "no effort"),
        ([3.0, 4.0], [NAN, 1.0], "effort not finite"),
        ([NAN, 4.0], [5.0, 6.0], "velocity not finite"),
    ],
)
def test_a_position_is_of_use_without_effort_or_velocity(velocity, effort, reason) -> None:
    stream = MeasurementStream(NAMES)
    (m,) = stream.joint_state(joint_state(1, NAMES, [1.0, 2.0], velocity, effort))
    assert m.y is None or np.isnan(m.y).tolist() == [reason == "effort not finite", False]
    assert (m.y is None) == (reason == "no effort")
    assert np.isnan(m.dq).tolist() == ["velocity" in reason, False]
    assert stream.dropped == {reason: 1}
    assert reason in stream.INCOMPLETE


def with_finger(**lacks: float) -> tuple[MeasurementStream, list]:
    """An arm's joint at 0.1 sin t and a finger that opens, 300 messages 10 ms apart."""
    stream, given = MeasurementStream(["arm", "finger"]), []
    for k in range(1, 301):
        t = 0.01 * k
        fields = {
            "position": [0.1 * math.sin(t), 0.01 * t],
            "velocity": [0.1 * math.cos(t), 0.01],
            "effort": [math.sin(9.0 * t), 0.3 + 0.1 * math.cos(7.0 * t)],
        }
        for field, value in lacks.items():
            fields[field][1] = value
        given += stream.joint_state(joint_state(k * SECOND // 100, ["arm", "finger"], **fields))
    return stream, given


def test_a_joint_without_velocities_costs_the_others_none_of_theirs() -> None:
    stream, given = with_finger(velocity=NAN)
    assert len(given) == 300
    for k, m in enumerate(given, start=1):
        assert m.dq[0] == 0.1 * math.cos(0.01 * k) and np.isnan(m.dq[1])
    assert stream.dropped == {"velocity not finite": 300}
    assert stream.recent_details() == {
        "velocity not finite": "the velocity of finger is nan: differences of positions take its "
        "place"
    }
    (told,) = stream.news()
    assert told.startswith("finger: no velocity has ever been a number") and not stream.news()


@pytest.mark.parametrize("rate", [100, 1000])
def test_a_joint_whose_velocities_are_never_filled_costs_the_others_none_of_theirs(rate) -> None:
    stream, given, last = MeasurementStream(["arm", "wrist"]), [], 3 * rate
    for k in range(1, last + 1):
        t = k / rate
        position, velocity = [0.1 * math.sin(t), 0.2 * t], [0.1 * math.cos(t), 0.0]
        message = joint_state(k * SECOND // rate, ["arm", "wrist"], position, velocity, [t, -t])
        given += stream.joint_state(message)
    # It has to move by samples.stuck_motion before zero is no velocity.
    at = next(k for k, m in enumerate(given) if np.isnan(m.dq[1]))
    assert 0.25 + 0.1 < given[at].stamp / SECOND < 0.25 + 0.1 + 3.0 / rate
    assert [m.dq[1] for m in given[:at]] == [0.0] * at
    assert all(np.isnan(m.dq[1]) for m in given[at:])
    assert [m.dq[0] for m in given] == [0.1 * math.cos(k / rate) for k in range(1, last + 1)]
    assert stream.dropped == {NO_VELOCITY: last - at} and NO_VELOCITY in stream.INCOMPLETE
    assert stream.details[NO_VELOCITY].startswith("every velocity of wrist has been 0, though the")
    (told,) = stream.news()
    assert told.startswith("wrist: every velocity has been 0, though the joint moves")
    # It is the driver's own again as soon as it gives one.
    for k, velocity in ((1, 0.3), (2, 0.0)):
        stamp = 3 * SECOND + k * SECOND // rate
        fields = [0.1, 0.6], [0.1, velocity], [k, -k]
        (m,) = stream.joint_state(joint_state(stamp, ["arm", "wrist"], *fields))
        assert m.dq[1] == velocity
    assert stream.dropped == {NO_VELOCITY: last - at} and not stream.news()


def test_a_joint_without_efforts_is_told_once_and_then_only_counted() -> None:
    stream, given = with_finger(effort=NAN)
    assert [np.isnan(m.y).tolist() for m in given] == [[False, True]] * 300
    # The message that shows it counts as the later ones do.
    faults = {"effort not finite": MIN_LACKING - 1, NO_EFFORT: 301 - MIN_LACKING}
    assert stream.dropped == faults and NO_EFFORT in stream.INCOMPLETE
    assert stream.details["effort not finite"] == "the effort of finger is nan"
    assert "finger never has an effort" in stream.details[NO_EFFORT]
    (told,) = stream.news()
    assert told.startswith("finger: no effort has ever been a number")


def test_an_effort_that_fails_or_comes_late_is_no_lacking_one() -> None:
    stream = MeasurementStream(NAMES)
    for k in range(1, 3 * MIN_LACKING):
        second = 1.0 if k in (2, MIN_LACKING + 1) else NAN
        stream.joint_state(joint_state(k, NAMES, [0.1 * k, 0.2], effort=[float(k % 7), second]))
    assert set(stream.dropped) == {"effort not finite"} and not stream.news()
    # Where no joint has any, nothing can be learned: that stays a fault.
    stream = MeasurementStream(NAMES)
    for k in range(1, 2 * MIN_LACKING):
        stream.joint_state(joint_state(k, NAMES, [0.1 * k, 0.2], effort=[NAN, NAN]))
    assert stream.dropped == {"effort not finite": 2 * MIN_LACKING - 1} and not stream.news()


def test_a_joint_that_never_has_a_position_is_named_with_what_to_do() -> None:
    stream, given = with_finger(position=NAN)
    assert not given and stream.dropped == {"not finite": 300}
    told = stream.details["not finite"]
    assert told.startswith("the position of finger is nan; ") and "the parameter 'joints'" in told
    assert "finger never had one" in told and "arm" not in told
    # One that had a position is only named.
    stream = MeasurementStream(NAMES)
    for stamp, position in enumerate([[NAN, 1.0], [1.0, NAN]], start=1):
        stream.joint_state(joint_state(stamp, NAMES, position))
        told = stream.recent_details()["not finite"]
    assert told == "the position of b is nan"
    stream.joint_state(joint_state(3, NAMES, [2e9, INF]))
    assert stream.details["not finite"] == "the position of a is 2e+09; the position of b is inf"


def test_the_entry_of_a_wrench_that_is_no_number_is_named() -> None:
    stream = MeasurementStream(NAMES, "wrench")
    stream.wrench(wrench(1, [0.0, NAN, 0.0, 0.0, 0.0, INF]))
    assert stream.details == {"not finite": "fy of the wrench is nan; tz of the wrench is inf"}


def test_details_asked_for_live_are_of_what_came_since() -> None:
    stream = MeasurementStream(NAMES)
    for effort in ([NAN, 1.0], [1.0, NAN]):
        stream.joint_state(joint_state(stream.newest + SECOND, NAMES, [1.0, 2.0], effort=effort))
        told = stream.recent_details()
    assert told == {"effort not finite": "the effort of b is nan"}
    for stamp in (9000, 8998, 9000, 5400):
        stream.joint_state(joint_state(stamp * SECOND, NAMES, [1.0, 2.0], effort=[1.0, 1.0]))
        told = stream.recent_details() or told
    assert "stamps went back by 3600.000 s" in told["clock jumped"]
    assert not stream.details


def test_a_velocity_of_zeros_counts_only_once_another_was_seen() -> None:
    stream = MeasurementStream(NAMES)
    velocities = [[0.0, 0.0], [], [0.0, 0.1], [0.0, 0.0]]
    given = [
        stream.joint_state(joint_state(stamp, NAMES, [1.0, 2.0], dq, [0.0, 0.0]))[0].dq
        for stamp, dq in enumerate(velocities, start=1)
    ]
    assert given[0] is None and given[1] is None
    assert np.array_equal(given[2], [0.0, 0.1])
    assert np.array_equal(given[3], [0.0, 0.0])


def test_not_a_number_in_a_velocity_does_not_make_later_zeros_trusted() -> None:
    stream = MeasurementStream(NAMES)
    stream.joint_state(joint_state(1, NAMES, [1.0, 2.0], [NAN, 0.0]))
    (m,) = stream.joint_state(joint_state(2, NAMES, [1.0, 2.0], [0.0, 0.0]))
    assert m.dq is None


def test_a_clock_that_goes_back_far_starts_the_stream_anew() -> None:
    stream = MeasurementStream(NAMES)
    for stamp in (100 * SECOND, 5 * SECOND, 5 * SECOND + 1):
        assert len(stream.joint_state(joint_state(stamp, NAMES, *GOOD))) == 1
    assert stream.dropped == {"clock jumped": 1}
    assert "95.000 s" in stream.details["clock jumped"]
    assert stream.joint_state(joint_state(4 * SECOND + 1, NAMES, *GOOD)) == []
    assert stream.dropped["out of order"] == 1  # exactly 1 s back is late, not a jump


def test_a_clock_set_back_a_little_is_told_from_late_messages() -> None:
    stream = MeasurementStream(NAMES)

    def taken(*stamps: int) -> list[int]:
        given = [stream.joint_state(joint_state(stamp, NAMES, *GOOD)) for stamp in stamps]
        return [m.stamp for measurements in given for m in measurements]

    # Two messages late by turns, or late ones that are in no order, are no other clock.
    assert taken(100, 90, 91, 110, 92, 93, 120, 119, 118, 117, 117) == [100, 110, 120]
    assert taken(130, 40, 50, 60, 70) == [130, 60, 70]
    assert stream.dropped == {"out of order": 10, "clock jumped": 1}


@pytest.mark.parametrize("ahead", [47, -47])
def test_what_lacks_the_efforts_of_others_moves_no_clock_until_they_end(ahead: int) -> None:
    stream = MeasurementStream(NAMES)

    def taken(stamp: int, *values: object) -> int:
        return len(stream.joint_state(joint_state(100 * SECOND + stamp, NAMES, *values)))

    step, there = SECOND // 10, ahead * SECOND
    for k in range(30):
        assert taken(k * step, [0.1 * k, -0.1 * k], [], [k, -k]) == 1
        assert not taken(k * step + there, [9.0, 9.0])
    assert stream.dropped == {OTHER_PUBLISHER: 30}
    alone = [taken((30 + k) * step + there, [9.0, 9.0]) for k in range(20)]
    assert alone == [0] * 10 + [1] * 10  # until a second has passed


@pytest.mark.parametrize("joint_states_first", [True, False])
def test_pairs_form_again_after_both_topics_clocks_went_back(joint_states_first) -> None:
    stream = MeasurementStream(NAMES, "wrench")
    given = []
    for start in (100 * SECOND, SECOND):
        for k in range(5):
            stamp = start + k * 10_000_000
            takes = [
                (stream.joint_state, joint_state(stamp, NAMES, [1.0, 2.0])),
                (stream.wrench, wrench(stamp, [stamp / SECOND] * 6)),
            ]
            for take, message in takes if joint_states_first else takes[::-1]:
                given += take(message)
    assert stream.dropped == {"clock jumped": 2}
    assert len(given) == 10
    assert all(m.y[0] == m.stamp / SECOND for m in given)


@pytest.mark.parametrize("target", ["effort", "wrench"])
def test_nothing_is_measured_while_a_locked_joint_stands_elsewhere(target: str) -> None:
    locks = {"torso": Lock(0.3, 0.05, True)}
    stream, given = MeasurementStream(NAMES, target, locks=locks), []
    positions = {1: 0.3, 2: 0.34, 3: 0.36, 4: NAN, 5: 0.3 + 2.0 * np.pi}
    for k, torso in positions.items():
        stamp = k * SECOND
        message = joint_state(stamp, ["torso"], [torso])
        assert not stream.joint_state(message)  # of another publisher
        assert ("torso is at 0.36, and locked at 0.3" in stream.moved()) == (k in (3, 4))
        message = joint_state(stamp, NAMES, [1.0, 2.0], effort=[1.0, 2.0])
        given += stream.joint_state(message) + stream.wrench(wrench(stamp, [1.0] * 6))
    given += stream.flush()
    assert [m.stamp // SECOND for m in given] == [1, 2, 3, 4, 5]
    assert [m.y is not None for m in given] == [True, True, False, False, True]
    assert stream.dropped[MOVED] == 2 and not stream.moved()
    assert MOVED in stream.INCOMPLETE and "torso is at 0.36" in stream.details[MOVED]


@pytest.mark.parametrize(
    "message",
    [
        None,
        joint_state(1, ["torso"], []),
        joint_state(1, ["torso"], [NAN]),
        joint_state(1, ["torso"], [1e12]),
        joint_state(1, ["torso"] * 20_000, [0.0] * 20_000),
    ],
    ids=["none", "short", "nan", "implausible", "too many"],
)
def test_a_bad_message_has_no_positions(message: object) -> None:
    assert not joint_positions(message, ["torso"])


def test_wrenches_are_checked_before_they_are_paired() -> None:
    stream = MeasurementStream(NAMES, "wrench", wrench_frame="sensor")
    for stamp, value, frame in [
        (5, NAN, "sensor"),
        (6, 1.0, "other"),
        (0, 1.0, "sensor"),
        (10, 1.0, "/sensor"),
        (10, 2.0, "sensor"),
        (9, 2.0, "sensor"),
        (20, 3.0, ""),
    ]:
        assert stream.wrench(wrench(stamp, [value] * 6, frame)) == []
    assert stream.dropped == {
        "not finite": 1,
        "wrench in another frame": 1,
        "zero stamp": 1,
        "repeated stamp": 1,
        "out of order": 1,
    }
    assert stream.frames == {"sensor", "other", "/sensor", ""}
    (m,) = stream.joint_state(joint_state(15, NAMES, [1.0, 2.0], [], [7.0, 8.0]))
    assert np.allclose(m.y, [2.0] * 6)  # halfway between 1 and 3; the effort is not looked at


def test_a_frame_may_have_several_names() -> None:
    config = StreamConfig(wrench_frames=("/driver/ft",))
    stream = MeasurementStream(NAMES, "wrench", config, wrench_frame=("joint", "link"))
    for stamp, frame in enumerate(["joint", "/link", "driver/ft", "", "base" * 1000], start=1):
        stream.wrench(wrench(stamp, [1.0] * 6, frame))
    assert stream.dropped == {"wrench in another frame": 1}
    told = stream.details["wrench in another frame"]
    assert "not 'joint'" in told and "samples.wrench_frames" in told and len(told) < 300
    assert all(len(frame) < 100 for frame in stream.frames)
    anywhere = MeasurementStream(NAMES, "wrench", config)  # nothing is known of the sensor's frame
    anywhere.wrench(wrench(1, [1.0] * 6, "base"))
    assert not anywhere.dropped


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="effort or wrench, not 'force'"):
        MeasurementStream(NAMES, "force")


def test_rclpy_messages_give_what_plain_fields_give() -> None:
    messages = pytest.importorskip("sensor_msgs.msg", reason="ROS 2's messages are not installed")
    real = messages.JointState(name=NAMES, position=GOOD[0], velocity=GOOD[1], effort=GOOD[2])
    real.header.stamp.sec = 3
    (m,) = MeasurementStream(NAMES).joint_state(real)
    assert m.stamp == 3 * SECOND
    for values, expected in zip((m.q, m.dq, m.y), GOOD, strict=True):
        assert np.array_equal(values, expected)


@given(SOME_NAMES, st.lists(st.text(max_size=3), max_size=4), st.randoms(use_true_random=False))
def test_the_wanted_joints_are_picked_by_name_in_any_order(wanted, others, random) -> None:
    names = wanted + [name for name in others if name not in wanted]
    matcher = JointMatcher(wanted)
    for _ in range(2):
        random.shuffle(names)  # in place: that is noticed
        if matcher.seen != names:
            matcher.match(names)
        assert not matcher.problem
        assert list(matcher.pick(names)) == wanted


def test_what_is_missing_or_doubled_is_named() -> None:
    matcher = JointMatcher(["a", "b"])
    for names, problem, detail in (
        (["a", "c"], "missing joint", "no b among the message's joints: a, c"),
        (["a", "b", "a"], "duplicate joint name", "the message names a more than once"),
        (["a", "b", *map(str, range(10_000))], "too many joints", "names 10002 joints"),
        (["a", "b", "c", "c"], "", ""),
    ):
        matcher.match(names)
        assert matcher.problem == problem and detail in matcher.detail


def test_efforts_are_scaled_for_each_joint_before_they_are_checked() -> None:
    config = StreamConfig(effort_scale=(-2.0, 10.0), saturation=(50.0,))
    stream = MeasurementStream(["b", "a"], config=config)
    (m,) = stream.joint_state(joint_state(1, ["a", "b"], [1.0, 2.0], effort=[3.0, 4.0]))
    assert m.y is not None and m.y.tolist() == [-8.0, 30.0]
    (m,) = stream.joint_state(joint_state(2, ["a", "b"], [1.1, 2.1], effort=[6.0, 4.0]))
    assert m.y is not None and np.isnan(m.y).tolist() == [False, True]  # 60 N m
    assert stream.dropped["effort saturated"] == 1
    with pytest.raises(ConfigurationError, match=r"effort_scale.* each of the 2 joints, not 3"):
        MeasurementStream(["a", "b"], config=StreamConfig(effort_scale=(1.0, 2.0, 3.0)))


def efforts_at(config: StreamConfig, stamps: list[int], efforts: list[float]) -> list:
    """What messages of one moving joint give, those that wait at the end included."""
    stream = MeasurementStream(["a"], config=config)
    given = []
    for k, (stamp, effort) in enumerate(zip(stamps, efforts, strict=True)):
        given += stream.joint_state(joint_state(stamp, ["a"], [0.01 * k], [1.0], [effort]))
    return given + stream.flush()


@pytest.mark.parametrize("late", [3, -3])
def test_efforts_that_come_late_or_early_go_back_to_their_positions(late: int) -> None:
    step = 10_000_000
    stamps = [SECOND + step * k for k in range(40)]
    truth = np.sin(0.3 * np.arange(40))
    sent = np.roll(truth, late).tolist()  # the effort of k comes with the positions of k + late
    given = efforts_at(StreamConfig(effort_delay=0.01 * late), stamps, sent)
    assert [m.stamp for m in given] == stamps
    known = range(40 - late) if late > 0 else range(-late, 40)
    for k, m in enumerate(given):
        assert m.q.tolist() == [0.01 * k]
        assert (m.y is not None) == (k in known)
        assert m.y is None or m.y.tolist() == [truth[k]]


def test_outputs_lag_by_the_delay_and_efforts_in_between_are_interpolated() -> None:
    stream = MeasurementStream(["a"], config=StreamConfig(effort_delay=0.004))
    first = joint_state(SECOND, ["a"], [0.0], [1.0], [10.0])
    second = joint_state(SECOND + 10_000_000, ["a"], [0.1], [1.0], [20.0])
    assert stream.joint_state(first) == []
    (m,) = stream.joint_state(second)
    assert m.stamp == SECOND and m.y is not None and m.y.tolist() == [14.0]


def test_no_effort_is_made_up_across_a_gap_a_missing_one_or_a_clock_set_back() -> None:
    config = StreamConfig(effort_delay=0.015, saturation_after=0)
    stamps = [SECOND * 5 + 10_000_000 * k for k in range(10)]
    gap = [*stamps, *(s + 2 * SECOND for s in stamps)]
    one, five = [1.0 + 1e-9 * k for k in range(10)], [5.0 + 1e-9 * k for k in range(10)]
    given = efforts_at(config, gap, one + five)
    assert [m.stamp for m in given] == gap
    assert [None if m.y is None else round(m.y[0], 6) for m in given] == (
        [1.0] * 8 + [None] * 2 + [5.0] * 8 + [None] * 2
    )
    back = [*stamps, *(s - 3 * SECOND for s in stamps)]
    given = efforts_at(config, back, one + five)
    assert [m.stamp for m in given] == back
    assert [None if m.y is None else round(m.y[0], 6) for m in given] == (
        [1.0] * 8 + [None] * 2 + [5.0] * 8 + [None] * 2
    )
    lost = efforts_at(config, stamps, [float("nan") if k == 5 else k for k in range(10)])
    assert [m.stamp for m in lost] == stamps
    assert [m.y[0] for m in lost if m.y is not None] == pytest.approx([1.5 + k for k in range(8)])


def test_without_any_effort_joint_states_still_pass_and_wait_for_little_only() -> None:
    stream = MeasurementStream(["a"], config=StreamConfig(effort_delay=0.02))
    stamps = [SECOND + 10_000_000 * k for k in range(100)]
    given = []
    for k, stamp in enumerate(stamps):
        given += stream.joint_state(joint_state(stamp, ["a"], [0.01 * k], [1.0]))
    assert len(given) > 80 and all(m.y is None for m in given)
    assert [m.stamp for m in given + stream.flush()] == stamps


def chains(*joints: tuple[str, str, str]) -> UrdfTree:
    """A URDF of (name, parent, child) joints."""
    links = {link for _, *ends in joints for link in ends}
    each = [
        f"<joint name='{name}' type='revolute'><parent link='{parent}'/><child link='{child}'/>"
        "<limit lower='-1' upper='1' effort='9' velocity='9'/></joint>"
        for name, parent, child in joints
    ]
    named = [f"<link name='{link}'/>" for link in sorted(links)]
    return parse_urdf(f"<robot name='r'>{''.join(named + each)}</robot>")


def test_of_two_arms_that_are_published_apart_it_is_always_the_same_one() -> None:
    """Whatever came first, and in whatever order a set has them."""
    tree = chains(*(("ab"[k], "l" * k or "0", "l" * (k + 1)) for k in range(2)),
                  *(("cde"[k], "r" * k or "0", "r" * (k + 1)) for k in range(3)))  # fmt: skip
    arms, gripper = [("c", "d"), ("b", "a")], ("e",)
    for lists in (arms, arms[::-1], [gripper, *arms]):
        assert joints_together(tree, lists, ("a", "b", "c", "d", "e")) == ("a", "b")
    together = joints_together(tree, [*arms, ("d", "c", "e")], ("a", "b", "c", "d", "e"))
    assert together == ("c", "d", "e")
    assert joints_together(tree, [], ("a",)) == () == joints_together(tree, [("x",)], ("a",))


def test_an_arm_goes_before_a_hand_of_more_joints() -> None:
    arm = [("a", "0", "1"), ("b", "1", "2"), ("c", "2", "palm")]
    fingers = [f for k in "xyz" for f in ((f"{k}1", "palm", k), (f"{k}2", k, f"{k}{k}"))]
    tree = chains(*arm, *fingers)
    names, hand = tree.actuated(), tuple(name for name, *_ in fingers)
    assert len(hand) == 6 and extent(tree, hand) == (2, 6) and extent(tree, names) == (5, 9)
    for lists in ([hand, ("a", "b", "c")], [("c", "b", "a"), hand]):
        assert joints_together(tree, lists, names) == ("a", "b", "c")
    assert turned_up(tree, ("a", "b", "c"), hand) and not turned_up(tree, hand, ("a", "b", "c"))
    assert turned_up(tree, names, ("a", "b", "c"))  # all in one message


def test_messages_of_one_stamp_are_joined_as_whole_ones_would_be() -> None:
    whole, parts = MeasurementStream(["a", "b", "c"]), MeasurementStream(["a", "b", "c"])
    wanted, got, messages = [], [], []
    for k in range(1, 30):
        q, dq, y = [k, 2.0 * k, -k], [1.0, 2.0, -1.0], [math.sin(k), math.cos(k), k]
        wanted += whole.joint_state(joint_state(k, ["a", "b", "c"], q, dq, y))
        messages += [
            joint_state(k, ["c", "x"], [q[2], 9], [dq[2], 9], [y[2], 9]),
            joint_state(k, ["b", "a"], q[1::-1], dq[1::-1], y[1::-1]),
        ]
    for message in messages:
        got += parts.joint_state(message)
    assert len(got) == 29 and not parts.dropped and not parts.details
    for a, b in zip(got, wanted, strict=True):
        assert a.stamp == b.stamp
        for name in ("q", "dq", "y"):
            assert np.array_equal(getattr(a, name), getattr(b, name))
    joined = whole_messages(messages)
    assert [list(m.name) for m in joined] == [["c", "x", "b", "a"]] * 29
    # Where only some share a stamp by chance, they are messages of their own.
    apart = [joint_state(2 * k + (k > 5), *rest) for k, rest in enumerate([(["a"], [1.0])] * 9)]
    beside = sorted([*apart, joint_state(4, ["b"], [1.0])], key=lambda m: m.header.stamp.nanosec)
    assert whole_messages(beside) is beside
    # An effort that one part lacks is that part's alone.
    stream = MeasurementStream(["a", "b"])
    stream.joint_state(joint_state(1, ["a"], [1.0], [0.5], [7.0]))
    (m,) = stream.joint_state(joint_state(1, ["b"], [2.0]))
    assert m.y[0] == 7.0 and np.isnan(m.y[1]) and m.dq[0] == 0.5 and np.isnan(m.dq[1])


def test_efforts_come_with_the_message_of_their_stamp_that_has_them() -> None:
    for made_up in (True, False):
        stream, got, messages = MeasurementStream(NAMES), [], []
        for k in range(1, 20):
            q, dq, y = [0.1 * k, -0.1 * k], [1.0, -1.0], [math.sin(k), math.cos(k)]
            first = ([0.0, 0.0], []) if made_up else (q, dq)
            second = (q, dq) if made_up else ([], [])
            messages += [
                joint_state(k * SECOND, NAMES, *first),
                joint_state(k * SECOND, NAMES, *second, y),
            ]
        for message in messages:
            got += stream.joint_state(message)
        got += stream.flush()
        assert got[0].y is None and len(got) == 19  # the first pair shows it
        for k, m in enumerate(got[1:], 2):
            assert (
                m.stamp == k * SECOND
                and m.q[0] == 0.1 * k
                and m.y[0] == math.sin(k)
                and m.dq[1] == -1.0
            )
        assert stream.dropped.total() == 2 and len(whole_messages(messages)) == 19


def test_stamps_of_whole_seconds_are_named() -> None:
    stream = MeasurementStream(NAMES)
    for k in range(200):
        stream.joint_state(joint_state((1 + k // 50) * SECOND, NAMES, [0.01 * k, 0.0], [], [k, k]))
    assert stream.dropped == {"repeated stamp": 196}
    assert "whole seconds" in stream.details["repeated stamp"]


def test_the_lists_of_names_that_came_lately_are_those_with_efforts() -> None:
    stream = MeasurementStream(["a"])
    for k, (names, efforts) in enumerate([("ab", [1.0, 2.0]), ("abc", []), ("cd", [1.0, 2.0])]):
        message = joint_state((k + 1) * SECOND, list(names), [0.1] * len(names), effort=efforts)
        stream.joint_state(message)
    assert stream.lately() == {("a", "b"), ("c", "d")}
    assert stream.lately() == set()
    for k in (4, 5):  # one that goes on is told each time
        stream.joint_state(joint_state(k * SECOND, ["c", "d"], [0.1, 0.1], effort=[1.0, 2.0]))
        assert stream.lately() == {("c", "d")}
    wrenches = MeasurementStream(["a"], "wrench")
    wrenches.joint_state(joint_state(SECOND, ["a"], [0.1]))
    assert wrenches.lately() == {("a",)}


@pytest.mark.parametrize("together", [False, True])
def test_a_locked_joint_that_moves_in_other_messages_is_told_so(together) -> None:
    stream = MeasurementStream(["a"], locks={"b": Lock(0.0, 0.05, True)})
    messages = [(["a", "b"], [0.1, 0.4])] if together else [(["b"], [0.4]), (["a"], [0.1])]
    for k, (names, positions) in enumerate(messages):
        stream.joint_state(joint_state((k + 1) * SECOND, names, positions))
    told = "b is at 0.4, and locked at 0: nothing is learned until it is back there"
    assert stream.moved().startswith(told)
    assert (
        "no message names b together with the joints that are learned" in stream.moved()
    ) != together
