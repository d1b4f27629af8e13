"""The default residual: local Nyström features in two levels, the second one joint by joint."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.dynamics.sample import Guess, GuessBlock
from semiparam_dynamics.parameters import parameter
from semiparam_dynamics.recursion.blocks import BlockAnswer, predict_block, update_block
from semiparam_dynamics.recursion.features import (
    IncrementalNystromFeatures,
    draw_frequencies,
    fourier_features,
)
from semiparam_dynamics.recursion.forgetting import ForgettingClock
from semiparam_dynamics.recursion.rls import RecursiveLeastSquares

# -------------------------------------------------------------------------------------------------
# The residual's inputs by groups: positions, velocities, accelerations, rigid-body prediction.

GROUPS = ("position", "velocity", "acceleration", "rigid_body")
# Local features leave the accelerations out: they would spread the centres.
RESIDUAL = {"nystrom": ("position", "velocity", "rigid_body"), "random_fourier": GROUPS}
ALONE = ("position", "velocity", "acceleration")


def width_parameter(what: str) -> Any:
    """Parameter of a group's own kernel width."""
    return parameter(
        1.0, f"kernel width along {what}, in multiples of length_scale", low=1e-3, high=1e3
    )


def group_sizes(groups: Sequence[str], n_joints: int, n_axes: int) -> list[int]:
    """Inputs in each group."""
    return [n_axes if group == "rigid_body" else n_joints for group in groups]


def input_widths(config: object, groups: Sequence[str], n_joints: int, n_axes: int) -> Array:
    """The relative kernel width of each input (d,), by `config`'s parameters GROUP_width."""
    widths = [float(getattr(config, f"{group}_width", 1.0)) for group in groups]
    return np.repeat(widths, group_sizes(groups, n_joints, n_axes))


# -------------------------------------------------------------------------------------------------
# Ridge regression on growing local features, for a residual whose rigid-body part moves.

LEAST_BLOCK = 256  # samples that are learned at once, or as many as there are features


