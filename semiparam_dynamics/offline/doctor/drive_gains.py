"""Drive gains: N m for a unit of what a driver reports as effort, such as a motor's current.

In units of the drives, joint i's effort is the rigid body's over its gain, and friction:

    u_i = Y_i chi / s_i + E_i f_i,

with the columns Y_i of all bodies' inertial parameters chi and E_i of the joint's own viscous and
Coulomb friction, offset and rotor, whose f_i need no gain. Data alone tell ratios of gains, where
one body's weight moves several joints, and nothing of their common factor: it is the URDF's, whose
parameters are a normal prior on chi. A second recording with a known load adds Y_load theta, whose
theta is known: the common factor is then the load's (M. Gautier and S. Briot, "Global
identification of joint drive gains and dynamic parameters of robots", ASME J. Dyn. Syst. Meas.
Control 136(5), 2014, use the same two recordings in total least squares). Here the noise is that of
u, friction is another in each recording, and the posterior density of log s is maximised with chi
and f integrated out; its curvature is the covariance. Noise counts as often as it is independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from semiparam_dynamics.base.arrays import Array, Indices, Mask
from semiparam_dynamics.base.errors import BagError, LearningError, RobotModelError, listing
from semiparam_dynamics.base.parameters import from_flat, one_or_each, to_flat
from semiparam_dynamics.dynamics.effort_trials import EFFECTS, Columns, anchored, anchored_fit
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.doctor.messages import (
    JointFacts,
    liveliest_stretch,
    read_description,
    read_joint_log,
    read_locks,
    repaired,
)
from semiparam_dynamics.offline.doctor.physics import make_columns
from semiparam_dynamics.robot.inertia import compact_body, inertial_parameters, pseudo_inertia
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import UrdfTree, parse_urdf, read_urdf

MEASURE = "record where the driver publishes what it measures"
UNKNOWN_CENTER_M = 0.2  # standard deviation of a load's centre that is not given
URDF_STD = 0.1  # of the URDF's parameters, relative
LOG_GAIN_STD = 2.0  # of a gain before the recording
MAX_GAIN_STD = 0.1  # relative deviation up to which a gain is identified
MAX_COMMON_STD = 0.5  # the same of the factor that all gains share
LOG_URDF_STD = 0.25  # of its logarithm, which is estimated as well
EFFECT_STD = 10.0  # of friction, offset and rotor, in largest efforts
START_NOISE_SHARE = 0.3  # of an effort, to begin with
# Of each gain in addition to its posterior: what the columns lack of a real arm's friction and
# the URDF of its bodies is taken for gain. Those of an arm whose efforts are in N m differ as far.
RELATIVE_ERROR, ABSOLUTE_ERROR = 0.05, 0.02  # without and with a known load
NO_SOLUTION_COST = 1e12  # cost of gains at which the normal equations have no solution
ROUNDS = 4  # of the noise's estimate


@dataclass(frozen=True)
class KnownLoad:
    """The load held in the second recording."""

    mass: float  # kg
    mass_std: float = 0.0
    center: tuple[float, float, float] | None = None  # m in the frame of `link`; None: not known
    center_std: float = 0.01
    link: str = ""  # of the URDF, that moves; empty: the last one's own frame


@dataclass(frozen=True)
class DriveGains:
    """The gains of k joints and how far they are known.

    A joint whose gain the recording does not tell has the others' geometric mean, and their sign
    where they have one, + where not.
    """

    names: tuple[str, ...]
    gains: Array  # (k,) N m for a unit of effort, negative where its sign is turned
    own_std: Array  # (k,) relative standard deviation of each beside the others
    common_std: float  # of the factor that all share
    told: Mask  # (k,) whether the recording tells a joint's gain
    absolute: bool  # whether a known load fixed the common factor; else the URDF's masses did
    notes: tuple[str, ...] = ()  # sentences on joints that were left out


def drive_gains_of_bags(
    bag: str | Path,
    config: InverseDynamicsConfig,
    *,
    urdf: str | Path = "",
    joint_states: str = "",
    loaded: str | Path = "",
    load: KnownLoad | None = None,
) -> tuple[DriveGains, InverseDynamicsConfig]:
    """Identify the gains on a bag, and one with a known load; with the configuration that has them.

    The URDF is the file, or the robot_description in the first bag that has one. Where the
    configuration names no joints, they are those of which the first bag has efforts.
    Raises BagError, RobotModelError or LearningError where that can't be.
    """
    bags = [bag, loaded] if loaded else [bag]
    tree = parse_urdf(text := read_urdf(urdf or read_description(bags)[1]))
    named = config.robot.joints
    joints, notes = (named, ()) if named else _with_efforts(bag, tree, joint_states)
    given = one_or_each("samples.effort_scale", config.samples.effort_scale, len(joints), "joints")
    locked = read_locks(bag, tree, joints, joint_states)
    model = RobotModel(text, config.robot, locked=locked, joints=joints, target="effort")
    facts, recordings = JointFacts.of(model), []
    for path in bags:
        log = read_joint_log(path, joints, joint_states, tree=tree)
        if lacking := [name for name in joints if name not in log.names]:
            raise BagError(
                f"{path} has no joint {', '.join(lacking)} in the messages of "
                f"{', '.join(log.names)}: 'joints' names those that are learned"
            )
        part = liveliest_stretch(repaired(log, facts))
        if not len(part):
            raise BagError(
                f"{path} has no message with a stamp and a position of each joint: "
                "semiparam doctor says what its messages lack"
            )
        if part.y is None or not np.isfinite(part.y).all():
            y = np.full(part.q.shape, np.nan) if part.y is None else part.y
            bad = np.flatnonzero(~np.isfinite(y).all(axis=0))
            lacking = [joints[index] for index in bad]
            raise BagError(
                f"{path} has messages without an effort of {', '.join(lacking)}: name the other "
                "joints by 'joints', or record where all are measured"
            )
        late = config.samples.effort_delay
        y = np.column_stack([np.interp(part.times + late, part.times, one) for one in part.y.T])
        part = replace(part, y=given * y)
        recordings.append(make_columns(part, model, config.filter.cutoff or 5.0))
    with_load = recordings[1] if loaded else None
    found = replace(drive_gains(joints, model, recordings[0], with_load, load), notes=notes)
    values: dict[str, object] = {
        "samples.effort_scale": tuple((given * found.gains).tolist()),
        "changes.effort_gain_std": tuple(found.own_std.tolist()),
        "changes.effort_gain_common_std": found.common_std,
    }
    if notes:
        values["joints"] = joints  # so many gains are for these joints only
    return found, from_flat(InverseDynamicsConfig, to_flat(config) | values)


def _with_efforts(
    bag: str | Path, tree: UrdfTree, joint_states: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The joints that a bag names together and has efforts of, and a sentence on the others.

    A driver without a measurement sends none, NaN or always 0.
    """
    joints = tree.actuated()
    log = read_joint_log(bag, joints, joint_states, tree=tree)
    if log.y is None:
        raise BagError(f"{bag} has no effort of {', '.join(log.names)}: {MEASURE}")
    moved = (np.nan_to_num(log.y, posinf=0.0, neginf=0.0) != 0.0).any(axis=0)
    own = tuple(name for name, any_ in zip(log.names, moved, strict=True) if any_)
    if not own:
        raise BagError(f"{bag} has no effort of {', '.join(log.names)} that is not 0: {MEASURE}")
    left = [name for name in joints if name not in own]
    if not left:
        return own, ()
    return own, (
        f"without {', '.join(left)}: {bag} has no effort of them in the messages of "
        f"{', '.join(own)}; these are the joints whose gains are identified",
    )


