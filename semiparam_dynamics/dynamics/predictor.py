"""Predictions by weights, of what an estimator knew at one moment: a few products, nothing solved.

With the rigid body's parameters fixed, the residual of each axis is one sum of kernel rows, or of
random features, times weights. What takes triangular solves, the confidence and with it the trust
and the standard deviations, is the estimator's answer on a sample just before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.jit import compiled, compiled_in_turn, subnormals_as_zero
from semiparam_dynamics.dynamics.limits import OutputBound
from semiparam_dynamics.dynamics.residual import GROUPS, FourierFeatures, JointModel, KernelModel
from semiparam_dynamics.dynamics.sample import Prediction, ResidualPrediction, Sample
from semiparam_dynamics.learning.recursion.features import fourier_row_times, kernel_row_times
from semiparam_dynamics.learning.recursion.vectors import LOG2_E, powers_of_two

if TYPE_CHECKING:
    from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator


class Predictor:
    """Predicts what `estimator` does now, whatever is learned later; it is never changed.

    Parameters
    ----------
    bound: that of the predictions, with the counts that are to be kept.
    """

    def __init__(self, estimator: SemiparametricEstimator, bound: OutputBound) -> None:
        residual, parameters = estimator.residual, estimator.rigid_body.parameters
        self._bound = bound
        self._n_axes = estimator.model.n_axes
        standardizer, shared = residual.standardizer, residual.shared
        self._ready = standardizer.ready
        features, gamma = shared.features, 0.0
        if isinstance(features, FourierFeatures):
            points = features.frequencies
        else:
            points, gamma = features.centers.copy(), features.gamma
        weights = _weights(shared, parameters)
        groups = [GROUPS.index(group) for group in residual.groups]
        self._arguments: tuple[Any, ...] = (
            parameters.copy(),
            residual.turning,
            np.array(groups if self._ready else [], dtype=np.intp),
            standardizer.offset.copy(),
            standardizer.scale.copy(),
            points,
            gamma,
            weights,
            bound.limit,
            *_joint_rows(residual.joints, parameters),
        )

    def predict(self, sample: Sample, last: Prediction) -> Prediction:
        """Predict a sample; `last` is the estimator's own prediction of one just before it.

        It can't be learned by: it has no features.
        """
        s, found = sample, np.empty((4, self._n_axes))
        states = s.q, s.dq, s.ddq, s.regressor
        within = _predict(*states, last.trust, found, *self._arguments)
        rigid, value, own, both = found
        if not within:
            both = self._bound(both, rigid)
        left = ResidualPrediction(value, own, last.residual.confidence, self._ready)
        stds = last.rigid_body_std, last.semiparametric_std
        return Prediction(rigid, both, *stds, left, last.trust, last.factor)


@subnormals_as_zero
def _weights(model: KernelModel, parameters: Array) -> Array:
    """W (m, n_axes): the residuals y - Phi pi are the kernel's rows, or the features, times W."""
    model.core.apply_pending()
    U, n = model.core.U, model.n_axes
    folded = U[:, :n].copy()
    if len(model.axis):
        on_axis = model.axis[:, None] == np.arange(n)
        folded -= U[:, n:] @ (parameters[model.column, None] * on_axis)
    return np.ascontiguousarray(model.features.weights(model.core.solve(folded)))


def _joint_rows(joints: Sequence[JointModel], parameters: Array) -> tuple[Array | Indices, ...]:
    """The joints' models as arrays: inputs, sizes, gammas, centres (inputs first) and weights."""
    widest = max((len(joint.inputs) for joint in joints), default=0)
    most = max((joint.features.n_centers for joint in joints), default=0)
    inputs = np.zeros((len(joints), widest), dtype=np.intp)
    sizes = np.zeros((len(joints), 2), dtype=np.intp)
    gammas = np.zeros(len(joints))
    centers, weights = np.zeros((len(joints), widest, most)), np.zeros((len(joints), most))
    for j, joint in enumerate(joints):
        d, m = sizes[j] = len(joint.inputs), joint.features.n_centers
        inputs[j, :d], gammas[j] = joint.inputs, joint.features.gamma
        centers[j, :d, :m] = joint.features.centers.T
        weights[j, :m] = _weights(joint.model, parameters)[:, 0]
    return inputs, sizes, gammas, centers, weights


