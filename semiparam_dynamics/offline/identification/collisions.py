"""Distances of a moving robot's links from one another and from a floor.

The shapes are the URDF's collision elements, read by pinocchio; coal gives the distances. A mesh
counts as its convex hull, which is never smaller: two meshes take a hundred times as long.
"""

from __future__ import annotations

import copy
import itertools
import os
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import coal
import numpy as np
import pinocchio as pin

from semiparam_dynamics.base.arrays import Array, Indices, Mask
from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError, listing
from semiparam_dynamics.base.parameters import parameter
from semiparam_dynamics.offline.identification.joint_motion import (
    FourierTrajectory,
    MotionLimits,
    motion_limits,
)
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import parse_urdf, parse_xml

FLOOR = "the floor"
APPROACH_TOLERANCE_M = 1e-3  # m, of the smallest distance over a motion
_MAX_BELOW_BASE = 0.02  # m that links of a robot on a floor may reach below its root link
_MIN_UPRIGHT_COSINE = 0.95  # cosine of the angle between the root link's z axis and the vertical
_MAX_BUILT_DISTANCE = 0.02  # m between links that are near each other by their build
_EXACT_RANGE = 0.05  # m beyond the smallest distance up to which others are computed
_SEARCH_RANGE = 0.2  # m beyond the clearance within which a pair takes part in a search
_MIN_SHARPNESS = 500.0  # 1/m, of the smooth minimum, below the minimum by log(n) / this at most
_SMOOTHING_RANGE = 0.03  # m beyond the minimum, where a distance counts exp(-15) of the nearest
INSTANTS_PER_CYCLE = 40  # of the highest harmonic, where limits are checked and nearness begins


@dataclass(frozen=True)
class CollisionConfig:
    """Obstacles of a motion, and the distance that it keeps."""

    clearance: float = parameter(
        0.02, "distance kept between links, and from the floor", unit="m", low=0.0, high=1.0
    )
    floor: str = parameter(
        "base",
        "height of a level floor above the root link's origin, m; base: 0 where that link stands "
        "upright and nothing reaches below it; none: no floor",
    )


@dataclass(frozen=True)
class Approach:
    """The nearest that a motion comes to a collision."""

    distance: float  # m between the two links' hulls; negative: the depth of the overlap
    margin: float  # m, that distance minus what is kept
    links: tuple[str, str]
    time: float  # s

    def text(self) -> str:
        """The distance and the links in words."""
        names = " and ".join(self.links)
        if self.distance < 0.0:
            return f"{names} overlap by {-self.distance:.3f} m at {self.time:.2f} s"
        return f"smallest distance {self.distance:.3f} m, between {names} at {self.time:.2f} s"


