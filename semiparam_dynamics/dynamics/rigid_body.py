"""The parametric part: recursive identification of the base parameters (thesis 8.2.1, 8.2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy.linalg import solve

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.dynamics.sample import Motion
from semiparam_dynamics.parameters import parameter
from semiparam_dynamics.recursion.forgetting import DirectionalForgetting, ForgettingClock
from semiparam_dynamics.recursion.rls import RecursiveLeastSquares
from semiparam_dynamics.robot.model import RobotModel, expected_scales
from semiparam_dynamics.storage import sub_state

BLOCK = 512  # samples of a motion that are learned at a time


@dataclass(frozen=True)
class RigidBodyConfig:
    """Identification of the rigid body's parameters."""

    penalty: float = parameter(
        1.0,
        "ridge on the parameters, each in units of what an ordinary motion would make it "
        "contribute; 1 weighs as much as one sample",
        low=1e-12,
        high=1e12,
        live=True,
    )
    prior: str = parameter(
        "zero",
        "where identification starts and what the ridge pulls to: zero, or the URDF's parameters",
        choices=("zero", "urdf"),
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
    )


@dataclass(frozen=True, slots=True)
class RigidBodyBlock:
    """Predictions of k samples by the rigid body, and the parameters that it then had."""

    values: Array  # (k, n_axes)
    leverages: Array  # (k, n_axes)
    parameters: Array  # (k, n_parameters), or (k, 0) where they were not asked for

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
        )


