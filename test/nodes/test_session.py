"""Messages to predictions and learning, without a node."""

from __future__ import annotations

import os
import random
import sys
import time
from itertools import combinations, product
from pathlib import Path
from threading import Event, Thread, get_ident
from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from semiparam_dynamics.base.errors import ConfigurationError, SampleError, StorageError
from semiparam_dynamics.base.nodes.messages import joint_state_message, stamp_of
from semiparam_dynamics.base.parameters import Parameter, parameters, replace
from semiparam_dynamics.base.storage import load_state, save_state
from semiparam_dynamics.changes.config import BARE, DEFER, LEARN
from semiparam_dynamics.changes.payload import Snapshot, as_text
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import REASONS
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.learner.nodes import session as session_module
from semiparam_dynamics.learner.nodes.session import (
    LEFT_OUT,
    MAX_CREDIT,
    STOPPED,
    LearningBudget,
    Session,
    warm_up,
)

from .conftest import URDF, moved, moving, take

LONG = 120.0  # s: only reached when something is broken
RESIDUALS = pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
pytestmark = pytest.mark.usefixtures("seldom_inferred")


class Held:
    """A learner's update that waits until it may go on."""

    def __init__(self, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = Event(), Event()
        self._update = session.learner.update
        monkeypatch.setattr(session.learner, "update", self)

    def __call__(self, steps: list[Any], *rest: Any) -> None:
        self.begun.set()
        assert self.go.wait(LONG)
        self._update(steps, *rest)


def test_predicts_all_while_learning_is_held_up_and_drops_the_oldest(make_session, monkeypatch):
    session = make_session(learning_queue=3)
    held = Held(session, monkeypatch)
    steps = [step for message in moving(4) for step in take(session, message)]
    assert held.begun.wait(LONG) and session.learner.estimator.n_learned == 0
    steps += [step for message in moving(20)[4:] for step in take(session, message)]
    assert len(steps) == session.predicted == 18 and session.deferred == 17
    assert len(session.thread) == 3
    held.go.set()
    session.drain()
    learned = session.learner.estimator.n_learned
    with session.paused():
        assert session.dropped() == {"learning could not keep up": 18 - learned}
    assert 3 <= learned <= 4  # what was begun, and of the queue the last list


def test_samples_that_a_suspicion_held_back_are_all_learned(make_session, monkeypatch):
    """They are released at once, more of them than may wait else, and to a thread that is busy."""
    session, verdicts = make_session(changes__detect=True, learning_queue=10), [LEARN]
    monkeypatch.setattr(session.learner.changes, "verdict", lambda stamp: verdicts[-1])
    held, messages = Held(session, monkeypatch), iter(moving(80))
    for _ in range(5):
        take(session, next(messages))
    assert held.begun.wait(LONG)
    verdicts.append(DEFER)
    for _ in range(60):
        take(session, next(messages))
    verdicts.append(LEARN)
    for _ in range(5):
        take(session, next(messages))
    assert len(session.thread) > 60
    held.go.set()
    session.drain()
    assert session.learner.estimator.n_learned == session.predicted == 68
    for message in messages:
        take(session, message)
    session.drain()
    with session.paused():
        assert not session.dropped()


def test_learns_each_sample_before_the_next_message_if_asked(make_session):
    session = make_session(defer_learning=False)
    for k, message in enumerate(moving(12)):
        take(session, message)
        assert session.learner.estimator.n_learned == max(k - 1, 0)
    assert session.deferred == 0 and len(session.thread) == 0


@pytest.mark.parametrize(
    ("residual", "options"),
    [
        ("random_fourier", {}),
        ("nystrom", {"comparison": True}),
        ("nystrom", {"changes__detect": True}),
    ],
)
def test_learning_in_the_thread_learns_the_same(make_session, residual, options):
    """Bit by bit, but for what follows from a predictor's rounding."""
    changes = {"residual": residual, f"{residual}.window": 0.2}
    changes |= {name.replace("__", "."): value for name, value in options.items()}
    in_turn, deferred = make_session(defer_learning=False, **changes), make_session(**changes)
    for message in moving(60):
        for one, other in zip(take(deferred, message), take(in_turn, message), strict=True):
            told = one.prediction.semiparametric, other.prediction.semiparametric
            np.testing.assert_allclose(*told, rtol=1e-9, atol=1e-12)
        deferred.drain()
    a, b = deferred.learner.state(), in_turn.learner.state()
    for name in a:
        if name.startswith(("rigid_body.", "residual.")):
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)
        else:
            np.testing.assert_allclose(a[name], b[name], rtol=1e-9, atol=1e-12, err_msg=name)
    assert deferred.learner.estimator.n_learned == 58
    for name in deferred.learner.compared:
        rmses = (session.learner.scores.rmse(name) for session in (deferred, in_turn))
        np.testing.assert_allclose(*rmses, rtol=1e-9)


