"""A URDF's links and joints as a checked tree, reduced to what the dynamics needs.

Everything else (meshes, transmissions, simulator tags) is left out before the rigid-body library
sees the text: no mesh file has to exist, and faults are found here, where they can be explained.
Elements that are no URDF's are passed over. A body that can't exist is replaced by the nearest that
can, since inertias are only where learning starts; the geometry is never learned, so that a joint
without an axis and mimic joints in a ring are refused.
"""

from __future__ import annotations

import codecs
import copy
import dataclasses
import difflib
import math
import os
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

import numpy as np
import pinocchio as pin

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import RobotModelError, listing
from semiparam_dynamics.robot.inertia import nearest_moments

ONE_DOF = ("revolute", "continuous", "prismatic")
MAX_LENGTH = 10_000_000  # characters of a URDF; the iCub's has 130 000
MAX_JOINTS = 2000  # or links: what follows would take long for more
_TYPES = (*ONE_DOF, "fixed", "floating", "planar")
POSE = {"xyz": 3, "rpy": 3}
#: An inertia's attributes, each with its place in the matrix.
INERTIA_ENTRIES = (
    ("ixx", 0, 0),
    ("ixy", 0, 1),
    ("ixz", 0, 2),
    ("iyy", 1, 1),
    ("iyz", 1, 2),
    ("izz", 2, 2),
)
# By tag: how many numbers each attribute has that the dynamics needs.
_INERTIAL_NUMBERS = {
    "origin": POSE,
    "mass": {"value": 1},
    "inertia": dict.fromkeys((name for name, _, _ in INERTIA_ENTRIES), 1),
}
_ORIGIN_NUMBERS = {"origin": POSE}
_AXIS_NUMBERS = {"axis": {"xyz": 3}}  # of joints that have one


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
        """True if the joint is a degree of freedom of its own: one, and no mimic of another."""
        return self.type in ONE_DOF and not self.mimic

    @property
    def leader(self) -> str:
        """The joint that this one mimics; empty where it is a joint of its own."""
        mimic = self.element.find("mimic")
        return "" if mimic is None else mimic.get("joint", "")


class Lock(NamedTuple):
    """Position of a joint that is not learned, and how far from it (rad or m) it is moved."""

    position: float
    tolerance: float
    turning: bool  # a whole turn is no way

    def holds(self, position: float) -> bool:
        """True if the joint still stands there."""
        way = position - self.position
        return abs(math.remainder(way, math.tau) if self.turning else way) <= self.tolerance


@dataclasses.dataclass(frozen=True)
class UrdfTree:
    """The links (name to inertial element) and joints of a URDF, checked to be one tree.

    notes: sentences on what is taken otherwise than the URDF has it. replaced: links whose bodies
    can't exist, for which `inertials` has the nearest ones that can.
    """

    name: str
    root: str
    inertials: dict[str, ET.Element | None]
    joints: dict[str, UrdfJoint]
    notes: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()

    def above(self, link: str) -> Iterator[UrdfJoint]:
        """The joints between `link` and the root, the one that it hangs on first."""
        parents = {joint.child: joint for joint in self.joints.values()}
        while (joint := parents.get(link)) is not None:
            yield joint
            link = joint.parent

    def below(self, link: str) -> Iterator[UrdfJoint]:
        """The joints of the subtree that hangs on `link`, depth first."""
        hanging: dict[str, list[UrdfJoint]] = {}
        for joint in self.joints.values():
            hanging.setdefault(joint.parent, []).append(joint)
        waiting = hanging.get(link, [])[::-1]
        while waiting:
            yield (joint := waiting.pop())
            waiting += hanging.get(joint.child, [])[::-1]

    def actuated(self) -> tuple[str, ...]:
        """The names of the joints that are degrees of freedom of their own, depth first."""
        return tuple(joint.name for joint in self.below(self.root) if joint.actuated)

    def mass(self, link: str) -> float:
        """The mass (kg) of `link` and everything that hangs on it."""
        links = [link, *(joint.child for joint in self.below(link))]
        return sum(_mass(self.inertials[name]) for name in links)

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

    The file's encoding is that of its byte order mark or XML declaration, else UTF-8, and Latin-1
    where it can't be: names are ASCII, but comments come from anywhere.
    Raises RobotModelError where there is no text or the file can't be read.
    """
    urdf = os.fspath(urdf)
    if "<" in urdf:
        return urdf
    if not urdf.strip():
        raise RobotModelError("the URDF is empty: give a robot description or a file's path")
    try:
        text = _decoded(Path(urdf).expanduser().read_bytes())
    except (OSError, ValueError, RuntimeError) as error:  # the last: a home that isn't known, ~x
        raise RobotModelError(f"the URDF file '{urdf}' can't be read: {error}") from None
    if not text.strip():
        raise RobotModelError(f"the URDF file '{urdf}' is empty")
    return text


def _decoded(data: bytes) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16")
    data = data.removeprefix(codecs.BOM_UTF8)
    declared = re.match(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)""", data)
    try:
        return data.decode(declared[1].decode() if declared else "utf-8")
    except (UnicodeError, LookupError):
        return data.decode("latin-1")


