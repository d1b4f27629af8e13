"""Where a frame of the robot is, and how the learned joints move it."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from semiparam_dynamics.arrays import Array, Mask
from semiparam_dynamics.errors import RobotModelError
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.regressor import reduced_model
from semiparam_dynamics.robot.urdf import UrdfTree, closest, parse_urdf


class FrameMotion:
    """The motion of a frame of the URDF by the joints of a model, the others locked.

    Parameters
    ----------
    model: the robot.
    frame: a link, or a joint, which stands for the link behind it; empty: the tool's, see
        :func:`tool_frame`.
    axes: the frame in whose axes the numbers are; empty: its own.

    Attributes
    ----------
    frame, axes: links.
    moved: (n_joints,) which joints move the frame.

    Raises RobotModelError where there is no such frame. Not thread-safe.
    """

    def __init__(self, model: RobotModel, frame: str = "", axes: str = "") -> None:
        tree = parse_urdf(model.urdf_text)
        self.frame = _link(tree, frame) if frame else tool_frame(tree, model.joint_names)
        self.axes = _link(tree, axes) if axes else self.frame
        self._tree = tree
        self._model = reduced_model(tree, model.joint_names, model.locked)
        self._data = self._model.createData()
        joints = [self._model.joints[self._model.getJointId(name)] for name in model.joint_names]
        self._columns = np.array([joint.idx_v for joint in joints])
        self._places = np.array([joint.idx_q for joint in joints])
        self._round = np.array([joint.nq == 2 for joint in joints])  # a cosine and a sine
        self._q: Array = pin.neutral(self._model)
        self._frame, self._axes = self._id(self.frame), self._id(self.axes)
        carrying = set(self._model.supports[self._model.frames[self._frame].parentJoint])
        self.moved: Mask = np.array([joint.id in carrying for joint in joints])

    def jacobian(self, q: Array) -> Array:
        """J (6, n_joints) at q (n_joints,): J dq is the velocity of the frame's origin and the
        angular velocity, and J' w are the efforts of a force at the origin and a moment about it.
        """
        self._place(q)
        local = pin.computeFrameJacobian(
            self._model, self._data, self._q, self._frame, pin.LOCAL_WORLD_ALIGNED
        )
        world = local[:, self._columns]
        turn = self._rotation(self._axes).T
        return np.concatenate((turn @ world[:3], turn @ world[3:]))

    def from_frame(self, q: Array, frame: str) -> Array:
        """X (6, 6) at q (n_joints,): X w is here what w, a wrench at the link `frame`, is there."""
        self._place(q)
        other = self._id(_link(self._tree, frame))
        pin.forwardKinematics(self._model, self._data, self._q)
        for frame_id in (other, self._frame):
            pin.updateFramePlacement(self._model, self._data, frame_id)
        here, there = self._data.oMf[self._frame], self._data.oMf[other]
        turn = self._rotation(self._axes).T
        force = turn @ there.rotation
        lever = turn @ pin.skew(there.translation - here.translation) @ there.rotation
        return np.block([[force, np.zeros((3, 3))], [lever, force]])

    def _rotation(self, frame: int) -> Array:
        """Of a frame in the world, at the positions that were placed last."""
        rotation: Array = pin.updateFramePlacement(self._model, self._data, frame).rotation
        return rotation

    def _place(self, q: Array) -> None:
        self._q[self._places] = np.where(self._round, np.cos(q), q)
        turning = self._places[self._round] + 1
        self._q[turning] = np.sin(q[self._round])
        if self.axes != self.frame:  # of which the Jacobian's joints may not be all
            pin.forwardKinematics(self._model, self._data, self._q)

    def _id(self, link: str) -> int:
        return int(self._model.getFrameId(link, pin.FrameType.BODY))


def tool_frame(tree: UrdfTree, joints: tuple[str, ...]) -> str:
    """The link behind the last of `joints`, by most fixed joints: a flange, a hand, its centre."""
    above: dict[str, int] = {}
    for name in joints:
        depth, link = 0, tree.joints[name].parent
        while (joint := tree.parent_joint(link)) is not None:
            depth, link = depth + (joint.name in joints), joint.parent
        above[name] = depth
    link = tree.joints[max(joints, key=above.__getitem__)].child
    depths = {link: 0}
    for joint in tree.below(link):  # depth first: a parent comes before its children
        if joint.type == "fixed" and joint.parent in depths:
            depths[joint.child] = depths[joint.parent] + 1
    return max(depths, key=depths.__getitem__)


def _link(tree: UrdfTree, frame: str) -> str:
    if frame in tree.inertials:
        return frame
    if (joint := tree.joints.get(frame)) is not None:
        return joint.child
    raise RobotModelError(
        f"the URDF has no frame '{frame}'{closest(frame, [*tree.inertials, *tree.joints])}"
    )
