"""The experiment on leverage scores draws the features that it says."""

from __future__ import annotations

import numpy as np
import pytest
from leverage_features import FEATURES, SKEW, Circle, Skewed, Way, drawn, leverage, table

from semiparam_dynamics.learning.feature_sampling import leverage_importance


def test_its_scores_in_coefficients_are_the_package_s_of_rows() -> None:
    circle = Circle(7 / 8, 1 / 4, n_modes=10)
    random = np.random.RandomState(0)
    E = circle.basis(random.random_sample(50))
    B = circle.psi(np.eye(21), circle.sample(300, 1, random))
    expected = leverage_importance(E @ B, 0.01)
    found = leverage(50)(B, E, 0.01)
    np.testing.assert_allclose(found, expected / expected.mean(), rtol=1e-9)
    # With a floor of half the mean nothing is below it; rows are the first ones.
    assert leverage(5, floor=0.5)(B, E, 0.01).min() >= 0.5
    some = leverage_importance(E[:5] @ B, 0.02)
    np.testing.assert_allclose(leverage(5, 2.0)(B, E, 0.01), some / some.mean(), rtol=1e-9)


def test_skewed_features_have_the_circle_s_kernel() -> None:
    circle = Skewed(7 / 8, 1 / 4, n_modes=3)
    E = circle.basis(np.linspace(0.0, 0.9, 5))
    omega = circle.sample(200_000, 1, np.random.RandomState(0))
    psi = circle.psi(E, omega)
    kernel = (E * circle.decay(4.0)) @ E.T
    np.testing.assert_allclose(psi @ psi.T / len(omega), kernel, atol=0.05)
    share = np.mean(np.cos(2 * np.pi * omega) > 0)  # 1/2 + SKEW / pi
    assert abs(share - 0.5 - SKEW / np.pi) < 0.01


def test_drawn_features_keep_the_kernel_whatever_q() -> None:
    circle = Circle(7 / 8, 1 / 4, n_modes=3)
    E = circle.basis(np.linspace(0.0, 0.9, 50))
    way = Way("one row", 6400, leverage(1))
    B, spread = drawn(way, circle, E, 0.1, 0)
    assert spread > 0.3 and B.shape == (7, FEATURES[-1])
    np.testing.assert_allclose(B @ B.T / B.shape[1], np.diag(circle.decay(4.0)), atol=0.1)


def test_the_table_has_a_row_for_each_way(capsys: pytest.CaptureFixture[str]) -> None:
    ways = [Way("theta"), Way("skewed", 100, leverage(10), Skewed)]
    table(ways, 7 / 8, 1 / 4, 1.0, n=100, repetitions=1, draws=1)
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [row.split("|")[1].strip() for row in rows[1:]] == ["theta", "skewed"]
    assert "nan" not in "".join(rows)
