"""Parameters of the simulator: the robot, its motion, and effects beyond rigid bodies."""

from __future__ import annotations

import dataclasses
from functools import partial

from semiparam_dynamics.base.parameters import group, parameter, replace
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.simulation.urdf import ICUB_JOINTS, ICUB_SENSOR

# Effects of one kind have one range.
_friction = partial(parameter, unit="N m", low=0.0, high=1000.0)
_force_error = partial(parameter, unit="N", low=0.0, high=100.0)
_torque_error = partial(parameter, unit="N m", low=0.0, high=100.0)
_angle_error = partial(parameter, unit="rad", low=0.0, high=0.1)


@dataclasses.dataclass(frozen=True)
class EffectsConfig:
    """Effects of a real arm beyond rigid-body dynamics; 0 turns an effect off.

    The formulas are in :mod:`semiparam_dynamics.simulation.effects`. One number holds for every
    joint, or for all forces (N) or all torques (N m) of the sensor. The defaults suit the iCub's
    arm: with them a fitted rigid-body model misses the wrench by as much as on the real one
    (thesis, figure 8.4).
    """

    friction_coulomb: float = _friction(0.3, "Coulomb friction of each joint")
    friction_stribeck: float = _friction(
        0.15, "breakaway friction above Coulomb's, near standstill"
    )
    stribeck_velocity: float = parameter(
        0.1, "velocity over which the breakaway friction fades", unit="rad/s", low=1e-3, high=10.0
    )
    friction_viscous: float = parameter(
        0.15, "viscous friction of each joint", unit="N m s/rad", low=0.0, high=1000.0
    )
    rotor_inertia: float = parameter(
        0.03, "rotor inertia on the joint's side of the gear", unit="kg m^2", low=0.0, high=100.0
    )
    compliance: float = parameter(
        0.003,
        "softness of each joint's transmission: its twist under a small torque",
        unit="rad/(N m)",
        low=0.0,
        high=0.1,
    )
    hardening_torque: float = parameter(
        3.0,
        "torque at which the transmission has become twice as stiff; 0 keeps it linear",
        unit="N m",
        low=0.0,
        high=10000.0,
    )
    compliance_time: float = parameter(
        0.02, "time constant of the transmission's damping", unit="s", low=0.005, high=1.0
    )
    hysteresis: float = _angle_error(0.003, "half width of the motor position's hysteresis loop")
    cable_stiffness: float = parameter(
        220.0,
        "stiffness of a cable from the fixed part to the sensor's link, past the sensor",
        unit="N/m",
        low=0.0,
        high=1e5,
    )
    cable_slack: float = parameter(
        1.14,
        "length at which the cable gets taut, over its length with every joint mid-range",
        low=0.1,
        high=2.0,
    )
    cable_softness: float = parameter(
        0.01, "stretch over which the cable gets taut", unit="m", low=1e-4, high=1.0
    )
    cable_anchor: tuple[float, ...] = parameter(
        (-0.02, 0.063, -0.062),
        "where the cable is held on the fixed part, from the first joint's origin, base axes",
        unit="m",
        low=-10.0,
        high=10.0,
    )
    cable_attachment: tuple[float, ...] = parameter(
        (-0.057, -0.03, 0.048),
        "where the cable is held on the moving part, in the sensor frame",
        unit="m",
        low=-10.0,
        high=10.0,
    )
    sleeve_stiffness: float = parameter(
        0.2,
        "stiffness in bending and torsion of the skin and cables that clothe the arm",
        unit="N m/rad",
        low=0.0,
        high=1000.0,
    )
    sleeve_hardening: float = parameter(
        1.0, "growth of the sleeve's stiffness with its bending", low=0.0, high=10.0
    )
    sleeve_friction: float = _torque_error(0.1, "dry friction inside the sleeve")
    sleeve_velocity: float = parameter(
        0.3, "angular velocity at which that friction sets in", unit="rad/s", low=0.01, high=10.0
    )
    crosstalk: float = parameter(
        0.03,
        "size of the sensor's calibration error, over forces of 10 N and torques of 1 N m",
        low=0.0,
        high=0.5,
    )
    nonlinearity: float = parameter(
        0.1, "relative gain error of the sensor under a high load", low=0.0, high=0.5
    )
    bias_force: float = _force_error(2.0, "standard deviation of the force offsets")
    bias_torque: float = _torque_error(0.1, "standard deviation of the torque offsets")
    drift_force: float = _force_error(0.3, "standard deviation of the force offsets' warm-up")
    drift_torque: float = _torque_error(0.02, "standard deviation of the torque offsets' warm-up")
    drift_time: float = parameter(
        600.0, "time constant of the warm-up", unit="s", low=1.0, high=1e6
    )
    noise_force: float = _force_error(0.3, "standard deviation of the force noise")
    noise_torque: float = _torque_error(0.03, "standard deviation of the torque noise")
    noise_position: float = _angle_error(2e-4, "standard deviation of the position noise")
    noise_velocity: float = parameter(
        5e-3, "standard deviation of the velocity noise", unit="rad/s", low=0.0, high=1.0
    )
    noise_effort: float = _torque_error(0.02, "standard deviation of the joint torques' noise")


