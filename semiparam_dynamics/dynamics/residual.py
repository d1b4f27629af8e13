"""The nonparametric part: kernel ridge regression, sample by sample, of what the rigid body leaves.

One class, two feature maps. Local Nyström features (the default) grow where the motion comes and
vanish elsewhere, and with them the residual; random Fourier features (thesis 8.3, figure 8.2) are
fixed and good only where there were data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.base.jit import compiled, subnormals_as_zero
from semiparam_dynamics.base.parameters import parameter
from semiparam_dynamics.base.storage import sub_state
from semiparam_dynamics.dynamics.exact_targets import ExactTargets
from semiparam_dynamics.dynamics.inferred_kernel import InferredKernel
from semiparam_dynamics.dynamics.rigid_body import RigidBodyBlock
from semiparam_dynamics.dynamics.sample import ResidualBlock, ResidualPrediction
from semiparam_dynamics.learning.recursion.features import (
    IncrementalNystromFeatures,
    draw_frequencies,
    fourier_features,
    nystrom_row,
    sparing_novelty,
)
from semiparam_dynamics.learning.recursion.forgetting import ForgettingClock
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares
from semiparam_dynamics.robot.model import RobotModel, expected_scales

# Groups of inputs; `rigid_body` is the rigid body's prediction.
GROUPS = ("position", "velocity", "acceleration", "rigid_body")


def kernel_width(length_scale: float, n_inputs: int) -> float:
    """The Gaussian kernel's width sigma for a length scale in units of sqrt(inputs / 2).

    Two independent samples of standardized inputs are about sqrt(2 inputs) apart: a length scale
    of 1 is half that distance, whatever the number of inputs.
    """
    return length_scale * math.sqrt(n_inputs / 2)


def group_sizes(groups: Sequence[str], n_joints: int, n_axes: int, n_turning: int = 0) -> list[int]:
    """Inputs in each group; `n_turning` joints turn without end, and have a sine and a cosine."""
    sizes = {"position": n_joints + n_turning, "rigid_body": n_axes}
    return [sizes.get(group, n_joints) for group in groups]


# The kernels that tell whether a joint's state is new are as wide as the motion; their centres
# leave at most this share of a state unexplained.
STATE_LENGTH_SCALE, NEW_SHARE = 1.0, 0.1
# How much another joint's input counts in a joint's inferred kernel, beside one of its own. On 5
# cases of four arms a half leaves 5 % more than a third; with a seventh 26 % more is left of a
# UR10's motion that was not shown.
OTHER_JOINTS = 0.3

MIN_SCALE_SHARE = 0.01  # of what the URDF allows, that an input's scale is at least


def input_floors(model: RobotModel, groups: Sequence[str]) -> Array:
    """The least standard deviation of each input (d,): a joint that hardly moves is no measure.

    A share of the joint's range (of a turn where it has none) and of its limit of velocity, and of
    the output to be expected; 0 where the URDF tells nothing.
    """
    ranges = model.position_limits[1] - model.position_limits[0]
    ranges = np.where(np.isfinite(ranges), ranges, 2.0 * np.pi)
    speeds = model.velocity_limits
    circle = np.full(np.count_nonzero(model.turning), 2.0)
    expected = {
        "position": np.concatenate((np.where(model.turning, 2.0, ranges), circle)),
        "velocity": np.where(np.isfinite(speeds), speeds, 0.0),
        "acceleration": np.zeros(model.n_joints),
    }
    if "rigid_body" in groups:
        expected["rigid_body"] = expected_scales(model).output
    return MIN_SCALE_SHARE * np.concatenate([expected[group] for group in groups])


class KernelConfig(ABC):
    """Properties of a kind of residual beside its parameters: INPUTS, their groups; EXACT, see
    `KernelResidual.exact`.
    """

    INPUTS: ClassVar[tuple[str, ...]]
    EXACT: ClassVar[bool]

    penalty: float
    window: float
    memory: float = 0.0
    wide_max_centers: int = 0

    @abstractmethod
    def features(self, n_inputs: int, seed: int) -> IncrementalNystromFeatures | FourierFeatures:
        """The feature map of standardized inputs."""


_length_scale = partial(
    parameter,
    description="width of the Gaussian kernel on standardized inputs, in units of sqrt(inputs / 2)",
    low=1e-3,
    high=1e3,
)
_penalty = partial(
    parameter,
    description="ridge on the weights, in independent samples",
    low=1e-9,
    high=1e9,
    live=True,
)


@dataclass(frozen=True)
class RandomFourierConfig(KernelConfig):
    """The residual `random_fourier`: the thesis', good where it was trained, unsafe elsewhere."""

    n_features: int = parameter(
        500, "random features (half of them cosines, half sines)", low=2, high=20000
    )
    length_scale: float = _length_scale(1.0)
    penalty: float = _penalty(0.1)
    window: float = parameter(
        10.0,
        "the inputs are standardized by what the first seconds of motion showed",
        unit="s",
        low=0.0,
        high=3600.0,
        internal="inputs are standardized by the first 10 s of motion",
    )

    INPUTS = GROUPS
    EXACT = False

    def features(self, n_inputs: int, seed: int) -> FourierFeatures:
        """Random features of the Gaussian kernel."""
        half = max(self.n_features // 2, 1)
        return FourierFeatures(n_inputs, kernel_width(self.length_scale, n_inputs), half, seed)


@dataclass(frozen=True)
class NystromConfig(KernelConfig):
    """The residual `nystrom`: local, and zero where there are no data."""

    max_centers: int = parameter(500, "centres at most", low=1, high=20000)
    length_scale: float = _length_scale(0.2)
    novelty: float = parameter(
        0.5,
        "a sample becomes a centre if more than this share of it is not explained by the "
        "centres there are; once half of max_centers are used the share that is required grows",
        low=1e-6,
        high=1.0,
    )
    penalty: float = _penalty(0.5)
    window: float = parameter(
        20.0,
        "the inputs are standardized by what the first seconds of motion showed; from a sixteenth "
        "of them on by what was shown until then",
        unit="s",
        low=0.0,
        high=3600.0,
    )
    wide_max_centers: int = parameter(
        100,
        "centres at most of each axis' kernel that is inferred from all of the time, and of those "
        "that tell how new a joint's state is (effort target); 0: none",
        low=0,
        high=5000,
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

    # Without accelerations: they would spread the centers.
    INPUTS = ("position", "velocity", "rigid_body")
    EXACT = True

    def features(self, n_inputs: int, seed: int) -> IncrementalNystromFeatures:
        """Local features that grow; the seed is not needed."""
        width = kernel_width(self.length_scale, n_inputs)
        most = self.max_centers
        return IncrementalNystromFeatures(n_inputs, width, most, self.novelty, sparing=True)


class KernelResidual:
    """Kernel models of the rigid body's residual, of the state and the rigid body's prediction.

    Targets are :class:`ExactTargets` of the columns of Phi that `active` (n_axes, n_parameters)
    marks; with `active` None they are y minus the rigid body's prediction at the time of the
    sample, as in the thesis.

    Exact targets have a second model, an :class:`InferredKernel` of samples of all of the time, for
    what was not seen a moment ago. The first one has one target more, 1: as much of it as it gives
    back it knows of the sample, and of the second one's answer the rest counts.

    With a memory, which local features may have, a sample replaces what is known where it is, and
    only there: fading everything at one rate would let the residual go to zero wherever the robot
    has not been for a while. What was inferred is kept.

    A joint that turns without end enters by the sine and the cosine of its position, which are the
    same a turn further. The cosines follow the positions.

    joints : axes are joints, so that there are `states`.

    Attributes
    ----------
    turning : joints without end. model, inferred : the two models. states : how new each joint's
    state is. exact : whether y and the regressor's columns are regressed, so that the residual for
    today's parameters is known.
    """

    def __init__(
        self,
        config: KernelConfig,
        groups: Sequence[str],
        model: RobotModel,
        *,
        active: Array | None = None,
        joints: bool = False,
        seed: int = 0,
    ) -> None:
        n_joints, n_axes = model.n_joints, model.n_axes
        self.turning: Indices = np.flatnonzero(model.turning)
        sizes = group_sizes(groups, n_joints, n_axes, len(self.turning))
        self.groups, n_inputs = tuple(groups), sum(sizes)
        self.exact = active is not None
        features = config.features(n_inputs, seed)
        local = isinstance(features, IncrementalNystromFeatures)
        floors = input_floors(model, groups)
        self.standardizer = Standardizer(n_inputs, config.window, floors, first_scales=local)
        most = config.wide_max_centers if active is not None else 0
        self.model = KernelModel(features, n_axes, active, config.penalty, beside=bool(most))
        self.states = JointStates(n_axes, n_joints if joints else 0, self.turning, most)
        predicted = sizes[-1] if groups[-1] == "rigid_body" else 0
        metric = self._metric(n_axes, n_inputs)
        self.inferred = InferredKernel(metric, self.model.targets, most, predicted)
        self._clock = ForgettingClock(config.memory, 0.0)
        self._blank = {"model": self.model.state(), "states": self.states.state()}

    def _metric(self, n_axes: int, n_inputs: int) -> Array:
        """(n_axes, d) by which an axis' kernel that is as wide as the motion multiplies inputs."""
        shares = np.ones((n_axes, n_inputs))
        for row, own in zip(shares, self.states.own, strict=False):
            row[:] = OTHER_JOINTS
            row[own[own >= 0]] = 1.0
        found: Array = shares / np.sqrt(0.5 * (shares**2).sum(axis=1, keepdims=True))
        return found

    @property
    def _parts(self) -> dict[str, KernelModel | InferredKernel | JointStates]:
        return {"model": self.model, "inferred": self.inferred, "states": self.states}

    @property
    def local(self) -> bool:
        """True if its confidence tells where data were; random features are confident anywhere."""
        return self.model.local

    @property
    def n_features(self) -> int:
        """Features in use, over both models."""
        return self.model.core.n_features + self.inferred.n_centers

    @property
    def centers(self) -> tuple[int, int]:
        """Centres that the first model uses, and may use at most; none of random features."""
        features = self.model.features
        if isinstance(features, FourierFeatures):
            return 0, 0
        return features.n_centers, features.capacity

    def inputs(self, q: Array, dq: Array, ddq: Array, rigid_body: Array) -> Array:
        """The inputs (d,) at a state (n_joints,) and prediction (n_axes,), or (k, d) of k."""
        if len(self.turning):
            angles = q[..., self.turning]
            q = np.concatenate((q, np.cos(angles)), axis=-1)
            q[..., self.turning] = np.sin(angles)
        parts = dict(zip(GROUPS, (q, dq, ddq, rigid_body), strict=True))
        return np.concatenate([parts[group] for group in self.groups], axis=-1)

    def targets(self, y: Array, regressor: Array, rigid_body: Array) -> Array:
        """Regression targets (T,), or (k, T) of k samples: see the class.

        Of an axis that was not measured they are 0, and so no residual, whatever the parameters.
        """
        if self.exact:
            return self.model.targets.of(y, regressor)
        return np.where(np.isnan(y), 0.0, y - rigid_body)

    def check(self, config: KernelConfig) -> None:
        """Raise ConfigurationError where :meth:`configure` can't continue with the ridge."""
        try:
            self.model.core.check_penalty(config.penalty)
        except LearningError as error:
            raise ConfigurationError(str(error)) from None

    def configure(self, config: KernelConfig) -> None:
        """Take ridge and memory from `config`; what was learned stays as it is."""
        self.model.core.set_penalty(config.penalty)
        self._clock.memory = config.memory

    @subnormals_as_zero
    def predict(self, x: Array, parameters: Array) -> ResidualPrediction:
        """The residual at inputs x (d,) that today's rigid-body `parameters` leave."""
        if not self.standardizer.ready:
            nothing = self._zeros(1)
            return ResidualPrediction(nothing.values[0], 0.0, nothing.novelty[0])
        scaled = self.standardizer.transform(x)
        outputs, confidence = self.model.predict(scaled)
        value = self.combine(outputs[None], scaled[None], parameters)[0]
        return ResidualPrediction(value, confidence, self.states.novelty(scaled[None])[0], True)

    def combine(self, outputs: Array, X: Array, parameters: Array) -> Array:
        """The residual (k, n_axes) by the first model's outputs at standardized inputs (k, d)."""
        found = self.model.targets.residuals(outputs, parameters)
        if self.inferred.most:
            found += (1.0 - outputs[:, -1:]) * self.inferred.predict(X, parameters)
        return found

    @subnormals_as_zero
    def update(
        self,
        stamp: int,
        x: Array,
        y: Array,
        regressor: Array,
        rigid_body: Array,
        learned: RigidBodyBlock,
    ) -> None:
        """Learn one sample (stamp in ns) of which the rigid body's prediction was `rigid_body`.

        x : (d,) inputs. learned : what the rigid body's update of the sample returned.
        """
        weight, parameters = _weight(learned.weights[-1], y), learned.parameters[-1]
        targets = self.targets(y, regressor, rigid_body)
        self.inferred.learn(x, targets, weight)
        if self.standardizer.observe(stamp, x):
            self._begin_anew(parameters)
            return
        if not self.standardizer.ready:
            return
        scaled, fraction = self.standardizer.transform(x), self._clock.forgetting_fraction(stamp)
        self.states.novelty(scaled[None], grow=True)
        self.model.update(scaled, self.model.told(targets), weight, fraction)
        if self.inferred.due:
            self._infer(parameters)

    def _infer(self, parameters: Array, *, choose: bool = False) -> None:
        """Infer anew, where the rigid body's parameters are these."""
        if self.inferred.most and self.standardizer.ready:
            self.inferred.infer(self.standardizer.transform, parameters, choose=choose)

    @subnormals_as_zero
    def infer(self, parameters: Array) -> None:
        """Infer anew where learning ends, and drop what the recursion adds to that.

        It is right for what was seen a moment ago, and the less so the more the motion goes on.
        """
        if self.inferred.most:
            self._infer(parameters, choose=True)
            core = self.model.core
            core.apply_pending()
            core.replace(core.R.copy(), np.zeros_like(core.U))

    @subnormals_as_zero
    def predict_block(self, inputs: Array, parameters: Array) -> ResidualBlock:
        """:meth:`predict` of inputs (k, d), by `parameters` of each (k, n_parameters)."""
        if not self.standardizer.ready:
            return self._zeros(len(inputs))
        X = self.standardizer.transform(inputs)
        outputs, confidence = self.model.predict_block(X)
        found = self.combine(outputs, X, parameters)
        return ResidualBlock(found, confidence, self.states.novelty(X))

    def _begin_anew(self, parameters: Array) -> None:
        """Go on with other scales of the inputs, by the samples that are kept."""
        if self.local:
            penalty = self.model.core.penalty
            for name, blank in self._blank.items():
                self._parts[name].restore(blank)
            self.model.core.set_penalty(penalty)
            X, targets, weights = self.inferred.samples(self.standardizer.transform, parameters)
            self.states.novelty(X, grow=True)
            for x, target, weight in zip(X, self.model.told(targets), weights, strict=True):
                self.model.update(x, target, float(weight))
        self._infer(parameters, choose=True)

    def _zeros(self, k: int) -> ResidualBlock:
        zeros = np.zeros((k, self.model.n_axes))
        return ResidualBlock(zeros, np.zeros(k), zeros + self.states.is_known)

    # Both rotate in what was learned last, with subnormal numbers as zero as a prediction does it.

    @subnormals_as_zero
    def copy_from(self, other: KernelResidual) -> None:
        """Become a copy of `other`, of the same configuration, in the memory at hand."""
        self.standardizer.restore(other.standardizer.state())
        self._clock.restore(other._clock.state())
        self.model.copy_from(other.model)
        self.inferred.copy_from(other.inferred)
        self.states.restore(other.states.state())

    @subnormals_as_zero
    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        state = {f"standardizer.{n}": v for n, v in self.standardizer.state().items()}
        for name, part in self._parts.items():
            state |= {f"{name}.{key}": value for key, value in part.state().items()}
        return state | {f"clock.{name}": value for name, value in self._clock.state().items()}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        self.standardizer.restore(sub_state(state, "standardizer."))
        for name, part in self._parts.items():
            part.restore(sub_state(state, f"{name}."))
        self._clock.restore(sub_state(state, "clock."))


def _weight(weights: Array, y: Array) -> float:
    """The weight of a sample with these weights of its axes (n_axes,).

    It is the least of the axes that were measured, and 0 where none was.
    """
    measured = weights[~np.isnan(y)]
    return float(measured.min()) if len(measured) else 0.0


class JointStates:
    """Novelty of each joint's state: its position, velocity and rigid-body prediction.

    As much of it as no centre, of at most `most`, explains (`IncrementalNystromFeatures`, sparing);
    0 where axes are not joints.

    own : (n_joints, 4) the inputs of each joint; -1: none. No rows where axes are not joints.
    """

    def __init__(self, n_axes: int, n_joints: int, turning: Indices, most: int) -> None:
        self._n_axes, n, positions = n_axes, n_joints if most else 0, n_joints + len(turning)
        # Of each joint the inputs that are its own, with the cosine of one that turns, or -1.
        self.own: Indices = np.full((n, 4), -1, dtype=np.intp)
        for j, own in enumerate(self.own):
            own[:3] = j, positions + j, positions + n_joints + j
            own[3:] = n_joints + np.flatnonzero(turning == j) if j in turning else -1
        widths = [kernel_width(STATE_LENGTH_SCALE, int(k)) for k in (self.own >= 0).sum(axis=1)]
        self._gammas: Array = 0.5 / np.array(widths) ** 2
        self._asked: Array = np.array([sparing_novelty(m, most, NEW_SHARE) for m in range(most)])
        self._sizes: Indices = np.zeros(n, dtype=np.intp)
        self._centers, self._factors = np.zeros((n, most, 4)), np.zeros((n, most, most))

    @property
    def is_known(self) -> bool:
        """True if axes are joints: before any was seen, all states are new then."""
        return len(self.own) > 0

    def novelty(self, X: Array, *, grow: bool = False) -> Array:
        """(k, n_axes) of standardized inputs (k, d), in [0, 1].

        grow : each is known when the next one comes, and from then on.
        """
        found = np.zeros((len(X), self._n_axes))
        kernels = self.own, self._gammas, self._asked
        memory = self._sizes, self._centers, self._factors
        _find_novelty(np.ascontiguousarray(X), *kernels, *memory, grow, found)
        return found

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        m = slice(int(self._sizes.max(initial=0)))
        centers, factors = self._centers[:, m].copy(), self._factors[:, m, m].copy()
        return {"sizes": self._sizes.astype(np.float64), "centers": centers, "factors": factors}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        self._sizes[:] = state["sizes"]
        self._centers[:], self._factors[:] = 0.0, 0.0
        m = slice(int(self._sizes.max(initial=0)))
        self._centers[:, m], self._factors[:, m, m] = state["centers"], state["factors"]


@compiled
def _find_novelty(
    X: Array,
    own: Indices,
    gammas: Array,
    asked: Array,
    sizes: Indices,
    centers: Array,
    factors: Array,
    grow: bool,
    found: Array,
) -> None:
    """:meth:`JointStates.novelty` of inputs X (k, d), into `found` (k, n_axes).

    asked : (most,) above which a state becomes a centre, by the number of those there are.
    """
    most = centers.shape[1]
    x, phi = np.zeros(own.shape[1]), np.empty(most)
    for s in range(len(X)):
        for j in range(len(own)):
            n = sizes[j]
            if n == most:
                continue  # what is not explained is not new where the map is full
            for i in range(x.size):
                x[i] = X[s, own[j, i]] if own[j, i] >= 0 else 0.0
            rest = 1.0 - nystrom_row(centers[j], factors[j], x, gammas[j], phi, n)
            found[s, j] = max(rest - NEW_SHARE, 0.0) / (1.0 - NEW_SHARE)
            if grow and rest > asked[n]:
                for i in range(x.size):
                    centers[j, n, i] = x[i]
                for i in range(n):
                    factors[j, n, i] = phi[i]
                factors[j, n, n] = math.sqrt(rest)
                sizes[j] = n + 1


class KernelModel:
    """Recursive ridge regression on a kernel's features, of outputs that share one gain.

    The outputs are y (n_axes,), the columns of Phi that `active` (n_axes, n_parameters) marks
    (None: no ones), and if `beside` a constant, 1. Its confidence in [0, 1] is one minus the
    posterior variance of a Gaussian process with this kernel: near 1 among many samples and, with
    local features, 0 far from all.
    """

    def __init__(
        self,
        features: IncrementalNystromFeatures | FourierFeatures,
        n_axes: int,
        active: Array | None,
        penalty: float,
        *,
        beside: bool = False,
    ) -> None:
        self.features = features
        self.local = isinstance(features, IncrementalNystromFeatures)
        self.n_axes = n_axes
        self.targets = ExactTargets(n_axes, active)
        self.core = RecursiveLeastSquares(
            0 if self.local else features.capacity,
            len(self.targets) + int(beside),
            penalty,
            capacity=features.capacity,
        )

    def told(self, targets: Array) -> Array:
        """Targets (..., T), and the constant if there is one."""
        constants = self.core.n_outputs - targets.shape[-1]
        return np.concatenate((targets, np.ones((*targets.shape[:-1], constants))), axis=-1)

    def predict(self, x: Array) -> tuple[Array, float]:
        """Outputs (laid out as targets) and confidence at inputs x (d,)."""
        phi = self.features.transform(x)
        if not len(phi):
            return np.zeros(self.core.n_outputs), 0.0
        outputs, leverage = self.core.predict(phi)
        variance = 1.0 - self.features.explained + self.core.penalty * leverage
        return outputs, min(max(1.0 - variance, 0.0), 1.0)

    def update(self, x: Array, targets: Array, weight: float = 1.0, fraction: float = 0.0) -> None:
        """Learn targets at x (d,), counted `weight` times.

        fraction : of what is known at x that is forgotten, see `update_replacing`.
        """
        phi = self.features.transform(x)
        if self.features.grow(x, phi):
            self.core.add_feature()
            phi = self.features.transform(x)
        if fraction > 0.0:
            self.core.update_replacing(phi, targets, fraction, weight)
        else:
            self.core.update(phi, targets, weight)

    def predict_block(self, X: Array) -> tuple[Array, Array]:
        """:meth:`predict` of inputs (k, d): outputs (k, T) and confidence (k,)."""
        outputs, leverages = self.core.predict_rows(self.features.transform_rows(X))
        variance = 1.0 - self.features.explained_rows + self.core.penalty * leverages
        return outputs, np.clip(1.0 - variance, 0.0, 1.0)

    def copy_from(self, other: KernelModel) -> None:
        """Become a copy of `other`, of the same configuration, in the memory at hand."""
        self.core.copy_from(other.core)
        features: Any = self.features
        features.copy_from(other.features)

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        features = {f"features.{name}": value for name, value in self.features.state().items()}
        return features | {f"core.{name}": value for name, value in self.core.state().items()}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        self.features.restore(sub_state(state, "features."))
        self.core.restore(sub_state(state, "core."))
        features = self.features
        there = features.capacity if isinstance(features, FourierFeatures) else features.n_centers
        if self.core.n_features != there:
            raise ValueError("a model has another number of features than of weights")


class FourierFeatures:
    """Random Fourier features of the Gaussian kernel, `half` cosines and as many sines.

    As :class:`IncrementalNystromFeatures`, but they never grow, and explain every point in full:
    their norm is 1.
    """

    explained = explained_rows = 1.0

    def __init__(self, n_inputs: int, length_scale: float, half: int, seed: int) -> None:
        self.length_scale, self.seed = length_scale, seed
        self.frequencies = draw_frequencies(half, n_inputs, length_scale, seed)

    @property
    def capacity(self) -> int:
        """The number of features."""
        return 2 * len(self.frequencies)

    def transform(self, x: Array) -> Array:
        """Features (D,) of an input (d,), or (k, D) of k."""
        return fourier_features(x, self.frequencies)

    transform_rows = transform

    def weights(self, W: Array) -> Array:
        """W (D, T), which are weights of the features as they are."""
        return W

    def grow(self, x: Array, phi: Array) -> bool:
        """Nothing is added."""
        return False

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {"frequencies": self.frequencies.copy()}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        self.frequencies = state["frequencies"].copy()

    def copy_from(self, other: FourierFeatures) -> None:
        """Become a copy of `other`."""
        self.restore(other.state())


class Standardizer:
    """Brings inputs to zero mean and unit variance, by those of the first `window` seconds.

    Scales that went on moving would move the features under what was learned on them. With
    `first_scales` there are scales after a sixteenth, an eighth, a quarter and a half of the window
    already. No standard deviation counts as less than its floor in `floors` (d,).
    """

    def __init__(
        self,
        n_inputs: int,
        window: float,
        floors: Array | None = None,
        *,
        first_scales: bool = False,
    ) -> None:
        self._shares = (0.0625, 0.125, 0.25, 0.5, 1.0) if first_scales else (1.0,)
        self._stage = 0  # shares of the window that were reached
        self._floors = np.zeros(n_inputs) if floors is None else floors
        self.window = window
        self.seen = 0.0  # s, of continuous motion
        self._last = 0
        self._count = 0
        self._mean, self._square, self.offset = np.zeros((3, n_inputs))
        self.scale = np.ones(n_inputs)

    @property
    def ready(self) -> bool:
        """True if there are scales."""
        return self._stage > 0

    @property
    def first(self) -> float:
        """Seconds of motion from which on there are scales."""
        return self._shares[0] * self.window

    @property
    def settled(self) -> bool:
        """True if the scales will never change."""
        return self._stage == len(self._shares)

    def observe(self, stamp: int, x: Array) -> bool:
        """Take the input x (d,) at `stamp` (ns) into account; whether the scales have changed.

        After the window this does nothing.
        """
        if self.settled:
            return False
        step = (stamp - self._last) * 1e-9 if self._count else 0.0
        # Pauses and jumps of the clock are not motion that was looked at.
        self.seen += step if 0.0 < step <= 1.0 else 0.0
        self._last = stamp
        self._count += 1
        delta = x - self._mean
        self._mean += delta / self._count
        self._square += delta * (x - self._mean)
        reached = sum(self.seen >= share * self.window for share in self._shares)
        if self._count < 2 or reached == self._stage:
            return False
        self._stage = reached
        self._scale_by_seen()
        return True

    def fit(self, stamps: Indices, X: Array) -> None:
        """Take the scales from all of X (n, d), at `stamps` (n,) in ns, whatever the window."""
        steps = np.diff(stamps) * 1e-9
        self.seen = float(steps[(steps > 0.0) & (steps <= 1.0)].sum())
        self._count, self._last = len(X), int(stamps[-1])
        self._mean = X.mean(axis=0)
        self._square = ((X - self._mean) ** 2).sum(axis=0)
        self._stage = len(self._shares)
        self._scale_by_seen()

    def _scale_by_seen(self) -> None:
        std = np.maximum(np.sqrt(self._square / self._count), self._floors)
        # An input that never moved has no scale of its own.
        self.scale = 1.0 / np.where(std > 1e-9, std, 1.0)
        self.offset = self._mean.copy()

    def transform(self, x: Array) -> Array:
        """Standardized x, (d,) or (n, d)."""
        return (x - self.offset) * self.scale

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        means = {"mean": self._mean, "square": self._square}
        means |= {"scale": self.scale, "offset": self.offset}
        state = {name: value.copy() for name, value in means.items()}
        counts = np.array([self._count, self._last, self._stage], dtype=np.int64)
        return state | {"seen": np.array([self.seen]), "counts": counts}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        names = ("mean", "square", "scale", "offset")
        self._mean, self._square, self.scale, self.offset = (state[n].copy() for n in names)
        self.seen = float(state["seen"][0])
        self._count, self._last, self._stage = (int(value) for value in state["counts"])
