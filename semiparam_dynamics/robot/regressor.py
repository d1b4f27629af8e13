"""The regressor of moving bodies and of friction, offsets and rotors, compiled.

The columns of a body are the forces that its acceleration costs a unit of each inertial parameter
(Atkeson, An and Hollerbach 1986, eq. 8; in pinocchio's order, m, mc, Ixx Ixy Iyy Ixz Iyz Izz),
f = m a + alpha x mc + w x (w x mc) and n = mc x a + I alpha + w x I w about the origin of the
body's joint frame, where a is that origin's acceleration minus gravity. Moved to the world's
origin, the entry of a row is what they do along the row's unit motion.

A driver that takes gravity out of what it reports, by a model of its own, leaves the motion's part
of these columns, and of each body's weight the part that it does not know: a second set of columns,
those of m and mc at rest. With the robot's parameters pi and the driver's pi_d the measurement is
Phi(q, dq, ddq) pi - Phi(q, 0, 0) pi_d, that is the first columns without gravity times pi plus the
second times pi - pi_d.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.base.jit import compiled_as_written
from semiparam_dynamics.robot.urdf import UrdfTree, cut_at_sensor

INERTIAL = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
WEIGHT = "weight"  # of the columns of what a driver leaves of a body's weight, as in weight_m hand
PRESLIDING = "presliding"  # of the stops' columns, as in presliding_0.01 joint_1
STRIBECK, ASYMMETRY, LOADED = "stribeck", "asymmetry", "loaded"
OPTIONAL = (PRESLIDING, STRIBECK, ASYMMETRY, LOADED)  # that some joints have and others have not
DISSIPATIVE = ("viscous", "coulomb", PRESLIDING, LOADED)  # kinds that only take energy
MOVING = 6  # kinds of effects that depend on the motion of the moment
TURNING, SLIDING, STILL = range(3)  # how a joint moves
# A joint's geometry: pose of its frame at 0 in its parent's (rotation by rows, origin), and axis.
# The root's has minus gravity instead: in JOINT_AXIS where it counts in the ten columns of a body,
# and in ORIGIN where only in the four of its weight.
ROTATION, ORIGIN, JOINT_AXIS, GEOMETRY = 0, 9, 12, 15
# A joint's working memory: pose in the world, then w, alpha and a in its own frame.
OMEGA, ALPHA, ACCELERATION, MOTION = 12, 15, 18, 21


class Regressor:
    """The regressor of some inertial columns of a `Multibody`, then some effects' columns.

    kept: indices of the bodies' columns, in their order: ten per body, then four of its weight.
    expected: (kept,) their parameters, by which joints are loaded; None: by nothing.

    Its entries are computed one by one, without those that are always zero (a joint doesn't feel
    the bodies before it) and without the columns left out. One compiled function does one state
    and a million, so that both give the same numbers to the last bit.

    `arguments` is what `fill` takes between the states and the output.

    Not thread-safe: the working memory is shared between calls.
    """

    def __init__(
        self,
        multibody: Multibody,
        kept: Indices,
        effects: EffectColumns,
        expected: Array | None = None,
    ) -> None:
        self.n_axes = multibody.n_axes
        self.n_columns = len(kept) + len(effects.labels)
        self.size = self.n_axes * self.n_columns  # of one regressor
        bodies, which = _bodies_columns(len(multibody.bodies))[kept].T
        columns = np.column_stack((multibody.body_joints[bodies], which))
        felt = multibody.feels[:, bodies]
        row, column = np.nonzero(felt)
        entries = np.column_stack((row, column, row * self.n_columns + column))
        row, column, source = effects.entries.T
        places = row * self.n_columns + len(kept) + column
        rows = len(multibody.joints) + 1 + self.n_axes + len(kept)
        self.arguments = (
            *(multibody.geometry, multibody.joints, multibody.units),
            *(_indices(columns), _indices(entries)),
            np.ascontiguousarray(effects.mixing),
            _indices(np.column_stack((places, source))),
            1.0 / np.array(effects.velocities),
            np.zeros(len(kept)) if expected is None else expected,
            np.zeros((rows, MOTION)),  # the working memory
        )

    def fill(self, q: Array, dq: Array, ddq: Array, stops: Array, out: Array) -> None:
        """The flat regressors at q, dq, ddq (n, n_joints), stops (n, n_stops) into out (n, size).

        All are C-ordered float64 that may be written to: for any others the function would be
        compiled again.
        """
        fill(q, dq, ddq, stops, out, 0, *self.arguments)


class Multibody:
    """The moving bodies of a URDF, some joints locked, as the compiled regressor needs them.

    A body is a lump: a link with all that is fixed to it or hangs on it through locked joints.

    Parameters
    ----------
    tree: the robot.
    joints: names of the joints that move, in the caller's order (revolute, continuous: rad;
        prismatic: m). All others are locked.
    locked: positions of locked joints (rad or m), 0 where not given.
    gravity: (3,) m/s^2 in the frame of the root link.
    sensor_frame: joint or link of a six-axis sensor, empty for joint efforts.
    compensated: whether the driver takes gravity out, so that bodies have columns of their weight.

    Attributes
    ----------
    bodies: name of each body: its link nearest to the base.
    links: for each body its links, that one first, each with its pose (4, 4) in the body's frame.
    inertial_prior: (10 * bodies,) the URDF's inertial parameters, body after body: mass m (kg),
        first moments mc (kg m), inertia (kg m^2) about the origin of the body's joint frame (of
        the sensor frame for the body that it carries), in the order of `INERTIAL`.
    kinematics: pinocchio's model, other joints locked, gravity included. n_joints: the number of
        those that move. n_axes: of the rows.
    gravity: (3,) m/s^2, that the columns of whole bodies have; 0 where the driver takes it out.
    geometry, joints, units: as `fill` takes them.
    body_joints: the joint of each body, as they are numbered there.
    feels: (rows, bodies) True where a row's joint or sensor carries the body.
    """

    def __init__(
        self,
        tree: UrdfTree,
        joints: Sequence[str],
        locked: Mapping[str, float],
        gravity: Sequence[float],
        sensor_frame: str = "",
        *,
        compensated: bool = False,
    ) -> None:
        sensor_joint = ""
        if sensor_frame:
            tree, sensor_joint = cut_at_sensor(tree, sensor_frame)
        model = reduced_model(tree, [*joints, *([sensor_joint] if sensor_joint else [])], locked)
        model.gravity.linear = np.array(gravity, dtype=np.float64)
        self.kinematics: Any = model
        self.n_joints, self.n_axes = len(joints), 6 if sensor_joint else len(joints)
        ids = [model.getJointId(name) for name in joints]
        body_ids, row_ids = ids, ids
        if sensor_joint:
            sensor = model.getJointId(sensor_joint)
            carried = set(model.subtrees[sensor])
            body_ids = [sensor, *(i for i in ids if i in carried)]
            row_ids = [sensor] * 6
        links = {name: joint.child for name, joint in tree.joints.items()}
        self.bodies = tuple(links[model.names[i]] for i in body_ids)
        self.links = tuple(_links_of(model, i, tree) for i in body_ids)
        parameters = [model.inertias[i].toDynamicParameters() for i in body_ids]
        self.inertial_prior: Array = np.concatenate(parameters)
        if not np.isfinite(self.inertial_prior).all():
            raise RobotModelError("the URDF's masses and distances are too large for any robot")
        self.body_joints: Indices = np.array(body_ids, dtype=np.intp)
        self.feels = np.array([[b in set(model.subtrees[r]) for b in body_ids] for r in row_ids])
        self.geometry, self.joints, axes = _arrays_of(model, ids)
        self._weight = ORIGIN if compensated else JOINT_AXIS
        self.set_gravity(model.gravity.linear)
        units = np.eye(6) if sensor_joint else axes[row_ids]
        self.units: Array = np.column_stack((row_ids, units))

    def set_gravity(self, gravity: Array) -> None:
        """Have regressors of these bodies another gravity (3,) m/s^2, pinocchio's model not."""
        self.gravity: Array = (self._weight == JOINT_AXIS) * np.array(gravity, dtype=np.float64)
        self.geometry[0, self._weight :][:3] = -gravity

    def carried(self, bodies: Array) -> Array:
        """Pseudo-inertias (n, 4, 4) of bodies, each with all that further joints carry.

        In the body's frame, on the mean over the further joints' positions in a turn; joints that
        slide are at 0.
        """
        carried = dict(zip(self.body_joints.tolist(), bodies.copy(), strict=True))
        for joint in sorted(carried, reverse=True):
            parent = self.kinematics.parents[joint]
            if parent in carried:
                poses = self._poses(joint)
                carried[parent] += np.mean([T @ carried[joint] @ T.T for T in poses], axis=0)
        return np.array([carried[joint] for joint in self.body_joints.tolist()])

    def _poses(self, joint: int) -> list[Array]:
        """Poses (4, 4) of a joint in its parent's frame, on whose mean second moments depend."""
        g, place = self.geometry[joint], self.kinematics.jointPlacements[joint].homogeneous
        if self.joints[joint, 1] == TURNING:  # a mean over more angles is the same
            turns = [pin.exp3(angle * g[JOINT_AXIS:]) for angle in np.linspace(0.0, 1.5 * np.pi, 4)]
            return [place @ pin.SE3(R, np.zeros(3)).homogeneous for R in turns]
        return [place]

    def wrists(self) -> list[tuple[int, int]]:
        """The last two of neighbouring joints that turn in each chain, by their place in q."""
        parents, kinds, places = self.joints.T.tolist()
        turning, inner = [j for j, kind in enumerate(kinds) if j and kind == TURNING], set()
        for j in turning:
            while j := parents[j]:
                inner.add(j)
        ends = [(parents[j], j) for j in turning if j not in inner and parents[j] in turning]
        return [(places[parent], places[j]) for parent, j in ends]


