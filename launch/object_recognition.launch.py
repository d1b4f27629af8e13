"""The recogniser of objects for a camera on a topic: image:=/camera/image_raw."""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode

from semiparam_dynamics.base.nodes import launching

TOPICS = ["image", "features", "label"]
# Left empty, these parameters are as params_file has them.
PARAMETERS = {
    "input": "what comes in: image (from a camera) or features (vectors)",
    "region": "what is taught and recognised: whole images, or moving: the box around what moves",
    "model_file": "file that the objects are saved to, and loaded from at the start",
    "reliable": "true: have images that were lost on the way sent again, if the camera offers it",
    "autostart": "true: the node configures and activates itself; false: a manager does",
}
CHOICES = {
    "input": ("image", "features"),
    "region": ("whole", "moving"),
    "reliable": launching.SWITCH,
    "autostart": launching.SWITCH,
    "use_sim_time": launching.SWITCH,
}


def recogniser(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Make the node; only now is it known which arguments were left empty."""
    parameters = launching.given(context, [*PARAMETERS, "use_sim_time"], CHOICES)
    node = LifecycleNode(
        executable="object_recognition",
        name=LaunchConfiguration("name"),
        parameters=[parameters] if parameters else [],
        remappings=[(topic, LaunchConfiguration(topic)) for topic in TOPICS],
        **launching.settings(),
    )
    return [node]


def generate_launch_description() -> LaunchDescription:
    arguments = launching.managed("object_recognition", TOPICS)
    arguments += launching.optional(PARAMETERS, CHOICES)
    return LaunchDescription([*arguments, OpaqueFunction(function=recogniser)])
