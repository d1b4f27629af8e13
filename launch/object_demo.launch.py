"""Objects taught and asked without a camera: pictures, and their recognition; Ctrl-C ends both.

What is recognised is on /object_recognition/label, and what is shown on /truth;
`semiparam objects` counts how often they agree.
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
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

TOPICS = ["image", "features", "label"]
# Left empty, these parameters of the stream are as stream_params_file has them.
PARAMETERS = {
    "source": "folder whose subfolders are objects with their pictures, or an npz file of pictures",
    "script": "file with lines such as 'teach mug 30', 'ask 60', 'ask mug 10', 'pause 2'",
    "loop": "true: begin again when the script has ended",
}


def end(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Shut down, unless that is why a process has ended: a second time would be an error."""
    return [] if context.is_shutdown else [Shutdown(reason=f"{event.process_name} has ended")]


def stream(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Make the stream's node; only now is it known which arguments were left empty."""
    given = {name: LaunchConfiguration(name).perform(context) for name in PARAMETERS}
    parameters: dict[str, object] = {name: value for name, value in given.items() if value}
    if given["loop"]:
        parameters["loop"] = given["loop"] == "true"
    node = Node(
        package="semiparam_dynamics",
        executable="object_stream",
        name="object_stream",
        namespace=LaunchConfiguration("namespace"),
        # It waits for the recognition, which loads its image network first.
        parameters=[{**parameters, "wait_for_subscribers": 1}],
        remappings=[(topic, LaunchConfiguration(topic)) for topic in TOPICS],
        # A file that is not there is refused by the node, where it comes as an argument of ROS.
        ros_arguments=[
            *["--params-file", LaunchConfiguration("stream_params_file")],
            *["--log-level", LaunchConfiguration("log_level")],
        ],
        output="both",
        emulate_tty=True,
    )
    return [node]


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare("semiparam_dynamics")
    arguments = [
        DeclareLaunchArgument(
            "stream_params_file",
            default_value=PathJoinSubstitution([share, "config", "object_stream.yaml"]),
            description="YAML file of the stream's parameters",
        ),
        DeclareLaunchArgument(
            "namespace", default_value="", description="the namespace of both nodes"
        ),
        DeclareLaunchArgument(
            "log_level",
            default_value="info",
            choices=["debug", "info", "warn", "error", "fatal"],
            description="lowest level of the log messages shown",
        ),
    ]
    arguments += [
        DeclareLaunchArgument(
            name,
            default_value="",
            description=f"{meaning} (empty: as in stream_params_file)",
            choices=["", "true", "false"] if name == "loop" else None,
        )
        for name, meaning in PARAMETERS.items()
    ]
    # This file takes all of its arguments too: its topics are then those of the stream.
    recognition = IncludeLaunchDescription(
        PathJoinSubstitution([share, "launch", "object_recognition.launch.py"]),
        launch_arguments={"reliable": "true"}.items(),
    )
    ended = RegisterEventHandler(OnProcessExit(on_exit=end))
    return LaunchDescription([*arguments, ended, recognition, OpaqueFunction(function=stream)])