class LocalModel:
    """Learns y and the columns of Phi as functions of x, so that residuals never go stale.

    A residual y - Phi pi_t stored at time t goes stale as pi moves. So the outputs regressed are
    y and the columns of Phi themselves: they share one gain, and the residual for today's pi is
    phi'(w_y - W_Phi pi). Columns that never act on an axis are left out: `active` (n_axes,
    n_parameters) marks those that do; None makes it a plain regression of y.
    """

    def __init__(
        self,
        n_inputs: int,
        n_axes: int,
        active: Array | None,
        *,
        length_scale: float,
        capacity: int,
        novelty: float,
        penalty: float,
    ) -> None:
        self.n_axes = n_axes
        self.axis, self.column = np.nonzero(np.zeros((1, 1)) if active is None else active)
        self.features = IncrementalNystromFeatures(n_inputs, length_scale, capacity, novelty)
        self.core = RecursiveLeastSquares(0, n_axes + len(self.axis), penalty, capacity=capacity)

    def targets(self, y: Array, regressor: Array) -> Array:
        """What is regressed: y (n_axes,) and the active columns of Phi, in one vector."""
        return np.concatenate((y, regressor[self.axis, self.column]))

    def residual(self, outputs: Array, parameters: Array) -> Array:
        """y - Phi pi, (n_axes,), from a vector laid out as :meth:`targets`."""
        value = outputs[: self.n_axes]
        if not len(self.axis):
            return value
        moved = outputs[self.n_axes :] * parameters[self.column]
        return value - np.bincount(self.axis, moved, self.n_axes)

    def predict(self, x: Array) -> tuple[Array, float, Array]:
        """Outputs (laid out as targets), confidence in [0, 1] and features, at inputs x (d,).

        The confidence is one minus the posterior variance of a Gaussian process with this
        kernel: near 1 among many samples, 0 far from all.
        """
        phi = self.features.transform(x)
        if not len(phi):
            return np.zeros(self.core.n_outputs), 0.0, phi
        outputs, leverage = self.core.predict(phi)
        variance = 1.0 - self.features.explained + self.core.penalty * leverage
        return outputs, min(max(1.0 - variance, 0.0), 1.0), phi

    def update(self, x: Array, phi: Array, targets: Array, share: float = 0.0) -> None:
        """Learn targets at x (d,); `phi` may be from before the centres last grew.

        share : of what is known at x that gives way to this sample: see `update_replacing`.
        """
        if len(phi) != self.features.n_centers:
            phi = self.features.transform(x)
        if self.features.grow(x, phi):
            self.core.add_feature()
            phi = self.features.transform(x)
        if share > 0.0:
            self.core.update_replacing(phi, targets, share)
        else:
            self.core.update(phi, targets)

    def ask_block(self, X: Array) -> tuple[Array, Array]:
        """:meth:`predict` of inputs (k, d): outputs (k, T) and confidence (k,)."""
        phi = self.features.transform_rows(X)
        outputs, leverages = predict_block(self.core, phi)
        return outputs, self._confidence(phi, leverages)

    def learn_block(self, X: Array, targets: Array) -> tuple[BlockAnswer, Array, Array]:
        """Predict and then :meth:`update`, in turn, inputs (k, d) and targets (k, T).

        Returns the recursion's answer and the confidences (k,), of each sample before it was
        learned and before any of them was. A row has zeros for the centres that came after it; its
        own centre's weights are zero until it is learned, and what the new feature adds to the
        leverage is what it explains.
        """
        phi = self.features.grow_rows(X)
        for _ in range(phi.shape[1] - self.core.n_features):
            self.core.add_feature()
        answer = update_block(self.core, phi, targets, most=max(phi.shape[1], LEAST_BLOCK))
        confident = self._confidence(phi, answer.leverage)
        return answer, confident, self._confidence(phi, answer.leverage_before)

    def _confidence(self, phi: Array, leverages: Array) -> Array:
        variance = 1.0 - np.einsum("ij,ij->i", phi, phi) + self.core.penalty * leverages
        confidence: Array = np.clip(1.0 - variance, 0.0, 1.0)
        return confidence

    def start(self, model: Any, X: Array) -> tuple[Array, Array]:
        """Go on from a kernel model trained in batch on inputs X (n, d).

        model : has centers_, coef_ (m, T), its targets laid out as :meth:`targets`, and this
            model's Gaussian kernel. More centres than the capacity are projected on half as many
            as that, so that new places can have some.
        Returns what :func:`fitted_rows` does: outputs (n, T), and 1 - leverage (n,).
        """
        # Not at the top: it needs scikit-learn, which a node would load for nothing.
        from semiparam_dynamics.learning.recursive_rls import (
            fitted_rows,
            nystrom_start,
            recursion_from,
        )

        penalty, capacity = self.core.penalty, self.features.capacity
        fits = len(model.centers_) <= capacity
        basis, weights = nystrom_start(model, capacity if fits else capacity - capacity // 2)
        self.features.start(basis)
        self.core = recursion_from(basis.transform, X, weights, penalty, capacity)
        return fitted_rows(self.core, basis.transform, X)

    def residuals(self, outputs: Array, parameters: Array) -> Array:
        """:meth:`residual` of many rows of outputs, (n, n_axes), for one pi or each row's own."""
        on_axis = np.zeros((len(self.axis), self.n_axes))
        on_axis[np.arange(len(self.axis)), self.axis] = 1.0
        moved = outputs[:, self.n_axes :] * parameters[..., self.column]
        value: Array = outputs[:, : self.n_axes] - moved @ on_axis
        return value

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        features = {f"features.{name}": value for name, value in self.features.state().items()}
        return features | {f"core.{name}": value for name, value in self.core.state().items()}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        self.features.restore(part(state, "features."))
        self.core.restore(part(state, "core."))
        if self.features.n_centers != self.core.n_features:
            raise ValueError("a local model has another number of centres than of weights")


def part(state: dict[str, Array], prefix: str) -> dict[str, Array]:
    """The entries of a state whose names begin with `prefix`, without it."""
    return {n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)}


# -------------------------------------------------------------------------------------------------
# What a residual is trained on in batch.

# From a model to be started, its inputs (n, d) and its targets (n, T): a batch model of them.
Fit = Callable[[Any, Array, Array], Any]


@dataclass(frozen=True)
class ResidualData:
    """n training samples as a residual sees them."""

    stamps: Indices  # (n,) ns
    inputs: Array  # (n, d), not standardised
    targets: Array  # (n, n_axes + active columns of Phi): y and those columns
    left: Array  # (n, n_axes): y - Phi pi with the `parameters`
    parameters: Array  # (n_parameters,) pi


@dataclass(frozen=True)
class BatchErrors:
    """Errors (n, n_axes) of a residual's start on the samples it was trained on."""

    trained: Array
    held_out: Array  # as if each sample had not been learned


# -------------------------------------------------------------------------------------------------
# Inputs brought to zero mean and unit variance, by what the first seconds showed.


