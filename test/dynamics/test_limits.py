"""Predictions stay finite and within bounds, and contacts are kept out of what is learned."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.limits import (
    BEYOND,
    CLIPPED,
    MIN_LEARNED,
    NOT_FINITE,
    LearningGate,
    OutputBound,
    OutputConfig,
)
from semiparam_dynamics.dynamics.sample import Prediction, Sample
from semiparam_dynamics.samples.measurement import Measurement

from .arms import FEW_CENTERS, filtered, measurements, run, samples, small_arm

ARM = small_arm()  # slew has no limit, lift, reach and grip have 87
FREE = replace(OutputConfig(), bound_efforts=0.0)
ANYTHING = st.floats(allow_nan=True, allow_infinity=True)
STD = np.array([1.0, 2.0])
INSIDE, BEYOND_SECOND = np.array([-2.9, 5.9]), np.array([0.0, -6.1])
SECOND = 1_000_000_000


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
    bound, block = (OutputBound(ARM, OutputConfig(bound=given)) for _ in range(2))
    given_values, instead = np.array(values), np.array(otherwise)
    out = bound(given_values, instead)
    assert np.isfinite(out).all() and (np.abs(out) <= bound.limit).all()
    assert np.isfinite(bound.within(given_values)).all()
    fine = np.abs(given_values) <= bound.limit
    assert np.array_equal(out[fine], given_values[fine])
    assert bool(bound.counts) == (not fine.all())
    assert bound.counts[NOT_FINITE] == (not np.isfinite(given_values).all())
    rows = block.block(np.stack((given_values, np.zeros(4))), np.stack((instead, instead)))
    assert np.array_equal(rows, [out, np.zeros(4)]) and block.counts == bound.counts


@cache
def learned(
    *values: tuple[str, object],
) -> tuple[SemiparametricEstimator, list[Sample], list[Prediction]]:
    """An estimator, to be copied where it is changed, its samples of 4 s and its predictions."""
    estimator = SemiparametricEstimator(ARM, **{"nystrom.window": 1.0, **dict(values)})
    stream = samples(ARM, 4.0, extra=1.0)
    return estimator, stream, run(estimator, stream)


def test_a_bound_clips_what_is_published_and_not_what_is_learned() -> None:
    free, _, _ = learned()
    tight, _, told = learned(("output.bound", (0.5,)))
    assert all((np.abs(p.semiparametric) <= 0.5).all() for p in told)
    assert tight.bound.counts[CLIPPED] > 100
    for part in ("rigid_body", "residual"):
        one, other = (getattr(estimator, part).state() for estimator in (free, tight))
        for name, value in one.items():
            assert np.array_equal(value, other[name]), name


def test_the_bound_may_change_while_learning_and_a_wrong_one_changes_nothing() -> None:
    whole, stream, _ = learned()
    estimator = whole.copy()
    with pytest.raises(ConfigurationError, match="output.bound"):
        estimator.configure(replace(estimator.config, **{"output.bound": (1.0, 2.0)}))
    estimator.configure(replace(estimator.config, **{"output.bound": (0.25,)}))
    assert (np.abs(estimator.predict(stream[-1]).semiparametric) <= 0.25).all()
    assert estimator.bound.counts == {CLIPPED: 1}
    live = {"output.bound": (0.2,), "output.bound_efforts": 9.0, "output.gate_longest": 1.0}
    estimator.configure(replace(estimator.config, **live))
    estimator.predict(stream[-1])
    assert estimator.bound.counts == {CLIPPED: 2}


@pytest.mark.parametrize("damage", [np.nan, np.inf])
@pytest.mark.parametrize("part", ["rigid_body.", "residual."])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_model_that_broke_predicts_finite_numbers_and_counts_them(damage, part) -> None:
    whole, stream, _ = learned()
    estimator = whole.copy()
    state = estimator.state()
    for name, array in state.items():
        if (
            name.startswith(part)
            and array.dtype == np.float64
            and ("core" in name or name.endswith(".parameters"))
        ):
            array.ravel()[:] = damage
    estimator.restore(state)
    bound = estimator.bound
    for sample in stream[-20:]:
        prediction = estimator.predict(sample)
        assert np.isfinite(prediction.semiparametric).all()
        assert np.isfinite(bound.within(prediction.rigid_body)).all()
        assert (np.abs(prediction.semiparametric) <= bound.limit).all()
    assert bound.counts[NOT_FINITE] == 20


def asked(gate: LearningGate, errors: str, start: int = 0, n_learned: int = MIN_LEARNED) -> str:
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


def test_it_is_open_where_off_or_not_settled_and_after_the_clock_went_back_closes_anew() -> None:
    assert asked(LearningGate(OutputConfig()), "bbbb") == "...."
    gate = LearningGate(OutputConfig(gate=3.0, gate_longest=2.0))
    assert asked(gate, "bbbb", n_learned=MIN_LEARNED - 1) == "...."
    assert asked(gate, "bbbbb", start=100) == "xxx.."
    assert asked(gate, "bbbbb", start=10) == "xxx.."


@pytest.fixture(scope="module")
def pushed() -> list[Sample]:
    """12 s of motion; somebody pushes from 9 s to 10 s."""
    rng = np.random.default_rng(0)
    recording: list[Measurement] = []
    for m in measurements(ARM, 12.0, extra=0.5):
        y = m.y + 0.1 * rng.standard_normal(ARM.n_axes)
        elapsed = (m.stamp - recording[0].stamp) * 1e-9 if recording else 0.0
        recording.append(Measurement(m.stamp, m.q, m.dq, y + 30.0 * (9.0 <= elapsed < 10.0)))
    return filtered(ARM, recording)


def gated(stream: list[Sample], gate: float) -> SemiparametricEstimator:
    values = {"nystrom.window": 1.0, "output.gate": gate} | FEW_CENTERS
    estimator = SemiparametricEstimator(ARM, **values)
    run(estimator, stream)
    return estimator


def test_what_is_refused_leaves_the_model_bitwise_as_it_was(pushed: list[Sample]) -> None:
    estimator = gated(pushed[:920], 8.0)
    assert estimator.gate.closed
    before = estimator.state()
    run(estimator, pushed[920:960])
    after = estimator.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_push_is_not_fitted_with_the_gate_and_hardly_without(pushed: list[Sample]) -> None:
    closing, always_open = gated(pushed, 8.0), gated(pushed, 0.0)
    refused = closing.gate.dropped[BEYOND]
    assert 90 <= refused <= 140  # a second, and what the filters remember of it
    assert closing.n_learned == always_open.n_learned - refused == len(pushed) - refused
    calm, rows = gated(pushed[:900], 0.0).rigid_body, np.array([s.regressor for s in pushed])
    changes = [e.rigid_body.parameters - calm.parameters for e in (closing, always_open)]
    off = [np.abs(rows @ change).max() for change in changes]
    assert off[0] < off[1]
    left = [np.abs(s.y - always_open.rigid_body.predict(s.regressor)) for s in pushed[1050:]]
    assert np.max(left) < 0.1 * 30.0
