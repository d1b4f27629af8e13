"""How far the feed-forward goes from the URDF's to the learner's, and how it comes back."""

from __future__ import annotations

from collections import Counter

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.control.config import TrustConfig

NO_ANSWER = "no answer of the learner in time"
NOT_FINITE = "answer of the learner not finite"
UNSURE = "the learner is unsure of a joint"
CLIPPED = "correction clipped (bounds.correction)"


class LearnedCorrection:
    """What is added to the URDF's feed-forward: share * (learned - urdf), joint by joint.

    The share, from 0 to 1, goes where :func:`trust` says within the fade time, and to 0 where no
    answer is at hand; then the last difference is kept until the share has gone. The sum is held
    within a bound and changes no faster than a rate allows, so that nothing the learner does, or
    its end, makes the feed-forward jump.

    Parameters
    ----------
    largest: (n_joints,) N m, that the correction's size never exceeds. rate: (n_joints,) N m/s.

    Attributes
    ----------
    value: (n_joints,) N m, the correction now. share: (n_joints,), from 0 to 1.
    counts: how many times why the learner was not followed.
    """

    def __init__(self, largest: Array, rate: Array, config: TrustConfig) -> None:
        self.config = config
        self._largest, self._rate = largest, rate
        self.value: Array = np.zeros(len(largest))
        self.share: Array = np.zeros(len(largest))
        self._difference: Array = np.zeros(len(largest))
        self.counts: Counter[str] = Counter()

    def advance(
        self, dt: float, urdf: Array, learned: Array | None, std: Array | None, usual: Array
    ) -> Array:
        """The correction (n_joints,) in N m, `dt` seconds after the last one.

        urdf, learned: (n_joints,) feed-forwards in N m; None where there is no answer. std: the
        learned one's standard deviation. usual: the URDF's usual error, both (n_joints,) in N m.
        """
        wanted = np.zeros(len(urdf))
        if learned is None or std is None:
            self.counts[NO_ANSWER] += 1
        elif not (np.isfinite(learned).all() and np.isfinite(std).all()):
            self.counts[NOT_FINITE] += 1
        else:
            difference = learned - urdf
            self._difference = np.clip(difference, -self._largest, self._largest)
            wanted = trust(std, usual, self.config)
            self.counts[CLIPPED] += bool((self._difference != difference).any())
            self.counts[UNSURE] += bool((wanted < 1.0).any())
        most = dt / self.config.fade_time if self.config.fade_time > dt else 1.0
        self.share = self.share + np.clip(wanted - self.share, -most, most)
        step = self.share * self._difference - self.value
        self.value = self.value + np.clip(step, -dt * self._rate, dt * self._rate)
        return self.value


def trust(std: Array, usual: Array, config: TrustConfig) -> Array:
    """How far to follow the learner, (n_joints,) from 0 to 1.

    std: its standard deviation. usual: the URDF's usual error, both (n_joints,) in N m.
    """
    ratio = std / np.maximum(usual, 1e-12)
    if config.unsure <= config.sure:
        return (ratio <= config.sure).astype(float)
    known: Array = np.clip((config.unsure - ratio) / (config.unsure - config.sure), 0.0, 1.0)
    return known
