"""The weight of the residual: how much of the last seconds' motion it knew.

A place that a motion only crosses may be known from another motion, and what friction left there
then, at rest above all, need not hold now: the confidence of a single sample is misleading, and
the residual is worse than none. Motion that was learned is known for longer. So the residual's
weight follows the mean of the confidences over the last seconds; a confidence is one minus a
Gaussian process' posterior variance (Rasmussen and Williams 2006, Gaussian Processes for Machine
Learning, equation 2.26). Where the motion itself is being learned, what is near is of this very
passage, and counts in full.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.parameters import parameter
from semiparam_dynamics.recursion.loops import compiled_as_written

NEVER = -1  # stamp of no sample
LONGEST = 1.0  # s that a sample stands for, however long there was none before it


@dataclass(frozen=True)
class TrustConfig:
    """When the residual `nystrom` is trusted."""

    memory: float = parameter(
        2.0,
        "the residual is trusted by how much of the motion of about the last seconds it knew",
        unit="s",
        low=1e-3,
        high=1e4,
        live=True,
    )
    threshold: float = parameter(
        0.3,
        "mean confidence of that time from which the residual counts in full, below it in "
        "proportion; 0: it always does",
        low=0.0,
        high=1.0,
        live=True,
    )
    learning: float = parameter(
        0.5,
        "for so long after a sample was learned the residual counts in full, whatever it knew "
        "before; for twice as long in part",
        unit="s",
        low=1e-3,
        high=1e4,
        live=True,
    )


class Trust:
    """The residual's weight in [0, 1], from sample to sample.

    The mean is of how well each sample was known just before it was learned. Where learning comes
    later, :meth:`learn` goes back to the last sample learned, and what was weighed since is weighed
    anew. A recording that begins anew, with an earlier stamp, isn't known yet, nor is time without
    samples beyond a second. With `always` the weight is 1.

    Attributes
    ----------
    config: may be changed at any time.
    """

    def __init__(self, config: TrustConfig, *, always: bool = False) -> None:
        self.config = config
        self.always = always
        # At the last sample weighed, and at the last one learned.
        self._levels: Array = np.zeros(2)
        self._stamps: Indices = np.full(2, NEVER)

    @property
    def level(self) -> float:
        """The mean confidence of the last seconds, in [0, 1]."""
        return float(self._levels[0])

    @property
    def weight(self) -> float:
        """The factor on the residual now, in [0, 1]."""
        if self.always:
            return 1.0
        c = self.config
        return float(_weight(self._levels, self._stamps, c.threshold, c.learning))

    def weigh(self, stamp: int, confidence: float) -> float:
        """The weight of a sample at `stamp` (ns), whose residual has this confidence.

        It counts from then on, once however often it is asked. A stamp of 0 is of no instant: its
        weight is the one of now.
        """
        if stamp != 0 and not self.always:
            _weigh(self._levels, self._stamps, stamp, confidence, self.config.memory)
        return self.weight

    def learn(self, stamp: int, confidence: float) -> None:
        """Count a sample, of this confidence before, as learned; later ones are weighed anew."""
        if stamp != 0 and not self.always:
            _learn(self._levels, self._stamps, stamp, confidence, self.config.memory)

    def weigh_block(self, stamps: Indices, confidence: Array) -> Array:
        """:meth:`weigh` of k samples in turn: (k,) of (k,) stamps and confidences."""
        return self._rows(stamps, confidence, False)

    def learn_block(self, stamps: Indices, confidence: Array) -> Array:
        """:meth:`weigh` and :meth:`learn` of k samples in turn, (k,)."""
        return self._rows(stamps, confidence, True)

    def _rows(self, stamps: Indices, confidence: Array, learned: bool) -> Array:
        c, weights = self.config, np.ones(len(stamps))
        if not self.always:
            numbers = c.memory, c.threshold, c.learning, learned
            _fill(self._levels, self._stamps, stamps, confidence, *numbers, weights)
        return weights

    def copy(self) -> Trust:
        """Another one that continues from here on its own."""
        other = Trust(self.config, always=self.always)
        other._levels, other._stamps = self._levels.copy(), self._stamps.copy()
        return other

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs: as it was when a sample was last learned."""
        stamp: Any = self._stamps[1:].copy()  # an integer beside the other arrays
        return {"level": self._levels[1:].copy(), "stamp": stamp}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`. Raises ValueError where it is of another shape."""
        if state["level"].shape != (1,) or state["stamp"].shape != (1,):
            raise ValueError("the trust has another number of levels")
        self._levels = np.repeat(state["level"].astype(np.float64), 2)
        self._stamps = np.repeat(state["stamp"].astype(np.intp), 2)


@compiled_as_written
def _after(level: float, since: int, stamp: int, confidence: float, memory: float) -> float:
    if since == NEVER or stamp < since:
        return 0.0
    if not 0.0 <= confidence <= 1.0:  # of a damaged model
        confidence = 0.0
    gap = (stamp - since) * 1e-9
    new = 1.0 - math.exp(-min(gap, LONGEST) / memory)
    return math.exp(-gap / memory) * level + new * confidence


@compiled_as_written
def _weigh(levels: Array, stamps: Indices, stamp: int, confidence: float, memory: float) -> None:
    if stamp != stamps[0]:
        levels[0] = _after(levels[0], stamps[0], stamp, confidence, memory)
        stamps[0] = stamp


@compiled_as_written
def _learn(levels: Array, stamps: Indices, stamp: int, confidence: float, memory: float) -> None:
    if stamp < stamps[0]:  # others were weighed since
        stamps[0], levels[0] = stamps[1], levels[1]
    _weigh(levels, stamps, stamp, confidence, memory)
    stamps[1], levels[1] = stamps[0], levels[0]


@compiled_as_written
def _weight(levels: Array, stamps: Indices, threshold: float, learning: float) -> float:
    if threshold <= 0.0:
        return 1.0
    known: float = min(levels[0] / threshold, 1.0)
    if stamps[1] == NEVER or stamps[0] < stamps[1]:
        return known
    since = (stamps[0] - stamps[1]) * 1e-9
    recent: float = min(2.0 - since / learning, 1.0)
    return max(known, recent)


@compiled_as_written
def _fill(
    levels: Array,
    last: Indices,
    stamps: Indices,
    confidence: Array,
    memory: float,
    threshold: float,
    learning: float,
    learned: bool,
    weights: Array,
) -> None:
    for i in range(len(stamps)):
        if stamps[i] != 0:
            _weigh(levels, last, stamps[i], confidence[i], memory)
        weights[i] = _weight(levels, last, threshold, learning)
        if learned and stamps[i] != 0:
            _learn(levels, last, stamps[i], confidence[i], memory)
