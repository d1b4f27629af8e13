"""Keeps contacts out of what is learned: samples too far from what was predicted of them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.output_bound import OutputConfig

BEYOND = "beyond the gate (output.gate)"
SETTLED = 500  # samples learned before the standard deviations are relied on


class LearningGate:
    """Says which samples aren't learned; see `OutputConfig`.

    It closes with the first sample beyond, and opens with the first one within, or when it was
    closed for longer than `config.gate_longest`: what lasts is no contact. It then stays open
    until a sample was within again.

    Attributes
    ----------
    config: may be changed at any time.
    dropped: counts the samples kept out, under one reason.
    closed: whether the last sample was kept out.
    """

    def __init__(self, config: OutputConfig) -> None:
        self.config = config
        self.dropped: Counter[str] = Counter()
        self.closed = False
        self._since: int | None = None  # stamp of the first sample beyond, ns
        self._refused: set[int] = set()

    def refuses(self, stamp: int, error: Array, std: Array, n_learned: int) -> bool:
        """Whether the sample at `stamp` (ns) isn't learned. Ask once for each sample, in order.

        error: (n_axes,) measured minus predicted. std: (n_axes,) of the prediction.
        n_learned: samples learned so far; none is refused before there are `SETTLED`.
        """
        self.closed = False
        limit = self.config.gate
        if limit <= 0.0 or n_learned < SETTLED or (np.abs(error) <= limit * std).all():
            self._since = None
            return False
        if self._since is None or stamp < self._since:
            self._since = stamp
        if stamp - self._since > self.config.gate_longest * 1e9:
            return False
        self.closed = True
        self.dropped[BEYOND] += 1
        self._refused.add(stamp)
        return True

    def refused(self, stamp: int) -> bool:
        """Whether :meth:`refuses` said so of the sample at `stamp`; may be asked once."""
        if stamp not in self._refused:
            return False
        self._refused.remove(stamp)
        return True
