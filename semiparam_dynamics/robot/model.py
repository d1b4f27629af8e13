"""From a URDF to the regressor Phi(q, dq, ddq): y = Phi pi (thesis 8.2.1)."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from semiparam_dynamics.base.arrays import WRENCH_AXES, Array, Indices, Mask
from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError, SampleError
from semiparam_dynamics.base.parameters import parameter, replace
from semiparam_dynamics.robot.base_parameters import BaseParameters, reduce_columns
from semiparam_dynamics.robot.inertia import body_spreads, nearest_bodies, pseudo_inertia
from semiparam_dynamics.robot.regressor import (
    ASYMMETRY,
    DISSIPATIVE,
    INERTIAL,
    LOADED,
    MOVING,
    OPTIONAL,
    PRESLIDING,
    STRIBECK,
    WEIGHT,
    Coupling,
    EffectColumns,
    Multibody,
    Regressor,
    advance_stops,
    coupling_name,
    sensor_offsets,
)
from semiparam_dynamics.robot.urdf import (
    Lock,
    UrdfTree,
    check_joints,
    followers,
    frame_names,
    joint_limits,
    lock,
    locked_positions,
    parse_urdf,
    read_urdf,
)

TWO_TURNS = 4 * math.pi  # rad: rotary joints with wider limits count as joints without any
MAX_SLIDE = 100.0  # m: sliding joints with wider limits count as joints without any
MAX_RANDOM_STATES = 400  # random states that tell columns apart
MIN_LINK_SHARE = 0.01  # of the bodies' mean mass: a link with less has none that anybody stated
BODY_WEIGHT = 0.1  # weight of the divergence of bodies in a ridge, relative to other parameters

# Of another effect's expected size, that of a motor that turns with two joints: few wrists have
# one, and beside a joint that stands still it looks like the other joint's own. On 6 cases of five
# arms a Baxter's errors are 1.14 times as large with 0.1 (others within 1 %), 1.24 times with 1.
COUPLING_SHARE = 0.03
COMPENSATED = "compensated"  # of `RobotConfig.effort_gravity`: the driver takes gravity out
COLUMN = "the columns of friction and offsets are always there"  # a removed parameter's sentence


@dataclass(frozen=True)
class RobotConfig:
    """The target, the joints, and the regressor's columns beside the inertial ones."""

    target: str = parameter(
        "effort",
        "what is measured and predicted: joint efforts, or a six-axis sensor's wrench",
        choices=("effort", "wrench"),
        basic=True,
    )
    joints: tuple[str, ...] = parameter(
        (),
        "learned joints in order; empty: the URDF's actuated joints that joint states name "
        "together; others are locked",
        basic=True,
    )
    sensor_frame: str = parameter(
        "",
        "joint or link of the URDF in which the six-axis sensor reads (wrench target)",
    )
    gravity: tuple[float, ...] = parameter(
        (0.0, 0.0, -9.81),
        "gravity in the frame of the root link: a tilted base is a tilted gravity",
        unit="m/s^2",
        low=-100.0,
        high=100.0,
        basic=True,
    )
    effort_gravity: str = parameter(
        "included",
        "whether what is measured holds the robot's weight, or the driver takes that out by a "
        "model of its own (compensated), as a UR from PolyScope 5.23 and 10.11 on: what is "
        "predicted has no weight either then, but for the driver's errors, which are learned",
        choices=("included", COMPENSATED),
        basic=True,
    )
    viscous: bool = parameter(
        True, "a viscous friction column per joint (effort target)", internal=COLUMN
    )
    coulomb: bool = parameter(
        True, "a Coulomb friction column per joint (effort target)", internal=COLUMN
    )
    offset: bool = parameter(True, "a constant column per joint (effort target)", internal=COLUMN)
    rotor_inertia: bool = parameter(True, "a rotor inertia column per joint (effort target)")
    coupled_joints: tuple[str, ...] = parameter(
        (),
        "pairs of joints that a motor turns with, such as joint_5+joint_6 or joint_5-joint_6: "
        "friction and rotor inertia columns of their summed motion; empty: the last two joints, "
        "either way, and the data show whether there is one (effort target)",
    )
    coulomb_velocity: float = parameter(
        0.02,
        "velocity over which Coulomb friction changes sign, as tanh(dq / coulomb_velocity)",
        unit="rad/s",
        low=1e-6,
        high=10.0,
    )
    stribeck_velocity: float = parameter(
        0.1,
        "velocity over which the additional dry friction near standstill fades, as exp(-(dq / "
        "stribeck_velocity)^2): a column per joint beside Coulomb friction's (effort target); "
        "0: none",
        unit="rad/s or m/s",
        low=0.0,
        high=10.0,
        internal="the data show which joint has which kind of friction",
    )
    asymmetry: bool = parameter(
        True,
        "a column per joint for Coulomb friction that differs between the directions, "
        "|tanh(dq / coulomb_velocity)| (effort target)",
        internal="the data show which joint has which kind of friction",
    )
    loaded: bool = parameter(
        True,
        "a column per joint for dry friction that goes with the load, tanh(dq / coulomb_velocity) "
        "times the size of the effort that the URDF's bodies cost the joint (effort target)",
        internal="the data show which joint has which kind of friction",
    )
    presliding: tuple[float, ...] = parameter(
        (3e-4, 1e-2),
        "ways over which friction builds up after a reversal: each adds a column per joint "
        "(effort target); empty: friction has no memory",
        unit="rad or m",
        low=1e-7,
        high=10.0,
        internal="the data show which joint has which kind of friction",
    )
    sensor_offset: bool = parameter(
        True,
        "six constant columns (wrench target)",
        internal="a wrench always has constant columns",
    )


