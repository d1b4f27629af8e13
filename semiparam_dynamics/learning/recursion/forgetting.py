"""A memory in seconds: how much of what was learned is forgotten at a sample."""

from __future__ import annotations

import math

import numpy as np

from semiparam_dynamics.base.arrays import Array

LONGEST_STEP = 1.0  # s that a pause between two samples counts at most


class ForgettingClock:
    """The fraction of what was learned to forget at a sample, 1 - exp(-dt / memory).

    memory : s, 0 for ever. May be changed at any time.
    step : nothing is forgotten until this fraction of the memory has passed; then all that is due.
        So a kilohertz of samples costs no more than what is forgotten does.
    Only samples that are learned make time pass, and a pause between two of them, in which nothing
    new was seen, counts `LONGEST_STEP` at most.
    """

    def __init__(self, memory: float, step: float) -> None:
        self.memory = memory
        self.step = step
        self._last: int | None = None
        self._elapsed = 0.0

    def forgetting_fraction(self, stamp: int) -> float:
        """The fraction due at a sample of this stamp (ns), in [0, 1 - 1/e]; 0 if nothing is due."""
        dt = 0.0 if self._last is None else (stamp - self._last) * 1e-9
        self._last = stamp
        if self.memory <= 0.0:
            self._elapsed = 0.0
            return 0.0
        self._elapsed += min(max(dt, 0.0), LONGEST_STEP)
        if self._elapsed < self.step * self.memory:
            return 0.0
        fraction = -math.expm1(-min(self._elapsed / self.memory, 1.0))
        self._elapsed = 0.0
        return fraction

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        last = -1 if self._last is None else self._last
        return {"last": np.array(last, dtype=np.int64), "elapsed": np.array(self._elapsed)}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        last = int(state["last"])
        self._last = None if last < 0 else last
        self._elapsed = float(state["elapsed"])
