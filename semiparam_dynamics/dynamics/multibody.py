"""The rigid-body library's side of the robot model: a reduced pinocchio model and its regressor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.force_sensor import cut_at_sensor
from semiparam_dynamics.dynamics.urdf_tree import ONE_DOF, UrdfTree, closest
from semiparam_dynamics.errors import RobotModelError

INERTIAL = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


class Multibody:
    """The moving bodies of a URDF, some joints locked, and the regressor of their inertias.

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

    Not thread-safe: the working memory is shared between calls.

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
        self._model, self._data = model, model.createData()
        self._q, self._dq, self._ddq = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)

        ids = [model.getJointId(name) for name in joints]
        self._q_index = np.array([model.joints[i].idx_q for i in ids], dtype=np.intp)
        self._v_index = np.array([model.joints[i].idx_v for i in ids], dtype=np.intp)
        # A continuous joint's configuration is (cos, sin) of its angle.
        turning = [k for k, i in enumerate(ids) if model.joints[i].nq == 2]
        self._turning = np.array(turning, dtype=np.intp)

        body_ids, rows = ids, self._v_index
        if sensor_joint:
            sensor = model.getJointId(sensor_joint)
            carried = set(model.subtrees[sensor])
            body_ids = [sensor, *(i for i in ids if i in carried)]
            first = model.joints[sensor].idx_v
            rows = np.arange(first, first + 6)
        links = {name: joint.child for name, joint in tree.joints.items()}
        self.bodies = tuple(links[model.names[i]] for i in body_ids)
        self.links = tuple(_links_of(model, i, tree) for i in body_ids)
        parameters = [model.inertias[i].toDynamicParameters() for i in body_ids]
        self.inertial_prior: Array = np.concatenate(parameters)
        columns = np.concatenate([10 * (i - 1) + np.arange(10) for i in body_ids])
        self.entries = rows[:, None] * (10 * (model.njoints - 1)) + columns

    def regressor(self, q: Array, dq: Array, ddq: Array, entries: npt.NDArray[np.intp]) -> Array:
        """The chosen `entries` (``self.entries`` or some of its columns) of the regressor."""
        self._q[self._q_index] = q
        if self._turning.size:
            angle = q[self._turning]
            index = self._q_index[self._turning]
            self._q[index] = np.cos(angle)
            self._q[index + 1] = np.sin(angle)
        self._dq[self._v_index] = dq
        self._ddq[self._v_index] = ddq
        full: Array = pin.computeJointTorqueRegressor(
            self._model, self._data, self._q, self._dq, self._ddq
        )
        return full.take(entries)


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
    except Exception as error:  # the library raises several types, all on the URDF's content
        raise RobotModelError(f"the URDF can't be turned into a robot model: {error}") from None
    reference = pin.neutral(full)
    for name, value in locked.items():
        joint = full.joints[full.getJointId(name)]
        pose = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
        reference[joint.idx_q : joint.idx_q + joint.nq] = pose
    still = [i for i in range(1, full.njoints) if full.names[i] not in moving]
    return pin.buildReducedModel(full, still, reference)
