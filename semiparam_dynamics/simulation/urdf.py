"""The URDF of the simulated arm: its source, and the part of it that is simulated."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.base.extras import imported
from semiparam_dynamics.robot.urdf import (
    ONE_DOF,
    closest,
    parse_urdf,
    parse_xml,
    read_urdf,
)

ICUB_JOINTS = ("r_shoulder_pitch", "r_shoulder_roll", "r_shoulder_yaw", "r_elbow")
ICUB_SENSOR = "r_arm_ft_sensor"
ICUB_HAND = "r_hand_dh_frame"
#: The tip of a tool held in the fist, which iCub's tools point to (-y). With the wrist straight,
#: the palm itself can't draw 10 cm circles in the XZ plane within the joints' limits.
GRAVITY = (0.0, 0.0, -9.81)  # m/s^2, of an arm on the floor
ICUB_HAND_OFFSET = (0.0, -0.1, 0.0)
#: Centre (m, root frame) and posture (rad) of the circles, well within all limits.
ICUB_CIRCLES = {
    "circle_xy": ((-0.181, 0.043, -0.028), (-0.157, 1.064, 1.038, 1.179)),
    "circle_xz": ((-0.207, -0.074, 0.151), (-0.618, 0.37, 1.272, 1.046)),
}


def require(module: str) -> Any:
    """Import an optional module; MissingExtraError says how to install it."""
    install = f"pip install {module.replace('_', '-')}"
    return imported(module, f"the simulator needs the Python package '{module}': {install}")


def icub_urdf() -> str:
    """The iCub's URDF text (`iCubGazeboV2_7` of the package icub-models, CC BY-SA 4.0)."""
    path = require("icub_models").get_model_file("iCubGazeboV2_7")
    return Path(str(path)).read_text(encoding="utf-8")


def without_meshes(urdf: str) -> str:
    """The URDF text without visual and collision elements (their mesh files aren't needed).

    `urdf` is the text itself or a file's path. Raises RobotModelError where it can't be read.
    """
    root = parse_xml(read_urdf(urdf))
    for link in root.iter("link"):
        for tag in ("visual", "collision"):
            for element in link.findall(tag):
                link.remove(element)
    return ET.tostring(root, encoding="unicode")


class SimulatedArm:
    """A URDF's kinematic tree with the joints, sensor and hand that are simulated.

    Attributes: `joints` (moving joints in order), `sensor_link` (the link that the sensor carries,
    with all that follows it; "" without a sensor), `sensor_frame`, `hand_frame`, `hand_link`.
    Raises RobotModelError for a URDF that is no tree, and for unknown joints and frames.
    """

    def __init__(
        self, urdf: str, joints: tuple[str, ...] = (), sensor_frame: str = "", hand_frame: str = ""
    ) -> None:
        self.urdf = urdf
        self._tree = tree = parse_urdf(urdf)
        moving = tuple(j.name for j in tree.joints.values() if j.type in ONE_DOF)
        # Joints that mimic others stay where they are, as a learner takes them, unless asked for.
        self.joints = joints or tuple(j.name for j in tree.joints.values() if j.actuated)
        unknown = [name for name in self.joints if name not in moving]
        if unknown or not self.joints:
            raise RobotModelError(
                f"the URDF has no moving joint {', '.join(unknown)}; it has {', '.join(moving)}"
            )
        if len(set(self.joints)) < len(self.joints):
            raise RobotModelError(f"a joint is named twice in {', '.join(self.joints)}")
        self.sensor_frame = sensor_frame
        self.sensor_link = self._sensor_link(sensor_frame) if sensor_frame else ""
        self.hand_frame = hand_frame or max(sorted(tree.inertials), key=self._depth)
        self.hand_link = self._frame_link(self.hand_frame)
        needed = self._needed_links()
        if lost := [name for name in self.joints if tree.joints[name].child not in needed]:
            raise RobotModelError(
                f"nothing with a mass hangs on {', '.join(lost)}: name the other joints ('joints')"
            )

    def moving_part(self) -> str:
        """A URDF of the moving part, with all other joints fixed in position zero.

        It is without side branches of the fixed part, massless leaves, joint limits and the URDF's
        own friction: the motion keeps the limits, and friction is an effect here.
        """
        root = parse_xml(self.urdf)
        for joint in root.findall("joint"):
            _simplify(joint, moving=joint.get("name", "") in self.joints)
        needed = self._needed_links()
        for element in list(root):
            name = element.get("name", "")
            link = self._tree.joints[name].child if element.tag == "joint" else name
            if element.tag not in ("joint", "link") or link not in needed:
                root.remove(element)
        return ET.tostring(root, encoding="unicode")

    def _frame_link(self, frame: str) -> str:
        """The link that a frame's name (a joint's or a link's) stands for."""
        if frame in self._tree.joints:
            return self._tree.joints[frame].child
        if frame in self._tree.inertials:
            return frame
        hint = closest(frame, dict.fromkeys([*self._tree.joints, *self._tree.inertials]))
        raise RobotModelError(f"the URDF has no joint or link '{frame}'{hint}")

    def _sensor_link(self, frame: str) -> str:
        """The link behind the sensor; it or what hangs on it must have a mass and must move."""
        link = self._frame_link(frame)
        if self._tree.mass(link) <= 0.0:
            raise RobotModelError(f"nothing with a mass hangs on the sensor frame '{frame}'")
        if not self._depth(link)[0]:
            raise RobotModelError(f"none of the moving joints carries the sensor frame '{frame}'")
        return link

    def _depth(self, link: str) -> tuple[int, int]:
        """The number of moving joints, and of all joints, between a link and the root."""
        chain = list(self._tree.above(link))
        return sum(joint.name in self.joints for joint in chain), len(chain)

    def _needed_links(self) -> set[str]:
        tree, keep = self._tree, [self.hand_link, self.sensor_link]
        keep += [link for link in tree.inertials if self._depth(link)[0] and tree.mass(link) > 0.0]
        return {tree.root} | {joint.child for link in keep for joint in tree.above(link)}


def _simplify(joint: ET.Element, *, moving: bool) -> None:
    if not moving:
        joint.set("type", "fixed")
    elif joint.get("type") == "continuous":
        joint.set("type", "revolute")
        for limit in joint.findall("limit"):
            joint.remove(limit)
        limits = {"lower": "-3.14159", "upper": "3.14159", "effort": "0", "velocity": "0"}
        ET.SubElement(joint, "limit", limits)
    for tag in ("dynamics", "mimic", "safety_controller"):
        for element in joint.findall(tag):
            joint.remove(element)
