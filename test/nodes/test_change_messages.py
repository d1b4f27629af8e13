"""Payloads and events as messages, and what is said of them in the diagnostics."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus

from semiparam_dynamics.base.errors import StorageError
from semiparam_dynamics.changes.config import ChangeEvent
from semiparam_dynamics.changes.nodes.change_messages import (
    contact_message,
    event_message,
    payload_messages,
)
from semiparam_dynamics.changes.payload import Snapshot, payload_status
from semiparam_dynamics.changes.touch import ContactEvent, Touch
from semiparam_dynamics.learner.nodes.outputs import ChangeOutputs
from semiparam_dynamics.learner.nodes.session import Session
from semiparam_dynamics.learner.nodes.session_report import ChangeReport

from .conftest import moved, moving, take

AXES = ("shoulder", "elbow")


def test_a_payload_s_inertia_is_about_its_centre_of_mass() -> None:
    # Two kilograms in eight equal points, whose inertia is a sum over them.
    rng = np.random.default_rng(0)
    points = rng.normal(size=(8, 3)) * (0.02, 0.05, 0.03) + (0.1, -0.2, 0.05)
    about = points - points.mean(axis=0)

    def tensor(p: np.ndarray) -> np.ndarray:
        return 0.25 * ((p**2).sum() * np.eye(3) - p.T @ p)

    I = tensor(points)  # noqa: E741
    six = [I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]]
    mean = np.array([2.0, *(2.0 * points.mean(axis=0)), *six])
    held = Snapshot(mean, np.diag(np.full(10, 1e-14)))
    said, std = payload_messages(1_500_000_000, "hand", payload_status(held, "hand", "", True))
    assert (said.header.frame_id, std.header.frame_id) == ("hand", "hand")
    assert (said.header.stamp.sec, said.header.stamp.nanosec) == (1, 500_000_000)
    i, c = said.inertia, said.inertia.com
    assert i.m == pytest.approx(2.0, rel=1e-4)
    np.testing.assert_allclose([c.x, c.y, c.z], points.mean(axis=0), atol=1e-5)
    given = [[i.ixx, i.ixy, i.ixz], [i.ixy, i.iyy, i.iyz], [i.ixz, i.iyz, i.izz]]
    np.testing.assert_allclose(given, tensor(about), atol=1e-5)
    assert std.inertia.m == pytest.approx(1e-7, rel=1e-3)


def test_the_bare_hand_is_a_body_of_no_mass() -> None:
    for message in payload_messages(0, "hand", None):
        i = message.inertia
        assert [i.m, i.com.x, i.com.y, i.com.z, i.ixx, i.iyz, i.izz] == [0.0] * 7


@pytest.mark.parametrize(
    ("event", "level", "sentence"),
    [
        (ChangeEvent(3, 1, "contact", evidence=9.0), DiagnosticStatus.WARN, "contact begins"),
        (ChangeEvent(3, 1, "contact over"), DiagnosticStatus.OK, "over after 0.00 s"),
        (ChangeEvent(3, 1, "payload", "bare", 20.0), DiagnosticStatus.OK, "nothing is held"),
        (ChangeEvent(3, 1, "payload", "cup", 20.0), DiagnosticStatus.OK, "'cup' is held"),
        (ChangeEvent(3, 1, "payload", "", 20.0), DiagnosticStatus.WARN, "something else is held"),
        (ChangeEvent(3, 1, "offset", "", 20.0), DiagnosticStatus.WARN, "an offset has changed"),
        (ChangeEvent(3, 1, "unexplained"), DiagnosticStatus.WARN, "nothing explains it"),
    ],
)
def test_an_event_says_what_happened(event: ChangeEvent, level: bytes, sentence: str) -> None:
    (status,) = event_message("/arm/learner", event, 12.0, {}, {}).status
    assert status.level == level and sentence in status.message
    assert status.name == "arm/learner: change"
    values = {pair.key: pair.value for pair in status.values}
    assert values["cause"] == event.cause and values["payload"] == event.name
    assert ("statistic" in values) == (event.evidence > 0.0)


@pytest.mark.parametrize(
    ("kind", "link", "level", "sentence"),
    [
        ("contact", None, DiagnosticStatus.WARN, "contact begins"),
        ("contact", "forearm", DiagnosticStatus.WARN, "contact, about 5 N on forearm"),
        ("collision", "", DiagnosticStatus.ERROR, "collision, about 5 N"),
        ("contact over", "forearm", DiagnosticStatus.OK, "over after 0.25 s, about 5 N on forearm"),
        (
            *("contact given up", "forearm", DiagnosticStatus.WARN),
            "contact is given up after 0.25 s, about 5 N on forearm: what lasts so long "
            "counts as the robot's own (see changes.contact_longest)",
        ),
    ],
)
def test_a_contact_is_told_in_words(
    kind: str, link: str | None, level: bytes, sentence: str
) -> None:
    touch = None if link is None else Touch(link, np.array([0.0, 3.0, -4.0]), 0.8)
    event = ContactEvent(1_250_000_000, 1_000_000_000, kind, 2.0, touch)
    message = contact_message("/arm/learner", event)
    (status,) = message.status
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (1, 250_000_000)
    assert status.level == level and status.message.endswith(sentence)
    assert status.name == "arm/learner: contact"
    values = {pair.key: pair.value for pair in status.values}
    assert values["kind"] == kind and values["lasted [s]"] == "0.250"
    assert values["deviation [thresholds]"] == "2"
    assert ("force z [N]" in values) == (link is not None)
    assert values.get("link", "") == (link or "")


def test_an_event_has_its_axis_delay_and_statistic() -> None:
    event = ChangeEvent(2_300_000_000, 2_100_000_000, "contact", evidence=9.0)
    external = {"shoulder": 2.0, "elbow": -3.0}
    message = event_message("/n", event, 6.0, external, {"shoulder": 4.0, "elbow": -9.0})
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (2, 300_000_000)
    values = {pair.key: pair.value for pair in message.status[0].values}
    assert values["axis"] == "elbow" and values["delay [s]"] == "0.200"
    assert values["began [s]"] == "2.100" and values["external elbow"] == "-3"
    assert (values["statistic"], values["threshold"]) == ("9", "6")


def fed(session: Session, count: int = 40) -> Session:
    for message in moving(count, 0.02):
        take(session, message)
    session.drain()
    return session


def test_the_diagnostics_always_have_the_same_keys(make_session) -> None:
    session = make_session(changes__detect=True)
    report = ChangeReport(session.learner)
    before = report.values()
    assert before["changes"] == "settling" and report.summary() == ""
    fed(session)
    assert set(report.values()) == set(before)
    for key, value in before.items():
        if key.endswith("]") or "evidence" in key:
            assert np.isfinite(float(value))
    assert {f"deviation {axis} [std]" for axis in AXES} < set(before)
    assert ChangeReport(make_session().learner).values() == {}


def test_what_is_held_is_saved_with_the_model_and_not_asked_of_one_without(
    make_session, tmp_path
) -> None:
    one, other = make_session(changes__detect=True), make_session(changes__detect=True)
    held = np.array([1.0, 0.2, 0.0, 0.0, *[0.0] * 6])
    one.learner.changes.snapshots.store("cup", Snapshot(held, 1e-4 * np.eye(10)))
    fed(one).learner.changes.recall("cup")
    one.save(tmp_path / "arm.npz")
    other.load(tmp_path / "arm.npz")
    assert other.learner.changes.payload.mass == one.learner.changes.payload.mass
    assert other.learner.changes.payload.name == "cup"
    plain = make_session()
    plain.load(tmp_path / "arm.npz")
    plain.save(tmp_path / "plain.npz")
    other.load(tmp_path / "plain.npz")
    assert other.learner.changes.payload is None
    (tmp_path / "arm.npz").write_bytes(b"nothing")
    with pytest.raises(StorageError):
        other.load(tmp_path / "arm.npz")


def test_a_payload_that_is_estimated_is_told_on_after_the_clock_went_back(
    peer, make_session, monkeypatch
) -> None:
    outputs = ChangeOutputs(peer.node, make_session(changes__detect=True), Counter())
    told: list[int] = []
    monkeypatch.setattr(outputs._payload, "publish", lambda m: told.append(m.header.stamp.sec))
    correction = SimpleNamespace(estimating=SimpleNamespace(cause="payload"), name="")
    monitor = SimpleNamespace(correction=correction, payload=None, causes=SimpleNamespace(link="x"))
    for second in (100.0, 100.1, 101.0, 3.0, 3.1, 4.0):
        monitor.status = SimpleNamespace(stamp=round(second * 1e9))
        outputs._tell_payload(monitor)
    assert told == [100, 101, 3, 4]
    outputs.destroy()


def test_what_is_known_of_a_sample_is_not_published_with_the_stamp_of_another(
    peer, make_session, monkeypatch
) -> None:
    """At 1 kHz the monitor passes over some samples."""
    values = {"changes.detect": True, "nystrom.window": 0.2, "defer_learning": False}
    session = make_session(**values)
    outputs, monitor = ChangeOutputs(peer.node, session, Counter()), session.learner.changes
    told: dict[str, list[int]] = {"_deviation": [], "_contact_external": []}
    for name, stamps in told.items():
        outlet = getattr(outputs, name)
        monkeypatch.setattr(outlet, "has_subscribers", lambda: True)
        monkeypatch.setattr(outlet, "publish", stamps.append)
    monkeypatch.setattr(outputs, "_message", lambda stamp, values: stamp)
    looked_at, steps = [], 0
    for k in range(1000):
        message = moved(k, 0.001)
        seconds, message.header.stamp.nanosec = divmod(10**9 + k * 10**6, 10**9)
        message.header.stamp.sec = seconds
        if k == 970:
            monitor.contact.active = True  # it stays so: nothing is tested before it has settled
        for step in take(session, message):
            outputs.publish(step)
            steps += 1
            if monitor.status.stamp == step.stamp:
                looked_at.append(step.stamp)
    outputs.destroy()
    assert told["_deviation"] == looked_at and 0.4 * steps < len(looked_at) < 0.7 * steps
    in_contact = [stamp for stamp in looked_at if stamp > 1_971_000_000]
    assert told["_contact_external"][-len(in_contact) :] == in_contact and len(in_contact) > 5
    assert set(told["_contact_external"]) <= set(looked_at)


@pytest.mark.parametrize("why", ["switched off", "stopped by an error"])
def test_of_what_is_held_nothing_is_learned_where_learning_is_off(
    make_session, monkeypatch, why: str
) -> None:
    session = make_session(changes__detect=True, defer_learning=False)
    learned: list[int] = []
    monitor = session.learner.changes
    monkeypatch.setattr(monitor, "learn_held", lambda sample, _: learned.append(sample.stamp))

    def fails(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        for k, message in enumerate(moving(30)):
            if k == 20:
                before = list(learned)
                if why == "switched off":
                    session.learning = False
                else:
                    patch.setattr(session.learner, "update", fails)
            take(session, message)
    # The sample at which the error shows is on its way already.
    assert len(before) == 18 and len(learned) == (18 if why == "switched off" else 19)
    assert bool(session.problem) == (why != "switched off")
    session.learning = True
    for message in moving(40)[30:]:
        take(session, message)
    assert len(learned) == len(before) + 10 + bool(why != "switched off")


def test_predictions_with_a_payload_keep_within_the_bound(make_session) -> None:
    session = fed(make_session(changes__detect=True))
    held = np.array([1e6, *[1e5] * 3, *[0.0] * 6])
    session.learner.changes.snapshots.store("ship", Snapshot(held, 1e-4 * np.eye(10)))
    session.learner.changes.recall("ship")
    last = session.predicted
    for message in list(moving(45, 0.02))[40:]:
        for step in session.joint_state(message):
            assert np.all(np.abs(step.prediction.semiparametric) <= 1000.0)  # ten times the URDF's
            assert np.abs(step.prediction.rigid_body).max() > 1000.0
    assert session.predicted > last