class RobotModel(Multibody):
    """The regressor of a robot's rigid-body dynamics, reduced to base parameters.

    ``y = regressor(q, dq, ddq) @ parameters``, where y is, by `RobotConfig.target`:

    - ``effort``: (n_joints,) the joints' efforts (N m, or N of prismatic ones), in the order of
      `joint_names`;
    - ``wrench``: (6,) the force (N) and the moment about the sensor's origin (N m), both in the
      sensor frame, that the part between base and sensor exerts on the part beyond it: the sum
      over the bodies beyond of ``I a + v x* I v``, a containing minus gravity. At rest it is the
      weight held up, f = -m g. A sensor that reports the opposite reaction needs its sign turned.

    With `RobotConfig.effort_gravity` "compensated" y is what a driver publishes that takes gravity
    out by a model of its own: the motion's part of the same, and what the driver does not know of
    each body's weight, m g and mc x g, in columns labelled ``weight_m``, ``weight_mcx``.

    Parameters
    ----------
    urdf: URDF text (as in ``robot_description``), or a file's path. Meshes are not needed.
    config: the configuration; `overrides` change single fields of it.
    locked: positions (rad or m) of joints that are not learned, 0 where not given. Mimic joints
        do not follow their leader: they are locked unless asked for; see `told_of_urdf`.

    Attributes
    ----------
    Those of `Multibody`, and
    joint_names: the learned joints, in the order of q, dq and ddq.
    position_limits: lower and upper, (n_joints,) rad or m; infinite where there are none, or a
        rotary joint's are wider than two turns.
    velocity_limits: (n_joints,) rad/s or m/s; infinite where there are none.
    turning: (n_joints,) which joints turn without end (of URDF type continuous).
    axes: names of y's entries.
    n_parameters: number of the regressor's columns; they are linearly independent.
    stops: (k,) rad or m, the ways r of the stop operators; n_stops: one of each for each joint.
    prior: (n_parameters,) the URDF's own parameters under the same reduction; 0 for friction,
        offsets and rotor inertia.
    exerted: (n_parameters,) the same with the weight that the drives hold, also where the driver
        takes it out of what it publishes.
    couplings: names of the pairs of joints that a motor turns with, or may, such as a+b.
    locked: positions (rad or m) of joints that are not learned, where they were given.
    base: how the columns of `full_labels` were combined: ten per body, four of its weight where
        the driver takes gravity out, then the `effects` (slice).
    urdf_text: the URDF.

    Raises
    ------
    RobotModelError: the URDF can't be read, or lacks a joint or the frame asked for.
    ConfigurationError: a parameter has the wrong type or lies outside its range.

    Not thread-safe: the working memory is shared between calls.
    """

    def __init__(
        self,
        urdf: str | os.PathLike[str],
        config: RobotConfig | None = None,
        *,
        locked: Mapping[str, float] | None = None,
        **overrides: object,
    ) -> None:
        config = replace(config or RobotConfig(), **overrides)
        text = read_urdf(urdf)
        tree = parse_urdf(text)
        joints = _checked_joints(tree, config)
        self.locked = locked = _checked_locks(tree, joints, locked or {})
        wrench, compensated = config.target == "wrench", config.effort_gravity == COMPENSATED
        sensor = config.sensor_frame if wrench else ""
        super().__init__(tree, joints, locked, config.gravity, sensor, compensated=compensated)
        self.config = config
        self.urdf_text = text
        self.joint_names: tuple[str, ...] = joints
        self.position_limits = _limits(tree, joints)
        self.velocity_limits = joint_limits(tree, joints, "velocity")
        types = [tree.joints[name].type for name in joints]
        self.turning: Mask = np.array([type_ == "continuous" for type_ in types])
        self.sliding: Mask = np.array([type_ == "prismatic" for type_ in types])
        self.axes: tuple[str, ...] = WRENCH_AXES if wrench else joints
        self.stops: Array = np.array([] if wrench else config.presliding, dtype=np.float64)
        self.n_stops = len(self.stops) * self.n_joints
        pairs = [] if wrench else _coupled(config, joints, self)
        self.couplings: tuple[str, ...] = tuple(coupling_name(joints, pair) for pair in pairs)
        if wrench:
            effects = sensor_offsets(self.axes, len(joints), wanted=config.sensor_offset)
        else:
            effects = joint_effects(joints, config, pairs)
        labels = [f"{name} {body}" for body in self.bodies for name in INERTIAL]
        if compensated:
            labels += [f"{WEIGHT}_{name} {body}" for body in self.bodies for name in INERTIAL[:4]]
        self.effects = slice(len(labels), None)
        self.full_labels = (*labels, *effects.labels)
        self._reduce(effects)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.n_joints} joints, target {self.config.target!r}, "
            f"{self.n_parameters} base parameters)"
        )

    def _reduce(self, effects: EffectColumns) -> None:
        """Choose independent columns; inertial ones first, so that the prior stays with them."""
        inertial, own = self.inertial_prior.size, self.effects.start
        everything: Indices = np.arange(own)
        prior, exerted = np.zeros((2, len(self.full_labels)))
        prior[:inertial] = exerted[:inertial] = self.inertial_prior
        if own > inertial:  # a driver that knows nothing leaves the whole weight
            exerted[inertial:own] = self.inertial_prior.reshape(-1, 10)[:, :4].ravel()
        self._regressor = Regressor(self, everything, effects, exerted[:own])
        n = self._regressor.n_columns
        states = _random_states(self.position_limits, n)
        stops = np.random.default_rng(1).uniform(-1.0, 1.0, (len(states[0]), self.n_stops))
        stack = self.regressors(*states, stops)
        self.base: BaseParameters = reduce_columns(stack.reshape(-1, n), self.full_labels)
        self.prior: Array = self.base.project(prior)
        self.exerted: Array = self.base.project(exerted)
        kept = self.base.independent
        chosen, bodies = effects.select(kept[kept >= own] - own), kept[kept < own]
        self._regressor = Regressor(self, bodies, chosen, self.exerted[: len(bodies)].copy())
        self.n_parameters = self._regressor.n_columns

    @property
    def labels(self) -> tuple[str, ...]:
        """A readable name of each column, such as ``mcx forearm + 0.3 m hand``."""
        return self.base.labels

    @cached_property
    def dissipative(self) -> Mask:
        """(n_parameters,) which columns are friction that only takes energy.

        Their parameters are never negative.
        """
        takes = np.array([label.startswith(DISSIPATIVE) for label in self.full_labels])
        parts = self.base.combination
        return np.asarray(np.all(np.where(takes, parts >= 0.0, parts == 0.0), axis=1))

    @cached_property
    def urdf_sha256(self) -> str:
        """Digest of `urdf_text`."""
        return hashlib.sha256(self.urdf_text.encode()).hexdigest()

    @cached_property
    def _inertial(self) -> Regressor:
        """The regressor of the bodies' own columns, before reduction."""
        none = sensor_offsets((), self.n_joints, wanted=False)
        return Regressor(self, np.arange(self.inertial_prior.size), none)

    @property
    def regressor_arguments(self) -> tuple[Any, ...]:
        """The last arguments of `regressor.fill`: geometry, columns and working memory."""
        return self._regressor.arguments

    def regressor(
        self,
        q: npt.ArrayLike,
        dq: npt.ArrayLike,
        ddq: npt.ArrayLike,
        stops: npt.ArrayLike | None = None,
    ) -> Array:
        """(n_axes, n_parameters) at one state; q, dq, ddq: (n_joints,) in rad, rad/s, rad/s^2.

        stops : (n_stops,) in [-1, 1], of `FrictionMemory`; None: those of a long way at dq.
        A new array at each call. Raises SampleError on wrong sizes.
        """
        state = [np.asarray(values)[None] for values in (q, dq, ddq)]
        stops = None if stops is None else np.asarray(stops)[None]
        one: Array = self._filled(self._regressor, state, stops)[0]
        return one

    def regressors(
        self,
        q: npt.ArrayLike,
        dq: npt.ArrayLike,
        ddq: npt.ArrayLike,
        stops: npt.ArrayLike | None = None,
    ) -> Array:
        """(n, n_axes, n_parameters) at n states: q, dq, ddq (n, n_joints), stops (n, n_stops)."""
        return self._filled(self._regressor, (q, dq, ddq), stops)

    def _filled(
        self, regressor: Regressor, state: Sequence[npt.ArrayLike], stops: npt.ArrayLike | None
    ) -> Array:
        q, dq, ddq = (np.array(values, dtype=np.float64, order="C") for values in state)
        if q.ndim != 2 or q.shape[1] != self.n_joints or not q.shape == dq.shape == ddq.shape:
            raise SampleError(
                f"q, dq and ddq of n states of {self.n_joints} joints must each be "
                f"(n, {self.n_joints}), not {q.shape}, {dq.shape} and {ddq.shape}"
            )
        stops = self._slid(dq) if stops is None else np.array(stops, dtype=np.float64, order="C")
        if stops.shape != (len(q), self.n_stops):
            raise SampleError(f"stops must be ({len(q)}, {self.n_stops}), not {stops.shape}")
        out = np.empty((len(q), regressor.size))
        regressor.fill(q, dq, ddq, stops, out)
        return out.reshape(len(q), self.n_axes, regressor.n_columns)

    def _slid(self, dq: Array) -> Array:
        """The stops (n, n_stops) of joints that have gone far at dq (n, n_joints)."""
        return np.tile(np.tanh(dq / self.config.coulomb_velocity), (1, len(self.stops)))

    def fingerprint(self) -> str:
        """SHA-256 of what a learned model depends on: the regressor, at a few fixed states.

        Kinematics, columns, the sensor's frame and gravity count; comments, meshes, masses, by
        which joints are loaded, and limits do not.
        """
        states = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 3, self.n_joints))
        by_mass = [label.startswith(LOADED) for label in self.labels]
        known = np.where(by_mass, 0.0, self.regressors(*states))
        rounded = np.round(known, 6) + 0.0  # no negative zeros
        return hashlib.sha256(rounded.tobytes()).hexdigest()

    def inertial_regressor(self, q: npt.ArrayLike, dq: npt.ArrayLike, ddq: npt.ArrayLike) -> Array:
        """(n_axes, 10 * bodies) before reduction and without effects.

        Its factor is `inertial_prior`: ten per body, as `regressor.INERTIAL` names them. It has
        no gravity where the driver takes that out.
        """
        state = [np.asarray(values)[None] for values in (q, dq, ddq)]
        one: Array = self._filled(self._inertial, state, None)[0]
        return one

    def inverse_dynamics(self, q: npt.ArrayLike, dq: npt.ArrayLike, ddq: npt.ArrayLike) -> Array:
        """(n_axes,) what the URDF's own parameters predict, without friction or offsets."""
        prediction: Array = self.inertial_regressor(q, dq, ddq) @ self.inertial_prior
        return prediction

    def added(self, body: int) -> Array:
        """(n_parameters, 10) base parameters of a unit of each inertial parameter of a load.

        The load is fixed to that body, in its frame, and the driver does not know it: it has all
        of its weight, whatever the driver takes out of the robot's.
        """
        own, weight = self.combinations(body)
        found = own.copy()
        found[:, : weight.shape[1]] += weight
        return found

    def combinations(self, body: int) -> tuple[Array, Array]:
        """(n_parameters, 10) and (n_parameters, 4) of `base`, of a body's own columns and weight's.

        The latter has no columns where the driver takes nothing out.
        """
        inertial, size = self.inertial_prior.size, len(self.bodies)
        first, four = 10 * body, (self.effects.start - inertial) // size
        weight = slice(inertial + four * body, inertial + four * (body + 1))
        combination = self.base.combination
        return combination[:, first : first + 10], combination[:, weight]

    def carried_bodies(self) -> Array:
        """(bodies, 4, 4) pseudo-inertia of each of the URDF's bodies with all that it carries.

        In the body's frame, on the mean over a turn of the further joints. A link without mass, or
        with less than `MIN_LINK_SHARE` of the mean, counts as the mean of the others, about its
        origin.
        Raises RobotModelError where the URDF has no mass at all.
        """
        bodies = self.inertial_prior.reshape(-1, 10)
        found = np.array([pseudo_inertia(body) for body in nearest_bodies(bodies)])
        missing = bodies[:, 0] < MIN_LINK_SHARE * bodies[:, 0].mean()
        mean = found[~missing].copy()
        first = mean[:, :3, 3]
        mean[:, :3, :3] -= first[:, :, None] * first[:, None, :] / mean[:, 3, 3, None, None]
        mean[:, :3, 3] = mean[:, 3, :3] = 0.0
        found[missing] = mean.mean(axis=0)
        return self.carried(found)


