"""Objects taught on a page: video:=FILE, camera:=/dev/video0 or image:=/a_camera/image_raw.

Open http://127.0.0.1:8701/ in a browser of the same machine. What is taught is kept in model_file
and is there again the next time. Ctrl-C ends all.
"""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.substitutions import (
    EnvironmentVariable,
    LaunchConfiguration,
    PathJoinSubstitution,
)
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare


def end(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Shut down, unless that is why a process has ended: a second time would be an error."""
    return [] if context.is_shutdown else [Shutdown(reason=f"{event.process_name} has ended")]


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
    node = Node(
        package="semiparam_dynamics",
        executable="image_source",
        name="image_source",
        namespace=LaunchConfiguration("namespace"),
        parameters=[
            {
                "source": ParameterValue(chosen, value_type=str),
                "rate": LaunchConfiguration("rate"),
                "loop": LaunchConfiguration("loop"),
                "teach": LaunchConfiguration("teach"),
                "wait_for_subscribers": 2,  # the recognition loads its image network first
            }
        ],
        remappings=[(topic, LaunchConfiguration(topic)) for topic in ("image", "label")],
        ros_arguments=["--log-level", LaunchConfiguration("log_level")],
        output="both",
        emulate_tty=True,
    )
    return [node]


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare("semiparam_dynamics")
    arguments = [
        DeclareLaunchArgument(
            "video",
            default_value="",
            description="video file, folder of pictures, or digits (handwritten ones), to show",
        ),
        DeclareLaunchArgument(
            "teach",
            default_value="0",
            description="so many pictures of each subfolder of video are taught by its name",
        ),
        DeclareLaunchArgument(
            "camera", default_value="", description="camera to show instead, such as /dev/video0"
        ),
        DeclareLaunchArgument(
            "image",
            default_value="image",
            description="topic of the images, for a camera whose driver runs",
        ),
        DeclareLaunchArgument("rate", default_value="10.0", description="frames a second at most"),
        DeclareLaunchArgument(
            "loop",
            default_value="true",
            choices=["true", "false"],
            description="begin the video again at its end; false: all ends then",
        ),
        DeclareLaunchArgument(
            "model_file",
            default_value=[EnvironmentVariable("HOME"), "/.ros/objects.npz"],
            description="file that the objects are kept in",
        ),
        DeclareLaunchArgument(
            "page_port", default_value="8701", description="port of the page, on this machine alone"
        ),
        DeclareLaunchArgument(
            "reliable",
            default_value="true",
            choices=["true", "false"],
            description="have images that were lost on the way sent again; false for a camera "
            "whose driver does not offer it",
        ),
        DeclareLaunchArgument(
            "namespace", default_value="", description="the namespace of all nodes"
        ),
        DeclareLaunchArgument(
            "log_level",
            default_value="info",
            choices=["debug", "info", "warn", "error", "fatal"],
            description="lowest level of the log messages shown",
        ),
    ]
    page = Node(
        package="semiparam_dynamics",
        executable="objects_page",
        name="objects_page",
        namespace=LaunchConfiguration("namespace"),
        parameters=[
            {
                "port": LaunchConfiguration("page_port"),
                "reliable": LaunchConfiguration("reliable"),
                "recognition": LaunchConfiguration("name"),
            }
        ],
        remappings=[(topic, LaunchConfiguration(topic)) for topic in ("image", "label")],
        ros_arguments=["--log-level", LaunchConfiguration("log_level")],
        output="both",
        emulate_tty=True,
    )
    # This file takes all of its arguments too: its name and topics are then those of the page.
    recognition = IncludeLaunchDescription(
        PathJoinSubstitution([share, "launch", "object_recognition.launch.py"])
    )
    ended = RegisterEventHandler(OnProcessExit(on_exit=end))
    checked, shown = OpaqueFunction(function=check), OpaqueFunction(function=source)
    return LaunchDescription([*arguments, ended, checked, recognition, shown, page])
