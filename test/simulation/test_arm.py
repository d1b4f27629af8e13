"""The whole simulator: exact rigid-body physics, effects on top, seeds, and other robots."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.base.errors import (
    ConfigurationError,
    MissingExtraError,
    RobotModelError,
    SampleError,
)
from semiparam_dynamics.simulation import urdf as urdfs
from semiparam_dynamics.simulation.arm import ArmSimulator, Reading
from semiparam_dynamics.simulation.config import EffectsConfig, MotionConfig, SimulatorConfig
from semiparam_dynamics.simulation.urdf import SimulatedArm, without_meshes

from ..control.arm import JOINTS, SEVEN
from ..robot.pinocchio_states import rows_of, state_of
from .no_effects import NO_EFFECTS

mujoco = pytest.importorskip("mujoco", reason="needs the extra 'sim'")

DATA = Path(__file__).resolve().parent.parent / "data"
SMALL = str(DATA / "small_arm.urdf")
HAND = "r_hand_dh_frame"  # the iCub's
MASS, CENTER = 0.7, np.array([0.02, -0.05, 0.08])
INERTIA = np.array([[4e-3, 5e-4, 0.0], [5e-4, 3e-3, -2e-4], [0.0, -2e-4, 2e-3]])
RATE = 500.0


def simulator(
    urdf: str = "", effects: EffectsConfig = NO_EFFECTS, **overrides: object
) -> ArmSimulator:
    return ArmSimulator(urdf, SimulatorConfig(effects=effects), **overrides)


def icub(effects: EffectsConfig = NO_EFFECTS, **overrides: object) -> ArmSimulator:
    """The iCub's arm; its circles repeat exactly by default, which is quicker to prepare."""
    pytest.importorskip("icub_models", reason="needs the extra 'sim'")
    return simulator("", effects, **{"variation": 0.0} | overrides)


def readings(arm: ArmSimulator, count: int) -> list[Reading]:
    return [arm.advance() for _ in range(count)]


class RigidBodies:
    """Pinocchio's model of the same URDF: joint torques, and the load at the sensor."""

    def __init__(self, arm: ArmSimulator) -> None:
        self.model = pin.buildModelFromXML(arm.urdf)
        self.data = self.model.createData()
        self.names, self.v_of = arm.joint_names, rows_of(self.model, arm.joint_names)
        self.frame = self.model.getFrameId(arm.sensor_frame) if arm.sensor_frame else None

    def state(self, reading: Reading) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        values = zip(reading.q_true, reading.dq_true, reading.ddq_true, strict=True)
        return state_of(self.model, dict(zip(self.names, values, strict=True)))

    def torque(self, reading: Reading) -> np.ndarray:
        return np.asarray(pin.rnea(self.model, self.data, *self.state(reading)))[self.v_of]

    def wrench(self, reading: Reading) -> np.ndarray:
        """The load at the sensor: of all joints behind it, and of its own link."""
        self.torque(reading)
        frame = self.model.frames[self.frame]
        joint = frame.parentJoint
        behind = [i for i in range(joint + 1, self.model.njoints) if self.model.parents[i] == joint]
        load = pin.Force.Zero()
        for i in behind:
            load += self.data.liMi[i].act(self.data.f[i])
        # rnea's acceleration contains gravity's
        velocity, acceleration = self.data.v[joint], self.data.a_gf[joint]
        assert frame.inertia.mass > 0.0  # pinocchio keeps a link's inertia at its fixed joint
        inertia = frame.placement.act(frame.inertia)
        load += inertia * acceleration + velocity.cross(inertia * velocity)
        return np.asarray(frame.placement.actInv(load).vector)


def assert_rigid(
    arm: ArmSimulator, oracle: RigidBodies, count: int = 300, atol: float = 1e-10
) -> list[Reading]:
    """Some of the next readings, whose wrench and efforts are the oracle's."""
    chosen = readings(arm, count)[::7]
    for reading in chosen:
        np.testing.assert_allclose(reading.wrench, oracle.wrench(reading), atol=atol)
        np.testing.assert_allclose(reading.effort, oracle.torque(reading), atol=atol)
    return chosen