def check_robot(urdf: str, config: RobotConfig) -> None:
    """Refuse a URDF's text that makes no model, without compiling anything.

    Raises RobotModelError and ConfigurationError as `RobotModel`.
    """
    tree = parse_urdf(urdf)
    joints = _checked_joints(tree, config)
    joint_limits(tree, joints, "effort")
    joint_limits(tree, joints, "velocity")
    sensor = config.sensor_frame if config.target == "wrench" else ""
    Multibody(tree, joints, {}, config.gravity, sensor)


def _checked_joints(tree: UrdfTree, config: RobotConfig) -> tuple[str, ...]:
    """The joints to learn, where the URDF has them and the sensor's frame."""
    if len(config.gravity) != 3:
        raise ConfigurationError(f"parameter 'gravity' needs 3 numbers, not {config.gravity}")
    joints = config.joints or tree.actuated()
    if not joints:
        raise RobotModelError("; ".join(("the URDF has no joint that moves", *tree.notes)))
    check_joints(tree, joints)
    if config.target == "wrench":
        frame_names(tree, config.sensor_frame)  # raises, and says which frames there are
    return joints


class MessageChecks(TypedDict):
    """Arguments of `MeasurementStream` and `read_measurements`."""

    wrench_frame: tuple[str, ...]  # the sensor frame's names; empty for the effort target
    locks: dict[str, Lock]  # of joints that are not learned, and matter


