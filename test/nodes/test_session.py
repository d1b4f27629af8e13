"""Messages to predictions and learning, without a node."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.config import InverseDynamicsNodeConfig
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.nodes.session import STOPPED, Session
from semiparam_dynamics.parameters import replace
from semiparam_dynamics.storage import load_state, save_state

from .conftest import moving, take

LONG = 30.0  # s: only reached when something is broken
RESIDUALS = pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])


class Held:
    """A learner's update that waits until it may go on."""

    def __init__(self, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = Event(), Event()
        self._update = session.learner.update
        monkeypatch.setattr(session.learner, "update", self)

    def __call__(self, steps: list[Any]) -> None:
        self.begun.set()
        assert self.go.wait(LONG)
        self._update(steps)


@RESIDUALS
def test_predicts_all_while_learning_is_held_up_and_drops_the_oldest(
    make_session, monkeypatch, residual
):
    session = make_session(residual=residual, learning_queue=3)
    held = Held(session, monkeypatch)
    steps = [step for message in moving(4) for step in take(session, message)]
    assert held.begun.wait(LONG) and session.learner.estimator.n_learned == 0
    steps += [step for message in moving(20)[4:] for step in take(session, message)]
    assert len(steps) == session.predicted == 18 and session.deferred == 17
    assert session.waiting == 3
    held.go.set()
    session.drain()
    learned = session.learner.estimator.n_learned
    with session.paused():
        assert session.dropped() == {"learning could not keep up": 18 - learned}
    assert 4 <= learned <= 5


def test_learns_each_sample_before_the_next_message_if_asked(make_session):
    session = make_session(defer_learning=False)
    for k, message in enumerate(moving(12)):
        take(session, message)
        assert session.learner.estimator.n_learned == max(k - 1, 0)
    assert session.deferred == 0 and session.waiting == 0


@RESIDUALS
@pytest.mark.parametrize("options", [{}, {"comparison": True}, {"changes__detect": True}])
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
        if name.startswith(("rigid_body.", "residual.", "trust.")):
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)
        else:
            np.testing.assert_allclose(a[name], b[name], rtol=1e-9, atol=1e-12, err_msg=name)
    assert deferred.learner.estimator.n_learned == 58
    for name in deferred.learner.compared:
        rmses = (session.learner.scores.rmse(name) for session in (deferred, in_turn))
        np.testing.assert_allclose(*rmses, rtol=1e-9)


@RESIDUALS
def test_learning_that_lags_behind_learns_the_same_rigid_body(make_session, residual):
    changes = {"residual": residual, f"{residual}.window": 0.2}
    in_turn, deferred = make_session(defer_learning=False, **changes), make_session(**changes)
    for message in moving(90):
        take(deferred, message), take(in_turn, message)
    deferred.drain()
    with deferred.paused():
        a, b = deferred.learner.estimator.state(), in_turn.learner.estimator.state()
    for name in a:  # the residual's inputs and the errors are of published predictions
        if name.startswith("rigid_body."):
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    assert deferred.learner.estimator.n_learned == 88


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
            session.reset()
            assert session.learner.estimator.n_learned == 0 and session.waiting == 0
    session.drain()
    assert session.learner.estimator.n_learned == 47
    deferred, whole = make_session(**options), make_session(**options, defer_learning=False)
    for each in (deferred, whole):
        each.load(path)
    for message in moving(230)[200:]:
        for one, other in zip(take(deferred, message), take(whole, message), strict=True):
            told = one.prediction.semiparametric, other.prediction.semiparametric
            np.testing.assert_allclose(*told, rtol=1e-9, atol=1e-12)
        deferred.drain()


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
    assert session.problem == "MemoryError: no room" and "fails" in session.trace
    assert session.dropped() == {STOPPED: 12}
    session.save(tmp_path / "model.npz")
    session.learning = True
    assert not session.problem
    for message in moving(30)[20:]:
        take(session, message)
    session.drain()
    assert session.learner.estimator.n_learned == 15


def test_learning_switched_off_is_counted_and_still_scored(make_session):
    session = make_session(defer_learning=False)
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


def test_the_rank_of_the_excitation_grows_from_nothing(make_session):
    session = make_session(defer_learning=False)
    assert session.learner.estimator.rigid_body.excitation_rank() == 0
    for message in moving(300):
        take(session, message)
    assert 5 <= session.learner.estimator.rigid_body.excitation_rank() <= session.model.n_parameters


def test_reset_forgets_and_counts_anew(make_session):
    session = make_session(defer_learning=False)
    fresh = [take(session, message) for message in moving(12)]
    session.reset()
    assert session.predicted == 0 and not session.dropped()
    for before, message in zip(fresh, moving(12), strict=True):
        for a, b in zip(before, take(session, message), strict=True):
            np.testing.assert_array_equal(a.prediction.semiparametric, b.prediction.semiparametric)
