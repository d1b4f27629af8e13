"""Errors under a payload that no body explains: learned apart, dropped with the payload."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest

from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.changes.held_residual import HeldResidual
from semiparam_dynamics.changes.hypotheses import Causes
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator

from ..dynamics.arms import motion
from .changing_arm import (
    MODEL,
    ON,
    Change,
    by_hand,
    errors,
    follow,
    held,
    monitor,
    moving,
    nothing,
    seconds,
)

END = ON + 20.0


@pytest.fixture(scope="module")
def samples():
    """Of a motion, with the learned model's predictions: nothing was learned, so all are 0."""
    estimator = SemiparametricEstimator(MODEL)
    t = np.arange(1500) / 50.0
    states = zip(*motion(MODEL, t), t, strict=True)
    found = [
        estimator.sample(q, dq, ddq, np.zeros(4), 1 + round(1e9 * time))
        for q, dq, ddq, time in states
    ]
    return [(sample, estimator.predict(sample)) for sample in found]


def twisted(sample) -> np.ndarray:
    """An effort (4,) that depends on the positions."""
    return np.sin(2.0 * sample.q[:1]) * np.array([1.0, -0.5, 0.3, 0.2])


def with_errors(samples, left):
    """The samples, measured so that `left` (of a sample) is what is predicted too little."""
    return [(dataclasses.replace(s, y=p.semiparametric + left(s)), p) for s, p in samples]


def test_what_is_left_is_that_of_the_present_estimate_whatever_it_was(samples) -> None:
    """Learned under a wrong estimate of the load, it gives the rest beside the right one."""
    causes = Causes(MODEL, ChangesConfig())
    of, right = HeldResidual(MODEL, causes), np.zeros(causes.n_columns)
    right[0] = 1.0
    rows = with_errors(samples, lambda s: causes.columns_of(s) @ right + twisted(s))
    for sample, prediction in rows[:600]:
        of.observe(sample, prediction)
    assert of.n_learned == 0 and not of.value(*rows[0], right).any()
    for sample, prediction in rows[:900]:
        of.learn(sample, prediction)
    told = np.array([of.value(s, p, right) for s, p in rows[900:1100]])
    true = np.array([twisted(s) for s, _ in rows[900:1100]])
    assert np.sqrt(np.mean((told - true) ** 2)) < 0.3 * np.sqrt(np.mean(true**2))
    again = HeldResidual(MODEL, causes)
    again.restore(of.state())
    np.testing.assert_array_equal(again.value(*rows[950], right), of.value(*rows[950], right))
    of.drop()
    assert of.n_learned == 0 and not of.value(*rows[950], right).any()


def test_nothing_is_said_far_from_what_was_held(samples) -> None:
    causes = Causes(MODEL, ChangesConfig())
    of, none = HeldResidual(MODEL, causes), np.zeros(causes.n_columns)
    rows = with_errors(samples, twisted)
    for sample, prediction in rows:
        of.observe(sample, prediction)
    for sample, prediction in rows[:20]:
        of.learn(sample, prediction)
    sample, prediction = rows[10]
    far = dataclasses.replace(sample, q=sample.q + 3.0)
    assert np.abs(of.value(*rows[10], none)).max() > 0.1 * np.abs(twisted(sample)).max()
    assert np.abs(of.value(far, prediction, none)).max() < 1e-6


def twisting(load: Change) -> Change:
    """A load with which an effort comes that depends on the positions."""

    def change(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
        (q,), _, _ = motion(MODEL, np.array([t]))
        twist = 0.05 * np.abs(columns[:, 0]).max() * np.sin(3.0 * q[0] + 2.0 * q[1])
        part = load(t, dq, columns)
        return part + (twist if part.any() else 0.0)

    return change


@pytest.fixture(scope="module")
def twisted_arm(warm, body):
    """A learner whose arm has held such a load until END, and its steps. Not to be changed."""
    of = warm()
    return of, follow(of, moving(END, twisting(held(body, ON)), begin=ON))


def test_errors_that_come_with_a_payload_are_learned_and_go_with_it(twisted_arm) -> None:
    of, steps = copy.deepcopy(twisted_arm)
    assert monitor(of).payload is not None and monitor(of).held.n_learned > 100
    with_it = [s for s in steps if ON + 15.0 < seconds(s.stamp) < END]
    left = np.array([s.y - monitor(of).correction.effort(s.sample.regressor) for s in with_it])
    left -= np.array([s.unchanged.semiparametric for s in with_it])
    assert np.all(errors(steps, ON + 15.0, END) < 0.7 * np.sqrt(np.mean(left**2, axis=0)))
    follow(of, moving(END + 3.0, nothing, begin=END))
    assert monitor(of).payload is None and monitor(of).held.n_learned == 0


def test_where_learning_is_off_nothing_is_learned_of_a_payload_s_errors(holding, body) -> None:
    """Somebody guides the arm by hand, whose forces are errors."""
    guided = held(body, ON)

    def change(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return guided(t, dq, columns) + 0.1 * np.abs(columns[:, 0]).max()

    of, other = holding(), holding()
    assert monitor(of).held.n_learned > 0
    before = monitor(of).held.state()
    for measurement in moving(ON + 17.0, change, begin=ON + 15.0):
        steps = [each.predict(measurement) for each in (of, other)]
        assert not any(one.target is not None for one in of.admit(steps[0], learning=False))
        other.update(other.admit(steps[1]))
    after = monitor(of).held.state()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)
    assert monitor(other).held.n_learned > monitor(of).held.n_learned


def test_a_push_beside_known_errors_does_not_pass_for_a_release(twisted_arm, body) -> None:
    """Forces of two seconds out of four, under a load whose errors were learned for 20 s."""
    of, rng, load = copy.deepcopy(twisted_arm[0]), np.random.default_rng(0), held(body, ON)
    forces = [(since, 10.0 * rng.standard_normal(3)) for since in (END, END + 4.0)]
    pushes = [by_hand(force, since, since + 2.0) for since, force in forces]

    def change(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return sum((push(t, dq, columns) for push in pushes), start=twisting(load)(t, dq, columns))

    follow(of, moving(END + 8.0, change, begin=END))
    events = [event for event in monitor(of).events if seconds(event.stamp) >= END]
    assert {event.name or event.cause for event in events} == {"contact", "contact over"}
    assert monitor(of).payload is not None