Coupling = tuple[int, int, float]  # two joints, and the sign of the second one's velocity


def coupling_name(joints: Sequence[str], coupling: Coupling) -> str:
    """Such as a+b, or a-b."""
    i, j, sign = coupling
    return f"{joints[i]}{'+' if sign > 0 else '-'}{joints[j]}"


@dataclass(frozen=True)
class EffectColumns:
    """Columns with an entry on the row of their own joint or sensor axis, or of two joints.

    Per joint i: viscous friction dq_i (N m s/rad), Coulomb friction tanh(dq_i / v) (N m), a
    constant offset (N m), rotor inertia ddq_i (kg m^2); newtons for prismatic joints. tanh stands
    for the sign, which would jump with the noise of a joint at rest. Per sensor axis: an offset.

    A motor that turns with two joints, as in many wrists (Staubli's; differentials), has friction
    and inertia that go with the sum or the difference of their velocities. They act on both joints
    by one parameter, on the second one of a difference with the opposite sign.

    Friction that remembers: after a reversal dry friction does not jump but builds up over a short
    way. Per joint and way r a stop operator (Prandtl-Ishlinskii, Maxwell-slip; Al-Bender, Lampaert
    and Swevers 2005, "The generalized Maxwell-slip model"), s <- clip(s + change of q, -r, r), has
    the column s / r, in [-1, 1]; see :func:`advance_stops`.

    Stribeck friction (Armstrong-Helouvry, Dupont and Canudas de Wit 1994, section 2.1) is what dry
    friction has more near standstill, or less: tanh(dq_i / v) exp(-(dq_i / u)^2) (N m). Asymmetry,
    |tanh(dq_i / v)| (N m), is half of what Coulomb friction differs by between the directions.

    Gears and bearings rub more the more they carry (Hamon, Gautier and Garrec 2010, "Dynamic
    identification of robots with a dry friction model depending on load and velocity"): |load_i|
    tanh(dq_i / v) (N m), with the effort that the URDF's bodies cost joint i in that motion.
    """

    labels: tuple[str, ...]
    # (e, 3) row, column, and the source in [dq', tanh(dq' / v), ddq', Stribeck's, |tanh|, loaded's,
    # 1, stops], of which an entry is mixing[mover, row] times.
    entries: Indices
    velocities: tuple[float, float]  # v and u
    mixing: Array  # (n_joints + n_couplings, n_joints): dq' = mixing dq, ddq' = mixing ddq

    def select(self, columns: Indices) -> EffectColumns:
        """The same with only some of the columns."""
        chosen = self.entries[np.isin(self.entries[:, 1], columns)]
        chosen[:, 1] = np.searchsorted(columns, chosen[:, 1])
        return replace(self, labels=tuple(self.labels[i] for i in columns), entries=chosen)


