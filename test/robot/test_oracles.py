"""The robot model against libraries that share no code with it: iDynTree and MuJoCo.

pin.rnea checks the regressor against another algorithm of the library that it comes from.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.simulation.urdf import without_meshes  # the oracles would open their files

from .pinocchio_states import rows_of, state_of

ARMS = Path(__file__).resolve().parent.parent / "data"
ICUB_ARM = ("r_shoulder_pitch", "r_shoulder_roll", "r_shoulder_yaw", "r_elbow")
PANDA_ARM = tuple(f"joint{i}" for i in range(1, 8))
SMALL_ARM = ("slew", "lift", "reach", "grip")
UR10_ARM = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")


@dataclass(frozen=True)
class Case:
    """A robot, the joints to learn, a sensor and the link it carries, and joints held elsewhere."""

    urdf: str
    joints: tuple[str, ...]
    sensor: str
    distal: str
    locked: dict[str, float]
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)


CASES = {
    "icub": Case("icub", ICUB_ARM, "r_arm_ft_sensor", "r_upper_arm", {}),
    "icub bent, tilted": Case(
        "icub",
        (*ICUB_ARM, "torso_yaw"),
        "r_arm_ft_sensor",
        "r_upper_arm",
        {"torso_pitch": 0.3, "r_wrist_yaw": -0.2, "r_wrist_prosup": 0.7},
        (1.0, -3.0, -9.0),
    ),
    "panda-like": Case("seven_joint_arm.urdf", PANDA_ARM, "wrist_sensor", "hand", {}),
    "panda-like, reordered": Case(
        "seven_joint_arm.urdf",
        ("joint5", "joint2", "joint7", "finger_joint", "joint1"),
        "wrist_sensor",
        "hand",
        {"joint3": 0.4, "joint4": -1.2},
        (0.0, 9.81, 0.0),
    ),
    "small": Case("small_arm.urdf", SMALL_ARM, "boom_sensor", "boom", {}),
    "small, sensor at a joint": Case(
        "small_arm.urdf", SMALL_ARM[::-1], "grip", "gripper", {}, (2.0, 3.0, -9.0)
    ),
    "small, a continuous and a prismatic joint held": Case(
        "small_arm.urdf",
        ("lift", "grip"),
        "boom_sensor",
        "boom",
        {"slew": 2.0, "reach": 0.15},
        (3.0, 1.0, -9.0),
    ),
    "ur10": Case(
        "robots/ur10/ur10_robot.urdf",
        tuple(f"{name}_joint" for name in UR10_ARM),
        "wrist_2_joint",
        "wrist_2_link",
        {},
    ),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture
def urdf(case: Case, request: pytest.FixtureRequest) -> str:
    if case.urdf == "icub":
        icub_models = pytest.importorskip("icub_models")
        return Path(icub_models.get_model_file("iCubGazeboV2_7")).read_text()
    if "/" in case.urdf:  # only this one may be missing: the fixture skips the test then
        data_file: Callable[[str], Path] = request.getfixturevalue("data_file")
        return data_file(case.urdf).read_text()
    return (ARMS / case.urdf).read_text()


def states(n_joints: int, n: int = 5) -> np.ndarray:
    """(n, 3, n_joints) random positions, velocities and accelerations."""
    return np.random.default_rng(7).standard_normal((n, 3, n_joints))


def model(case: Case, urdf: str, target: str) -> RobotModel:
    return RobotModel(
        urdf,
        target=target,
        joints=case.joints,
        sensor_frame=case.sensor if target == "wrench" else "",
        gravity=case.gravity,
        locked=case.locked,
    )


def joints(case: Case, state: np.ndarray) -> dict[str, np.ndarray]:
    """Position, velocity and acceleration of each joint that moves or is held."""
    held = {name: np.array([value, 0, 0]) for name, value in case.locked.items()}
    return dict(zip(case.joints, state.T, strict=True)) | held


def agree(robot: RobotModel, state: np.ndarray, expected: np.ndarray) -> None:
    """Both the reduced and the full parameters must give `expected`, and not by being zero."""
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(robot.inverse_dynamics(*state), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(robot.regressor(*state) @ robot.prior, expected, rtol=0, atol=1e-9)


# --- pinocchio's recursive Newton-Euler, on the whole robot ---------------------------------


def test_efforts_equal_rnea(case: Case, urdf: str) -> None:
    whole = pin.buildModelFromXML(without_meshes(urdf))
    whole.gravity.linear = np.array(case.gravity)
    robot = model(case, urdf, "effort")
    for state in states(robot.n_joints):
        efforts = pin.rnea(whole, whole.createData(), *state_of(whole, joints(case, state)))
        agree(robot, state, efforts[rows_of(whole, case.joints)])


# --- iDynTree -------------------------------------------------------------------------------


class IDynTree:
    """Inverse dynamics of the whole robot by iDynTree: joint torques, and any link's load."""

    def __init__(self, urdf: str, gravity: Sequence[float]) -> None:
        self.lib = pytest.importorskip("idyntree.bindings")
        loader = self.lib.ModelLoader()
        # Links hung on fixed joints must stay links of their own, so nothing is reduced.
        assert loader.loadModelFromString(without_meshes(urdf))
        self.dynamics = self.lib.KinDynComputations()
        self.dynamics.loadRobotModel(loader.model())
        self.dynamics.setFrameVelocityRepresentation(self.lib.BODY_FIXED_REPRESENTATION)
        self.model = self.dynamics.model()
        self.gravity = self.lib.Vector3()
        for i, value in enumerate(gravity):
            self.gravity.setVal(i, float(value))

    def __call__(
        self, joints: dict[str, np.ndarray], link: str = ""
    ) -> tuple[dict[str, float], np.ndarray]:
        index = self.model.getJointIndex
        dofs = {name: self.model.getJoint(index(name)).getDOFsOffset() for name in joints}
        state = [self.lib.VectorDynSize(self.model.getNrOfDOFs()) for _ in range(3)]
        for vector, i in zip(state, range(3), strict=True):
            vector.zero()
            for name, dof in dofs.items():
                vector.setVal(dof, float(joints[name][i]))
        self.dynamics.setRobotState(state[0], state[1], self.gravity)
        base = self.lib.Vector6()
        base.zero()
        external, internal = (self.lib.LinkWrenches(self.model) for _ in range(2))
        external.zero()
        torques = self.lib.FreeFloatingGeneralizedTorques(self.model)
        assert self.dynamics.inverseDynamicsWithInternalJointForceTorques(
            base, state[2], external, torques, internal
        )
        tau = torques.jointTorques().toNumPy()
        wrench = internal(self.model.getLinkIndex(link)).asVector().toNumPy() if link else None
        return {name: float(tau[dof]) for name, dof in dofs.items()}, wrench