class FrictionMemory:
    """The stop operators of a robot's joints along a motion: (n_stops,) in [-1, 1]."""

    def __init__(self, model: RobotModel) -> None:
        self._ways = model.stops
        self.stops: Array = np.zeros(model.n_stops)
        self._last: Array | None = None

    def advance(self, q: Array) -> Array:
        """Go on to positions q (n_joints,), rad or m; returns the stops there."""
        if self._last is not None:
            advance_stops(self.stops, self._ways, q - self._last)
        self._last = q.copy()
        return self.stops.copy()


def message_checks(model: RobotModel) -> MessageChecks:
    """Names and locks that messages of this robot are checked against, live and offline alike."""
    tree = parse_urdf(model.urdf_text)
    wrench = model.config.target == "wrench"
    return MessageChecks(
        wrench_frame=frame_names(tree, model.config.sensor_frame) if wrench else (),
        locks=_locks_that_matter(model, tree),
    )


MIN_EFFECT = 0.01  # of an axis' scale, by which predictions change where a joint is moved
DEFAULT_REACH = 0.5  # rad or m that a joint is moved where the URDF has no limits


def told_of_urdf(model: RobotModel) -> list[str]:
    """Sentences on what a model takes otherwise than its URDF has it.

    Bodies that can't exist, elements passed over, and joints that move with a learned one by
    ``<mimic>``, where that matters: they are locked all the same, since a model's joints are those
    with a motor of their own.
    """
    tree = parse_urdf(model.urdf_text)
    following = followers(tree, model.joint_names)
    return [
        *tree.notes,
        *(
            f"{name} moves with {following[name]} (<mimic>), which the model does not represent: "
            "it is taken to stand still, and the errors of that are left to the residual"
            for name in _that_matter(model, tree, following)
        ),
    ]


