"""The protocols that learn, sample by sample: for models that can't learn in blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from semiparam_dynamics.dynamics.block_prediction import BlockPrediction
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.learner import MODELS
from semiparam_dynamics.dynamics.sample import Prediction, Sample


def learn_promptly(
    estimator: SemiparametricEstimator, samples: Sequence[Sample]
) -> BlockPrediction:
    """Predict a sample, learn it, and so on with the next."""
    predictions = []
    for sample in samples:
        predictions.append(estimator.predict(sample))
        estimator.update(sample, predictions[-1])
    return _arrays(predictions)


def learn_late(estimator: SemiparametricEstimator, samples: Sequence[Sample]) -> BlockPrediction:
    """Predict all samples before the nonparametric parts learn any of them."""
    predictions = []
    for sample in samples:
        predictions.append(estimator.predict(sample))
        estimator.update_rigid_body(sample, predictions[-1])
    for sample, prediction in zip(samples, predictions, strict=True):
        estimator.update_nonparametric(sample, prediction)
    return _arrays(predictions)


def _arrays(predictions: Sequence[Prediction]) -> BlockPrediction:
    return BlockPrediction(
        {name: np.array([getattr(p, name) for p in predictions]) for name in MODELS},
        {name: np.array([getattr(p, f"{name}_std") for p in predictions]) for name in MODELS},
    )
