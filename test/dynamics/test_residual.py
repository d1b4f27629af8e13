"""Kernel models whose residuals stay right while the rigid body's parameters move."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.residual import (
    KernelModel,
    KernelResidual,
    NystromConfig,
    RandomFourierConfig,
    Standardizer,
    input_floors,
    kernel_width,
)
from semiparam_dynamics.learning.recursion.features import IncrementalNystromFeatures

from .arms import samples, small_arm


def model(active: np.ndarray | None, axes: int = 2) -> KernelModel:
    return KernelModel(IncrementalNystromFeatures(3, 1.0, 30, 0.3), axes, active, 0.5)


def data(n: int = 150) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    Phi = rng.standard_normal((n, 2, 4))
    Phi[:, 1, :2] = 0.0  # the second axis does not depend on the first two parameters
    return rng.standard_normal((n, 3)), Phi, rng.standard_normal((n, 2))


def learned(
    active: np.ndarray | None, X: np.ndarray, Phi: np.ndarray, Y: np.ndarray
) -> KernelModel:
    local = model(active)
    for x, phi, y in zip(X, Phi, Y, strict=True):
        local.update(x, local.targets.of(y, phi))
    return local


def test_it_equals_a_refit_on_the_residuals_of_todays_parameters() -> None:
    X, Phi, Y = data()
    active = np.abs(Phi).max(axis=0) > 0.0
    exact = learned(active, X, Phi, Y)
    assert exact.core.n_outputs == 2 + 4 + 2
    for seed in range(3):
        pi = np.random.default_rng(seed).standard_normal(4)
        refit = learned(None, X, Phi, Y - Phi @ pi)
        for x in X[:10]:
            expected = refit.predict(x)[0]
            got = exact.targets.residuals(exact.predict(x)[0], pi)
            np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-10)


def test_confidence_is_one_minus_the_gaussian_process_variance() -> None:
    X, _, _ = data(40)

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(-1))

    # Sparse Gaussian process (deterministic training conditional) with noise variance 0.5. A
    # feature that came later is zero in the rows before, so here all centers come first.
    local = model(None)
    for x in X:
        local.features.grow(x, local.features.transform(x))
    C = local.features.centers
    for _ in C:
        local.core.add_feature()
    for x in X:
        local.core.update(local.features.transform(x), np.zeros(2))
    query = np.array([[0.3, -0.2, 0.5]])
    Kcc, Kxc, kc = kernel(C, C), kernel(X, C), kernel(query, C)
    explained = kc @ np.linalg.solve(Kcc, kc.T)
    posterior = 0.5 * kc @ np.linalg.solve(0.5 * Kcc + Kxc.T @ Kxc, kc.T)
    expected = explained.item() - posterior.item()
    np.testing.assert_allclose(local.predict(query[0])[1], expected, rtol=1e-6)


def test_far_from_all_data_outputs_and_confidence_are_zero() -> None:
    local = learned(None, *data())
    outputs, confidence = local.predict(np.full(3, 50.0))
    assert np.all(outputs == 0.0)
    assert confidence == 0.0


def test_all_kernel_widths_have_one_unit() -> None:
    """sqrt(inputs / 2), whatever the inputs are."""
    assert kernel_width(0.3, 8) == pytest.approx(0.6)
    local, random = NystromConfig(length_scale=0.5), RandomFourierConfig()
    assert local.features(18, 0).length_scale == pytest.approx(1.5)
    assert random.features(32, 0).length_scale == pytest.approx(4.0)
    residual = KernelResidual(local, local.INPUTS, small_arm(), active=np.ones((4, 9)), joints=True)
    # In the wide kernel a joint's own inputs count in full, those of others a third.
    shares = np.where(np.isin(np.arange(13), (2, 7, 11)), 1.0, 0.3)  # a cosine at 4
    expected = shares / np.sqrt(0.5 * (shares**2).sum())
    np.testing.assert_allclose(residual.inferred.metrics[2], expected)


def test_inputs_and_targets_are_those_of_the_kind() -> None:
    q, dq, ddq, rigid = (np.full(2, value) for value in (1.0, 2.0, 3.0, 4.0))
    active = np.array([[True, False, True], [False, False, True]])
    y, regressor = np.array([5.0, 6.0]), np.arange(6.0).reshape(2, 3)
    kinds, model = (NystromConfig(), RandomFourierConfig()), small_arm(joints=("lift", "reach"))
    local, random = (
        KernelResidual(kind, kind.INPUTS, model, active=active if kind.EXACT else None, joints=True)
        for kind in kinds
    )
    np.testing.assert_array_equal(local.inputs(q, dq, ddq, rigid), [1, 1, 2, 2, 4, 4])
    np.testing.assert_array_equal(random.inputs(q, dq, ddq, rigid), [1, 1, 2, 2, 3, 3, 4, 4])
    np.testing.assert_array_equal(local.targets(y, regressor, rigid), [5, 6, 0, 2, 5])
    np.testing.assert_array_equal(random.targets(y, regressor, rigid), [1, 2])
    assert local.inferred.most == 100 and random.inferred.most == 0
    # A constant beside them, which tells how much of a sample is known.
    assert local.model.core.n_outputs == 5 + 1 and random.model.core.n_outputs == 2


def test_a_joint_that_turns_without_end_is_the_same_a_turn_further() -> None:
    q, dq, ddq, rigid = np.array([1.0, 2.0]), np.zeros(2), np.zeros(2), np.array([4.0, 5.0])
    kind = NystromConfig()
    model = small_arm(joints=("lift", "slew"))
    residual = KernelResidual(kind, kind.INPUTS, model, active=np.ones((2, 3)), joints=True)
    x = residual.inputs(q, dq, ddq, rigid)
    np.testing.assert_allclose(x, [1.0, np.sin(2.0), np.cos(2.0), 0.0, 0.0, 4.0, 5.0])
    further = residual.inputs(
        np.array([[1.0, 2.0 + 2.0 * np.pi]]), dq[None], ddq[None], rigid[None]
    )
    np.testing.assert_allclose(further[0], x)
    # How new the second joint's state is depends on its sine and cosine, velocity and prediction.
    scaled = 0.1 * np.arange(7.0)
    residual.states.novelty(scaled[None], grow=True)
    for k, moved in enumerate((0, 1, 1, 0, 1, 0, 1)):
        other = scaled + 9.0 * (np.arange(7) == k)
        np.testing.assert_array_equal(
            residual.states.novelty(other[None])[0] > 0.5, [not moved, moved]
        )


def test_what_is_learned_of_a_turning_joint_holds_a_turn_further() -> None:
    model = small_arm()
    estimator = SemiparametricEstimator(model, **{"nystrom.window": 1.0})
    stream = samples(model, 6.0, extra=1.0)
    for sample in stream:
        estimator.update(sample)
    states = [np.array([getattr(s, name) for s in stream[::50]]) for name in ("q", "dq", "ddq")]
    here = estimator.feedforward(*states).values
    assert np.abs(here["semiparametric"] - here["rigid_body"]).max() > 0.01
    states[0] = states[0] + 2.0 * np.pi * np.array([1.0, 0.0, 0.0, 0.0])
    there = estimator.feedforward(*states).values
    np.testing.assert_allclose(there["semiparametric"], here["semiparametric"], atol=1e-6)


def test_no_scale_is_less_than_a_share_of_what_the_urdf_allows() -> None:
    model = small_arm()
    floors = input_floors(model, NystromConfig.INPUTS)
    np.testing.assert_allclose(floors[:5], [0.02, 0.03, 0.002, 0.04, 0.02])
    np.testing.assert_allclose(floors[5:9], [0.0, 0.02, 0.02, 0.02])
    assert (floors[9:] > 0.0).all() and floors.shape == (13,)


def test_the_standardizer_scales_by_its_window_whatever_comes_later() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, [2.0, 0.0], (400, 2))
    stamps = 10**9 + np.arange(400) * 10**7
    one, fitted = (Standardizer(2, 2.0) for _ in range(2))
    changed = [one.observe(stamp, x) for stamp, x in zip(stamps.tolist(), X, strict=True)]
    used = changed.index(True) + 1
    assert used == 201 and sum(changed) == 1 and one.ready and one.settled
    fitted.fit(stamps[:used], X[:used])
    std = np.array([X[:used, 0].std(), 1.0])  # an input that never moved keeps its unit
    expected = (X - X[:used].mean(axis=0)) / std
    for each in (one, fitted):
        np.testing.assert_allclose(each.transform(X), expected, rtol=1e-9, atol=1e-9)
    # An input that hardly moves is no measure of itself.
    floored = Standardizer(2, 2.0, np.array([3.0, 0.5]))
    floored.fit(stamps, X)
    expected = (X - X.mean(axis=0)) / ([3.0, 0.5])
    np.testing.assert_allclose(floored.transform(X), expected, rtol=1e-9, atol=1e-9)
    # A pause is not motion.
    paused = Standardizer(2, 2.0)
    paused.observe(10**9, X[0])
    paused.observe(10**12, X[1])
    assert not paused.ready


def test_first_scales_are_those_of_what_was_seen_until_then() -> None:
    rng = np.random.default_rng(0)
    X, stamps = rng.normal(3.0, [2.0, 0.5], (400, 2)), 10**9 + np.arange(400) * 10**7
    found, at = Standardizer(2, 2.0, first_scales=True), 0
    for seen in (14, 26, 51, 101, 201):
        assert not found.settled
        while not found.observe(int(stamps[at]), X[at]):
            at += 1
        at += 1
        assert at == seen and found.ready
        expected = (X - X[:seen].mean(axis=0)) / X[:seen].std(axis=0)
        np.testing.assert_allclose(found.transform(X), expected, rtol=1e-9, atol=1e-9)
    assert found.settled


def test_what_comes_before_the_first_scales_is_learned_with_them() -> None:
    """Nothing is lost with other scales, and a resumed estimator goes on alike."""
    model = small_arm()
    stream = samples(model, 5.0, extra=3.0)
    window = {"nystrom.window": 4.0, "rigid_body.unusual": 0.0}
    one, resumed = (SemiparametricEstimator(model, **window) for _ in range(2))
    for sample in stream[:201]:  # scales after 0.25, 0.5, 1 and 2 s
        one.update(sample)
    residual = one.residual
    assert residual.standardizer.ready and not residual.standardizer.settled
    # What was inferred at the last scales is what is inferred of all that was kept.
    parameters = one.rigid_body.parameters
    inputs, _, _ = residual.inferred.samples(residual.standardizer.transform, parameters)
    assert len(inputs) > 10 and np.abs(residual.inferred.predict(inputs, parameters)).max() > 0.0
    resumed.restore(one.state())
    for each in (one, resumed):  # it holds beyond the next scales
        each.configure(replace(each.config, nystrom__penalty=2.0))
    for sample in stream[201:390]:
        expected = one.predict(sample)
        assert expected.residual.confidence > 0.0
        found = resumed.predict(sample)
        np.testing.assert_array_equal(found.semiparametric, expected.semiparametric)
        for each in (one, resumed):
            each.update(sample)
    for sample in stream[390:450]:
        one.update(sample)
    assert residual.standardizer.settled and residual.n_features > 20
    assert residual.model.core.penalty == 2.0
