"""The parametric part: recursive identification of the base parameters (thesis 8.2.1, 8.2.4)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from semiparam_dynamics.base.arrays import Array, Indices, Mask
from semiparam_dynamics.base.jit import compiled_as_written
from semiparam_dynamics.base.parameters import parameter
from semiparam_dynamics.base.storage import sub_state
from semiparam_dynamics.dynamics.evidence import EVIDENCE_GROWTH, EVIDENCE_START, Evidence
from semiparam_dynamics.dynamics.moments import Excitation, Moments, forget_excited
from semiparam_dynamics.dynamics.sample import Motion
from semiparam_dynamics.learning.recursion.factor import DeferredRotation
from semiparam_dynamics.learning.recursion.forgetting import ForgettingClock
from semiparam_dynamics.learning.recursion.nonnegative import (
    NONNEGATIVE,
    normal_equations,
    solve_nonnegative,
)
from semiparam_dynamics.learning.recursion.rotation import note_row, predict_row, rotate_pending
from semiparam_dynamics.robot.model import ExpectedScales, RobotModel, expected_scales

MOTION_BLOCK = 512  # samples of a motion that are learned at a time
LEAST_PRECISION = 1e-6  # of a step, of an output's mean square: what was excited outweighs it
MAX_EXPECTED_ERROR = 2.0  # deviations that an error counts as at most for what is usual
MIN_SPREAD_SHARE = 0.01  # of an output's scale, that a deviation is at least
# Where errors are unusual half of the time, over so many independent samples, they become usual.
LASTING_SAMPLES = 30.0
# Usual errors follow the last quarter of all independent samples, at most so many.
RECENT_SHARE, MAX_HORIZON = 0.25, 200.0

COUNT, SEEN, DUE = range(3)


@dataclass(frozen=True)
class RigidBodyConfig:
    """Identification of the rigid body's parameters."""

    prior: str = parameter(
        "urdf",
        "where identification starts, and what stays where the motion shows nothing: the URDF's "
        "parameters, or zero, as in the thesis",
        choices=("urdf", "zero"),
    )
    unusual: float = parameter(
        4.0,
        "a sample whose error is beyond so many usual deviations, as in a contact, counts less, "
        "by the square of how far, until that lasts; 0: all count alike",
        low=0.0,
        high=1e6,
        live=True,
        internal="beyond 4 deviations samples count less; see `output.gate`",
    )
    memory: float = parameter(
        0.0,
        "for about how long what was learned counts, so that a load or warming up is followed; "
        "0: for ever",
        unit="s",
        low=0.0,
        high=1e7,
        live=True,
    )


@dataclass(frozen=True, slots=True)
class RigidBodyBlock:
    """Predictions of k samples by the rigid body, and the parameters that it then had."""

    values: Array  # (k, n_axes)
    variances: Array  # (k, n_axes) of the values by what is not known of parameters, (N m)^2 or N^2
    parameters: Array  # (k, n_parameters), or (k, 0) where they were not asked for
    weights: Array  # (k, n_axes) with which the rows were learned, and a residual is to be

    @classmethod
    def none(cls, y: Array, weights: Array) -> RigidBodyBlock:
        """Of no rigid body: k samples (k, n_axes) of given weights (k,)."""
        zeros, of_axes = np.zeros_like(y), np.repeat(weights[:, None], y.shape[1], axis=1)
        return cls(zeros, zeros, np.zeros((len(y), 0)), of_axes)

    @classmethod
    def join(cls, parts: Sequence[RigidBodyBlock]) -> RigidBodyBlock:
        """One after the other; of parameters, as many as all of them have."""
        if len(parts) == 1:
            return parts[0]
        known = min(part.parameters.shape[1] for part in parts)
        return cls(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.variances for part in parts]),
            np.concatenate([part.parameters[:, :known] for part in parts]),
            np.concatenate([part.weights for part in parts]),
        )


class Memory(NamedTuple):
    """The learned state in addition to the factor and the moments, changed in place."""

    parameters: Array  # (n_parameters,)
    held: Mask  # (m,) which bounded parameters of the last m are zero
    square: Array  # (n_axes,) sum of squares of y
    # (3,): COUNT, weights of these; SEEN, weights of samples, and DUE, at how many of these the
    # evidence is looked at next.
    sums: Array
    usual: Array  # (n_axes,) running mean square of usual errors
    often: Array  # (n_axes,) running share of errors that are not
    levels: Array  # (n_axes,) how far beyond it errors are, or were a moment ago


