"""Bad messages among good ones change nothing that is learned or predicted; they are counted."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from semiparam_dynamics.base.nodes.messages import joint_state_message
from semiparam_dynamics.learner.nodes.session import Session

from .conftest import take

NAMES = ("shoulder", "elbow")
NODE = "/inverse_dynamics"
STEP = 10_000_000
BAD_VALUES = st.sampled_from([math.nan, math.inf, -math.inf, 1e300, -1e10])


def state_at(k: int) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    t = 0.01 * k
    w = np.array([2.0, 3.1])
    return 10_000_000_000 + k * STEP, np.sin(w * t), w * np.cos(w * t), 5.0 * np.sin(w * t + 0.1)


def good(k: int, names: tuple[str, ...] = NAMES) -> JointState:
    stamp, *values = state_at(k)
    index = [NAMES.index(name) if name in NAMES else 0 for name in names]
    return joint_state_message(stamp, names, *(value[index] for value in values))


def bad(k: int, kind: str, value: float) -> Any:
    """A message that comes after the `k`-th and must not count; value: not a number, or huge."""
    stamp, q, dq, effort = state_at(k)
    late = stamp + STEP // 2
    if kind == "value":
        return joint_state_message(late, NAMES, np.array([value, q[1]]), dq, effort)
    if kind == "length":
        return joint_state_message(late, NAMES, q[:1], dq, effort)
    if kind == "missing":
        return joint_state_message(late, ("shoulder", "wrist"), q, dq, effort)
    if kind == "twice":
        return joint_state_message(late, (*NAMES, "elbow"), *([*x, x[1]] for x in (q, dq, effort)))
    if kind == "degrees":
        return joint_state_message(late, NAMES, np.degrees(q) + 100.0, dq, effort)
    if kind == "junk":
        return SimpleNamespace(name=list(NAMES), position=None)
    stamps = {"zero": 0, "repeated": stamp, "late": stamp - 3 * STEP}
    return joint_state_message(stamps[kind], NAMES, q, dq, effort)


KINDS = (*("value", "length", "missing", "twice", "degrees", "junk", "zero", "repeated", "late"),)


@pytest.fixture
def session(make_session) -> Session:
    return make_session(defer_learning=False, nystrom__window=0.3)


def run(session: Session, messages: list[Any]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """What was predicted and what was learned of all messages."""
    session.reset()
    steps = [step for message in messages for step in take(session, message)]
    predicted = np.array([step.prediction.semiparametric for step in steps])
    state = session.learner.estimator.state()
    return predicted, {name: array.copy() for name, array in state.items()}


def assert_equal(one: Any, other: Any) -> None:
    assert np.array_equal(one[0], other[0])
    assert one[1].keys() == other[1].keys()
    for name, array in one[1].items():
        assert np.array_equal(array, other[1][name]), name


@pytest.fixture
def clean(session) -> Any:
    """What is predicted and learned of good messages alone."""
    return run(session, [good(k) for k in range(80)])


@given(
    st.lists(st.tuples(st.integers(0, 79), st.sampled_from(KINDS), BAD_VALUES), max_size=40),
    st.integers(0, 2**32 - 1),  # 80 permutations would take longer to draw than all else here
)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_learned_is_bitwise_what_it_is_without_them(session, clean, inserted, seed) -> None:
    messages, rng = [], np.random.default_rng(seed)
    for k in range(80):
        names = rng.permutation([*NAMES, "gripper", "gripper"]).tolist()
        messages.append(good(k, tuple(names)))  # in any order, with joints unknown here
        messages += [bad(k, kind, value) for at, kind, value in inserted if at == k]
    assert_equal(clean, run(session, messages))
    assert session.dropped().total() == len(inserted)


def test_each_kind_is_counted_under_one_reason(session) -> None:
    for kind in KINDS:
        run(session, [m for k in range(20) for m in (good(k), bad(k, kind, math.nan))])
        assert list(session.dropped().values()) == [20], kind


def test_one_wild_stamp_costs_a_few_samples_and_teaches_nothing_wrong(session, clean) -> None:
    for jump in (3600, 10**9, -3, -9):
        wild = good(40)
        wild.header.stamp.sec += jump
        messages = [*map(good, range(40)), wild, *map(good, range(40, 80))]
        predicted, state = run(session, messages)
        assert len(clean[0]) - 6 <= len(predicted) <= len(clean[0])
        assert all(np.isfinite(array).all() for array in state.values())
        assert np.abs(predicted).max() < 2.0 * np.abs(clean[0]).max()
        assert session.dropped()["clock jumped"] >= 1


def test_a_sensor_that_sticks_is_not_learned_and_what_was_learned_stays(session) -> None:
    messages = [good(k) for k in range(400)]
    for message in messages[100:300]:
        message.effort = messages[99].effort
    session.reset()
    states = {}
    for k, message in enumerate(messages):
        take(session, message)
        if k in (210, 299, 399):
            states[k] = session.learner.estimator.state()
    differing = [n for n, held in states[210].items() if not np.array_equal(held, states[299][n])]
    assert not differing
    assert session.dropped()["effort stuck"] == 100
    # Predictions go on, but for the first 0.05 s, when efforts might have been of other messages.
    assert session.predicted == 398 - 5
    assert session.learner.estimator.n_learned > states[299]["counts"][0] + 50


def counts(peer) -> dict[str, int]:
    """How many messages the node dropped, by its last report's names."""
    return {k: int(v) for k, v in peer.figures().items() if k.startswith("dropped")}


def test_a_flood_reaches_neither_the_model_nor_the_log(peer, start, urdf, connect) -> None:
    start("inverse_dynamics", urdf=urdf, defer_learning="false")
    arm = connect()
    arm.move(50)
    for seen in ("50", "100"):
        # Good messages come when none waits: with a flood before them best effort may lose them.
        peer.until(lambda n=seen: peer.figures().get("samples seen") == n, "the good messages")
        for k in range(900):
            arm.publisher.publish(bad(k, KINDS[k % 4], math.nan))
            if k % 5 == 0:
                peer.spin(0.001)
        before: dict[str, int] = {}
        while not before or before != counts(peer):
            before, report = counts(peer), peer.status
            peer.until(lambda last=report: peer.status is not last, "another report")
        arm.move(50)
    peer.until(lambda: peer.figures().get("samples seen") == "150", "all good messages")
    assert peer.figures()["samples learned"] == "148"
    dropped = counts(peer)
    assert len(dropped) == 4 and sum(dropped.values()) > 200  # of 1800 most, where none is lost
    log = (Path(urdf).parent / "inverse_dynamics.log").read_text()
    assert len(log.splitlines()) < 20
    whole = serialize_message(arm.message())
    for _ in range(3):  # bytes that are no joint state
        arm.publisher.publish(whole[: len(whole) // 2])
        peer.spin(0.01)
    peer.until(lambda: counts(peer).get("dropped: malformed", 0) >= 3, "the bad ones")
    arm.move(50)
    peer.until(lambda: peer.figures().get("samples seen") == "200", "those after them")
