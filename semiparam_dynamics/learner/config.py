"""The configuration of the learner, every stage's group together, and of the node around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from semiparam_dynamics.base.parameters import group, parameter
from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.dynamics.estimator import EstimatorConfig
from semiparam_dynamics.dynamics.filtering import FilterConfig
from semiparam_dynamics.robot.model import RobotConfig
from semiparam_dynamics.samples.measurement import StreamConfig

# Parameters that were removed, and what replaces them: a file that sets one is refused with that.
COLUMN = "the columns of friction and offsets are always there"
JUDGED = "each kind of friction is used where it is seen to help"
WIDTH = "inputs are standardized; `length_scale` is the width of all"
TRUST = "the residual's trust has one setting, which was measured on six arms"
REMOVED: dict[str, str] = {
    "real_bodies": "~/inertial_parameters are always the nearest that bodies can have",
    "autoload": "`model_file` is always resumed from; name another one to begin anew",
    "viscous": COLUMN,
    "coulomb": COLUMN,
    "offset": COLUMN,
    "sensor_offset": "a wrench always has constant columns",
    "stribeck_velocity": JUDGED,
    "asymmetry": JUDGED,
    "presliding": JUDGED,
    "error_horizon": "standard deviations always follow the last 20 s",
    "rigid_body.unusual": "beyond 4 deviations samples count less; see `output.gate`",
    "rigid_body.forgetting": "a memory forgets what newer motion shows again",
    "nystrom.position_width": WIDTH,
    "nystrom.velocity_width": WIDTH,
    "nystrom.rigid_body_width": WIDTH,
    "nystrom.joint_length_scale": "the joints' own width is 0.14",
    "random_fourier.position_width": WIDTH,
    "random_fourier.velocity_width": WIDTH,
    "random_fourier.acceleration_width": WIDTH,
    "random_fourier.rigid_body_width": WIDTH,
    "random_fourier.window": "inputs are standardized by the first 10 s of motion",
    "random_fourier.memory": "a residual that forgets is `nystrom`, see `nystrom.memory`",
    "trust.memory": TRUST,
    "trust.threshold": TRUST,
    "trust.learning": TRUST,
    "output.gate_longest": "what stays beyond `output.gate` for 5 s is learned",
    "filter.prefilter_ratio": "the low-pass before differences follows `filter.cutoff`, times 4",
    "filter.max_gap": "a pause of 0.5 s starts the filters anew",
    "filter.learn_ratio": "`learning_share` bounds what learning takes of a core",
    "samples.clock_jump": "stamps that go back by over 1 s are a restarted clock",
    "samples.stuck_motion": "it is 0.05 rad or m; see `samples.stuck_after`",
    "samples.saturation_share": "name the limits themselves, `samples.saturation`",
    "samples.pair_tolerance": "it is 20 ms; late topics need `samples.pair_wait`",
    "changes.false_alarms": "a false alarm is expected every ten hours",
    "changes.payload_mass": "payloads of any mass are estimated",
    "changes.payload_reach": "it is 0.3 m, from `changes.payload_link`",
    "changes.friction": "`changes.detect` includes friction",
    "changes.offset": "`changes.detect` includes offsets",
    "changes.contact_longest": "a deviation that lasts for 10 s is learned",
}


@dataclass(frozen=True)
class InverseDynamicsConfig:
    """The parameters of learning inverse dynamics, live and offline alike."""

    REMOVED: ClassVar[dict[str, str]] = REMOVED

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
class InverseDynamicsNodeConfig:
    """Parameters of the `inverse_dynamics` node."""

    autostart: bool = parameter(
        True, "configure and activate at the start, without a lifecycle manager"
    )
    urdf: str = parameter(
        "", "file of the robot's URDF; empty: it comes on the topic robot_description", basic=True
    )
    model_file: str = parameter(
        "",
        "file that what was learned is saved to and loaded from; the one before is kept beside it; "
        "empty: nothing is saved",
        basic=True,
    )
    autoload: bool = parameter(
        True,
        "when configured resume from the newest whole model_file, if there is one",
        internal=True,
    )
    autosave: bool = parameter(
        True, "save to model_file every save_interval, when deactivated and at the end"
    )
    save_interval: float = parameter(
        60.0,
        "at most so much learning is lost by a kill or a power cut; 0: saved only when "
        "deactivated and at the end",
        unit="s",
        low=0.0,
        high=1e6,
        live=True,
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
    real_bodies: bool = parameter(
        True,
        "publish on ~/inertial_parameters the nearest that bodies can have (positive masses and "
        "inertias); false: as they are identified, which may belong to no bodies that exist",
        internal=True,
    )
    examine_start: bool = parameter(
        True,
        "look once, after half a minute of motion and in a process beside, for faults that the "
        "dynamics show: signs and units of efforts, gravity, delay (effort target)",
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
