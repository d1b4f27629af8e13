"""A URDF with other inertias and joint friction, and every other byte as it was."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np
import pinocchio as pin

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.dynamics.consistent import DYNAMICS_COLUMNS, ConsistentParameters
from semiparam_dynamics.robot.inertia import (
    inertial_parameters,
    is_body,
    pseudo_inertia,
)
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.regressor import PRESLIDING
from semiparam_dynamics.robot.urdf import parse_urdf

_INNER = {"link": "inertial", "joint": "dynamics"}  # the elements that are replaced
_INERTIA_ENTRIES = (
    ("ixx", 0, 0),
    ("ixy", 0, 1),
    ("ixz", 0, 2),
    ("iyy", 1, 1),
    ("iyz", 1, 2),
    ("izz", 2, 2),
)


def link_inertias(model: RobotModel, found: ConsistentParameters) -> dict[str, Array | None]:
    """By link, the parameters (10,) in its own frame; None where its mass went to another link.

    A body is a link with all that is fixed to it, and motion does not show how its mass is divided
    among them. If the body's pseudo-inertia went from P0 to T P0 T', each link's goes from P0_k to
    T P0_k T': they add up to the body's, each is a real body again, their masses all change by the
    same factor, and where the data said nothing, T = 1, they are the URDF's. Where a link with mass
    is no body that can exist (a point mass, a plate), there is nothing to divide by: the link
    nearest to the base then has all of it, and the others none.

    Links that don't move, and links without mass, are left out: they stay as they are.
    """
    inertials = parse_urdf(model.urdf_text).inertials
    shared: dict[str, Array | None] = {}
    bodies = found.values[: model.inertial_prior.size].reshape(-1, 10)
    for body, T, links in zip(bodies, found.transforms, model.links, strict=True):
        heavy = {}
        for name, pose in links:
            parameters = read_inertial(inertials[name], name)
            if parameters.any():
                heavy[name] = pose, parameters
        if heavy and all(is_body(parameters) for _, parameters in heavy.values()):
            for name, (pose, parameters) in heavy.items():
                to_link: Array = np.linalg.inv(pose) @ T @ pose
                shared[name] = _congruent(to_link, parameters)
        else:
            shared.update(dict.fromkeys(heavy))
            first, pose = links[0]
            from_body: Array = np.asarray(np.linalg.inv(pose))
            shared[first] = _congruent(from_body, body)
    return shared


def joint_dynamics(model: RobotModel, parameters: Array) -> dict[str, dict[str, float]]:
    """By joint, the attributes of its <dynamics> that were identified.

    parameters: (10 * bodies + n_effects,) in the order of `model.full_labels`. Units: N m s/rad
    and N m, of prismatic joints N s/m and N. Friction is what is left after a long way: Coulomb's
    and all that builds up. Over which way it does, what it has more near standstill or in one of
    the directions, offsets, rotor inertias and the columns of coupled joints have no place in a
    URDF.
    """
    values = dict(zip(model.full_labels, parameters, strict=True))
    for label, value in list(values.items()):
        kind, _, joint = label.partition(" ")
        if kind.startswith(PRESLIDING):
            values[f"coulomb {joint}"] = values.get(f"coulomb {joint}", 0.0) + value
    return {
        joint: {
            attribute: float(values[f"{column} {joint}"])
            for attribute, column in DYNAMICS_COLUMNS.items()
            if f"{column} {joint}" in values
        }
        for joint in model.joint_names
    }


def export_urdf(
    text: str,
    inertias: Mapping[str, Array | None],
    dynamics: Mapping[str, Mapping[str, float]] | None = None,
) -> str:
    """The URDF `text` with new inertias, and new attributes of the joints' <dynamics>.

    inertias: by link its ten parameters in its own frame, in the order of `regressor.INERTIAL`;
        None removes its inertial. Links that aren't named keep theirs.
    dynamics: by joint the attributes, such as damping; those that aren't named keep their values.
    Raises RobotModelError where the text is no URDF or has no such link or joint.
    """
    lead = text[: len(text) - len(text.lstrip())]  # no XML declaration may follow it
    source = text[len(lead) :].encode()
    tree, found = parse_urdf(text), _find(source)
    for kind, names, known in (
        ("link", inertias, set(tree.inertials)),
        ("joint", dynamics or {}, set(tree.joints)),
    ):
        for name in names:
            if name not in known:
                raise RobotModelError(f"the URDF has no {kind} '{name}' to write to")
    edits: list[tuple[int, int, bytes]] = []
    for name, parameters in inertias.items():
        lines = [] if parameters is None else inertial_lines(parameters)
        edits += _replacements(source, found["link", name], lines)
    for name, values in (dynamics or {}).items():
        if values:
            element = found["joint", name]
            merged = element.attributes | {key: repr(float(v)) for key, v in values.items()}
            written = " ".join(f'{key}="{_escaped(value)}"' for key, value in merged.items())
            edits += _replacements(source, element, [f"<dynamics {written}/>"])
    for start, end, new in sorted(edits, reverse=True):
        source = source[:start] + new + source[end:]
    return lead + source.decode()


def read_inertial(element: ET.Element | None, link: str) -> Array:
    """(10,) the parameters in the link's frame, in the order of `regressor.INERTIAL`; 0 for None.

    Raises RobotModelError where the element holds something that is no number.
    """
    if element is None:
        return np.zeros(10)
    try:
        mass = float(_attribute(element, "mass", "value"))
        center = _three(_attribute(element, "origin", "xyz", "0 0 0"))
        axes = pin.rpy.rpyToMatrix(_three(_attribute(element, "origin", "rpy", "0 0 0")))
        inertia = np.zeros((3, 3))
        for name, i, j in _INERTIA_ENTRIES:
            inertia[i, j] = inertia[j, i] = float(_attribute(element, "inertia", name))
    except ValueError:
        raise RobotModelError(
            f"the inertial of link '{link}' holds something that is no number"
        ) from None
    body = pin.Inertia(mass, center, axes @ inertia @ axes.T)
    parameters: Array = body.toDynamicParameters()
    return parameters


def inertial_lines(parameters: Array) -> list[str]:
    """The element's lines for parameters (10,) of a positive mass, in the link's own axes."""
    body = pin.Inertia.FromDynamicParameters(parameters)
    values = " ".join(f'{name}="{_exact(body.inertia[i, j])}"' for name, i, j in _INERTIA_ENTRIES)
    center = " ".join(_exact(value) for value in body.lever)
    return [
        "<inertial>",
        f'  <origin xyz="{center}" rpy="0 0 0"/>',
        f'  <mass value="{_exact(body.mass)}"/>',
        f"  <inertia {values}/>",
        "</inertial>",
    ]


def _attribute(element: ET.Element, inner: str, attribute: str, default: str = "0") -> str:
    found = element.find(inner)
    return default if found is None else found.get(attribute, default)


def _three(text: str) -> Array:
    values = np.array([float(part) for part in text.split()])
    if values.shape != (3,):
        raise ValueError(text)
    return values


def _exact(value: float) -> str:
    return repr(float(value))


def _congruent(T: Array, parameters: Array) -> Array:
    """The parameters (10,) of T P T'; a pose T takes them into another frame."""
    return inertial_parameters(T @ pseudo_inertia(parameters) @ T.T)