def _locks_that_matter(model: RobotModel, tree: UrdfTree) -> dict[str, Lock]:
    """The locks of joints that matter; but for those that can't be held against them.

    A joint that follows a learned one is never where it was locked for long.
    """
    following = followers(tree, model.joint_names)
    others = [name for name in tree.joints if name not in following]
    return {
        name: lock(tree.joints[name], model.locked.get(name, 0.0))
        for name in _that_matter(model, tree, others)
    }


def _that_matter(model: RobotModel, tree: UrdfTree, joints: Collection[str]) -> list[str]:
    """Those of `joints` that would change the URDF's own predictions by standing elsewhere.

    A lift or a turntable at the base does not, nor do the fingers of a light gripper.
    """
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 20, model.n_joints))

    def predicted(locked: Mapping[str, float]) -> Array:
        moved = RobotModel(model.urdf_text, model.config, joints=model.joint_names, locked=locked)
        y: Array = moved.regressors(*states) @ moved.exerted
        return y

    related = locked_positions(tree, model.joint_names, dict.fromkeys(joints, 0.0))
    if not related:
        return []
    here, scale = predicted(model.locked), expected_scales(model).output
    found = []
    for name in related:
        position = model.locked.get(name, 0.0)
        low, high = _limits(tree, (name,))
        ends = [
            end if math.isfinite(end) else position + way
            for end, way in ((float(low[0]), -DEFAULT_REACH), (float(high[0]), DEFAULT_REACH))
        ]
        changes = [np.abs(predicted({**model.locked, name: end}) - here) for end in ends]
        if any(np.any(change.max(axis=0) > MIN_EFFECT * scale) for change in changes):
            found.append(name)
    return found


