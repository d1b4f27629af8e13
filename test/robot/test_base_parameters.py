from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.robot.base_parameters import reduce_columns


def dependent_stack(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns a, b, a - 2 b, 0, c in very different units, and the independent a, b, c."""
    a, b, c = np.random.default_rng(seed).standard_normal((3, 50)) * [[1e-2], [1.0], [1e3]]
    return np.column_stack([a, b, a - 2 * b, 0 * a, c]), np.column_stack([a, b, c])


def test_later_columns_fold_into_earlier_ones() -> None:
    stack, independent = dependent_stack()
    base = reduce_columns(stack, "abdzc")
    np.testing.assert_array_equal(base.independent, [0, 1, 4])
    expected = [[1, 0, 1, 0, 0], [0, 1, -2, 0, 0], [0, 0, 0, 0, 1]]
    np.testing.assert_allclose(base.combination, expected, atol=1e-9)
    parameters = np.arange(1.0, 6.0)
    np.testing.assert_allclose(independent @ base.project(parameters), stack @ parameters)


def test_labels_name_the_combination() -> None:
    assert reduce_columns(dependent_stack()[0], "abdzc").labels == ("a + d", "b - 2 d", "c")


@pytest.mark.parametrize("rank", [1, 7, 30])
def test_rank_of_random_stacks(rank: int) -> None:
    rng = np.random.default_rng(rank)
    stack = rng.standard_normal((200, rank)) @ rng.standard_normal((rank, 40))
    base = reduce_columns(stack, [f"p{i}" for i in range(40)])
    assert base.independent.tolist() == list(range(rank))
    np.testing.assert_allclose(stack[:, base.independent] @ base.combination, stack, atol=1e-8)


@pytest.mark.parametrize(("left", "kept"), [(1e-6, 1), (1e-2, 2)])
def test_columns_apart_by_rounding_are_combined(left: float, kept: int) -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 50))
    assert reduce_columns(np.column_stack([a, a + left * b]), "ab").independent.size == kept


def test_long_labels_are_cut() -> None:
    a = np.random.default_rng(0).standard_normal(50)
    label = reduce_columns(np.column_stack([a] * 30), [f"column{i}" for i in range(30)]).labels[0]
    assert label.startswith("column0 + column") and label.endswith(" ...") and len(label) <= 76


def test_nothing_excited_is_an_error() -> None:
    with pytest.raises(RobotModelError, match="excites"):
        reduce_columns(np.zeros((20, 3)), "abc")
