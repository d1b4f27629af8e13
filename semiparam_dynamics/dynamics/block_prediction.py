"""Predictions of many samples at once, where nothing is learned between them.

One triangular solve with many right-hand sides instead of one for each sample: the numbers are
those of `SemiparametricEstimator.predict`, to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.fourier_residual import FourierResidual
from semiparam_dynamics.dynamics.local_model import LocalModel
from semiparam_dynamics.dynamics.nystrom_residual import NystromResidual
from semiparam_dynamics.dynamics.sample import Guess, Prediction, Sample
from semiparam_dynamics.dynamics.spread import blend
from semiparam_dynamics.learning.recursive import RecursiveLeastSquares


@dataclass(frozen=True, slots=True)
class RigidBodyGuess:
    """What the rigid body says of a sample, and the parameters that it then had."""

    value: Array  # (n_axes,)
    leverage: Array  # (n_axes,)
    parameters: Array  # (n_parameters,)


def rigid_body_guesses(
    estimator: SemiparametricEstimator, samples: Sequence[Sample]
) -> list[RigidBodyGuess]:
    """The rigid body's part of predictions with the parameters that it has now."""
    body = estimator.rigid_body
    regressors = np.array([sample.regressor for sample in samples])
    values = regressors @ body.parameters
    leverages = body.leverages(regressors)
    return [
        RigidBodyGuess(value, leverage, body.parameters)
        for value, leverage in zip(values, leverages, strict=True)
    ]


def predict_block(
    estimator: SemiparametricEstimator, samples: Sequence[Sample], rigid: Sequence[RigidBodyGuess]
) -> list[Prediction]:
    """What `estimator.predict` says of each sample with its `rigid` body's guess."""
    value, leverage, parameters = (
        np.array([getattr(guess, name) for guess in rigid])
        for name in ("value", "leverage", "parameters")
    )
    states = np.array([(s.q, s.dq, s.ddq) for s in samples])  # (k, 3, n_joints)
    used = 2 if estimator.config.residual == "nystrom" else 3
    inputs = np.column_stack((states[:, :used].reshape(len(samples), -1), value))
    left = _guesses(estimator.residual, inputs, parameters)
    spread = {name: error.value for name, error in estimator._errors.items()}
    near, far = spread["semiparametric"], spread["rigid_body"]
    root = np.sqrt(1.0 + leverage)
    both = value + np.array([guess.value for guess in left])
    if not (np.abs(both) <= estimator.bound.limit).all():  # the usual case need not be looked at
        both = np.array(
            [estimator.bound(row, rigid) for row, rigid in zip(both, value, strict=True)]
        )
    stds = np.sqrt(far) * root, root * _blends(left, near, far)
    alone: list[Guess | None] = [None] * len(samples)
    nothing = np.full(value.shape, np.nan)
    others, other_stds = nothing, nothing
    if estimator.config.comparison:
        guesses = _guesses(estimator.alone, states.reshape(len(samples), -1), parameters)
        others = np.array([guess.value for guess in guesses])
        other_stds = _blends(guesses, spread["nonparametric"], spread["y"])
        alone[:] = guesses
    rows = zip(value, others, both, stds[0], other_stds, stds[1], left, alone, strict=True)
    return [Prediction(*row) for row in rows]


def _blends(guesses: Sequence[Guess], near: Array, far: Array) -> Array:
    """`blend` for each guess, (k, n_axes)."""
    confidence = np.array([[guess.confidence] for guess in guesses])
    return blend(confidence, near, far)


def _guesses(
    model: NystromResidual | FourierResidual, inputs: Array, parameters: Array
) -> list[Guess]:
    if not model.standardizer.ready:
        return [model.predict(x, pi) for x, pi in zip(inputs, parameters, strict=True)]
    X = model.standardizer.transform(inputs)
    if isinstance(model, FourierResidual):
        phi = model.features(X)
        values, leverage = _outputs(model.core, phi)
        confidence = 1.0 - np.minimum(model.core.penalty * leverage, 1.0)
        rows: Any = zip(values, confidence.tolist(), X, phi, strict=True)
        return [Guess(value, sure, x, (row,)) for value, sure, x, row in rows]
    known, confidence, phi = _local(model.shared, X)
    values = _residuals(model.shared, known, parameters)
    features = [phi]
    for j, joint in enumerate(model.joints):
        outputs, _, phi = _local(joint, X[:, model.own[j]])
        values[:, j] += _residuals(joint, outputs, parameters)[:, 0]
        features.append(phi)
    rows = zip(values, confidence.tolist(), X, zip(*features, strict=True), known, strict=True)
    return [
        Guess(value, sure, x, row, outputs, model.n_updates)
        for value, sure, x, row, outputs in rows
    ]


def _local(model: LocalModel, X: Array) -> tuple[Array, Array, Array]:
    """`LocalModel.predict` of many inputs (k, d): (k, T), (k,) and (k, m)."""
    features = model.features
    if not features.n_centers:
        return np.zeros((len(X), model.core.n_outputs)), np.zeros(len(X)), np.zeros((len(X), 0))
    kernel = np.exp(-features.gamma * cdist(features.centers, X, "sqeuclidean"))
    phi = np.ascontiguousarray(solve_triangular(features.factor, kernel, lower=True).T)
    outputs, leverage = _outputs(model.core, phi)
    variance = 1.0 - np.sum(phi**2, axis=1) + model.core.penalty * leverage
    return outputs, np.clip(1.0 - variance, 0.0, 1.0), phi


def _outputs(core: RecursiveLeastSquares, rows: Array) -> tuple[Array, Array]:
    """Outputs (k, T) and leverages (k,) at feature rows (k, D)."""
    n = core.n_features
    solved = solve_triangular(core.R[:n, :n], rows.T, trans="T")
    return solved.T @ core.U[:n], np.sum(solved**2, axis=0)


def _residuals(model: LocalModel, outputs: Array, parameters: Array) -> Array:
    """`LocalModel.residual` of rows of outputs (k, T), with each one's parameters."""
    columns = np.zeros((len(model.axis), model.n_axes))
    columns[np.arange(len(model.axis)), model.axis] = 1.0
    moved = outputs[:, model.n_axes :] * parameters[:, model.column]
    left: Array = outputs[:, : model.n_axes] - moved @ columns
    return left