def test_efforts_equal_idyntree(case: Case, urdf: str) -> None:
    oracle = IDynTree(urdf, case.gravity)
    robot = model(case, urdf, "effort")
    for state in states(robot.n_joints):
        torques, _ = oracle(joints(case, state))
        agree(robot, state, np.array([torques[name] for name in case.joints]))


def test_wrench_equals_idyntree(case: Case, urdf: str) -> None:
    """The load that the parent link puts on the distal one, in the distal link's frame."""
    oracle = IDynTree(urdf, case.gravity)
    robot = model(case, urdf, "wrench")
    for state in states(robot.n_joints):
        agree(robot, state, oracle(joints(case, state), case.distal)[1])


# --- MuJoCo's own force and torque sensors --------------------------------------------------


def test_wrench_equals_mujoco_sensor(case: Case, urdf: str) -> None:
    """A site at the distal body's origin reads the same, sign included, from mj_inverse."""
    mujoco = pytest.importorskip("mujoco")
    robot_tag = ET.fromstring(without_meshes(urdf))
    compiler = {"fusestatic": "false", "discardvisual": "false", "balanceinertia": "false"}
    ET.SubElement(ET.SubElement(robot_tag, "mujoco"), "compiler", compiler)
    spec = mujoco.MjSpec.from_string(ET.tostring(robot_tag, encoding="unicode"))
    spec.option.gravity = case.gravity
    spec.body(case.distal).add_site(name="sensor")
    for kind in (mujoco.mjtSensor.mjSENS_FORCE, mujoco.mjtSensor.mjSENS_TORQUE):
        spec.add_sensor(type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname="sensor")
    compiled = spec.compile()
    data = mujoco.MjData(compiled)
    robot = model(case, urdf, "wrench")
    for state in states(robot.n_joints):
        for name, values in joints(case, state).items():
            joint = compiled.joint(name)
            data.qpos[joint.qposadr], data.qvel[joint.dofadr], data.qacc[joint.dofadr] = values
        mujoco.mj_inverse(compiled, data)
        agree(robot, state, data.sensordata)
