"""One instant, ready to learn from: state, measurement and regressor, all filtered alike.

What is made for each message is not declared frozen, which costs some 3 us each; it never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices, Mask

NOTHING_WHOLE = (
    "no sample in motion is measured on all axes; joints whose efforts are not can be left out of "
    "the parameter joints"
)


@dataclass(slots=True)
class Sample:
    """One filtered instant: the input of the estimator."""

    stamp: int  # ns, of the message
    q: Array  # (n_joints,) rad
    dq: Array  # (n_joints,) rad/s
    ddq: Array  # (n_joints,) rad/s^2
    regressor: Array  # (n_axes, n_parameters)
    y: Array | None = None  # (n_axes,) N m or N; NaN where it, None where nothing was measured
    informative: bool = True  # false: at rest, or `between`
    between: bool = False  # too soon after the last sample that is learned
    weight: float = 1.0  # its share of an independent sample: those close to one another repeat
    fast: Sample | None = None  # the same instant before the narrow low-pass, where it is wanted

    @property
    def teaches(self) -> bool:
        """True if it may be learned: measured and informative."""
        return self.informative and self.y is not None

    def copy(self) -> Sample:
        """The same in arrays of its own; of a recording's samples one keeps its whole block."""
        q, dq, ddq, regressor = (a.copy() for a in (self.q, self.dq, self.ddq, self.regressor))
        y = None if self.y is None else self.y.copy()
        return replace(self, q=q, dq=dq, ddq=ddq, regressor=regressor, y=y)


@dataclass(frozen=True, slots=True)
class SampleBlock:
    """Measured samples in the order in which they came, as arrays."""

    stamps: Indices  # (k,) ns
    q: Array  # (k, n_joints)
    dq: Array
    ddq: Array
    regressors: Array  # (k, n_axes, n_parameters)
    y: Array  # (k, n_axes), NaN where an axis was not measured
    informative: Mask  # (k,) see `Sample`
    weights: Array  # (k,) see `Sample`

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> SampleBlock:
        """The block of at least one sample, all of them measured."""
        return cls(
            np.array([s.stamp for s in samples], dtype=np.intp),
            *(
                np.array([getattr(s, name) for s in samples])
                for name in ("q", "dq", "ddq", "regressor", "y", "informative", "weight")
            ),
        )

    def __len__(self) -> int:
        return len(self.stamps)

    def rows(self, chosen: Mask | slice) -> SampleBlock:
        """Some of the samples."""
        return SampleBlock(*(getattr(self, entry.name)[chosen] for entry in fields(self)))

    def samples(self) -> Iterator[Sample]:
        """Each of them."""
        numbers = self.stamps, self.informative, self.weights
        rows = zip(*(each.tolist() for each in numbers), strict=True)
        for i, (stamp, informative, weight) in enumerate(rows):
            state = self.q[i], self.dq[i], self.ddq[i], self.regressors[i]
            yield Sample(stamp, *state, self.y[i], informative, weight=weight)


