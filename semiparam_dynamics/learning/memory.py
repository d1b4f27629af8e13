"""How much memory a computation may take, and in what blocks it therefore runs."""

from __future__ import annotations

import psutil

from semiparam_dynamics.errors import ConfigurationError, LearningError

FRACTION = 0.25  # of the memory that is free when a limit isn't given


def memory_budget(limit: int | None) -> int:
    """The bytes that kernel matrices may take: `limit`, or by default a quarter of what is free.

    Raises ConfigurationError for a limit that isn't positive.
    """
    if limit is None:
        return int(FRACTION * psutil.virtual_memory().available)
    if limit <= 0:
        raise ConfigurationError(f"memory_limit must be a positive number of bytes, not {limit}.")
    return int(limit)


def rows_within(budget: int, row_bytes: int, what: str) -> int:
    """How many rows of `row_bytes` fit into `budget` bytes.

    Raises LearningError, naming `what`, when not even one does.
    """
    rows = budget // max(row_bytes, 1)
    if rows < 1:
        raise LearningError(
            f"{what} needs at least {row_bytes} bytes and memory_limit leaves {budget}: "
            f"raise the limit or use fewer centres."
        )
    return rows


def require(budget: int, needed: int, what: str) -> None:
    """Raise LearningError, naming `what`, when it needs more bytes than the budget has."""
    if needed > budget:
        raise LearningError(
            f"{what} needs {needed / 1e9:.3g} GB and the limit is {budget / 1e9:.3g} GB: raise "
            f"memory_limit, or use NystromKRLS or Falkon, which need less."
        )
