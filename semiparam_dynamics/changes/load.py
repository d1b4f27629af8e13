"""A load on the robot's flange, in the frame and by the convention of its driver."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.robot.inertia import (
    compact_body,
    inertial_parameters,
    is_body,
    pseudo_inertia,
)
from semiparam_dynamics.robot.regressor import Multibody
from semiparam_dynamics.robot.urdf import (
    ONE_DOF,
    UrdfTree,
    check_joints,
    closest,
    joint_limits,
    parse_urdf,
    read_urdf,
)

POSES = 500  # random ones, in which the largest effect of a load's weight is looked for
GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True, slots=True)
class Load:
    """A body as drivers take it: the inertia (3, 3) is about its centre of mass, in kg m^2."""

    mass: float  # kg
    center: Array  # (3,) m
    inertia: Array


def parameters_of(mass: float, center: Array, about_center: Array) -> Array:
    """(10,) the parameters, as `regressor.INERTIAL` names them, of a body or minus a body.

    about_center: (6,) Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the centre of mass, kg m^2.
    """
    P = pseudo_inertia(np.concatenate(([mass, 0.0, 0.0, 0.0], about_center)))
    P[:3, :3] += mass * np.outer(center, center)
    P[:3, 3] = P[3, :3] = mass * np.asarray(center)
    return inertial_parameters(P)


def load_of(parameters: Array) -> Load:
    """The load of parameters (10,); without mass there is no centre and no inertia."""
    mass = float(parameters[0])
    if mass == 0.0:
        return Load(0.0, np.zeros(3), np.zeros((3, 3)))
    P = pseudo_inertia(parameters)
    center = P[:3, 3] / mass
    S = P[:3, :3] - mass * np.outer(center, center)
    return Load(mass, center, np.trace(S) * np.eye(3) - S)


def tool_parameters(mass: float, center: Sequence[float], inertia: Sequence[float]) -> Array:
    """(10,) the parameters of a configured tool; a round one where it has no inertia.

    inertia: empty, or (6,) Ixx, Ixy, Ixz, Iyy, Iyz, Izz about the centre of mass, as in a URDF.
    Raises ConfigurationError where no body has these.
    """
    if len(center) not in (0, 3) or len(inertia) not in (0, 6):
        raise ConfigurationError("'tool_center' needs 3 numbers and 'tool_inertia' 6, or none")
    if mass == 0.0:
        return np.zeros(10)
    c = np.array(center or (0.0, 0.0, 0.0))
    if not inertia:
        return compact_body(mass, c)
    xx, xy, xz, yy, yz, zz = inertia
    parameters = parameters_of(mass, c, np.array([xx, xy, yy, xz, yz, zz]))
    if not is_body(parameters):
        raise ConfigurationError(
            "no body has this 'tool_inertia': its moments must be positive, and each smaller than "
            "the sum of the other two"
        )
    return parameters


class LoadFrame:
    """The frame in which a driver takes loads, and what their weight does to the joints.

    Parameters
    ----------
    urdf: its text, or a file's path.
    joints: those that move, the same as the learner's; empty: all actuated ones.
    name: a link of the URDF, fixed to the one that payloads are estimated for.

    Raises RobotModelError, also where a joint that is not among `joints` lies between that link and
    `name`: the load would be given as if it stood at 0.

    Attributes
    ----------
    name: the frame's. body: number of the moving body that it belongs to. joint_names.
    limits: (n_joints,) N m, infinite where the URDF has none.
    """

    def __init__(self, urdf: str, joints: Sequence[str], name: str) -> None:
        tree = parse_urdf(read_urdf(urdf))
        joints = tuple(joints) or tree.actuated()
        if not joints:
            raise RobotModelError("the URDF has no joint that moves: name the robot's own")
        check_joints(tree, joints)
        bodies = Multibody(tree, joints, {}, GRAVITY)
        self._poses = [dict(links) for links in bodies.links]
        body = next((k for k, links in enumerate(self._poses) if name in links), None)
        if body is None:
            moving = [link for links in reversed(self._poses) for link in links]
            raise RobotModelError(
                f"no moving link of the URDF is called '{name}'{closest(name, moving)}"
            )
        between = _moving_between(tree, name, self._poses[body])
        if between:
            raise RobotModelError(
                f"'{name}' hangs on the joint '{between}', which is not among 'joints': where it "
                "stands is not known here; learn that joint, too, or name a link before it"
            )
        self.name, self.body, self.joint_names = name, body, joints
        self.limits = joint_limits(tree, joints, "effort")
        self._to_body: Array = self._poses[body][name]
        self._weights = self._weight_columns(bodies, tree)

    def _weight_columns(self, bodies: Multibody, tree: UrdfTree) -> Array:
        """(poses, n_joints, 4) efforts by a load's mass and first moments, in the body's frame."""
        model, body = bodies.kinematics, int(bodies.body_joints[self.body])
        data, still = model.createData(), np.zeros(model.nv)
        rows = [model.joints[model.getJointId(name)].idx_v for name in self.joint_names]
        low, high = np.full(model.nv, -np.pi), np.full(model.nv, np.pi)
        for row, name in zip(rows, self.joint_names, strict=True):
            joint = tree.joints[name]
            # Of a way that is longer than a turn, a turn.
            if joint.type != "continuous" and 0.0 < joint.upper - joint.lower < 2.0 * np.pi:
                low[row], high[row] = joint.lower, joint.upper
        first, columns = 10 * (body - 1), []
        for way in np.random.default_rng(0).uniform(low, high, (POSES, model.nv)):
            q = pin.integrate(model, pin.neutral(model), way)
            everything = pin.computeJointTorqueRegressor(model, data, q, still, still)
            # Of one joint alone it is (10,).
            columns.append(everything.reshape(model.nv, -1)[rows, first : first + 4])
        return np.array(columns)

    def moved(self, link: str, parameters: Array) -> Array:
        """(10,) in this frame, of parameters in the frame of a link.

        Raises RobotModelError where the link is not fixed to this frame.
        """
        links = self._poses[self.body]
        if link not in links:
            raise RobotModelError(
                f"the payload is estimated in the frame '{link}', which is not fixed to "
                f"'{self.name}': the parameters 'joints' of this node and the learner must be the "
                f"same, and 'frame' one of {', '.join(links)}"
            )
        T = np.linalg.inv(self._to_body) @ links[link]
        return inertial_parameters(T @ pseudo_inertia(parameters) @ T.T)

    def in_body(self, parameters: Array) -> Array:
        """(10,) in the body's frame, of a load's parameters in this one."""
        return inertial_parameters(self._to_body @ pseudo_inertia(parameters) @ self._to_body.T)

    def share(self, parameters: Array) -> float:
        """The largest share of an effort limit that a load's weight (10,) takes, in any pose."""
        efforts = np.abs(self._weights @ self.in_body(parameters)[:4])
        return float(np.max(efforts / self.limits))


def _moving_between(tree: UrdfTree, link: str, lump: Mapping[str, Array]) -> str:
    """The joint of one degree of freedom between a link and the first link of its lump, or ""."""
    within = itertools.takewhile(lambda joint: joint.parent in lump, tree.above(link))
    return next((joint.name for joint in within if joint.type in ONE_DOF), "")
