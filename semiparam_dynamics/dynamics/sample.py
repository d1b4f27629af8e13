"""One instant, ready to learn from: state, measurement and regressor, all filtered alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from semiparam_dynamics.arrays import Array, Indices, Mask


@dataclass(frozen=True, slots=True)
class Sample:
    """What the estimator sees of one instant."""

    stamp: int  # ns, of the message
    q: Array  # (n_joints,) rad
    dq: Array  # (n_joints,) rad/s
    ddq: Array  # (n_joints,) rad/s^2
    regressor: Array  # (n_axes, n_parameters)
    y: Array | None = None  # (n_axes,) N m or N; None where nothing was measured


@dataclass(frozen=True, slots=True)
class SampleBlock:
    """Measured samples in the order in which they came, as arrays."""

    stamps: Indices  # (k,) ns
    q: Array  # (k, n_joints)
    dq: Array
    ddq: Array
    regressors: Array  # (k, n_axes, n_parameters)
    y: Array  # (k, n_axes)

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> SampleBlock:
        """The block of at least one sample, all of them measured."""
        return cls(
            np.array([s.stamp for s in samples], dtype=np.intp),
            *(
                np.array([getattr(s, name) for s in samples])
                for name in ("q", "dq", "ddq", "regressor", "y")
            ),
        )

    def __len__(self) -> int:
        return len(self.stamps)

    def rows(self, chosen: Mask) -> SampleBlock:
        """Some of the samples."""
        return SampleBlock(*(getattr(self, entry.name)[chosen] for entry in fields(self)))


@dataclass(frozen=True, slots=True)
class Guess:
    """A nonparametric model's answer, with what its update will need again."""

    value: Array  # (n_axes,)
    confidence: float  # 0: no data near; 1: plenty
    inputs: Array | None = None  # standardised, None while the standardiser is still looking
    features: tuple[Array, ...] = ()
    outputs: Array | None = None  # the shared model's, as they were after `version` updates
    version: int = 0


@dataclass(frozen=True, slots=True)
class GuessBlock:
    """A nonparametric model's answers for k samples."""

    values: Array  # (k, n_axes)
    confidence: Array  # (k,)

    def weighed(self, weights: Array | float) -> GuessBlock:
        """The answers as far as they are trusted, by weights (k,) or one of all."""
        rows = np.asarray(weights)[..., None]
        return GuessBlock(self.values * rows, self.confidence * weights)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the models say of one sample, with standard deviations; all (n_axes,)."""

    rigid_body: Array
    nonparametric: Array
    semiparametric: Array
    rigid_body_std: Array
    nonparametric_std: Array
    semiparametric_std: Array
    residual: Guess
    trust: float  # in [0, 1]; the semiparametric prediction has so much of the residual
    alone: Guess | None  # the nonparametric model's; None: not asked yet

    @property
    def confidence(self) -> float:
        """How far the residual is relied on, in [0, 1]: 0 leaves the rigid body alone."""
        return self.trust * self.residual.confidence

    @property
    def std(self) -> Array:
        """The semiparametric prediction's standard deviation, (n_axes,)."""
        return self.semiparametric_std
