"""The robot as capsules between its joints, for pictures of it: no mesh file has to exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.robot.urdf import parse_urdf, read_urdf

CAPSULE_DENSITY = 1500.0  # kg / m^3, of capsules that have their body's mass: motors in a shell
THINNEST, THICKEST = 0.012, 0.07  # m, radii
SHORTEST = 0.01  # m: below it nothing is drawn between two frames


@dataclass(frozen=True)
class Capsule:
    """A body's part from one point of it to another (m, in the body's frame)."""

    body: int  # the joint that carries it, pinocchio's index
    begin: Array
    end: Array
    radius: float  # m


class Skeleton:
    """Capsules of a robot's moving bodies, placed by joint positions. Not thread-safe.

    A body's capsules go from its joint to each joint it carries; that of a body which carries none
    goes to the farthest frame fixed to it, or through its centre of mass. Their radii are such that
    they have about the body's mass, and no measure of its shape.

    Parameters
    ----------
    urdf: the URDF's text, or its file.

    Attributes
    ----------
    capsules: of all bodies. sliding: the names of the prismatic joints.

    Raises RobotModelError where the URDF is no tree, or has nothing that could be drawn.
    """

    def __init__(self, urdf: str) -> None:
        tree = parse_urdf(read_urdf(urdf))
        text, joints = tree.to_xml(), tree.joints.items()
        self.sliding = frozenset(name for name, joint in joints if joint.type == "prismatic")
        try:
            self._model = pin.buildModelFromXML(text)
        except (ValueError, RuntimeError) as error:
            raise RobotModelError(f"the URDF can't be read: {error}") from None
        self._data = self._model.createData()
        self._q: Array = pin.neutral(self._model)
        self.capsules = [c for body in range(self._model.njoints) for c in self._of_body(body)]
        if not self.capsules:
            raise RobotModelError("the URDF's frames are all in one place: nothing to draw")
        self._ends = np.array([[c.begin, c.end] for c in self.capsules])  # (n, 2, 3)

    @property
    def joints(self) -> list[str]:
        """The names of the joints that move."""
        return list(self._model.names)[1:]

    @property
    def radii(self) -> list[float]:
        """The capsules' radii, m."""
        return [capsule.radius for capsule in self.capsules]

    def moved_by(self, joints: Iterable[str]) -> list[bool]:
        """Capsules that some of the joints named move."""
        model = self._model
        known = {model.getJointId(name) for name in joints if model.existJointName(name)}
        return [not known.isdisjoint(model.supports[capsule.body]) for capsule in self.capsules]

    def tip(self, joints: Sequence[str]) -> int:
        """Index of the capsule at the end of the longest chain that some of the joints move.

        Of the whole robot where they move none.
        """
        depths = np.array([len(self._model.supports[c.body]) for c in self.capsules])
        moved = np.array(self.moved_by(joints))
        return int(np.argmax(np.where(moved, depths, 0) if moved.any() else depths))

    def place(self, positions: Mapping[str, float]) -> Array:
        """(n_capsules, 2, 3) m: the ends seen from the root link.

        `positions`: rad or m by joint name. Those that are not named stay where they were, at
        first at 0; names the URDF lacks and numbers that are not finite are passed over.
        """
        model = self._model
        for name, value in positions.items():
            if not np.isfinite(value) or not model.existJointName(name):
                continue
            joint = model.joints[model.getJointId(name)]
            if joint.nq == 2:  # without limits: a cosine and a sine
                self._q[joint.idx_q : joint.idx_q + 2] = np.cos(value), np.sin(value)
            elif joint.nq == 1:
                self._q[joint.idx_q] = value
        pin.forwardKinematics(model, self._data, self._q)
        bodies = [c.body for c in self.capsules]
        turns = np.array([self._data.oMi[b].rotation for b in bodies])
        origins = np.array([self._data.oMi[b].translation for b in bodies])
        placed: Array = np.einsum("nij,nkj->nki", turns, self._ends) + origins[:, None]
        return placed

    def frame(self, name: str) -> tuple[Array, Array] | None:
        """Rotation (3, 3) and origin (3,) of a link or joint as placed last; None: unknown."""
        kinds = pin.FrameType.BODY, pin.FrameType.JOINT, pin.FrameType.FIXED_JOINT
        kind = next((kind for kind in kinds if self._model.existFrame(name, kind)), None)
        if kind is None:
            return None
        index = self._model.getFrameId(name, kind)
        placed = pin.updateFramePlacement(self._model, self._data, index)
        return placed.rotation, placed.translation

    def _of_body(self, body: int) -> list[Capsule]:
        model = self._model
        inertia = model.inertias[body] if body else None
        ends = [model.jointPlacements[child].translation for child in model.children[body]]
        if not ends:
            fixed = [f.placement.translation for f in model.frames if f.parentJoint == body]
            ends = [max(fixed, key=lambda end: float(np.linalg.norm(end)))] if fixed else []
            if inertia is not None and (not ends or np.linalg.norm(ends[0]) < SHORTEST):
                ends = [2.0 * inertia.lever]
        ends = _distinct(ends)
        lengths = [float(np.linalg.norm(end)) for end in ends]
        mass = 0.0 if inertia is None else float(inertia.mass)
        across = mass / (CAPSULE_DENSITY * np.pi * max(sum(lengths), 1e-9))
        radius = float(np.clip(np.sqrt(max(across, 0.0)), THINNEST, THICKEST))
        return [Capsule(body, np.zeros(3), np.array(end), radius) for end in ends]


def _distinct(ends: Sequence[Array]) -> list[Array]:
    """Those that are neither at the origin nor beside one before."""
    kept: list[Array] = []
    for end in ends:
        near = (float(np.linalg.norm(end - other)) for other in (np.zeros(3), *kept))
        if np.isfinite(end).all() and min(near) >= SHORTEST:
            kept.append(end)
    return kept
