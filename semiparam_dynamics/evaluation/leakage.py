"""Tested samples that training has as good as shown.

Where a motion repeats, the test part has states that were learned, a little shifted, and a model
that only remembers does well on them. So they are told apart from the others and scored apart.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from semiparam_dynamics.arrays import Array, Indices, Mask
from semiparam_dynamics.dynamics.sample import Sample

SPACING = 0.01  # s between the states that are kept
STILL = 1e-3  # rad or m, and per second
REACH = 0.05  # s: a state is repeated if it is nearer to a learned one than motion goes in this


class LearnedStates:
    """Joint states (q, dq) that were learned, thinned to a hundred a second."""

    def __init__(self) -> None:
        self._states: list[Array] = []
        self._stamps: list[int] = []

    def add(self, sample: Sample) -> None:
        """Take in a sample that is learned."""
        if self._stamps and 0 <= sample.stamp - self._stamps[-1] < SPACING * 1e9:
            return
        self._stamps.append(sample.stamp)
        self._states.append(np.concatenate((sample.q, sample.dq)))

    def repeats(self) -> Repeats | None:
        """What tells whether a state is among them; None if the arm never moved."""
        if len(self._states) < 2:
            return None
        states, stamps = np.array(self._states), np.array(self._stamps)
        deviation = states.std(axis=0)
        moving = deviation > 1e-9 * max(float(np.abs(states).max()), 1e-9)
        if not moving.any():
            return None
        scaled = states[:, moving] / deviation[moving]
        # Pairs of states so far apart in time; not across recordings, whose stamps may jump.
        ahead = np.arange(len(stamps)) + max(round(REACH / self._usual_gap(stamps)), 1)
        pairs = np.flatnonzero(ahead < len(stamps))
        gaps = (stamps[ahead[pairs]] - stamps[pairs]) * 1e-9
        pairs = pairs[(gaps > 0.0) & (gaps < 2.0 * REACH)]
        if not len(pairs):
            return None
        steps = np.linalg.norm(scaled[ahead[pairs]] - scaled[pairs], axis=1)
        return Repeats(states, moving, deviation, float(np.median(steps)))

    @staticmethod
    def _usual_gap(stamps: Indices) -> float:
        return max(float(np.median(np.diff(stamps))) * 1e-9, 1e-6)


class Repeats:
    """Tells whether a state is as near to a learned one as motion takes it in 50 ms.

    Distances are Euclidean over positions and velocities, each in units of its standard deviation
    while learning.
    """

    def __init__(self, states: Array, moving: Mask, deviation: Array, radius: float) -> None:
        self._moving, self._deviation = moving, deviation[moving]
        self._still = states[0, ~moving]
        self._tree = cKDTree(states[:, moving] / self._deviation)
        self.radius = radius

    def __call__(self, sample: Sample) -> bool:
        """Whether the sample's state repeats one that was learned."""
        return bool(self.among(np.concatenate((sample.q, sample.dq))[None])[0])

    def among(self, states: Array) -> Mask:
        """:meth:`__call__` of each state, (k,) for (k, 2 n_joints)."""
        # What stood still while learning tells by moving at all.
        moved = np.any(np.abs(states[:, ~self._moving] - self._still) > STILL, axis=1)
        scaled = states[:, self._moving] / self._deviation
        distance, _ = self._tree.query(scaled, distance_upper_bound=self.radius)
        near: Mask = np.isfinite(distance) & ~moved
        return near
