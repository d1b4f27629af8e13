"""MuJoCo's model of a URDF, with the rotor inertias that a URDF has no place for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.simulation.urdf import require, without_meshes

GRAVITY = (0.0, 0.0, -9.81)  # m/s^2, of an arm on the floor
# Links stay bodies of their own, and the inertias are the file's.
COMPILER = (
    '<mujoco><compiler fusestatic="false" balanceinertia="false" strippath="false"/></mujoco>'
)


def rotor_inertias(model: RobotModel, parameters: Array) -> dict[str, float]:
    """By joint the rotor inertia in kg m^2 (of a prismatic joint in kg) that was identified.

    parameters: (10 * bodies + n_effects,) in the order of `model.full_labels`.
    """
    values = dict(zip(model.full_labels, parameters.tolist(), strict=True))
    labels = {joint: f"rotor_inertia {joint}" for joint in model.joint_names}
    return {joint: values[label] for joint, label in labels.items() if label in values}


def export_mjcf(
    urdf: str, armatures: Mapping[str, float], gravity: Sequence[float] = GRAVITY
) -> str:
    """MuJoCo's XML of a URDF's text: its bodies and joints, and `armatures` by joint.

    gravity: (3,) m/s^2 in the frame of the root link, which is MuJoCo's world.

    From <dynamics> MuJoCo takes damping as it is and friction as frictionloss. Visual and collision
    elements are left out, as their meshes are files of another format. Raises RobotModelError
    where MuJoCo takes no such robot, and MissingExtraError without mujoco.
    """
    mujoco = require("mujoco")
    end = urdf_end(text := without_meshes(urdf))
    try:
        spec = mujoco.MjSpec.from_string(f"{text[:end]}{COMPILER}{text[end:]}")
        for joint, armature in armatures.items():
            spec.joint(joint).armature = armature
        # A URDF has no place for it, and MuJoCo's own is that of an arm on the floor.
        spec.option.gravity = gravity
        spec.compile()
        written: str = spec.to_xml()
    except (ValueError, RuntimeError) as error:
        raise RobotModelError(f"MuJoCo can't take the identified URDF: {error}") from None
    return written


def urdf_end(text: str) -> int:
    """Beginning of the end tag of a URDF's root. Raises RobotModelError where it has none."""
    if (end := text.rfind("</robot")) < 0:
        raise RobotModelError("the URDF has no links")
    return end
