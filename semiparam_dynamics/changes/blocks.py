"""Innovations, averaged over stretches of time that are worth about one observation each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array


@dataclass(frozen=True, slots=True)
class Block:
    """Means over a stretch of time; what is linear stays linear in them."""

    start: int  # ns, stamp of its first sample
    end: int  # ns, of its last
    error: Array  # (n_axes,) measured minus predicted
    columns: Array  # (n_axes, n_columns) what each cause would add to it, per unit
    std: Array  # (n_axes,) that was predicted
    follows: bool  # no pause lies between it and the one before


class BlockMean:
    """Cuts a stream of samples into blocks of `length` seconds.

    Samples that passed a low-pass of cut-off f repeat one another: about 2 f of them a second say
    something new. A test that took each for itself would be too sure of everything. So a block is
    1 / (2 f) long. A pause of more than `longest_gap` seconds, or a clock that goes back, begins a
    new one.
    """

    def __init__(self, length: float, longest_gap: float) -> None:
        self.length = length
        self._gap = round(longest_gap * 1e9)
        self.reset()

    def reset(self) -> None:
        """Forget what was begun."""
        self._n = self._step = 0
        self._start = self._last = 0
        self._follows = False

    def add(self, stamp: int, error: Array, columns: Array, std: Array) -> Block | None:
        """Take a sample; returns the block that it completes, if it does."""
        step = stamp - self._last
        if (self._n or self._follows) and not 0 < step <= max(self._gap, round(self.length * 1e9)):
            self.reset()
        elif self._n or self._follows:
            self._step = step  # how long a sample lasts
        if self._n == 0:
            self._start = stamp
            self._sums = [error.copy(), columns.copy(), std**2]
        else:
            for total, value in zip(self._sums, (error, columns, std**2), strict=True):
                total += value
        self._last, self._n = stamp, self._n + 1
        if (stamp - self._start + self._step) * 1e-9 < self.length * (1.0 - 1e-6):
            return None
        error, columns, square = (total / self._n for total in self._sums)
        block = Block(self._start, stamp, error, columns, np.sqrt(square), self._follows)
        self._n, self._follows = 0, True
        return block
