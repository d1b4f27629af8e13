"""A recorded bag played to the learner once that is active, on the bag's own time."""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    IncludeLaunchDescription,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare


def end(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Shut down, unless that is why a process has ended: a second time would be an error."""
    return [] if context.is_shutdown else [Shutdown(reason=f"{event.process_name} has ended")]


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument("bag", description="the bag: a rosbag2 folder, an .mcap or a .db3"),
        # Else a replay would go on from the model that params_file names, and replace it.
        DeclareLaunchArgument(
            "model_file",
            default_value="none",
            description="file that what is learned is saved to and, at the start, resumed from; "
            "none: it is kept nowhere",
        ),
        DeclareLaunchArgument("rate", default_value="1.0", description="how fast it is played"),
        DeclareLaunchArgument(
            "delay",
            default_value="2.0",
            description="seconds before the first message, once the learner is active: player and "
            "learner find each other on the network",
        ),
    ]
    player = ExecuteProcess(
        cmd=[
            # As the nodes by the first Python of the PATH, which has what PyPI alone has: rosbags.
            *["python3", "-m", "semiparam_dynamics.base.nodes.executables", "bag_player"],
            *["--node", LaunchConfiguration("name")],
            *["--namespace", LaunchConfiguration("namespace")],
            *["--description", LaunchConfiguration("robot_description")],
            *[LaunchConfiguration("bag"), "--"],
            *["ros2", "bag", "play", LaunchConfiguration("bag"), "--clock", "100"],
            *["--rate", LaunchConfiguration("rate"), "--delay", LaunchConfiguration("delay")],
        ],
        name="player",
        output="both",
    )
    # This file takes all of its arguments too: the parameters, the URDF, the bag's topic names.
    learner = IncludeLaunchDescription(
        PathJoinSubstitution(
            [FindPackageShare("semiparam_dynamics"), "launch", "inverse_dynamics.launch.py"]
        ),
        launch_arguments={"use_sim_time": "true"}.items(),
    )
    ended = RegisterEventHandler(OnProcessExit(on_exit=end))
    return LaunchDescription([*arguments, ended, learner, player])
