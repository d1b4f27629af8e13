"""What the report's plots need of a run, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from semiparam_dynamics.arrays import Array, Indices

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
        rows = {name: values[None] for name, values in predictions.items()}
        self.add_rows(np.array([stamp]), y[None], rows, std[None])

    def add_rows(
        self, stamps: Indices, y: Array, predictions: Mapping[str, Array], std: Array
    ) -> None:
        """:meth:`add` of many samples, stamps (k,), the others (k, n_axes)."""
        last = stamps[0] if self._last is None else self._last
        # Between two bags time passes, but no motion.
        steps = np.diff(stamps, prepend=last) * 1e-9
        steps = np.where((0.0 < steps) & (steps < 1.0), steps, 0.0)
        elapsed = np.cumsum(np.concatenate(([self._elapsed], steps)))[1:]
        self._last, self._elapsed = int(stamps[-1]), float(elapsed[-1])
        values = np.stack([predictions[name] for name in self.models], axis=1)
        while int(self._elapsed / self.window) >= WINDOWS:
            self._double()
        index = (elapsed / self.window).astype(np.intp)
        # Time goes on: samples of one window follow each other.
        starts = np.flatnonzero(np.diff(index, prepend=-1))
        self._squares[index[starts]] += np.add.reduceat((y[:, None] - values) ** 2, starts, axis=0)
        self._counts[index[starts]] += np.diff(starts, append=len(index))
        if len(self._points) >= 2 * POINTS:
            del self._points[:POINTS]
        self._points.extend(zip(elapsed.tolist(), y, values, std, strict=True))

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
