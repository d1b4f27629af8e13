"""What was recognised over the last frames, taken together."""

from __future__ import annotations

from collections import deque

import numpy as np

from semiparam_dynamics.arrays import Array


class Smoothing:
    """The mean of the probabilities over the last frames, whatever classes come and go.

    frames: over how many.
    """

    def __init__(self, frames: int) -> None:
        self._last: deque[Array] = deque(maxlen=frames)
        self._labels: tuple[str, ...] = ()

    @property
    def frames(self) -> int:
        """Over how many frames the mean is taken; may be set, the last ones stay."""
        return self._last.maxlen or 1

    @frames.setter
    def frames(self, frames: int) -> None:
        if frames != self._last.maxlen:
            self._last = deque(self._last, maxlen=frames)

    def restart(self) -> None:
        """Forget the frames before this."""
        self._last.clear()

    def add(self, labels: tuple[str, ...], probabilities: Array) -> Array:
        """Take a frame's probabilities (T,) of the classes `labels`; returns the mean (T,).

        To a frame from before a class came that class was impossible; where one has left, the
        others share what it had in proportion.
        """
        if labels is not self._labels and labels != self._labels:
            self._rearrange(labels)
        self._last.append(probabilities)
        mean: Array = np.mean(self._last, axis=0)
        return mean

    def _rearrange(self, labels: tuple[str, ...]) -> None:
        before = {label: i for i, label in enumerate(self._labels)}
        stay = [(i, before[label]) for i, label in enumerate(labels) if label in before]
        here, there = np.array(stay, dtype=np.intp).reshape(-1, 2).T
        kept = []
        for old in self._last:
            new = np.zeros(len(labels))
            new[here] = old[there]
            if (total := new.sum()) > 0.0:
                kept.append(new / total)
        self._last = deque(kept, maxlen=self.frames)
        self._labels = labels


class MeanOfLast:
    """The mean of a number over the last frames.

    frames: over how many.
    """

    def __init__(self, frames: int) -> None:
        self._last: deque[float] = deque(maxlen=frames)

    def resize(self, frames: int) -> None:
        """Take the mean over so many; the last ones stay."""
        self._last = deque(self._last, maxlen=frames)

    def restart(self) -> None:
        """Forget the frames before this."""
        self._last.clear()

    def add(self, value: float) -> float:
        """Take a frame's value; returns the mean."""
        self._last.append(value)
        return sum(self._last) / len(self._last)
