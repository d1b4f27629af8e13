"""The rigid-body library's side of the robot model: a URDF reduced to moving bodies, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pinocchio as pin

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.dynamics.compiled_regressor import SLIDING, STILL, TURNING
from semiparam_dynamics.dynamics.force_sensor import cut_at_sensor
from semiparam_dynamics.dynamics.urdf_tree import ONE_DOF, UrdfTree, closest
from semiparam_dynamics.errors import RobotModelError

INERTIAL = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


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

    Attributes
    ----------
    bodies: name of each body: its link nearest to the base.
    links: for each body its links, that one first, each with its pose (4, 4) in the body's frame.
    inertial_prior: (10 * bodies,) the URDF's inertial parameters, body after body: mass m (kg),
        first moments mc (kg m), inertia (kg m^2) about the origin of the body's joint frame (of
        the sensor frame for the body that it carries), in the order of `INERTIAL`.
    model: pinocchio's model, gravity included.
    geometry, joints, units: as `compiled_regressor.fill` takes them.
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
    ) -> None:
        sensor_joint = ""
        if sensor_frame:
            tree, sensor_joint = cut_at_sensor(tree, sensor_frame)
        model = _reduced_model(tree, [*joints, *([sensor_joint] if sensor_joint else [])], locked)
        model.gravity.linear = np.array(gravity, dtype=np.float64)
        self.model, self.n_joints = model, len(joints)
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
        self.body_joints: Indices = np.array(body_ids, dtype=np.intp)
        self.feels = np.array([[b in set(model.subtrees[r]) for b in body_ids] for r in row_ids])
        self.geometry, self.joints, axes = _arrays_of(model, ids)
        units = np.eye(6) if sensor_joint else axes[row_ids]
        self.units: Array = np.column_stack((row_ids, units))


def _arrays_of(model: pin.Model, ids: Sequence[int]) -> tuple[Array, Indices, Array]:
    """Geometry and joints as `compiled_regressor.fill` takes them, and each joint's motion (6,)."""
    n = model.njoints
    geometry, axes = np.zeros((n, 15)), np.zeros((n, 6))
    joints: Indices = np.zeros((n, 3), dtype=np.intp)
    data = model.createData()
    pin.forwardKinematics(model, data, pin.neutral(model))
    geometry[0, 12:] = -model.gravity.linear
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


def check_joints(tree: UrdfTree, names: Sequence[str]) -> None:
    """Refuse names that are repeated, unknown, or no joint with one degree of freedom."""
    movable = [joint.name for joint in tree.joints.values() if joint.type in ONE_DOF]
    for position, name in enumerate(names):
        if name in names[:position]:
            raise RobotModelError(f"the joint '{name}' is asked for twice")
        if name not in tree.joints:
            hint = closest(name, movable, shown=60)
            raise RobotModelError(f"the URDF has no joint '{name}'{hint}")
        if name not in movable:
            kind = tree.joints[name].type
            hint = f"it can't be moved or locked; there are: {', '.join(movable)}"
            raise RobotModelError(f"the joint '{name}' is {kind}, not of one degree: {hint}")


def _links_of(model: pin.Model, body: int, tree: UrdfTree) -> tuple[tuple[str, Array], ...]:
    return tuple(
        (frame.name, np.array(frame.placement.homogeneous))
        for frame in model.frames
        if frame.type == pin.FrameType.BODY
        and frame.parentJoint == body
        and frame.name in tree.inertials
    )


def _reduced_model(tree: UrdfTree, moving: Sequence[str], locked: Mapping[str, float]) -> pin.Model:
    try:
        full = pin.buildModelFromXML(tree.to_xml())
        reference = pin.neutral(full)
        for name, value in locked.items():
            joint = full.joints[full.getJointId(name)]
            pose = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
            reference[joint.idx_q : joint.idx_q + joint.nq] = pose
        still = [i for i in range(1, full.njoints) if full.names[i] not in moving]
        return pin.buildReducedModel(full, still, reference)
    except Exception as error:  # the library raises several types, all on the URDF's content
        raise RobotModelError(f"the URDF can't be turned into a robot model: {error}") from None