def test_where_learning_ends_all_evidence_is_looked_at(make_session):
    session, messages = make_session(**{"nystrom.window": 0.2}), iter(moving(300))
    for _ in range(299):
        take(session, next(messages))
    session.drain()
    before, after = (session.learner.estimator.copy() for _ in range(2))
    after.infer()
    session.learning = False
    (step,) = take(session, next(messages))
    told = step.prediction.semiparametric
    np.testing.assert_allclose(told, after.predict(step.sample).semiparametric, rtol=1e-9)
    assert not np.allclose(told, before.predict(step.sample).semiparametric, rtol=1e-6)


def test_a_pause_keeps_the_learner_as_it_is(make_session, monkeypatch):
    """Learning is under way when the pause is asked for, and there is more to learn in it."""
    session = make_session(residual="random_fourier")
    held = Held(session, monkeypatch)
    for message in moving(10):
        take(session, message)
    assert held.begun.wait(LONG)
    seen: list[tuple[int, int]] = []

    def look() -> None:
        with session.paused():
            for message in moving(50)[10:]:
                take(session, message)
            estimator = session.learner.estimator
            for _ in range(50):
                known = estimator.n_learned
                rank = estimator.rigid_body.excitation_rank()
                seen.append((known, rank))

    other = Thread(target=look)
    other.start()
    assert not seen  # it waits for what is being learned
    held.go.set()
    other.join(LONG)
    assert len(seen) == 50 and len(set(seen)) == 1
    session.drain()
    assert session.learner.estimator.n_learned == 48 > seen[0][0]


def test_saved_from_another_thread_no_sample_is_lost_or_learned_twice(make_session, tmp_path):
    """As where ~/save is answered in an executor of several threads."""
    session, ended = make_session(learning_queue=10_000, learning_share=1.0), Event()

    def save() -> None:
        while not ended.is_set():
            with session.paused(drained=True):
                pass
        session.save(tmp_path / "model.npz")

    before, saves = sys.getswitchinterval(), Thread(target=save)
    sys.setswitchinterval(1e-6)
    try:
        saves.start()
        for message in moving(400, 0.001):
            take(session, message)
    finally:
        sys.setswitchinterval(before)
        ended.set()
        saves.join(LONG)
    session.drain()
    assert session.learner.estimator.n_learned == session.predicted == 398


@pytest.mark.parametrize("act", ["predict", "update"])
def test_a_save_in_another_thread_waits_for_what_the_messages_do(
    make_session, monkeypatch, tmp_path, act: str
):
    """Without `defer_learning` a prediction, too, changes what would be copied meanwhile."""
    session, path = make_session(defer_learning=False), tmp_path / "model.npz"
    for message in moving(20):
        take(session, message)
    begun, go, real = Event(), Event(), getattr(session.learner, act)

    def held(*arguments: Any, **options: Any) -> Any:
        begun.set()
        assert go.wait(LONG)
        return real(*arguments, **options)

    monkeypatch.setattr(session.learner, act, held)
    messages = Thread(target=take, args=(session, moving(21)[-1]))
    saves = Thread(target=session.save, args=(path,))
    messages.start()
    assert begun.wait(LONG)
    saves.start()
    saves.join(0.1)
    assert saves.is_alive() and not path.exists()
    go.set()
    for thread in (messages, saves):
        thread.join(LONG)
    assert load_state(path, session.learner.identity())["counts"][0] in (18, 19)