def parse_urdf(text: str) -> UrdfTree:
    """Parse URDF text; RobotModelError says what keeps it from being one tree of links."""
    robot = parse_xml(text)
    left = sorted({str(element.tag) for element in robot.iter() if "xacro" in str(element.tag)})
    if not left:
        return _tree(robot)
    told = f"the URDF holds elements of xacro ({listing(left)})"
    try:
        tree = _tree(robot)
    except RobotModelError as error:
        raise RobotModelError(f"{error}; {told}: expand it with xacro first") from None
    note = f"{told}, which are passed over: unless it is complete without, expand it with xacro"
    return dataclasses.replace(tree, notes=(note, *tree.notes))


def _tree(robot: ET.Element) -> UrdfTree:
    if robot.tag != "robot":
        raise RobotModelError(f"the URDF's outermost element is <{robot.tag}>, not <robot>")
    links = [_attribute(element, "name", "a link") for element in robot.findall("link")]
    joints = [_joint(element) for element in robot.findall("joint")]
    if max(len(links), len(joints)) > MAX_JOINTS:
        raise RobotModelError(f"the URDF has more than {MAX_JOINTS} links or joints")
    _refuse_duplicates("link", links)
    _refuse_duplicates("joint", [joint.name for joint in joints])
    inertials = dict(
        zip(links, (element.find("inertial") for element in robot.findall("link")), strict=True)
    )
    named = {joint.name: joint for joint in joints}
    tree = UrdfTree(robot.get("name") or "robot", _root(links, joints), inertials, named)
    hanging = {joint.child for joint in tree.below(tree.root)}
    if lost := ", ".join(sorted({*links} - hanging - {tree.root})[:5]):
        raise RobotModelError(f"links that don't hang on the root '{tree.root}' (a loop): {lost}")
    for joint in joints:
        _check_numbers(f"joint '{joint.name}'", joint.element, _ORIGIN_NUMBERS)
        if joint.type in ONE_DOF:
            _check_axis(joint)
    impossible = _bodies_made_possible(inertials)
    notes = _lost_leaders(named)
    if impossible:
        told = listing([f"{link} ({what})" for link, what in impossible.items()])
        notes.append(
            f"no body can have what the URDF says of {told}: a mass is never below 0, a principal "
            "moment of inertia neither below 0 nor above the sum of the other two. The nearest "
            "bodies that can exist are used; correct the URDF"
        )
    return dataclasses.replace(tree, notes=tuple(notes), replaced=tuple(impossible))


def different_dynamics(one: UrdfTree, other: UrdfTree) -> list[str]:
    """The links and joints of which two URDFs give the dynamics other numbers, or only one has.

    Limits, meshes and frames that carry no mass are no part of the dynamics.
    """
    numbers, others = _dynamics(one), _dynamics(other)
    return [name for name in numbers | others if numbers.get(name) != others.get(name)]


def _dynamics(tree: UrdfTree) -> dict[str, list[str]]:
    """The links' and joints' properties that the dynamics needs, numbers to nine digits."""
    found: dict[str, list[str]] = {}
    for link, inertial in tree.inertials.items():
        values = _numbers(inertial, "origin", dict.fromkeys(POSE, "0 0 0"))
        for tag in ("mass", "inertia"):
            values += _numbers(inertial, tag, dict.fromkeys(_INERTIAL_NUMBERS[tag], "0"))
        if _mass(inertial) > 0.0 or any(float(value) for value in values):
            found[f"link '{link}'"] = values
    for joint in tree.joints.values():
        moves = any(below.type != "fixed" for below in (joint, *tree.below(joint.child)))
        if not moves and tree.mass(joint.child) <= 0.0:
            continue  # a frame that only marks a place
        # A continuous joint is a revolute one without limits.
        kind = "revolute" if joint.type == "continuous" else joint.type
        values = _numbers(joint.element, "origin", dict.fromkeys(POSE, "0 0 0"))
        if joint.type in ONE_DOF:
            values += _numbers(joint.element, "axis", {"xyz": "1 0 0"})
        found[f"joint '{joint.name}'"] = [kind, joint.parent, joint.child, joint.leader, *values]
    return found


