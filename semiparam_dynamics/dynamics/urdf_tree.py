"""A URDF's links and joints as a checked tree, reduced to what the dynamics needs.

Everything else (meshes, transmissions, simulator tags) is left out before the rigid-body library
sees the text: no mesh file has to exist, and faults are found here, where they can be explained.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from semiparam_dynamics.errors import RobotModelError
from semiparam_dynamics.xml_text import parse_xml

ONE_DOF = ("revolute", "continuous", "prismatic")
MOST = 2000  # links or joints: what follows would take long for more
_TYPES = (*ONE_DOF, "fixed", "floating", "planar")


@dataclasses.dataclass(frozen=True)
class UrdfJoint:
    """One joint: its type, the links it connects, its limits (rad or m) and its XML."""

    name: str
    type: str
    parent: str
    child: str
    mimic: bool
    lower: float
    upper: float
    element: ET.Element

    @property
    def actuated(self) -> bool:
        """Whether the joint is a degree of freedom of its own: one, and no mimic of another."""
        return self.type in ONE_DOF and not self.mimic


@dataclasses.dataclass(frozen=True)
class UrdfTree:
    """The links (name to inertial element) and joints of a URDF, checked to be one tree."""

    name: str
    root: str
    inertials: dict[str, ET.Element | None]
    joints: dict[str, UrdfJoint]

    def parent_joint(self, link: str) -> UrdfJoint | None:
        """The joint that `link` hangs on, None for the root."""
        return next((j for j in self.joints.values() if j.child == link), None)

    def below(self, link: str) -> Iterator[UrdfJoint]:
        """The joints of the subtree that hangs on `link`, depth first."""
        hanging: dict[str, list[UrdfJoint]] = {}
        for joint in self.joints.values():
            hanging.setdefault(joint.parent, []).append(joint)
        waiting = hanging.get(link, [])[::-1]
        while waiting:
            yield (joint := waiting.pop())
            waiting += hanging.get(joint.child, [])[::-1]

    def mass(self, link: str) -> float:
        """The mass (kg) of `link` and everything that hangs on it."""
        links = [link, *(joint.child for joint in self.below(link))]
        return sum(_mass(self.inertials[name], name) for name in links)

    def to_xml(self) -> str:
        """The URDF text of links, inertias and joints alone."""
        robot = ET.Element("robot", name=self.name)
        for link, inertial in self.inertials.items():
            element = ET.SubElement(robot, "link", name=link)
            if inertial is not None:
                element.append(inertial)
        for joint in self.joints.values():
            robot.append(_plain_joint(joint))
        return ET.tostring(robot, encoding="unicode")


def read_urdf(urdf: str | os.PathLike[str]) -> str:
    """URDF text as it is, or the text of the file that `urdf` names (a text contains ``<``).

    Raises RobotModelError where there is no text or the file can't be read.
    """
    urdf = os.fspath(urdf)
    if "<" in urdf:
        return urdf
    if not urdf.strip():
        raise RobotModelError("the URDF is empty: give a robot description or a file's path")
    try:
        text = Path(urdf).expanduser().read_text(encoding="utf-8")
    except (OSError, ValueError, RuntimeError) as error:  # the last: a home that isn't known, ~x
        raise RobotModelError(f"the URDF file '{urdf}' can't be read: {error}") from None
    if not text.strip():
        raise RobotModelError(f"the URDF file '{urdf}' is empty")
    return text


def parse_urdf(text: str) -> UrdfTree:
    """Parse URDF text; RobotModelError says what keeps it from being one tree of links."""
    robot = parse_xml(text.strip())
    if robot.tag != "robot":
        raise RobotModelError(f"the URDF's outermost element is <{robot.tag}>, not <robot>")
    if any("xacro" in str(element.tag) for element in robot.iter()):
        raise RobotModelError("the URDF holds xacro macros: expand it with xacro first")
    links = [_attribute(element, "name", "a link") for element in robot.findall("link")]
    joints = [_joint(element) for element in robot.findall("joint")]
    if max(len(links), len(joints)) > MOST:
        raise RobotModelError(f"the URDF has more than {MOST} links or joints")
    _refuse_duplicates("link", links)
    _refuse_duplicates("joint", [joint.name for joint in joints])
    inertials = dict(
        zip(links, (element.find("inertial") for element in robot.findall("link")), strict=True)
    )
    root = _root(links, joints)
    return UrdfTree(robot.get("name") or "robot", root, inertials, {j.name: j for j in joints})


def closest(name: str, names: Iterable[str], shown: int = 12) -> str:
    """The end of a message on an unknown name: a close match, if any, and some known names."""
    known = list(names)
    match = difflib.get_close_matches(name, known, n=1)
    listed = ", ".join(known[:shown]) + (", ..." if len(known) > shown else "")
    return (f"; did you mean '{match[0]}'?" if match else ";") + f" there are: {listed}"


def _joint(element: ET.Element) -> UrdfJoint:
    name = _attribute(element, "name", "a joint")
    kind = _attribute(element, "type", f"joint '{name}'")
    if kind not in _TYPES:
        raise RobotModelError(f"joint '{name}' of the URDF has the unknown type '{kind}'")
    ends = []
    for end in ("parent", "child"):
        inner = element.find(end)
        if inner is None:
            raise RobotModelError(f"joint '{name}' of the URDF has no <{end}> link")
        ends.append(_attribute(inner, "link", f"<{end}> of joint '{name}'"))
    limit = element.find("limit")
    bounds = {} if limit is None else limit.attrib
    try:
        lower, upper = (float(bounds.get(bound, "0")) for bound in ("lower", "upper"))
    except ValueError:
        raise RobotModelError(f"joint '{name}' of the URDF has limits, but no numbers") from None
    mimic = element.find("mimic") is not None
    return UrdfJoint(name, kind, ends[0], ends[1], mimic, lower, upper, element)


def _plain_joint(joint: UrdfJoint) -> ET.Element:
    element = ET.Element("joint", name=joint.name, type=joint.type)
    for tag in ("origin", "parent", "child", "axis"):
        inner = joint.element.find(tag)
        if inner is not None:
            element.append(inner)
    if joint.type in ONE_DOF:
        # The parser insists on all four; the dynamics depends on none.
        ET.SubElement(element, "limit", lower="0", upper="0", effort="0", velocity="0")
    return element


def _mass(inertial: ET.Element | None, link: str) -> float:
    mass = None if inertial is None else inertial.find("mass")
    try:
        value = 0.0 if mass is None else float(mass.get("value", "0"))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise RobotModelError(f"link '{link}' of the URDF has a mass that is no number")
    return value


def _root(links: list[str], joints: list[UrdfJoint]) -> str:
    if not links:
        raise RobotModelError("the URDF has no links")
    for joint in joints:
        for link in (joint.parent, joint.child):
            if link not in links:
                raise RobotModelError(f"joint '{joint.name}' names the link '{link}', not defined")
    parents = Counter(joint.child for joint in joints)
    for link, count in parents.items():
        if count > 1:
            raise RobotModelError(f"link '{link}' hangs on {count} joints: the URDF is no tree")
    roots = [link for link in links if link not in parents]
    if len(roots) != 1:
        found = ", ".join(roots[:5]) or "none, it is a loop"
        raise RobotModelError(f"the URDF must have one root link; found: {found}")
    children: dict[str, list[str]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint.child)
    reached, queue = set(), [roots[0]]
    while queue:
        link = queue.pop()
        reached.add(link)
        queue.extend(children.get(link, ()))
    if len(reached) < len(links):
        lost = ", ".join(sorted(set(links) - reached)[:5])
        raise RobotModelError(f"links that don't hang on the root '{roots[0]}' (a loop): {lost}")
    return roots[0]


def _refuse_duplicates(kind: str, names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise RobotModelError(f"the URDF defines the {kind} '{twice[0]}' more than once")


def _attribute(element: ET.Element, attribute: str, owner: str) -> str:
    value = element.get(attribute)
    if not value:
        raise RobotModelError(f"{owner} of the URDF has no '{attribute}'")
    return value
