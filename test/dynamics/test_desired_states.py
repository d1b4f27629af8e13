"""Asking about desired states: the numbers of `predict`, and nothing learned changes."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.estimator import BlockPrediction
from semiparam_dynamics.learner import InverseDynamicsLearner, feedforward, learner_feedforward
from semiparam_dynamics.parameters import from_flat

from .arms import measurements, motion, small_arm


def make(residual: str = "nystrom") -> InverseDynamicsLearner:
    values = {"residual": residual, "nystrom.window": 2.0, "random_fourier.window": 2.0}
    values |= {"nystrom.max_centers": 40, "random_fourier.n_features": 40}
    return InverseDynamicsLearner(small_arm(), from_flat(InverseDynamicsConfig, values))


@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
def test_the_numbers_of_predict(residual):
    learner = make(residual)
    for measurement in measurements(learner.model, 6.0, extra=2.0):
        if step := learner.observe(measurement):
            learner.learn(step)
    estimator = learner.estimator
    states = motion(learner.model, np.linspace(0.0, 9.0, 25), seed=3)
    said = feedforward(estimator, *states)
    for k, state in enumerate(zip(*states, strict=True)):
        one = estimator.predict(estimator.sample(*state))
        for name in ("rigid_body", "semiparametric"):
            np.testing.assert_allclose(said.values[name][k], getattr(one, name), atol=1e-9)
            np.testing.assert_allclose(said.stds[name][k], getattr(one, f"{name}_std"), atol=1e-9)
    assert np.abs(said.values["semiparametric"] - said.values["rigid_body"]).max() > 1e-3


def test_what_is_learned_beside_questions_is_bit_for_bit_the_same():
    quiet, asked = make(), make()
    rng = np.random.default_rng(0)
    for measurement in measurements(quiet.model, 5.0, extra=2.0):
        steps = [learner.observe(measurement) for learner in (quiet, asked)]
        if steps[0] is None or steps[1] is None:
            continue
        for _ in range(rng.integers(0, 3)):  # between a prediction and its learning
            feedforward(asked.estimator, *rng.normal(size=(3, 7, asked.model.n_joints)))
        quiet.learn(steps[0])
        asked.learn(steps[1])
    one, other = quiet.estimator.state(), asked.estimator.state()
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_a_payload_that_was_noticed_is_part_of_it():
    values = {"changes.detect": True, "nystrom.max_centers": 20}
    model = small_arm()
    learner = InverseDynamicsLearner(model, from_flat(InverseDynamicsConfig, values))
    states = motion(model, np.linspace(0.0, 5.0, 8))
    bare, same = (ask(learner, *states) for ask in (_estimators, learner_feedforward))
    for name in ("rigid_body", "semiparametric"):
        np.testing.assert_array_equal(bare.values[name], same.values[name])
    assert learner.changes is not None
    correction = learner.changes.correction
    held = np.zeros_like(correction.theta)
    held[correction.payload] = [0.7, 0.1, 0.02, -0.03, 0.01, 0.0, 0.0, 0.012, 0.0, 0.009]
    covariance = 1e-4 * np.eye(len(held))
    state = correction.state() | {"theta": held, "covariance": covariance}
    correction.restore(state)
    said = learner_feedforward(learner, *states)
    for k, state_k in enumerate(zip(*states, strict=True)):
        # The last link's own ten columns, before reduction.
        added = model.inertial_regressor(*state_k)[:, -10:] @ held[correction.payload]
        for name in ("rigid_body", "semiparametric"):
            np.testing.assert_allclose(
                said.values[name][k] - bare.values[name][k], added, atol=1e-9
            )
            assert (said.stds[name][k] > bare.stds[name][k]).any()


def _estimators(learner: InverseDynamicsLearner, *states: np.ndarray) -> BlockPrediction:
    return feedforward(learner.estimator, *states)
