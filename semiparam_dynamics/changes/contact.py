"""Contacts: external efforts or wrenches far beyond the predictions' standard deviations."""

from __future__ import annotations

import math
from collections import deque
from functools import lru_cache

import numpy as np
from scipy.special import chdtri, ndtr

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.changes.config import ChangesConfig

SUSPICION_SHARE = 0.75  # of the threshold, above which a contact may be beginning
END_SHARE = 0.5  # of the threshold, below which a contact ends
END_TIME_S = 0.3  # for which the deviation must stay below that
USUAL_HORIZON_S = 120.0  # over which usual errors are forgotten
USUAL_DELAY_S = 1.0  # after which errors without a contact count as usual
USUAL_FACTOR = 1.5  # times the largest usual error is no longer usual
UNKNOWN_MOTION_FACTOR = 2.0  # of the standard deviation in motion that isn't known
MIN_ERROR_RATIO = 0.1  # of errors to predicted standard deviations
MAX_LIMIT = 30.0  # beyond it, probabilities are too small to be numbers


class ContactDetector:
    """Tests each sample, so that no contact waits for a block to be complete.

    Deviations are in standard deviations: predicted ones, corrected by their ratio to the errors of
    the last minutes (:meth:`spread`). A model's errors have longer tails than a normal
    distribution, depending on the joint; so a contact must also exceed the largest usual deviation
    of its axis. A push moves several joints, each perhaps by little: so the root of the sum of
    their squares counts like a further axis, with a threshold that noise exceeds as rarely.

    Attributes
    ----------
    config: may be changed at any time.
    active: whether there is a contact.
    since: stamp of its first sample, ns.
    given_up: the contact lasted longer than `config.contact_longest`: the deviation is the robot's
        own until the errors are small again.
    deviation: the last sample's external effort, in such standard deviations: of the axis, or of
        all together, whichever is nearest to a contact.
    """

    def __init__(self, config: ChangesConfig, n_axes: int) -> None:
        self.config = config
        self._square: Array = np.ones(n_axes)
        self._weight = 1.0
        self._usual: Array = np.zeros(n_axes + 1)  # of each axis, and of all together
        self._axis = 0  # nearest to a contact
        self._limit = 0.0  # that the last sample was compared with there
        self._last = 0  # ns, stamp of the last usual error
        self._pending: deque[tuple[int, Array, float, Array]] = deque()
        self.reset()

    def reset(self) -> None:
        """End any contact, as after a pause or when another cause is found."""
        self.active = self.given_up = False
        self.since = self._last_large = 0
        self.deviation = 0.0
        self._pending.clear()

    @property
    def limits(self) -> Array:
        """(n_axes + 1,) of each axis and of all together, in standard deviations.

        Infinite where contacts aren't detected.
        """
        limits: Array = USUAL_FACTOR * self._usual
        limit, n = self.config.contact or np.inf, len(self._square)
        np.maximum(limits[:n], limit, out=limits[:n])
        limits[n] = max(limits[n], as_rare(limit, n))
        return limits

    @property
    def threshold(self) -> float:
        """The limit of the deviation; 0 where contacts aren't detected."""
        return float(self.limits[self._axis]) if self.config.contact > 0.0 else 0.0

    @property
    def suspicious(self) -> bool:
        """Whether the last sample may be the beginning of a contact."""
        return 0.0 < self._limit * SUSPICION_SHARE < self.deviation

    def spread(self, std: Array, confidence: float) -> Array:
        """(n_axes,) corrected standard deviations, from predicted ones.

        Smaller errors than predicted reduce them as far as the motion is known. Where it isn't
        (`confidence` 0), a rigid body's errors are no noise: they last as long as the motion stays
        there, and the standard deviations grow.
        """
        size = np.maximum(np.sqrt(self._square), MIN_ERROR_RATIO)
        known = np.maximum(size, 1.0 + confidence * (size - 1.0))
        spread: Array = (
            std * known * (UNKNOWN_MOTION_FACTOR + confidence * (1.0 - UNKNOWN_MOTION_FACTOR))
        )
        return spread

    def add(
        self,
        stamp: int,
        error: Array,
        std: Array,
        confidence: float = 1.0,
        longest: float = math.inf,
    ) -> str:
        """Test the errors and predicted standard deviations (n_axes,) of a sample, `stamp` in ns.

        error: NaN on an axis that was not measured. confidence: of the prediction, 0 to 1.
        longest: s after which a contact is given up, if that is less than configured.
        Returns "begins", "over" or "given up" where that changes, else an empty text.
        """
        deviations, limits = self._deviations(error, std, confidence), self.limits
        enabled = self.config.contact > 0.0
        self._axis = int(np.argmax(deviations / limits if enabled else deviations))
        self.deviation = float(deviations[self._axis])
        self._limit = limit = float(limits[self._axis]) if enabled else 0.0
        if self.deviation > limit * END_SHARE:
            self._last_large = stamp
        ended = (stamp - self._last_large) * 1e-9 >= END_TIME_S
        if self.active:
            if ended or limit <= 0.0:
                self.active = False
                return "over"
            if (stamp - self.since) * 1e-9 > min(longest, self.config.contact_longest):
                self.active, self.given_up = False, True
                return "given up"
            return ""
        if self.given_up:
            self.given_up = not ended
        elif 0.0 < limit < self.deviation:
            self.active, self.since = True, stamp
            self._pending.clear()
            return "begins"
        self.observe(stamp, error, std, confidence)
        return ""

    def observe(self, stamp: int, error: Array, std: Array, confidence: float) -> None:
        """Count a sample's errors as usual, once `USUAL_DELAY_S` has passed without a contact."""
        deviations = self._deviations(error, std, confidence)
        self._pending.append((stamp, error / std, confidence, deviations))
        while stamp - self._pending[0][0] > USUAL_DELAY_S * 1e9:
            self._update_usual(*self._pending.popleft())

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {"square": self._square.copy(), "usual": np.array([self._weight, *self._usual])}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`. Raises ValueError where it has another number of axes."""
        if (state["square"].size, state["usual"].size) != (len(self._square), len(self._usual) + 1):
            raise ValueError("the usual errors that were saved are of another number of axes")
        self.reset()
        self._square = state["square"].copy()
        self._weight, self._usual = float(state["usual"][0]), state["usual"][1:].copy()
        self._last = 0

    def _deviations(self, error: Array, std: Array, confidence: float) -> Array:
        """(n_axes + 1,) of each axis, and of all together."""
        each = np.abs(np.where(np.isnan(error), 0.0, error)) / self.spread(std, confidence)
        return np.append(each, np.sqrt(each @ each))

    def _update_usual(
        self, stamp: int, scaled: Array, confidence: float, deviations: Array
    ) -> None:
        ahead = min(max((stamp - self._last) * 1e-9, 0.0), 1.0) if self._last else 0.0
        keep, self._last = math.exp(-ahead / USUAL_HORIZON_S), stamp
        self._weight = keep * self._weight + confidence
        measured = ~np.isnan(scaled)
        step = (scaled**2 - self._square) * (confidence / self._weight)
        np.add(self._square, step, out=self._square, where=measured)
        self._usual = np.maximum(keep * self._usual, deviations)


@lru_cache
def as_rare(limit: float, n: int) -> float:
    """The length that n independent normal numbers of unit variance exceed as rarely as one of them
    exceeds `limit` in size."""
    finite = min(limit, MAX_LIMIT)
    return float(np.sqrt(chdtri(n, 2.0 * ndtr(-finite)))) + limit - finite
