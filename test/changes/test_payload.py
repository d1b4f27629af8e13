"""Payloads by name, and the nearest bodies of estimates with their standard deviations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.changes.config import BARE
from semiparam_dynamics.changes.payload import (
    MAX_NAME_LENGTH,
    Snapshot,
    Snapshots,
    nearest_payload,
    payload_status,
)
from semiparam_dynamics.robot.inertia import (
    compact_body,
    inertial_parameters,
    pseudo_inertia,
    upper_cholesky,
)

BODY = compact_body(0.8, np.array([0.05, -0.02, 0.1]))
SCALE = np.array([0.1, *[0.02] * 3, *[0.004] * 6])


def spread(size: float, seed: int = 0) -> np.ndarray:
    root = np.random.default_rng(seed).standard_normal((10, 12))
    return size**2 * SCALE[:, None] * (root @ root.T / 12.0) * SCALE


def test_a_body_that_exists_is_left_alone() -> None:
    found = nearest_payload(Snapshot(BODY, spread(0.1)))
    np.testing.assert_allclose(found, BODY, atol=0.02 * SCALE.min())


@pytest.mark.parametrize("seed", range(5))
def test_what_is_none_becomes_the_nearest_in_the_estimate_s_own_metric(seed: int) -> None:
    rng = np.random.default_rng(seed)
    covariance = spread(1.0, seed)
    wrong = BODY + 2.0 * np.linalg.cholesky(covariance) @ rng.standard_normal(10)
    wrong[4:] -= 0.02  # moments of inertia too small for any body
    assert np.linalg.eigvalsh(pseudo_inertia(wrong))[0] < 0.0
    found = nearest_payload(Snapshot(wrong, covariance))
    assert np.linalg.eigvalsh(pseudo_inertia(found))[0] > 0.0
    precision = np.linalg.inv(covariance)

    def distance(entries: np.ndarray) -> float:
        U = np.zeros((4, 4))
        U[np.triu_indices(4)] = entries
        left = inertial_parameters(U @ U.T) - wrong
        return float(left @ precision @ left)

    own = upper_cholesky(pseudo_inertia(found))[np.triu_indices(4)]
    other = minimize(distance, own, method="Nelder-Mead", options={"maxiter": 4000})
    assert distance(own) <= other.fun + 0.5  # the divergence's weight


@pytest.mark.parametrize("mean", [np.zeros(10), -BODY, 1e6 * BODY, np.full(10, 1e-9)])
def test_whatever_was_estimated_it_is_a_body(mean: np.ndarray) -> None:
    found = nearest_payload(Snapshot(mean, spread(1.0)))
    assert np.isfinite(found).all() and np.linalg.eigvalsh(pseudo_inertia(found))[0] > 0.0


def test_centre_and_inertia_are_the_body_s_own() -> None:
    found = payload_status(Snapshot(BODY, spread(0.01)), "hand", "cup", True)
    assert (found.link, found.name, found.settled) == ("hand", "cup", True)
    assert found.mass == pytest.approx(0.8, rel=1e-3)
    np.testing.assert_allclose(found.center, [0.05, -0.02, 0.1], atol=1e-3)
    # Round and 5 cm of gyration about each axis: I = tr(S) 1 - S.
    inertia = 0.8 * 2.0 * 0.05**2
    np.testing.assert_allclose(found.inertia[[0, 2, 5]], inertia, rtol=0.02)
    np.testing.assert_allclose(found.inertia[[1, 3, 4]], 0.0, atol=0.02 * inertia)


def test_standard_deviations_are_those_of_draws() -> None:
    covariance = spread(0.02)
    found = payload_status(Snapshot(BODY, covariance), "hand", "", False)
    draws = np.random.default_rng(1).multivariate_normal(BODY, covariance, 20_000)
    assert found.mass_std == pytest.approx(draws[:, 0].std(), rel=0.05)
    centers = draws[:, 1:4] / draws[:, :1]
    np.testing.assert_allclose(found.center_std, centers.std(axis=0), rtol=0.05)
    P = np.array([pseudo_inertia(draw) for draw in draws[:2000]])
    central = P[:, :3, :3] - P[:, :3, 3, None] * P[:, None, :3, 3] / P[:, 3, 3][:, None, None]
    traces = np.trace(central, axis1=1, axis2=2)
    inertia = traces[:, None, None] * np.eye(3) - central
    stds = inertia.std(axis=0)[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    np.testing.assert_allclose(found.inertia_std, stds, rtol=0.1)


def test_a_tool_that_is_missing_has_a_negative_mass_and_its_own_centre() -> None:
    gone = payload_status(Snapshot(-BODY, spread(0.01)), "hand", "", True)
    held = payload_status(Snapshot(BODY, spread(0.01)), "hand", "", True)
    assert gone.mass == -held.mass and np.array_equal(gone.parameters, -held.parameters)
    assert np.array_equal(gone.center, held.center)


def test_a_payload_that_was_kept_weighs_the_same_when_it_is_held_again() -> None:
    mean = BODY * [1.0, *[1.0] * 3, *[0.5] * 6]  # no body: what it means depends on the deviations
    gains = np.outer(BODY, BODY) * 0.05**2
    held, kept = Snapshot(mean, spread(0.02), gains), Snapshots()
    kept.store("cup", held)
    files = Snapshots()
    files.restore(kept.state())
    said = payload_status(held, "hand", "cup", True)
    again = payload_status(files["cup"], "hand", "cup", True)
    np.testing.assert_array_equal(said.parameters, again.parameters)
    assert said.mass_std == again.mass_std > np.sqrt(held.covariance[0, 0])


def tool(mass: float = 1.0) -> Snapshot:
    return Snapshot(mass * np.arange(1.0, 11.0), mass * np.eye(10))


def test_they_are_kept_replaced_and_removed() -> None:
    snapshots = Snapshots()
    assert snapshots.names == (BARE,) and not snapshots[BARE].mean.any()
    snapshots.store("gripper", tool())
    snapshots.store("drill", tool(2.0))
    snapshots.store("gripper", tool(3.0))
    assert snapshots.names == (BARE, "gripper", "drill")
    assert snapshots["gripper"].mean[0] == 3.0
    snapshots.remove("gripper")
    with pytest.raises(ConfigurationError, match="known as 'gripper'; there are: bare, drill"):
        snapshots["gripper"]


@pytest.mark.parametrize("name", ["", "two\nlines", "x" * (MAX_NAME_LENGTH + 1), BARE])
def test_names_that_can_not_be_written_down_are_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="name"):
        Snapshots().store(name, tool())


def test_the_bare_hand_stays() -> None:
    with pytest.raises(ConfigurationError, match="can't be removed"):
        Snapshots().remove(BARE)


def test_held_again_it_is_less_well_known() -> None:
    known = Snapshot(np.array([1.0, *[0.1] * 3, *[0.01] * 6]), np.zeros((10, 10)))
    again = known.held_again()
    assert again[0, 0] == pytest.approx(0.02**2)
    assert np.all(np.diag(again)[1:4] >= 0.005**2)
    assert not Snapshots()[BARE].held_again().any()


def test_they_come_back_from_their_state() -> None:
    one, other = Snapshots(), Snapshots()
    other.restore(one.state())
    assert other.names == (BARE,)
    one.store("Schraubenzieher für Köpfe", tool(0.3))
    one.store("b", tool())
    other.restore(one.state())
    assert other.names == one.names
    assert np.array_equal(other["b"].covariance, one["b"].covariance)
    broken = one.state() | {"means": np.zeros((1, 10))}
    with pytest.raises(ValueError, match="zip"):
        other.restore(broken)