@dataclass(frozen=True)
class Motion:
    """n samples that teach, in their order, of each regressor only what can be nonzero."""

    active: Array  # (n_axes, n_parameters), true for these entries
    stamps: Indices  # (n,) ns
    q: Array  # (n, n_joints)
    dq: Array
    ddq: Array
    y: Array  # (n, n_axes)
    weights: Array  # (n,) see `Sample`
    entries: Array  # (n, k)

    @classmethod
    def of(cls, samples: Iterable[Sample], active: Array) -> Motion:
        """Those of `samples` that teach on all axes; there may be none."""
        stamps, weights, rows = [], [], []
        for s in samples:
            if s.teaches and s.y is not None and np.isfinite(s.y).all():
                stamps.append(s.stamp)
                weights.append(s.weight)
                # Copies: see `Sample.copy`.
                parts = s.q.copy(), s.dq.copy(), s.ddq.copy(), s.y.copy()
                rows.append((*parts, s.regressor[active]))
        q, dq, ddq, y, entries = (np.array([row[i] for row in rows]) for i in range(5))
        return cls(
            active, np.array(stamps, dtype=np.intp), q, dq, ddq, y, np.array(weights), entries
        )

    @classmethod
    def join(cls, motions: Sequence[Motion]) -> Motion:
        """One after the other; all of one robot."""
        parts = (np.concatenate([getattr(m, name) for m in motions]) for name in ROWS)
        return cls(motions[0].active, *parts)

    def __len__(self) -> int:
        return len(self.stamps)

    def take(self, rows: Indices | Mask | slice) -> Motion:
        """The samples with these numbers, or where `rows` is true."""
        return Motion(self.active, *(getattr(self, name)[rows] for name in ROWS))

    def regressors(self) -> Array:
        """The whole regressors, (n, n_axes, n_parameters)."""
        whole = np.zeros((len(self), *self.active.shape))
        whole[:, self.active] = self.entries
        return whole

    def rigid_body(self, parameters: Array) -> Array:
        """Phi pi (n, n_axes) for pi (n_parameters,)."""
        axis, column = np.nonzero(self.active)
        of_axis = np.zeros((len(axis), len(self.active)))
        of_axis[np.arange(len(axis)), axis] = parameters[column]
        value: Array = self.entries @ of_axis
        return value

    def blocks(self, most: int) -> Iterator[SampleBlock]:
        """The samples with their whole regressors, at most so many at a time."""
        for start in range(0, len(self), most):
            part = self.take(slice(start, start + most))
            arrays = part.stamps, part.q, part.dq, part.ddq, part.regressors(), part.y
            yield SampleBlock(*arrays, np.ones(len(part), dtype=bool), part.weights)

    @property
    def seconds(self) -> float:
        """Duration of the motion: gaps of more than a second do not count."""
        return seconds_of(self.stamps)


def seconds_of(stamps: Indices) -> float:
    """Duration of motion whose samples have these stamps (n,), ns: gaps of over 1 s are none."""
    steps = np.diff(stamps) * 1e-9
    return float(steps[(steps > 0.0) & (steps <= 1.0)].sum())


ROWS = ("stamps", "q", "dq", "ddq", "y", "weights", "entries")  # of a motion, one for each sample


NEW_STATE = 0.5  # novelty above which a joint's state counts as new


@dataclass(slots=True)
class ResidualPrediction:
    """A residual's prediction of one sample."""

    value: Array  # (n_axes,) of both its models
    confidence: float  # 0: no data near; 1: plenty
    novelty: Array  # (n_axes,) in [0, 1], how new the state of each joint is to it
    ready: bool = False  # there are scales of its inputs


@dataclass(frozen=True, slots=True)
class ResidualBlock:
    """A residual's predictions of k samples."""

    values: Array  # (k, n_axes)
    confidence: Array  # (k,)
    novelty: Array  # (k, n_axes)


@dataclass(slots=True)
class Prediction:
    """Predictions of one sample with their standard deviations, all (n_axes,)."""

    rigid_body: Array
    semiparametric: Array  # rigid body plus residual, within bounds
    rigid_body_std: Array
    semiparametric_std: Array
    residual: ResidualPrediction
    # By which coverage widens or narrows `semiparametric_std`; infinite where nothing was learned
    # yet, so that no error is expected of it.
    factor: Array
    fast: Array | None = None  # semiparametric, of `Sample.fast`, where asked

    @property
    def confidence(self) -> float:
        """The share of the sample that the local residual knows, in [0, 1]."""
        return self.residual.confidence

    @property
    def spread(self) -> Array:
        """The semiparametric error that is usual, root mean square, (n_axes,); 0: not known yet.

        Contacts and changes are detected by it, and not by what covers 95 % of the errors.
        """
        value: Array = self.semiparametric_std / self.factor
        return value

    @property
    def std(self) -> Array:
        """The semiparametric prediction's standard deviation, (n_axes,)."""
        return self.semiparametric_std