def drive_gains(
    names: Sequence[str],
    model: RobotModel,
    columns: Columns,
    loaded: Columns | None = None,
    load: KnownLoad | None = None,
) -> DriveGains:
    """Identify the gains of a recording's efforts, and of one with a known load where given.

    names: (k,) of the joints.
    Raises LearningError where the efforts tell no gain, RobotModelError where the load's link does
    not move, or has no mass.
    """
    start, sign = _start(columns)
    if loaded is not None and load is None:
        raise LearningError(
            "a recording with a load needs the load's mass: give it, by --load-mass"
        )
    recordings = [columns] if loaded is None else [columns, loaded]
    known = None if loaded is None or load is None else _load(model, load)
    log_gain, covariance = _Fit(recordings, start, sign, known).solve()
    told = np.sqrt(np.diag(covariance)) < LOG_GAIN_STD / 2.0
    while told.any():
        chosen = np.flatnonzero(told)
        own, common = _split(covariance[np.ix_(chosen, chosen)])
        if own.max() < MAX_GAIN_STD and common < MAX_COMMON_STD:
            break
        told[chosen[int(np.argmax(own))]] = False
    else:
        raise LearningError(
            "the efforts tell no joint's gain: gravity and inertia move them too little beside "
            "friction; record motion of more joints over more of their range"
        )
    log_gain = np.where(told, log_gain, float(np.mean(log_gain[told])))
    # A gain that is not identified has no sign either: drives all turned round are one convention,
    # and signs that differ are no evidence for another joint.
    alike = bool((sign[told] == sign[told][0]).all())
    sign = np.where(told, sign, sign[told][0] if alike else 1.0)
    own_std = np.ones(len(names))
    lasting = RELATIVE_ERROR if loaded is None else ABSOLUTE_ERROR
    own_std[told] = np.hypot(own, lasting)
    return DriveGains(
        tuple(names), sign * np.exp(log_gain), own_std, common, told, loaded is not None
    )


