"""Learners that have met the arm, shared by the tests of this folder."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest

from semiparam_dynamics.learner.learner import InverseDynamicsLearner, Step
from semiparam_dynamics.robot.inertia import compact_body

from .changing_arm import ON, follow, held, learner, monitor, moving, nothing

Make = Callable[[], InverseDynamicsLearner]


@pytest.fixture(scope="session")
def body() -> np.ndarray:
    """A payload's ten parameters: 0.5 kg."""
    return compact_body(0.5, np.array([0.05, 0.02, 0.03]))


@pytest.fixture(scope="session")
def warm_run() -> tuple[InverseDynamicsLearner, list[Step]]:
    """A learner at ON, to which nothing has happened, and its steps. Not to be changed."""
    of = learner()
    return of, follow(of, moving(ON, nothing))


@pytest.fixture(scope="session")
def warm(warm_run: tuple[InverseDynamicsLearner, list[Step]]) -> Make:
    """Makes a learner at ON to which nothing has happened."""
    return lambda: copy.deepcopy(warm_run[0])


@pytest.fixture(scope="session")
def undisturbed(warm: Make) -> tuple[InverseDynamicsLearner, list[Step]]:
    """A learner to which nothing happens for 5 s more, and its steps. Not to be changed."""
    of = warm()
    return of, follow(of, moving(ON + 5.0, nothing, begin=ON))


@pytest.fixture(scope="session")
def grasp(warm: Make, body: np.ndarray) -> tuple[InverseDynamicsLearner, list[Step], np.ndarray]:
    """A learner whose arm holds `body` from ON to ON + 15 s, settled and named "cup".

    Its steps, and the rigid body's parameters 9 s after the grasp. Not to be changed.
    """
    of = warm()
    steps = follow(of, moving(ON + 9.0, held(body, ON), begin=ON))
    parameters = of.estimator.rigid_body.parameters.copy()
    steps += follow(of, moving(ON + 15.0, held(body, ON), begin=ON + 9.0))
    monitor(of).remember("cup")
    return of, steps, parameters


@pytest.fixture(scope="session")
def holding(grasp: tuple[InverseDynamicsLearner, list[Step], np.ndarray]) -> Make:
    """Makes a learner whose arm has held `body` for 15 s, under the name "cup"."""
    return lambda: copy.deepcopy(grasp[0])
