"""Feed-forward: with a change that was noticed, and with friction along the motion asked for."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, SampleError, StorageError
from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.robot.model import FrictionMemory
from semiparam_dynamics.samples.measurement import Measurement

from .arms import measurements, motion, small_arm


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
    held = np.zeros_like(correction.state()["theta"])
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


def test_friction_goes_on_along_the_motion_asked_for():
    ways = (0.003, 0.05)
    values = {"filter.cutoff": 0.0, "presliding": ways, "nystrom.max_centers": 20}
    model = small_arm(presliding=ways)
    learner = InverseDynamicsLearner(model, from_flat(InverseDynamicsConfig, values))
    states = motion(model, np.arange(2020) / 100.0)
    memory, truth = FrictionMemory(model), model.prior.copy()
    stops = np.array([memory.advance(q) for q in states[0]])
    truth[[label.startswith("presliding_0.05") for label in model.labels]] = 5.0
    regressors = model.regressors(*states, stops)
    for k in range(2000):
        stamp = 10**9 + 10**7 * k
        learner.predict(Measurement(stamp, states[0][k], states[1][k], regressors[k] @ truth))
    learner.estimator.rigid_body.update_block(
        regressors, regressors @ truth, np.arange(1, 2021) * 10**7, np.ones(2020)
    )
    remembering = [label.startswith("presliding_0.05") for label in model.labels]
    assert np.all(learner.estimator.rigid_body.parameters[remembering] > 3.0)
    asked = tuple(part[2000:] for part in states)
    assert (np.abs(stops[2000:]) < 0.9).any()  # just after a reversal
    with pytest.raises(SampleError, match=r"must each be \(k, 4\)"):
        learner.feedforward(*(part[:, :3] for part in asked))
    said = learner.feedforward(*asked)
    wanted = regressors[2000:] @ learner.estimator.rigid_body.parameters
    np.testing.assert_allclose(said.values["rigid_body"], wanted, rtol=1e-9, atol=1e-9)
    anew = InverseDynamicsLearner(model, learner.config)  # before a measurement: a long way
    anew.estimator.copy_from(learner.estimator)
    far = anew.feedforward(*asked).values["rigid_body"]
    np.testing.assert_array_equal(far, anew.estimator.feedforward(*asked).values["rigid_body"])
    assert np.abs(far - wanted).max() > 0.5
    # Each state for itself, whatever was measured last.
    alone = learner.feedforward(*asked, one_motion=False)
    np.testing.assert_array_equal(alone.values["rigid_body"], far)
    first = learner.feedforward(*(part[:1] for part in asked), one_motion=False)
    np.testing.assert_allclose(first.values["rigid_body"], far[:1], atol=1e-9)


def test_states_that_are_none_are_refused_and_lists_are_taken():
    model = small_arm()
    learner = InverseDynamicsLearner(
        model, from_flat(InverseDynamicsConfig, {"nystrom.max_centers": 20})
    )
    q, dq, ddq = motion(model, np.linspace(0.0, 5.0, 8))
    said = learner.feedforward(q.tolist(), dq.tolist(), ddq.tolist()).values["rigid_body"]
    np.testing.assert_array_equal(said, learner.feedforward(q, dq, ddq).values["rigid_body"])
    for wrong in (q[0], q[:, :-1], q[:-1]):
        with pytest.raises(SampleError, match=r"must each be \(k, "):
            learner.feedforward(wrong, dq, ddq)
    for number in (np.nan, np.inf):
        with pytest.raises(SampleError, match="finite"):
            learner.feedforward(q, dq + number, ddq)
    for text in (q + 0j, q.tolist() + [[]], np.full(q.shape, "far"), "q", None):
        with pytest.raises(SampleError, match=r"real numbers|must each be"):
            learner.feedforward(text, dq, ddq)
    with np.errstate(all="ignore"), pytest.raises(SampleError, match="too large"):
        learner.feedforward(q, 1e300 * dq, ddq)
    np.testing.assert_array_equal(said, learner.feedforward(q, dq, ddq).values["rigid_body"])


def test_a_deep_copy_goes_on_as_the_learner_does_and_a_pickle_is_refused():
    model = small_arm()
    learner = InverseDynamicsLearner(
        model, from_flat(InverseDynamicsConfig, {"nystrom.max_centers": 20})
    )
    recorded = list(measurements(model, 4.0))

    def learned(of: InverseDynamicsLearner, some: list[Measurement]) -> list[Array]:
        said = []
        for m in some:
            if (step := of.predict(m)) is not None:
                said.append(step.prediction.semiparametric)
                of.update(of.admit(step))
        return said

    learned(learner, recorded[:200])
    other, before = copy.deepcopy(learner), learner.estimator.n_learned
    assert other.model is learner.model and other.estimator is not learner.estimator
    wanted = learned(learner, recorded[200:])
    assert len(wanted) == len(recorded) - 200  # the filter goes on
    assert other.estimator.n_learned == before > 0
    np.testing.assert_array_equal(learned(other, recorded[200:]), wanted)
    assert other.estimator.n_learned == learner.estimator.n_learned > before
    # That of one that predicts beside learning, with locks of its own.
    learner.predict_beside_learning(True, desired=True)
    states = motion(model, np.linspace(0.0, 5.0, 8))
    said = copy.deepcopy(learner).feedforward(*states).values["semiparametric"]
    np.testing.assert_array_equal(said, learner.feedforward(*states).values["semiparametric"])
    with pytest.raises(StorageError, match=r"save\(path\).*copy\(\)"):
        pickle.dumps(learner)


def test_a_configuration_of_another_robot_than_the_model_s_is_refused():
    """Columns of friction, gravity and the target are the model's: a setting would do nothing."""
    model = small_arm()
    for values in ({"coulomb_velocity": 0.005}, {"gravity": (0.0, 0.0, 9.81)}):
        config = from_flat(InverseDynamicsConfig, values)
        with pytest.raises(ConfigurationError, match=r"RobotModel\(urdf, config.robot\)"):
            InverseDynamicsLearner(model, config)
        InverseDynamicsLearner(small_arm(**values), config)
