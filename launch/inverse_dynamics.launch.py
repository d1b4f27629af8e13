"""The learner for a robot whose joint states, and wrench, are on topics."""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode

from semiparam_dynamics.base.nodes import launching

TOPICS = ["joint_states", "wrench", "robot_description"]
# Left empty, these parameters are as params_file has them.
PARAMETERS = {
    "urdf": "file of the robot's URDF; without one it comes on the topic robot_description",
    "target": "what is learned: effort (each joint's) or wrench (of the six-axis sensor)",
    "sensor_frame": "URDF frame of the six-axis sensor, where the target is wrench",
    "model_file": "file that what is learned is saved to and, at the start, resumed from; none: it "
    "is kept nowhere",
    "autostart": "true: the node configures and activates itself; false: a manager does",
}
CHOICES = {
    "target": ("effort", "wrench"),
    "autostart": launching.SWITCH,
    "use_sim_time": launching.SWITCH,
}


def learner(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Make the node; only now is it known which arguments were left empty."""
    parameters = launching.given(context, [*PARAMETERS, "use_sim_time"], CHOICES)
    if parameters.get("model_file") == "none":
        parameters["model_file"] = ""  # also where params_file names one
    node = LifecycleNode(
        executable="inverse_dynamics",
        name=LaunchConfiguration("name"),
        parameters=[parameters] if parameters else [],
        remappings=[(topic, LaunchConfiguration(topic)) for topic in TOPICS],
        **launching.settings(),
    )
    return [node]


def generate_launch_description() -> LaunchDescription:
    arguments = launching.managed("inverse_dynamics", TOPICS)
    arguments += launching.optional(PARAMETERS, CHOICES)
    return LaunchDescription([*arguments, OpaqueFunction(function=learner)])
