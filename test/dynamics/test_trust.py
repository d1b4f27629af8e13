"""Trust in the residual: against a plain sum over the samples, in blocks, saved and live."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semiparam_dynamics.dynamics.deviations import Trust, TrustConfig
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.sample import Sample

from .arms import samples, small_arm

CONFIG = TrustConfig()


def mean_of(stamps: np.ndarray, confidence: np.ndarray, memory: float) -> float:
    """The level by its definition: each sample stands for the time before it, a second at most."""
    steps = np.diff(stamps * 1e-9)
    ages = (stamps[-1] - stamps[1:]) * 1e-9
    stood = 1.0 - np.exp(-np.minimum(steps, 1.0) / memory)
    return float(np.sum(stood * np.exp(-ages / memory) * confidence[1:]))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e-3, 3.0), st.floats(0.0, 1.0)), min_size=2, max_size=20),
    st.floats(0.1, 10.0),
)
def test_the_level_is_a_mean(samples: list[tuple[float, float]], memory: float) -> None:
    steps, confidence = np.array(samples).T
    stamps = 1_000_000_000 + np.cumsum(np.round(steps * 1e9).astype(np.intp))
    trust = Trust(dataclasses.replace(CONFIG, memory=memory))
    told = [trust.weigh(int(stamp), c) for stamp, c in zip(stamps, confidence, strict=True)]
    assert trust.level == pytest.approx(mean_of(stamps, confidence, memory), abs=1e-12)
    assert told[-1] == pytest.approx(min(trust.level / CONFIG.threshold, 1.0))
    rows = Trust(trust.config)
    np.testing.assert_array_equal(rows.weigh_block(stamps, confidence), told)
    # Asked again it counts once, and a state is all there is to it.
    other = trust.copy()
    for one in (trust, other):
        assert one.weigh(int(stamps[-1]), confidence[-1]) == told[-1]
    assert trust.weigh(int(stamps[-1]) + 10**8, 0.5) == other.weigh(int(stamps[-1]) + 10**8, 0.5)


def test_learning_late_is_learning_at_once() -> None:
    stamps = 10**9 + np.arange(40) * 10**7
    early, late = np.random.default_rng(0).uniform(size=(2, 40))
    at_once, waited, block = (Trust(CONFIG) for _ in range(3))
    for start in range(0, 40, 10):
        part = slice(start, start + 10)
        for stamp, c in zip(stamps[part], late[part], strict=True):
            at_once.weigh(int(stamp), c)
            at_once.learn(int(stamp), c)
        waited.weigh_block(stamps[part], early[part])
        for stamp, c in zip(stamps[part], late[part], strict=True):
            waited.learn(int(stamp), c)
        block.learn_block(stamps[part], late[part])
    for other in (waited, block):
        for name, value in at_once.state().items():
            np.testing.assert_allclose(other.state()[name], value, rtol=1e-12)


def test_one_that_waited_is_weighed_as_if_no_later_one_had_been() -> None:
    ahead, waited = Trust(CONFIG), Trust(CONFIG)
    for trust in (ahead, waited):
        trust.weigh(10**9, 1.0)
        trust.learn(10**9, 1.0)
    for k in range(1, 50):
        ahead.weigh(10**9 + k * 10**8, 0.0)
    for trust in (ahead, waited):
        trust.go_back(10**9 + 10**7)
        trust.weigh(10**9 + 10**7, 0.5)
    assert ahead.level == waited.level > 0.0 and ahead.weight == waited.weight
    ahead.go_back(10**9 - 1)  # a recording that begins anew
    assert ahead.weigh(10**9 - 1, 1.0) == 0.0


def test_in_full_while_it_learns() -> None:
    trust = Trust(CONFIG)
    trust.weigh(10**9, 0.0)
    trust.learn(10**9, 0.0)
    after = [trust.weigh(10**9 + k * 10**7, 0.0) for k in range(1, 120)]
    wanted = [min(max(2.0 - 0.01 * k / CONFIG.learning, 0.0), 1.0) for k in range(1, 120)]
    np.testing.assert_allclose(after, wanted, atol=1e-9)
    assert np.abs(np.diff(after)).max() < 0.03  # no jump in what is predicted


def test_another_recording_is_not_known_yet() -> None:
    trust = Trust(CONFIG)
    for k in range(1, 500):
        trust.weigh(k * 10**9, 1.0)
        trust.learn(k * 10**9, 1.0)
    assert trust.weight == 1.0
    assert trust.weigh(0, 0.0) == 1.0  # of no instant
    assert trust.weigh(10**9, 1.0) == 0.0
    assert 0.0 < trust.weigh(10**9 + 10**8, 1.0) < 1.0


def test_off() -> None:
    for trust in (Trust(dataclasses.replace(CONFIG, threshold=0.0)), Trust(CONFIG, always=True)):
        assert trust.weigh(10**9, 0.0) == trust.weight == 1.0
        np.testing.assert_array_equal(trust.weigh_block(np.array([2, 3]) * 10**9, np.zeros(2)), 1.0)


def stream(seed: int, seconds: float) -> list[Sample]:
    return samples(small_arm(), seconds, seed=seed, extra=0.5)


@pytest.fixture(scope="module")
def learned() -> SemiparametricEstimator:
    options = {"nystrom.window": 5.0, "nystrom.length_scale": 1.0, "nystrom.penalty": 0.5}
    options |= {"nystrom.joint_max_centers": 20}
    estimator = SemiparametricEstimator(small_arm(), **options)
    for sample in stream(0, 16.0):
        estimator.update(sample)
    return estimator


def errors(estimator: SemiparametricEstimator, part: list[Sample]) -> tuple[float, float]:
    """Mean squares of the sum's and the rigid body's errors; nothing is learned."""
    estimator = estimator.copy()
    told = [estimator.predict(sample) for sample in part]
    y = np.array([sample.y for sample in part])
    both, rigid = (
        np.array([getattr(p, n) for p in told]) for n in ("semiparametric", "rigid_body")
    )
    return float(np.mean((y - both) ** 2)), float(np.mean((y - rigid) ** 2))


def test_known_motion_is_trusted(learned: SemiparametricEstimator) -> None:
    # The motion repeats every five seconds: all but the first moments is known.
    both, rigid = errors(learned, stream(0, 8.0))
    assert both < 0.5 * rigid


def test_where_nothing_is_known_the_rigid_body_is_left(learned: SemiparametricEstimator) -> None:
    estimator = learned.copy()
    told = [estimator.predict(sample) for sample in stream(5, 6.0)]
    crossed = [p for p in told if p.trust < 1.0]
    assert len(crossed) > 0
    for p in crossed:
        left = p.residual.weighed(p.trust)
        np.testing.assert_allclose(p.semiparametric - p.rigid_body, left, atol=1e-12)
        assert p.confidence == p.trust * p.residual.confidence


def test_a_joint_knows_its_own_states_in_motion_that_is_new_to_the_arm(
    learned: SemiparametricEstimator,
) -> None:
    residual, pi = learned.residual, learned.rigid_body.parameters
    known = residual.wide[1].features.centers[3]
    scaled = np.full(len(residual.standardizer.transform(0.0)), 50.0)
    scaled[residual.wide[1].inputs] = known
    offset = residual.standardizer.transform(np.zeros_like(scaled))
    slope = residual.standardizer.transform(np.ones_like(scaled)) - offset
    far = (scaled - offset) / slope
    told = residual.predict(far, pi)
    assert told.confidence < 1e-6 and abs(told.own[1]) > 1e-3
    np.testing.assert_allclose(told.own[[0, 2, 3]], 0.0, atol=1e-12)
    np.testing.assert_allclose(told.weighed(0.0), told.own)
    block = residual.predict_block(far[None], pi)
    np.testing.assert_allclose(block.weighed(0.0).values[0], told.own, atol=1e-9)


def test_a_saved_state_is_restored(learned: SemiparametricEstimator) -> None:
    sample = stream(0, 16.0)[-1]
    ahead = dataclasses.replace(sample, stamp=sample.stamp + 10**9)
    wanted = learned.copy().predict(ahead).trust
    estimator = SemiparametricEstimator(learned.model, learned.config)
    assert estimator.predict(ahead).trust == 0.0 != wanted
    estimator.restore(learned.state())
    assert estimator.predict(ahead).trust == wanted
    with pytest.raises(ValueError, match="levels"):
        Trust(CONFIG).restore({"level": np.zeros(2), "stamp": np.zeros(1)})


def test_the_threshold_may_be_changed_at_any_time(learned: SemiparametricEstimator) -> None:
    estimator = learned.copy()
    trust = dataclasses.replace(CONFIG, threshold=0.0)
    estimator.configure(dataclasses.replace(estimator.config, trust=trust))
    first = stream(5, 1.0)[-1]
    assert estimator.predict(first).trust == 1.0
    assert math.isfinite(errors(estimator, stream(5, 1.0))[0])