def test_icub_is_exact_rigid_body_dynamics() -> None:
    arm = icub(motion="circle_xz")
    assert arm.joint_names == urdfs.ICUB_JOINTS and arm.sensor_frame == "r_arm_ft_sensor"
    for reading in assert_rigid(arm, RigidBodies(arm)):
        np.testing.assert_array_equal(reading.wrench, reading.wrench_rigid)
        np.testing.assert_array_equal(reading.q, reading.q_true)
        np.testing.assert_array_equal(reading.dq, reading.dq_true)


def test_another_robot_is_exact_rigid_body_dynamics() -> None:
    # a continuous and a prismatic joint, and joints asked for in another order than the tree's
    order = ("grip", "slew", "reach", "lift")
    arm = simulator(SMALL, joints=order, sensor_frame="boom_sensor", motion="exciting")
    assert arm.joint_names == order
    assert_rigid(arm, RigidBodies(arm))


def test_locked_joints_stay_and_are_not_reported() -> None:
    arm = simulator(SMALL, joints=("slew", "lift"), motion="exciting")
    oracle = RigidBodies(arm)
    for reading in readings(arm, 200)[::20]:
        np.testing.assert_allclose(reading.effort, oracle.torque(reading), atol=1e-10)
        np.testing.assert_array_equal(reading.wrench, 0.0)


def test_by_default_actuated_joints_move() -> None:
    mimic = (
        Path(SMALL)
        .read_text()
        .replace('<axis xyz="1 1 0"/>', '<axis xyz="1 1 0"/><mimic joint="lift"/>')
    )
    assert simulator(mimic, motion="exciting").joint_names == ("slew", "lift", "reach")
    asked = simulator(mimic, motion="exciting", joints=("lift", "grip"))
    assert asked.joint_names == ("lift", "grip")


def test_a_joint_that_moves_nothing_is_named() -> None:
    feeler = (
        '<link name="feeler"/><joint name="feel" type="revolute"><parent link="column"/>'
        '<child link="feeler"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
        "</robot>"
    )
    text = Path(SMALL).read_text().replace("</robot>", feeler)
    with pytest.raises(RobotModelError, match="nothing with a mass hangs on feel:"):
        simulator(text, motion="exciting")
    joints = ("slew", "lift", "reach", "grip")
    assert simulator(text, motion="exciting", joints=joints).joint_names == joints


def test_bypass_shifts_reading_and_motion_as_real_forces_do() -> None:
    effects = dataclasses.replace(NO_EFFECTS, cable_stiffness=200.0, sleeve_stiffness=1.0)
    arm = icub(dataclasses.replace(effects, sleeve_friction=0.5, rotor_inertia=0.02))
    oracle = RigidBodies(arm)
    model, data = oracle.model, oracle.data
    seen = []
    for reading in readings(arm, 300)[::7]:
        rigid = oracle.wrench(reading)
        np.testing.assert_allclose(reading.wrench_rigid, rigid, atol=1e-10)
        np.testing.assert_allclose(reading.wrench, rigid - reading.wrench_bypass, atol=1e-10)
        # joint torques: rigid bodies and rotors, less what cable and sleeve do
        jacobian = pin.computeFrameJacobian(
            model, data, oracle.state(reading)[0], oracle.frame, pin.LOCAL
        )[:, oracle.v_of]
        torque = oracle.torque(reading) + 0.02 * reading.ddq_true
        expected = torque - jacobian.T @ reading.wrench_bypass
        np.testing.assert_allclose(reading.effort, expected, atol=1e-9)
        seen.append(reading.wrench_bypass)
    assert np.ptp(seen, axis=0)[:3].max() > 0.5 and np.ptp(seen, axis=0)[3:].max() > 0.1


