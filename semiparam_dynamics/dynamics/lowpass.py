"""A causal low-pass over vectors, one at a time or many rows in one compiled call."""

from __future__ import annotations

import math

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.compiled import compiled, lowpass_step


class LowPass:
    """A causal Butterworth low-pass over a vector, for uneven steps.

    It starts in equilibrium at its first input. Being linear, it commutes with any fixed linear
    combination of the entries, the first sample included.
    """

    def __init__(self, size: int, cutoff: float, stages: int = 1) -> None:
        self._cutoff = cutoff
        self._band = np.zeros((stages, size))
        self._low = np.zeros((stages, size))
        self._started = False
        self._step = np.zeros(1)

    def reset(self) -> None:
        """Forget the past; the next input is the new equilibrium."""
        self._started = False

    def __call__(self, value: Array, dt: float) -> Array:
        """Filter `value` (size,), `dt` seconds after the one before; returns a fresh array."""
        output = value.copy()
        self._step[0] = dt
        self.filter_rows(output.reshape(1, -1), self._step)
        return output

    def filter_rows(self, rows: Array, steps: Array) -> None:
        """Filter rows (n, size) in place, each so many seconds after the one before (n,).

        To the last bit as one by one: the same compiled function does both. C-ordered.
        """
        if self._cutoff <= 0.0 or not len(rows):
            return
        first = 0
        if not self._started:
            self._band[:] = 0.0
            self._low[:] = rows[0]
            self._started = True
            first = 1
        _filter(rows, steps, self._band, self._low, self._cutoff, first)


@compiled
def _filter(rows: Array, steps: Array, band: Array, low: Array, cutoff: float, first: int) -> None:
    """All stages over rows (n, size) from the `first` one on; band, low (stages, size)."""
    for i in range(first, len(rows)):
        # A cut-off near the Nyquist frequency would make tan() explode: there it passes all.
        g = math.tan(math.pi * min(cutoff * steps[i], 0.45))
        for k in range(len(band)):
            lowpass_step(rows[i], band[k], low[k], rows[i], g)