def sensor_offsets(axes: Sequence[str], n_joints: int, *, wanted: bool) -> EffectColumns:
    """One constant column per sensor axis (N or N m), or none."""
    n = len(axes) if wanted else 0
    labels = tuple(f"offset {axis}" for axis in axes[:n])
    entries = np.column_stack((np.arange(n), np.arange(n), np.full(n, MOVING * n_joints)))
    return EffectColumns(labels, entries, (1.0, 1.0), np.eye(n_joints))


@compiled_as_written
def advance_stops(stops: Array, ways: Array, moved: Array) -> None:
    """Stop operators s / r (n_stops,) after joints `moved` (n_joints,), rad or m.

    ways : (n_stops / n_joints,) r of each kind; kind by kind, in a kind joint by joint.
    """
    n = moved.size
    for k in range(ways.size):
        for j in range(n):
            s = stops[k * n + j] + moved[j] / ways[k]
            stops[k * n + j] = min(max(s, -1.0), 1.0)


@compiled_as_written
def fill(
    q: Array,
    dq: Array,
    ddq: Array,
    stops: Array,
    out: Array,
    offset: int,
    geometry: Array,
    joints: Indices,
    units: Array,
    columns: Indices,
    entries: Indices,
    mixing: Array,
    effects: Indices,
    per_velocity: Array,
    expected: Array,
    work: Array,
) -> None:
    """Regressors at states q, dq, ddq (n, n_joints), flattened into out[:, offset:] (n, >=size).

    stops (n, n_stops): the stop operators, kind by kind.
    geometry (joints + 1, 15), joints (joints + 1, 3): of each joint behind its parent: parent,
        how it moves, and its place in q. The first is the root, which has minus gravity.
    units (rows, 7): of each row its joint, and its unit motion (linear, angular) in that frame.
    columns (k, 2): of each inertial column its body's joint, and which of the ten it is; from 10
        on, which of the four of its weight.
    entries (e, 3): row, inertial column, and place in the flat regressor, where it isn't zero.
    effects (e, 2): place, and source as in `EffectColumns`; mixing as there.
    per_velocity (2,): one over the velocities there. expected (k,): parameters of the columns, by
        which joints are loaded.
    work : (>= joints + 2 + rows + columns, 21). Neither it nor `out` shares memory with the states.
    """
    n_joints, n_rows, n_columns = len(joints), len(units), len(columns)
    size = out.shape[1] - offset
    root, twist = work[0], n_joints + 1
    force, scratch = twist + n_rows, work[n_joints]
    loads = np.empty(n_rows)
    for s in range(len(q)):
        row = out[s, offset:]
        for i in range(size):
            row[i] = 0.0
        for i in range(MOTION):
            root[i] = 1.0 if i in (0, 4, 8) else 0.0
        for i in range(3):
            root[ACCELERATION + i] = geometry[0, JOINT_AXIS + i]
        for j in range(1, n_joints):
            kind, place = joints[j, 1], joints[j, 2]
            x, dx, ddx = 0.0, 0.0, 0.0
            if kind != STILL:
                x, dx, ddx = q[s, place], dq[s, place], ddq[s, place]
            _move(work[j], work[joints[j, 0]], geometry[j], kind, x, dx, ddx)
        for r in range(n_rows):
            own, at = work[twist + r], work[int(units[r, 0])]
            _turn(at, units[r, 1:], own)
            x, y, z = at[ORIGIN], at[ORIGIN + 1], at[ORIGIN + 2]
            v0, v1, v2 = _cross(x, y, z, own[3], own[4], own[5])
            own[0] += v0
            own[1] += v1
            own[2] += v2
        for c in range(n_columns):
            _column(work[columns[c, 0]], columns[c, 1], geometry[0], scratch, work[force + c])
        for r in range(n_rows):
            loads[r] = 0.0
        for e in range(len(entries)):
            # Without views of the rows, which cost more than the six products.
            u, f = twist + entries[e, 0], force + entries[e, 1]
            linear = work[u, 0] * work[f, 0] + work[u, 1] * work[f, 1] + work[u, 2] * work[f, 2]
            angular = work[u, 3] * work[f, 3] + work[u, 4] * work[f, 4] + work[u, 5] * work[f, 5]
            row[entries[e, 2]] = linear + angular
            loads[entries[e, 0]] += expected[entries[e, 1]] * (linear + angular)
        _effects(row, loads, effects, mixing, per_velocity, dq[s], ddq[s], stops[s])


