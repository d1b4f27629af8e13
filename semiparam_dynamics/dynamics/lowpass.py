"""A causal low-pass over vectors, one at a time or many rows in one compiled call."""

from __future__ import annotations

import math

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.compiled import compiled_as_written, lowpass_step


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
        if len(rows):
            lowpass_rows(rows, steps, *self.arguments())

    def arguments(self) -> tuple[Array, Array, float, bool]:
        """What :func:`lowpass_row` takes of this filter, which counts as started from now on."""
        started, self._started = self._started, True
        return self._band, self._low, self._cutoff, started


@compiled_as_written
def lowpass_rows(
    rows: Array, steps: Array, band: Array, low: Array, cutoff: float, started: bool
) -> None:
    """:func:`lowpass_row` of rows (n, size), one after the other; steps (n,)."""
    for i in range(len(rows)):
        lowpass_row(rows[i], steps[i], band, low, cutoff, started)
        started = True


@compiled_as_written
def lowpass_row(
    row: Array, step: float, band: Array, low: Array, cutoff: float, started: bool
) -> None:
    """All stages over a row (size,), in place; band, low (stages, size), step in s."""
    if cutoff <= 0.0:
        return
    if not started:
        band[:] = 0.0
        low[:] = row
        return
    # A cut-off near the Nyquist frequency would make tan() explode: there it passes all.
    g = math.tan(math.pi * min(cutoff * step, 0.45))
    for k in range(len(band)):
        lowpass_step(row, band[k], low[k], row, g)
