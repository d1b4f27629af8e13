from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.samples.pairing import MAX_HELD_MESSAGES, WrenchPairer
from semiparam_dynamics.samples.reports import Reports

TOLERANCE, WAIT = 20, 100
STAMPS = st.lists(st.integers(1, 1000), max_size=40, unique=True).map(sorted)


def measurement(stamp: int) -> Measurement:
    return Measurement(stamp, np.array([float(stamp)]), None, None)


def value(stamp: int) -> np.ndarray:
    """A wrench that isn't linear in time: a wrong neighbour gives another interpolation."""
    return np.sin(np.arange(1.0, 7.0) * stamp)


def paired(joints: list[int], wrenches: list[int], stamp: int) -> np.ndarray | None:
    """The definition, without any streaming."""
    if stamp in wrenches:
        return value(stamp)
    before = max((w for w in wrenches if w < stamp), default=None)
    after = min((w for w in wrenches if w > stamp), default=None)
    if before is None or after is None or max(stamp - before, after - stamp) > TOLERANCE:
        return None
    share = (stamp - before) / (after - before)
    return (1 - share) * value(before) + share * value(after)


def run(joints: list[int], wrenches: list[int], ahead: list[int]) -> tuple[list, Reports]:
    """Feed both topics; `ahead` says how much later than stamped each message arrives."""
    arrivals = [(stamp, True) for stamp in joints] + [(stamp, False) for stamp in wrenches]
    delays = {topic: 0 for topic in (True, False)}
    order = []
    for k, (stamp, topic) in enumerate(arrivals):
        # A topic keeps its own order: a message is never overtaken by a later one.
        delays[topic] = max(delays[topic], stamp + ahead[k % len(ahead)])
        order.append((delays[topic], k, stamp, topic))
    reports = Reports()
    pairer = WrenchPairer(TOLERANCE, WAIT, reports)
    given = []
    for _, _, stamp, topic in sorted(order):
        if topic:
            given += pairer.joint_state(measurement(stamp))
        else:
            given += pairer.wrench(stamp, value(stamp))
    return given + pairer.flush(), reports


# Delays of each topic within [0, WAIT) keep either from running ahead by WAIT.
@given(STAMPS, STAMPS, st.lists(st.integers(0, WAIT - 1), min_size=1, max_size=20))
def test_pairs_follow_from_the_stamps_alone_however_the_topics_interleave(
    joints, wrenches, ahead
) -> None:
    given, reports = run(joints, wrenches, ahead)
    assert [m.stamp for m in given] == joints
    unpaired = 0
    for m in given:
        expected = paired(joints, wrenches, m.stamp)
        assert (m.y is None) == (expected is None)
        if expected is None:
            unpaired += 1
        else:
            np.testing.assert_allclose(m.y, expected, rtol=0, atol=1e-12)
    assert reports.dropped["unpaired joint state"] == unpaired


@given(STAMPS, STAMPS, st.lists(st.integers(0, WAIT - 1), min_size=1, max_size=20))
def test_wrenches_are_counted_where_no_joint_state_is_near(joints, wrenches, ahead) -> None:
    # Messages far behind all others make sure that every wrench in question has been dealt with.
    end = [10_000]
    _, reports = run(joints + end, wrenches + end, ahead)
    lonely = [w for w in wrenches if all(abs(w - stamp) > TOLERANCE for stamp in joints)]
    assert reports.dropped["unpaired wrench"] == len(lonely)


def test_a_joint_state_waits_no_longer_than_it_must_for_wrenches_that_do_not_come() -> None:
    pairer = WrenchPairer(TOLERANCE, WAIT, Reports())
    assert pairer.joint_state(measurement(1)) == []
    assert pairer.joint_state(measurement(1 + TOLERANCE + WAIT)) == []
    (m,) = pairer.joint_state(measurement(2 + TOLERANCE + WAIT))
    assert m.stamp == 1 and m.y is None


def test_a_clock_that_goes_back_forgets_wrenches_and_releases_what_waits() -> None:
    pairer = WrenchPairer(TOLERANCE, WAIT, Reports())
    for stamp in (10, 30):
        pairer.wrench(stamp, value(stamp))
    assert pairer.restart_joint_states(20) == []
    (kept,) = pairer.joint_state(measurement(10))  # its wrench is, that after 20 is not
    np.testing.assert_array_equal(kept.y, value(10))
    assert pairer.joint_state(measurement(15)) == [] == pairer.restart_wrenches(15)
    (waited,) = pairer.restart_wrenches(14)
    assert waited.stamp == 15 and waited.y is None


def test_buffers_are_bounded_where_stamps_hardly_advance() -> None:
    reports = Reports()
    pairer = WrenchPairer(10**12, 10**12, reports)
    released = [
        m for k in range(1, MAX_HELD_MESSAGES + 11) for m in pairer.joint_state(measurement(k))
    ]
    assert [m.stamp for m in released] == list(range(1, 11))
    pairer = WrenchPairer(0, 10**12, reports)
    for k in range(1, MAX_HELD_MESSAGES + 11):
        pairer.wrench(k, value(k))
    assert reports.dropped["unpaired wrench"] == 10


@pytest.mark.parametrize(
    ("ahead", "told"),
    [
        (-3 * SECOND, "stamps are some 3.0 s behind"),
        (-3 * SECOND // 10, "stamps are some 0.3 s behind"),
        (2 * SECOND, "stamps are some 2.0 s ahead of"),
        (-1_700_000_000 * SECOND, "stamps are some 1700000000.0 s behind"),  # counted from the boot
    ],
)
def test_the_offset_of_two_clocks_is_told_with_what_to_do(ahead: int, told: str) -> None:
    reports = Reports()
    dropped, details = reports.dropped, reports.details
    pairer = WrenchPairer(SECOND // 50, SECOND // 10, reports)
    for k in range(1000):
        stamp = 1_700_000_010 * SECOND + k * SECOND // 100
        pairer.joint_state(measurement(stamp))
        pairer.wrench(stamp + ahead, value(stamp))
        if k == 500:
            details.clear()  # what is told is the offset of now
    assert dropped["unpaired joint state"] > 900 and details.keys() == dropped.keys()
    for sentence in details.values():
        assert told in sentence and "chrony" in sentence and "samples.pair_wait (0.1 s)" in sentence


@pytest.mark.parametrize(
    ("joint_states", "wrenches"),
    [
        (range(100), range(0, 100, 8)),
        ([*range(100), *range(600, 650)], range(100)),  # both paused, and wrenches still do
    ],
)
def test_wrenches_that_are_missing_are_told_from_another_clock(
    joint_states: Sequence[int], wrenches: range
) -> None:
    reports = Reports()
    pairer = WrenchPairer(SECOND // 50, SECOND // 10, reports)
    for k in joint_states:
        pairer.joint_state(measurement(SECOND + k * SECOND // 100))
        if k in wrenches:
            pairer.wrench(SECOND + k * SECOND // 100, value(k))
    assert "within samples.pair_wait (0.02 s)" in reports.details["unpaired joint state"]
    assert "clock" not in reports.details["unpaired joint state"]
    # Of one topic alone nothing can be said.
    alone = Reports()
    pairer = WrenchPairer(TOLERANCE, WAIT, alone)
    for stamp in range(1, 1000, 10):
        pairer.joint_state(measurement(stamp))
    assert not alone.details
