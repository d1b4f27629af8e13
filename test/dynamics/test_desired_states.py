"""Asking about desired states: the numbers of `predict`, and nothing learned changes."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.desired_states import feedforward
from semiparam_dynamics.dynamics.learner import InverseDynamicsLearner
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
