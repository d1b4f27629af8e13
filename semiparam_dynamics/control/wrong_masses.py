"""A URDF whose masses are off, as those from CAD are."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.xml_text import parse_xml


def with_wrong_masses(urdf: str, least: float, most: float, seed: int) -> str:
    """The URDF's text with each link heavier or lighter by a random part of its mass.

    The part lies between `least` and `most`, such as 0.1 and 0.3, its sign is random; moments of
    inertia go with the mass, centres of mass stay. Raises ConfigurationError where 0 <= least <=
    most < 1 doesn't hold, and RobotModelError where the URDF is no XML.
    """
    if not 0.0 <= least <= most < 1.0:
        raise ConfigurationError(
            f"masses can be wrong by 0 to less than 1 of themselves, not by {least:g} to {most:g}"
        )
    rng = np.random.default_rng([seed, 4])
    root = parse_xml(urdf)
    for inertial in root.iter("inertial"):
        factor = float(1.0 + rng.choice((-1.0, 1.0)) * rng.uniform(least, most))
        for name in ("mass", "inertia"):
            for element in inertial.findall(name):
                for key, value in element.attrib.items():
                    element.set(key, repr(float(value) * factor))
    return ET.tostring(root, encoding="unicode")