@dataclass(frozen=True)
class ExpectedScales:
    """Sizes to expect before any data: root mean squares over random states of moderate speed."""

    output: Array  # (n_axes,) by the URDF's parameters, weight included, N m or N
    column: Array  # (n_parameters,) of a regressor whose rows are divided by `output`
    active: Array  # (n_axes, n_parameters) True where a column ever acts on an axis
    deviations: Array  # (k, n_parameters) independent steps in which parameters may deviate
    groups: Indices  # (k,) the steps' groups, from 0: of one body, or one kind and joint

    def steps(self, precisions: Array | None = None) -> Array:
        """(k, n_parameters) `deviations`, each with the precision (groups,) of its group; None: 1.

        The sum of their squares is the parameters' prior covariance.
        """
        if precisions is None:
            return self.deviations
        scaled: Array = self.deviations / np.sqrt(precisions[self.groups])[:, None]
        return scaled

    def parameter(self, precisions: Array | None = None) -> Array:
        """(n_parameters,) prior standard deviations of the parameters, see :meth:`steps`."""
        sizes: Array = np.linalg.norm(self.steps(precisions), axis=0)
        return sizes

    def root(self, precisions: Array | None = None) -> Array:
        """(n_parameters,) * 2, upper triangular: its square is the parameters' prior precision."""
        steps = self.steps(precisions)
        # The covariance is X X' with X upper triangular: from the triangle of the reversed columns.
        triangle = np.asarray(np.linalg.qr(steps[:, ::-1], mode="r"))
        X = np.triu(triangle.T[::-1, ::-1] * np.where(np.diag(triangle)[::-1] < 0.0, -1.0, 1.0))
        found: Array = solve_triangular(X, np.eye(len(X)))
        return found

    def restricted(self, kept: Mask) -> ExpectedScales:
        """Those without the parameters that are not `kept` (n_parameters,), nor their steps."""
        deviations = self.deviations[:, kept]
        steps = deviations.any(axis=1)
        groups = np.unique(self.groups[steps], return_inverse=True)[1]
        columns = self.column[kept], self.active[:, kept]
        return ExpectedScales(self.output, *columns, deviations[steps], groups)


