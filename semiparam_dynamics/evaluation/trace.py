"""What the report's plots need of a run, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from semiparam_dynamics.arrays import Array

WINDOWS = 400  # at most; windows double in length when they are used up
POINTS = 4000  # last samples kept whole


class Trace:
    """Mean squared errors in windows over the whole run, and the last samples as they were."""

    def __init__(self, models: Iterable[str], n_axes: int, window: float = 0.5) -> None:
        self.models = tuple(models)
        self.window = window  # s, of motion
        self._n_axes = n_axes
        self._squares = np.zeros((WINDOWS, len(self.models), n_axes))
        self._counts = np.zeros(WINDOWS)
        self._elapsed = 0.0
        self._last: int | None = None
        self._points: list[tuple[float, Array, Array, Array]] = []

    def add(self, stamp: int, y: Array, predictions: Mapping[str, Array], std: Array) -> None:
        """Take in one scored sample; std (n_axes,) is the semiparametric model's."""
        if self._last is not None:
            # Between two bags time passes, but no motion.
            dt = (stamp - self._last) * 1e-9
            self._elapsed += dt if 0.0 < dt < 1.0 else 0.0
        self._last = stamp
        values = np.array([predictions[name] for name in self.models])
        index = int(self._elapsed / self.window)
        while index >= WINDOWS:
            self._double()
            index = int(self._elapsed / self.window)
        self._squares[index] += (y - values) ** 2
        self._counts[index] += 1.0
        if len(self._points) >= 2 * POINTS:
            del self._points[:POINTS]
        self._points.append((self._elapsed, y, values, std))

    def rmse(self) -> tuple[Array, Array]:
        """Window centres (k,) in s and RMSE (k, models, n_axes)."""
        used = np.flatnonzero(self._counts)
        mean = self._squares[used] / self._counts[used, None, None]
        centres: Array = (used.astype(np.float64) + 0.5) * self.window
        return centres, np.sqrt(mean)

    def points(self) -> tuple[Array, Array, Array, Array]:
        """Of the last samples: time (k,) s, y (k, n_axes), predictions (k, models, n_axes), std."""
        last = self._points[-POINTS:]
        if not last:
            none = np.zeros((0, self._n_axes))
            return np.zeros(0), none, np.zeros((0, len(self.models), self._n_axes)), none
        time, y, values, std = zip(*last, strict=True)
        return np.array(time), np.array(y), np.array(values), np.array(std)

    def _double(self) -> None:
        half = WINDOWS // 2
        for array in (self._squares, self._counts):
            array[:half] = array[0::2] + array[1::2]
            array[half:] = 0.0
        self.window *= 2.0
