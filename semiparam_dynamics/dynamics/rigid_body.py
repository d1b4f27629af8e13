"""The parametric part: recursive identification of the base parameters (thesis 8.2.1, 8.2.4)."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from semiparam_dynamics.base.arrays import NANO, Array, Indices, Mask
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.base.jit import compiled_as_written
from semiparam_dynamics.base.parameters import parameter
from semiparam_dynamics.base.storage import sub_state
from semiparam_dynamics.dynamics.sample import Motion
from semiparam_dynamics.learning.recursion.forgetting import DirectionalForgetting, ForgettingClock
from semiparam_dynamics.learning.recursion.nonnegative import (
    FREE,
    NONNEGATIVE,
    ZERO,
    normal_equations,
    solve_nonnegative,
)
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares
from semiparam_dynamics.learning.recursion.rotation import note_row, predict_row, rotate_pending
from semiparam_dynamics.robot.model import ExpectedScales, RobotModel, expected_scales
from semiparam_dynamics.robot.regressor import OPTIONAL, PRESLIDING

MOTION_BLOCK = 512  # samples of a motion that are learned at a time

MAX_EXPECTED_ERROR = 2.0  # deviations that an error counts as at most for what is usual
MAX_LOSS_ERROR = 4.0  # and in what friction that remembers is judged by
MIN_SPREAD_SHARE = 0.01  # of an output's scale, that a deviation is at least
# A push begins and ends at once, on all joints between it and the base; the model's own errors go
# with the state, or jump on one joint at a time. So errors are compared with their mean over so
# many s, and changes of all axes together forgotten in that time; what is usual follows changes of
# up to so many deviations. Messages further apart, in s, have no change between them. Changes count
# as abrupt from so many times the square of `unusual` on: new motion makes errors grow fast, too.
ONSET_S, MAX_CHANGE, MAX_CHANGE_STEP_S, ABRUPT_RATIO = 0.12, 3.0, 0.5, 2.0
# Where errors are unusual half of the time, over so many independent samples, they become usual.
LASTING_SAMPLES = 30.0
# Usual errors and losses follow the last quarter of all independent samples, at most so many.
RECENT_SHARE, MAX_HORIZON = 0.25, 200.0
# But losses are equal at first, and follow so many at least. Candidates change little in a sample.
MIN_LOSS_HORIZON, SOLVE_PERIOD = 30.0, 4
# Loss with an optional kind of friction over that without, at which it begins to count, and ends.
MAX_LOSS_TO_BEGIN, MAX_LOSS_TO_STAY = 0.87, 0.95

# Independent samples after which the ridge follows the outputs' sizes, where the URDF's are not
# within this factor: masses that nobody filled in, or efforts in another unit.
RESIZE_COUNTS, MAX_SIZE_RATIO = (4.0, 16.0, 64.0), 4.0

# Parameters: as used; and candidates, without optional columns, and with one kind more each.
USED, PLAIN, SOLUTIONS = 0, 1, 2 + len(OPTIONAL)
COUNT, SQUARED_ERROR, ROWS, SEEN, SIZE, SOLVE_COUNT = range(6)


@dataclass(frozen=True)
class RigidBodyConfig:
    """Identification of the rigid body's parameters."""

    penalty: float = parameter(
        0.1,
        "ridge on the parameters, each in units of its contribution in an ordinary motion, of "
        "bodies in units of the URDF's; 1 weighs as much as one independent sample",
        low=1e-12,
        high=1e12,
        live=True,
    )
    prior: str = parameter(
        "zero",
        "where identification starts and what the ridge pulls to: zero, or the URDF's parameters",
        choices=("zero", "urdf"),
    )
    unusual: float = parameter(
        4.0,
        "a sample whose error is beyond so many usual deviations, as in a contact, counts less, "
        "by the square of how far, until that lasts; still less where the errors of all axes "
        "change at once; 0: all count alike",
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
    forgetting: str = parameter(
        "directional",
        "what a memory forgets: only what newer motion shows again (directional), or everything "
        "at one rate, so that a robot at rest comes back to the prior (exponential)",
        choices=("directional", "exponential"),
        live=True,
        internal="a memory forgets what newer motion shows again",
    )


@dataclass(frozen=True, slots=True)
class RigidBodyBlock:
    """Predictions of k samples by the rigid body, and the parameters that it then had."""

    values: Array  # (k, n_axes)
    leverages: Array  # (k, n_axes)
    parameters: Array  # (k, n_parameters), or (k, 0) where they were not asked for
    weights: Array  # (k, n_axes) with which the rows were learned
    residual_weights: Array  # (k, n_axes) with which a residual is to learn what they left

    def rows(self, chosen: slice) -> RigidBodyBlock:
        """Some of the predictions."""
        return RigidBodyBlock(*(getattr(self, entry.name)[chosen] for entry in fields(self)))

    @classmethod
    def join(cls, parts: Sequence[RigidBodyBlock]) -> RigidBodyBlock:
        """One after the other; of parameters, as many as all of them have."""
        if len(parts) == 1:
            return parts[0]
        known = min(part.parameters.shape[1] for part in parts)
        return cls(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.leverages for part in parts]),
            np.concatenate([part.parameters[:, :known] for part in parts]),
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("weights", "residual_weights")
            ),
        )