@compiled_as_written
def _effects(
    row: Array,
    loads: Array,
    effects: Indices,
    mixing: Array,
    per_velocity: Array,
    dq: Array,
    ddq: Array,
    stops: Array,
) -> None:
    """The effects' entries of a flat regressor `row`, at one state; loads (rows,) N m."""
    movers, width = len(mixing), row.size // max(loads.size, 1)
    for e in range(len(effects)):
        place, source = effects[e, 0], effects[e, 1]
        if source > MOVING * movers:
            row[place] = stops[source - MOVING * movers - 1]
        elif source == MOVING * movers:
            row[place] = 1.0
        else:
            kind, mixed, r = source // movers, mixing[source % movers], place // width
            moved = 0.0
            for i in range(mixed.size):
                moved += mixed[i] * (ddq[i] if kind == 2 else dq[i])
            row[place] = mixed[r] * _effect(kind, moved, per_velocity, loads[r])


@compiled_as_written
def _effect(kind: int, moved: float, per_velocity: Array, load: float) -> float:
    """The column of a kind, see `EffectColumns.entries`, where a mover has this dq' or ddq'."""
    if kind in (0, 2):
        return moved
    direction = math.tanh(moved * per_velocity[0])
    if kind == 3:
        return direction * math.exp(-((moved * per_velocity[1]) ** 2))
    if kind == 4:
        return abs(direction)
    return abs(load) * direction if kind == 5 else direction


