"""Blocks of innovations, whitened and summed over the stretches that changes are looked for in."""

from __future__ import annotations

from collections import deque

import numpy as np

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.changes.blocks import Block
from semiparam_dynamics.changes.correction import DISTRUST
from semiparam_dynamics.changes.evidence import Sums, Windows, sums_of
from semiparam_dynamics.changes.noise import NoiseModel

LENGTHS = (2, 4, 7, 12, 20, 30)  # blocks
DELAY = 12  # blocks after which one in which nothing was found counts as usual


class Innovations:
    """What the last blocks say of changes theta (n_columns,) of all causes, beyond the present one.

    kinds: (n_axes,) a number for axes of the same kind: forces, moments. An error on one axis of a
    sensor is mistaken for one on another by cross-talk.
    """

    def __init__(self, n_columns: int, kinds: Indices, block_length: float) -> None:
        self.noise = NoiseModel(len(kinds), block_length)
        self.windows = Windows(n_columns, LENGTHS)
        self._same = np.equal.outer(kinds, kinds) / np.sum(np.equal.outer(kinds, kinds), axis=1)
        self._past: deque[tuple[Array, Array]] = deque(maxlen=Windows.RISE + 1)
        self._usual: deque[tuple[Array, Array]] = deque()
        self._known = 0  # blocks since `present` became another
        self.last: Sums | None = None

    def clear(self) -> None:
        """Begin anew, as after a pause."""
        self._past.clear()
        self.last = None
        self.restart()

    def restart(self) -> None:
        """Look for changes anew: what is allowed for is another from here on."""
        self.windows.clear()
        self._known = 0
        self.unusual()

    def unusual(self) -> None:
        """The last blocks are not what noise looks like."""
        self._usual.clear()

    def push(self, block: Block, present: Array, quiet: bool) -> None:
        """Take a block; `present` (n_columns,) is what is allowed for, `quiet` that nothing is up.

        `last` has the sums of its row, None where the past is too short for one.
        """
        if not block.follows:
            self.clear()
        left = block.error - block.columns @ present
        known = block.error - left
        std = np.sqrt(block.std**2 + DISTRUST**2 * (self._same @ (left**2 + known**2)))
        r, G = block.error / std, block.columns / std[:, None]
        self.last = self._row(r, G) if self._past else None
        self._known += 1
        # A stretch may begin where the blocks before it had the same allowed for.
        if self.last is not None and self._known > Windows.RISE + 1:
            self.windows.push(self._entry(r, G, present), self.last)
        if self._past and quiet:
            before_r, before_G = self._past[-1]
            self._usual.append((r - G @ present, before_r - before_G @ present))
            if len(self._usual) > DELAY:
                self.noise.update(*self._usual.popleft())
        self._past.append((r, G))

    def _row(self, r: Array, G: Array) -> Sums:
        a = self.noise.correlation
        before_r, before_G = self._past[-1]
        rows = np.column_stack((G - a[:, None] * before_G, r - a * before_r))
        white = self.noise.whiten(rows)
        return sums_of(white[:, :-1], white[:, -1])

    def _entry(self, r: Array, G: Array, present: Array) -> Sums:
        power, grown = self.noise.step(Windows.RISE + 1)
        first_r, first_G = self._past[0]
        # What is allowed for was there before the rise, so its part is taken off on both sides;
        # `Sums.shifted` takes it off here.
        left = r - power * (first_r - first_G @ present)
        white = self.noise.whiten(np.column_stack((G, left)) / grown[:, None])
        return sums_of(white[:, :-1], white[:, -1])