class Memory(NamedTuple):
    """The learned state in addition to the factor, changed in place.

    Several solutions are kept: the one that is used, and candidates with ever more of the optional
    columns.
    """

    parameters: Array  # (SOLUTIONS, n_parameters)
    held: Mask  # (SOLUTIONS, m) which bounded parameters of the last m are zero
    square: Array  # (n_axes,) sum of squares of y
    # (6,): COUNT, weights of these; SQUARED_ERROR and ROWS, squares of errors and weights of rows;
    # SEEN, weights of samples; SIZE, squared outputs over those that the URDF expects, or 1;
    # SOLVE_COUNT, samples since the candidates were solved for.
    sums: Array
    usual: Array  # (n_axes,) running mean square of usual errors
    often: Array  # (n_axes,) running share of errors that are not
    levels: Array  # (n_axes,) how far beyond it errors are, or were a moment ago
    recent: Array  # (n_axes,) running mean error of the last moment
    changes: Array  # (n_axes,) running mean square of how far errors are from that
    onset: Array  # (2,) how unusual the changes of all axes are, or were a moment ago; how often
    stamp: Indices  # (1,) ns, of the last row
    losses: Array  # (SOLUTIONS - 1, n_axes) running mean squares of errors, in usual ones
    chosen: Mask  # (kinds, n_axes) on which joints each kind of optional columns counts