def test_friction_appears_in_the_effort() -> None:
    arm = icub(dataclasses.replace(NO_EFFECTS, friction_coulomb=0.3, friction_viscous=0.2))
    oracle = RigidBodies(arm)
    for reading in readings(arm, 300)[::7]:
        friction = reading.effort - oracle.torque(reading)
        fast = np.abs(reading.dq_true) > 0.3
        expected = 0.3 * np.sign(reading.dq_true) + 0.2 * reading.dq_true
        np.testing.assert_allclose(friction[fast], expected[fast], atol=1e-3)


def test_soft_transmission_turns_motors_ahead_of_links() -> None:
    effects = dataclasses.replace(NO_EFFECTS, compliance=0.01, hardening_torque=0.0)
    arm = icub(effects, motion="exciting", max_velocity=0.3)
    pairs = readings(arm, 500)[100:]
    twist = np.array([r.q - r.q_true for r in pairs])
    torque = np.array([r.effort for r in pairs])
    # slow motion: the twist follows the torque but for its 20 ms lag
    np.testing.assert_allclose(twist, 0.01 * torque, atol=3e-3)
    assert np.abs(twist).max() > 0.01


def test_hysteresis_stays_within_its_half_width() -> None:
    arm = icub(dataclasses.replace(NO_EFFECTS, hysteresis=0.02))
    lost = np.array([r.q_true - r.q for r in readings(arm, 400)])
    assert np.abs(lost).max() <= 0.02 + 1e-12
    assert lost.max() > 0.019 and lost.min() < -0.019


def test_noise_is_on_the_readings_only() -> None:
    effects = dataclasses.replace(
        NO_EFFECTS, noise_position=1e-3, noise_velocity=1e-2, noise_effort=0.1, noise_force=0.3
    )
    noisy, clean = readings(icub(effects), 400), readings(icub(), 400)
    for name, size in (("q", 1e-3), ("dq", 1e-2), ("effort", 0.1)):
        error = [getattr(a, name) - getattr(b, name) for a, b in zip(noisy, clean, strict=True)]
        np.testing.assert_allclose(np.std(error, axis=0), size, rtol=0.15)
    np.testing.assert_array_equal(noisy[-1].q_true, clean[-1].q_true)


@pytest.mark.parametrize("motion", ["circle_xy", "circle_xz"])
def test_hand_draws_the_thesis_circles(motion: str) -> None:
    arm = icub(motion=motion)
    path = np.array([arm._hand.position(r.q_true) for r in readings(arm, 420)[300:]])
    plane = [0, 1] if motion == "circle_xy" else [0, 2]
    center = np.array(urdfs.ICUB_CIRCLES[motion][0])
    np.testing.assert_allclose(np.linalg.norm((path - center)[:, plane], axis=1), 0.1, atol=1e-3)
    np.testing.assert_allclose(path[:, 3 - sum(plane)], center[3 - sum(plane)], atol=1e-3)
    speed = np.linalg.norm(np.diff(path, axis=0), axis=1) * 100.0
    np.testing.assert_allclose(speed, 0.6, rtol=0.02)


@pytest.mark.parametrize("motion", ["circle_xy", "exciting"])
def test_default_motion_keeps_the_joint_limits_without_jumps(motion: str) -> None:
    arm = icub(EffectsConfig(), motion=motion, rate=50.0, variation=MotionConfig().variation)
    count = 1100 if motion == "exciting" else 300  # its period and ramp; some circles
    q = np.array([r.q_true for r in readings(arm, count)])
    model = pin.buildModelFromXML(arm.urdf)
    at = [model.joints[model.getJointId(name)].idx_q for name in arm.joint_names]
    assert np.all(q > model.lowerPositionLimit[at])
    assert np.all(q < model.upperPositionLimit[at])
    assert np.abs(np.diff(q, axis=0)).max() < 5.0 / 50.0


def test_same_seed_same_readings() -> None:
    first, again, other = (
        readings(icub(EffectsConfig(), seed=seed, motion="exciting"), 150) for seed in (4, 4, 5)
    )
    for a, b in zip(first, again, strict=True):
        for field in dataclasses.fields(Reading):
            np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))
    for a, c in zip(first, other, strict=True):
        assert np.all(a.q != c.q) and np.all(a.wrench != c.wrench)


