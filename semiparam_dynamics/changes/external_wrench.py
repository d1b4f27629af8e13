"""The wrench at a frame of the robot, by what the model leaves of the measurements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.regressor import reduced_model
from semiparam_dynamics.robot.urdf import UrdfTree, closest, parse_urdf

SIZE = (100.0, 20.0)  # N, N m, of a large wrench
UNSEEN = 0.25  # of the variance before, above which a direction is not seen
# Before anything is measured a wrench is none, or about one of these shares of `SIZE`, each as
# probable as another: most pushes are far smaller than the largest to be expected.
SHARES = np.array([0.0, 0.03, 0.1, 0.3, 1.0])
# Errors are these factors times their predicted deviations, with these probabilities.
FACTORS = np.array([0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8])
PROBABLE = np.array([0.05, 0.1, 0.2, 0.3, 0.2, 0.1, 0.05])
FACTOR_S = 5.0  # for which a factor lasts
DEPENDENT_S = 1.0  # for which a model's errors repeat one another
MIN_STD, MAX_NUMBER = 1e-12, 1e40  # N or N m, and of scaled numbers, so that none overflows
RATIOS = (SHARES / FACTORS[:, None])[:, :, None] ** 2
NAMES = ("force x", "force y", "force z", "torque x", "torque y", "torque z")


class WrenchEstimate(NamedTuple):
    """A wrench that the surroundings exert on the robot at a frame."""

    value: Array  # (6,) force (N) at the frame's origin, and moment about it (N m)
    covariance: Array  # (6, 6)
    prior: Array  # (6,) standard deviations of a large wrench before anything was measured
    remaining: Array  # (6, 6) what measurements of that accuracy leave of the covariance of such


class ExternalWrench:
    """Estimates the wrench at a frame.

    Measured minus predicted efforts are -J' w plus an error of the standard deviations predicted.
    The estimate is the mean of w by Bayes' rule. Neither its size is known before, none or anything
    up to `size` (a scale mixture, as by West 1987, On scale mixtures of normal distributions), nor
    by which factor errors are larger or smaller than predicted, which lasts for some seconds. Each
    pair of a size and a factor makes damped least squares, weighted by the deviations, and counts
    by the evidence for it (MacKay 1992, Bayesian interpolation, section 2). What a six-axis sensor
    measures is moved from its frame.

    Parameters
    ----------
    model: the robot. frame, axes: as of `FrameMotion`; by default the tool's, or the sensor's.
    size: of large forces (N) and moments (N m), along each axis.

    Attributes
    ----------
    frame: the link at whose origin the wrench is. axes: the link in whose axes it is.

    Raises ConfigurationError where there is no such frame, or no learned joint moves it, or `size`
    has not two positive numbers.
    """

    def __init__(
        self, model: RobotModel, frame: str = "", axes: str = "", size: Sequence[float] = SIZE
    ) -> None:
        config = model.config
        if len(size) != 2 or not all(0.0 < one < np.inf for one in size):
            raise ConfigurationError(
                f"external_size needs a force and a moment above 0, not {tuple(size)}"
            )
        self._prior = np.repeat(np.array(size, dtype=np.float64), 3)
        self._sensor = config.sensor_frame if config.target == "wrench" else ""
        try:
            self._motion = FrameMotion(model, frame or self._sensor, axes)
        except RobotModelError as error:
            raise ConfigurationError(f"external_frame or external_axes: {error}") from None
        self.frame, self.axes = self._motion.frame, self._motion.axes
        self._probable: Array = PROBABLE  # of each factor, after the last sample
        self._stamp = 0  # ns, of that
        if not self._sensor and not self._motion.moved.any():
            raise ConfigurationError(
                f"external_frame: none of the learned joints moves '{self.frame}', so that no "
                "effort tells of a wrench there"
            )

    def origin(self, q: Array) -> Array:
        """(3,) m, the frame's origin at q (n_joints,), seen from the axes' link."""
        return self._motion.origin(q)

    def estimate(self, q: Array, external: Array, stds: Array, stamp: int = 0) -> WrenchEstimate:
        """The wrench at q (n_joints,) that leaves `external`, measured minus predicted, (n_axes,).

        stds : (n_axes,) standard deviations of the predictions. An axis that was not measured, NaN,
        tells nothing; nor does one whose deviation is 0, since nothing was learned yet.
        stamp : ns; 0: of no instant, nothing of the samples before is used or kept.
        """
        prior = self._prior
        known = np.isfinite(external) & (stds > MIN_STD)
        if self._sensor:
            X = self._motion.from_frame(q, self._sensor)
            if not known.all():
                unknown = np.diag(prior**2)
                return WrenchEstimate(np.zeros(6), unknown, prior, unknown)
            covariance = (X * stds**2) @ X.T
            return WrenchEstimate(-X @ external, covariance, prior, covariance)
        # Along these axes, scaled by `prior`, efforts tell of one direction apart from another.
        rows = (self._motion.jacobian(q)[:, known] * prior[:, None]) / stds[known]
        scaled = np.clip(external[known] / stds[known], -MAX_NUMBER, MAX_NUMBER)
        told, axes = np.linalg.eigh(rows @ rows.T)
        told = np.clip(told, 0.0, MAX_NUMBER)
        along = axes.T @ (rows @ scaled)
        # (factors, shares, 6): gains from `along` to the mean, and from it to the variances.
        shrunk = 1.0 + RATIOS * told
        gains = RATIOS / shrunk
        fits = (gains @ along**2 - scaled @ scaled) / FACTORS[:, None] ** 2
        evidence = 0.5 * (fits - np.log(shrunk.prod(axis=2)))
        evidence -= len(scaled) * np.log(FACTORS)[:, None]
        weights = self._weigh(evidence, stamp)[:, :, None]
        means = -gains * along
        mean = (weights * means).sum(axis=(0, 1))
        means -= mean
        variances = (weights * gains * FACTORS[:, None, None] ** 2).sum(axis=(0, 1))
        spread = (weights * means).reshape(-1, 6).T @ means.reshape(-1, 6)
        spread[np.diag_indices(6)] += variances
        turn = prior[:, None] * axes
        remaining = (turn / (1.0 + told)) @ turn.T
        return WrenchEstimate(turn @ mean, turn @ spread @ turn.T, prior, remaining)

    def _weigh(self, evidence: Array, stamp: int) -> Array:
        """The probabilities of factors and shares, by the logarithm of the evidence for them.

        What a sample tells of the factor counts by the time since the last one: errors repeat.
        """
        before, since = PROBABLE, 0.0
        if stamp != 0:
            if self._stamp != 0:
                since = max((stamp - self._stamp) * 1e-9, 0.0)
            kept = np.exp(-since / FACTOR_S)
            before = kept * self._probable + (1.0 - kept) * PROBABLE
        likely = np.exp(evidence - evidence.max())
        weights: Array = before[:, None] * likely
        if stamp != 0:
            total = np.maximum(likely.sum(axis=1), np.finfo(float).tiny)
            after = before * total ** min(since / DEPENDENT_S, 1.0)
            self._probable, self._stamp = after / after.sum(), stamp
        weights /= weights.sum()
        return weights


def unseen_directions(estimate: WrenchEstimate) -> list[str]:
    """The wrenches that the measurements hardly tell of, in words: one standard deviation of each.

    Such as "80 N force z, 12 N m torque x": a force along z and a moment about x that come with
    one another, of about that size, would not be noticed.
    """
    prior = estimate.prior
    shares, directions = np.linalg.eigh(estimate.remaining / np.outer(prior, prior))
    told = []
    for share, direction in zip(shares, directions.T, strict=True):
        if share > UNSEEN:
            largest = np.abs(direction).max()
            sizes = prior * direction * np.sign(direction[np.abs(direction).argmax()])
            parts = zip(np.sqrt(share) * sizes, np.abs(direction), NAMES, strict=True)
            told.append(
                ", ".join(
                    f"{size:.2g} {'N' if name.startswith('force') else 'N m'} {name}"
                    for size, part, name in parts
                    if part > 0.2 * largest
                )
            )
    return told


# -------------------------------------------------------------------------------------------------
# Where a frame of the robot is, and how the learned joints move it.


class LearnedJoints:
    """Pinocchio's model of a robot whose other joints are locked. Not thread-safe.

    Attributes
    ----------
    model, data: pinocchio's. ids: of the learned joints. columns: (n_joints,) theirs in a Jacobian.
    q: the configuration placed last.
    """

    def __init__(self, model: RobotModel, tree: UrdfTree) -> None:
        self.model = reduced_model(tree, model.joint_names, model.locked)
        self.data = self.model.createData()
        self.ids = [self.model.getJointId(name) for name in model.joint_names]
        joints = [self.model.joints[k] for k in self.ids]
        self.columns = np.array([joint.idx_v for joint in joints])
        self._places = np.array([joint.idx_q for joint in joints])
        self._continuous = np.array([joint.nq == 2 for joint in joints])  # a cosine and a sine
        self.q: Array = pin.neutral(self.model)

    def place(self, q: Array) -> None:
        """Set the learned joints' positions (n_joints,)."""
        self.q[self._places] = np.where(self._continuous, np.cos(q), q)
        self.q[self._places[self._continuous] + 1] = np.sin(q[self._continuous])


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
        self._tree, self._joints = tree, LearnedJoints(model, tree)
        self._model, self._data = self._joints.model, self._joints.data
        self._frame, self._axes = self._id(self.frame), self._id(self.axes)
        carrying = set(self._model.supports[self._model.frames[self._frame].parentJoint])
        self.moved: Mask = np.array([joint in carrying for joint in self._joints.ids])

    def jacobian(self, q: Array) -> Array:
        """J (6, n_joints) at q (n_joints,): J dq is the velocity of the frame's origin and the
        angular velocity, and J' w are the efforts of a force at the origin and a moment about it.
        """
        self._place(q)
        local = pin.computeFrameJacobian(
            self._model, self._data, self._joints.q, self._frame, pin.LOCAL_WORLD_ALIGNED
        )
        world = local.reshape(6, -1)[:, self._joints.columns]  # of one joint it comes as (6,)
        turn = self._rotation(self._axes).T
        return np.concatenate((turn @ world[:3], turn @ world[3:]))

    def origin(self, q: Array) -> Array:
        """(3,) m, the frame's origin at q (n_joints,), seen from the axes' link."""
        self._place(q)
        pin.forwardKinematics(self._model, self._data, self._joints.q)
        here, axes = (
            pin.updateFramePlacement(self._model, self._data, frame)
            for frame in (self._frame, self._axes)
        )
        place: Array = axes.actInv(here).translation
        return place

    def from_frame(self, q: Array, frame: str) -> Array:
        """X (6, 6) at q (n_joints,): X w is here what w, a wrench at the link `frame`, is there."""
        self._place(q)
        other = self._id(_link(self._tree, frame))
        pin.forwardKinematics(self._model, self._data, self._joints.q)
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
        self._joints.place(q)
        if self.axes != self.frame:  # of which the Jacobian's joints may not be all
            pin.forwardKinematics(self._model, self._data, self._joints.q)

    def _id(self, link: str) -> int:
        return int(self._model.getFrameId(link, pin.FrameType.BODY))


def tool_frame(tree: UrdfTree, joints: tuple[str, ...]) -> str:
    """The link behind the last of `joints`, by most fixed joints: a flange, a hand, its centre."""
    depths = [sum(j.name in joints for j in tree.above(tree.joints[name].child)) for name in joints]
    link = tree.joints[joints[int(np.argmax(depths))]].child
    behind = {link: 0}
    for joint in tree.below(link):  # depth first: a parent comes before its children
        if joint.type == "fixed" and joint.parent in behind:
            behind[joint.child] = behind[joint.parent] + 1
    return max(behind, key=behind.__getitem__)


def _link(tree: UrdfTree, frame: str) -> str:
    if frame in tree.inertials:
        return frame
    if (joint := tree.joints.get(frame)) is not None:
        return joint.child
    raise RobotModelError(
        f"the URDF has no frame '{frame}'{closest(frame, [*tree.inertials, *tree.joints])}"
    )