class RigidBodyIdentifier:
    """y = Phi(x) pi, learned row by row; predicts and updates at a cost fixed by len(pi).

    The parameters are those most probable after the rows seen, given how far they may be from the
    URDF's and how large each axis' noise is (:mod:`semiparam_dynamics.dynamics.evidence`): a
    recursive regularised least squares, R'R pi = R'U, that begins anew from the rows' moments when
    the evidence has been looked at again. Friction's parameters are never negative (`dissipative`),
    which keeps columns of nearly the same shape from being played off against one another.

    A row with an error far beyond what is usual counts less, as a contact is not the robot's own
    dynamics: beyond `config.unusual` deviations its weight falls with the error's square (Cauchy's
    and Tukey's idea; Zhang 1997, "Parameter estimation techniques", section 9). What lasts becomes
    usual.

    With a memory, a sample's rows together count exp(-age / memory) in what the motion keeps
    exciting, and the rest is kept; a twentieth of the memory passes at a time.

    Parameters
    ----------
    mean : (n_parameters,) where identification starts.
    dissipative : (n_parameters,) those that are never negative; None: none.
    """

    SCALE_SAMPLES = 10.0  # weight of the expected scale, in samples
    MEMORY_STEP = 0.05  # of the memory, in which it passes

    def __init__(
        self,
        scales: ExpectedScales,
        mean: Array,
        config: RigidBodyConfig,
        dissipative: Mask | None = None,
    ) -> None:
        self.n_parameters = n = len(mean)
        self._scales, self._mean = scales, mean.copy()
        self._signed: Mask = np.zeros(n, dtype=np.bool_) if dissipative is None else dissipative
        bounded = self._signed * NONNEGATIVE
        first = int(np.argmax(bounded > 0)) if bounded.any() else n
        self._tail: tuple[int, Indices] = first, bounded[first:].astype(np.int64)
        self._work = np.zeros((2 * (n - first) + 3, n - first))
        n_axes = len(scales.output)
        self._moments = Moments.zeros(n_axes, n)
        self._memory = memory = Memory(
            parameters=mean.copy(),
            held=np.zeros(n - first, dtype=np.bool_),
            square=self.SCALE_SAMPLES * scales.output**2,
            sums=np.array([self.SCALE_SAMPLES, 0.0, EVIDENCE_START]),
            usual=scales.output**2,
            often=np.zeros(n_axes),
            levels=np.zeros(n_axes),
        )
        self.parameters: Array = memory.parameters.copy()
        self.core = DeferredRotation(np.ones(n), 1)
        self.evidence = Evidence.before_data(scales)
        self._begin_anew()
        self._unusual = _square(config.unusual)
        self._excitation = Excitation(*np.zeros((2, n_axes, n, n)))
        self._clock = ForgettingClock(config.memory, self.MEMORY_STEP)

    @classmethod
    def of(cls, model: RobotModel, config: RigidBodyConfig) -> RigidBodyIdentifier:
        """An identifier of a robot's parameters, with nothing learned yet."""
        mean = model.prior if config.prior == "urdf" else np.zeros(model.n_parameters)
        return cls(expected_scales(model), mean, config, model.dissipative)

    def configure(self, config: RigidBodyConfig) -> None:
        """Take the memory from `config`; what was learned stays as it is."""
        self._unusual = _square(config.unusual)
        if self._clock.memory == 0.0:
            self._forget_excitation()
        self._clock.memory = config.memory

    def predict(self, regressor: Array) -> Array:
        """Phi pi, (n_axes,)."""
        value: Array = regressor @ self.parameters
        return value

    def variance(self, regressor: Array) -> Array:
        """Variance of each output by the parameters', (n_axes,), (N m)^2 or N^2."""
        return self.core.leverages(regressor)

    def variances(self, regressors: Array) -> Array:
        """:meth:`variance` of each regressor, (k, n_axes) for (k, n_axes, n_parameters)."""
        rows = regressors.reshape(-1, self.n_parameters)
        return self.core.leverages(rows).reshape(regressors.shape[:2])

    def update(
        self, regressor: Array, y: Array, stamp: int = 0, weight: float = 1.0
    ) -> RigidBodyBlock:
        """Learn from Phi (n_axes, n_parameters) and y (n_axes,); `stamp` in ns, for the memory.

        weight : of the sample. Returns its prediction before, and what a residual is to learn by.
        """
        one = regressor[None], y[None], np.array([stamp]), np.array([weight])
        return self.update_block(*one)

    def predict_block(self, regressors: Array) -> RigidBodyBlock:
        """Predict k samples, regressors (k, n_axes, n_parameters), with today's parameters."""
        values = regressors @ self.parameters
        parameters = np.broadcast_to(self.parameters, (len(values), self.n_parameters))
        variances = self.variances(regressors)
        return RigidBodyBlock(values, variances, parameters, np.zeros(values.shape))

    def update_block(
        self,
        regressors: Array,
        y: Array,
        stamps: Indices,
        weights: Array,
        *,
        parameters: bool = True,
    ) -> RigidBodyBlock:
        """Predict and then :meth:`update` each of k samples, in turn, with the same numbers.

        regressors : (k, n_axes, n_parameters); y : (k, n_axes); stamps : (k,) ns; weights : (k,).
        parameters : whether those of each sample are returned.
        """
        regressors = np.ascontiguousarray(regressors, dtype=np.float64)
        y, weights = (np.ascontiguousarray(a, dtype=np.float64) for a in (y, weights))
        stamps = np.asarray(stamps, dtype=np.int64)
        parts, start = [], 0
        while start < len(y):
            rows = slice(start, self._end_of_part(weights, start))
            block = regressors[rows], y[rows], stamps[rows], weights[rows]
            parts.append(self._learn(*block, parameters=parameters))
            start = rows.stop
        # A new array: who holds the one from before keeps what it said.
        self.parameters = self._memory.parameters.copy()
        return RigidBodyBlock.join(parts)

    def _end_of_part(self, weights: Array, start: int) -> int:
        """The row before which something other than learning rows is due."""
        if self._clock.memory > 0.0 or start + 1 == len(weights):
            return start + 1
        seen = weights[start:].copy()
        seen[0] += self._memory.sums[SEEN]
        due = int(np.searchsorted(np.cumsum(seen), self._memory.sums[DUE]))
        return start + min(due + 1, len(seen))

    def _learn(
        self, regressors: Array, y: Array, stamps: Indices, weights: Array, *, parameters: bool
    ) -> RigidBodyBlock:
        """:meth:`update_block` of samples within which nothing else is due."""
        path = np.empty((len(y) if parameters else 0, self.n_parameters))
        values, variances, learned = (np.empty(y.shape) for _ in range(3))
        information = self.evidence.information
        block = RigidBodyBlock(values, variances, path, learned)
        found = values, variances, path, learned
        samples = regressors, y, weights, self._unusual, information
        arrays = tuple(self._memory), tuple(self._moments)
        self.core.run(learn_samples, samples, self._tail, *arrays, self._work, found)
        if (fraction := self._clock.forgetting_fraction(int(stamps[-1]))) > 0.0:
            self._forget(fraction)
        if self._memory.sums[SEEN] >= self._memory.sums[DUE]:
            self.infer()
        return (
            block if parameters else dataclasses.replace(block, parameters=path.reshape(len(y), 0))
        )

    def infer(self) -> None:
        """Look at the evidence again, and take the parameters that are most probable by it."""
        sums, moments = self._memory.sums, self._moments
        mean_squares = self._memory.square / sums[COUNT]
        self.evidence = self.evidence.improve(moments, self._scales, self._mean, mean_squares)
        sums[DUE] = sums[SEEN] + (EVIDENCE_GROWTH - 1.0) * moments.weights.max()
        self._begin_anew()
        self.parameters = self._memory.parameters.copy()

    def _begin_anew(self) -> None:
        """Take the factor, and the parameters, that the moments and the evidence make."""
        R, U = self.evidence.posterior(self._moments, self._scales, self._mean)
        self.core.replace(R, U[:, None])
        self.core.run(solve, *self._tail, self._memory.held, self._work, self._memory.parameters)

    def restricted(self, kept: Mask) -> Array:
        """(n,) the parameters most probable by what was learned if those not `kept` (n,) are 0."""
        scales = self._scales.restricted(kept)
        other = RigidBodyIdentifier(scales, self._mean[kept], RigidBodyConfig(), self._signed[kept])
        other._moments = self._moments.restricted(kept)
        other._memory.square[:], other._memory.sums[:] = self._memory.square, self._memory.sums
        other.infer()
        found = np.zeros(self.n_parameters)
        found[kept] = other._memory.parameters
        return found

    def least_squares(self) -> Array:
        """(n,) the parameters that leave the least error on what was learned, over the axes' noise.

        Where nothing was excited they are those of the start.
        """
        free = np.full_like(self.evidence.precisions, LEAST_PRECISION)
        evidence = self.evidence._replace(precisions=free)
        R, U = evidence.posterior(self._moments, self._scales, self._mean)
        return np.asarray(solve_triangular(R, U))

    def update_motion(self, motion: Motion) -> RigidBodyBlock:
        """:meth:`update` with all samples; predictions of each just before that."""
        found = [
            self.update_block(
                block.regressors, block.y, block.stamps, block.weights, parameters=False
            )
            for block in motion.blocks(MOTION_BLOCK)
        ]
        return RigidBodyBlock.join(found)

    def _forget(self, fraction: float) -> None:
        """Let what newer motion shows again count less."""
        best = self.core.solve(self.core.U)[:, 0]
        information = self.evidence.information
        forget_excited(self._moments, self._excitation, best, information, fraction)
        self._begin_anew()

    def _forget_excitation(self) -> None:
        """From now on rows are recent."""
        self._excitation.recent[:] = 0.0
        self._excitation.before[:] = self._moments.products

    @property
    def effective_rows(self) -> float:
        """Number of rows learned, in independent ones, discounted by the memory."""
        rows: float = self._moments.weights.sum()
        return rows

    def standard_deviations(self) -> Array:
        """Of each parameter, (n_parameters,), in the parameter's own unit."""
        inverse = self.core.solve(np.eye(self.n_parameters))
        deviations: Array = np.linalg.norm(inverse, axis=1)
        return deviations

    def excitation_rank(self) -> int:
        """Number of independent combinations of parameters that the motion has excited.

        Those of which the data say more than the URDF does, out of n_parameters.
        """
        root = self._scales.root(self.evidence.precisions)
        self.core.apply_pending()
        scaled = solve_triangular(root, self.core.R.T, trans=1)
        return int(np.sum(np.linalg.svd(scaled, compute_uv=False) ** 2 > 2.0))

    def copy_from(self, other: RigidBodyIdentifier) -> None:
        """Become a copy of `other`, of the same configuration, in the memory at hand."""
        self.core.copy_from(other.core)
        self._restore_beside_core(other._state_beside_core())

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        self.core.apply_pending()
        core = {"core.R": self.core.R.copy(), "core.U": self.core.U.copy()}
        return core | self._state_beside_core()

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        self.core.replace(state["core.R"], state["core.U"])
        self._restore_beside_core(state)

    def _arrays(self) -> dict[str, Array]:
        """The arrays that are changed in place, by name."""
        arrays = self._memory._asdict()
        arrays |= {f"moments.{name}": value for name, value in self._moments._asdict().items()}
        if self._clock.memory > 0.0:
            arrays |= {f"excitation.{k}": v for k, v in self._excitation._asdict().items()}
        return arrays

    def _state_beside_core(self) -> dict[str, Array]:
        state = {f"clock.{name}": value for name, value in self._clock.state().items()}
        state |= {f"evidence.{k}": v.copy() for k, v in self.evidence._asdict().items()}
        # Solving for the parameters again would round differently.
        return state | {name: value.copy() for name, value in self._arrays().items()}

    def _restore_beside_core(self, state: dict[str, Array]) -> None:
        for name, value in self._arrays().items():
            if name in state:
                value[:] = state[name]
        if "excitation.recent" not in state:
            self._forget_excitation()
        self.parameters = self._memory.parameters.copy()
        self.evidence = Evidence(**sub_state(state, "evidence."))
        self._clock.restore(sub_state(state, "clock."))