class RigidBodyIdentifier:
    """y = Phi(x) pi, learned row by row; predicts and updates at a cost fixed by len(pi).

    Rows are divided by their output's scale, so that newtons and newton metres weigh alike: the
    running root mean square of the output, begun with the one that the URDF expects. The ridge
    measures bodies in the geometry of what can exist (`robot.model.ExpectedScales.root`), and
    follows the outputs' size where the URDF's is wrong by more than `MAX_SIZE_RATIO`.

    Dry friction only takes energy, so that its parameters are never negative (`dry`): that keeps
    columns of nearly the same shape from being played off against one another. Each kind of
    `optional` columns counts on those joints where it has been predicting better than without.

    A row with an error far beyond what is usual counts less, as a contact is not the robot's own
    dynamics: beyond `config.unusual` deviations its weight falls with the error's square (Cauchy's
    and Tukey's idea; Zhang 1997, "Parameter estimation techniques", section 9). So does a sample
    whose errors change together and at once, in the mean of their squares over the axes beyond
    `ABRUPT_RATIO` times that, by the fourth power of how far: a push's share on each joint may be
    small. What lasts becomes usual.

    With a memory, a sample's rows together count exp(-age / memory) where forgetting is
    exponential. Where it is directional, that holds for what the motion keeps exciting, and the
    rest is kept; a twentieth of the memory passes at a time.
    """

    SCALE_SAMPLES = 10.0  # weight of the expected scale, in samples
    STEPS = {"directional": 0.05, "exponential": 0.001}  # in which memory passes

    def __init__(
        self,
        scales: ExpectedScales,
        prior: Array,
        config: RigidBodyConfig,
        dry: Mask | None = None,
        optional: Indices | None = None,
    ) -> None:
        self.n_parameters = n = len(prior)
        self.core = RecursiveLeastSquares(n, 1, config.penalty)
        self.core.set_prior(prior[:, None], scales.root)
        self._scales, self._start, self._penalty = scales, prior[:, None].copy(), config.penalty
        bounded = np.zeros(n, dtype=np.int64) if dry is None else dry * NONNEGATIVE
        kinds, joints = np.zeros((2, n), dtype=np.int64) if optional is None else optional
        special = (bounded != FREE) | (kinds > 0)
        first = int(np.argmax(special)) if np.any(special) else n
        bounded, kinds, joints = (a[first:].astype(np.int64) for a in (bounded, kinds, joints))
        self._tail: tuple[int, Indices, Indices, Indices] = first, bounded, kinds, joints
        self._work = np.zeros((2 * (n - first) + 3, n - first))
        n_axes = len(scales.output)
        self._memory = memory = Memory(
            parameters=np.tile(prior, (SOLUTIONS, 1)),
            held=np.zeros((SOLUTIONS, n - first), dtype=np.bool_),
            square=self.SCALE_SAMPLES * scales.output**2,
            sums=np.array([self.SCALE_SAMPLES, 0.0, 0.0, 1.0, 1.0, 0.0]),
            usual=scales.output**2,
            often=np.zeros(n_axes),
            levels=np.zeros(n_axes),
            recent=np.zeros(n_axes),
            changes=scales.output**2,
            onset=np.zeros(2),
            stamp=np.zeros(1, dtype=np.int64),
            losses=np.ones((SOLUTIONS - 1, n_axes)),
            chosen=np.zeros((len(OPTIONAL), n_axes), dtype=np.bool_),
        )
        self.parameters: Array = memory.parameters[USED]
        self._unusual = _square(config.unusual)
        self.forgetting = config.forgetting
        self._clock = ForgettingClock(config.memory, self.STEPS[config.forgetting])
        self._directions = DirectionalForgetting(self.core.R)
        self._penalty_before = config.penalty  # the one that the directions were taken with

    @classmethod
    def of(cls, model: RobotModel, config: RigidBodyConfig) -> RigidBodyIdentifier:
        """An identifier of a robot's parameters, with nothing learned yet."""
        prior = model.prior if config.prior == "urdf" else np.zeros(model.n_parameters)
        return cls(expected_scales(model), prior, config, model.dry, model.optional)

    @property
    def remembers(self) -> Mask:
        """On which joints (n_axes,) friction that remembers counts."""
        value: Mask = self.chosen[OPTIONAL.index(PRESLIDING)]
        return value

    @property
    def chosen(self) -> Mask:
        """On which joints each kind of `regressor.OPTIONAL` counts, (kinds, n_axes)."""
        return self._memory.chosen

    def configure(self, config: RigidBodyConfig) -> None:
        """Take the ridge and the memory from `config`; what was learned stays as it is."""
        self._penalty = config.penalty
        self.core.set_penalty(config.penalty / self._memory.sums[SIZE], self.parameters[:, None])
        self._unusual = _square(config.unusual)
        restart = config.forgetting != self.forgetting or self._clock.memory == 0.0
        self.forgetting = config.forgetting
        self._clock.memory, self._clock.step = config.memory, self.STEPS[config.forgetting]
        if restart:
            self._directions = DirectionalForgetting(self.core.R)
        elif self._penalty_before != self.core.penalty:
            self._directions.rebase(self.core.R)
        self._penalty_before = self.core.penalty

    def penalties(self, config: RigidBodyConfig) -> list[tuple[RecursiveLeastSquares, float]]:
        """The recursions of this model, with the ridge that `config` wants for each."""
        return [(self.core, config.penalty / self._memory.sums[SIZE])]

    def predict(self, regressor: Array) -> Array:
        """Phi pi, (n_axes,)."""
        value: Array = regressor @ self.parameters
        return value

    def leverage(self, regressor: Array) -> Array:
        """Variance of each output by the parameters', (n_axes,), in units of its noise's."""
        return self.core.leverages(regressor) * self._per_square

    def leverages(self, regressors: Array) -> Array:
        """:meth:`leverage` of each regressor, (k, n_axes) for (k, n_axes, n_parameters)."""
        # Of rows that are not divided by their scale: a leverage goes with the row's square.
        rows = regressors.reshape(-1, self.n_parameters)
        return self.core.leverages(rows).reshape(regressors.shape[:2]) * self._per_square

    @property
    def _per_square(self) -> Array:
        value: Array = self._memory.sums[COUNT] / self._memory.square
        return value

    def update(self, regressor: Array, y: Array, stamp: int = 0, weight: float = 1.0) -> Array:
        """Learn from Phi (n_axes, n_parameters) and y (n_axes,); `stamp` in ns, for the memory.

        weight : of the sample. Returns the weights (n_axes,) with which a residual is to learn what
        is left: less where an error was unusual.
        """
        one = regressor[None], y[None], np.array([stamp]), np.array([weight])
        weights: Array = self.update_block(*one).residual_weights[0]
        return weights

    def predict_block(self, regressors: Array) -> RigidBodyBlock:
        """Predict k samples, regressors (k, n_axes, n_parameters), with today's parameters."""
        values = regressors @ self.parameters
        parameters = np.broadcast_to(self.parameters, (len(values), self.n_parameters))
        leverages = self.leverages(regressors)
        return RigidBodyBlock(values, leverages, parameters, *np.zeros((2, *values.shape)))

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
        forgetful = self._clock.memory > 0.0
        ends = self._sized_after(weights)
        if len(y) > 1 and (forgetful or np.any(ends < len(y))):
            cuts = np.arange(len(y) + 1) if forgetful else np.unique(np.r_[0, ends, len(y)])
            rows = [slice(*pair) for pair in itertools.pairwise(cuts.tolist())]
            parts = [(regressors[i], y[i], stamps[i], weights[i]) for i in rows]
            return RigidBodyBlock.join(
                [self.update_block(*part, parameters=parameters) for part in parts]
            )
        before = self.leverages(regressors) if forgetful else None
        if (fraction := self._clock.forgetting_fraction(int(stamps[-1]))) > 0.0:
            self._forget(fraction)
        k, n = len(y), self.n_parameters
        path = np.empty((k if parameters else 0, n))
        empty = (np.empty(y.shape) for _ in range(4))
        block = RigidBodyBlock(next(empty), next(empty), path, *empty)
        regressors = np.ascontiguousarray(regressors, dtype=np.float64)
        y, weights = (np.ascontiguousarray(a, dtype=np.float64) for a in (y, weights))
        found = tuple(getattr(block, entry.name) for entry in fields(block))
        samples = regressors, y, np.asarray(stamps, dtype=np.int64), weights, self._unusual
        self.core.run(learn_samples, samples, self._tail, tuple(self._memory), self._work, found)
        if len(ends):
            self._follow_size()
        # A new array: who holds the one from before keeps what it said.
        self.parameters = self._memory.parameters[USED].copy()
        if before is not None:
            block.leverages[:] = before
        return block if parameters else dataclasses.replace(block, parameters=np.empty((k, 0)))

    def _sized_after(self, weights: Array) -> Indices:
        """After how many of some samples the ridge is to follow the outputs' sizes."""
        before = self._memory.sums[SEEN]
        if before >= RESIZE_COUNTS[-1]:
            return np.empty(0, dtype=np.int64)
        seen = np.cumsum(np.r_[before, weights])
        due = [
            np.searchsorted(seen, count) for count in RESIZE_COUNTS if before < count <= seen[-1]
        ]
        return np.array(due, dtype=np.int64)

    def _follow_size(self) -> None:
        """Take the ridge as it would be if the URDF had expected the outputs that came."""
        # Over all axes: those that carry weight have most to say, as mass makes both.
        squares = self._memory.square.sum() / self._memory.sums[COUNT]
        size = float(np.clip(squares / np.sum(self._scales.output**2), 1e-6, 1e6))
        if abs(math.log(size)) < 2.0 * math.log(MAX_SIZE_RATIO):
            size = 1.0
        if size == self._memory.sums[SIZE]:
            return
        try:
            self.core.set_penalty(self._penalty / size, self._start)
        except LearningError:  # too small beside what was learned to be put right
            return
        self._memory.sums[SIZE] = size
        self._directions.rebase(self.core.R)
        self._penalty_before = self.core.penalty

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
        """Before a sample is learned, so that it counts in full."""
        if self.forgetting == "directional":
            self.core.forget_excited(self._directions, fraction)
        else:
            self.core.forget(1.0 - fraction)
        self._memory.sums[[SQUARED_ERROR, ROWS]] *= 1.0 - fraction

    @property
    def effective_rows(self) -> float:
        """Number of rows learned, discounted by the memory."""
        rows: float = self._memory.sums[ROWS]
        return rows

    def standard_deviations(self) -> Array:
        """Of each parameter, (n_parameters,), in the parameter's own unit."""
        noise = self._memory.sums[SQUARED_ERROR] / max(self._memory.sums[ROWS], 1.0)
        deviations: Array = np.sqrt(noise * self.core.covariance_diagonal())
        return deviations

    def excitation_rank(self) -> int:
        """Number of independent combinations of parameters that the motion has excited.

        Those along which the data weigh more than the ridge, out of n_parameters.
        """
        scaled = solve_triangular(self._scales.root, self.core.R.T, trans=1)
        return int(np.sum(np.linalg.svd(scaled, compute_uv=False) ** 2 > 2.0 * self.core.penalty))

    def copy_from(self, other: RigidBodyIdentifier) -> None:
        """Become a copy of `other`, of the same configuration, in the memory at hand."""
        self.core.copy_from(other.core)
        self._restore_beside_core(other._state_beside_core())

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        core = {f"core.{name}": value for name, value in self.core.state().items()}
        return core | self._state_beside_core()

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        self.core.restore(sub_state(state, "core."))
        self._restore_beside_core(state)

    def _state_beside_core(self) -> dict[str, Array]:
        state = {f"clock.{name}": value for name, value in self._clock.state().items()}
        if self._clock.memory > 0.0 and self.forgetting == "directional":
            state |= {f"directions.{n}": v for n, v in self._directions.state().items()}
        # Solving for the parameters again would round differently.
        return state | {name: value.copy() for name, value in self._memory._asdict().items()}

    def _restore_beside_core(self, state: dict[str, Array]) -> None:
        for name, value in self._memory._asdict().items():
            value[:] = state[name]
        self.parameters = self._memory.parameters[USED].copy()
        self._directions = DirectionalForgetting(self.core.R)
        self._penalty_before = self.core.penalty
        if directions := sub_state(state, "directions."):
            self._directions.restore(directions)
        self._clock.restore(sub_state(state, "clock."))


