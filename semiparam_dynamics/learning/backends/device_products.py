"""Products with the kernel matrix on the device where the rows are; see :mod:`products`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.backends.dask_products import DaskKernelRows
from semiparam_dynamics.learning.backends.dask_rows import DaskRows
from semiparam_dynamics.learning.backends.device_rows import DeviceRows
from semiparam_dynamics.learning.backends.devices import bind_there
from semiparam_dynamics.learning.kernels import Kernel
from semiparam_dynamics.learning.products import KernelRows
from semiparam_dynamics.learning.rows import Block, Rows, rows_within

BUDGET = 2**30  # bytes on the device where no limit is given: what is free there isn't known
BLOCK_BYTES = 2**26  # a block's kernel, large enough to keep a GPU busy


class DeviceKernelRows:
    """:class:`KernelRows` of rows on a device: what goes in and comes out is NumPy's."""

    def __init__(
        self,
        rows: DeviceRows,
        kernel: Kernel,
        centers: Array,
        memory_limit: int | None = None,
        keep: bool = True,
    ) -> None:
        self.rows, self.there = rows, rows.there
        self.centers = np.ascontiguousarray(centers, dtype=rows.dtype)
        self._bound = bind_there(kernel, self.centers, self.there)
        budget = BUDGET if memory_limit is None else memory_limit
        # Of a row: its kernel in its own precision, twice on the way, and in float64.
        m = max(len(centers), 1)
        working = (2 * rows.dtype.itemsize + 8) * m
        kept = rows.n_samples * m * rows.dtype.itemsize
        self.fits = keep and kept + min(64, rows.n_samples) * working <= budget
        left = budget - kept if self.fits else budget
        share = rows_within(left, working, "A block of the kernel matrix")
        self.block_rows = min(share, max(64, BLOCK_BYTES // working))
        self._kept: list[tuple[Any, Block]] | None = None

    def multiply(self, B: Array) -> Iterator[Array]:
        """K B for B (m, T), a block of rows (k, T) at a time."""
        yield from map(self.there.numpy, self.multiply_there(B))

    def multiply_there(self, B: Array) -> Iterator[Any]:
        """The same as arrays of the device."""
        wide = self.there.array(B, float)
        for K, block in self._blocks():
            yield self.there.xp.astype(self._wide(K) @ wide, block.X.dtype)

    def normal(self, B: Array) -> Array:
        """K' W K B for B (m, T), with W the sample weights: (m, T) in float64."""
        wide = self.there.array(B, float)
        return self._sum(lambda K, block: K.T @ _weighted(K @ wide, block))

    def targets(self) -> Array:
        """K' W Y, (m, T) in float64."""
        return self._sum(lambda K, block: K.T @ _weighted(self._wide(block.Y), block))

    def _sum(self, function: Callable[[Any, Block], Any]) -> Array:
        total: Any = 0.0
        for K, block in self._blocks():
            total = total + function(self._wide(K), block)
        return self.there.numpy(total)

    def _blocks(self) -> Iterator[tuple[Any, Block]]:
        if self._kept is not None:
            yield from self._kept
            return
        evaluated = ((self._bound(b.X), b) for b in self.rows.blocks(self.block_rows))
        if self.fits:
            self._kept = list(evaluated)
            yield from self._kept
        else:
            yield from evaluated

    def _wide(self, values: Any) -> Any:
        """In float64, as all sums."""
        return self.there.xp.astype(values, self.there.xp.float64)


def kernel_rows(
    rows: Rows,
    kernel: Kernel,
    centers: Array,
    memory_limit: int | None = None,
    keep: bool = True,
) -> KernelRows | DeviceKernelRows | DaskKernelRows:
    """The products that suit where the rows are."""
    if isinstance(rows, DaskRows):
        return DaskKernelRows(rows, kernel, centers, memory_limit, keep)
    kind = DeviceKernelRows if isinstance(rows, DeviceRows) else KernelRows
    return kind(rows, kernel, centers, memory_limit, keep)  # type: ignore[arg-type]


def _weighted(Y: Any, block: Block) -> Any:
    return Y if block.weights is None else Y * block.weights[:, None]