def expected_scales(model: RobotModel, states: int = 200, seed: int = 0) -> ExpectedScales:
    """The scales of `model`, from `states` seeded random states (1 rad/s, 1 rad/s^2)."""
    rng = np.random.default_rng(seed)
    shape = (states, model.n_joints)
    regressors = model.regressors(
        rng.uniform(-np.pi, np.pi, shape), rng.standard_normal(shape), rng.standard_normal(shape)
    )
    # Friction and a model's errors go with what drives exert, not with what a driver leaves of it.
    output = np.sqrt(np.mean((regressors @ model.exerted) ** 2, axis=0))
    # Forces and torques of a wrench differ in unit; a wrist's torque is small, its friction not.
    # So no axis counts as smaller than a twentieth of the largest of its kind.
    kinds = np.arange(model.n_axes) // 3 if model.config.target == "wrench" else 0 * output
    for kind in np.unique(kinds):
        of_kind = kinds == kind
        largest = output[of_kind].max()
        output[of_kind] = np.maximum(output[of_kind], 0.05 * largest) if largest > 0.0 else 1.0
    scaled = regressors / output[None, :, None]
    column = np.sqrt(np.mean(scaled**2, axis=(0, 1)))
    active = np.abs(regressors).max(axis=0) > 1e-9
    column = np.where(column > 0.0, column, 1.0)
    return ExpectedScales(output, column, active, *_deviations(model, column))


def _deviations(model: RobotModel, column: Array) -> tuple[Array, Indices]:
    """Independent steps of the base parameters, (k, n_parameters), and the group of each, (k,).

    Bodies are measured by the divergence of `robot.inertia`, to second order (Lee, Wensing and Park
    2020, "Geometric robot dynamic identification", the constant pullback metric), which does not
    depend on units and frames. It is relative to the URDF's body with all that its joint carries:
    where efforts don't quite fit rigid bodies, those that carry most then explain it. So is what a
    driver does not know of a body's weight. Friction, offsets and rotor inertias are measured by
    what their columns contribute.
    """
    steps, names = [], []
    try:
        for k, spreads in enumerate(map(body_spreads, model.carried_bodies())):
            for name, own in zip(
                (f"body {k}", f"{WEIGHT} {k}"), model.combinations(k), strict=True
            ):
                if own.size:
                    steps.append(np.sqrt(2.0 / BODY_WEIGHT) * spreads[:, : own.shape[1]] @ own.T)
                    names += [name] * len(spreads)
    except RobotModelError:  # a URDF without any mass
        kinds = [label.split(" ")[0].removeprefix(f"{WEIGHT}_") for label in model.labels]
        steps = [np.diag(1.0 / column)[np.isin(kinds, INERTIAL)]]
        names = ["body"] * len(steps[0])
    combination = model.base.combination
    effects = combination[:, model.effects].T
    contributed = np.linalg.norm(effects * column, axis=1)
    known = contributed > 0.0
    steps.append(effects[known] / contributed[known, None])
    labels = np.array(model.full_labels[model.effects])[known]
    shared = np.array([label.endswith(model.couplings) for label in labels], dtype=bool)
    steps[-1][shared] *= COUPLING_SHARE
    names += [_group(label) for label in labels]
    groups = np.unique(names, return_inverse=True)[1]
    return np.concatenate(steps), groups.astype(np.intp)


def _group(label: str) -> str:
    """The group of an effect's column: its kind, and its joint; all but the optional are one."""
    first, _, name = label.partition(" ")
    kind = next((kind for kind in OPTIONAL if first.startswith(kind)), "basic")
    return f"{kind} {name}"