@RESIDUALS
def test_saved_reset_and_loaded_while_it_learns(make_session, tmp_path, residual):
    options = {"residual": residual, f"{residual}.window": 0.1}
    session, path = make_session(**options), tmp_path / "model.npz"
    for k, message in enumerate(moving(200)):
        take(session, message)
        if k == 100:
            session.save(path)  # with all that waits
            assert load_state(path, session.learner.identity())["counts"][0] == 99
        if k == 150:
            session.load(path)
            session.reset()
            assert session.learner.estimator.n_learned == 0 and len(session.thread) == 0
            assert session.autosave.loaded is None
    session.drain()
    assert session.learner.estimator.n_learned == 47
    deferred, whole = make_session(**options), make_session(**options, defer_learning=False)
    for each in (deferred, whole):
        each.load(path)
    for message in moving(230)[200:]:
        for one, other in zip(take(deferred, message), take(whole, message), strict=True):
            told = one.prediction, other.prediction
            np.testing.assert_allclose(*(each.rigid_body for each in told), rtol=1e-9)
            np.testing.assert_allclose(*(each.semiparametric for each in told), rtol=1e-9)
        deferred.drain()


def test_saving_in_the_thread_leaves_the_model_s_working_memory_alone(
    make_session, tmp_path, monkeypatch
):
    """Messages are filtered in it meanwhile: a save could spoil a sample, or its own identity."""
    path = tmp_path / "model.npz"
    session = make_session(model_file=str(path), save_interval=1e-3)
    identity, here, users = session.learner.identity(), get_ident(), set()
    fill = session.model._regressor.fill

    def noted(*arguments: Any) -> None:
        users.add(get_ident())
        fill(*arguments)

    monkeypatch.setattr(session.model._regressor, "fill", noted)
    for message in moving(60):
        take(session, message)
        session.drain()
    session.autosave.wait()
    assert load_state(path, identity)["counts"][0] > 0 and users <= {here}


def standing(session: Session, first: int, count: int = 100, effort: bool = True) -> None:
    """Take messages of the robot at rest, with the stamps from the `first` one on."""
    for k in range(first, first + count):
        message = joint_state_message(
            stamp_of(moved(k)), ("shoulder", "elbow"), np.full(2, 0.3), np.zeros(2), np.ones(2)
        )
        if not effort:
            message.effort = []
        take(session, message)


def assert_tared(session: Session) -> None:
    assert "samples is taken off" in session.tare()


def assert_not_tared(session: Session, why: str = "stand still for half a second") -> None:
    with pytest.raises(SampleError, match=why):
        session.tare()


def test_a_tare_is_of_now_and_of_what_the_present_model_predicted(
    make_session, monkeypatch, tmp_path
):
    """Not of a stand before it moved away unmeasured; an hour later a tool may be mounted."""
    session, now = make_session(defer_learning=False), [1000.0]
    monkeypatch.setattr(session, "_clock", lambda: now[0])
    standing(session, 0)
    assert_tared(session)
    for k in range(100, 110):
        message = moved(k)
        message.effort = []
        take(session, message)
    assert_not_tared(session)
    standing(session, 110, 40)
    assert_not_tared(session)
    standing(session, 150, 40)
    assert_tared(session)
    session.save(tmp_path / "model.npz")
    session.load(tmp_path / "model.npz")
    assert_not_tared(session)
    standing(session, 190)
    now[0] += 1.0
    assert_tared(session)
    now[0] += 3600.0
    assert_not_tared(session, "3601 s old: send measurements")
    standing(session, 360_000)
    assert_tared(session)


def cup(session: Session) -> Any:
    """The monitor of changes, that knows a payload of this name."""
    monitor = session.learner.changes
    held = np.array([1.0, 0.2, 0.0, 0.0, *[0.0] * 6])
    monitor.snapshots.store("cup", Snapshot(held, 1e-4 * np.eye(10)))
    return monitor


def test_no_tare_is_of_predictions_with_a_payload_that_is_gone(make_session):
    session = make_session(defer_learning=False, changes__detect=True)
    monitor = cup(session)
    monitor.recall("cup")
    standing(session, 0)
    with_it = session.last.prediction.semiparametric
    assert_tared(session)
    monitor.recall(BARE)  # as it is told at rest
    assert_not_tared(session)
    standing(session, 100)
    assert_tared(session)
    without = session.last.prediction.semiparametric
    assert np.abs(with_it - without).max() > 1.0
    np.testing.assert_allclose(session.learner.external_bias, 1.0 - without, atol=0.01)


