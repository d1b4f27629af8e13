"""A URDF with other inertias and joint friction, and all other elements as they were."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any
from xml.dom import expatbuilder, minidom
from xml.sax.saxutils import quoteattr

import numpy as np
import pinocchio as pin

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.dynamics.consistent import (
    DYNAMICS_COLUMNS,
    ConsistentParameters,
    effect_labels,
)
from semiparam_dynamics.robot.inertia import inertial_parameters, is_body, pseudo_inertia
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.regressor import ASYMMETRY, LOADED, PRESLIDING, STRIBECK
from semiparam_dynamics.robot.urdf import INERTIA_ENTRIES, parse_urdf

NOWHERE = ("offset", STRIBECK, ASYMMETRY, LOADED)  # kinds that no file has a place for


def link_inertias(model: RobotModel, found: ConsistentParameters) -> dict[str, Array | None]:
    """By link, the parameters (10,) in its own frame; None where its mass went to another link.

    A body is a link with all that is fixed to it, and motion does not show how its mass is divided
    among them. If the body's pseudo-inertia went from P0 to T P0 T', each link's goes from P0_k to
    T P0_k T': they add up to the body's, and each is a real body again. Where a link with mass is
    no body that can exist (a point mass, a plate), the link nearest to the base has all of it.
    Links that don't move or have no mass stay as they are, unless their body can't exist.
    """
    tree = parse_urdf(model.urdf_text)
    inertials = tree.inertials
    shared: dict[str, Array | None] = {}
    bodies = found.values[: model.inertial_prior.size].reshape(-1, 10)
    for body, T, links in zip(bodies, found.transforms, model.links, strict=True):
        heavy = {}
        for name, pose in links:
            parameters = read_inertial(inertials[name])
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
    for name in tree.replaced:
        parameters = read_inertial(inertials[name])
        shared.setdefault(name, parameters if parameters.any() else None)
    return shared


def effects_of_files(model: RobotModel) -> Mask:
    """(n_effects,) which effects a file of the robot can hold, or hold as friction or not at all.

    A file that is identified without the others is better than one that leaves them out afterwards:
    what bodies and friction can do of them, they do. Not so of motors that turn with two joints.
    """
    parts = (label.partition(" ") for label in effect_labels(model))
    return np.array(
        [kind not in NOWHERE or name not in model.joint_names for kind, _, name in parts]
    )


def joint_dynamics(model: RobotModel, parameters: Array) -> dict[str, dict[str, float]]:
    """By joint, the attributes of its <dynamics> that were identified.

    parameters: (10 * bodies + n_effects,) in the order of `model.full_labels`. Units: N m s/rad
    and N m, of prismatic joints N s/m and N. Friction is what is left after a long way: Coulomb's
    and all that builds up.
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
        None removes its inertial. Links that aren't named keep theirs, and comments stay.
    dynamics: by joint the attributes, such as damping; those that aren't named keep their values.
    Raises RobotModelError where the text is no URDF or has no such link or joint.
    """
    if not inertias and not any((dynamics or {}).values()):
        return text
    tree = parse_urdf(text)  # refuses entities that are used
    for kind, names, known in (
        ("link", inertias, set(tree.inertials)),
        ("joint", dynamics or {}, set(tree.joints)),
    ):
        for name in names:
            if name not in known:
                raise RobotModelError(f"the URDF has no {kind} '{name}' to write to")
    # Without namespaces, whose prefixes need not be declared.
    document: Any = expatbuilder.parseString(text.strip(), namespaces=False)  # nosec B316 # above
    for element in document.documentElement.childNodes:
        if element.nodeType != element.ELEMENT_NODE:
            continue
        name = element.getAttribute("name")
        if element.tagName == "link" and name in inertias:
            parameters = inertias[name]
            lines = [] if parameters is None else inertial_lines(parameters)
            _replace(element, "inertial", lines)
        elif element.tagName == "joint" and (values := (dynamics or {}).get(name)):
            merged = {key: repr(float(value)) for key, value in values.items()}
            if old := [inner for inner in element.childNodes if inner.nodeName == "dynamics"]:
                merged = dict(old[0].attributes.items()) | merged
            written = " ".join(f"{key}={quoteattr(value)}" for key, value in merged.items())
            _replace(element, "dynamics", [f"<dynamics {written}/>"])
    return f"{document.toxml()}\n"


def _replace(parent: Any, tag: str, lines: list[str]) -> None:
    """Put the element that `lines` are in the place of the children called `tag`.

    Where there is none it comes first; without lines the children go, with their own lines.
    """
    old = [child for child in parent.childNodes if child.nodeName == tag]
    if lines:
        before = (old[0] if old else parent).previousSibling
        indent = before.data.rpartition("\n")[2] if _is_space(before) else ""
        indent += "" if old else "  "
        new: Any = minidom.parseString(f"\n{indent}".join(lines)).documentElement  # nosec B318 # ours
        if old:
            parent.replaceChild(new, old.pop(0))
        else:
            parent.insertBefore(new, parent.firstChild)
            parent.insertBefore(parent.ownerDocument.createTextNode(f"\n{indent}"), new)
            if new.nextSibling is None:
                parent.appendChild(parent.ownerDocument.createTextNode(f"\n{indent[:-2]}"))
    for child in old:
        if _is_space(child.previousSibling):
            parent.removeChild(child.previousSibling)
        parent.removeChild(child)


def _is_space(node: Any) -> bool:
    return isinstance(node, minidom.Text) and not node.data.strip()


def read_inertial(element: ET.Element | None) -> Array:
    """(10,) the parameters in the link's frame of an inertial as `parse_urdf` has it; 0 for None.

    In the order of `regressor.INERTIAL`.
    """
    if element is None:
        return np.zeros(10)
    inner = {part.tag: part.attrib for part in reversed(element)}
    origin = inner.get("origin", {})
    center, angles = (np.array(origin.get(k, "0 0 0").split(), np.float64) for k in ("xyz", "rpy"))
    axes = pin.rpy.rpyToMatrix(angles)
    inertia = np.zeros((3, 3))
    for name, i, j in INERTIA_ENTRIES:
        inertia[i, j] = inertia[j, i] = float(inner["inertia"][name])
    P, pose = np.zeros((4, 4)), np.eye(4)
    P[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - axes @ inertia @ axes.T
    P[3, 3], pose[:3, 3] = float(inner["mass"]["value"]), center
    return inertial_parameters(pose @ P @ pose.T)


def inertial_lines(parameters: Array) -> list[str]:
    """The element's lines for parameters (10,) of a positive mass, in the link's own axes."""
    body = pin.Inertia.FromDynamicParameters(parameters)
    values = " ".join(f'{name}="{_exact(body.inertia[i, j])}"' for name, i, j in INERTIA_ENTRIES)
    center = " ".join(_exact(value) for value in body.lever)
    return [
        "<inertial>",
        f'  <origin xyz="{center}" rpy="0 0 0"/>',
        f'  <mass value="{_exact(body.mass)}"/>',
        f"  <inertia {values}/>",
        "</inertial>",
    ]


def _exact(value: float) -> str:
    return repr(float(value))


def _congruent(T: Array, parameters: Array) -> Array:
    """The parameters (10,) of T P T'; a pose T takes them into another frame."""
    return inertial_parameters(T @ pseudo_inertia(parameters) @ T.T)
