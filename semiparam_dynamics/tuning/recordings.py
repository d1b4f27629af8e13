"""The recordings that are tuned on, filtered with whatever cut-off is asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.recording_filter import RecordingFilter
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.errors import BagError
from semiparam_dynamics.parameters import replace
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.tuning.motion import Arm, Motion, motion_of


class Recordings:
    """Measurements of one robot, a sequence for each bag, and its configuration to begin with."""

    def __init__(
        self,
        model: RobotModel,
        config: InverseDynamicsConfig,
        names: Sequence[str],
        measurements: Sequence[Sequence[Measurement]],
    ) -> None:
        if not measurements or not all(measurements):
            raise BagError("there is a recording without measurements among those to tune on")
        self.model, self.config, self.names = model, config, _apart(names)
        self.arm = Arm.of(model)
        self._measurements = measurements

    def motions(self, cutoff: float, seconds: float = np.inf) -> list[Motion]:
        """Each recording's samples, of its first `seconds`, filtered with `cutoff` Hz."""
        config = replace(self.config.filter, cutoff=cutoff)
        motions = []
        for recording in self._measurements:
            end = recording[0].stamp + 1e9 * seconds
            within = [m for m in recording if m.stamp <= end]
            samples = RecordingFilter(self.model, config).filter_recording(within)
            motions.append(motion_of(self.arm, samples))
        return motions

    @property
    def rate(self) -> float:
        """Messages a second, of the fastest recording."""
        gaps = [np.median(np.diff([m.stamp for m in r])) for r in self._measurements if len(r) > 1]
        return 1e9 / max(float(min(gaps)), 1.0) if gaps else 1.0

    def fingerprint(self) -> str:
        """Changes when a measurement does."""
        digest = hashlib.sha256()
        for recording in self._measurements:
            for m in recording:
                digest.update(np.int64(m.stamp).tobytes())
                digest.update(np.asarray(m.q).tobytes())
                if m.y is not None:
                    digest.update(np.asarray(m.y).tobytes())
        return digest.hexdigest()[:24]


def _apart(names: Sequence[str]) -> tuple[str, ...]:
    """The same names, numbered where bags of several folders have one name."""
    return tuple(
        f"{name} ({names[:k].count(name) + 1})" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    )
