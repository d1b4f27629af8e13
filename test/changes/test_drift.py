"""Offsets and viscous friction that drift slowly: followed with a memory, not without."""

from __future__ import annotations

import dataclasses

import numpy as np

from semiparam_dynamics.dynamics.sample import Prediction
from semiparam_dynamics.learner.learner import Step

from .changing_arm import errors, follow, largest_weight, learner, moving

END = 60.0


def test_a_memory_keeps_the_error_flat_where_it_grows_without_one() -> None:
    size = largest_weight()

    def drifting(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
        part = size * t / END * np.array([0.2, 0.5, 0.2, 0.0])
        return part * (1.0 + dq)

    late, growth, parametric = {}, {}, {}
    for memory in (0.0, 5.0):  # of the residual, near a place: a pass takes a fifth of a second
        values = {"rigid_body.memory": memory, "nystrom.memory": 0.05 * memory}
        values["nystrom.max_centers"] = 500
        of = learner(**{"changes.detect": False}, **values)
        steps = follow(of, moving(END, drifting))
        rigid = [dataclasses.replace(s, prediction=_rigid_body_alone(s)) for s in steps]
        late[memory] = errors(steps, END - 10.0, END)[:3]
        parametric[memory] = errors(rigid, END - 10.0, END)[:3]
        growth[memory] = parametric[memory] / errors(rigid, 25.0, 35.0)[:3]
    # The rigid body lags by what drifts within its memory, no more; the residual makes up for some.
    assert np.all(growth[5.0] < 1.3) and np.all(growth[0.0] > 1.4)
    assert np.all(late[5.0] < parametric[5.0]) and np.all(late[5.0] < 0.65 * late[0.0])


def _rigid_body_alone(step: Step) -> Prediction:
    return dataclasses.replace(step.prediction, semiparametric=step.prediction.rigid_body)