def _start(columns: Columns) -> tuple[Array, Array]:
    """(k,) log gains and signs by each joint's URDF torque and friction alone."""
    inertia, weight = anchored(columns, columns.gravity)
    total = inertia + weight
    k = total.shape[1]
    factors, sign = np.zeros(k), np.ones(k)
    for j in range(k):
        y, zero = columns.y[:, j], np.zeros(len(total))
        fits = [anchored_fit(s * y, total[:, j], zero, columns.effects[:, j]) for s in (1.0, -1.0)]
        sign[j] = -1.0 if fits[1].error < 0.9 * fits[0].error else 1.0
        factors[j] = fits[int(sign[j] < 0.0)].inertia
    seen = factors > 0.0
    if not seen.any():
        raise LearningError(
            "no joint's effort has anything of the URDF's weight and inertia: record motion "
            "against gravity, of more joints, and see that the URDF is this robot's"
        )
    middle = float(np.exp(np.mean(np.log(factors[seen]))))
    return -np.log(np.where(seen, factors, middle)), sign


def _load(model: RobotModel, load: KnownLoad) -> tuple[slice, Array, Array]:
    """The load's columns, its parameters (10,) in the body's frame, and a root (10, 10)."""
    link = load.link or model.bodies[-1]
    poses = [
        {body: np.eye(4), **dict(links)}
        for body, links in zip(model.bodies, model.links, strict=True)
    ]
    b = next((number for number, own in enumerate(poses) if link in own), -1)
    if b < 0:
        moving = [name for own in poses for name in own]
        raise RobotModelError(
            f"the load's link '{link}' is none that moves: name one of {listing(moving)}"
        )
    T = poses[b][link]
    if load.mass <= 0.0:
        raise RobotModelError("a known load has a mass above 0 kg")
    center = np.array(load.center if load.center is not None else (0.0, 0.0, 0.0))
    reach = load.center_std if load.center is not None else UNKNOWN_CENTER_M
    mean = compact_body(load.mass, center)
    # Columns of standard deviations: of the mass with all else, of the centre, of the inertia.
    m, size = load.mass, np.hypot(0.1, reach)
    columns = [max(load.mass_std, 1e-6 * m) / m * mean]
    columns += [np.eye(10)[1 + i] * m * reach for i in range(3)]
    columns += [np.eye(10)[4 + i] * m * size**2 for i in range(6)]
    to_body = np.column_stack(
        [inertial_parameters(T @ pseudo_inertia(unit) @ T.T) for unit in np.eye(10)]
    )
    root = to_body @ np.column_stack(columns)
    return slice(10 * b, 10 * b + 10), to_body @ mean, root


