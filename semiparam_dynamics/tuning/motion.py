"""Recorded motion as arrays: what of a sample tuning needs, filtered once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from semiparam_dynamics.arrays import Array, Indices, Mask
from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.errors import BagError
from semiparam_dynamics.parameters import replace
from semiparam_dynamics.robot.model import ExpectedScales, RobotModel, expected_scales
from semiparam_dynamics.samples.measurement import Measurement


@dataclass(frozen=True)
class Arm:
    """The little that tuning needs to know of the robot: sizes, scales and the URDF's parameters.

    Plain arrays, so that it can be sent to other processes.
    """

    n_joints: int
    axes: tuple[str, ...]
    target: str
    scales: ExpectedScales
    prior: Array  # (n_parameters,)

    @classmethod
    def of(cls, model: RobotModel) -> Arm:
        """What tuning needs of `model`."""
        return cls(
            model.n_joints,
            tuple(model.axes),
            model.config.target,
            expected_scales(model),
            model.prior,
        )

    @property
    def n_axes(self) -> int:
        """Outputs."""
        return len(self.axes)

    def entries(self) -> tuple[Indices, Indices]:
        """Axis and column (k,) of the regressor's entries that are not always zero."""
        axis, column = np.nonzero(self.scales.active)
        return axis, column

    def regressor(self, entries: Array) -> Array:
        """Phi (n_axes, n_parameters) from its `entries` (k,)."""
        Phi = np.zeros(self.scales.active.shape)
        Phi[self.scales.active] = entries
        return Phi

    def rigid_body(self, entries: Array, parameters: Array) -> Array:
        """Phi pi of many rows (n, k): (n, n_axes)."""
        axis, column = self.entries()
        of_axis = np.zeros((len(axis), self.n_axes))
        of_axis[np.arange(len(axis)), axis] = parameters[column]
        value: Array = entries @ of_axis
        return value


@dataclass(frozen=True)
class Motion:
    """n measured samples in their order."""

    stamps: Indices  # (n,) ns
    q: Array  # (n, n_joints), and so dq and ddq
    dq: Array
    ddq: Array
    y: Array  # (n, n_axes)
    entries: Array  # (n, k), see Arm.entries

    def __len__(self) -> int:
        """Samples."""
        return len(self.stamps)

    def take(self, rows: Indices | Mask | slice) -> Motion:
        """The samples with these numbers, or where `rows` is true."""
        return Motion(*(getattr(self, entry.name)[rows] for entry in fields(self)))

    @property
    def seconds(self) -> float:
        """How long it moved: gaps of more than a second are none."""
        steps = np.diff(self.stamps) * 1e-9
        return float(steps[(steps > 0.0) & (steps <= 1.0)].sum())


def motion_of(arm: Arm, samples: Iterable[Sample]) -> Motion:
    """The measured ones of `samples` as arrays. Raises BagError if fewer than two are."""
    rows = [(s, s.y, s.regressor[arm.scales.active]) for s in samples if s.y is not None]
    if len(rows) < 2:
        raise BagError("a recording has no two measured samples to tune on")
    return Motion(
        stamps=np.array([s.stamp for s, _, _ in rows], dtype=np.int64),
        q=np.array([s.q for s, _, _ in rows]),
        dq=np.array([s.dq for s, _, _ in rows]),
        ddq=np.array([s.ddq for s, _, _ in rows]),
        y=np.array([y for _, y, _ in rows]),
        entries=np.array([entries for _, _, entries in rows]),
    )


def join(motions: Sequence[Motion]) -> Motion:
    """One after the other."""
    return Motion(*(np.concatenate([getattr(m, e.name) for m in motions]) for e in fields(Motion)))


# -------------------------------------------------------------------------------------------------
# The recordings that are tuned on, filtered with whatever cut-off is asked for.


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
            samples = SampleFilter(self.model, config).filter_recording(within)
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