@pytest.mark.parametrize("rate", [37.0, 100.0, 1000.0])
def test_readings_come_at_the_asked_rate(rate: float) -> None:
    times = [reading.time for reading in readings(icub(rate=rate), 5)]
    np.testing.assert_allclose(times, np.arange(5) / rate, atol=1e-12)


def test_readings_do_not_share_memory() -> None:
    arm = icub(EffectsConfig())
    first = arm.advance()
    kept = {f.name: np.copy(getattr(first, f.name)) for f in dataclasses.fields(Reading)}
    readings(arm, 20)
    for name, value in kept.items():
        np.testing.assert_array_equal(getattr(first, name), value)


def test_urdf_is_the_whole_robot_without_meshes() -> None:
    arm = icub()
    assert "<mesh" not in arm.urdf
    assert pin.buildModelFromXML(arm.urdf).njoints == 33
    assert simulator(Path(SMALL).read_text(), motion="exciting").joint_names[0] == "slew"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"joints": ("slew", "elbow")}, "no moving joint elbow.*slew, lift"),
        ({"joints": ("slew", "slew")}, "twice"),
        ({"sensor_frame": "boom_senser"}, "did you mean 'boom_sensor'"),
        ({"sensor_frame": "sensor_mark"}, "nothing with a mass"),
        ({"sensor_frame": "boom_sensor", "joints": ("grip",)}, "none of the moving joints"),
        ({"hand_frame": "fist"}, "no joint or link 'fist'"),
    ],
)
def test_wrong_names_are_explained(changes: dict[str, object], message: str) -> None:
    with pytest.raises(RobotModelError, match=message):
        simulator(SMALL, motion="exciting", **changes)


def test_unreadable_urdf_is_explained(tmp_path: Path) -> None:
    with pytest.raises(RobotModelError, match="can't be read"):
        simulator(str(tmp_path / "none.urdf"))
    with pytest.raises(RobotModelError, match="not well-formed"):
        simulator("<robot><link></robot>")
    with pytest.raises(RobotModelError, match="<sdf>"):
        simulator("<sdf/>")
    massless = Path(SMALL).read_text().replace('<mass value="0.3"/>', '<mass value="0"/>')
    with pytest.raises(RobotModelError, match="MuJoCo"):
        simulator(massless, motion="exciting")


def test_wrong_parameters_are_explained() -> None:
    with pytest.raises(ConfigurationError, match="'hand_offset' must have 3 numbers"):
        simulator(SMALL, hand_offset=(0.1,))


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.import_module

    def without_mujoco(name: str) -> ModuleType:
        if name == "mujoco":
            raise ImportError(name)
        return found(name)

    monkeypatch.setattr(importlib, "import_module", without_mujoco)
    with pytest.raises(MissingExtraError, match="pip install mujoco"):
        ArmSimulator()


def commanded(**values: object) -> ArmSimulator:
    config = SimulatorConfig(effects=NO_EFFECTS)
    return ArmSimulator(
        SEVEN, config, joints=JOINTS, control="effort", motion="exciting", rate=RATE, **values
    )


def test_commanded_efforts_move_the_arm_as_mujoco_does():
    arm = commanded()
    text = SimulatedArm(without_meshes(SEVEN), JOINTS).moving_part()
    extra = '<mujoco><compiler fusestatic="false" balanceinertia="true"/></mujoco></robot>'
    model = mujoco.MjModel.from_xml_string(text.replace("</robot>", extra))
    model.opt.timestep = 1.0 / RATE
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    data = mujoco.MjData(model)
    data.qpos[:] = arm.advance().q_true
    rng = np.random.default_rng(0)
    for k in range(500):
        effort = 20.0 * np.sin(0.05 * k + np.arange(4)) + rng.normal(size=4)
        arm.command(effort)
        reading = arm.advance()
        if k == 0:  # the first reading's step was made on the brakes: start from the second one
            data.qpos[:], data.qvel[:] = reading.q_true, reading.dq_true
        np.testing.assert_allclose(reading.q_true, data.qpos, atol=1e-9)
        np.testing.assert_allclose(reading.dq_true, data.qvel, atol=1e-9)
        np.testing.assert_array_equal(reading.effort_true, effort)
        data.qfrc_applied[:] = effort
        mujoco.mj_step(model, data)
    assert np.abs(data.qvel).max() > 0.1


