"""Recordings to tune on, their splits, and a split as the residual sees it.

Held-out samples in between those that are learned flatter a kernel: motion repeats, and neighbours
in time are neighbours in space. So two kinds of hold-out are made. *Motions*: whole recordings, or
long parts of the only one, tell how well the learner will do. *Regions*: the samples at one end of
the positions' principal directions, whatever the time, tell what it does where it has not been,
even if all recordings show much the same motion. A kernel that is too wide betrays itself there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices, Mask
from semiparam_dynamics.base.errors import BagError, listing
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.residual import (
    GROUPS,
    KernelResidual,
    NystromConfig,
    input_floors,
)
from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import NOTHING_WHOLE, Motion
from semiparam_dynamics.dynamics.scores import variances
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.bags import MIN_MOTION
from semiparam_dynamics.offline.evaluation.protocols import BLOCK
from semiparam_dynamics.robot.model import RobotModel, expected_scales
from semiparam_dynamics.samples.measurement import Measurement

PARTS = 3  # of a single recording
PART = f"part {{}} of {PARTS}"  # their names
MOST_FOLDS = 5
DIRECTIONS = 3
REGION_SHARE = 0.35  # of the samples, at one end of a direction
LEAST_VARIANCE = 0.02  # of all the positions', for a direction to count
STEP = 100  # measurements, to which the motion of a recording is cut
WINDOW_SHARE = 0.25  # of a short motion, to standardize by


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
            empty = [name for name, of in zip(names, measurements, strict=False) if not of]
            raise BagError(f"nothing to tune on: no measurements in {listing(empty or ['no bag'])}")
        self.model, self.config, self.names = model, config, _numbered(names)
        self._measurements = measurements
        self._ends: dict[tuple[int, float], int] = {}

    def motions(self, cutoff: float, seconds: float = np.inf) -> list[Motion]:
        """Each recording's samples, of its first `seconds` of motion, filtered with `cutoff` Hz.

        Raises BagError, with the recording's name, where there is nothing to learn in one.
        """
        config = replace(self.config.filter, cutoff=cutoff)
        active = expected_scales(self.model).active
        motions = []
        for number, (name, recording) in enumerate(
            zip(self.names, self._measurements, strict=True)
        ):
            within = recording[: self._end(number, seconds)]
            samples = SampleFilter(self.model, config).filter_recording(within)
            motions.append(Motion.of(samples, active))
            if len(motions[-1]) < 2:
                raise BagError(f"nothing to tune on in {name}: {NOTHING_WHOLE}")
        return motions

    def _end(self, number: int, seconds: float) -> int:
        """How many of a recording's measurements hold its first `seconds` of motion.

        Whatever it is filtered with later, so that what is held out is the same.
        """
        recording, key = self._measurements[number], (number, seconds)
        if not np.isfinite(seconds):
            return len(recording)
        if key not in self._ends:
            self._ends[key] = self._find_end(recording, seconds)
        return self._ends[key]

    def _find_end(self, recording: Sequence[Measurement], seconds: float) -> int:
        sampler, last, motion = SampleFilter(self.model, self.config.filter), None, 0.0
        for start in range(0, len(recording), STEP):
            for sample in sampler.filter_recording(recording[start : start + STEP]):
                if not sample.teaches:
                    continue
                step = 0.0 if last is None else (sample.stamp - last) * 1e-9
                motion += step if 0.0 < step <= self.config.filter.max_gap else 0.0
                last = sample.stamp
            if motion >= seconds:
                return min(start + STEP, len(recording))
        return len(recording)

    @property
    def n_recordings(self) -> int:
        """Sequences of measurements."""
        return len(self._measurements)

    @property
    def n_measurements(self) -> int:
        """In all recordings together."""
        return sum(len(recording) for recording in self._measurements)

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
                for array in (m.q, m.dq, m.y):
                    digest.update(b"-" if array is None else np.asarray(array).tobytes())
        return digest.hexdigest()[:24]


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """The same names, numbered where bags of several folders have one name."""
    return tuple(
        f"{name} ({names[:k].count(name) + 1})" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    )


# -------------------------------------------------------------------------------------------------
# Splits.


@dataclass(frozen=True)
class Split:
    """A training part and a held-out part."""

    name: str
    kind: str  # motion or region
    train: Motion
    held_out: Motion


def motion_splits(motions: Sequence[Motion], names: Sequence[str]) -> list[Split]:
    """Each recording held out in turn, or each third of the only one, the others learned.

    More than five recordings are held out in five groups. Raises BagError where a single
    recording is too short for that.
    """
    if len(motions) == 1:
        whole = motions[0]
        if whole.seconds < PARTS * MIN_MOTION:
            raise BagError(
                f"the only recording shows {whole.seconds:.1f} s of motion: "
                f"tuning needs {PARTS * MIN_MOTION:.1f} s at least, or several recordings"
            )
        edges = np.linspace(0, len(whole), PARTS + 1).astype(int)
        groups = [[whole.take(slice(a, b))] for a, b in zip(edges[:-1], edges[1:], strict=True)]
        titles = [PART.format(k + 1) for k in range(PARTS)]
    else:
        n = min(len(motions), MOST_FOLDS)
        groups = [list(motions[k::n]) for k in range(n)]
        titles = [" ".join(names[k::n]) for k in range(n)]
    return [
        Split(
            title,
            "motion",
            Motion.join([m for g in groups if g is not group for m in g]),
            Motion.join(group),
        )
        for title, group in zip(titles, groups, strict=True)
    ]


def region_splits(motion: Motion, turning: Mask | None = None) -> list[Split]:
    """Both ends of the positions' principal directions held out, two for each direction.

    Joints marked in `turning` (n_joints,) count by the sine and the cosine of their positions.
    """
    q = motion.q
    if turning is not None:
        angles = q[:, turning]
        q = np.column_stack((q[:, ~turning], np.sin(angles), np.cos(angles)))
    centred = q - q.mean(axis=0)
    deviation = q.std(axis=0)
    scaled = centred / np.where(deviation > 1e-9, deviation, np.inf)
    _, sizes, directions = np.linalg.svd(scaled, full_matrices=False)
    share = sizes**2 / max(float(np.sum(sizes**2)), 1e-300)
    splits = []
    for k in np.flatnonzero(share[:DIRECTIONS] > LEAST_VARIANCE):
        along: Array = scaled @ directions[k]
        for end, place in (("far", along), ("near", -along)):
            out = place > np.quantile(place, 1.0 - REGION_SHARE)
            if 0 < out.sum() < len(out):
                name = f"{end} end of direction {k + 1}"
                splits.append(Split(name, "region", motion.take(~out), motion.take(out)))
    return splits


# -------------------------------------------------------------------------------------------------
# A split with its rigid body identified, its inputs standardized and its blocks cut.


@dataclass(frozen=True)
class PreparedSplit:
    """The residual's side of a split: n samples, held out from number `n_train` on.

    Inputs are [q, dq, ddq, rigid-body prediction], standardized by the first seconds; of `turning`
    joints q is the sine, and the cosines follow the positions, as in `KernelResidual`.
    """

    name: str
    n_joints: int
    turning: Indices  # numbers of the joints that turn without end
    n_train: int
    first: int  # samples before it were only looked at
    share: float  # mean weight of a sample
    inputs: Array  # (n, 3 n_joints + turning + n_axes), predicted before each was learned
    frozen_inputs: Array  # (n - n_train, same), with the prediction after training
    left: Array  # (n, n_axes): what the rigid body, as identified in the end, leaves
    stale: Array  # (n, n_axes): what it left before each sample was learned
    y: Array  # (n - n_train, n_axes), held out
    rigid_body: Array  # the same, predicted while identification continues
    frozen_rigid_body: Array  # the same, as identified from the training part
    # Numbers at which a held-out motion's blocks of half a second begin, and n; None of a region.
    blocks: Indices | None

    @property
    def n_axes(self) -> int:
        """Outputs."""
        return int(self.y.shape[1])

    @property
    def variance(self) -> Array:
        """(n_axes,) of the held-out measurements, by which errors are normalized."""
        return variances(self.y)

    def rigid_body_scores(self) -> tuple[Array, Array]:
        """The rigid body's nmse (n_axes,) on what is held out: delayed, and frozen."""
        errors = (self.y - self.rigid_body, self.y - self.frozen_rigid_body)
        delayed, frozen = (np.mean(e**2, axis=0) / self.variance for e in errors)
        return delayed, frozen


