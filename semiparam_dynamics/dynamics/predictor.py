"""Predictions by weights, of what an estimator knew at one moment: a few products, nothing solved.

With the rigid body's parameters fixed, the residual of each axis is one sum of kernel rows, or of
random features, times weights. What takes triangular solves, the confidence and the standard
deviations, is the estimator's answer on a sample just before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.jit import compiled, compiled_in_turn, subnormals_as_zero
from semiparam_dynamics.dynamics.inferred_kernel import sum_kernels
from semiparam_dynamics.dynamics.limits import OutputBound
from semiparam_dynamics.dynamics.residual import GROUPS, FourierFeatures, KernelResidual
from semiparam_dynamics.dynamics.sample import Prediction, ResidualPrediction, Sample
from semiparam_dynamics.learning.recursion.features import fourier_row_times, kernel_row_times

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
        standardizer, inferred = residual.standardizer, residual.inferred
        self._ready = standardizer.ready
        features, gamma = residual.model.features, 0.0
        if isinstance(features, FourierFeatures):
            points = features.frequencies
        else:
            points, gamma = features.centers.copy(), features.gamma
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
            _weights(residual, parameters),
            inferred.centers,
            inferred.metrics.copy(),
            inferred.weights_of(parameters),
        )

    def predict(self, sample: Sample, last: Prediction, *, fast: bool = False) -> Prediction:
        """Predict a sample; `last` is the estimator's own prediction of one just before it.

        fast : also predict `sample.fast`.
        """
        before = sample.fast if fast else None
        found = np.empty((3 if before is None else 6, self._n_axes))
        states = sample.q, sample.dq, sample.ddq, sample.regressor
        beside = states if before is None else (before.q, before.dq, before.ddq, before.regressor)
        within, within_fast = _predict(states, beside, found, self._limit, self._model)
        rigid, value, both = found[:3]
        if not within:
            both = self._bound(both, rigid)
        assessed = last.residual
        left = ResidualPrediction(value, assessed.confidence, assessed.novelty, self._ready)
        stds = last.rigid_body_std, last.semiparametric_std
        sharp = None
        if before is not None:
            sharp = found[5] if within_fast else self._bound.within(found[5])
        return Prediction(rigid, both, *stds, left, last.factor, sharp)


class PublishedModel:
    """The model that predicts while the estimator learns in another thread.

    Messages are answered by an immutable :class:`Predictor`, replaced as a whole: nothing waits.
    With `desired` there are two copies of the estimator as well, for desired states: one is read,
    while the other takes what was learned. A lock that cannot be had at once is that of the one
    that has just been replaced; writing waits for the end of an answer by the older one.

    Attributes
    ----------
    predictor: of what was written last. last: the estimator's assessment of one of the last
    samples. bound: that of predictions, which counts in `bounded`. desired: as given.
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
        """Have the estimator predict a sample, for what predictions take from it; returns that."""
        self.last = estimator.predict(sample)
        return self.last

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
def _weights(residual: KernelResidual, parameters: Array) -> Array:
    """(m, n_axes) weights of the recursion's kernel rows or features, or with the constant's."""
    model = residual.model
    model.core.apply_pending()
    U, exact = model.core.U, model.targets
    told = np.concatenate((exact.residuals(U, parameters), U[:, len(exact) :]), axis=1)
    return np.ascontiguousarray(model.features.weights(model.core.solve(told)))


@compiled_in_turn
def _predict(
    states: State, beside: State, found: Array, limit: Array, model: Any
) -> tuple[bool, bool]:
    """Predict one state (q, dq, ddq, regressor), and where `found` has room another one.

    Three rows (n_axes,) of `found` are filled for each: rigid body, residual, their sum. Returns
    whether each sum is within its limits (n_axes,).
    """
    within = _fill(states, found[:3], limit, model)
    if len(found) == 3:
        return within, True
    return within, _fill(beside, found[3:], limit, model)


@compiled
def _fill(state: State, found: Array, limit: Array, model: Any) -> bool:
    """:func:`_predict` of one state.

    model : of `Predictor`. groups : indices of `GROUPS`, none before there are scales. gamma : of
    the kernel at `points`; 0: these are frequencies.
    """
    q, dq, ddq, regressor = state
    parameters, turning, groups, offset, scale, points, gamma, weights = model[:8]
    centers, metrics, inferred_weights = model[8:]
    rigid, value, both = found[0], found[1], found[2]
    for j in range(rigid.size):
        total = 0.0
        for k in range(parameters.size):
            total += regressor[j, k] * parameters[k]
        rigid[j] = total
        value[j] = 0.0
    if groups.size > 0:
        x = np.empty(scale.size)
        _fill_inputs(q, dq, ddq, rigid, turning, groups, x)
        for k in range(x.size):
            x[k] = (x[k] - offset[k]) * scale[k]
        told = np.empty(weights.shape[1])
        if gamma > 0.0:
            kernel_row_times(points, x, gamma, False, weights, told)
        else:
            fourier_row_times(points, x, weights, told)
        sum_kernels(centers, metrics, x, inferred_weights, both)
        known = told[told.size - 1] if told.size > rigid.size else 1.0
        for j in range(rigid.size):
            value[j] = told[j] + (1.0 - known) * both[j]
    within = True
    for j in range(rigid.size):
        both[j] = rigid[j] + value[j]
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
