"""The memory budget, and what is said when it doesn't do."""

from __future__ import annotations

import psutil
import pytest

from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.rows import memory_budget, require, rows_within


def test_the_default_is_a_part_of_what_is_free() -> None:
    assert memory_budget(12345) == 12345
    budget = memory_budget(None)
    assert 0 < budget < psutil.virtual_memory().total / 4


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_must_be_positive(limit: int) -> None:
    with pytest.raises(ConfigurationError, match="positive number of bytes"):
        memory_budget(limit)


def test_rows_within_a_budget() -> None:
    assert rows_within(100, 30, "it") == 3
    assert rows_within(30, 30, "it") == 1
    assert rows_within(30, 0, "it") == 30
    with pytest.raises(LearningError, match="The matrix needs at least 30 bytes .* leaves 29"):
        rows_within(29, 30, "The matrix")


def test_what_is_required_must_fit() -> None:
    require(10, 10, "it")
    with pytest.raises(LearningError, match="The matrix needs 3 GB and the limit is 2 GB"):
        require(2 * 10**9, 3 * 10**9, "The matrix")
