"""A robot of which a single joint is learned, by all that looks at its samples."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.changes.external_wrench import FrameMotion
from semiparam_dynamics.changes.touch import TouchedLink
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner

from .arms import measurements, small_arm

FEW = {"nystrom.max_centers": 20, "nystrom.wide_max_centers": 10, "nystrom.window": 1.0}


# Turning, with limits, sliding.
@pytest.mark.parametrize(("joint", "detect"), [("slew", True), ("lift", False), ("reach", True)])
def test_it_is_learned_and_watched(joint: str, detect: bool) -> None:
    model = small_arm(joints=(joint,))
    values = {**FEW, "changes.detect": detect, "changes.settle": 4.0}
    learner = InverseDynamicsLearner(model, from_flat(InverseDynamicsConfig, values))
    for measurement in measurements(model, 6.0):
        step = learner.predict(measurement, contacts=True)
        if step is not None:
            learner.detect_contact(step)
            learner.update(learner.admit(step))
    assert learner.estimator.n_learned > 400 and learner.external is not None
    desired = np.zeros((2, 1))
    assert learner.feedforward(desired, desired, desired).values["semiparametric"].shape == (2, 1)


def test_forces_on_it_are_told() -> None:
    model = small_arm(joints=("lift",))
    q = np.array([0.4])
    whole = FrameMotion(small_arm(joints=("lift", "grip")))
    expected = whole.jacobian(np.array([0.4, 0.0]))[:, :1]
    jacobian = FrameMotion(model, whole.frame).jacobian(q)
    np.testing.assert_allclose(jacobian, expected, atol=1e-12)
    touched, efforts = TouchedLink(model), -np.array([5.0, 0.0, -20.0]) @ jacobian[:3]
    found = touched.find(q[None], efforts[None], np.array([[1e-4]]), np.ones(1))
    assert abs(efforts[0]) > 0.1 and found.link == touched.links[0] and found.sure == 1.0
