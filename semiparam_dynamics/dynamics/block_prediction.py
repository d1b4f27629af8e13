"""Many samples at once: predicted only, or predicted and learned in turn.

The numbers are those of `SemiparametricEstimator.predict` and `update` sample by sample, to
rounding, in a few large matrix products; see :mod:`learning.row_blocks`. As each model's recursion
says of every sample both what it knew just before it and what it knew before the block, the
sequential and the delayed protocol come out of one pass.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array, Mask
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.rigid_body import RigidBodyBlock
from semiparam_dynamics.dynamics.sample import GuessBlock, SampleBlock
from semiparam_dynamics.dynamics.spread import blend


@dataclass(frozen=True, slots=True)
class BlockPrediction:
    """What the models say of k samples, by their names: (k, n_axes), NaN for one left out."""

    values: dict[str, Array]
    stds: dict[str, Array]

    def rows(self, chosen: Mask) -> BlockPrediction:
        """Some of the predictions."""
        both = ({k: v[chosen] for k, v in a.items()} for a in (self.values, self.stds))
        return BlockPrediction(*both)


@dataclass(frozen=True, slots=True)
class BlockGuesses:
    """What the parts say of k samples; `alone` is None without the model for comparison.

    The residual's answers are as they are trusted.
    """

    rigid: RigidBodyBlock
    residual: GuessBlock
    alone: GuessBlock | None


def learns_in_blocks(estimator: SemiparametricEstimator) -> bool:
    """Whether :func:`learn_block` can be asked.

    Not with a gate, where what is learned depends on the whole prediction, nor where the residual
    forgets. (A rigid body that does is learned sample by sample.)
    """
    config = estimator.config
    nonparametric = config.nystrom if config.residual == "nystrom" else config.random_fourier
    return config.output.gate <= 0.0 and nonparametric.memory <= 0.0


def beside(estimator: SemiparametricEstimator) -> SemiparametricEstimator:
    """Another one that shares what is learned with `estimator`, and keeps errors of its own.

    For predictions that are made later: nothing may be learned through it but errors.
    """
    other = copy.copy(estimator)
    other.errors, other.bound = copy.deepcopy(estimator.errors), copy.deepcopy(estimator.bound)
    return other


def ask_block(estimator: SemiparametricEstimator, block: SampleBlock) -> BlockPrediction:
    """What `estimator.predict` says of each sample; nothing is learned."""
    rigid = estimator.rigid_body.ask_block(block.regressors)
    inputs = _inputs(estimator, block, rigid.values)
    alone = None
    if estimator.config.comparison:
        alone = estimator.alone.ask_block(_states(block, 3), rigid.parameters)
    residual = estimator.residual.ask_block(inputs, rigid.parameters)
    residual = residual.weighed(estimator.trust.weigh_rows(block.stamps, residual.confidence))
    return predicted(estimator, BlockGuesses(rigid, residual, alone))


def learn_block(
    estimator: SemiparametricEstimator, block: SampleBlock
) -> tuple[BlockGuesses, BlockGuesses]:
    """Predict and learn each sample in turn, but for the errors; see :func:`learns_in_blocks`.

    Returns what the parts said of each sample, and what the nonparametric ones said before they
    learned any of the block; the rigid body learns sample by sample in either. Which of the two
    predictions the standard deviations follow is left to :func:`counted` or :func:`record_block`.
    """
    return learn_nonparametric(estimator, block, learn_rigid_body(estimator, block))


def learn_rigid_body(estimator: SemiparametricEstimator, block: SampleBlock) -> RigidBodyBlock:
    """The first half of :func:`learn_block`, which doesn't depend on the second half before it."""
    wanted = estimator.config.residual == "nystrom"  # by a residual that is exact in them
    return estimator.rigid_body.learn_block(
        block.regressors, block.y, block.stamps, parameters=wanted
    )


def learn_nonparametric(
    estimator: SemiparametricEstimator, block: SampleBlock, rigid: RigidBodyBlock
) -> tuple[BlockGuesses, BlockGuesses]:
    """The second half of :func:`learn_block`."""
    y, stamps = block.y, block.stamps
    inputs = _inputs(estimator, block, rigid.values)
    now, late = estimator.residual.learn_block(
        stamps, inputs, y, block.regressors, rigid.values, rigid.parameters
    )
    late = late.weighed(estimator.trust.copy().weigh_rows(stamps, late.confidence))
    now = now.weighed(estimator.trust.learn_rows(stamps, now.confidence))
    alone: tuple[GuessBlock | None, GuessBlock | None] = None, None
    if estimator.config.comparison:
        nothing = block.regressors[:, :, :0], np.zeros_like(y), rigid.parameters
        alone = estimator.alone.learn_block(stamps, _states(block, 3), y, *nothing)
    return BlockGuesses(rigid, now, alone[0]), BlockGuesses(rigid, late, alone[1])


def predicted(estimator: SemiparametricEstimator, guesses: BlockGuesses) -> BlockPrediction:
    """Predictions of `guesses`, with the standard deviations that `estimator` has now."""
    return BlockPrediction(_values(estimator, guesses), _stds(guesses, estimator.errors.values()))


def counted(
    estimator: SemiparametricEstimator, block: SampleBlock, guesses: BlockGuesses
) -> BlockPrediction:
    """Predictions of `guesses`, each of which counts as learned before the next one is made."""
    values = _values(estimator, guesses)
    return BlockPrediction(values, _stds(guesses, record_block(estimator, block, values)))


def record_block(
    estimator: SemiparametricEstimator, block: SampleBlock, values: Mapping[str, Array]
) -> dict[str, Array]:
    """Count the samples as learned after these predictions; the mean squares before each."""
    names = ["rigid_body", "semiparametric"]
    if estimator.config.comparison:
        names.append("nonparametric")
    errors = {name: block.y - values[name] for name in names}
    return estimator.errors.record_rows(block.stamps, block.y, errors)


def _states(block: SampleBlock, used: int) -> Array:
    """Positions, velocities and, if three are `used`, accelerations side by side."""
    return np.concatenate((block.q, block.dq, block.ddq)[:used], axis=1)


def _inputs(estimator: SemiparametricEstimator, block: SampleBlock, rigid: Array) -> Array:
    used = 2 if estimator.config.residual == "nystrom" else 3
    return np.concatenate((_states(block, used), rigid), axis=1)


def _values(estimator: SemiparametricEstimator, guesses: BlockGuesses) -> dict[str, Array]:
    rigid = guesses.rigid.values
    both = rigid + guesses.residual.values
    if not (np.abs(both) <= estimator.bound.limit).all():  # the usual case need not be looked at
        rows = zip(both, rigid, strict=True)
        both = np.array([estimator.bound(row, otherwise) for row, otherwise in rows])
    alone = np.full_like(rigid, np.nan) if guesses.alone is None else guesses.alone.values
    return {"rigid_body": rigid, "nonparametric": alone, "semiparametric": both}


def _stds(guesses: BlockGuesses, spreads: Mapping[str, Array]) -> dict[str, Array]:
    """By mean squared errors of one moment (n_axes,), or of each sample's (k, n_axes)."""
    root = np.sqrt(1.0 + guesses.rigid.leverages)
    near, far = spreads["semiparametric"], spreads["rigid_body"]
    alone = np.full_like(root, np.nan)
    if guesses.alone is not None:
        sure = guesses.alone.confidence[:, None]
        alone = blend(sure, spreads["nonparametric"], spreads["y"])
    return {
        "rigid_body": np.sqrt(far) * root,
        "nonparametric": alone,
        "semiparametric": root * blend(guesses.residual.confidence[:, None], near, far),
    }
