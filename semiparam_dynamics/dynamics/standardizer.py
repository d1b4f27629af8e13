"""Inputs brought to zero mean and unit variance, by what the first seconds showed."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array, Indices


class Standardizer:
    """Looks at the inputs of the first `window` seconds, then scales all later ones by them.

    Kernels of local features need inputs of one size; scales that went on moving would move the
    features under what was learned on them. After that each is divided by its
    width in `widths` (d,): one of width 2 counts half.
    """

    def __init__(self, widths: Array, window: float) -> None:
        n_inputs = len(widths)
        self._widths = widths
        self._window = window
        self._seen = 0.0  # s, of continuous motion
        self._last = 0
        self._count = 0
        self._mean = np.zeros(n_inputs)
        self._square = np.zeros(n_inputs)
        self.ready = False
        self._scale = np.ones(n_inputs)

    def observe(self, stamp: int, x: Array) -> None:
        """Look at the input x (d,) at `stamp` (ns); after the window this does nothing."""
        if self.ready:
            return
        step = (stamp - self._last) * 1e-9 if self._count else 0.0
        # Pauses and jumps of the clock are not motion that was looked at.
        self._seen += step if 0.0 < step <= 1.0 else 0.0
        self._last = stamp
        self._count += 1
        delta = x - self._mean
        self._mean += delta / self._count
        self._square += delta * (x - self._mean)
        if self._seen >= self._window and self._count > 1:
            self._finish()

    def observe_rows(self, stamps: Indices, X: Array) -> int:
        """:meth:`observe` rows of X (n, d) until the window is full; how many that took."""
        for i in range(len(X)):
            if self.ready:
                return i
            self.observe(int(stamps[i]), X[i])
        return len(X)

    def fit(self, stamps: Indices, X: Array) -> None:
        """Take the scales from all of X (n, d), at `stamps` (n,) in ns, whatever the window."""
        steps = np.diff(stamps) * 1e-9
        self._seen = float(steps[(steps > 0.0) & (steps <= 1.0)].sum())
        self._count, self._last = len(X), int(stamps[-1])
        self._mean = X.mean(axis=0)
        self._square = ((X - self._mean) ** 2).sum(axis=0)
        self._finish()

    def _finish(self) -> None:
        std = np.sqrt(self._square / self._count)
        # An input that never moved tells nothing: a unit scale leaves it alone.
        self._scale = 1.0 / (np.where(std > 1e-9, std, 1.0) * self._widths)
        self.ready = True

    def transform(self, x: Array) -> Array:
        """Standardised x, (d,) or (n, d)."""
        return (x - self._mean) * self._scale

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {
            "mean": self._mean.copy(),
            "square": self._square.copy(),
            "scale": self._scale.copy(),
            "seen": np.array([self._seen]),
            "counts": np.array([self._count, self._last, int(self.ready)], dtype=np.int64),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        self._mean = state["mean"].copy()
        self._square = state["square"].copy()
        self._scale = state["scale"].copy()
        self._seen = float(state["seen"][0])
        self._count, self._last, ready = (int(value) for value in state["counts"])
        self.ready = bool(ready)
