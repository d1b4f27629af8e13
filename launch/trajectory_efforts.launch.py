"""Efforts of the learner in the trajectories of a controller; the learner runs beside it."""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from semiparam_dynamics.base.nodes import launching

TOPIC = "joint_trajectory_controller/joint_trajectory"
# Left empty, these parameters are as params_file has them.
PARAMETERS = {
    "urdf": "file of the robot's URDF; without one it comes on the topic robot_description",
    "gravity": "include: the efforts hold the arm, too; exclude: the driver compensates gravity",
}
CHOICES = {"gravity": ("include", "exclude")}
# Argument -> its default, and its meaning.
ARGUMENTS = {
    "controller": (
        "joint_trajectory_controller",
        "name of the controller that the trajectories go to",
    ),
    "learner": ("inverse_dynamics", "name of the learner"),
    "robot_description": ("robot_description", "topic of the URDF"),
    "joint_states": ("joint_states", "topic that tells where joints stand that are not learned"),
}


def between(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Make the node; only now is it known which arguments were left empty."""
    parameters = launching.given(context, PARAMETERS, CHOICES)
    controller = LaunchConfiguration("controller").perform(context)
    learner = LaunchConfiguration("learner").perform(context)
    answers = [f"feedforward{model}{end}" for model in ("", "_rigid_body") for end in ("", "_std")]
    topics = [(f"inverse_dynamics/{name}", f"{learner}/{name}") for name in ("desired", *answers)]
    node = Node(
        executable="trajectory_efforts",
        name="trajectory_efforts",
        parameters=[parameters] if parameters else [],
        remappings=[
            (TOPIC, f"{controller}/joint_trajectory"),
            ("robot_description", LaunchConfiguration("robot_description")),
            ("joint_states", LaunchConfiguration("joint_states")),
            *topics,
        ],
        **launching.settings(),
    )
    return [node]


def generate_launch_description() -> LaunchDescription:
    arguments = [launching.params_file("trajectory_efforts.yaml")]
    arguments += [launching.argument(name, *about) for name, about in ARGUMENTS.items()]
    arguments += launching.namespace_and_level()
    arguments += launching.optional(PARAMETERS, CHOICES)
    return LaunchDescription([*arguments, OpaqueFunction(function=between)])