class Standardizer:
    """Looks at the inputs of the first `window` seconds, then scales all later ones by them.

    Kernels of local features need inputs of one size; scales that went on moving would move the
    features under what was learned on them. After that each is divided by its
    width in `widths` (d,): one of width 2 counts half.
    """

    def __init__(self, widths: Array, window: float) -> None:
        n_inputs = len(widths)
        self._widths = widths
        self._window = window
        self._seen = 0.0  # s, of continuous motion
        self._last = 0
        self._count = 0
        self._mean = np.zeros(n_inputs)
        self._square = np.zeros(n_inputs)
        self.ready = False
        self._scale = np.ones(n_inputs)

    def observe(self, stamp: int, x: Array) -> None:
        """Look at the input x (d,) at `stamp` (ns); after the window this does nothing."""
        if self.ready:
            return
        step = (stamp - self._last) * 1e-9 if self._count else 0.0
        # Pauses and jumps of the clock are not motion that was looked at.
        self._seen += step if 0.0 < step <= 1.0 else 0.0
        self._last = stamp
        self._count += 1
        delta = x - self._mean
        self._mean += delta / self._count
        self._square += delta * (x - self._mean)
        if self._seen >= self._window and self._count > 1:
            self._finish()

    def observe_rows(self, stamps: Indices, X: Array) -> int:
        """:meth:`observe` rows of X (n, d) until the window is full; how many that took."""
        for i in range(len(X)):
            if self.ready:
                return i
            self.observe(int(stamps[i]), X[i])
        return len(X)

    def fit(self, stamps: Indices, X: Array) -> None:
        """Take the scales from all of X (n, d), at `stamps` (n,) in ns, whatever the window."""
        steps = np.diff(stamps) * 1e-9
        self._seen = float(steps[(steps > 0.0) & (steps <= 1.0)].sum())
        self._count, self._last = len(X), int(stamps[-1])
        self._mean = X.mean(axis=0)
        self._square = ((X - self._mean) ** 2).sum(axis=0)
        self._finish()

    def _finish(self) -> None:
        std = np.sqrt(self._square / self._count)
        # An input that never moved tells nothing: a unit scale leaves it alone.
        self._scale = 1.0 / (np.where(std > 1e-9, std, 1.0) * self._widths)
        self.ready = True

    def transform(self, x: Array) -> Array:
        """Standardised x, (d,) or (n, d)."""
        return (x - self._mean) * self._scale

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {
            "mean": self._mean.copy(),
            "square": self._square.copy(),
            "scale": self._scale.copy(),
            "seen": np.array([self._seen]),
            "counts": np.array([self._count, self._last, int(self.ready)], dtype=np.int64),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        self._mean = state["mean"].copy()
        self._square = state["square"].copy()
        self._scale = state["scale"].copy()
        self._seen = float(state["seen"][0])
        self._count, self._last, ready = (int(value) for value in state["counts"])
        self.ready = bool(ready)


# -------------------------------------------------------------------------------------------------
# The thesis' residual: random Fourier features of [q, dq, ddq, y^] (thesis 8.3, figure 8.2).


@dataclass(frozen=True)
class RandomFourierConfig:
    """The residual `random_fourier`: the thesis', good where it was trained, unsafe elsewhere."""

    n_features: int = parameter(
        500, "random features (half of them cosines, half sines)", low=2, high=20000
    )
    length_scale: float = parameter(
        1.0,
        "width of the Gaussian kernel on standardised inputs, in units of sqrt(inputs / 2)",
        low=1e-3,
        high=1e3,
    )
    position_width: float = width_parameter("positions")
    velocity_width: float = width_parameter("velocities")
    acceleration_width: float = width_parameter("accelerations")
    rigid_body_width: float = width_parameter("the rigid body's predictions")
    penalty: float = parameter(1.0, "ridge on the weights", low=1e-9, high=1e9, live=True)
    window: float = parameter(
        10.0,
        "the inputs are standardised by what the first seconds of motion showed",
        unit="s",
        low=0.0,
        high=3600.0,
    )
    memory: float = parameter(
        0.0,
        "for about how long what was learned counts; what was learned before fades everywhere, "
        "down to the ridge; 0: for ever",
        unit="s",
        low=0.0,
        high=1e7,
        live=True,
    )


class FourierResidual:
    """Ridge regression of the residual y - y^ on random Fourier features of a Gaussian kernel.

    The target is the residual at the time of the sample, as in the thesis. With a memory it counts
    exp(-age / memory), everywhere: these features are nowhere small, so that no place has its own.
    `widths` (d,) are the inputs' relative kernel widths.
    """

    STEP = 0.001  # of the memory, in which it passes

    def __init__(self, widths: Array, n_axes: int, config: RandomFourierConfig, seed: int) -> None:
        n_inputs = len(widths)
        width = config.length_scale * math.sqrt(n_inputs / 2)
        half = max(config.n_features // 2, 1)
        self.length_scale, self.seed = width, seed
        self._frequencies = draw_frequencies(half, n_inputs, width, seed)
        self.standardizer = Standardizer(widths, config.window)
        self._clock = ForgettingClock(config.memory, self.STEP)
        self.core = RecursiveLeastSquares(2 * half, n_axes, config.penalty)

    @property
    def n_features(self) -> int:
        """Features in use."""
        return self.core.n_features

    def penalties(self, config: RandomFourierConfig) -> list[tuple[RecursiveLeastSquares, float]]:
        """The recursions of this model, with the ridge that `config` wants for each."""
        return [(self.core, config.penalty)]

    def remember(self, config: RandomFourierConfig) -> None:
        """Take the memory from `config`; what was learned stays as it is."""
        self._clock.memory = config.memory

    def predict(self, x: Array, parameters: Array) -> Guess:
        """The residual at x; `parameters` are not needed, the targets were stored as they were."""
        if not self.standardizer.ready:
            return Guess(np.zeros(self.core.n_outputs), 0.0)
        scaled = self.standardizer.transform(x)
        phi = self.features(scaled)
        value, leverage = self.core.predict(phi)
        confidence = 1.0 - min(self.core.penalty * leverage, 1.0)
        return Guess(value, confidence, scaled, (phi,))

    def features(self, X: Array) -> Array:
        """Features (D,) or (k, D) of standardised inputs (d,) or (k, d)."""
        return fourier_features(X, self._frequencies)

    def update(
        self, stamp: int, x: Array, guess: Guess, y: Array, regressor: Array, rigid_body: Array
    ) -> None:
        """Learn one sample: the target is y minus the rigid body's prediction of it."""
        if guess.inputs is None:
            if not self.standardizer.ready:
                self.standardizer.observe(stamp, x)
                return
            guess = self.predict(x, np.zeros(0))  # the scales are known since it was predicted
        if (share := self._clock.forgetting_fraction(stamp)) > 0.0:
            self.core.forget(1.0 - share)
        self.core.update(guess.features[0], y - rigid_body)

    def settle(self) -> None:
        """Do what the next prediction would have to do first."""
        self.core.apply_pending()

    def ask_block(self, inputs: Array, parameters: Array) -> GuessBlock:
        """:meth:`predict` of inputs (k, d), of which nothing is learned."""
        if not self.standardizer.ready:
            return self._nothing(len(inputs))
        features = self.features(self.standardizer.transform(inputs))
        values, leverages = predict_block(self.core, features)
        return GuessBlock(values, self._confidence(leverages))

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
        targets = (y - rigid_body)[first:]
        features = self.features(self.standardizer.transform(inputs[first:]))
        learned = update_block(self.core, features, targets)
        self._clock.forgetting_fraction(int(stamps[-1]))
        known.values[first:] = targets - learned.errors
        known.confidence[first:] = self._confidence(learned.leverage)
        if not first:
            beforehand = GuessBlock(learned.before, self._confidence(learned.leverage_before))
        return known, beforehand

    def _confidence(self, leverages: Array) -> Array:
        confidence: Array = 1.0 - np.minimum(self.core.penalty * leverages, 1.0)
        return confidence

    def _nothing(self, k: int) -> GuessBlock:
        return GuessBlock(np.zeros((k, self.core.n_outputs)), np.zeros(k))

    def start(self, data: ResidualData, fit: Fit) -> BatchErrors:
        """Go on from a model that `fit` trains in batch on `data`.

        The targets are what the rigid body leaves with the parameters that it has in the end.
        """
        # Not at the top: it needs scikit-learn, which a node would load for nothing.
        from semiparam_dynamics.learning.recursive_rls import (
            fitted_rows,
            fourier_start,
            recursion_from,
        )

        self.standardizer.fit(data.stamps, data.inputs)
        X = self.standardizer.transform(data.inputs)
        model = fit(self, X, data.left)
        self._frequencies, weights = fourier_start(model)

        def transform(X: Array) -> Array:
            return fourier_features(X, self._frequencies)

        self.core = recursion_from(transform, X, weights, self.core.penalty)
        outputs, left_out = fitted_rows(self.core, transform, X)
        errors = data.left - outputs
        return BatchErrors(errors, errors / left_out[:, None])

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        state = {f"standardizer.{n}": v for n, v in self.standardizer.state().items()}
        state |= {f"core.{name}": value for name, value in self.core.state().items()}
        state |= {f"clock.{name}": value for name, value in self._clock.state().items()}
        return state | {"frequencies": self._frequencies.copy()}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        self.standardizer.restore(part(state, "standardizer."))
        self.core.restore(part(state, "core."))
        self._frequencies = state["frequencies"].copy()
        self._clock.restore(part(state, "clock."))


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
        targets, share = self.shared.targets(y, regressor), self._clock.forgetting_fraction(stamp)
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
            model.core.apply_pending()

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
        self._clock.forgetting_fraction(int(stamps[-1]))
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