def _square(unusual: float) -> float:
    return unusual**2 if unusual > 0.0 else 1e300


@compiled_as_written
def learn_samples(
    R: Array,
    U: Array,
    work: Array,
    side: Array,
    n: int,
    samples: tuple[Any, ...],
    tail: tuple[Any, ...],
    memory: tuple[Any, ...],
    moments: tuple[Any, ...],
    solver: Array,
    block: tuple[Any, ...],
) -> None:
    """Predict and then learn k samples in turn: :class:`RigidBodyIdentifier`.

    R, U, work, side, n : see `recursion.rotation`.
    samples : regressors (k, n_axes, n); y (k, n_axes), NaN where not measured; shares (k,) of an
        independent sample; unusual, the square of an error, in expected ones, beyond which a row
        counts less; information (n_axes,) of a row, see `Evidence`.
    tail : first, the column at which the bounded ones begin; from there on how each is.
    memory : the arrays of `Memory`. moments : those of `Moments`.
    solver : see `solve_nonnegative`.
    block : filled with the arrays of `RigidBodyBlock`; its parameters may be (0, n).
    """
    regressors, y, shares, unusual, information = samples
    parameters, held, square, sums, usual, often, levels = memory
    values, variances, path, weights = block
    first, bounded = tail
    n_axes = y.shape[1]
    errors = np.empty(n_axes)
    for s in range(len(y)):
        if len(path):
            for i in range(n):
                path[s, i] = parameters[i]
        for j in range(n_axes):
            row, value = regressors[s, j], 0.0
            for i in range(n):
                value += row[i] * parameters[i]
            values[s, j], errors[j] = value, y[s, j] - value
            variances[s, j] = predict_row(R, U, work, side, row, n, False, False)
        share = shares[s]
        sums[SEEN] += share
        step = share / min(max(RECENT_SHARE * sums[SEEN], 2.0), MAX_HORIZON)
        scales = square / sums[COUNT]
        for j in range(n_axes):
            weights[s, j] = 0.0
            if not math.isfinite(y[s, j]):
                square[j] += share * scales[j]
                continue
            expected = max(usual[j], MIN_SPREAD_SHARE**2 * scales[j]) + variances[s, j]
            size = errors[j] ** 2 / expected
            levels[j] = max(size, levels[j] * math.exp(-share))
            weight = share * unusual / max(levels[j], unusual)
            often[j] += min(share / LASTING_SAMPLES, 1.0) * ((size > unusual) - often[j])
            if often[j] >= 0.5:
                usual[j] += step * (errors[j] ** 2 - usual[j])
            elif size <= unusual:
                size = min(size, MAX_EXPECTED_ERROR**2) * expected
                usual[j] += step * (size - usual[j])
            # What is unusual says nothing about the output's scale.
            square[j] += (share - weight) * scales[j] + weight * y[s, j] ** 2
            weights[s, j] = weight
            learn_row(
                R, U, work, side, n, moments, regressors[s, j], j, y[s, j], weight, information[j]
            )
        sums[COUNT] += share
        solve(R, U, work, side, n, first, bounded, held, solver, parameters)


@compiled_as_written
def learn_row(
    R: Array,
    U: Array,
    work: Array,
    side: Array,
    n: int,
    moments: tuple[Any, ...],
    row: Array,
    axis: int,
    target: float,
    weight: float,
    information: float,
) -> None:
    """Rotate an axis' row (n,) into R and U, and add it to its moments."""
    products, targets, squares, weights = moments
    for i in range(n):
        value = weight * row[i]
        if value != 0.0:
            targets[axis, i] += value * target
            for k in range(i, n):
                products[axis, i, k] += value * row[k]
    squares[axis] += weight * target * target
    weights[axis] += weight
    root = math.sqrt(weight * information)
    predict_row(R, U, work, side, row, n, False, False)
    note_row(work, side, np.array([target * root]), n, root)
    rotate_pending(R, U, work, side, n)


@compiled_as_written
def solve(
    R: Array,
    U: Array,
    work: Array,
    side: Array,
    n: int,
    first: int,
    bounded: Indices,
    held: Mask,
    solver: Array,
    parameters: Array,
) -> None:
    """The parameters (n,) that are most probable, those from `first` on within their bounds."""
    normal_equations(R, U[:, 0], first, solver)
    solve_nonnegative(R, U[:, 0], first, bounded, held, solver, parameters)
