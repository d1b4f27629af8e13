"""Validation data of the iterative methods: held out of the training rows, or given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.kernels import Kernel
from semiparam_dynamics.learning.products import KernelRows
from semiparam_dynamics.learning.rows import Block, Chunk, Rows, validate_data

BLOCK_BYTES = 2**26  # of the rows' inputs, read at a time where only some of them are kept


def hold_out(rows: Rows, share: float, draw: np.random.RandomState) -> tuple[Rows, Rows]:
    """The rows to learn from and those to validate on: a `share` of all, drawn uniformly.

    Nothing is copied but the block that is read. Raises ConfigurationError for a share outside
    (0, 1), LearningError where either part would be empty.
    """
    if not 0.0 < share < 1.0:
        raise ConfigurationError(f"validation must be a share between 0 and 1, not {share}.")
    n = rows.n_samples
    count = round(share * n)
    if not 0 < count < n:
        raise LearningError(f"A share of {share} of {n} rows can't be held out for validation.")
    held = np.zeros(n, dtype=bool)
    held[draw.permutation(n)[:count]] = True
    return _subset(rows, ~held), _subset(rows, held)


def validation_rows(estimator: Any, data: Any, rows: Rows) -> Rows:
    """What was passed as `validation_data`, (X, y) or Rows, checked against the training rows."""
    if isinstance(data, Rows):
        given = data
    else:
        X, y = data
        X = validate_data(estimator, X, dtype=[np.float64, np.float32], reset=False)
        given = Rows.from_arrays(X, np.asarray(y), dtype=rows.dtype)
    if (given.n_features, given.n_outputs) != (rows.n_features, rows.n_outputs):
        raise LearningError(
            f"The validation data have {given.n_features} inputs and {given.n_outputs} outputs; "
            f"the training data have {rows.n_features} and {rows.n_outputs}."
        )
    return given


class HeldOut:
    """Errors on validation rows, whose kernel with the centres is kept if it fits.

    Parameters
    ----------
    error : of targets and predictions, (k, T) each: what the mean is taken of.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        centers: Array,
        error: Callable[[Array, Array], Array],
        memory_limit: int | None,
    ) -> None:
        self._rows = rows
        self._data = KernelRows(rows, kernel, centers, memory_limit)
        self._error = error

    def mean_error(self, coefficients: Array) -> float:
        """The mean over rows (by weight) and outputs for coefficients (m, T) of the kernels."""
        B = np.ascontiguousarray(coefficients, dtype=self._data.centers.dtype)

        def of_block(K: Array, block: Block) -> Array:
            errors = self._error(block.Y.astype(float), (K @ B).astype(float)).mean(axis=1)
            if block.weights is not None:
                errors = errors * block.weights
            return np.array([errors.sum()])

        total = np.sum([float(part[0]) for part in self._data.blocks(of_block)])
        return float(total / self._rows.total_weight)


def _subset(rows: Rows, mask: Array) -> Rows:
    size = max(1, BLOCK_BYTES // (rows.n_features * rows.dtype.itemsize))

    def chunks() -> Iterator[Chunk]:
        start = 0
        for block in rows.blocks(size):
            some = mask[start : start + len(block.X)]
            start += len(block.X)
            if some.any():
                Y = block.Y[some, 0] if rows.one_output else block.Y[some]
                weights = () if block.weights is None else (block.weights[some],)
                yield (block.X[some], Y, *weights)

    return Rows(chunks, rows.dtype)
