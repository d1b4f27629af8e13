"""Identification against weighted batch solutions; with a memory, loads that change, long rests."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from semiparam_dynamics.dynamics.moments import Moments
from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import Motion
from semiparam_dynamics.robot.model import FrictionMemory, expected_scales

from .arms import motion, small_arm

RATE = 50.0
MODEL = small_arm(presliding=())
SCALES = expected_scales(MODEL)


def identifier(prior: np.ndarray | None = None, **values: object) -> RigidBodyIdentifier:
    start = np.zeros(MODEL.n_parameters) if prior is None else prior
    return RigidBodyIdentifier(SCALES, start, RigidBodyConfig(**values))


def regressors(seconds: float, seed: int = 0) -> np.ndarray:
    return MODEL.regressors(*motion(MODEL, np.arange(int(seconds * RATE)) / RATE, seed))


def learn(
    rigid_body: RigidBodyIdentifier, Phi: np.ndarray, y: np.ndarray, start: float = 0.0
) -> None:
    for k in range(len(Phi)):
        rigid_body.update(Phi[k], y[k], round((start + k / RATE) * 1e9))


def weights_of(
    rigid_body: RigidBodyIdentifier, Phi: np.ndarray, y: np.ndarray, k: int, share: float = 1.0
) -> np.ndarray:
    """Learn one sample; the weights (n_axes,) with which its rows were."""
    one = Phi[None], y[None], np.array([k]), np.array([share])
    return rigid_body.update_block(*one).weights[0]


def truth(noise: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Regressors of 12 s, outputs of parameters unlike the URDF's, and these."""
    Phi = regressors(12.0)
    pi = MODEL.prior + 0.1 * np.random.default_rng(3).standard_normal(MODEL.n_parameters)
    y = Phi @ pi
    return Phi, y + noise * np.random.default_rng(4).standard_normal(y.shape), pi


