"""The configuration of the learner, every stage's group together, and of the node around it."""

from __future__ import annotations

from dataclasses import dataclass

from semiparam_dynamics.base.parameters import group, parameter
from semiparam_dynamics.base.storage import LearningNodeConfig
from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.dynamics.estimator import EstimatorConfig
from semiparam_dynamics.dynamics.filtering import FilterConfig
from semiparam_dynamics.robot.model import RobotConfig
from semiparam_dynamics.samples.measurement import StreamConfig


@dataclass(frozen=True)
class InverseDynamicsConfig:
    """The parameters of learning inverse dynamics, live and offline alike."""

    robot: RobotConfig = group(RobotConfig, inline=True)
    estimator: EstimatorConfig = group(EstimatorConfig, inline=True)
    comparison: bool = parameter(
        False,
        "also learn a nonparametric model, which no prediction needs, and score it beside the "
        "others; learning a sample then takes half as long again (an evaluation always does)",
        live=True,
    )
    filter: FilterConfig = group(FilterConfig)
    samples: StreamConfig = group(StreamConfig)
    changes: ChangesConfig = group(ChangesConfig)


@dataclass(frozen=True)
class InverseDynamicsNodeConfig(LearningNodeConfig):
    """Parameters of the `inverse_dynamics` node."""

    urdf: str = parameter(
        "", "file of the robot's URDF; empty: it comes on the topic robot_description", basic=True
    )
    learning_queue: int = parameter(
        100,
        "samples that may wait to be learned while predictions go first",
        low=1,
        high=100000,
        live=True,
    )
    learning_share: float = parameter(
        0.3,
        "share of a processor core that learning beside the messages may take; where samples "
        "cost more, some are left out, and the next one that is learned counts for them; ten a "
        "second are always learned; 1: no limit",
        low=0.01,
        high=1.0,
        live=True,
    )
    deadline: float = parameter(
        0.02,
        "time that a message may wait to be answered; if all those of a second waited longer, "
        "messages are left out, and counted, until one is in time again; with defer_learning "
        "only",
        unit="s",
        low=0.001,
        high=10.0,
        live=True,
    )
    realtime_priority: int = parameter(
        0,
        "priority of the node's threads under SCHED_FIFO (ros2_control's loop has 50): with it "
        "messages are answered in time whatever else runs; stay below the driver's; the user "
        "needs the right to it (rtprio in /etc/security/limits.conf); Linux; 0: as any other "
        "process",
        low=0,
        high=98,
    )
    defer_learning: bool = parameter(
        True,
        "predictions go first: learn in a thread beside the messages; false: "
        "learn each sample before the next message, so that a bag gives the same numbers under any "
        "load",
        live=True,
    )
    feedforward: bool = parameter(
        False,
        "answer desired states on ~/desired with efforts to feed forward, for a controller (effort "
        "target)",
    )
    examine_start: bool = parameter(
        True,
        "compare efforts once, after half a minute of motion, with the URDF's torques: signs, "
        "units, exchanged joints, gravity (effort target)",
    )
    external_frame: str = parameter(
        "",
        "link or joint of the URDF at whose origin ~/external_wrench is; empty: the tool's, which "
        "the longest chain of fixed joints leads to from the last joint, or the sensor's (wrench "
        "target)",
        basic=True,
    )
    external_axes: str = parameter(
        "",
        "link or joint in whose axes ~/external_wrench is, such as the base; empty: "
        "external_frame's",
    )
    external_size: tuple[float, ...] = parameter(
        (100.0, 20.0),
        "a large ~/external_wrench, force and moment along an axis, [N, N m]: of directions "
        "that the efforts hardly show, larger ones are damped",
        low=1e-6,
        high=1e6,
    )
    snapshot_name: str = parameter(
        "",
        "name of the payload that ~/snapshot, ~/recall and ~/forget_snapshot are about "
        "(changes.detect)",
        live=True,
    )
    learner: InverseDynamicsConfig = group(InverseDynamicsConfig, inline=True)


@dataclass(frozen=True)
class LivePageNodeConfig:
    """Parameters of the `live_page` node."""

    learner: str = parameter("inverse_dynamics", "name of the learner's node")
    urdf: str = parameter(
        "", "file of the robot's URDF; empty: it comes on the topic robot_description"
    )
    port: int = parameter(
        8700, "port of the page, on this machine alone; 0: any that is free", low=0, high=65535
    )
    window: float = parameter(
        3.0, "time over which errors are averaged", unit="s", low=0.5, high=600.0
    )
    rerun: str = parameter(
        "",
        "address of a viewer Rerun that is sent the curves, such as "
        "rerun+http://127.0.0.1:9876/proxy; empty: none",
    )
