"""Faults that messages show by themselves."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.doctor.examination import examine
from semiparam_dynamics.offline.doctor.messages import (
    JointFacts,
    JointLog,
    as_evidence,
    liveliest_stretch,
    message_findings,
    repaired,
)
from semiparam_dynamics.samples.measurement import StreamConfig

from ...dynamics.arms import URDF, small_arm
from .logs import arm_log, examined

LOG = arm_log(12.0)


def facts(log: JointLog) -> JointFacts:
    low, high = small_arm().position_limits
    return JointFacts(np.ones(log.q.shape[1], dtype=bool), low, high)


def kinds(log: JointLog) -> list[str]:
    return [f.kind for f in message_findings(log, facts(log)) if f.fault]


def changed(**arrays: object) -> JointLog:
    return dataclasses.replace(LOG, **arrays)


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert kinds(LOG) == []
    clean = repaired(LOG, facts(LOG))
    assert len(clean) == len(LOG) and np.array_equal(clean.q, LOG.q)


def test_stamps() -> None:
    rng = np.random.default_rng(0)
    jitter = rng.integers(-2_000_000, 2_000_000, len(LOG))
    assert kinds(changed(stamps=LOG.stamps + jitter)) == ["uneven stamps"]
    assert kinds(LOG.rows(rng.random(len(LOG)) > 0.05)) == ["missing messages"]
    hole = np.abs(LOG.times - 6.0) > 0.1
    (finding,) = message_findings(LOG.rows(hole), facts(LOG))
    assert finding.kind == "gaps" and finding.amount == pytest.approx(0.2, abs=0.02)
    back = LOG.stamps.copy()
    back[600:] -= SECOND // 2
    (finding,) = message_findings(changed(stamps=back), facts(LOG))
    assert finding.kind == "stamps go back" and finding.amount == pytest.approx(0.49)
    assert len(repaired(changed(stamps=back), facts(LOG))) == pytest.approx(len(LOG) - 50, abs=1)
    assert kinds(changed(stamps=np.where(np.arange(len(LOG)) == 50, 0, LOG.stamps))) == [
        "zero stamps",
        "stamps go back",
        "gaps",
    ]


def test_a_joint_without_limits_that_turns_many_times_is_not_in_degrees() -> None:
    t = np.arange(0.0, 20.0, 0.01)
    rate, reach = np.array([0.7, 1.3]), np.array([30.0, 1.2])  # a pan that is continuous, a tilt
    phase = np.outer(t, rate) + 0.5
    q, dq = reach * np.sin(phase), reach * rate * np.cos(phase)
    y = 2.0 * np.cos(q) + 0.3 * np.tanh(dq) + 0.02 * np.random.default_rng(0).normal(size=q.shape)
    log = JointLog(("pan", "tilt"), SECOND + np.round(t * SECOND).astype(np.int64), q, dq, y)
    limits = np.array([np.inf, 1.5])
    known = JointFacts(np.ones(2, dtype=bool), -limits, limits)
    assert list(message_findings(log, known)) == []
    assert np.array_equal(repaired(log, known).q, log.q)
    # The tilt alone tells degrees, and then the pan is in degrees as well.
    log = dataclasses.replace(log, q=np.degrees(q), dq=np.degrees(dq))
    assert [f.kind for f in message_findings(log, known)] == ["degrees"]
    assert np.allclose(repaired(log, known).q, q)


def test_a_jump_by_a_turn_is_named_and_put_right() -> None:
    q = LOG.q.copy()
    wide = int(np.argmax(np.ptp(q, axis=0)))
    q[:, wide] -= 2.0 * np.pi * (q[:, wide] > np.median(q[:, wide]))
    log = changed(q=q)
    (finding,) = (f for f in message_findings(log, facts(log)) if f.fault)
    assert finding.kind == "wraps" and finding.joints == (LOG.names[wide],)
    assert np.allclose(np.diff(repaired(log, facts(log)).q, axis=0), np.diff(LOG.q, axis=0))


def test_single_broken_messages_are_named_and_left_out() -> None:
    q = LOG.q.copy()
    q[500, 1] += 1.0
    assert kinds(changed(q=q)) == ["wrong positions"]
    assert len(repaired(changed(q=q), facts(LOG))) == len(LOG) - 1
    q = LOG.q + 0.0
    q[700] = 0.0
    assert kinds(changed(q=q)) == ["messages of zeros"]
    assert len(repaired(changed(q=q), facts(LOG))) == len(LOG) - 1


def test_readings_that_repeat_while_the_arm_moves() -> None:
    q, y = LOG.q.copy(), LOG.y.copy()
    q[300:420], y[300:420] = q[300], y[300]
    log = changed(q=q, y=y)
    (finding,) = (f for f in message_findings(log, facts(log)) if f.kind == "repeated readings")
    assert finding.amount == pytest.approx(1.2, abs=0.05)
    twice = np.arange(len(LOG)) // 2 * 2
    log = changed(q=LOG.q[twice], y=LOG.y[twice])
    assert "repeated readings" in kinds(log)


def test_columns() -> None:
    for name in ("q", "dq", "y"):
        values = getattr(LOG, name).copy()
        values[:, 1] = np.nan
        (finding,) = (f for f in message_findings(changed(**{name: values}), facts(LOG)) if f.fault)
        assert finding.kind == "not a number" and finding.joints == (LOG.names[1],)
    assert kinds(changed(y=None)) == ["no efforts"]
    assert kinds(changed(y=LOG.y * [1.0, 0.0, 1.0, 1.0])) == ["effort missing"]
    assert kinds(changed(dq=-LOG.dq))[0] in ("velocity", "velocity scale")
    (finding, *_) = message_findings(changed(dq=np.degrees(LOG.dq)), facts(LOG))
    assert finding.kind == "velocity scale" and "degrees" in finding.evidence
    assert "always 0" in next(
        f.evidence
        for f in message_findings(changed(y=LOG.y * [1.0, -0.0, 1.0, 1.0] * 0.0), facts(LOG))
        if f.kind == "effort missing"
    )
    step = 0.3 * LOG.y.std(axis=0)
    assert set(kinds(changed(y=step * np.round(LOG.y / step)))) == {"coarse steps"}


def test_coarse_steps_in_little_motion_are_no_fault() -> None:
    step = 0.3 * LOG.y.std(axis=0)
    short = changed(y=step * np.round(LOG.y / step)).rows(slice(0, 400))
    found = [f for f in message_findings(short, facts(LOG)) if f.kind == "coarse steps"]
    assert found and not any(f.fault for f in found)
    assert all("in more motion it may be less" in f.evidence for f in found)


def test_velocities_of_zero_are_true_at_rest_alone() -> None:
    moved = {f.kind: f.evidence for f in message_findings(changed(dq=0.0 * LOG.dq), facts(LOG))}
    assert moved["no velocities"] == "all velocities are 0 though the arm moves"
    none = {f.kind: f.evidence for f in message_findings(changed(dq=None), facts(LOG))}
    assert none["no velocities"] == "the messages have no velocities"
    rest = changed(q=np.broadcast_to(LOG.q[0], LOG.q.shape), dq=0.0 * LOG.dq)
    assert "no velocities" not in {f.kind for f in message_findings(rest, facts(LOG))}


def test_clipped_efforts_get_a_limit() -> None:
    most = 0.6 * np.abs(LOG.y).max(axis=0)
    log = changed(y=np.clip(LOG.y, -most, most))
    named = [f for f in message_findings(log, facts(log)) if f.kind == "clipped efforts"]
    assert named
    for finding in named:
        joint = LOG.names.index(finding.joints[0])
        assert finding.mends["samples.saturation"] == pytest.approx(most[joint], rel=1e-4)
    told = StreamConfig(saturation=tuple((most * (1.0 - 1e-6)).tolist()))
    assert "clipped efforts" not in [f.kind for f in message_findings(log, facts(log), told)]
    lost = np.isnan(as_evidence(log, StreamConfig()).y)
    assert (lost == (np.abs(log.y) == most))[:, [LOG.names.index(f.joints[0]) for f in named]].all()


def test_efforts_clipped_at_the_smaller_end_are_told_with_that_and_limit_no_other() -> None:
    lowest = 0.4 * LOG.y.min(axis=0)
    log = changed(y=np.maximum(LOG.y, lowest))
    named = [f for f in message_findings(log, facts(log)) if f.kind == "clipped efforts"]
    smaller = [
        f
        for f in named
        if -lowest[LOG.names.index(f.joints[0])] < LOG.y.max(axis=0)[LOG.names.index(f.joints[0])]
    ]
    assert smaller
    for finding in smaller:
        assert f"{lowest[LOG.names.index(finding.joints[0])]:.4g}" in finding.evidence
        assert finding.amount == pytest.approx(-lowest[LOG.names.index(finding.joints[0])])
        assert not finding.mends and "where the learner sees that" in finding.advice


def test_an_effort_that_sticks_while_its_joint_moves() -> None:
    y = LOG.y.copy()
    y[300:600, 1] = y[300, 1]
    found = list(message_findings(changed(y=y), facts(LOG)))
    (finding,) = (f for f in found if f.fault)
    assert finding.kind == "effort stuck" and finding.joints == (LOG.names[1],)
    assert 150 < finding.amount < 200  # of 300, those after a second
    never = StreamConfig(stuck_after=0.0)
    assert not [f for f in message_findings(changed(y=y), facts(LOG), never) if f.fault]


def test_limits_that_were_given_stay_and_those_of_a_sensor_are_not_of_efforts() -> None:
    most = 0.6 * np.abs(LOG.y).max(axis=0)
    log = changed(y=np.column_stack((np.clip(LOG.y[:, 0], -most[0], most[0]), LOG.y[:, 1:])))
    given = {"samples.saturation": (500.0,) * len(log.names)}
    found = examined(log, **given).config.samples.saturation
    assert found[0] == pytest.approx(most[0], rel=1e-4)
    assert found[1:] == (500.0,) * (len(log.names) - 1)
    wrench = examine(log, URDF.read_text(), InverseDynamicsConfig(), efforts=False)
    assert "clipped efforts" in [f.kind for f in wrench.findings]
    assert wrench.config.samples.saturation == () and "samples.saturation" not in wrench.mended


def test_limits_rest_and_little_motion() -> None:
    narrow = facts(LOG)
    narrow = JointFacts(narrow.turning, narrow.low, LOG.q.max(axis=0) - 0.2)
    assert "limits" in [f.kind for f in message_findings(LOG, narrow)]
    short = arm_log(4.0)
    assert [f.kind for f in message_findings(short, facts(short))] == ["little motion"]
    stop = np.minimum(np.arange(len(LOG)), 900)
    log = changed(q=LOG.q[stop] + 0.0, dq=LOG.dq * (stop < 900)[:, None], y=LOG.y)
    (rest,) = (f for f in message_findings(log, facts(log)) if f.kind == "rest")
    assert rest.amount == pytest.approx(3.0, abs=0.3) and not rest.fault


def test_names() -> None:
    names = {"unknown": ("gripper",), "missing": ("wrist",), "doubled": ("lift",)}
    log = changed(**names, others=5, unfit=3, unreadable=("2 messages are short",))
    by_kind = {f.kind: f for f in message_findings(log, facts(log))}
    assert by_kind["unreadable"].evidence == "2 messages are short"
    assert by_kind["joints not published"].mends == {"joints": LOG.names}
    assert by_kind["names not in the URDF"].fault
    assert "5 messages" in by_kind["several kinds of message"].evidence
    assert by_kind["doubled names"].joints == ("lift",) and by_kind["doubled names"].fault
    assert by_kind["wrong lengths"].evidence.startswith(f"3 of {len(log)} messages")


def test_a_clock_set_back_ends_a_stretch() -> None:
    stamps = LOG.stamps.copy()
    stamps[400:] -= SECOND // 2
    lively = liveliest_stretch(repaired(changed(stamps=stamps), facts(LOG)))
    assert lively.times[-1] == pytest.approx(LOG.times[-1] - LOG.times[450], abs=0.05)


def test_a_clock_set_back_says_nothing_of_velocities() -> None:
    stamps = LOG.stamps.copy()
    stamps[600:] -= SECOND // 2 - 10_000  # the first one that is later is so by 10 us
    assert kinds(changed(stamps=stamps)) == ["stamps go back"]


@pytest.mark.parametrize("missing", ["effort", "position"])
def test_readings_that_are_repeated_are_found_beside_numbers_that_are_missing(missing: str) -> None:
    q, y = LOG.q.copy(), LOG.y.copy()
    held = 300 + np.arange(300) // 10 * 10
    q[300:600], y[300:600] = q[held], y[held]
    if missing == "effort":
        y[:, -1] = np.nan  # as a broadcaster has it of a joint without a sensor
    else:
        q[5] = np.nan
    log = changed(q=q, y=y)
    assert "repeated readings" in kinds(log)
    assert len(repaired(log, facts(log))) == pytest.approx(len(LOG) - 270, abs=30)
