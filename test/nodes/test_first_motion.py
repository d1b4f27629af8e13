"""A robot's first motion looked at while the node learns."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.learner.nodes import first_motion

from .conftest import moving, take

PATIENCE = 240.0  # s: only reached when something is broken


def examined(session) -> dict[str, str]:
    """The values after the examination."""
    end = time.monotonic() + PATIENCE
    while "after " in (state := session.first_motion.state) or state == "being examined":
        assert time.monotonic() < end, state
        time.sleep(0.02)
    return session.first_motion.values()


def test_a_turned_effort_is_told_once_with_what_to_write(peer, start, urdf, connect):
    start("inverse_dynamics", urdf=urdf)
    arm = connect()
    right = arm.message

    def turned():
        arm.sent += 1  # 20 ms apart
        message = right()
        message.effort[1] *= -1.0
        return message

    arm.message = turned
    arm.move(1550)
    told = "first motion: effort sign"
    peer.until(lambda: told in peer.figures(), "the examination")
    assert "elbow" in peer.figures()[told]
    assert "samples.effort_scale: [1.0, -1.0]" in peer.figures()[told]
    predicted = int(peer.figures()["samples predicted"])
    arm.move(50)
    peer.until(lambda: int(peer.figures()["samples predicted"]) > predicted, "more predictions")
    log = (Path(urdf).parent / "inverse_dynamics.log").read_text()
    assert log.count("effort sign: the effort of elbow") == 1


def test_it_can_be_switched_off(make_session):
    assert make_session(examine_start=False).first_motion is None


def test_an_examination_that_fails_is_a_word_and_nothing_more(make_session, monkeypatch):
    monkeypatch.setattr(first_motion, "MOTION", 1.0)
    monkeypatch.setattr(first_motion.sys, "executable", "/no/such/python")
    session = make_session()
    steps = [step for message in moving(200) for step in take(session, message)]
    assert len(steps) == 198
    assert "not examined: FileNotFoundError" in examined(session)["first motion"]
    assert session.first_motion.news() == []


def test_only_the_newest_measurements_are_kept_in_order(make_session, monkeypatch):
    monkeypatch.setattr(first_motion, "MOTION", 3.0)
    monkeypatch.setattr(first_motion, "KEPT", 100)
    kept = []
    monkeypatch.setattr(first_motion, "save_motion", lambda path, log, *_: kept.append(log))
    monkeypatch.setattr(first_motion.sys, "executable", "/no/such/python")
    session = make_session()
    for message in moving(400):
        take(session, message)
    examined(session)
    (log,) = kept
    assert len(log) == 100 and (np.diff(log.stamps) == 10_000_000).all()
    assert log.times[-1] == pytest.approx(0.99)


def test_closing_ends_an_examination_and_motion_after_it_is_examined(make_session, monkeypatch):
    """As where a node is deactivated and activated again."""
    monkeypatch.setattr(first_motion, "MOTION", 1.0)
    monkeypatch.setattr(first_motion, "yield_processor", lambda pid: None)  # it is waited for
    session, messages = make_session(), moving(500)
    session.finish()  # before there was any motion
    begun = time.monotonic()
    for end in (200, 400):
        for message in messages[end - 200 : end]:
            take(session, message)
        assert session.first_motion._thread is not None
        if end == 200:
            session.finish()
            assert session.first_motion.state == "after 1 s of motion"
    assert time.monotonic() - begun < PATIENCE
    assert "fault" in examined(session)["first motion"]
    session.finish()
    assert "fault" in session.first_motion.state


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such policy")
def test_an_examination_runs_when_nobody_else_wants_the_processor() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    first_motion.yield_processor(process.pid)
    assert os.sched_getscheduler(process.pid) == os.SCHED_IDLE
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == 19
    process.communicate(b"\n")
    first_motion.yield_processor(process.pid)  # it has ended


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such policy")
def test_without_that_policy_an_examination_has_the_lowest_priority(monkeypatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(first_motion.os, "sched_setscheduler", refused)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    first_motion.yield_processor(process.pid)
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == 19
    process.communicate(b"\n")
