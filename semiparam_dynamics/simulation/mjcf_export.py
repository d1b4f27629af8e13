"""MuJoCo's model of a URDF, with the rotor inertias that a URDF has no place for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.simulation.urdf import GRAVITY, require, without_meshes

# Links stay bodies of their own, and the inertias are the file's.
COMPILER = (
    '<mujoco><compiler fusestatic="false" balanceinertia="false" strippath="false" '
    'boundmass="1e-9" boundinertia="1e-12"/></mujoco>'  # some robots move links without mass
)
# MuJoCo's friction is soft: with its own 0.02 s it turns 10 ms before the motion does. These are
# the least that it takes, two of its steps of 2 ms, and critical damping.
FRICTION_SOLVER = (0.004, 1.0)


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
            spec.joint(joint).solref_friction = FRICTION_SOLVER
        # A URDF has no place for it, and MuJoCo's own is that of an arm on the floor.
        spec.option.gravity = gravity
        spec.compile()
        written: str = spec.to_xml()
    except (ValueError, RuntimeError) as error:
        raise RobotModelError(f"MuJoCo can't take the identified URDF: {error}") from None
    return written


def mjcf_efforts(text: str, model: RobotModel, q: Array, dq: Array, ddq: Array) -> Array:
    """(n, n_joints) MuJoCo's inverse dynamics of a file that `export_mjcf` wrote, n states.

    Other joints stand where the model has them, and gravity acts as it does in the model.
    """
    mujoco = require("mujoco")
    loaded = mujoco.MjModel.from_xml_string(text)
    loaded.opt.gravity = model.gravity
    data = mujoco.MjData(loaded)
    for name, position in model.locked.items():
        data.joint(name).qpos = position
    joints = [loaded.joint(name) for name in model.joint_names]
    positions = [int(joint.qposadr[0]) for joint in joints]
    places = [int(joint.dofadr[0]) for joint in joints]
    efforts = np.empty_like(q)
    for effort, *state in zip(efforts, q, dq, ddq, strict=True):
        data.qpos[positions], data.qvel[places], data.qacc[places] = state
        mujoco.mj_inverse(loaded, data)
        effort[:] = data.qfrc_inverse[places]
    return efforts


def urdf_end(text: str) -> int:
    """Beginning of the end tag of a URDF's root. Raises RobotModelError where it has none."""
    if (end := text.rfind("</robot")) < 0:
        raise RobotModelError("the URDF has no links")
    return end