class Collisions:
    """The pairs of links of a robot, or of a link and the floor, that may come near each other.

    Left out are links that no joint moves against each other, neighbours (joined by one joint that
    moves, bodies without a shape passed over), and pairs nearer than 2 cm in the neutral posture
    (all joints at 0, or at the limit next to it) and also in the middle of the ranges. Pairs nearer
    than the clearance in both must only not touch. For the floor, where those that touch are left
    out, eight more postures count. Not thread-safe.

    model: the robot with target effort; joints that it does not learn stand where it locks them.
    folders: in which ``package://NAME/...`` and relative mesh files are looked for, before those of
        AMENT_PREFIX_PATH and ROS_PACKAGE_PATH.
    limits: of the motions, with the range of sliding joints that have no limits in the URDF;
        None: those of `motion_limits`.

    Attributes: `pairs`, names of the two links; `kept`, (n_pairs,) m, which each has to keep;
    `notes`, sentences on what is not checked.

    Raises RobotModelError where a collision element is no valid one, or a sliding joint has no
    limits at all; ConfigurationError for a floor that is neither a height nor one of the words.
    """

    def __init__(
        self,
        model: RobotModel,
        config: CollisionConfig | None = None,
        folders: Iterable[Path] = (),
        limits: MotionLimits | None = None,
    ) -> None:
        config = config or CollisionConfig()
        limits = limits or motion_limits(model.urdf_text, model)
        self._model = kinematics = model.kinematics
        self._data = kinematics.createData()
        self._joints = [kinematics.joints[kinematics.getJointId(n)] for n in model.joint_names]
        self._columns = [joint.idx_v for joint in self._joints]
        text, missing = _with_collisions(model.urdf_text, _package_roots(folders))
        try:
            self._geometry = pin.buildGeomFromUrdfString(kinematics, text, pin.COLLISION)
        except (ValueError, RuntimeError) as error:
            raise RobotModelError(
                f"the URDF's collision elements can't be read: {error}; mend them, or leave "
                "them out"
            ) from None
        notes = []
        if missing:
            notes.append(
                f"collision meshes of {listing(missing)} can't be found or read: without them are "
                f"checked the other {self._geometry.ngeoms} shapes of the URDF; --meshes names a "
                "folder that holds their packages"
            )
        elif not self._geometry.ngeoms:
            notes.append("the URDF has no collision elements")
        shapes = self._geometry.geometryObjects
        self._links = [str(kinematics.frames[shape.parentFrame].name) for shape in shapes]
        for shape in shapes:
            shape.geometry = _hull(shape.geometry)
            shape.geometry.computeLocalAABB()
        low, high = model.position_limits
        # The URDF's own ranges are kept where it has some: a narrower one, in which links are near
        # each other throughout, would leave their pair out. A slide's way must be finite, though.
        endless = model.sliding & ~np.isfinite(high - low)
        low, high = np.where(endless, limits.lower, low), np.where(endless, limits.upper, high)
        self._neutral = np.clip(np.zeros(model.n_joints), low, high)
        ends = np.isfinite(low) & np.isfinite(high)
        self._half = np.where(ends, 0.5 * (high - low), np.pi)
        self._middle = np.where(ends, 0.5 * (np.where(ends, low, 0) + np.where(ends, high, 0)), 0.0)
        self._floor(config.floor, np.array(model.config.gravity), notes)
        self._choose(config.clearance, notes)
        self._reach = self._lever_arms(model, low, high)
        self.notes = tuple(notes)

    def _floor(self, asked: str, gravity: Array, notes: list[str]) -> None:
        """Add the floor where there is one; `self.floor` is its height, m, or None."""
        strength = float(np.linalg.norm(gravity))
        up = -gravity / strength if strength > 0.0 else np.array([0.0, 0.0, 1.0])
        self.floor: float | None = None
        if asked == "none" or not self._links:
            return
        if asked == "base":
            lowest = self._lowest(up)
            if up[2] < _MIN_UPRIGHT_COSINE or lowest < -_MAX_BELOW_BASE:
                notes.append(
                    "no floor is checked: the root link does not stand on one (it is tilted, or "
                    "links reach below it); --floor HEIGHT gives one"
                )
                return
            self.floor = 0.0
        else:
            try:
                self.floor = float(asked)
            except ValueError:
                self.floor = float("nan")
            if not np.isfinite(self.floor):
                raise ConfigurationError(
                    f"--floor must be a height in m, base or none, not '{asked}'"
                )
        plane = coal.Halfspace(up, self.floor)
        shape = pin.GeometryObject(FLOOR, 0, 0, pin.SE3.Identity(), plane)
        self._geometry.addGeometryObject(shape)
        self._links.append(FLOOR)

    def _lowest(self, up: Array) -> float:
        """The height (m) of the lowest point of all shapes in the neutral posture."""
        self._geometry_data = self._geometry.createData()
        self._place(self._neutral)
        ground = coal.Halfspace(up, 0.0), coal.Transform3s.Identity()
        heights = []
        for shape, pose in zip(
            self._geometry.geometryObjects, self._geometry_data.oMg, strict=True
        ):
            there = coal.Transform3s(pose.rotation, pose.translation)
            request, result = coal.DistanceRequest(), coal.DistanceResult()
            heights.append(coal.distance(*ground, shape.geometry, there, request, result))
        return float(min(heights))

    def _choose(self, clearance: float, notes: list[str]) -> None:
        """Choose the pairs, and the distance that each has to keep."""
        shapes = self._geometry.geometryObjects
        endless = np.array([shape.name == FLOOR for shape in shapes], dtype=bool)
        centers = np.array([shape.geometry.aabb_center for shape in shapes]).reshape(-1, 3)
        radii = np.array([shape.geometry.aabb_radius for shape in shapes])
        self._centers = np.where(endless[:, None], 0.0, centers)
        self._radii = np.where(endless, np.inf, radii)
        bodies = [shape.parentJoint for shape in shapes]
        carriers = set(bodies)

        def neighbour(body: int) -> int:
            while body and (body := self._model.parents[body]) not in carriers:
                pass
            return int(body)

        possible = []
        for second in range(len(bodies)):
            for first in range(second):
                a, b = sorted((bodies[first], bodies[second]))
                if a != b and (endless[second] or neighbour(b) != a):
                    possible.append((first, second))
        self._watch(np.array(possible, dtype=np.intp).reshape(-1, 2))
        names = [(self._links[first], self._links[second]) for first, second in possible]
        ground = np.array([FLOOR in pair for pair in names], dtype=bool)
        apart = self._by_build(ground)
        left = apart > np.where(ground, 0.0, _MAX_BUILT_DISTANCE)
        self._watch(self._ids[left])
        self.pairs = tuple(itertools.compress(names, left))
        self.kept: Array = np.where(apart[left] < clearance, 0.0, clearance)
        built = (
            "not checked, as they are nearer than 2 cm both in the neutral posture and in the "
            "middle of the joints' ranges"
        )
        near = "nearer than the clearance by their build, kept from touching"
        for told, chosen in ((built, ~left), (near, left & (apart < clearance))):
            pairs = itertools.compress(names, chosen)
            if words := list(dict.fromkeys(" and ".join(pair) for pair in pairs)):
                notes.append(f"{told}: {listing(words)}")

    def _watch(self, pairs: Indices) -> None:
        """Have the distances of these pairs (n, 2) of shapes computed."""
        self._ids = pairs
        self._geometry.removeAllCollisionPairs()
        for first, second in pairs.tolist():
            self._geometry.addCollisionPair(pin.CollisionPair(first, second))
        self._geometry_data = self._geometry.createData()

    def _by_build(self, ground: Mask) -> Array:
        """(n_pairs,) m, the larger in two postures; from the floor (`ground`) of ten.

        An arm at 0 may lie along the floor and yet leave it.
        """
        apart = np.maximum(self._distances(self._neutral), self._distances(self._middle))
        only = np.flatnonzero(ground)
        for q in np.random.default_rng(0).uniform(-1.0, 1.0, (8, len(self._neutral))):
            there = self._distances(self._middle + q * self._half, only)
            apart[only] = np.maximum(apart[only], there[only])
        return apart

    def _lever_arms(self, model: RobotModel, lower: Array, upper: Array) -> Array:
        """(n_joints,) m (1 of sliding joints): no point moves farther for a radian of the joint."""
        kinematics = self._model
        ways = [float(np.linalg.norm(place.translation)) for place in kinematics.jointPlacements]
        for name, low, high, slides in zip(
            model.joint_names, lower, upper, model.sliding, strict=True
        ):
            if slides:
                ways[kinematics.getJointId(name)] += float(max(abs(low), abs(high)))
        ends = np.zeros(kinematics.njoints)
        for shape, center, radius in zip(
            self._geometry.geometryObjects, self._centers, self._radii, strict=True
        ):
            if shape.name != FLOOR:
                end = float(np.linalg.norm(shape.placement.act(center))) + float(radius)
                ends[shape.parentJoint] = max(ends[shape.parentJoint], end)
        for joint in range(kinematics.njoints - 1, 0, -1):
            parent = kinematics.parents[joint]
            ends[parent] = max(ends[parent], ways[joint] + ends[joint])
        turning = np.array([ends[kinematics.getJointId(name)] for name in model.joint_names])
        return np.where(model.sliding, 1.0, turning)

    def _place(self, q: Array) -> None:
        """Place the shapes at the learned joints' positions (n_joints,)."""
        x = pin.neutral(self._model)
        for joint, value in zip(self._joints, q, strict=True):
            pose = value if joint.nq == 1 else (np.cos(value), np.sin(value))
            x[joint.idx_q : joint.idx_q + joint.nq] = pose
        self._x = x
        pin.updateGeometryPlacements(
            self._model, self._data, self._geometry, self._geometry_data, x
        )

    def _distances(
        self, q: Array, pairs: Indices | None = None, below: Array | float = np.inf
    ) -> Array:
        """(n_pairs,) m at q; of pairs whose enclosing spheres are farther than `below`, those's."""
        self._place(q)
        poses = self._geometry_data.oMg
        centers = np.array([p.act(c) for p, c in zip(poses, self._centers, strict=True)])
        centers = centers.reshape(-1, 3)
        first, second = self._ids.T
        radii = self._radii[first] + self._radii[second]
        apart = np.linalg.norm(centers[first] - centers[second], axis=1) - radii
        wanted = ~(apart >= below)
        if pairs is not None:
            only = np.zeros(len(wanted), dtype=bool)
            only[pairs] = True
            wanted &= only
        for index in np.flatnonzero(wanted):
            result = pin.computeDistance(self._geometry, self._geometry_data, int(index))
            apart[index] = result.min_distance
        return np.asarray(apart)

    def margins(self, q: Array, below: float = np.inf) -> Array:
        """(n,) m, the smallest distance minus what is kept, at postures q (n, n_joints).

        Where it is more than `below`, a lower bound.
        """
        return np.array(
            [np.min(self._distances(row, below=self.kept + below) - self.kept) for row in q]
        )

    def nearest(self, trajectory: FourierTrajectory) -> Approach:
        """The nearest that a period comes to a collision, to 1 mm.

        No point moves faster than the joints' speeds times their lever arms, so an interval of
        time whose ends are far enough from everything is clear throughout; others are halved.
        """
        count = INSTANTS_PER_CYCLE * trajectory.harmonics
        times = np.linspace(0.0, trajectory.period, count + 1)
        best, when = np.inf, 0.0

        def look(at: Array) -> Array:
            nonlocal best, when
            found = np.empty(len(at))
            for k, q in enumerate(trajectory(at)[0]):
                found[k] = self.margins(q[None], best + _EXACT_RANGE)[0]
                if found[k] < best:
                    best, when = float(found[k]), float(at[k])
            return found

        margins = look(times)
        begin, end = times[:-1], times[1:]
        at_begin, at_end = margins[:-1], margins[1:]
        while len(begin):
            step = (end - begin)[:, None]
            _, dq, ddq = (np.abs(values) for values in trajectory(np.concatenate((begin, end))))
            k = len(begin)
            speed = np.maximum(dq[:k], dq[k:]) + step * np.maximum(ddq[:k], ddq[k:])
            way = (step * speed) @ self._reach
            left = 0.5 * (at_begin + at_end - way) < best - APPROACH_TOLERANCE_M
            begin, end, at_begin, at_end = (v[left] for v in (begin, end, at_begin, at_end))
            middle = 0.5 * (begin + end)
            between = look(middle)
            begin, end = np.concatenate((begin, middle)), np.concatenate((middle, end))
            at_begin = np.concatenate((at_begin, between))
            at_end = np.concatenate((between, at_end))
        distances = self._distances(trajectory([when])[0][0])
        worst = int(np.argmin(distances - self.kept))
        return Approach(float(distances[worst]), best, self.pairs[worst], when)

    def collides(self, q: Array) -> bool:
        """True where some posture of q (n, n_joints) does not keep the distances."""
        return any(self.margins(row[None], 0.0)[0] < 0.0 for row in q)

    def near(self, q: Array) -> list[int]:
        """The pairs that come within 0.2 m of what they keep, at some posture of q."""
        below = self.kept + _SEARCH_RANGE
        found = [self._distances(row, below=below) < below for row in q]
        return [int(pair) for pair in np.flatnonzero(np.any(found, axis=0))]

    def smooth_margin(self, q: Array, pairs: Sequence[int]) -> float:
        """The smooth minimum (m) of the margins of `pairs` over postures q (n, n_joints)."""
        margins = self._margins(q, pairs)
        lowest = float(margins.min())
        total = float(np.exp(-_MIN_SHARPNESS * (margins - lowest)).sum())
        return lowest - float(np.log(total)) / _MIN_SHARPNESS

    def smooth_slope(self, q: Array, pairs: Sequence[int]) -> Array:
        """(n, n_joints) m per rad or m, the slope of :meth:`smooth_margin` by q."""
        margins = self._margins(q, pairs)
        weights = np.exp(-_MIN_SHARPNESS * (margins - margins.min()))
        weights /= weights.sum()
        slope: Array = np.zeros(q.shape)
        count = weights > np.exp(-_MIN_SHARPNESS * _SMOOTHING_RANGE)
        for k in np.flatnonzero(count.any(axis=1)):
            close = np.flatnonzero(count[k])
            self._distances(q[k], np.array(pairs)[close])
            pin.computeJointJacobians(self._model, self._data, self._x)
            for c in close:
                slope[k] += weights[k, c] * self._slope(pairs[int(c)])
        return slope

    def _margins(self, q: Array, pairs: Sequence[int]) -> Array:
        """(n, n_pairs) m; of those that hardly count in the smooth minimum, lower bounds."""
        chosen = np.array(pairs, dtype=np.intp)
        margins = np.full((len(q), len(chosen)), np.inf)
        lowest = 1e3
        for k, row in enumerate(q):
            below = self.kept + (lowest + _SMOOTHING_RANGE)
            margins[k] = self._distances(row, chosen, below)[chosen] - self.kept[chosen]
            lowest = min(lowest, float(margins[k].min()))
        return margins

    def _slope(self, pair: int) -> Array:
        """(n_joints,) of a pair's distance, after `_distances` and the Jacobians, by its points."""
        result = self._geometry_data.distanceResults[pair]
        normal, slope = np.array(result.normal), np.zeros(self._model.nv)
        points = result.getNearestPoint1(), result.getNearestPoint2()
        for sign, index, point in zip((-1.0, 1.0), self._ids[pair], points, strict=True):
            joint = self._geometry.geometryObjects[int(index)].parentJoint
            if joint:
                jacobian = pin.getJointJacobian(
                    self._model, self._data, joint, pin.LOCAL_WORLD_ALIGNED
                )
                arm = np.array(point) - self._data.oMi[joint].translation
                # A point's velocity is v + w x arm, along the normal n: n v + (arm x n) w.
                slope += sign * (normal @ jacobian[:3] + _cross(arm, normal) @ jacobian[3:])
        return slope[self._columns]


