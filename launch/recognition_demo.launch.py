"""Objects taught on a page: video:=FILE, camera:=/dev/video0 or image:=/a_camera/image_raw.

Open http://127.0.0.1:8701/ in a browser of the same machine. What is taught is kept in model_file
and is there again the next time. Ctrl-C ends all.
"""

from typing import Any

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.substitutions import EnvironmentVariable, LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from semiparam_dynamics.base.nodes import launching

# Argument -> its default, and its meaning.
ARGUMENTS = {
    "video": ("", "video file, folder of pictures, or digits (handwritten ones), to show"),
    "teach": ("0", "so many pictures of each subfolder of video are taught by its name"),
    "camera": ("", "camera to show instead, such as /dev/video0"),
    "image": ("image", "topic of the images, for a camera whose driver runs"),
    "rate": ("10.0", "frames a second at most"),
    "loop": ("true", "begin the video again at its end; false: all ends then"),
    "model_file": (
        [EnvironmentVariable("HOME"), "/.ros/objects.npz"],
        "file that the objects are kept in",
    ),
    "page_port": ("8701", "port of the page, on this machine alone"),
    "reliable": (
        "true",
        "have images that were lost on the way sent again; false for a camera whose driver does "
        "not offer it",
    ),
}
SWITCHES = ("loop", "reliable")
# Of both nodes.
COMMON: dict[str, Any] = {
    "remappings": [(topic, LaunchConfiguration(topic)) for topic in ("image", "label")],
    **launching.settings(None),
}


def check(context: LaunchContext) -> None:
    """Refuse two sources, before any node is started: launch would leave it behind."""
    if all(LaunchConfiguration(name).perform(context) for name in ("video", "camera")):
        raise RuntimeError("video and camera are both given: only one can be shown")


def source(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Make the node that publishes images, unless a camera's driver does."""
    given = {name: LaunchConfiguration(name).perform(context) for name in ("video", "camera")}
    chosen = given["video"] or given["camera"]
    if not chosen:
        return []
    parameters: dict[str, Any] = {
        "source": ParameterValue(chosen, value_type=str),
        "wait_for_subscribers": 2,  # the recognition loads its image network first
        **{name: LaunchConfiguration(name) for name in ("rate", "loop", "teach")},
    }
    return [Node(executable="image_source", name="image_source", parameters=[parameters], **COMMON)]


def generate_launch_description() -> LaunchDescription:
    arguments = [
        launching.argument(name, *about, launching.SWITCH if name in SWITCHES else None)
        for name, about in ARGUMENTS.items()
    ]
    arguments += launching.namespace_and_level("the namespace of all nodes")
    parameters = {
        "port": LaunchConfiguration("page_port"),
        "reliable": LaunchConfiguration("reliable"),
        "recognition": LaunchConfiguration("name"),
    }
    page = Node(executable="objects_page", name="objects_page", parameters=[parameters], **COMMON)
    # Its name and topics are those of the page, too.
    recognition = launching.included("object_recognition.launch.py")
    ended = RegisterEventHandler(OnProcessExit(on_exit=launching.end))
    checked, shown = OpaqueFunction(function=check), OpaqueFunction(function=source)
    return LaunchDescription([*arguments, ended, checked, recognition, shown, page])
