"""Contacts: external efforts or wrenches far beyond what the prediction's spread allows."""

from __future__ import annotations

import math
from collections import deque
from functools import lru_cache

import numpy as np
from scipy.special import chdtri, ndtr

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.changes.config import ChangesConfig

SUSPICIOUS = 0.75  # of the threshold
OVER = 0.5  # of the threshold, below which a contact is over
CALM = 0.3  # s for which it must be below
HORIZON = 120.0  # s after which the usual errors are forgotten
DELAY = 1.0  # s after which errors that were no contact count as usual
UNKNOWN = 2.0  # times the standard deviation in motion that isn't known
LEAST_SIZE = 0.1  # of predicted standard deviations that errors are taken to have
BEYOND_USUAL = 1.5  # times the largest usual error is no longer usual


class ContactDetector:
    """Looks at every sample, so that no contact waits for a block to be complete.

    Deviations are in standard deviations: predicted ones, corrected by what the errors were beside
    them over the last minutes (:meth:`spread`). A model's errors have longer tails than a normal
    distribution, by how much depends on the joint; so a contact is also beyond the largest usual
    deviation of its axis. A push moves several joints, each perhaps by little: so the root of the
    sum of their squares counts like a further axis, with a threshold that noise exceeds as rarely.

    Attributes
    ----------
    config: may be changed at any time.
    active: whether there is a contact.
    since: stamp of its first sample, ns.
    given_up: it lasted longer than `config.contact_longest`: what is there now belongs to the robot
        until the errors are small again.
    deviation: the last sample's external effort, in such standard deviations: of the axis, or of
        all together, where it is nearest to a contact.
    """

    def __init__(self, config: ChangesConfig, n_axes: int) -> None:
        self.config = config
        self._square: Array = np.ones(n_axes)
        self._weight = 1.0
        self._usual: Array = np.zeros(n_axes + 1)  # of each axis, and of all together
        self._last = 0
        self._axis = 0  # nearest to a contact
        self._limit = 0.0  # that the last sample was compared with there
        self._pending: deque[tuple[int, Array, float, Array]] = deque()
        self.reset()

    def reset(self) -> None:
        """No contact, as after a pause or when what happens is explained."""
        self.active = self.given_up = False
        self.since = self._calm_since = 0
        self.deviation = 0.0
        self._pending.clear()

    @property
    def limits(self) -> Array:
        """(n_axes + 1,) of each axis and of all together, in standard deviations.

        Infinite where contacts aren't looked for.
        """
        limits: Array = BEYOND_USUAL * self._usual
        limit, n = self.config.contact or np.inf, len(self._square)
        np.maximum(limits[:n], limit, out=limits[:n])
        limits[n] = max(limits[n], as_rare(limit, n))
        return limits

    @property
    def threshold(self) -> float:
        """What the deviation is compared with; 0 where contacts aren't looked for."""
        return float(self.limits[self._axis]) if self.config.contact > 0.0 else 0.0

    @property
    def suspicious(self) -> bool:
        """Whether the last sample may be the beginning of a contact."""
        return 0.0 < self._limit * SUSPICIOUS < self.deviation

    def spread(self, std: Array, confidence: float) -> Array:
        """(n_axes,) standard deviations to compare with, of predicted ones.

        Errors smaller than predicted count as far as the motion is known. Where it isn't, where
        `confidence` is 0, a rigid body's errors are no noise: they stay as long as the motion stays
        there, and count for less.
        """
        size = np.maximum(np.sqrt(self._square), LEAST_SIZE)
        known = np.maximum(size, 1.0 + confidence * (size - 1.0))
        spread: Array = std * known * (UNKNOWN + confidence * (1.0 - UNKNOWN))
        return spread

    def observe(self, stamp: int, error: Array, std: Array, confidence: float) -> None:
        """Take a sample as usual, when a second has passed without a contact."""
        deviations = self._deviations(error, std, confidence)
        self._pending.append((stamp, error / std, confidence, deviations))
        while stamp - self._pending[0][0] > DELAY * 1e9:
            self._learn(*self._pending.popleft())

    def _deviations(self, error: Array, std: Array, confidence: float) -> Array:
        """(n_axes + 1,) of each axis, and of all together."""
        each = np.abs(error) / self.spread(std, confidence)
        return np.append(each, np.sqrt(each @ each))

    def _learn(self, stamp: int, scaled: Array, confidence: float, deviations: Array) -> None:
        step = min(max((stamp - self._last) * 1e-9, 0.0), 1.0) if self._last else 0.0
        keep, self._last = math.exp(-step / HORIZON), stamp
        self._weight = keep * self._weight + confidence
        self._square += (scaled**2 - self._square) * (confidence / self._weight)
        self._usual = np.maximum(keep * self._usual, deviations)

    def add(
        self,
        stamp: int,
        error: Array,
        std: Array,
        confidence: float = 1.0,
        longest: float = math.inf,
    ) -> str:
        """Take the errors and predicted spreads (n_axes,) of the sample at `stamp` (ns).

        confidence: 0 to 1, of the prediction: how well its surroundings are known.
        longest: s after which a contact is given up, if that is less than what is configured.
        Returns "begins", "over" or "given up" where that changes, else an empty text.
        """
        deviations, looking = self._deviations(error, std, confidence), self.config.contact > 0.0
        limits = self.limits
        self._axis = int(np.argmax(deviations / limits if looking else deviations))
        self.deviation = float(deviations[self._axis])
        self._limit = limit = float(limits[self._axis]) if looking else 0.0
        if self.deviation > limit * OVER:
            self._calm_since = stamp
        calm = (stamp - self._calm_since) * 1e-9 >= CALM
        if self.active:
            if calm or limit <= 0.0:
                self.active = False
                return "over"
            if (stamp - self.since) * 1e-9 > min(longest, self.config.contact_longest):
                self.active, self.given_up = False, True
                return "given up"
            return ""
        if self.given_up:
            self.given_up = not calm
        elif 0.0 < limit < self.deviation:
            self.active, self.since = True, stamp
            self._pending.clear()
            return "begins"
        self.observe(stamp, error, std, confidence)
        return ""

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {"square": self._square.copy(), "usual": np.array([self._weight, *self._usual])}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        self.reset()
        self._square = state["square"].copy()
        self._weight = float(state["usual"][0])
        self._usual = state["usual"][1:].reshape(len(self._square) + 1).copy()
        self._last = 0


@lru_cache
def as_rare(limit: float, n: int) -> float:
    """Which length a vector of n independent normal numbers exceeds as rarely as one of them
    exceeds `limit` in size; of unit variance."""
    sure = min(limit, 30.0)  # beyond it probabilities are too small to be numbers
    return float(np.sqrt(chdtri(n, 2.0 * ndtr(-sure)))) + limit - sure
