"""Parameters of the controller, of efforts in trajectories, and of their nodes."""

from __future__ import annotations

import dataclasses
from functools import partial

from semiparam_dynamics.base.parameters import group, parameter
from semiparam_dynamics.simulation.config import MotionConfig

# Parameters of one kind have one range.
_share = partial(parameter, low=0.0, high=1.0)
_ratio = partial(parameter, low=0.0, high=100.0, live=True)
_effort_bound = partial(parameter, unit="N m or N", low=0.0, high=1e9)
FEEDFORWARDS = ("urdf", "rigid_body", "semiparametric")


@dataclasses.dataclass(frozen=True)
class GainsConfig:
    """Feedback in units of each joint's inertia; one number for all joints, or one for each."""

    bandwidth: tuple[float, ...] = parameter(
        (20.0,),
        "natural frequency of each joint's error, critically damped: Kp = (M_jj + rotor_inertia) "
        "bandwidth^2",
        unit="rad/s",
        low=0.0,
        high=1000.0,
    )
    rotor_inertia: tuple[float, ...] = parameter(
        (0.0,),
        "inertia of each joint's rotor beyond its gear, which a URDF doesn't have; for the gains "
        "only",
        unit="kg m^2",
        low=0.0,
        high=1000.0,
    )


@dataclasses.dataclass(frozen=True)
class BoundsConfig:
    """Bounds of the commands, and of the learner's correction and its rate."""

    effort_share: float = _share(
        0.9,
        "share of the URDF's effort limits that commands are clipped to (0 or missing: none, and "
        "the node needs bounds.effort)",
    )
    effort: tuple[float, ...] = _effort_bound(
        (),
        "size that commands are clipped to, too: one number, or one for each joint; empty: no such "
        "bound",
    )
    following_error: float = parameter(
        0.3,
        "following error of a joint beyond which the motion is restarted from where the arm is, "
        "instead of pulling the arm to it",
        unit="rad or m",
        low=1e-3,
        high=1e6,
    )
    correction: float = _share(
        0.5,
        "largest difference of the feed-forward from the URDF's, as a share of the bound on "
        "commands",
    )
    correction_rate: float = parameter(
        5.0,
        "largest change of that difference in a second, as a share of the bound on commands",
        unit="1/s",
        low=0.0,
        high=1000.0,
    )


@dataclasses.dataclass(frozen=True)
class TrustConfig:
    """Share of the learner in a joint's feed-forward.

    The measure is the standard deviation of the learner's answer, divided by the root mean square
    of the URDF's recent error: the commanded efforts less its feed-forward.
    """

    sure: float = _ratio(
        0.5,
        "ratio of the learner's standard deviation to the URDF's recent error up to which the "
        "learner is followed in full",
    )
    unsure: float = _ratio(
        1.0,
        "the same ratio from which on the learner is not followed; linear in between; if not "
        "above trust.sure: a step",
    )
    horizon: float = parameter(
        10.0, "time over which the URDF's error is averaged", unit="s", low=0.1, high=1e5, live=True
    )
    fade_time: float = parameter(
        0.2,
        "time in which the feed-forward changes from the learner's to the URDF's, or back",
        unit="s",
        low=0.0,
        high=60.0,
        live=True,
    )


@dataclasses.dataclass(frozen=True)
class ControlConfig:
    """Computed torque: its feed-forward, feedback, bounds and fall-back."""

    feedforward: str = parameter(
        "semiparametric",
        "model whose efforts at the desired state are fed forward: the URDF, or the learner's "
        "rigid body or semiparametric model",
        choices=FEEDFORWARDS,
        live=True,
    )
    gains: GainsConfig = group(GainsConfig)
    bounds: BoundsConfig = group(BoundsConfig)
    trust: TrustConfig = group(TrustConfig)


@dataclasses.dataclass(frozen=True)
class TrajectoryEffortsConfig:
    """Efforts in the points of a trajectory."""

    feedforward: str = parameter(
        "semiparametric",
        "the learner's model whose efforts are filled in",
        choices=FEEDFORWARDS[1:],
    )
    gravity: str = parameter(
        "exclude",
        "include: the efforts hold the arm, too; exclude: the driver compensates gravity by the "
        "URDF, whose efforts against gravity at each point are taken off. Where both hold the arm "
        "it is pushed up by its weight; where neither does the controller's feedback has to",
        choices=("include", "exclude"),
    )
    effort_share: float = _share(
        1.0,
        "share of the URDF's effort limits that efforts are clipped to (none for joints whose "
        "limit is 0 or missing)",
    )
    effort: tuple[float, ...] = _effort_bound(
        (),
        "size that efforts are clipped to, too: one number, or one for each joint; empty: no such "
        "bound",
    )
    unsure: float = _share(
        0.1,
        "standard deviation of the learner's answer, as a share of that bound, beyond which a "
        "joint gets no efforts in the whole trajectory",
    )
    period: float = parameter(
        0.0,
        "points are added until they are at most so far apart, or as near as 1000 points are: "
        "between points a controller's efforts go straight; 0: none are added",
        unit="s",
        low=0.0,
        high=10.0,
    )


@dataclasses.dataclass(frozen=True)
class SessionConfig:
    """Sampling of the desired motion, and timing of the questions to the learner."""

    rate: float = parameter(
        500.0,
        "instants of the plan per second: the joint states' rate",
        unit="Hz",
        low=10.0,
        high=5000.0,
    )
    lead: float = parameter(
        0.03,
        "how long before a block of instants begins the learner is asked for it",
        unit="s",
        low=0.0,
        high=1.0,
    )
    control: ControlConfig = group(ControlConfig, inline=True)


@dataclasses.dataclass(frozen=True)
class RobotNodeConfig:
    """Parameters of a node that has a robot's model."""

    urdf: str = parameter(
        "", "file of the robot's URDF; empty: it comes on the topic robot_description"
    )
    gravity_vector: tuple[float, ...] = parameter(
        (0.0, 0.0, -9.81),
        "gravity in the frame of the root link, as the driver that compensates it knows it",
        unit="m/s^2",
        low=-100.0,
        high=100.0,
    )


@dataclasses.dataclass(frozen=True)
class ComputedTorqueNodeConfig(RobotNodeConfig):
    """Parameters of the `computed_torque` node.

    The motion is that of the simulator, whose `stiffness` belongs to its own controller.
    """

    joints: tuple[str, ...] = parameter(
        (), "controlled joints, in order; empty: all actuated joints of the URDF"
    )
    seed: int = parameter(0, "seed of the motion", low=0, high=2**31 - 1)
    motion: MotionConfig = group(MotionConfig, inline=True)
    session: SessionConfig = group(SessionConfig, inline=True)


@dataclasses.dataclass(frozen=True)
class TrajectoryEffortsNodeConfig(RobotNodeConfig):
    """Parameters of the `trajectory_efforts` node."""

    joints: tuple[str, ...] = parameter(
        (), "joints that the learner learns; empty: those of the URDF that a trajectory names"
    )
    timeout: float = parameter(
        0.5,
        "time after which a trajectory is sent on without efforts if the learner has not answered",
        unit="s",
        low=0.001,
        high=10.0,
    )
    efforts: TrajectoryEffortsConfig = group(TrajectoryEffortsConfig, inline=True)