class RigidBodyIdentifier:
    """y = Phi(x) pi, learned row by row; predicts and updates at a cost fixed by len(pi).

    Rows are divided by their output's scale and the ridge acts on scaled columns, so that
    newtons and newton metres, kilograms and friction coefficients weigh alike. A scale is the
    running root mean square of the output, begun with the one that the URDF expects.

    With a memory, a sample's rows together count exp(-age / memory) where forgetting is
    exponential. Where it is directional, that holds for what the motion keeps exciting, and the
    rest is kept; a twentieth of the memory passes at a time.
    """

    SCALE_SAMPLES = 100.0  # weight of the expected scale, in samples
    STEPS = {"directional": 0.05, "exponential": 0.001}  # in which memory passes

    def __init__(
        self, output_scale: Array, column_scale: Array, prior: Array, config: RigidBodyConfig
    ) -> None:
        self.n_parameters = len(prior)
        self.core = RecursiveLeastSquares(self.n_parameters, 1, config.penalty)
        self.core.set_prior(prior[:, None], column_scale)
        self.parameters: Array = prior.copy()
        self._column_scale = column_scale
        self._square = self.SCALE_SAMPLES * output_scale**2
        self._count = self.SCALE_SAMPLES
        self._error_square = 0.0
        self._rows = 0.0
        self.forgetting = config.forgetting
        self._clock = ForgettingClock(config.memory, self.STEPS[config.forgetting])
        self._directions = DirectionalForgetting(self.core.R)
        self._penalty_before = config.penalty  # the one that the directions were taken with

    @classmethod
    def of(cls, model: RobotModel, config: RigidBodyConfig) -> RigidBodyIdentifier:
        """An identifier of a robot's parameters, with nothing learned yet."""
        scales = expected_scales(model)
        prior = model.prior if config.prior == "urdf" else np.zeros(model.n_parameters)
        return cls(scales.output, scales.column, prior, config)

    def set_memory(self, config: RigidBodyConfig) -> None:
        """Take the memory from `config`; what was learned stays as it is."""
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
        return [(self.core, config.penalty)]

    def predict(self, regressor: Array) -> Array:
        """Phi pi, (n_axes,)."""
        value: Array = regressor @ self.parameters
        return value

    def leverage(self, regressor: Array) -> Array:
        """Variance of each output by the parameters', (n_axes,), in units of its noise's."""
        return self.core.leverages(regressor) * (self._count / self._square)

    def leverages(self, regressors: Array) -> Array:
        """:meth:`leverage` of each regressor, (k, n_axes) for (k, n_axes, n_parameters)."""
        # Of rows that are not divided by their scale: a leverage goes with the row's square.
        rows = regressors.reshape(-1, self.n_parameters)
        leverages = self.core.leverages(rows).reshape(len(regressors), -1)
        return leverages * (self._count / self._square)

    def update(self, regressor: Array, y: Array, stamp: int = 0) -> None:
        """Learn from Phi (n_axes, n_parameters) and y (n_axes,); `stamp` in ns, for the memory."""
        if (fraction := self._clock.forgetting_fraction(stamp)) > 0.0:
            self._forget(fraction)
        self._square += y**2
        self._count += 1.0
        weight = np.sqrt(self._count / self._square)
        rows, targets = regressor * weight[:, None], (y * weight)[:, None]
        parameters = np.empty((1, self.n_parameters))
        errors, leverages = self.core.update_rows(rows, targets, len(y), parameters)
        self._error_square += float(np.sum(errors[:, 0] ** 2 / (1.0 + leverages)))
        self._rows += len(y)
        self.parameters = parameters[0]

    def predict_block(self, regressors: Array) -> RigidBodyBlock:
        """Predict k samples, regressors (k, n_axes, n_parameters), with today's parameters."""
        values = regressors @ self.parameters
        parameters = np.broadcast_to(self.parameters, (len(values), self.n_parameters))
        return RigidBodyBlock(values, self.leverages(regressors), parameters)

    def update_block(
        self, regressors: Array, y: Array, stamps: Indices, *, parameters: bool = True
    ) -> RigidBodyBlock:
        """Predict and then :meth:`update` each of k samples, in turn, with the same numbers.

        regressors : (k, n_axes, n_parameters); y : (k, n_axes); stamps : (k,) ns.
        parameters : whether those of each sample are returned.
        """
        if self._clock.memory > 0.0:
            return self._one_by_one(regressors, y, stamps)
        k, axes = y.shape
        squares, counts = self._running_squares(y)
        weights = np.sqrt(counts[1:] / squares[1:])
        rows = (regressors * weights[:, :, None]).reshape(-1, self.n_parameters)
        path = np.empty((k + 1 if parameters else 1, self.n_parameters))
        path[0] = self.parameters
        targets, after = (y * weights).reshape(-1, 1), path[1:] if parameters else None
        learned = self.core.update_rows(rows, targets, axes, after)
        errors, leverages = (found.reshape(k, axes) for found in learned)
        self._error_square += float(np.sum(errors**2 / (1.0 + leverages)))
        self._rows += y.size
        self._square, self._count = squares[-1].copy(), float(counts[-1, 0])
        self._clock.forgetting_fraction(int(stamps[-1]))
        self.parameters = self.core.weights()[:, 0]
        # A prediction's rows are divided by the scale of before its sample.
        leverages = leverages * (counts[:-1] / squares[:-1]) / weights**2
        before = path[:-1] if parameters else np.empty((k, 0))
        return RigidBodyBlock(y - errors / weights, leverages, before)

    def _running_squares(self, y: Array) -> tuple[Array, Array]:
        """Sums of squares (k + 1, n_axes) and their weights (k + 1, 1), before y and after each."""
        squares = np.cumsum(np.concatenate((self._square[None], y**2)), axis=0)
        return squares, self._count + np.arange(len(y) + 1.0)[:, None]

    def update_motion(self, motion: Motion) -> Array:
        """:meth:`update` with all samples; predictions (n, n_axes) of each just before that."""
        values = [
            self.update_block(block.regressors, block.y, block.stamps, parameters=False).values
            for block in motion.blocks(BLOCK)
        ]
        return np.concatenate(values)

    def ridge_path(self, motion: Motion, penalties: Sequence[float]) -> list[Array]:
        """The parameters (n_parameters,) that each ridge would have after :meth:`update_motion`.

        By normal equations, in one pass, to rounding; all samples count alike, whatever the memory.
        The identifier must not have learned anything, and does not.
        """
        axis, column = np.nonzero(motion.active)
        squares, counts = self._running_squares(motion.y)
        weights = np.sqrt(counts[1:] / squares[1:])
        gram, moments = np.zeros((self.n_parameters,) * 2), np.zeros(self.n_parameters)
        for a in range(motion.y.shape[1]):
            own = column[axis == a]
            rows = motion.entries[:, axis == a] * weights[:, a : a + 1]
            gram[np.ix_(own, own)] += rows.T @ rows
            moments[own] += rows.T @ (motion.y[:, a] * weights[:, a])
        # In units of the columns' scales: their sizes differ by orders of magnitude.
        prior, scale = self.parameters, 1.0 / self._column_scale
        scaled = gram * np.outer(scale, scale)
        left = (moments - gram @ prior) * scale
        return [
            prior + scale * solve(scaled + p * np.eye(len(scale)), left, assume_a="pos")
            for p in penalties
        ]

    def _one_by_one(self, regressors: Array, y: Array, stamps: Indices) -> RigidBodyBlock:
        values, leverages = np.empty_like(y), np.empty_like(y)
        parameters = np.empty((len(y), self.n_parameters))
        for i, (regressor, row) in enumerate(zip(regressors, y, strict=True)):
            values[i], leverages[i] = self.predict(regressor), self.leverage(regressor)
            parameters[i] = self.parameters
            self.update(regressor, row, int(stamps[i]))
        return RigidBodyBlock(values, leverages, parameters)

    def _forget(self, fraction: float) -> None:
        """Before a sample is learned, so that it counts in full."""
        if self.forgetting == "directional":
            self.core.forget_excited(self._directions, fraction)
        else:
            self.core.forget(1.0 - fraction)
        self._error_square *= 1.0 - fraction
        self._rows *= 1.0 - fraction

    @property
    def effective_rows(self) -> float:
        """Number of rows learned, discounted by the memory."""
        return self._rows

    def standard_deviations(self) -> Array:
        """Of each parameter, (n_parameters,), in the parameter's own unit."""
        noise = self._error_square / max(self._rows, 1.0)
        return np.sqrt(noise * self.core.covariance_diagonal())

    def excitation_rank(self) -> int:
        """Number of independent combinations of parameters that the motion has excited.

        Those along which the data weigh more than the ridge, out of n_parameters.
        """
        scaled = self.core.R / (self._column_scale * np.sqrt(self.core.penalty))
        return int(np.sum(np.linalg.svd(scaled, compute_uv=False) ** 2 > 2.0))

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
        sums = np.array([self._count, self._error_square, self._rows])
        # Solving for them again would round differently.
        parameters = {"parameters": self.parameters.copy()}
        return state | parameters | {"square": self._square.copy(), "sums": sums}

    def _restore_beside_core(self, state: dict[str, Array]) -> None:
        self.parameters = state["parameters"].copy()
        self._square = state["square"].copy()
        self._count, self._error_square, self._rows = state["sums"].tolist()
        self._directions = DirectionalForgetting(self.core.R)
        self._penalty_before = self.core.penalty
        if directions := sub_state(state, "directions."):
            self._directions.restore(directions)
        self._clock.restore(sub_state(state, "clock."))