def test_it_is_held_until_the_first_command_and_damped_after_the_last():
    arm = commanded(command_timeout=0.05)
    start = arm.advance().q_true
    for _ in range(500):
        reading = arm.advance()
    np.testing.assert_allclose(reading.q_true, start, atol=1e-6)
    push = np.array([3.0, -20.0, 1.0, 8.0])
    arm.command(push)
    readings = [arm.advance() for _ in range(1000)]
    held = round(0.05 * RATE) + 1
    assert all((reading.effort_true == push).all() for reading in readings[:held])
    for reading in readings[held + 1 :]:
        assert reading.effort_true @ reading.dq_true <= 0.0  # takes energy out
    speed = [np.abs(reading.dq_true).max() for reading in readings]
    assert 0.01 < speed[-1] < 3.0  # sinks, but doesn't fall freely
    arm.command(push)
    np.testing.assert_array_equal(arm.advance().effort_true, push)


def test_a_command_of_another_size_or_not_finite_is_refused():
    arm = commanded()
    for wrong in (np.zeros(3), np.full(4, np.nan), np.array([np.inf, 0.0, 0.0, 0.0])):
        with pytest.raises(SampleError, match="4 finite efforts"):
            arm.command(wrong)


def test_its_own_motion_takes_no_commands():
    one, other = (
        ArmSimulator(SEVEN, joints=JOINTS, motion="exciting", rate=RATE) for _ in range(2)
    )
    for _ in range(100):
        other.command(np.full(4, 5.0))
        np.testing.assert_array_equal(one.advance().q, other.advance().q)


def test_a_body_in_the_hand_is_exact_rigid_body_dynamics() -> None:
    arm = icub(motion="circle_xz")
    bare, loaded = RigidBodies(arm), RigidBodies(arm)
    hand = loaded.model.frames[loaded.model.getFrameId(HAND)]
    body = pin.Inertia(MASS, CENTER, INERTIA)
    loaded.model.appendBodyToJoint(hand.parentJoint, body, hand.placement)
    loaded.data = loaded.model.createData()
    for oracle, mass in ((bare, 0.0), (loaded, MASS), (bare, 0.0)):
        arm.hand.attach(mass, CENTER, INERTIA)
        assert_rigid(arm, oracle, 60, atol=1e-9)


def test_a_push_is_felt_at_the_sensor_with_its_lever() -> None:
    arm = icub(motion="circle_xz")
    oracle = RigidBodies(arm)
    force, point = np.array([3.0, -4.0, 12.0]), np.array([0.0, -0.1, 0.02])
    moment = np.array([0.5, 2.0, -1.0])
    readings(arm, 20)
    arm.hand.push(force, point, moment=moment)
    for reading in readings(arm, 60)[::7]:
        missing = oracle.wrench(reading) - reading.wrench
        pin.framesForwardKinematics(oracle.model, oracle.data, oracle.state(reading)[0])
        sensor, hand = (
            oracle.data.oMf[oracle.model.getFrameId(name)] for name in (arm.sensor_frame, HAND)
        )
        np.testing.assert_allclose(sensor.rotation @ missing[:3], force, atol=1e-9)
        lever = hand.act(point) - sensor.translation
        felt = np.cross(lever, force) + moment
        np.testing.assert_allclose(sensor.rotation @ missing[3:], felt, atol=1e-9)
    arm.hand.push(np.zeros(3))
    assert_rigid(arm, oracle, 5, atol=1e-9)


def test_a_load_that_is_no_body_is_refused() -> None:
    arm = icub()
    with pytest.raises(ConfigurationError, match="negative"):
        arm.hand.attach(-0.1, CENTER, INERTIA)
    with pytest.raises(ConfigurationError, match="negative"):
        arm.hand.attach(0.1, CENTER, -INERTIA)