# Numbers, not places in arrays: numba compiles a function once for each constant it is called with.


@compiled_as_written
def _cross(
    a0: float, a1: float, a2: float, b0: float, b1: float, b2: float
) -> tuple[float, float, float]:
    """a x b."""
    return a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0


@compiled_as_written
def _turn(R: Array, v: Array, out: Array) -> None:
    """out (6,) = R v[:3] and R v[3:6], R by rows at the beginning of its array."""
    for k in range(0, 6, 3):
        for r in range(3):
            out[k + r] = R[3 * r] * v[k] + R[3 * r + 1] * v[k + 1] + R[3 * r + 2] * v[k + 2]


@compiled_as_written
def _turned_back(R: Array, x: float, y: float, z: float) -> tuple[float, float, float]:
    """R' (x, y, z)."""
    return (
        R[0] * x + R[3] * y + R[6] * z,
        R[1] * x + R[4] * y + R[7] * z,
        R[2] * x + R[5] * y + R[8] * z,
    )


@compiled_as_written
def _move(own: Array, parent: Array, g: Array, kind: int, q: float, dq: float, ddq: float) -> None:
    """A joint's pose and motion `own` from those of its `parent` and its geometry g."""
    # The frame in the parent's: turned by Rodrigues' formula, or pushed along the axis.
    x, y, z = g[JOINT_AXIS], g[JOINT_AXIS + 1], g[JOINT_AXIS + 2]
    px, py, pz = g[ORIGIN], g[ORIGIN + 1], g[ORIGIN + 2]
    s, c = 0.0, 1.0
    if kind == TURNING:
        s, c = math.sin(q), math.cos(q)
    elif kind == SLIDING:
        px += q * (g[0] * x + g[1] * y + g[2] * z)
        py += q * (g[3] * x + g[4] * y + g[5] * z)
        pz += q * (g[6] * x + g[7] * y + g[8] * z)
    d = 1.0 - c
    t00, t01, t02 = c + d * x * x, d * x * y - s * z, d * x * z + s * y
    t10, t11, t12 = d * x * y + s * z, c + d * y * y, d * y * z - s * x
    t20, t21, t22 = d * x * z - s * y, d * y * z + s * x, c + d * z * z
    # In `own`, the rotation relative to the parent stands first where the world's will be.
    for r in range(3):
        a, b, e = g[3 * r], g[3 * r + 1], g[3 * r + 2]
        own[3 * r] = a * t00 + b * t10 + e * t20
        own[3 * r + 1] = a * t01 + b * t11 + e * t21
        own[3 * r + 2] = a * t02 + b * t12 + e * t22
    # The parent's motion at this origin, in this frame.
    w0, w1, w2 = parent[OMEGA], parent[OMEGA + 1], parent[OMEGA + 2]
    own[OMEGA], own[OMEGA + 1], own[OMEGA + 2] = _turned_back(own, w0, w1, w2)
    l0, l1, l2 = parent[ALPHA], parent[ALPHA + 1], parent[ALPHA + 2]
    own[ALPHA], own[ALPHA + 1], own[ALPHA + 2] = _turned_back(own, l0, l1, l2)
    u0, u1, u2 = w1 * pz - w2 * py, w2 * px - w0 * pz, w0 * py - w1 * px
    own[ACCELERATION], own[ACCELERATION + 1], own[ACCELERATION + 2] = _turned_back(
        own,
        parent[ACCELERATION] + l1 * pz - l2 * py + w1 * u2 - w2 * u1,
        parent[ACCELERATION + 1] + l2 * px - l0 * pz + w2 * u0 - w0 * u2,
        parent[ACCELERATION + 2] + l0 * py - l1 * px + w0 * u1 - w1 * u0,
    )
    # And the joint's own; w is still the parent's where it is crossed with the axis.
    k0, k1, k2 = _cross(own[OMEGA], own[OMEGA + 1], own[OMEGA + 2], x, y, z)
    if kind == TURNING:
        own[ALPHA] += k0 * dq + x * ddq
        own[ALPHA + 1] += k1 * dq + y * ddq
        own[ALPHA + 2] += k2 * dq + z * ddq
        own[OMEGA] += x * dq
        own[OMEGA + 1] += y * dq
        own[OMEGA + 2] += z * dq
    elif kind == SLIDING:
        own[ACCELERATION] += 2.0 * k0 * dq + x * ddq
        own[ACCELERATION + 1] += 2.0 * k1 * dq + y * ddq
        own[ACCELERATION + 2] += 2.0 * k2 * dq + z * ddq
    # Now the pose in the world.
    for r in range(3):
        own[ORIGIN + r] = (
            parent[ORIGIN + r]
            + parent[3 * r] * px
            + parent[3 * r + 1] * py
            + parent[3 * r + 2] * pz
        )
    for j in range(3):
        a, b, e = own[j], own[3 + j], own[6 + j]
        for r in range(3):
            own[3 * r + j] = parent[3 * r] * a + parent[3 * r + 1] * b + parent[3 * r + 2] * e