class _Fit:
    """The marginal likelihood of log gains, in terms of products that are computed once.

    Bodies, effects of each recording and the load's uncertainty are integrated out: at the most
    probable bodies instead, small gains would be favoured, which make the bodies' errors small.
    """

    def __init__(
        self,
        recordings: list[Columns],
        start: Array,
        sign: Array,
        load: tuple[slice, Array, Array] | None,  # of the second recording, see `_load`
    ) -> None:
        self._chi = recordings[0].prior
        self._k, p = len(sign), self._chi.size
        own, extra = EFFECTS * self._k, 0 if load is None else len(load[1])
        self._n = p + own * len(recordings) + extra
        self._chi_std = prior_std(self._chi)
        self._start = np.append(start, 0.0)
        self._rows: list[tuple[int, Indices, int, Array]] = []  # joint, places, of bodies, values
        loads = p + own * len(recordings) + np.arange(extra)
        for r, columns in enumerate(recordings):
            parts = columns.inertial(columns.gravity)
            for j in range(self._k):
                Y, E = parts[:, j], columns.effects[:, j]
                size = np.maximum(np.abs(E).max(axis=0), 1e-9)
                blocks, at = [Y], [np.arange(p)]
                known = np.zeros(len(Y))
                if r and load is not None:
                    body, theta, root = load
                    blocks.append(Y[:, body] @ root)
                    at.append(loads)
                    known = Y[:, body] @ theta
                places = np.concatenate((*at, p + own * r + EFFECTS * j + np.arange(EFFECTS)))
                scale = float(np.abs(columns.y[:, j]).max()) or 1.0
                blocks += [E * (EFFECT_STD * scale / size), known[:, None]]
                values = np.column_stack((*blocks, columns.y[:, j] * sign[j]))
                self._rows.append((j, places, len(places) - EFFECTS, values))
        self._products: list[Array] = []

    def solve(self) -> tuple[Array, Array]:
        """(k,) log gains and their covariance (k, k)."""
        x = self._start
        std = [START_NOISE_SHARE * float(values[:, -1].std()) for _, _, _, values in self._rows]
        for _ in range(ROUNDS):
            self._products = [
                values.T @ values / max(one, 1e-12) ** 2
                for one, (_, _, _, values) in zip(std, self._rows, strict=True)
            ]
            least = minimize(self._cost, x, method="BFGS", options={"gtol": 1e-3})
            x = np.asarray(least.x, dtype=np.float64)
            std = self._noise(x)
        covariance = np.asarray(np.linalg.inv(self._curvature(x)), dtype=np.float64)
        return x[: self._k], covariance[: self._k, : self._k]

    def _cost(self, x: Array) -> float:
        """Minus the logarithm of the posterior density of x, all else integrated out."""
        H, b, square, precision, mean = self._system(x)
        try:
            root = np.linalg.cholesky(H)
        except np.linalg.LinAlgError:
            return NO_SOLUTION_COST
        solved = np.linalg.solve(root, b)
        fit = square + mean @ (precision * mean) - solved @ solved
        logdet = 2.0 * float(np.log(np.diag(root)).sum()) - float(np.log(precision).sum())
        shifts = (x[:-1] - self._start[:-1]) / LOG_GAIN_STD
        return 0.5 * float(fit + logdet + shifts @ shifts + (x[-1] / LOG_URDF_STD) ** 2)

    def _system(self, x: Array) -> tuple[Array, Array, float, Array, Array]:
        """H and b of the normal equations, y'y, and the prior's precision and mean (n,)."""
        precision, mean = np.ones(self._n), np.zeros(self._n)
        share, p = URDF_STD * np.exp(x[-1]), len(self._chi)
        precision[:p], mean[:p] = (share * self._chi_std) ** -2, self._chi
        H, b, square = np.diag(precision), precision * mean, 0.0
        for (j, places, bodies, _), products in zip(self._rows, self._products, strict=True):
            h = np.exp(-x[j])
            factor = np.ones(len(places))
            factor[:bodies] = h
            H[np.ix_(places, places)] += factor[:, None] * products[:-2, :-2] * factor
            # Of the efforts what the known load makes of them is taken off.
            target = np.array([-h, 1.0])
            b[places] += factor * (products[:-2, -2:] @ target)
            square += float(target @ products[-2:, -2:] @ target)
        return H, b, square, precision, mean

    def _noise(self, x: Array) -> list[float]:
        """Standard deviations of what is left of each effort."""
        H, b, *_ = self._system(x)
        found = np.linalg.solve(H, b)
        noise = []
        for j, places, bodies, values in self._rows:
            factor, h = np.ones(len(places)), np.exp(-x[j])
            factor[:bodies] = h
            left = values[:, -1] - h * values[:, -2] - values[:, :-2] @ (factor * found[places])
            noise.append(_independent_std(left))
        return noise

    def _curvature(self, x: Array) -> Array:
        """The second derivatives of the cost, by differences."""
        n, step = len(x), 2e-3
        units = step * np.eye(n)
        curvature = np.empty((n, n))
        for i in range(n):
            for j in range(i + 1):
                ways = ((1, 1, 1.0), (1, -1, -1.0), (-1, 1, -1.0), (-1, -1, 1.0))
                total = sum(s * self._cost(x + a * units[i] + b * units[j]) for a, b, s in ways)
                curvature[i, j] = curvature[j, i] = total / (4.0 * step**2)
        w, V = np.linalg.eigh(curvature)
        return np.asarray(V @ np.diag(np.maximum(w, 1e-3)) @ V.T)


