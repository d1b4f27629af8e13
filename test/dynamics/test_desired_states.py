"""Feed-forward of a learner that noticed a change."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.learner import InverseDynamicsLearner
from semiparam_dynamics.parameters import from_flat

from .arms import motion, small_arm


def test_a_payload_that_was_noticed_is_part_of_it():
    values = {"changes.detect": True, "nystrom.max_centers": 20}
    model = small_arm()
    learner = InverseDynamicsLearner(model, from_flat(InverseDynamicsConfig, values))
    states = motion(model, np.linspace(0.0, 5.0, 8))
    bare, same = learner.estimator.feedforward(*states), learner.feedforward(*states)
    for name in ("rigid_body", "semiparametric"):
        np.testing.assert_array_equal(bare.values[name], same.values[name])
    assert learner.changes is not None
    correction = learner.changes.correction
    held = np.zeros_like(correction.theta)
    held[correction.payload] = [0.7, 0.1, 0.02, -0.03, 0.01, 0.0, 0.0, 0.012, 0.0, 0.009]
    covariance = 1e-4 * np.eye(len(held))
    state = correction.state() | {"theta": held, "covariance": covariance}
    correction.restore(state)
    said = learner.feedforward(*states)
    for k, state_k in enumerate(zip(*states, strict=True)):
        # The last link's own ten columns, before reduction.
        added = model.inertial_regressor(*state_k)[:, -10:] @ held[correction.payload]
        for name in ("rigid_body", "semiparametric"):
            np.testing.assert_allclose(
                said.values[name][k] - bare.values[name][k], added, atol=1e-9
            )
            assert (said.stds[name][k] > bare.stds[name][k]).any()