@pytest.mark.parametrize(("defer", "stopped"), [(True, False), (True, True), (False, False)])
def test_a_payload_that_is_put_down_at_rest_is_saved_at_the_end(
    make_session, tmp_path, defer: bool, stopped: bool
):
    """Nothing is learned there: what was held before would be told again by the next start."""
    path = tmp_path / "model.npz"
    given = {"changes__detect": True, "model_file": str(path), "defer_learning": defer}
    session = make_session(save_interval=0.0, **given)
    monitor = cup(session)
    monitor.recall("cup")
    standing(session, 0)
    session.save(path)
    standing(session, 100)
    session.drain()
    assert session.autosave.unsaved == 0 and session.learner.estimator.n_learned == 0
    monitor.recall(BARE)  # as it is told at rest
    if stopped:
        session.thread.problem = "MemoryError"
    standing(session, 200, 10)
    assert session.finish() == path and session.autosave.unsaved == 0
    after = make_session(**given)
    after.load(path)
    assert after.learner.changes.payload is None
    standing(after, 300, 10)
    after.drain()
    assert after.autosave.unsaved == 0  # that it was loaded is no change


def test_a_payload_that_is_taken_at_rest_is_saved_when_it_is_due(make_session, tmp_path):
    path = tmp_path / "model.npz"
    session = make_session(changes__detect=True, model_file=str(path), save_interval=1e-3)
    monitor = cup(session)
    standing(session, 0)
    session.save_if_due()
    session.drain()
    assert not path.exists()
    monitor.recall("cup")
    end = time.monotonic() + LONG
    while not path.exists():  # each is a message in which it may be due
        assert time.monotonic() < end
        standing(session, 100, 10)
        session.save_if_due()
        session.drain()
        session.autosave.wait()
    saved = load_state(path, session.learner.identity())
    assert as_text(saved["changes.correction.name"]) == "cup"


def test_a_load_that_fails_leaves_it_as_it_was(make_session, tmp_path):
    session = make_session(residual="random_fourier", **{"random_fourier.window": 0.1})
    for message in moving(60):
        take(session, message)
    session.drain()
    before = session.learner.state()
    damaged = {name: value for name, value in before.items() if name.endswith("core.U")}
    damaged = {name: np.zeros((3, 3)) for name in damaged}
    assert damaged
    save_state(tmp_path / "broken.npz", session.learner.identity(), before | damaged)
    with pytest.raises(StorageError, match="cannot resume from"):
        session.load(tmp_path / "broken.npz")
    after = session.learner.state()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)
    for message in moving(90)[60:]:
        take(session, message)
    session.drain()
    assert session.learner.estimator.n_learned == 88


NARROW = """<link name="tip"/><joint name="finger" type="prismatic"><parent link="lower"/>
  <child link="tip"/><axis xyz="1 0 0"/><limit lower="0.01" upper="0.03" effort="9" velocity="1"/>
</joint></robot>"""


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"filter.max_gap": 0.01},
        {"filter.max_gap": 60.0, "filter.rest_velocity": 1.0, "nystrom.window": 100.0},
    ],
)
def test_everything_is_compiled_at_the_start_whatever_the_joints_limits(monkeypatch, values):
    """A narrow joint's positions would be left out as implausible, and nothing learned."""
    made: list[InverseDynamicsLearner] = []

    def make(*arguments: Any) -> InverseDynamicsLearner:
        made.append(InverseDynamicsLearner(*arguments))
        return made[-1]

    monkeypatch.setattr(session_module, "InverseDynamicsLearner", make)
    monkeypatch.setattr(session_module, "warm_up", warm_up)
    config = replace(InverseDynamicsNodeConfig(), **values)
    session = Session(URDF.replace("</robot>", NARROW), config)
    own, learner = made
    assert own is session.learner and own.estimator.n_learned == 0
    assert learner.estimator.n_learned > 50 and not learner.dropped
    assert learner.estimator.residual.standardizer.ready


