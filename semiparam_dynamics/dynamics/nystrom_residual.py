"""The default residual: local Nyström features in two levels, the second one joint by joint."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.dynamics.forgetting import ForgettingClock
from semiparam_dynamics.dynamics.input_groups import width_parameter
from semiparam_dynamics.dynamics.local_model import LocalModel, part
from semiparam_dynamics.dynamics.residual_data import BatchErrors, Fit, ResidualData
from semiparam_dynamics.dynamics.sample import Guess, GuessBlock
from semiparam_dynamics.dynamics.standardizer import Standardizer
from semiparam_dynamics.learning.recursive import RecursiveLeastSquares
from semiparam_dynamics.parameters import parameter


@dataclass(frozen=True)
class NystromConfig:
    """The residual `nystrom`: local, and silent where there is no data."""

    max_centers: int = parameter(500, "centres at most", low=1, high=20000)
    length_scale: float = parameter(
        0.2,
        "width of the Gaussian kernel on standardised inputs, in units of sqrt(inputs / 2)",
        low=1e-3,
        high=1e3,
    )
    position_width: float = width_parameter("positions")
    velocity_width: float = width_parameter("velocities")
    rigid_body_width: float = width_parameter("the rigid body's predictions")
    novelty: float = parameter(
        0.5,
        "a sample becomes a centre when more than this share of it is not explained by the others",
        low=1e-6,
        high=1.0,
    )
    penalty: float = parameter(5.0, "ridge on the weights", low=1e-9, high=1e9, live=True)
    window: float = parameter(
        10.0,
        "the inputs are standardised by what the first seconds of motion showed",
        unit="s",
        low=0.0,
        high=3600.0,
    )
    joint_max_centers: int = parameter(
        200,
        "centres at most of each joint's own second residual (target effort); 0: none",
        low=0,
        high=5000,
    )
    joint_length_scale: float = parameter(
        0.1, "kernel width of the second residual, in units of sqrt(3)", low=1e-3, high=1e3
    )
    joint_penalty: float = parameter(
        25.0, "ridge on the second residual's weights", low=1e-9, high=1e9, live=True
    )
    memory: float = parameter(
        0.0,
        "after how much time near a place, of which a pass takes a fraction of a second, what was "
        "learned there is replaced; places that the motion does not come to are kept; 0: never",
        unit="s",
        low=0.0,
        high=1e7,
        live=True,
    )


class NystromResidual:
    """What the rigid body leaves, as a function of x = [q, dq, rigid-body prediction].

    With `per_joint`, where the outputs are joint efforts, a second model for each joint, of
    [q_j, dq_j, its prediction], learns what the first one left, with the same exactness in pi.
    With no `active` columns (n_axes, 0) it learns y itself from any inputs. `widths` (d,) are the
    inputs' relative kernel widths.

    With a memory, a sample takes the place of what is known where it is, and only there: features
    that are small at x keep their weights. Fading everything at one rate instead would let the
    residual go to zero wherever the robot has not been for a while.
    """

    def __init__(
        self, widths: Array, active: Array, per_joint: bool, config: NystromConfig
    ) -> None:
        n_axes, d = len(active), len(widths)
        self.n_updates = 0
        self.standardizer = Standardizer(widths, config.window)
        self._clock = ForgettingClock(config.memory, 0.0)
        self.shared = LocalModel(
            d,
            n_axes,
            active,
            length_scale=config.length_scale * math.sqrt(d / 2),
            capacity=config.max_centers,
            novelty=config.novelty,
            penalty=config.penalty,
        )
        n_joints = n_axes if per_joint and config.joint_max_centers > 0 else 0
        self.joints = [
            LocalModel(
                3,
                1,
                active[j : j + 1],
                length_scale=config.joint_length_scale * math.sqrt(3.0),
                capacity=config.joint_max_centers,
                novelty=config.novelty,
                penalty=config.joint_penalty,
            )
            for j in range(n_joints)
        ]
        self.own = [[j, n_joints + j, 2 * n_joints + j] for j in range(len(self.joints))]

    @property
    def n_features(self) -> int:
        """Features in use, over both levels."""
        return sum(model.features.n_centers for model in (self.shared, *self.joints))

    def penalties(self, config: NystromConfig) -> list[tuple[RecursiveLeastSquares, float]]:
        """The recursions of this model, with the ridge that `config` wants for each."""
        joints = [(model.core, config.joint_penalty) for model in self.joints]
        return [(self.shared.core, config.penalty), *joints]

    def remember(self, config: NystromConfig) -> None:
        """Take the memory from `config`; what was learned stays as it is."""
        self._clock.memory = config.memory

    def predict(self, x: Array, parameters: Array) -> Guess:
        """The residual that today's rigid-body `parameters` leave at x."""
        if not self.standardizer.ready:
            return Guess(np.zeros(self.shared.n_axes), 0.0)
        scaled = self.standardizer.transform(x)
        known, confidence, phi = self.shared.predict(scaled)
        value = self.shared.residual(known, parameters).copy()
        features = [phi]
        for j, model in enumerate(self.joints):
            outputs, _, phi = model.predict(scaled[self.own[j]])
            value[j] += model.residual(outputs, parameters)[0]
            features.append(phi)
        return Guess(value, confidence, scaled, tuple(features), known, self.n_updates)

    def update(
        self, stamp: int, x: Array, guess: Guess, y: Array, regressor: Array, rigid_body: Array
    ) -> None:
        """Learn one sample: y (n_axes,) and its regressor; `guess` is predict's answer for x."""
        if guess.inputs is None:
            if not self.standardizer.ready:
                self.standardizer.observe(stamp, x)
                return
            # The scales are known since it was predicted; the parameters don't matter here.
            guess = self.predict(x, np.zeros(regressor.shape[1]))
        inputs = guess.inputs
        assert inputs is not None  # the standardizer is ready
        targets, share = self.shared.targets(y, regressor), self._clock.share(stamp)
        if self.joints:
            known = guess.outputs
            if guess.version != self.n_updates or known is None:
                known, _, _ = self.shared.predict(inputs)
            left = targets - known
            unknown_y = left[: len(y)]
            unknown_columns = np.zeros_like(regressor)
            unknown_columns[self.shared.axis, self.shared.column] = left[len(y) :]
        self.n_updates += 1
        self.shared.update(inputs, guess.features[0], targets, share)
        for j, model in enumerate(self.joints):
            own = model.targets(unknown_y[j : j + 1], unknown_columns[j : j + 1])
            model.update(inputs[self.own[j]], guess.features[1 + j], own, share)

    def settle(self) -> None:
        """Do what the next prediction would have to do first."""
        for model in (self.shared, *self.joints):
            model.core.settle()

    def ask_block(self, inputs: Array, parameters: Array) -> GuessBlock:
        """:meth:`predict` of inputs (k, d) and each one's parameters; nothing is learned."""
        if not self.standardizer.ready:
            return self._nothing(len(inputs))
        X = self.standardizer.transform(inputs)
        outputs, confidence = self.shared.ask_block(X)
        values = self.shared.residuals(outputs, parameters)
        for j, model in enumerate(self.joints):
            outputs, _ = model.ask_block(X[:, self.own[j]])
            values[:, j] += model.residuals(outputs, parameters)[:, 0]
        return GuessBlock(values, confidence)

    def learn_block(
        self,
        stamps: Indices,
        inputs: Array,
        y: Array,
        regressors: Array,
        rigid_body: Array,
        parameters: Array,
    ) -> tuple[GuessBlock, GuessBlock]:
        """Predict and :meth:`update` k samples in turn; there must be no memory.

        Returns what is said of each before it is learned, and before any of them is.
        """
        first = self.standardizer.observe_rows(stamps, inputs)
        known, beforehand = self._nothing(len(y)), self._nothing(len(y))
        if first == len(y):
            return known, beforehand
        self._clock.share(int(stamps[-1]))
        X, pi = self.standardizer.transform(inputs[first:]), parameters[first:]
        columns = regressors[first:, self.shared.axis, self.shared.column]
        targets = np.concatenate((y[first:], columns), axis=1)
        answer, confidence, unsure = self.shared.learn_block(X, targets)
        self.n_updates += len(X)
        known.confidence[first:] = confidence
        values = self.shared.residuals(targets - answer.errors, pi)
        late = self.shared.residuals(answer.before, pi)
        left = answer.errors
        for j, model in enumerate(self.joints):
            own = np.concatenate(([j], self.shared.n_axes + np.flatnonzero(self.shared.axis == j)))
            targets = left[:, own]
            answer, _, _ = model.learn_block(X[:, self.own[j]], targets)
            values[:, j] += model.residuals(targets - answer.errors, pi)[:, 0]
            late[:, j] += model.residuals(answer.before, pi)[:, 0]
        known.values[first:] = values
        return known, beforehand if first else GuessBlock(late, unsure)

    def _nothing(self, k: int) -> GuessBlock:
        return GuessBlock(np.zeros((k, self.shared.n_axes)), np.zeros(k))

    def start(self, data: ResidualData, fit: Fit) -> BatchErrors:
        """Go on from models that `fit` trains in batch on `data`.

        The second level is trained on what the first would have left of each sample had it not
        learned it, as it is when samples come one by one.
        """
        self.standardizer.fit(data.stamps, data.inputs)
        X = self.standardizer.transform(data.inputs)
        outputs, left_out = self.shared.start(fit(self.shared, X, data.targets), X)
        errors = data.targets - outputs
        trained = self.shared.residuals(errors, data.parameters)
        errors /= left_out[:, None]
        held_out = self.shared.residuals(errors, data.parameters)
        y, columns = errors[:, : self.shared.n_axes], errors[:, self.shared.n_axes :]
        for j, model in enumerate(self.joints):
            own = X[:, self.own[j]]
            targets = np.column_stack((y[:, j], columns[:, self.shared.axis == j]))
            outputs, left_out = model.start(fit(model, own, targets), own)
            second = model.residuals(outputs, data.parameters)[:, 0]
            trained[:, j] -= second
            held_out[:, j] = (held_out[:, j] - second) / left_out
        return BatchErrors(trained, held_out)

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        state = {f"standardizer.{n}": v for n, v in self.standardizer.state().items()}
        for i, model in enumerate((self.shared, *self.joints)):
            state |= {f"model{i}.{name}": value for name, value in model.state().items()}
        return state | {f"clock.{name}": value for name, value in self._clock.state().items()}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        self.standardizer.restore(part(state, "standardizer."))
        for i, model in enumerate((self.shared, *self.joints)):
            model.restore(part(state, f"model{i}."))
        self._clock.restore(part(state, "clock."))