def _numbers(element: ET.Element | None, tag: str, defaults: Mapping[str, str]) -> list[str]:
    """The numbers of an inner element's attributes, to nine digits."""
    inner = None if element is None else element.find(tag)
    given = {} if inner is None else inner.attrib
    parts = [part for name, text in defaults.items() for part in given.get(name, text).split()]
    return [f"{float(part) + 0.0:.9g}" for part in parts]


def joint_limits(tree: UrdfTree, joints: Sequence[str], attribute: str) -> Array:
    """(n_joints,) of an attribute of ``<limit>``, such as effort (N m or N), velocity (rad/s, m/s).

    Infinite where there is none, or 0, which generators of URDFs write where they know nothing.
    Raises RobotModelError where one is no number.
    """
    limits = np.full(len(joints), np.inf)
    for k, name in enumerate(joints):
        value = _limit(name, tree.joints[name].element, attribute)
        if value > 0.0:
            limits[k] = value
    return limits


def _limit(name: str, joint: ET.Element, attribute: str) -> float:
    """A number of a joint's ``<limit>``, 0 where there is none."""
    limit = joint.find("limit")
    text = "" if limit is None else limit.get(attribute, "")
    try:
        return float(text or "0")
    except ValueError:
        raise RobotModelError(
            f"joint '{name}' of the URDF has a limit of {attribute} that is no number: '{text}'"
            f"{_remedy(text)}"
        ) from None


def followers(tree: UrdfTree, joints: Sequence[str]) -> dict[str, str]:
    """The mimic joints that are not among `joints`, each with the one of them that it follows.

    A model takes them to stand where they are locked, although they move.
    """
    found = {}
    for name, joint in tree.joints.items():
        if name in joints or joint.type not in ONE_DOF:
            continue
        while (leader := joint.leader) in tree.joints:
            if leader in joints:
                found[name] = leader
                break
            joint = tree.joints[leader]
    return found