@compiled_as_written
def _column(m: Array, k: int, root: Array, scratch: Array, out: Array) -> None:
    """Force and moment, out (6,), about the world's origin that parameter k costs a body at m.

    From 10 on it is what the four of its weight cost at rest, by the geometry of the root.
    """
    if k > 9:
        x, y, z = root[ORIGIN], root[ORIGIN + 1], root[ORIGIN + 2]
        out[0], out[1], out[2] = 0.0, 0.0, 0.0
        if k == 10:
            out[0], out[1], out[2] = x, y, z
            out[3], out[4], out[5] = _cross(m[ORIGIN], m[ORIGIN + 1], m[ORIGIN + 2], x, y, z)
        else:
            out[3], out[4], out[5] = _cross(m[k - 11], m[k - 8], m[k - 5], x, y, z)
        return
    for r in range(6):
        scratch[r] = 0.0
    w0, w1, w2 = m[OMEGA], m[OMEGA + 1], m[OMEGA + 2]
    l0, l1, l2 = m[ALPHA], m[ALPHA + 1], m[ALPHA + 2]
    a0, a1, a2 = m[ACCELERATION], m[ACCELERATION + 1], m[ACCELERATION + 2]
    if k == 0:
        scratch[0], scratch[1], scratch[2] = a0, a1, a2
    elif k == 1:
        scratch[0], scratch[1], scratch[2] = -w1 * w1 - w2 * w2, l2 + w0 * w1, -l1 + w0 * w2
        scratch[4], scratch[5] = -a2, a1
    elif k == 2:
        scratch[0], scratch[1], scratch[2] = -l2 + w0 * w1, -w0 * w0 - w2 * w2, l0 + w1 * w2
        scratch[3], scratch[5] = a2, -a0
    elif k == 3:
        scratch[0], scratch[1], scratch[2] = l1 + w0 * w2, -l0 + w1 * w2, -w0 * w0 - w1 * w1
        scratch[3], scratch[4] = -a1, a0
    elif k == 4:
        scratch[3], scratch[4], scratch[5] = l0, w2 * w0, -w1 * w0
    elif k == 5:
        scratch[3], scratch[4], scratch[5] = l1 - w2 * w0, l0 + w2 * w1, w0 * w0 - w1 * w1
    elif k == 6:
        scratch[3], scratch[4], scratch[5] = -w2 * w1, l1, w0 * w1
    elif k == 7:
        scratch[3], scratch[4], scratch[5] = l2 + w1 * w0, w2 * w2 - w0 * w0, l0 - w1 * w2
    elif k == 8:
        scratch[3], scratch[4], scratch[5] = w1 * w1 - w2 * w2, l2 - w0 * w1, l1 + w0 * w2
    else:
        scratch[3], scratch[4], scratch[5] = w1 * w2, -w0 * w2, l2
    _turn(m, scratch, out)
    n0, n1, n2 = _cross(m[ORIGIN], m[ORIGIN + 1], m[ORIGIN + 2], out[0], out[1], out[2])
    out[3] += n0
    out[4] += n1
    out[5] += n2