@compiled_in_turn
def _predict(
    q: Array,
    dq: Array,
    ddq: Array,
    regressor: Array,
    trust: float,
    found: Array,
    parameters: Array,
    turning: Indices,
    groups: Indices,
    offset: Array,
    scale: Array,
    points: Array,
    gamma: float,
    weights: Array,
    limit: Array,
    inputs: Indices,
    sizes: Indices,
    gammas: Array,
    centers: Array,
    joint_weights: Array,
) -> bool:
    """Fill `found` (4, n_axes): rigid body, residual, its part near the joints' own data, the sum.

    Returns whether the sum is within its limits (n_axes,). groups : indices of `GROUPS`, none
    before there are scales. gamma : of the kernel at `points`; 0: these are frequencies.
    """
    rigid, value, own, both = found
    for j in range(rigid.size):
        total = 0.0
        for k in range(parameters.size):
            total += regressor[j, k] * parameters[k]
        rigid[j] = total
        value[j] = own[j] = 0.0
    if groups.size > 0:
        x = np.empty(scale.size)
        _fill_inputs(q, dq, ddq, rigid, turning, groups, x)
        for k in range(x.size):
            x[k] = (x[k] - offset[k]) * scale[k]
        if gamma > 0.0:
            kernel_row_times(points, x, gamma, weights, value)
        else:
            fourier_row_times(points, x, weights, value)
        _add_kernel_rows(inputs, sizes, gammas, centers, joint_weights, x, value, own)
    within = True
    for j in range(rigid.size):
        both[j] = rigid[j] + trust * value[j] + (1.0 - trust) * own[j]
        within = within and abs(both[j]) <= limit[j]
    return within


@compiled
def _fill_inputs(
    q: Array, dq: Array, ddq: Array, rigid: Array, turning: Indices, groups: Indices, x: Array
) -> None:
    """:meth:`KernelResidual.inputs` of one state."""
    n, start = q.size, 0
    for group in groups:
        if group == 0:
            for j in range(n):
                x[start + j] = q[j]
            for k in range(turning.size):
                x[start + turning[k]] = np.sin(q[turning[k]])
                x[start + n + k] = np.cos(q[turning[k]])
            start += n + turning.size
        else:
            part = dq if group == 1 else ddq if group == 2 else rigid
            for j in range(part.size):
                x[start + j] = part[j]
            start += part.size


@compiled
def _add_kernel_rows(
    inputs: Indices,
    sizes: Indices,
    gammas: Array,
    centers: Array,
    weights: Array,
    x: Array,
    values: Array,
    own: Array,
) -> None:
    """values_j += sum_i weights_ji exp(-gamma_j |x[inputs_j] - centers_j,:,i|^2).

    own_j is that times the square of the largest of these exponentials.
    """
    exponents = np.empty(weights.shape[1])
    for j in range(len(weights)):
        d, m = sizes[j]
        for i in range(m):
            exponents[i] = 0.0
        for axis in range(d):
            here, row = x[inputs[j, axis]], centers[j, axis]
            for i in range(m):
                delta = here - row[i]
                exponents[i] -= delta * delta
        nearest = -np.inf
        scale = LOG2_E * gammas[j]
        for i in range(m):
            exponents[i] *= scale
            nearest = max(nearest, exponents[i])
        powers_of_two(exponents[:m])
        total = 0.0
        for i in range(m):
            total += weights[j, i] * exponents[i]
        values[j] += total
        own[j] = np.exp2(2.0 * nearest) * total