def prepare(
    model: RobotModel, split: Split, config: RigidBodyConfig, window: float
) -> PreparedSplit:
    """Identify the rigid body along a split as the node would, and lay out what it leaves."""
    whole, out, k = Motion.join([split.train, split.held_out]), split.held_out, len(split.train)
    if split.kind == "motion":
        before, trained, last = identify_along(model, split, config)
        frozen = out.rigid_body(trained)
    else:  # nothing more is learned there
        last = RigidBodyIdentifier.of(model, config).ridge_path(split.train, [config.penalty])[0]
        before = whole.rigid_body(last)
        frozen = before[k:]
    residual = KernelResidual(
        NystromConfig(window=least_window(window, split.train), max_centers=1),
        GROUPS,
        model.n_joints,
        model.n_axes,
        turning=model.turning,
        floors=input_floors(model, GROUPS),
    )
    inputs = residual.inputs(whole.q, whole.dq, whole.ddq, before)
    frozen_inputs = residual.inputs(out.q, out.dq, out.ddq, frozen)
    standardizer = residual.standardizer
    first = 0
    while first < k and not standardizer.settled:
        standardizer.observe(int(whole.stamps[first]), inputs[first])
        first += 1
    if not standardizer.settled:  # motion in pieces: all of it is looked at, and learned
        standardizer.fit(whole.stamps[:k], inputs[:k])
        first = 0
    return PreparedSplit(
        name=split.name,
        n_joints=model.n_joints,
        turning=np.flatnonzero(model.turning),
        n_train=k,
        first=first,
        share=float(split.train.weights.mean()),
        inputs=standardizer.transform(inputs),
        frozen_inputs=standardizer.transform(frozen_inputs),
        left=whole.y - whole.rigid_body(last),
        stale=whole.y - before,
        y=out.y,
        rigid_body=before[k:],
        frozen_rigid_body=frozen,
        blocks=_blocks(whole.stamps, k) if split.kind == "motion" else None,
    )


def least_window(window: float, motion: Motion) -> float:
    """The seconds to standardize by: of a short motion a quarter, so that most of it is learned."""
    return min(window, WINDOW_SHARE * motion.seconds)


def identify_along(
    model: RobotModel, split: Split, config: RigidBodyConfig
) -> tuple[Array, Array, Array]:
    """Predictions (n, n_axes) made before each sample was learned, of both parts in turn.

    And the parameters (n_parameters,) after the training part, and after both.
    """
    identifier = RigidBodyIdentifier.of(model, config)
    before = identifier.update_motion(split.train).values
    trained = identifier.parameters.copy()
    later = identifier.update_motion(split.held_out).values
    return np.concatenate((before, later)), trained, identifier.parameters


def _blocks(stamps: Indices, start: int) -> Indices:
    """Where the delayed protocol learns: half a second after a block's first sample."""
    edges = [start]
    for i in range(start, len(stamps)):
        elapsed = (stamps[i] - stamps[edges[-1]]) * 1e-9 if edges[-1] < len(stamps) else 0.0
        if not 0.0 <= elapsed < BLOCK:
            edges.append(i + 1)
    if edges[-1] < len(stamps):
        edges.append(len(stamps))
    return np.array(edges, dtype=np.int64)
