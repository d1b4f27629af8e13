"""Predictions stay finite and within bounds, whatever happened to the model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.limits import CLIPPED, NOT_FINITE, OutputBound, OutputConfig
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learner import InverseDynamicsLearner
from semiparam_dynamics.parameters import replace

from .arms import measurements, small_arm

ARM = small_arm()  # slew has no limit, lift, reach and grip have 87
FREE = replace(OutputConfig(), bound_efforts=0.0)
ANYTHING = st.floats(allow_nan=True, allow_infinity=True)


def test_the_smaller_of_both_bounds_counts() -> None:
    assert ARM.joint_names == ("slew", "lift", "reach", "grip")
    limit = OutputBound(ARM, OutputConfig()).limit
    assert np.array_equal(limit[1:], [870.0] * 3) and limit[0] > 1e9
    limit = OutputBound(ARM, OutputConfig(bound_efforts=2.0, bound=(5.0, 1e3, 100.0, 1e3))).limit
    assert np.array_equal(limit, [5.0, 174.0, 100.0, 174.0])
    assert np.array_equal(OutputBound(ARM, replace(FREE, bound=(7.0,))).limit, [7.0] * 4)
    wrench = small_arm(target="wrench", sensor_frame="boom_sensor")
    assert (OutputBound(wrench, OutputConfig()).limit > 1e9).all()


def test_a_bound_for_another_number_of_axes_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="output.bound.*each of the 4 axes, not 2"):
        OutputBound(ARM, OutputConfig(bound=(1.0, 2.0)))


@given(*[st.lists(ANYTHING, min_size=4, max_size=4)] * 2, st.sampled_from([(), (3.0,)]))
def test_whatever_comes_in_what_goes_out_is_finite_and_within(values, otherwise, given) -> None:
    bound = OutputBound(ARM, OutputConfig(bound=given))
    given_values = np.array(values)
    out = bound(given_values, np.array(otherwise))
    assert np.isfinite(out).all() and (np.abs(out) <= bound.limit).all()
    assert np.isfinite(bound.within(given_values)).all()
    fine = np.abs(given_values) <= bound.limit
    assert np.array_equal(out[fine], given_values[fine])
    assert bool(bound.counts) == (not fine.all())
    assert bound.counts[NOT_FINITE] == (not np.isfinite(given_values).all())


def learned(samples: int = 300, **values: object) -> tuple[InverseDynamicsLearner, list]:
    config = replace(InverseDynamicsConfig(), **{"nystrom.window": 1.0, **values})
    learner = InverseDynamicsLearner(ARM, config)
    steps = []
    for m in measurements(ARM, samples / 100 + 1.0, extra=1.0):
        if (step := learner.observe(m)) is not None:
            learner.learn(step)
            steps.append(step)
    return learner, steps


def test_a_bound_clips_what_is_published_and_not_what_is_learned() -> None:
    free, _ = learned()
    tight, steps = learned(**{"output.bound": (0.5,)})
    assert all((np.abs(s.prediction.semiparametric) <= 0.5).all() for s in steps)
    assert tight.estimator.bound.counts[CLIPPED] > 100
    states = free.estimator.state(), tight.estimator.state()
    for name in states[0]:
        if name.startswith(("rigid_body.", "residual.", "alone.")):
            assert np.array_equal(states[0][name], states[1][name]), name


def test_the_bound_may_change_while_learning_and_a_wrong_one_changes_nothing() -> None:
    learner, steps = learned()
    with pytest.raises(ConfigurationError, match="output.bound"):
        learner.configure(replace(learner.config, **{"output.bound": (1.0, 2.0)}))
    learner.configure(replace(learner.config, **{"output.bound": (0.25,)}))
    prediction = learner.estimator.predict(steps[-1].sample)
    assert (np.abs(prediction.semiparametric) <= 0.25).all()
    assert learner.estimator.bound.counts == {CLIPPED: 1}


@pytest.mark.parametrize("damage", [np.nan, np.inf])
@pytest.mark.parametrize("part", ["rigid_body.", "residual."])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_model_that_broke_predicts_finite_numbers_and_says_so(damage, part) -> None:
    learner, steps = learned()
    state = learner.estimator.state()
    for name, array in state.items():
        if name.startswith(part) and array.dtype == np.float64 and "core" in name:
            array.ravel()[:] = damage
    learner.estimator.restore(state)
    bound = learner.estimator.bound
    for step in steps[-20:]:
        prediction = learner.estimator.predict(step.sample)
        assert np.isfinite(prediction.semiparametric).all()
        assert np.isfinite(bound.within(prediction.rigid_body)).all()
        assert (np.abs(prediction.semiparametric) <= bound.limit).all()
    assert bound.counts[NOT_FINITE] == 20
