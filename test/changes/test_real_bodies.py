"""Bodies that can exist, followed while identification goes on, beside the batch solution."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.identification.consistent import consistent
from semiparam_dynamics.identification.log_cholesky import pseudo_inertia
from semiparam_dynamics.identification.real_bodies import RealBodies
from semiparam_dynamics.robot.model import expected_scales

from ..dynamics.arms import small_arm
from ..identification.arm_samples import factors, samples

MODEL = small_arm(viscous=True, coulomb=True, offset=False, rotor_inertia=False)


def identifier() -> RigidBodyIdentifier:
    scales = expected_scales(MODEL)
    zero = np.zeros(MODEL.n_parameters)
    return RigidBodyIdentifier(scales.output, scales.column, zero, RigidBodyConfig())


def noisy(n: int = 300, moving: np.ndarray | None = None) -> list[Sample]:
    true = np.zeros(len(MODEL.full_labels))
    true[: MODEL.inertial_prior.size] = 1.3 * MODEL.inertial_prior
    true[MODEL.inertial_prior.size :] = 0.4
    size = np.abs(MODEL.base.project(true)).max()
    return samples(MODEL, MODEL.base.project(true), n=n, noise=0.02 * size, moving=moving)


def assert_real(values: np.ndarray) -> None:
    for body in values[: MODEL.inertial_prior.size].reshape(-1, 10):
        assert body[0] > 0.0 and np.linalg.eigvalsh(pseudo_inertia(body))[0] > 0.0
    assert np.all(values[MODEL.inertial_prior.size :] >= 0.0)


def test_at_every_moment_they_are_bodies() -> None:
    rigid_body, bodies = identifier(), RealBodies(MODEL)
    assert_real(bodies.values)
    # One joint moves, so that most of what is identified at first belongs to no body at all.
    for k, sample in enumerate(noisy(moving=np.array([0.0, 1.0, 0.0, 0.0]))):
        rigid_body.update(sample.regressor, sample.y, sample.stamp)
        if k % 30 == 0:
            assert_real(bodies.follow(rigid_body, steps=1))


def test_they_predict_as_well_as_what_they_stand_for() -> None:
    rigid_body, bodies = identifier(), RealBodies(MODEL)
    measured = noisy()
    for k, sample in enumerate(measured):
        rigid_body.update(sample.regressor, sample.y, sample.stamp)
        if k % 20 == 0:
            bodies.follow(rigid_body)
    bodies.follow(rigid_body, steps=20)
    rows = np.array([sample.regressor for sample in measured])
    y = np.array([sample.y for sample in measured])
    free = np.mean((y - rows @ rigid_body.parameters) ** 2, axis=0)
    real = np.mean((y - rows @ bodies.base) ** 2, axis=0)
    # The URDF's pull, a sample's weight, costs less than a hundredth of what is measured.
    assert np.all(np.sqrt(real) < np.sqrt(free) + 0.01 * y.std(axis=0))


def test_many_steps_lead_where_the_batch_solution_is() -> None:
    rigid_body, bodies, measured = identifier(), RealBodies(MODEL), noisy()
    for sample in measured:
        rigid_body.update(sample.regressor, sample.y, sample.stamp)
    bodies.follow(rigid_body, steps=100)
    # It has neither the learner's ridge nor its running scales: the same up to what these weigh.
    batch = consistent(MODEL, factors(MODEL, measured))
    rows = np.array([sample.regressor for sample in measured])
    one, other = rows @ bodies.base, rows @ batch.base
    assert np.sqrt(np.mean((one - other) ** 2)) < 0.01 * np.std(other)


def test_without_data_they_are_the_urdf_s() -> None:
    bodies = RealBodies(MODEL)
    before = bodies.values.copy()
    empty = identifier()
    state = empty.core.state()
    empty.core.restore(state | {"R": 0.0 * state["R"]})
    np.testing.assert_allclose(bodies.follow(empty, steps=5), before, atol=1e-9)
