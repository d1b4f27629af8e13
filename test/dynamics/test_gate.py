"""Contacts that are kept out of what is learned."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.limits import BEYOND, SETTLED, LearningGate, OutputConfig
from semiparam_dynamics.learner import InverseDynamicsLearner
from semiparam_dynamics.parameters import replace
from semiparam_dynamics.samples.measurement import Measurement

from .arms import measurements, small_arm

STD = np.array([1.0, 2.0])
INSIDE, BEYOND_SECOND = np.array([-2.9, 5.9]), np.array([0.0, -6.1])
SECOND = 1_000_000_000


def asked(gate: LearningGate, errors: str, start: int = 0, n_learned: int = SETTLED) -> str:
    """One answer a second: errors inside (i) and beyond (b) to learned (.) and refused (x)."""
    values = {"i": INSIDE, "b": BEYOND_SECOND}
    answers = [
        gate.refuses((start + k) * SECOND, values[e], STD, n_learned) for k, e in enumerate(errors)
    ]
    return "".join("x" if refused else "." for refused in answers)


def test_it_closes_beyond_opens_within_and_when_it_lasts() -> None:
    gate = LearningGate(OutputConfig(gate=3.0, gate_longest=3.0))
    assert asked(gate, "iibbiibbbbbbbbibbi") == "..xx..xxxx.....xx."
    assert gate.dropped == {BEYOND: 8}
    assert not gate.closed
    assert [stamp for stamp in range(20) if gate.refused(stamp * SECOND)] == [
        *(2, 3, 6, 7, 8, 9, 15, 16)
    ]
    assert not any(gate.refused(stamp * SECOND) for stamp in range(20))  # asked once


def test_it_is_open_where_off_or_not_settled_and_after_the_clock_went_back_closes_anew() -> None:
    assert asked(LearningGate(OutputConfig()), "bbbb") == "...."
    gate = LearningGate(OutputConfig(gate=3.0, gate_longest=2.0))
    assert asked(gate, "bbbb", n_learned=SETTLED - 1) == "...."
    assert asked(gate, "bbbbb", start=100) == "xxx.."
    assert asked(gate, "bbbbb", start=10) == "xxx.."


@pytest.fixture(scope="module")
def pushed() -> list[Measurement]:
    """12 s of motion; somebody pushes from 9 s to 10 s."""
    model = small_arm()
    rng = np.random.default_rng(0)
    recording = []
    for m in measurements(model, 12.0, extra=0.5):
        y = m.y + 0.1 * rng.standard_normal(model.n_axes)
        elapsed = (m.stamp - recording[0].stamp) * 1e-9 if recording else 0.0
        recording.append(Measurement(m.stamp, m.q, m.dq, y + 30.0 * (9.0 <= elapsed < 10.0)))
    return recording


def learn(recording: list[Measurement], gate: float) -> InverseDynamicsLearner:
    config = replace(InverseDynamicsConfig(), **{"nystrom.window": 1.0, "output.gate": gate})
    learner = InverseDynamicsLearner(small_arm(), config)
    for m in recording:
        if (step := learner.observe(m)) is not None:
            learner.learn(step)
    return learner


def test_what_is_refused_leaves_the_model_bitwise_as_it_was(pushed) -> None:
    learner = learn(pushed[:920], 8.0)
    assert learner.estimator.gate.closed
    before = learner.estimator.state()
    for m in pushed[920:960]:
        step = learner.observe(m)
        assert step is not None
        learner.learn(step)
    after = learner.estimator.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_push_is_not_learned_with_the_gate_and_is_without(pushed) -> None:
    gated, open_gate = learn(pushed, 8.0), learn(pushed, 0.0)
    assert 90 <= gated.dropped[BEYOND] <= 140  # a second, and what the filters remember of it
    total = open_gate.estimator.n_learned
    assert gated.estimator.n_learned == total - gated.dropped[BEYOND]
    calm = learn(pushed[:900], 0.0)
    true = calm.estimator.rigid_body.parameters

    def off(learner: InverseDynamicsLearner) -> float:
        return float(np.linalg.norm(learner.estimator.rigid_body.parameters - true))

    assert off(gated) < 0.2 * off(open_gate)