def _square(unusual: float) -> float:
    return unusual**2 if unusual > 0.0 else 1e300


@compiled_as_written
def _together(
    seconds: float,
    share: float,
    step: float,
    unusual: float,
    y: Array,
    errors: Array,
    leverages: Array,
    squares: Array,
    recent: Array,
    changes: Array,
    onset: Array,
) -> float:
    """Weight of a sample by how its axes' errors change together, `seconds` after the one before.

    step : by which usual changes follow. squares : (n_axes,) of the outputs' scales. The others are
    those of one sample of `learn_samples`.
    """
    if not 0.0 < seconds <= MAX_CHANGE_STEP_S:
        for j in range(len(y)):
            recent[j] = errors[j] if math.isfinite(y[j]) else recent[j]
        onset[0] = 0.0
        return 1.0
    size, measured = 0.0, 0
    for j in range(len(y)):
        if math.isfinite(y[j]):
            usual = max(changes[j], MIN_SPREAD_SHARE**2 * squares[j])
            size += (errors[j] - recent[j]) ** 2 / (usual * (1.0 + leverages[j]))
            measured += 1
    size /= max(measured, 1)
    onset[0] = max(size, onset[0] * math.exp(-seconds / ONSET_S))
    onset[1] += min(share / LASTING_SAMPLES, 1.0) * ((size > unusual) - onset[1])
    weight = 1.0 if onset[1] >= 0.5 else (unusual / max(onset[0], unusual)) ** 2
    for j in range(len(y)):
        if math.isfinite(y[j]):
            usual = max(changes[j], MIN_SPREAD_SHARE**2 * squares[j])
            change = errors[j] - recent[j]
            square = min(change * change / (1.0 + leverages[j]), MAX_CHANGE**2 * usual)
            changes[j] += step * weight * (square - changes[j])
            recent[j] += min(seconds / ONSET_S, 1.0) * change
    return weight


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
    solver: Array,
    block: tuple[Any, ...],
) -> None:
    """Predict and then learn k samples in turn: :class:`RigidBodyIdentifier`.

    R, U, work, side, n : see `recursion.rotation`.
    samples : regressors (k, n_axes, n); y (k, n_axes), NaN where not measured; stamps (k,) ns;
        shares (k,) of an independent sample; unusual, the square of an error, in expected ones,
        beyond which a row counts less.
    tail : first, the column at which the last ones begin; of these how they are bounded, and
        `RobotModel.optional`.
    memory : the arrays of `Memory`.
    solver : see `solve_nonnegative`.
    block : filled with the arrays of `RigidBodyBlock`; its parameters may be (0, n).
    """
    regressors, y, stamps, shares, unusual = samples
    first, bounded, optional, joints = tail
    parameters, held, square, sums, usual, often, levels, recent, changes = memory[:9]
    onset, stamp, losses, chosen = memory[9:]
    values, leverages, path, weights, residual_weights = block
    n_axes = y.shape[1]
    errors, variances = np.empty((SOLUTIONS, n_axes)), np.empty(n_axes)
    last = 0  # of the kinds of optional columns that there are
    for i in range(len(optional)):
        last = max(last, optional[i])
    kinds = bounded.copy()
    for s in range(len(y)):
        if len(path):
            for i in range(n):
                path[s, i] = parameters[USED, i]
        for j in range(n_axes - 1, -1, -1):
            row = regressors[s, j]
            scale = square[j] / sums[COUNT]
            for c in range(SOLUTIONS):
                value = 0.0
                for i in range(n):
                    value += row[i] * parameters[c, i]
                errors[c, j] = y[s, j] - value
                if c == USED:
                    values[s, j] = value
            h = predict_row(R, U, work, side, row, n, False, False) / scale
            leverages[s, j] = h
            # What was never excited is as unknown as the ridge leaves it.
            least = max(usual[j], MIN_SPREAD_SHARE**2 * scale)
            variances[j] = least * (1.0 + h) + scale * h * h
        share = shares[s]
        sums[SEEN] += share
        step = share / min(max(RECENT_SHARE * sums[SEEN], 2.0), MAX_HORIZON)
        judged = min(step, share / MIN_LOSS_HORIZON)
        seconds = (stamps[s] - stamp[0]) * NANO
        stamp[0] = stamps[s]
        together = _together(
            seconds,
            share,
            step,
            ABRUPT_RATIO * unusual,
            y[s],
            errors[USED],
            leverages[s],
            square / sums[COUNT],
            recent,
            changes,
            onset,
        )
        for j in range(n_axes):
            h = leverages[s, j]
            weights[s, j], residual_weights[s, j] = 0.0, 0.0
            if not math.isfinite(y[s, j]):
                square[j] += share * square[j] / sums[COUNT]
                continue
            size = errors[USED, j] ** 2 / variances[j]
            levels[j] = max(size, levels[j] * math.exp(-share))
            weights[s, j] = share * min(together, unusual / max(levels[j], unusual))
            often[j] += min(share / LASTING_SAMPLES, 1.0) * ((size > unusual) - often[j])
            if often[j] >= 0.5:
                usual[j] += step * (errors[USED, j] ** 2 / (1.0 + h) - usual[j])
            elif size <= unusual:
                size = min(size, MAX_EXPECTED_ERROR**2) * variances[j] / (1.0 + h)
                usual[j] += step * (size - usual[j])
            # What a residual learns at one place no other sample puts right.
            known = max(usual[j], MIN_SPREAD_SHARE**2 * square[j] / sums[COUNT]) * (1.0 + h)
            level = max(levels[j], errors[USED, j] ** 2 / known)
            residual_weights[s, j] = share * min(together, unusual / max(level, unusual))
            # All are cut alike, so that what is unusual for all still tells which is better.
            largest = 0.0
            for c in range(PLAIN, SOLUTIONS):
                largest = max(largest, errors[c, j] ** 2 / variances[j])
            cut = MAX_LOSS_ERROR**2 / max(largest, MAX_LOSS_ERROR**2) / variances[j]
            for c in range(PLAIN, SOLUTIONS):
                loss = cut * errors[c, j] ** 2
                losses[c - PLAIN, j] += judged * (loss - losses[c - PLAIN, j])
            # What is unusual says nothing about the output's scale.
            square[j] += (share - weights[s, j]) * square[j] / sums[COUNT]
            square[j] += weights[s, j] * y[s, j] ** 2
            for k in range(len(chosen)):
                ratio = losses[1 + k, j] / losses[k, j]
                chosen[k, j] = ratio < (MAX_LOSS_TO_STAY if chosen[k, j] else MAX_LOSS_TO_BEGIN)
            count = sums[COUNT] + share
            row, root = regressors[s, j], math.sqrt(weights[s, j] * count / square[j])
            h = predict_row(R, U, work, side, row, n, False, False)
            target = np.array([y[s, j] * root])
            note_row(work, side, target, n, root)
            rotate_pending(R, U, work, side, n)
            sums[SQUARED_ERROR] += (errors[USED, j] * root) ** 2 / (1.0 + h * root * root)
            sums[ROWS] += weights[s, j]
        sums[COUNT] += share
        normal_equations(R, U[:, 0], first, solver)
        judge = last > 0 and sums[SOLVE_COUNT] == 0.0
        sums[SOLVE_COUNT] = (sums[SOLVE_COUNT] + 1.0) % SOLVE_PERIOD
        for c in range(PLAIN + last + 1 if judge else 1):
            for i in range(len(kinds)):
                kind = optional[i]
                counts = kind == 0 or (c != USED and kind <= c - PLAIN)
                if c == USED and kind > 0:
                    counts = chosen[kind - 1, joints[i]]
                kinds[i] = bounded[i] if counts else ZERO
            solve_nonnegative(R, U[:, 0], first, kinds, held[c], solver, parameters[c])
        for c in range(PLAIN + last + 1 if last > 0 else 1, SOLUTIONS):
            for i in range(n):
                parameters[c, i] = parameters[c - 1, i]
