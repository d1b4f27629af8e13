"""Cutting a robot at a six-axis force/torque sensor, so that its reading becomes a joint's load.

The sensor's fixed joint is replaced by a free joint that never moves. The generalised force of
that joint is then the spatial force which the proximal part exerts on everything distal, in the
sensor frame and about its origin (thesis 8.2.1): what an ideal sensor reports. A link that the
sensor splits needs no special case, its two pieces are bodies on either side of the free joint.
"""

from __future__ import annotations

import copy
import dataclasses
import xml.etree.ElementTree as ET

from semiparam_dynamics.dynamics.urdf_tree import ONE_DOF, UrdfJoint, UrdfTree, closest
from semiparam_dynamics.errors import RobotModelError


def cut_at_sensor(tree: UrdfTree, frame: str) -> tuple[UrdfTree, str]:
    """Free the joint at the sensor `frame`; return the changed tree and that joint's name.

    `frame` is a joint, or a link whose origin is the sensor's. Distal is that joint's child link
    and all that hangs on it. Where the joint is a moving one, the cut lies behind its motion.
    Raises RobotModelError where there is no such frame, or nothing hangs on it.
    """
    joint = _joint_at(tree, frame)
    distal = [joint, *tree.below(joint.child)]
    if tree.mass(joint.child) <= 0 and not any(j.type in ONE_DOF for j in distal[1:]):
        raise RobotModelError(
            f"nothing with a mass hangs on the sensor frame '{frame}', it is a mere marker"
            + _same_place(tree, joint)
        )
    joints = dict(tree.joints)
    inertials = dict(tree.inertials)
    if joint.type == "fixed":
        joints[joint.name] = dataclasses.replace(joint, type="floating")
        return dataclasses.replace(tree, joints=joints), joint.name
    name, between = f"{frame} (sensor)", f"{joint.child} (proximal)"
    element = ET.Element("joint")
    ET.SubElement(element, "parent", link=between)
    ET.SubElement(element, "child", link=joint.child)
    moving = copy.deepcopy(joint.element)
    moving.find("child").set("link", between)  # type: ignore[union-attr]
    joints[joint.name] = dataclasses.replace(joint, child=between, element=moving)
    joints[name] = UrdfJoint(name, "floating", between, joint.child, False, 0.0, 0.0, element)
    inertials[between] = None
    return dataclasses.replace(tree, joints=joints, inertials=inertials), name


def frame_names(tree: UrdfTree, frame: str) -> tuple[str, ...]:
    """The names under which messages may call the sensor `frame`, that one first.

    A joint and the link behind it have one frame, and so have links that are fixed there without
    an offset, or markers in the same place. Raises RobotModelError where there is no such frame.
    """
    joint = _joint_at(tree, frame)
    fixed = [j for j in tree.joints.values() if j.type == "fixed" and j is not joint]
    beside = [j for j in fixed if j.parent == joint.parent and _pose(j) == _pose(joint)]
    same = [joint, *(beside if joint.type == "fixed" else ())]
    links = {j.child for j in same}
    while more := [j for j in fixed if j.parent in links and j not in same and not any(_pose(j))]:
        same += more
        links |= {j.child for j in more}
    return tuple(dict.fromkeys((frame, *(name for j in same for name in (j.name, j.child)))))


def _pose(joint: UrdfJoint) -> tuple[float, ...]:
    """Position and angles of a joint's origin in its parent link, six numbers."""
    origin = joint.element.find("origin")
    if origin is None:
        return (0.0,) * 6
    numbers = f"{origin.get('xyz', '0 0 0')} {origin.get('rpy', '0 0 0')}".split()
    return tuple(round(float(number), 9) for number in numbers)


def _joint_at(tree: UrdfTree, frame: str) -> UrdfJoint:
    if not frame:
        raise RobotModelError("the wrench target needs 'sensor_frame': a joint or link of the URDF")
    joint = tree.joints.get(frame) or tree.parent_joint(frame)
    if joint is None and frame in tree.inertials:
        raise RobotModelError(f"the sensor frame '{frame}' is the robot's root: nothing carries it")
    if joint is None:
        names = [*(j.name for j in tree.joints.values() if j.type == "fixed"), *tree.inertials]
        # Frames called after sensors are likelier meant than the first of hundreds.
        names.sort(key=lambda name: not any(part in name.lower() for part in ("ft", "sensor")))
        hint = closest(frame, dict.fromkeys(names))
        raise RobotModelError(f"the URDF has no frame '{frame}'{hint}")
    return joint


def _same_place(tree: UrdfTree, joint: UrdfJoint) -> str:
    """A hint at a joint in the same place as the marker that does carry something."""
    for other in tree.joints.values():
        beside = other.parent == joint.parent and other.name != joint.name
        if beside and _pose(other) == _pose(joint) and tree.mass(other.child) > 0:
            return f"; '{other.name}' lies in the same place and carries '{other.child}'"
    return ": name the joint that carries the distal part"