def joint_effects(
    joints: Sequence[str], config: RobotConfig, couplings: Sequence[Coupling] = ()
) -> EffectColumns:
    """The chosen columns of every joint and coupling, kind by kind.

    A coupling (i, j, sign) moves at dq_i + sign dq_j, and its columns act on joint i and joint j.
    Stribeck friction, asymmetry and what goes with the load go with Coulomb's; with a velocity of 0
    the first is none.
    """
    n, size = len(joints), len(joints) + len(couplings)
    mixing = np.vstack([np.eye(n), np.zeros((len(couplings), n))])
    # Each mover: its name, its place in the mixed velocities, and the rows that it acts on.
    own = [(joint, i, (i,)) for i, joint in enumerate(joints)]
    movers: list[tuple[str, int, tuple[int, ...]]] = [*own]
    for k, coupling in enumerate(couplings):
        i, j, sign = coupling
        mixing[n + k, [i, j]] = 1.0, sign
        movers.append((coupling_name(joints, coupling), n + k, (i, j)))
    # A coupling has no offset of its own. What only takes energy comes last.
    columns = (
        (config.offset, "offset", -1, own),
        (config.rotor_inertia, "rotor_inertia", 2 * size, movers),
        (config.coulomb and config.stribeck_velocity > 0.0, STRIBECK, 3 * size, own),
        (config.coulomb and config.asymmetry, ASYMMETRY, 4 * size, own),
        (config.viscous, "viscous", 0, movers),
        (config.coulomb, "coulomb", size, movers),
        (config.coulomb and config.loaded, LOADED, 5 * size, own),
    )
    labels: list[str] = []
    entries: list[tuple[int, int, int]] = []
    for wanted, kind, base, moving in columns:
        for name, place, rows in moving if wanted else ():
            source = MOVING * size if base < 0 else base + place
            entries += [(row, len(labels), source) for row in rows]
            labels.append(f"{kind} {name}")
    for k, way in enumerate(config.presliding):
        for i, joint in enumerate(joints):
            entries.append((i, len(labels), MOVING * size + 1 + k * n + i))
            labels.append(f"{PRESLIDING}_{way:g} {joint}")
    velocities = config.coulomb_velocity, config.stribeck_velocity or 1.0
    return EffectColumns(tuple(labels), np.array(entries).reshape(-1, 3), velocities, mixing)


def _coupled(config: RobotConfig, joints: tuple[str, ...], multibody: Multibody) -> list[Coupling]:
    """The pairs of joints that a motor turns with, or may."""
    if config.coupled_joints:
        return [_coupling(pair, joints) for pair in config.coupled_joints]
    return [(i, j, sign) for i, j in multibody.wrists() for sign in (1.0, -1.0)]


def _coupling(pair: str, joints: tuple[str, ...]) -> Coupling:
    """Indices and sign of "a+b" or "a-b"; names may contain the sign themselves."""
    for position, symbol in enumerate(pair):
        first, second = pair[:position].strip(), pair[position + 1 :].strip()
        if symbol in "+-" and first in joints and second in joints and first != second:
            return joints.index(first), joints.index(second), 1.0 if symbol == "+" else -1.0
    raise RobotModelError(
        f"'{pair}' in coupled_joints is not two learned joints as in 'a+b' or 'a-b';"
        f" the learned joints are {', '.join(joints)}"
    )


def _checked_locks(
    tree: UrdfTree, joints: tuple[str, ...], locked: Mapping[str, float]
) -> dict[str, float]:
    check_joints(tree, tuple(locked))
    for name, value in locked.items():
        if name in joints:
            raise RobotModelError(f"the joint '{name}' is both learned and locked")
        if not math.isfinite(value):
            raise RobotModelError(f"the joint '{name}' can't be locked at {value}")
    return {name: float(value) for name, value in locked.items()}


def _limits(tree: UrdfTree, joints: tuple[str, ...]) -> tuple[Array, Array]:
    """Lower and upper position limits (n_joints,); infinite where the URDF sets no usable ones.

    Rotary joints with more than two turns are as good as endless; of sliding ones only a way that
    no machine has, such as the 1e9 that exporters write, is no limit.
    """
    low, high = (
        np.array([getattr(tree.joints[name], bound) for name in joints])
        for bound in ("lower", "upper")
    )
    types = [tree.joints[name].type for name in joints]
    ends = np.array([kind != "continuous" for kind in types], dtype=bool)
    slides = np.array([kind == "prismatic" for kind in types], dtype=bool)
    usable = ends & (low < high) & (high - low < np.where(slides, MAX_SLIDE, TWO_TURNS + 1e-6))
    return np.where(usable, low, -np.inf), np.where(usable, high, np.inf)


def _random_states(limits: tuple[Array, Array], n_columns: int) -> tuple[Array, Array, Array]:
    """States enough to tell the columns apart: within the limits, or a turn where none are set."""
    low, high = (
        np.where(np.isfinite(limit), limit, end)
        for limit, end in zip(limits, (-math.pi, math.pi), strict=True)
    )
    rng = np.random.default_rng(0)
    # Proximal joints see every column, a distal one only its own: count states, not rows. A body's
    # columns, some twenty, are in each of them, so that a robot of many joints needs no more.
    n = min(2 * n_columns, MAX_RANDOM_STATES)
    q = rng.uniform(low, high, (n, low.size))
    return q, rng.standard_normal(q.shape), rng.standard_normal(q.shape)
