"""Objects taught on a page: video:=FILE, camera:=/dev/video0 or image:=/a_camera/image_raw.

Open http://127.0.0.1:8701/ in a browser of the same machine. What is taught is kept in model_file
and is there again the next time. Ctrl-C ends all.
"""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    Shutdown,
)
from launch.substitutions import (
    EnvironmentVariable,
    LaunchConfiguration,
    PathJoinSubstitution,
)
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare


def end(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Shut down, unless that is why the source has ended: a second time would be an error."""
    return [] if context.is_shutdown else [Shutdown(reason="the source of images has ended")]


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
                "rate": ParameterValue(LaunchConfiguration("rate"), value_type=float),
                "loop": ParameterValue(LaunchConfiguration("loop"), value_type=bool),
                "wait_for_subscribers": 2,  # the recognition loads its image network first
            }
        ],
        remappings=[("image", LaunchConfiguration("image"))],
        ros_arguments=["--log-level", LaunchConfiguration("log_level")],
        output="both",
        emulate_tty=True,
        on_exit=OpaqueFunction(function=end),
    )
    return [node]


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare("semiparam_dynamics")
    arguments = [
        DeclareLaunchArgument(
            "video", default_value="", description="video file, or folder of pictures, to show"
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
                "port": ParameterValue(LaunchConfiguration("page_port"), value_type=int),
                "reliable": ParameterValue(LaunchConfiguration("reliable"), value_type=bool),
            }
        ],
        remappings=[("image", LaunchConfiguration("image"))],
        ros_arguments=["--log-level", LaunchConfiguration("log_level")],
        output="both",
        emulate_tty=True,
    )
    # Its image, model_file, reliable, namespace and log_level are this file's arguments of those
    # names.
    recognition = IncludeLaunchDescription(
        PathJoinSubstitution([share, "launch", "object_recognition.launch.py"])
    )
    return LaunchDescription([*arguments, OpaqueFunction(function=source), recognition, page])