@pytest.mark.parametrize("defer", [True, False])
def test_no_memory_for_a_save_stops_neither_learning_nor_reports(
    make_session, monkeypatch, tmp_path, defer
):
    path = tmp_path / "model.npz"
    session = make_session(model_file=str(path), save_interval=1e-3, defer_learning=defer)

    def full() -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(session.learner, "state", full)
        for message in moving(20):
            take(session, message)
            session.drain()
        session.save_if_due()
        session.drain()
        assert "not enough memory" in session.autosave.problem
    assert not session.problem and session.learner.estimator.n_learned == 18
    session.finish()
    assert path.exists() and not session.autosave.problem


@pytest.mark.parametrize("defer", [True, False])
def test_an_error_stops_learning_until_it_is_started_again(
    make_session, monkeypatch, tmp_path, defer
):
    session = make_session(defer_learning=defer)
    update = SemiparametricEstimator.update

    def fails(estimator: Any, sample: Any, *rest: Any) -> None:
        if estimator.n_learned == 5:
            raise MemoryError("no room")
        update(estimator, sample, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(SemiparametricEstimator, "update", fails)
        steps = []
        for message in moving(20):
            steps += take(session, message)
            session.drain()
    assert len(steps) == 18 and session.learner.estimator.n_learned == 5
    assert session.problem == "MemoryError: no room"
    assert session.dropped() == {STOPPED: 12}
    session.save(tmp_path / "model.npz")
    session.learning = True
    assert not session.problem
    for message in moving(30)[20:]:
        take(session, message)
    session.drain()
    assert session.learner.estimator.n_learned == 15


def wave(k: int, *, far: bool = False, effort: bool = True) -> JointState:
    """The k-th message, 10 ms apart, of a motion with efforts of its own near 0, or far from it."""
    t = 0.01 * k
    size, middle, fast = ((1.5, 1.5), (1.2, -1.2), 1.7) if far else ((0.5, 0.7), (0.0, 0.0), 1.0)
    w = fast * np.array([1.0, 1.3])
    q, dq = np.array(middle) + size * np.sin(w * t), size * w * np.cos(w * t)
    together = 2.0 * np.cos(q[0] + q[1])
    y = np.array([6.0 * np.cos(q[0]) + 0.8 * np.sin(5.0 * q[0]), 0.5 * np.sin(7.0 * q[1])])
    noise = 0.02 * np.random.default_rng(k).normal(size=2)
    message = joint_state_message(
        1_000_000_000 + 10_000_000 * k, ("shoulder", "elbow"), q, dq, y + together + noise
    )
    if not effort:
        message.effort = []
    return message


LEARNED, FAR = 2000, 700  # messages: 20 s, and 7 s
AGAIN = 200  # messages by which a model that was loaded finds out that it still holds
UNMEASURED = "effort or wrench not measured"


def took_far(session: Session, effort: bool = False) -> list[Any]:
    """The predictions of 8 s of other motion; learning never lags behind by more than 0.2 s."""
    told = []
    for k in range(LEARNED, LEARNED + FAR):
        told += [step.prediction for step in take(session, wave(k, far=True, effort=effort))]
        if k % 20 == 0:
            session.drain()
    return told


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of the first motion, which all continue with its end."""
    path = tmp_path_factory.mktemp("learned") / "model.npz"
    session = Session(URDF, replace(InverseDynamicsNodeConfig(), defer_learning=False))
    for k in range(LEARNED):
        take(session, wave(k))
    session.save(path)
    session.finish()
    return path


def took_near(session: Session, learned: Path) -> None:
    session.load(learned)
    for k in range(LEARNED - AGAIN, LEARNED):
        take(session, wave(k))
        if k % 20 == 0:
            session.drain()
    session.drain()


def assert_same_doubts(told: list[Any], others: list[Any]) -> None:
    """Neither residual knows where it is any more, and the deviations agree as time goes by."""
    # Without efforts the first positions after the jump are taken for another publisher's.
    assert min(len(told), len(others)) > FAR - 20
    assert told[-1].confidence < 0.1 and others[-1].confidence < 0.1
    # At each instant deferred ones are of up to 0.2 s before.
    count = min(len(told), len(others)) - 100
    stds = [np.array([p.semiparametric_std for p in each[-count:]]) for each in (told, others)]
    np.testing.assert_allclose(*(np.median(each, axis=0) for each in stds), rtol=0.3)
    np.testing.assert_allclose(told[-1].semiparametric_std, others[-1].semiparametric_std, rtol=0.3)


def test_deviations_are_of_now_where_no_efforts_come(make_session, learned) -> None:
    """Where they end, and where a model was loaded and there were none at all."""
    found = {}
    for defer in (True, False):
        session = make_session(defer_learning=defer)
        took_near(session, learned)
        known = session.learner.estimator.n_learned
        scored = session.learner.scores.samples
        found[defer] = took_far(session)
        # The last of the first motion is learned with the first message that continues it.
        assert session.learner.estimator.n_learned <= known + 1 and len(session.thread) == 0
        with session.paused():
            # The far motion begins with a jump. None is counted as left out of learning.
            jumped = {REASONS["others"], REASONS["gaps"]}
            assert session.dropped().keys() == {*jumped, "no effort", UNMEASURED}
            assert session.learner.scores.samples <= scored + 1
    assert_same_doubts(found[True], found[False])
    for defer in (True, False):
        session = make_session(defer_learning=defer)
        session.load(learned)
        found[defer] = took_far(session)
    assert_same_doubts(found[True], found[False])


def test_deviations_are_of_now_after_an_error_in_learning(
    make_session, monkeypatch, learned
) -> None:
    in_turn, stopped = (make_session(defer_learning=defer) for defer in (False, True))
    for session in (in_turn, stopped):
        took_near(session, learned)

    def fails(*_: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(stopped.learner.estimator, "update", fails)
    told = took_far(stopped, effort=True)
    assert stopped.problem == "MemoryError: no room"
    assert_same_doubts(told, took_far(in_turn))


def test_a_suspicion_that_lasts_lets_deviations_go_on(make_session, monkeypatch, learned) -> None:
    session = make_session(changes__detect=True)
    took_near(session, learned)
    monkeypatch.setattr(session.learner.changes, "verdict", lambda stamp: DEFER)
    known = [prediction.confidence for prediction in took_far(session, effort=True)]
    assert known[0] > 0.3 and known[-1] < 0.1


def test_a_thousand_unmeasured_messages_a_second_are_looked_at_seldom(
    make_session, monkeypatch
) -> None:
    session, looked = make_session(), []
    monkeypatch.setattr(session.learner, "idle_update", lambda sample: looked.append(sample.stamp))
    for k in range(1000):
        message = wave(k, effort=False)
        stamp = 1_000_000_000 + 1_000_000 * k
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        message.position = [0.01 * np.sin(0.001 * k), 0.0]
        message.velocity = [0.01 * np.cos(0.001 * k), 0.0]
        take(session, message)
    session.drain()
    assert 1 <= len(looked) <= 34 and looked == sorted(looked)
    assert not session.problem and session.dropped().keys() == {"no effort", UNMEASURED}


def test_learning_switched_off_is_counted_and_still_scored(make_session):
    session = make_session(defer_learning=False, examine_start=False)
    assert session.first_motion is None
    for k, message in enumerate(moving(30)):
        session.learning = k < 12
        take(session, message)
    assert session.learner.estimator.n_learned == 10
    assert session.learner.scores.samples == 28
    assert session.dropped() == {"learning switched off": 18}


def test_learning_in_turn_and_in_the_thread_can_be_switched_live(make_session):
    session = make_session()
    config = InverseDynamicsNodeConfig()
    for k, message in enumerate(moving(60)):
        if k % 10 == 5:
            session.configure(replace(config, defer_learning=k % 20 == 5, comparison=k > 30))
        take(session, message)
    session.drain()
    assert session.learner.estimator.n_learned == 58
    assert session.learner.compared == ("rigid_body", "nonparametric", "semiparametric")


def extremes(entry: Parameter) -> list[Any]:
    """What a parameter can be at most and at least, next to nothing, and no number at all."""
    if entry.type is bool or entry.choices:
        return [*(entry.choices or (False, True))]
    if entry.low is None:
        return ["", "x" * 10_000, "\0"]
    low, high = entry.low, entry.high
    if isinstance(entry.default, int):
        return [low, high, 1 << 62]
    numbers = [low, float(np.nextafter(low, high)), low + 5e-324, 1e-20, high, np.nan]
    return [(), *((number,) for number in numbers)] if entry.default == () else numbers


LIVE = [entry for entry in parameters(InverseDynamicsNodeConfig, internal=True) if entry.live]
PAIRS = [
    {one.name: a, other.name: b}
    for one, other in combinations(LIVE, 2)
    for a, b in product(extremes(one), extremes(other))
]


@pytest.mark.parametrize("detect", [False, True])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_any_two_live_parameters_are_refused_or_hold(make_session, tmp_path, detect) -> None:
    """A few of all pairs; `SEMIPARAM_PAIRS` names another number of them."""
    few = {"nystrom__max_centers": 40, "nystrom__wide_max_centers": 10, "nystrom__window": 1.0}
    session, refused = make_session(changes__detect=detect, changes__settle=1.0, **few), 0
    start, path = session._config, tmp_path / "model.npz"
    for k in range(300):
        take(session, wave(k))
    session.save(path)
    count = int(os.environ.get("SEMIPARAM_PAIRS", 12))
    known = {"changes.contact": 5e-324}  # limits of 0
    for values in [known, *random.Random(detect).sample(PAIRS, min(count, len(PAIRS)))]:
        session.reset()
        session.configure(start)
        session.load(path)
        try:
            wanted = replace(start, **values)
            session.check(wanted)
        except ConfigurationError as error:
            assert any(name in str(error) for name in values), error
            refused += 1
            continue
        session.configure(wanted)
        for k in range(300, 340):
            message = wave(k)
            message.effort[1] += 40.0 * (k > 330)  # a contact
            for step in take(session, message):
                told = step.prediction
                assert np.isfinite((told.semiparametric, told.semiparametric_std)).all(), values
        session.drain()
        assert not session.problem, (values, session.problem)
        assert session.learner.estimator.config == wanted.learner.estimator
    assert 0 < refused < 0.6 * count


def test_what_the_comparison_cannot_continue_with_is_refused_at_the_check(make_session):
    session, config = make_session(comparison=True), InverseDynamicsNodeConfig()
    for message in moving(200):
        take(session, message)
    session.drain()
    with session.paused():
        core = session.learner.baseline.kernel_model.model.core
        core.restore(core.state() | {"R": 1e6 * core.state()["R"]})  # as after much more
    lower = replace(config, comparison=True, nystrom__penalty=1e-3)
    for act in (session.check, session.configure):
        with pytest.raises(ConfigurationError, match="can't be lowered from 0.5 to 0.001"):
            act(lower)
    assert session.learner.config.estimator.nystrom.penalty == 0.5
    session.check(replace(lower, nystrom__penalty=0.6))


def test_reset_forgets_and_counts_anew(make_session):
    session = make_session(defer_learning=False)
    fresh = [take(session, message) for message in moving(12)]
    session.reset()
    assert session.predicted == 0 and not session.dropped()
    for before, message in zip(fresh, moving(12), strict=True):
        for a, b in zip(before, take(session, message), strict=True):
            np.testing.assert_array_equal(a.prediction.semiparametric, b.prediction.semiparametric)


def budgeted(share: float, cost: float, rate: float, weight: float, count: int = 4000):
    """The weights with which samples at a rate (Hz), that cost so many seconds, are learned."""
    budget, weights = LearningBudget(share), []
    for k in range(count):
        weights.append(budget.weight(1_000_000_000 + round(k * 1e9 / rate), weight))
        if weights[-1]:
            budget.spent(cost)
    return np.array(weights)


@pytest.mark.parametrize("rate", [100.0, 400.0])
@pytest.mark.parametrize("cost", [0.004, 0.011])
def test_learning_takes_its_share_and_what_is_learned_counts_for_what_is_not(rate, cost) -> None:
    weights = budgeted(0.3, cost, rate, 0.02)
    at_most = 0.3 / cost * (len(weights) / rate + MAX_CREDIT)
    assert np.count_nonzero(weights) == pytest.approx(min(len(weights), at_most), rel=0.02)
    assert weights.sum() == pytest.approx(0.02 * len(weights), rel=0.01)
    assert weights.max() <= 1.0


def test_within_the_share_nothing_changes() -> None:
    assert np.all(budgeted(0.3, 0.0009, 100.0, 0.1) == 0.1)
    assert np.all(budgeted(1.0, 10.0, 100.0, 0.1) == 0.1)


def test_some_samples_are_learned_whatever_they_cost_and_none_counts_more_than_one() -> None:
    weights = budgeted(0.01, 1.0, 100.0, 0.2)
    assert np.count_nonzero(weights) == pytest.approx(400, abs=2)
    assert weights.max() == 1.0


def test_a_sample_that_was_held_up_does_not_stop_learning() -> None:
    budget, weights = LearningBudget(0.3), []
    for k in range(500):
        weights.append(budget.weight(1_000_000_000 + 10_000_000 * k, 0.1))
        if weights[-1]:
            budget.spent(30.0 if k in (0, 200) else 0.0005)
    assert np.count_nonzero(weights) > 450


def scheduled(make_session, monkeypatch, **values: Any) -> tuple[Session, list[Any]]:
    """A session that learns 20 samples a second, and its updates: each sample, if it is learned."""
    session = make_session(learning_share=0.02, **values)
    session._budget.spent(0.001)
    monkeypatch.setattr(session._budget, "spent", lambda _: None)
    schedule, update = [], session.learner.update

    def noted(steps: list[Any], *rest: Any) -> None:
        schedule.append([(step.sample, step.target is not None) for step in steps])
        update(steps, *rest)

    idle = session.learner.idle_update

    def noted_idle(sample: Any) -> None:
        schedule.append([(sample, False)])
        idle(sample)

    monkeypatch.setattr(session.learner, "update", noted)
    monkeypatch.setattr(session.learner, "idle_update", noted_idle)
    return session, schedule


def test_samples_beyond_the_share_are_counted_and_scored(make_session, monkeypatch) -> None:
    """Live, the share can be raised again; samples that are learned in turn know of none."""
    session, _ = scheduled(make_session, monkeypatch, learning_queue=1000)  # if busy, too
    for message in moving(300):
        take(session, message)
    session.drain()
    learned = session.learner.estimator.n_learned
    with session.paused():
        assert session.dropped()[LEFT_OUT] == session.predicted - learned
        assert session.learner.scores.samples == session.predicted
    # A fiftieth of a core is 20 samples a second of 1 ms, and what may be spent at once.
    assert 60 <= learned <= 75


def test_beside_learned_samples_no_other_one_is_predicted_again(make_session, monkeypatch) -> None:
    """It costs as much as learning one: the last one that was learned serves as well."""
    session, schedule = scheduled(make_session, monkeypatch)
    predicted, predict = [], session.learner.estimator.predict
    monkeypatch.setattr(
        session.learner.estimator, "predict", lambda s: predicted.append(s) or predict(s)
    )
    for message in moving(300):
        take(session, message)
    session.drain()
    parts = [[learned for _, learned in part] for part in schedule]
    assert any(any(part) and not part[-1] for part in parts)
    assert len(predicted) == sum(max(sum(part), 1) for part in parts)


@RESIDUALS
@pytest.mark.parametrize("unmeasured", [range(0), range(120, 180)])
def test_what_is_learned_within_the_share_is_what_its_schedule_gives_offline(
    make_session, monkeypatch, residual, unmeasured
) -> None:
    """To the last bit: it does not depend on what predictions knew when."""
    values = {"residual": residual, f"{residual}.window": 0.2}
    session, schedule = scheduled(make_session, monkeypatch, **values)
    for k, message in enumerate(moving(300)):
        if k in unmeasured:
            message.effort = []
        take(session, message)
        if k in unmeasured[::20]:  # else learning may lag behind until efforts come again
            session.drain()
    session.drain()
    assert any(sample.y is None for part in schedule for sample, _ in part) == bool(unmeasured)
    weights = [sample.weight for part in schedule for sample, learned in part if learned]
    assert 45 <= len(weights) <= 75 and min(weights[1:]) < max(weights[1:])
    offline = SemiparametricEstimator(session.model, session.learner.config.estimator)
    for part in schedule:
        for sample, learned in part:
            if learned:
                offline.update(sample)
            elif sample is part[-1][0] and not any(each for _, each in part):
                offline.predict(sample)
    found, expected = session.learner.estimator.state(), offline.state()
    assert found.keys() == expected.keys() and offline.residual.n_features > 20
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