def posterior(
    rigid_body: RigidBodyIdentifier, Phi: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Precision A and A pi of rows with these weights (k, n_axes), from the URDF's parameters."""
    root = rigid_body._scales.root(rigid_body.evidence.precisions)
    A, b = root.T @ root, root.T @ (root @ rigid_body._mean)
    for row, target, weight in zip(Phi, y, weights * rigid_body.evidence.information, strict=True):
        A += row.T @ (weight[:, None] * row)
        b += row.T @ (weight * target)
    return A, b


def test_least_squares_of_what_was_learned_is_that_of_the_rows() -> None:
    rigid_body = identifier(MODEL.prior)
    Phi, y, _ = truth(noise=0.2)
    shares = np.random.default_rng(1).uniform(0.1, 1.0, len(y))
    rows = zip(Phi, y, shares, strict=True)
    weights = np.array([weights_of(rigid_body, *row[:2], k, row[2]) for k, row in enumerate(rows)])
    roots = np.sqrt(weights * rigid_body.evidence.information)
    flat = (roots[:, :, None] * Phi).reshape(-1, MODEL.n_parameters)
    target = (roots * y).ravel()
    batch = np.linalg.lstsq(flat, target, rcond=1e-12)[0]
    least, left, usual = (
        np.sum((target - flat @ pi) ** 2)
        for pi in (batch, rigid_body.least_squares(), rigid_body.parameters)
    )
    assert least <= left < 1.001 * least < usual


def test_restricted_to_some_columns_it_is_what_learns_these_alone() -> None:
    kept = np.array([not label.startswith("stribeck") for label in MODEL.labels])
    assert 0 < kept.sum() < MODEL.n_parameters
    whole = identifier(MODEL.prior, unusual=0.0)
    alone = RigidBodyIdentifier(
        SCALES.restricted(kept), MODEL.prior[kept], RigidBodyConfig(unusual=0.0)
    )
    Phi, y, _ = truth(noise=0.2)
    learn(whole, Phi, y)
    learn(alone, np.ascontiguousarray(Phi[:, :, kept]), y)
    alone.infer()
    found = whole.restricted(kept)
    assert not found[~kept].any()
    both = Phi @ found, Phi[:, :, kept] @ alone._memory.parameters
    assert np.abs(both[0] - both[1]).max() < 0.01 * np.abs(both[1]).max()


def test_is_the_batch_solution_of_all_rows_with_the_evidence_of_the_moment() -> None:
    rigid_body = identifier(MODEL.prior)
    Phi, y, _ = truth(noise=0.2)
    y[300] += 5.0 * SCALES.output  # which will count less
    shares = np.random.default_rng(1).uniform(0.1, 1.0, len(y))
    weights = np.empty_like(y)
    for k, (row, target, share) in enumerate(zip(Phi, y, shares, strict=True)):
        weights[k] = weights_of(rigid_body, row, target, k, share)
        assert np.all(weights[k] <= share) and (k != 300 or np.all(weights[k] < 0.5 * share))
        if k in (3, 50, 400):  # before the evidence was ever looked at, and after
            A, b = posterior(rigid_body, Phi[: k + 1], y[: k + 1], weights[: k + 1])
            expected = np.linalg.solve(A, b)
            np.testing.assert_allclose(rigid_body.parameters, expected, rtol=1e-7, atol=1e-8)
    covariance = np.linalg.inv(posterior(rigid_body, Phi, y, weights)[0])
    deviations = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(rigid_body.standard_deviations(), deviations, rtol=1e-6)
    variances = np.einsum("ji,ik,jk->j", Phi[7], covariance, Phi[7])
    np.testing.assert_allclose(rigid_body.variance(Phi[7]), variances, rtol=1e-6)


def test_recovers_the_parameters_that_made_the_data() -> None:
    rigid_body = identifier()
    Phi, y, pi = truth()
    learn(rigid_body, Phi, y)
    assert np.all(np.abs(Phi @ (rigid_body.parameters - pi)).max(axis=0) < 0.01 * y.std(axis=0))
    assert rigid_body.excitation_rank() >= len(pi) - 1


def test_standard_deviations_cover_the_truth() -> None:
    rigid_body = identifier(MODEL.prior)
    rng, steps, Phi = np.random.default_rng(3), SCALES.deviations, regressors(12.0)
    pi = MODEL.prior + 0.3 * rng.standard_normal(len(steps)) @ steps
    y = Phi @ pi + 0.3 * rng.standard_normal(Phi.shape[:2])
    learn(rigid_body, Phi, y)
    z = (rigid_body.parameters - pi) / rigid_body.standard_deviations()
    assert 0.4 < np.sqrt(np.mean(z**2)) < 2.0


def test_nothing_is_excited_before_the_first_sample() -> None:
    rigid_body = identifier()
    Phi, y, _ = truth()
    assert rigid_body.excitation_rank() == 0
    learn(rigid_body, np.tile(Phi[:1], (5, 1, 1)), np.tile(y[:1], (5, 1)))
    assert 0 < rigid_body.excitation_rank() <= Phi.shape[2]


@pytest.mark.parametrize("values", [{}, {"memory": 3.0}])
def test_restored_and_copied_it_continues_alike(values: dict[str, object]) -> None:
    first, restored, copied = (identifier(**values) for _ in range(3))
    Phi, y, _ = truth(noise=0.1)
    learn(first, Phi[:200], y[:200])
    # Entries of other objects, whose names only contain those of its own, are not looked at.
    others = {f"second.{name}": 0.0 * value for name, value in first.state().items()}
    restored.restore(first.state() | others)
    copied.copy_from(first)
    for each in (first, restored, copied):
        learn(each, Phi[200:400], y[200:400], 4.0)
    for other in (restored, copied):
        assert np.array_equal(first.parameters, other.parameters)
        assert np.array_equal(first.standard_deviations(), other.standard_deviations())


def test_a_load_that_is_picked_up_is_followed_within_the_memory() -> None:
    Phi, before = regressors(30.0), MODEL.prior
    after = before + np.random.default_rng(0).choice([-0.3, 0.3], len(before)) / SCALES.column
    load = np.linalg.norm(Phi @ (after - before))
    errors = {}
    for memory in (0.0, 3.0):
        rigid_body = identifier(memory=memory)
        learn(rigid_body, Phi, Phi @ before, 0.0)
        soon = Phi[: int(9.0 * RATE)]
        learn(rigid_body, soon, soon @ after, 30.0)
        errors[memory] = np.linalg.norm(Phi @ (after - rigid_body.parameters)) / load
    assert errors[3.0] < 0.35 and errors[0.0] > 0.7


def test_an_hour_at_rest_keeps_what_motion_has_shown() -> None:
    Phi = regressors(15.0)
    at_rest = MODEL.regressor(*np.zeros((3, MODEL.n_joints)))
    rigid_body = identifier(memory=30.0)
    learn(rigid_body, Phi, Phi @ MODEL.prior, 1.0)
    rank, rng = rigid_body.excitation_rank(), np.random.default_rng(1)
    for k in range(600):
        y = at_rest @ MODEL.prior + 0.2 + 0.01 * rng.standard_normal(MODEL.n_axes)
        rigid_body.update(at_rest, y, (30 + 6 * k) * 1_000_000_000)
    assert np.all(np.isfinite(rigid_body.core.R))
    assert np.all(np.diagonal(rigid_body.core.R) > 0.0)
    assert np.linalg.cond(np.linalg.solve(SCALES.root().T, rigid_body.core.R.T)) < 1e5
    assert np.abs(at_rest @ (rigid_body.parameters - MODEL.prior) - 0.2).max() < 0.02
    moving = Phi - at_rest  # what was not seen in that hour
    wrong = np.linalg.norm(moving @ (rigid_body.parameters - MODEL.prior))
    assert wrong < 0.2 * np.linalg.norm(moving @ MODEL.prior)
    assert rigid_body.excitation_rank() > 0.7 * rank


def test_standard_deviations_follow_noise_that_changes() -> None:
    """They are those of a robot that was only ever as noisy as it is now."""
    Phi, rng = np.tile(regressors(5.0), (10, 1, 1)), np.random.default_rng(2)
    deviations = []
    for first in (0.02, 0.2):
        rigid_body = identifier(memory=4.0)
        y = Phi @ MODEL.prior
        noise = np.where(np.arange(len(Phi)) < len(Phi) // 2, first, 0.2)
        y += noise[:, None] * SCALES.output * rng.standard_normal(y.shape)
        learn(rigid_body, Phi, y, 1.0)
        deviations.append(rigid_body.standard_deviations())
    # The outputs' own scales, which weigh the rows, have seen less noise.
    np.testing.assert_allclose(deviations[0], deviations[1], rtol=0.3)


def test_another_memory_moves_nothing_by_itself() -> None:
    rigid_body = identifier(memory=5.0)
    Phi = regressors(5.0)
    y = Phi @ MODEL.prior
    learn(rigid_body, Phi, y, 1.0)
    for k, memory in enumerate((1.0, 0.0, 3.0)):
        before = rigid_body.predict(Phi[0])
        rigid_body.configure(RigidBodyConfig(memory=memory))
        np.testing.assert_array_equal(rigid_body.predict(Phi[0]), before)
        learn(rigid_body, Phi, y, 20.0 + 10.0 * k)
        assert np.all(np.isfinite(rigid_body.parameters))
    np.testing.assert_allclose(Phi @ rigid_body.parameters, y, atol=0.05 * np.abs(y).max())


@pytest.mark.parametrize("prior", ["zero", "urdf"])
def test_a_motion_is_learned_as_sample_by_sample(prior: str) -> None:
    Phi, y, _ = truth(noise=0.2)
    q = np.zeros((len(y), MODEL.n_joints))
    stamps = np.arange(len(y)) * round(1e9 / RATE)
    weights = np.random.default_rng(1).uniform(0.1, 1.0, len(y))
    recorded = Motion(SCALES.active, stamps, q, q, q, y, weights, Phi[:, SCALES.active])
    assert np.allclose(recorded.regressors(), Phi, atol=1e-9)
    assert np.allclose(recorded.rigid_body(MODEL.prior), Phi @ MODEL.prior)
    recursion = RigidBodyIdentifier.of(MODEL, RigidBodyConfig(prior))
    before = recursion.update_motion(recorded).values
    one = RigidBodyIdentifier.of(MODEL, RigidBodyConfig(prior))
    expected = []
    for row, target, stamp, weight in zip(Phi, y, stamps, weights, strict=True):
        expected.append(one.predict(row))
        one.update(row, target, stamp, weight)
    assert np.allclose(before, expected, rtol=1e-8, atol=1e-9)
    assert np.allclose(recursion.parameters, one.parameters, rtol=1e-8, atol=1e-9)


REMEMBERING = small_arm(presliding=(1e-3, 0.05))


def remembered(strength: float, seconds: float = 60.0) -> tuple[np.ndarray, np.ndarray]:
    """Regressors along a motion, and outputs with friction that builds up over 0.05 rad."""
    model, memory = REMEMBERING, FrictionMemory(REMEMBERING)
    q, dq, ddq = motion(model, np.arange(int(seconds * RATE)) / RATE)
    stops = np.array([memory.advance(row) for row in q])
    Phi, truth = model.regressors(q, dq, ddq, stops), model.prior.copy()
    scale = expected_scales(model).output
    for j, name in enumerate(model.joint_names):
        truth[model.labels.index(f"coulomb {name}")] = 0.2 * scale[j]
        truth[model.labels.index(f"presliding_0.05 {name}")] = strength * scale[j]
    noise = 0.02 * scale * np.random.default_rng(0).standard_normal((len(q), model.n_axes))
    return Phi, Phi @ truth + noise


def test_friction_that_remembers_is_found_where_there_is_some() -> None:
    Phi, y = remembered(0.3)
    rigid_body = RigidBodyIdentifier.of(REMEMBERING, RigidBodyConfig())
    learn(rigid_body, Phi, y)
    scale = expected_scales(REMEMBERING).output
    for way, expected in (("0.05", 0.3), ("0.001", 0.0)):
        columns = [
            REMEMBERING.labels.index(f"presliding_{way} {n}") for n in REMEMBERING.joint_names
        ]
        np.testing.assert_allclose(rigid_body.parameters[columns] / scale, expected, atol=0.06)


@pytest.mark.parametrize("kind", ["stribeck", "asymmetry"])
def test_friction_is_found_on_the_joint_that_has_some_and_on_no_other(kind: str) -> None:
    Phi, y = remembered(0.0)
    scale = expected_scales(REMEMBERING).output
    columns = [REMEMBERING.labels.index(f"{kind} {n}") for n in REMEMBERING.joint_names]
    strength = 0.3 * scale[1]
    rigid_body = RigidBodyIdentifier.of(REMEMBERING, RigidBodyConfig())
    learn(rigid_body, Phi, y + strength * Phi[:, :, columns[1]])
    found = rigid_body.parameters[columns] / scale
    np.testing.assert_allclose(found, [0.3 * (j == 1) for j in range(len(found))], atol=0.03)
    remembering = [f.startswith("presliding") for f in REMEMBERING.labels]
    assert np.all(rigid_body.parameters[remembering] < 0.02 * scale.max())


def test_dissipative_friction_is_never_negative_and_the_rest_is_the_bounded_minimum() -> None:
    model = REMEMBERING
    Phi, y = remembered(0.3, 20.0)
    y -= 0.5 * expected_scales(model).output * np.sign(y)  # as if friction drove the motion
    rigid_body = RigidBodyIdentifier.of(model, RigidBodyConfig())
    weights = np.array(
        [weights_of(rigid_body, *row, k) for k, row in enumerate(zip(Phi, y, strict=True))]
    )
    A, b = posterior(rigid_body, Phi, y, weights)
    root, unit = np.linalg.cholesky(A).T, 1.0 / np.sqrt(np.diag(A))
    low = np.where(model.dissipative, 0.0, -np.inf)
    target = np.linalg.solve(root.T, b)
    best = lsq_linear(root * unit, target, (low, np.inf), method="bvls", tol=1e-14)
    np.testing.assert_allclose(Phi @ rigid_body.parameters, Phi @ (best.x * unit), atol=1e-6)
    assert np.all(rigid_body.parameters[model.dissipative] >= 0.0)
    assert np.any(rigid_body.parameters[model.dissipative] == 0.0)


def test_a_push_hardly_counts_and_what_lasts_does() -> None:
    Phi, y, _ = truth(noise=0.05)
    Phi, y = np.tile(Phi, (4, 1, 1)), np.tile(y, (4, 1))
    push = 2.0 * y.std(axis=0)
    calm, pushed, changed = (identifier() for _ in range(3))
    half, some = len(y) // 2, 12
    for rigid_body in (calm, pushed, changed):
        learn(rigid_body, Phi[:half], y[:half])
    learn(calm, Phi[half : half + some], y[half : half + some])
    learn(pushed, Phi[half : half + some], y[half : half + some] + push)
    moved = np.abs(Phi @ (pushed.parameters - calm.parameters)).max(axis=(0,))
    assert np.all(moved < 0.05 * push)
    learn(changed, Phi[half:], y[half:] + push)
    left = np.abs(y[half:] + push - Phi[half:] @ changed.parameters)
    offset = np.abs(y[half:] + push - Phi[half:] @ calm.parameters)
    assert np.all(left.mean(axis=0) < 0.7 * offset.mean(axis=0))


def test_an_axis_without_a_reading_costs_that_axis_alone() -> None:
    Phi, y, _ = truth(noise=0.05)
    rigid_body, other = identifier(), identifier()
    y[200:, 1] = np.nan
    learn(rigid_body, Phi, y)
    learn(other, Phi[:200], y[:200])
    left = np.abs(np.nan_to_num(y) - Phi @ rigid_body.parameters)[200:]
    before = np.abs(np.nan_to_num(y) - Phi @ other.parameters)[200:]
    rest = [0, 2, 3]
    assert np.all(np.isfinite(rigid_body.parameters))
    assert np.mean(left[:, rest] ** 2) < np.mean(before[:, rest] ** 2)
    assert np.all(rigid_body.update(Phi[0], y[-1]).weights[0, rest] > 0.0)
    assert rigid_body.update(Phi[0], y[-1]).weights[0, 1] == 0.0


def test_masses_that_nobody_filled_in_cost_little() -> None:
    """The evidence finds the sizes of outputs and parameters that the URDF does not have."""
    steps = 0.01 * SCALES.deviations
    light = dataclasses.replace(SCALES, output=0.01 * SCALES.output, deviations=steps)
    Phi, y, _ = truth(noise=0.1)
    left = []
    for scales in (light, SCALES):
        rigid_body = RigidBodyIdentifier(scales, np.zeros(MODEL.n_parameters), RigidBodyConfig())
        learn(rigid_body, Phi, y)
        left.append(np.mean((y - Phi @ rigid_body.parameters) ** 2, axis=0) / y.var(axis=0))
    assert np.all(left[0] < 3.0 * left[1])


def test_in_blocks_the_evidence_is_looked_at_at_the_same_samples() -> None:
    Phi, y, _ = truth(noise=0.2)
    Phi, y, found = Phi[:300], y[:300], []
    for size in (1, 7, len(y)):
        rigid_body = identifier()
        for k in range(0, len(y), size):
            part = slice(k, k + size)
            stamps = 10**7 * np.arange(len(y))[part]
            rigid_body.update_block(Phi[part], y[part], stamps, np.full(len(stamps), 0.2))
        found.append((rigid_body.parameters, rigid_body.evidence.precisions))
    for parameters, precisions in found[1:]:
        assert np.array_equal(found[0][0], parameters)
        assert np.array_equal(found[0][1], precisions)


def test_the_moments_are_those_of_the_rows_learned() -> None:
    Phi, y, _ = truth(noise=0.2)
    y[50:90, 1] = np.nan
    rigid_body = identifier()
    weights = np.array(
        [weights_of(rigid_body, *row, k, 0.3) for k, row in enumerate(zip(Phi, y, strict=True))]
    )
    moments: Moments = rigid_body._moments
    for j in range(MODEL.n_axes):
        known = weights[:, j] > 0.0
        rows, target, weight = Phi[known, j], y[known, j], weights[known, j]
        products = np.triu((rows * weight[:, None]).T @ rows)
        np.testing.assert_allclose(moments.products[j], products, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(moments.targets[j], rows.T @ (weight * target), rtol=1e-9)
        assert moments.squares[j] == pytest.approx(weight @ target**2)
        assert moments.weights[j] == pytest.approx(weight.sum())
