"""Frames from before anything was taught: what an object must be distinguished from.

With one object taught there is no other one to compare with. What the camera saw before is one: a
frame is the object's only where it is more similar to it than all but a share of those frames are.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.learning.class_heads import ClassSums
from semiparam_dynamics.learning.incremental_rlsc import ClassRecursion

FALSE_ACCEPTS = 0.05  # share of frames like those of the background that may pass for an object
MIN_FRAMES = 19  # of fewer no share so small can be kept to
MAX_FRAMES = 200  # kept; every other one goes when there are more
FIRST_FRAMES = 10  # of the first object, which tell how similar it is to itself
UNLIKE = 2  # frames in a row that do not show the object: one may be a blur


class Background:
    """The frames, as features; some may show the object that was then taught.

    seen : (n, d), in their order. first : (k, d), the first frames of the object taught first.
    """

    def __init__(self, seen: Array | None = None, first: Array | None = None) -> None:
        self._seen: list[Array] = [] if seen is None else list(seen)
        self._first: list[Array] = [] if first is None else list(first)
        self._found: tuple[tuple[float, int], float | None] = (0.0, 0), None

    def add(self, x: Array) -> None:
        """Take a frame (d,) that came before anything was taught."""
        self._first = []
        if self._seen and len(x) != len(self._seen[0]):
            self._seen = []
        self._seen.append(x)
        if len(self._seen) > MAX_FRAMES:
            self._seen = self._seen[::2]

    def note_taught(self, x: Array) -> None:
        """Take a frame (d,) of the object taught first."""
        if len(self._first) < FIRST_FRAMES:
            self._first.append(x)

    def state(self, n_inputs: int) -> dict[str, Array]:
        """The arrays `seen` and `first` of frames of `n_inputs` numbers."""
        both = {"background": self._seen, "background_object": self._first}
        return {name: np.array(frames).reshape(-1, n_inputs) for name, frames in both.items()}

    def limit(self, recursion: ClassRecursion) -> float | None:
        """The similarity below which a frame shows no object; None while frames are too few.

        At most `FALSE_ACCEPTS` of further frames exceed it, if they are exchangeable with those
        before teaching, whatever their distribution (V. Vovk et al.: Algorithmic learning in a
        random world, 2005). Where the object is far from them it is halfway to the object's own.
        """
        of = float(recursion.classes.shown.sum()), len(recursion.classes)
        if self._found[0] != of:
            self._found = of, self._limit(recursion)
        return self._found[1]

    def _limit(self, recursion: ClassRecursion) -> float | None:
        if len(self._seen) < MIN_FRAMES or len(self._first) < 2:
            return None
        features = recursion.front.transform
        seen, first = features(np.array(self._seen)), features(np.array(self._first))
        total = first.sum(axis=0)
        own = float(np.median([_cosines(x[None], (total - x)[None])[0] for x in first]))
        kept = seen[self._show_none(_cosines(seen, total[None]), own)]
        if len(kept) < MIN_FRAMES:
            return None
        rank = int(np.ceil((len(kept) + 1) * (1.0 - FALSE_ACCEPTS) - 1e-9))
        limit = float(np.sort(_similarity(kept, recursion.classes))[rank - 1])
        return max(limit, (limit + own) / 2.0)

    @staticmethod
    def _show_none(similar: Array, own: float) -> Mask:
        """Mark the frames, of these similarities (n,), that do not show the object.

        It has been in view before its teaching began. Where hardly a frame lies between those that
        show it and others, it is seen which do. Else the last ones do, back to where `UNLIKE` in a
        row are nearer to the least similar tenth than to the object's own first frames.
        """
        low = float(np.quantile(similar, 0.1))
        near = similar > (low + own) / 2.0
        between = np.abs(similar - (low + own) / 2.0) < (own - low) / 4.0
        if between.mean() <= FALSE_ACCEPTS:
            return ~near
        unlike = np.flatnonzero(~near)
        ends = np.flatnonzero(unlike[UNLIKE - 1 :] - unlike[: 1 - UNLIKE] == UNLIKE - 1)
        count = unlike[ends[-1] + UNLIKE - 1] + 1 if len(ends) else 0
        return np.arange(len(similar)) < count


def similarity(x: Array, recursion: ClassRecursion) -> float:
    """The cosine of an input (d,) with the mean of the class that it is most similar to."""
    return float(_similarity(recursion.front.transform(x[None]), recursion.classes)[0])


def _similarity(Z: Array, classes: ClassSums) -> Array:
    return _cosines(Z, classes.sums[classes.counts > 0.0])


def _cosines(X: Array, sums: Array) -> Array:
    lengths = np.linalg.norm(X, axis=1) * np.linalg.norm(sums, axis=1)[:, None]
    largest: Array = (sums @ X.T / np.maximum(lengths, np.finfo(float).tiny)).max(axis=0)
    return largest
