"""Recordings to tune on, and the motion of them that is held out.

Samples between those that are learned would flatter a kernel. So whole recordings are held out in
turn, or long parts of the only one, each with all that repeats it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from semiparam_dynamics.base import parameters
from semiparam_dynamics.base.arrays import Indices, Mask
from semiparam_dynamics.base.errors import BagError, listing
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.sample import NOTHING_WHOLE, Motion
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.bags import MIN_MOTION
from semiparam_dynamics.offline.evaluation.protocols import BLOCK
from semiparam_dynamics.offline.evaluation.scored_run import Repeats
from semiparam_dynamics.robot.model import RobotModel, expected_scales
from semiparam_dynamics.samples.measurement import Measurement

PARTS = 3  # of a single recording, each held out in turn
PART_NAME = f"part {{}} of {PARTS}"
MAX_FOLDS = 5  # more recordings are held out in as many groups
# Samples kept while searching, in multiples of the cut-off: 2 a period are independent behind the
# low-pass, and the rest repeat them.
SEARCH_RATE = 3.0


@dataclass(frozen=True)
class Fold:
    """Motion that is learned, and motion that is held out, one for each recording of it.

    Errors of signals that are filtered more are smaller whatever the model is worth: all cut-offs
    are judged on the same ones.
    """

    name: str
    train: tuple[Motion, ...]
    scored: tuple[Motion, ...]  # held out, as the configuration to begin with filters it
    learned: tuple[Motion, ...]  # the same motion as a candidate filters it

    @property
    def seconds(self) -> float:
        """Duration of the held-out motion."""
        return sum(motion.seconds for motion in self.scored)


class Recordings:
    """Measurements of one robot, a sequence for each bag, and its configuration to begin with.

    Raises BagError where a recording has no measurement.
    """

    def __init__(
        self,
        model: RobotModel,
        config: InverseDynamicsConfig,
        names: Sequence[str],
        measurements: Sequence[Sequence[Measurement]],
    ) -> None:
        if not measurements or not all(measurements):
            empty = [name for name, of in zip(names, measurements, strict=False) if not of]
            raise BagError(f"nothing to tune on: no measurements in {listing(empty or ['no bag'])}")
        self.model, self.config, self.names = model, config, _numbered(names)
        self._measurements = measurements
        self._motions: dict[float, list[Motion]] = {}

    def folds(self, cutoff: float, *, thinned: bool) -> list[Fold]:
        """Each recording held out in turn, or each third of the only one, and the others learned.

        More than `MAX_FOLDS` recordings are held out in as many groups.
        cutoff : Hz, of the low-pass before what is learned. thinned : to `SEARCH_RATE`.
        Raises BagError where there is nothing to learn in one, or the only one is too short.
        """
        scored = self._parts(self.config.filter.cutoff, thinned)
        learned = scored
        if cutoff != self.config.filter.cutoff:
            learned = self._parts(cutoff, thinned)
        folds = []
        for number in range(self.n_folds):
            held_out = range(number, len(scored), self.n_folds)
            train = tuple(m for k, m in enumerate(learned) if k not in held_out)
            parts = (tuple(of[k] for k in held_out) for of in (scored, learned))
            folds.append(Fold(" ".join(self._part_names[k] for k in held_out), train, *parts))
        return folds

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return min(len(self._part_names), MAX_FOLDS)

    @property
    def _part_names(self) -> Sequence[str]:
        only = len(self.names) == 1
        return [PART_NAME.format(k + 1) for k in range(PARTS)] if only else self.names

    def _parts(self, cutoff: float, thinned: bool) -> list[Motion]:
        """The recordings' motion, that of the only one in `PARTS`; see `parts_of`."""
        motions = self._filtered(cutoff)
        if len(motions) == 1:
            whole = motions[0]
            if whole.seconds < PARTS * MIN_MOTION:
                raise BagError(
                    f"the only recording shows {whole.seconds:.1f} s of motion: tuning needs "
                    f"{PARTS * MIN_MOTION:.1f} s at least, or several recordings"
                )
            part = parts_of(whole, self.model.turning)
            motions = [whole.take(part == k) for k in range(PARTS)]
        return [thin(motion, SEARCH_RATE * cutoff) for motion in motions] if thinned else motions

    def _filtered(self, cutoff: float) -> list[Motion]:
        if cutoff not in self._motions:
            config = parameters.replace(self.config.filter, cutoff=cutoff)
            active = expected_scales(self.model).active
            motions = []
            for name, recording in zip(self.names, self._measurements, strict=True):
                samples = SampleFilter(self.model, config).filter_recording(recording)
                motions.append(Motion.of(samples, active))
                if len(motions[-1]) < 2:
                    raise BagError(f"nothing to tune on in {name}: {NOTHING_WHOLE}")
            own = self.config.filter.cutoff
            # Only what candidates are judged on, and the last that was asked for.
            self._motions = {c: m for c, m in self._motions.items() if c == own} | {cutoff: motions}
        return self._motions[cutoff]

    @property
    def rate(self) -> float:
        """Messages a second, of the fastest recording."""
        gaps = [np.median(np.diff([m.stamp for m in r])) for r in self._measurements if len(r) > 1]
        return 1e9 / max(float(min(gaps)), 1.0) if gaps else 1.0

    def fingerprint(self) -> str:
        """A digest that changes when a measurement does."""
        digest = hashlib.sha256()
        for recording in self._measurements:
            for m in recording:
                digest.update(np.int64(m.stamp).tobytes())
                for array in (m.q, m.dq, m.y):
                    digest.update(b"-" if array is None else np.asarray(array).tobytes())
        return digest.hexdigest()[:24]


def parts_of(motion: Motion, turning: Mask) -> Indices:
    """(n,) the third of the motion that each sample is in, or that it repeats.

    They are thirds of the motion that is new: no state of half a second before, or longer ago, is
    as near as motion goes in 50 ms. turning : (n_joints,) which joints turn without end.
    """
    states = np.concatenate((motion.q, motion.dq), axis=1)
    repeats = Repeats.of(states, motion.stamps, np.append(turning, np.zeros_like(turning)))
    first = np.arange(len(motion)) if repeats is None else repeats.first(states)
    new = motion.stamps - motion.stamps[first] < BLOCK * 1e9
    parts: Indices = PARTS * (np.cumsum(new) - 1) // new.sum()
    for row in np.flatnonzero(~new):
        parts[row] = parts[first[row]]
    return parts


def thin(motion: Motion, rate: float) -> Motion:
    """Every k-th sample, so that at least `rate` a second are left, each counting for k."""
    if rate <= 0.0 or len(motion) < 2:
        return motion
    period = float(np.median(np.diff(motion.stamps))) * 1e-9
    k = max(int(1.0 / (rate * max(period, 1e-9)) + 1e-6), 1)
    kept = motion.take(slice(None, None, k))
    return replace(kept, weights=np.minimum(k * kept.weights, 1.0))


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """The same names, numbered where bags of several folders have one name."""
    return tuple(
        f"{name} ({names[:k].count(name) + 1})" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    )