def _hull(geometry: coal.CollisionGeometry) -> coal.CollisionGeometry:
    """A mesh's hull in its place, where it has one: a flat mesh has none."""
    if isinstance(geometry, coal.BVHModelBase):
        with suppress(ValueError, RuntimeError):
            geometry.buildConvexHull(True, "Qt")
            return geometry.convex
    return geometry


def _cross(a: Array, b: Array) -> Array:
    """The cross product of two vectors (3,): NumPy's takes ten times as long for one."""
    (a0, a1, a2), (b0, b1, b2) = a.tolist(), b.tolist()
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])


def _with_collisions(text: str, roots: Sequence[Path]) -> tuple[str, list[str]]:
    """The plain URDF with those collision elements whose meshes exist; links of the others.

    A capsule (URDF 1.1) is the cylinder around it: readers of URDF 1.0 know none.
    """
    robot = ET.fromstring(parse_urdf(text).to_xml())  # nosec B314 # written here
    elements = {link.get("name"): link for link in robot.findall("link")}
    missing: list[str] = []
    for link in parse_xml(text).findall("link"):
        name = link.get("name", "")
        for collision in link.findall("collision"):
            kept = copy.deepcopy(collision)
            if (capsule := kept.find("geometry/capsule")) is not None:
                try:
                    radius, length = (float(capsule.get(k, "")) for k in ("radius", "length"))
                except ValueError:
                    told = f"a capsule of link '{name}' needs a radius and a length in m: it has"
                    raise RobotModelError(f"{told} {dict(capsule.attrib)}") from None
                capsule.tag = "cylinder"
                capsule.set("length", repr(length + 2.0 * radius))
            if (mesh := kept.find("geometry/mesh")) is not None:
                path = _mesh_file(mesh.get("filename", ""), roots)
                if path is None or not _loads(path):
                    missing.append(name)
                    continue
                mesh.set("filename", str(path))
            elements[name].append(kept)
    return ET.tostring(robot, encoding="unicode"), list(dict.fromkeys(missing))


def _package_roots(folders: Iterable[Path]) -> list[Path]:
    """The folders given with those above them, then those of the ROS environment."""
    given = [folder.expanduser().resolve() for folder in folders]
    roots = [place for folder in given for place in (folder, *folder.parents)]
    for variable, inner in (("AMENT_PREFIX_PATH", "share"), ("ROS_PACKAGE_PATH", "")):
        listed = os.environ.get(variable, "").split(os.pathsep)
        roots += [Path(entry) / inner for entry in listed if entry]
    return roots


def _mesh_file(name: str, roots: Sequence[Path]) -> Path | None:
    """The file that a mesh's name stands for, None where it is none."""
    for scheme in ("package://", "model://"):
        name = name.removeprefix(scheme)
    path = Path(name.removeprefix("file://"))
    for place in [path] if path.is_absolute() else [root / path for root in roots]:
        if place.is_file():
            return place
    return None


def _loads(path: Path) -> bool:
    try:
        coal.MeshLoader().load(str(path), np.ones(3))
    except (ValueError, RuntimeError):
        return False
    return True