@dataclass
class _Element:
    """Byte positions of an element in the text, and of the part that is replaced."""

    start: int
    inner_tag: str
    head_end: int = 0  # just after its start tag
    close: int = 0  # where its end tag begins; start where it has none
    inner: list[tuple[int, int]] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)  # of the inner element


def _replacements(
    source: bytes, element: _Element, lines: list[str]
) -> list[tuple[int, int, bytes]]:
    """The edits (from, to, new) that replace the inner elements by `lines`."""
    indent = _indent(source, element.inner[0][0] if element.inner else element.start)
    if not element.inner:
        indent += b"  "
    block = (b"\n" + indent).join(line.encode() for line in lines)
    if element.inner:
        first, *others = element.inner
        removed = [(_line_start(source, *span), span[1], b"") for span in others]
        return [
            (*first, block) if lines else (_line_start(source, *first), first[1], b""),
            *removed,
        ]
    if not lines:
        return []
    block = b"\n" + indent + block
    if element.close == element.start:  # <link name="a"/> becomes <link name="a">...</link>
        tag = b"link" if element.inner_tag == "inertial" else b"joint"
        slash = source.rindex(b"/", element.start, element.head_end)
        outer = _indent(source, element.start)
        return [(slash, element.head_end, b">" + block + b"\n" + outer + b"</" + tag + b">")]
    return [(element.head_end, element.head_end, block)]


def _find(source: bytes) -> dict[tuple[str, str], _Element]:
    """The links and joints right below <robot>, by kind and name."""
    found: dict[tuple[str, str], _Element] = {}
    stack: list[str] = []
    current: list[_Element] = []
    parser = expat.ParserCreate("utf-8")

    def start(tag: str, attributes: dict[str, str]) -> None:
        at = parser.CurrentByteIndex
        if len(stack) == 1 and tag in _INNER:
            element = _Element(at, _INNER[tag], _tag_end(source, at), at)
            found[tag, attributes.get("name", "")] = element
            current[:] = [element]
        elif len(stack) == 2 and current and tag == current[0].inner_tag:
            current[0].inner.append((at, _tag_end(source, at)))
            current[0].attributes = current[0].attributes or dict(attributes)
        stack.append(tag)

    def end(tag: str) -> None:
        at = parser.CurrentByteIndex
        stack.pop()
        closing = source.startswith(b"</", at)
        if len(stack) == 2 and current and tag == current[0].inner_tag and closing:
            current[0].inner[-1] = (current[0].inner[-1][0], _tag_end(source, at))
        elif len(stack) == 1 and current:
            if closing:
                current[0].close = at
            current.clear()

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(source, True)
    return found


def _tag_end(source: bytes, start: int) -> int:
    """Just after the tag that begins at `start`; a > in quotes does not end it."""
    match = re.compile(rb"""<(?:[^"'>]|"[^"]*"|'[^']*')*>""").match(source, start)
    assert match is not None  # the parser accepted it
    return match.end()


def _indent(source: bytes, at: int) -> bytes:
    """The white space before `at` on its line, empty where something else is there."""
    line = source[source.rfind(b"\n", 0, at) + 1 : at]
    return line if not line.strip() else b""


def _line_start(source: bytes, start: int, end: int) -> int:
    """Where to cut from, so that a removed element leaves no blank line."""
    line = source.rfind(b"\n", 0, start)
    alone = line >= 0 and not source[line:start].strip() and source[end : end + 1] in b"\r\n"
    return line if alone else start


def _escaped(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
