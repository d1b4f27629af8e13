"""Samples that are learned late or never, because something may have changed."""

from __future__ import annotations

import dataclasses
from collections import deque

from semiparam_dynamics.changes.hold import DROP, WAIT
from semiparam_dynamics.changes.monitor import ChangeMonitor
from semiparam_dynamics.dynamics.sample import Prediction, Sample

MOST = 5000  # samples that wait; of more the oldest are learned


class WaitingSamples:
    """Holds samples back until a monitor's verdict on them."""

    def __init__(self, monitor: ChangeMonitor) -> None:
        self._monitor = monitor
        self._waiting: deque[tuple[Sample, Prediction]] = deque()
        self.dropped = 0

    def admit(self, sample: Sample, prediction: Prediction) -> list[tuple[Sample, Prediction]]:
        """Take a sample and what the model itself predicted of it; returns what to learn now.

        That is in the samples' order, with the measurements that there would have been without the
        changes that are allowed for.
        """
        self._waiting.append((sample, prediction))
        admitted = []
        while self._waiting:
            verdict = self._monitor.verdict(self._waiting[0][0].stamp)
            if verdict == WAIT and len(self._waiting) <= MOST:
                break
            first, predicted = self._waiting.popleft()
            if verdict == DROP:
                self.dropped += 1
            else:
                admitted.append((self._unchanged(first), predicted))
        return admitted

    def _unchanged(self, sample: Sample) -> Sample:
        correction = self._monitor.correction
        if sample.y is None or not correction.active:
            return sample
        return dataclasses.replace(sample, y=sample.y - correction.effort(sample.regressor))
