"""Predictions by weights, of what an estimator knew at one moment: a few products, nothing solved.

With the rigid body's parameters fixed, the residual of each axis is one sum of kernel rows, or of
random features, times weights. What takes triangular solves, the confidence and with it the trust
and the standard deviations, is the estimator's answer on a sample just before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.jit import compiled, compiled_in_turn, subnormals_as_zero
from semiparam_dynamics.dynamics.limits import OutputBound
from semiparam_dynamics.dynamics.residual import GROUPS, FourierFeatures, JointModel, KernelModel
from semiparam_dynamics.dynamics.sample import Prediction, ResidualPrediction, Sample
from semiparam_dynamics.learning.recursion.features import fourier_row_times, kernel_row_times
from semiparam_dynamics.learning.recursion.vectors import LOG2_E, powers_of_two

if TYPE_CHECKING:
    from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator


State = tuple[Array, Array, Array, Array]  # q, dq, ddq, regressor


class Predictor:
    """A snapshot of `estimator` that predicts; it is never changed.

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
        self._limit = bound.limit
        self._model: tuple[Any, ...] = (
            parameters.copy(),
            residual.turning,
            np.array(groups if self._ready else [], dtype=np.intp),
            standardizer.offset.copy(),
            standardizer.scale.copy(),
            points,
            gamma,
            weights,
            *_joint_rows((*residual.wide, *residual.narrow), parameters),
        )

    def predict(self, sample: Sample, last: Prediction, *, fast: bool = False) -> Prediction:
        """Predict a sample; `last` is the estimator's own prediction of one just before it.

        It can't be learned by: it has no features.

        fast : also predict `sample.fast`.
        """
        before = sample.fast if fast else None
        found = np.empty((4 if before is None else 8, self._n_axes))
        states = sample.q, sample.dq, sample.ddq, sample.regressor
        beside = states if before is None else (before.q, before.dq, before.ddq, before.regressor)
        within, within_fast = _predict(states, beside, last.trust, found, self._limit, self._model)
        rigid, value, own, both = found[:4]
        if not within:
            both = self._bound(both, rigid)
        assessed = last.residual
        left = ResidualPrediction(value, own, assessed.confidence, assessed.novelty, self._ready)
        stds = last.rigid_body_std, last.semiparametric_std
        sharp = None
        if before is not None:
            sharp = found[7] if within_fast else self._bound.within(found[7])
        return Prediction(rigid, both, *stds, left, last.trust, last.factor, sharp)


class PublishedModel:
    """The model that predicts while the estimator learns in another thread.

    Messages are answered by an immutable :class:`Predictor`, replaced as a whole, and by the
    estimator's own `last` assessment: nothing waits. With `desired` there are two copies of the
    estimator as well, for desired states: one is read, while the other takes what was learned. A
    lock that cannot be had at once is that of the one that has just been replaced; writing waits
    for the end of an answer by the older one.

    Attributes
    ----------
    predictor: of what was written last.
    last: the estimator's assessment of one of the last samples.
    bound: that of predictions, which counts in `bounded`.
    desired: as given.
    """

    def __init__(
        self, estimator: SemiparametricEstimator, bounded: Counter[str], desired: bool
    ) -> None:
        self.desired = desired
        self.bound = OutputBound(estimator.model, estimator.config.output)
        self.bound.counts = bounded
        self._copies = [(estimator.copy(), Lock()) for _ in range(2 if desired else 0)]
        for copy, _ in self._copies:
            copy.bound.counts = bounded
        self._newest = 0
        at_rest = np.zeros(estimator.model.n_joints)
        self.last = estimator.predict(estimator.sample(at_rest, at_rest, at_rest))
        self.predictor = Predictor(estimator, self.bound)

    @property
    def locks(self) -> list[Lock]:
        """Those of its copies."""
        return [lock for _, lock in self._copies]

    @contextmanager
    def read(self) -> Iterator[SemiparametricEstimator]:
        """The newest copy, which is not written to meanwhile; for one thread at a time.

        Raises ConfigurationError without `desired`.
        """
        if not self._copies:
            raise ConfigurationError("desired states are not answered here (feedforward)")
        copy, lock = self._copies[self._newest]
        while not lock.acquire(blocking=False):
            copy, lock = self._copies[self._newest]
        try:
            yield copy
        finally:
            lock.release()

    def assess(self, estimator: SemiparametricEstimator, sample: Sample) -> Prediction:
        """Have the estimator predict a sample, for what predictions take from it; returns that.

        Confidence, trust and deviations need its features, which learning needs, too.
        """
        estimator.trust.go_back(sample.stamp)  # later ones may have been assessed meanwhile
        self.last = estimator.predict(sample)
        return self.last

    def follow(self, estimator: SemiparametricEstimator, sample: Sample) -> None:
        """Assess a sample of which nothing is learned; copies take the trust, all else stays."""
        self.assess(estimator, sample)
        for copy, _ in self._copies:
            copy.trust = estimator.trust.copy()

    def write(self, estimator: SemiparametricEstimator) -> None:
        """Take what `estimator` has learned; later predictions are by that."""
        self.predictor = Predictor(estimator, self.bound)
        if self._copies:
            older = 1 - self._newest
            copy, lock = self._copies[older]
            with lock:
                copy.copy_from(estimator)
            self._newest = older


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
    states: State, beside: State, trust: float, found: Array, limit: Array, model: Any
) -> tuple[bool, bool]:
    """Predict one state (q, dq, ddq, regressor), and where `found` has room another one.

    Four rows (n_axes,) of `found` are filled for each: rigid body, residual, its part near the
    joints' own data, the sum. Returns whether each sum is within its limits (n_axes,).
    """
    within = _fill(states, trust, found[:4], limit, model)
    if len(found) == 4:
        return within, True
    return within, _fill(beside, trust, found[4:], limit, model)


@compiled
def _fill(state: State, trust: float, found: Array, limit: Array, model: Any) -> bool:
    """:func:`_predict` of one state.

    model : of `Predictor`. groups : indices of `GROUPS`, none before there are scales. gamma : of
    the kernel at `points`; 0: these are frequencies.
    """
    q, dq, ddq, regressor = state
    parameters, turning, groups, offset, scale, points, gamma, weights = model[:8]
    inputs, sizes, gammas, centers, joint_weights = model[8:]
    rigid, value, own, both = found[0], found[1], found[2], found[3]
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

    Once more axes than there are come the narrow models; own_j is of the wide ones alone.
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
        scale = LOG2_E * gammas[j]
        for i in range(m):
            exponents[i] *= scale
        powers_of_two(exponents[:m])
        total = 0.0
        for i in range(m):
            total += weights[j, i] * exponents[i]
        values[j % own.size] += total
        if j < own.size:
            own[j] = total