def prior_std(prior: Array) -> Array:
    """(p,) the scale of each of the URDF's parameters, by its body's mass and size."""
    std = []
    floor = 1e-3 * float(prior.reshape(-1, 10)[:, 0].sum())
    for body in prior.reshape(-1, 10):
        mass = max(float(body[0]), floor)
        second = float(np.trace(pseudo_inertia(body)[:3, :3]))
        size = max(np.sqrt(max(second, 0.0) / mass), 0.02)
        std.append(mass * np.array([1.0, *[size] * 3, *[size**2] * 6]))
    return np.concatenate(std)


def _independent_std(values: Array) -> float:
    """The standard deviation of rows (n,), as large as if each were independent of the last."""
    n = len(values)
    spectrum = np.abs(np.fft.rfft(values - values.mean(), 2 * n)) ** 2
    correlation = np.fft.irfft(spectrum)[: n // 4]
    correlation = correlation / max(float(correlation[0]), 1e-300)
    below = np.flatnonzero(correlation <= 0.0)
    until = int(below[0]) if below.size else len(correlation)
    repeated = 1.0 + 2.0 * float(correlation[1:until].sum())
    return float(values.std()) * float(np.sqrt(repeated))


def _split(covariance: Array) -> tuple[Array, float]:
    """(k,) each one's own standard deviation, and the one that all share.

    The common part is the mean of log s, own parts are what differs from it.
    """
    k = len(covariance)
    common = float(np.sqrt(covariance.sum())) / k
    if k == 1:
        return np.zeros(1), common
    without = np.eye(k) - 1.0 / k
    own: Array = np.sqrt(np.maximum(np.diag(without @ covariance @ without.T), 0.0))
    return own, common


def gains_table(found: DriveGains) -> str:
    """The gains as lines of text."""
    width = max(map(len, found.names))
    lines = []
    for name, gain, std, told in zip(
        found.names, found.gains, found.own_std, found.told, strict=True
    ):
        how = f"+- {100.0 * std:.1f} %" if told else "not told by this motion: the others' mean"
        lines.append(f"{name:<{width}} {gain:>10.4g} N m a unit  {how}")
    kind = (
        "absolute: their common factor is the known load's"
        if found.absolute
        else "relative: their common factor is that of the URDF's masses"
    )
    lines.append(f"{kind}, +- {100.0 * found.common_std:.1f} %")
    told = zip(found.names, found.gains, found.told, strict=True)
    if turned := [name for name, gain, known in told if known and gain < 0.0]:
        lines.append(
            f"negative: {', '.join(turned)}. The URDF's torques explain the effort only with the "
            "other sign: the driver's positive direction, or the axis in the URDF, is the opposite"
        )
    return "\n".join(lines)