def locked_positions(
    tree: UrdfTree,
    joints: Sequence[str],
    published: Mapping[str, float],
    before: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Positions (rad or m) of the joints that are not learned, of those published.

    They are those that carry a learned joint or hang on one; another arm, say, has no part in the
    dynamics. Positions are rounded (to 0.05 rad or 0.01 m), or remain those of `before` where they
    are near: else a reading's last digits would make another model. Those of joints that follow a
    learned one remain in any case: they stand elsewhere whenever the arm does.
    """
    locked = {}
    following = followers(tree, joints)
    hanging = {name: {j.name for j in tree.below(tree.joints[name].child)} for name in joints}
    for joint in tree.joints.values():
        name, learned = joint.name, set(joints)
        if name in learned or joint.type not in ONE_DOF or name not in published:
            continue
        carries = any(below.name in learned for below in tree.below(joint.child))
        if carries or any(name in names for names in hanging.values()):
            last = (before or {}).get(name)
            if last is not None and (name in following or lock(joint, last).holds(published[name])):
                locked[name] = last
            else:
                locked[name] = _rounded(published[name], lock(joint, 0.0).tolerance)
    return locked


def turned_up(tree: UrdfTree, joints: Sequence[str], learned: Sequence[str]) -> bool:
    """True if `joints` are the ones to learn, more than those that are, which came first.

    Such as the arm's where its gripper's are learned; but not a hand's that hang on the arm.
    """
    if extent(tree, joints) <= extent(tree, learned):
        return False
    return set(learned) <= set(joints) or carrying(tree, joints, learned)


def extent(tree: UrdfTree, joints: Iterable[str]) -> tuple[int, int]:
    """The most of `joints` that are one behind the other, and the number of all of them.

    By the first of these an arm is more than its hand, which may have more joints.
    """
    chosen = set(joints)
    known = [tree.joints[name] for name in chosen if name in tree.joints]
    chains = (sum(above.name in chosen for above in tree.above(j.child)) for j in known)
    return max(chains, default=0), len(chosen)


def carrying(tree: UrdfTree, joints: Sequence[str], learned: Sequence[str]) -> bool:
    """True if some of `joints` neither are among those learned nor hang on one of them."""
    hanging = {below.name for name in learned for below in tree.below(tree.joints[name].child)}
    return not set(joints) <= hanging | set(learned)


def lock(joint: UrdfJoint, position: float) -> Lock:
    """A joint's lock at a position (rad or m), with the tolerance of its type."""
    slides = joint.type == "prismatic"
    return Lock(position, 0.01 if slides else 0.05, not slides)


def positions_told(locked: Mapping[str, float]) -> str:
    """Locked positions in words."""
    return ", ".join(f"{name} {position:g}" for name, position in locked.items())


def _rounded(position: float, step: float) -> float:
    return round(step * round(position / step), 9) + 0.0  # no negative zero


def check_joints(tree: UrdfTree, names: Sequence[str]) -> None:
    """Refuse names that are repeated, unknown, or no joint with one degree of freedom."""
    movable = [joint.name for joint in tree.joints.values() if joint.type in ONE_DOF]
    for position, name in enumerate(names):
        if name in names[:position]:
            raise RobotModelError(f"the joint '{name}' is named twice")
        if name not in tree.joints:
            hint = closest(name, movable, shown=60)
            raise RobotModelError(f"the URDF has no joint '{name}'{hint}")
        if name not in movable:
            kind = tree.joints[name].type
            raise RobotModelError(
                f"the joint '{name}' is {kind}: only joints with one degree of freedom can be "
                f"learned or locked; there are: {', '.join(movable)}"
            )


def cut_at_sensor(tree: UrdfTree, frame: str) -> tuple[UrdfTree, str]:
    """Free the joint at the sensor `frame`; return the changed tree and that joint's name.

    The sensor's fixed joint is replaced by a free joint that never moves. The generalised force of
    that joint is then the spatial force which the proximal part exerts on everything distal, in the
    sensor frame and about its origin (thesis 8.2.1): the reading of an ideal sensor. A link that
    the sensor splits needs no special case, its two pieces are bodies on either side of the joint.

    `frame` is a joint, or a link whose origin is the sensor's. Distal is that joint's child link
    and all that hangs on it. Where the joint is a moving one, the cut lies behind its motion.
    Raises RobotModelError where there is no such frame, or nothing hangs on it.
    """
    joint = _joint_at(tree, frame)
    distal = [joint, *tree.below(joint.child)]
    if tree.mass(joint.child) <= 0 and not any(j.type in ONE_DOF for j in distal[1:]):
        raise RobotModelError(
            f"nothing with a mass hangs on the sensor frame '{frame}', it only marks a place"
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


def closest(name: str, names: Iterable[str], shown: int = 12) -> str:
    """The end of a message on an unknown name: a close match, if any, and some known names."""
    known = list(names)
    match = difflib.get_close_matches(name, known, n=1)
    listed = ", ".join(known[:shown]) + (", ..." if len(known) > shown else "")
    return (f"; did you mean '{match[0]}'?" if match else ";") + f" there are: {listed}"


def parse_xml(text: str) -> ET.Element:
    """The outermost element of a URDF's text, which anyone on the network may have published.

    Here alone text becomes elements, and all forms of it that are read alike get one form: the
    ``quat_xyzw`` of an origin (URDF 1.1) becomes its ``rpy``, prefixes need no declaration, and a
    document type has no effect. Raises RobotModelError where the text is not well-formed, longer
    than `MAX_LENGTH`, or uses an entity that a document type declares, which can stand for any
    amount of text or for a file. No file and no address is opened.
    """
    if len(text) > MAX_LENGTH:
        raise RobotModelError(
            f"the URDF has {len(text)} characters, more than {MAX_LENGTH}: leave meshes in files"
        )
    used: set[str] = set(re.findall(r"&([^#&;\s][^&;\s]*);", text)) if "<!ENTITY" in text else set()

    def declared(name: str, *_: object) -> None:
        # Whatever is expanded begins with a use in the text; this comes before any.
        if name in used:
            raise RobotModelError(
                f"the URDF uses the entity '&{name};' of its document type (<!DOCTYPE>), which is "
                "not accepted: write its value instead"
            )

    builder, parser = ET.TreeBuilder(), expat.ParserCreate()  # without namespaces: any prefix
    parser.buffer_text = True
    parser.specified_attributes = True  # none by a document type, whose defaults may be of any size
    parser.EntityDeclHandler = declared
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(text.strip(), True)
    except (expat.ExpatError, ValueError) as error:
        raise RobotModelError(f"the URDF is not well-formed XML: {error}") from None
    robot = builder.close()
    for owner in robot:
        for origin in owner.iter("origin"):
            if "quat_xyzw" in origin.attrib:
                _turn_by_angles(f"{owner.tag} '{owner.get('name', '')}'", origin)
    return robot


def _turn_by_angles(owner: str, origin: ET.Element) -> None:
    """Give an origin the rpy of its ``quat_xyzw``, which readers of URDF 1.0 would pass over."""
    text = origin.attrib.pop("quat_xyzw")
    if not _are_numbers(text, 4) or not any(map(float, text.split())):
        raise RobotModelError(
            f"{owner} of the URDF has an origin (quat_xyzw) that is no quaternion, 4 numbers that "
            f"are not all 0: '{text}'{_remedy(text)}"
        )
    if "rpy" in origin.attrib:
        raise RobotModelError(
            f"{owner} of the URDF has an origin with both rpy and quat_xyzw: leave one of them out"
        )
    given = np.array(text.split(), dtype=np.float64)
    rotation = pin.Quaternion(given / np.abs(given).max()).normalized().toRotationMatrix()
    origin.set("rpy", " ".join(map(repr, pin.rpy.matrixToRpy(rotation).tolist())))


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
    lower, upper = (_limit(name, element, bound) for bound in ("lower", "upper"))
    mimic = element.find("mimic") is not None
    return UrdfJoint(name, kind, ends[0], ends[1], mimic, lower, upper, element)


def _check_numbers(
    owner: str, element: ET.Element | None, numbers: Mapping[str, Mapping[str, int]]
) -> None:
    """Raise RobotModelError where an attribute of `element`'s inner elements is no number.

    numbers : how many each attribute has, by the inner element's tag and its own name.
    """
    for tag, attributes in numbers.items():
        inner = None if element is None else element.find(tag)
        found = {} if inner is None else inner.attrib
        for attribute, count in attributes.items():
            text = found.get(attribute)
            if text is None or _are_numbers(text, count):
                continue
            what = {"mass": "a mass", "inertia": f"an inertia {attribute}"}.get(
                tag, f"an {tag} ({attribute})"
            )
            wanted = "no number" if count == 1 else f"not {count} numbers"
            raise RobotModelError(
                f"{owner} of the URDF has {what} that is {wanted}: '{text}'{_remedy(text)}"
            )


def _check_axis(joint: UrdfJoint) -> None:
    _check_numbers(f"joint '{joint.name}'", joint.element, _AXIS_NUMBERS)
    axis = joint.element.find("axis")
    text = "1 0 0" if axis is None else axis.get("xyz", "1 0 0")
    if not 0.0 < sum(float(part) * float(part) for part in text.split()) < math.inf:
        raise RobotModelError(
            f"joint '{joint.name}' of the URDF has an axis (xyz) without a direction: '{text}'; "
            "name the one that it turns about or slides along, such as 0 0 1"
        )


def _lost_leaders(joints: Mapping[str, UrdfJoint]) -> list[str]:
    """A sentence where joints mimic one that the URDF lacks.

    Raises RobotModelError where a joint mimics itself, or joints one another.
    """
    following = {name: joint.leader for name, joint in joints.items() if joint.mimic}
    try:
        TopologicalSorter({name: [leader] for name, leader in following.items()}).prepare()
    except CycleError as error:
        ring = error.args[1]
        raise RobotModelError(
            f"joint '{ring[0]}' of the URDF follows itself by <mimic> ({' -> '.join(ring)}): one "
            "of these joints must move by itself, so take out its <mimic>"
        ) from None
    lost = [f"{name} ('{leader}')" for name, leader in following.items() if leader not in joints]
    if not lost:
        return []
    return [
        f"joints of the URDF follow one by <mimic> that it lacks: {listing(lost)}. They are taken "
        "to stand still; name joints that there are, or take out the <mimic>"
    ]


def _bodies_made_possible(inertials: Mapping[str, ET.Element | None]) -> dict[str, str]:
    """Check and complete inertials, and replace bodies that can't exist by the nearest that can.

    Returns what was impossible, by link. The rigid-body library goes on without an inertial that
    it can't read, or that lacks a number.
    """
    impossible = {}
    for link, inertial in inertials.items():
        _check_numbers(f"link '{link}'", inertial, _INERTIAL_NUMBERS)
        if inertial is None:
            continue
        mass, inertia = (_completed(inertial, tag) for tag in ("mass", "inertia"))
        moments = np.zeros((3, 3))
        for name, i, j in INERTIA_ENTRIES:
            moments[i, j] = moments[j, i] = float(inertia.get(name, "0"))
        if (kg := float(mass.get("value", "0"))) < 0.0:
            mass.set("value", "0")
            nearest = np.zeros((3, 3))  # where the mass is wrong, nothing is known
            impossible[link] = f"mass {kg:g} kg"
        elif (nearest := nearest_moments(moments, kg)) is not moments:
            told = listing([f"{value:.3g}" for value in np.linalg.eigvalsh(moments)])
            impossible[link] = f"moments of inertia {told} kg m^2"
        if nearest is not moments:
            for name, i, j in INERTIA_ENTRIES:
                inertia.set(name, repr(float(nearest[i, j])))
    return impossible


def _completed(inertial: ET.Element, tag: str) -> ET.Element:
    """An inner element, in which what is left out is 0: products of inertia, mostly."""
    inner = inertial.find(tag)
    if inner is None:
        inner = ET.SubElement(inertial, tag)
    for attribute in _INERTIAL_NUMBERS[tag]:
        inner.attrib.setdefault(attribute, "0")
    return inner


def _are_numbers(text: str, count: int) -> bool:
    try:
        values = [float(part) for part in text.split()]
    except ValueError:
        return False
    # Python's digits may be grouped by _, the URDF's may not.
    return len(values) == count and all(map(math.isfinite, values)) and "_" not in text


def _remedy(text: str) -> str:
    """The end of a sentence on text that is no number: what to do about it."""
    if "${" in text or "$(" in text:
        return ": expand it with xacro first"
    return " (decimals are written with a point)" if "," in text else ""


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


def _mass(inertial: ET.Element | None) -> float:
    mass = None if inertial is None else inertial.find("mass")
    return 0.0 if mass is None else float(mass.get("value", "0"))


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


def _pose(joint: UrdfJoint) -> tuple[float, ...]:
    """Position and angles of a joint's origin in its parent link, six numbers."""
    origin = joint.element.find("origin")
    if origin is None:
        return (0.0,) * 6
    numbers = f"{origin.get('xyz', '0 0 0')} {origin.get('rpy', '0 0 0')}".split()
    return tuple(round(float(number), 9) for number in numbers)


def _frames(tree: UrdfTree) -> list[str]:
    """Frames where a sensor may be: those called after sensors first, they are likelier meant."""
    names = [*(j.name for j in tree.joints.values() if j.type == "fixed"), *tree.inertials]
    return sorted(names, key=lambda n: not any(part in n.lower() for part in ("ft", "sensor")))


def _joint_at(tree: UrdfTree, frame: str) -> UrdfJoint:
    if not frame:
        raise RobotModelError(
            "the wrench target needs 'sensor_frame', a joint or link of the URDF, where messages "
            "name none: --set sensor_frame=NAME, at a node -p sensor_frame:=NAME; the URDF has "
            f"{listing(_frames(tree))}"
        )
    joint = tree.joints.get(frame) or next(tree.above(frame), None)
    if joint is None and frame in tree.inertials:
        raise RobotModelError(f"the sensor frame '{frame}' is the robot's root: nothing carries it")
    if joint is None:
        hint = closest(frame, dict.fromkeys(_frames(tree)))
        raise RobotModelError(f"the URDF has no frame '{frame}'{hint}")
    return joint


def _same_place(tree: UrdfTree, joint: UrdfJoint) -> str:
    """A hint at a joint in the same place as the marker that does carry something."""
    for other in tree.joints.values():
        beside = other.parent == joint.parent and other.name != joint.name
        if beside and _pose(other) == _pose(joint) and tree.mass(other.child) > 0:
            return f"; '{other.name}' lies in the same place and carries '{other.child}'"
    return ": name the joint that carries the distal part"
