"""The bridge from the learner's estimate of a payload to the robot's driver."""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from semiparam_dynamics.base.nodes import launching

OF_LEARNER = ["payload", "payload_std", "release"]  # two topics and a service
# Left empty, these parameters are as params_file has them.
PARAMETERS = {
    "driver": "whose service is called: ur or franka",
    "service": "the service's name, where it is not the driver's own",
    "frame": "link in whose frame the driver takes loads, where it is not tool0 or fr3_link8",
    "urdf": "file of the robot's URDF; without one it comes on the topic robot_description",
    "tool_mass": "mass in kg that the driver is to have with nothing held; nothing is told without",
    "compensated": "true: the efforts reported no longer contain what the driver was told",
}
CHOICES = {"driver": ("ur", "franka"), "compensated": launching.SWITCH}


def bridge(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Make the node; only now is it known which arguments were left empty."""
    parameters = launching.given(context, PARAMETERS, CHOICES)
    if "tool_mass" in parameters:
        parameters["tool_mass"] = LaunchConfiguration("tool_mass")  # as YAML: a number
    learner = LaunchConfiguration("learner").perform(context)
    node = Node(
        executable="payload_bridge",
        name="payload_bridge",
        parameters=[parameters] if parameters else [],
        remappings=[
            ("robot_description", LaunchConfiguration("robot_description")),
            *((f"inverse_dynamics/{name}", f"{learner}/{name}") for name in OF_LEARNER),
        ],
        **launching.settings(),
    )
    return [node]


def generate_launch_description() -> LaunchDescription:
    arguments = [
        launching.params_file("payload_bridge.yaml"),
        launching.argument("learner", "inverse_dynamics", "name of the learner"),
        launching.argument("robot_description", "robot_description", "topic of the URDF"),
        *launching.namespace_and_level("namespace of the bridge and the learner"),
        *launching.optional(PARAMETERS, CHOICES),
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=bridge)])