def _bodies_columns(bodies: int) -> Indices:
    """(14 * bodies, 2) of each column its body and its place among the fourteen of a body."""
    own = [(body, k) for body in range(bodies) for k in range(10)]
    weight = [(body, k) for body in range(bodies) for k in range(10, 14)]
    return np.array(own + weight, dtype=np.intp)


def _arrays_of(model: pin.Model, ids: Sequence[int]) -> tuple[Array, Indices, Array]:
    """Geometry and joints as `fill` takes them, and each joint's motion (6,)."""
    n = model.njoints
    geometry, axes = np.zeros((n, 15)), np.zeros((n, 6))
    joints: Indices = np.zeros((n, 3), dtype=np.intp)
    data = model.createData()
    pin.forwardKinematics(model, data, pin.neutral(model))
    for i in range(1, n):
        pose, kind = model.jointPlacements[i], STILL
        if i in ids:
            axes[i] = np.ravel(data.joints[i].S)
            kind = SLIDING if axes[i, :3].any() else TURNING
        place = ids.index(i) if i in ids else 0
        joints[i] = model.parents[i], kind, place
        axis = axes[i, :3] + axes[i, 3:]
        geometry[i] = np.concatenate((np.ravel(pose.rotation), pose.translation, axis))
    return geometry, joints, axes


def _links_of(model: pin.Model, body: int, tree: UrdfTree) -> tuple[tuple[str, Array], ...]:
    return tuple(
        (frame.name, np.array(frame.placement.homogeneous))
        for frame in model.frames
        if frame.type == pin.FrameType.BODY
        and frame.parentJoint == body
        and frame.name in tree.inertials
    )


def reduced_model(tree: UrdfTree, moving: Sequence[str], locked: Mapping[str, float]) -> pin.Model:
    """pinocchio's model of the joints `moving`, in its own order; the others locked, else at 0.

    Raises RobotModelError.
    """
    try:
        full = pin.buildModelFromXML(tree.to_xml())
        reference = pin.neutral(full)
        for name, value in locked.items():
            joint = full.joints[full.getJointId(name)]
            pose = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
            reference[joint.idx_q : joint.idx_q + joint.nq] = pose
        still = [i for i in range(1, full.njoints) if full.names[i] not in moving]
        # Links may be called as joints are; while it reduces, the library goes by names alone.
        _rename_links(full, "", " (link)")
        reduced = pin.buildReducedModel(full, still, reference)
        _rename_links(reduced, " (link)", "")
        return reduced
    except Exception as error:  # the library raises several types, all on the URDF's content
        raise RobotModelError(f"the URDF can't be turned into a robot model: {error}") from None


def _rename_links(model: pin.Model, old: str, new: str) -> None:
    """Give the links' frames another end of their names."""
    for frame in model.frames:
        if frame.type == pin.FrameType.BODY:
            frame.name = frame.name.removesuffix(old) + new


def _indices(values: Indices) -> Indices:
    return np.ascontiguousarray(values, dtype=np.intp)
