"""XML of unknown origin, such as a robot_description that anyone on the network may publish."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from semiparam_dynamics.errors import RobotModelError

LONGEST = 10_000_000  # characters; the iCub's URDF has 130 000


def parse_xml(text: str) -> ET.Element:
    """The outermost element of a URDF's text.

    Raises RobotModelError where it is not well-formed, longer than `LONGEST`, or has a document
    type: entities, which can stand for any amount of text or for files, are declared there alone.
    ElementTree opens no file and no address by itself.
    """
    if len(text) > LONGEST:
        raise RobotModelError(
            f"the URDF has {len(text)} characters, and {LONGEST} are allowed: leave meshes in files"
        )
    if "<!DOCTYPE" in text:
        raise RobotModelError("the URDF has a document type (<!DOCTYPE>), which is not accepted")
    try:
        return ET.fromstring(text)  # nosec B314 # entities are refused above
    except ET.ParseError as error:
        raise RobotModelError(f"the URDF is not well-formed XML: {error}") from None