@dataclasses.dataclass(frozen=True)
class MotionConfig:
    """Motion of the arm (thesis, section 8.4.3: circles of 10 cm at 0.6 m/s)."""

    motion: str = parameter(
        "circle_xy",
        "circles of the hand in the base frame's XY or XZ plane, or an exciting joint motion",
        choices=("circle_xy", "circle_xz", "exciting"),
    )
    radius: float = parameter(0.10, "radius of the circles", unit="m", low=1e-3, high=2.0)
    speed: float = parameter(
        0.6, "speed of the hand on the circles", unit="m/s", low=1e-3, high=5.0
    )
    center: tuple[float, ...] = parameter(
        (),
        "centre of the circles in the base frame; empty: chosen within reach",
        unit="m",
        low=-10.0,
        high=10.0,
    )
    variation: float = parameter(
        0.05,
        "slow changes of the circle's radius, centre (over the radius) and speed, so that no "
        "cycle repeats another exactly",
        low=0.0,
        high=0.2,
    )
    excitation: float = parameter(
        0.6, "part of the joints' range that the exciting motion uses", low=0.01, high=0.95
    )
    max_velocity: float = parameter(
        1.5, "largest joint velocity of the exciting motion", unit="rad/s", low=1e-3, high=20.0
    )
    period: float = parameter(
        20.0, "time after which the exciting motion repeats", unit="s", low=1.0, high=1000.0
    )
    ramp_time: float = parameter(
        2.0, "time in which the motion starts from rest", unit="s", low=0.0, high=60.0
    )
    stiffness: float = parameter(
        20.0, "bandwidth of the joint position controller", unit="rad/s", low=1.0, high=100.0
    )


@dataclasses.dataclass(frozen=True)
class SimulatorConfig:
    """The whole simulator: robot, sampling, motion and effects."""

    joints: tuple[str, ...] = parameter(
        (),
        "moving joints, in order; empty: the iCub's right arm, or every actuated joint of another "
        "URDF",
    )
    sensor_frame: str = parameter(
        "", "joint or link at which the six-axis sensor sits; empty: none, but on the iCub"
    )
    hand_frame: str = parameter("", "link or frame that draws the circles; empty: the arm's end")
    hand_offset: tuple[float, ...] = parameter(
        (),
        "point of the hand frame that draws the circles; empty: its origin, or on the iCub the tip "
        "of a 10 cm tool in the fist",
        unit="m",
        low=-2.0,
        high=2.0,
    )
    control: str = parameter(
        "motion",
        "what moves the arm: its own motion, or commanded efforts",
        choices=("motion", "effort"),
    )
    command_timeout: float = parameter(
        0.1,
        "time without commanded efforts after which the joints are only damped",
        unit="s",
        low=1e-3,
        high=10.0,
    )
    rate: float = parameter(100.0, "readings a second", unit="Hz", low=1.0, high=2000.0)
    timestep: float = parameter(
        0.002, "longest step of the simulation and its controller", unit="s", low=1e-5, high=0.01
    )
    seed: int = parameter(0, "seed of noise, offsets and motion", low=0, high=2**31 - 1)
    motion: MotionConfig = group(MotionConfig, inline=True)
    effects: EffectsConfig = group(EffectsConfig)


@dataclasses.dataclass(frozen=True)
class ArmSimulatorNodeConfig:
    """Parameters of the `arm_simulator` node."""

    urdf: str = parameter("", "file of the robot's URDF; empty: the iCub's right arm")
    real_time_factor: float = parameter(
        1.0, "simulated seconds in a second, as far as the machine keeps up", low=0.01, high=100.0
    )
    wait_for_subscribers: int = parameter(
        0,
        "the motion starts when this many subscribe to the joint states, live_page not counted",
        low=0,
        high=100,
    )
    simulator: SimulatorConfig = group(SimulatorConfig, inline=True)


LISTENERS = 2  # of the simulator's topics: the learner and the recorder


def learner_config(residual: str = "random_fourier", seed: int = 0) -> InverseDynamicsNodeConfig:
    """The learner's parameters for the simulated iCub arm, with the thesis' residual."""
    return replace(
        InverseDynamicsNodeConfig(),
        target="wrench",
        joints=ICUB_JOINTS,
        sensor_frame=ICUB_SENSOR,
        residual=residual,
        seed=seed,
        # There is time enough, and the bag then gives exactly the numbers seen live.
        defer_learning=False,
    )


def simulator_config(rate: float = 100.0, seed: int = 0) -> ArmSimulatorNodeConfig:
    """The simulator's parameters; it starts to move when it is seen by all."""
    return replace(ArmSimulatorNodeConfig(), rate=rate, seed=seed, wait_for_subscribers=LISTENERS)
