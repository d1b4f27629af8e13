"""A URDF's <inertial> element: the inertia about the centre of mass, in turned axes."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pinocchio as pin

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import RobotModelError

_ENTRIES = (
    ("ixx", 0, 0),
    ("ixy", 0, 1),
    ("ixz", 0, 2),
    ("iyy", 1, 1),
    ("iyz", 1, 2),
    ("izz", 2, 2),
)


def read_inertial(element: ET.Element | None, link: str) -> Array:
    """(10,) the parameters in the link's frame, in the order of `multibody.INERTIAL`; 0 for None.

    Raises RobotModelError where the element holds something that is no number.
    """
    if element is None:
        return np.zeros(10)
    try:
        mass = float(_attribute(element, "mass", "value"))
        center = _three(_attribute(element, "origin", "xyz", "0 0 0"))
        axes = pin.rpy.rpyToMatrix(_three(_attribute(element, "origin", "rpy", "0 0 0")))
        inertia = np.zeros((3, 3))
        for name, i, j in _ENTRIES:
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
    values = " ".join(f'{name}="{_exact(body.inertia[i, j])}"' for name, i, j in _ENTRIES)
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
