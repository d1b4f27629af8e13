"""A recorded bag played to the learner once that is active, on the bag's own time."""

import sys

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    IncludeLaunchDescription,
    OpaqueFunction,
    Shutdown,
)
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare


def end(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Shut down, unless that is why the player has ended: a second time would be an error."""
    return [] if context.is_shutdown else [Shutdown(reason="the bag has ended")]


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument("bag", description="the bag: a rosbag2 folder, an .mcap or a .db3"),
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
            *[sys.executable, "-m", "semiparam_dynamics.nodes.bag_player"],
            *["--node", LaunchConfiguration("name")],
            *["--namespace", LaunchConfiguration("namespace")],
            *["--description", LaunchConfiguration("robot_description")],
            *[LaunchConfiguration("bag"), "--"],
            *["ros2", "bag", "play", LaunchConfiguration("bag"), "--clock", "100"],
            *["--rate", LaunchConfiguration("rate"), "--delay", LaunchConfiguration("delay")],
        ],
        name="player",
        output="both",
        on_exit=OpaqueFunction(function=end),
    )
    # This file takes all of its arguments too: the parameters, the URDF, the bag's topic names.
    learner = IncludeLaunchDescription(
        PathJoinSubstitution(
            [FindPackageShare("semiparam_dynamics"), "launch", "inverse_dynamics.launch.py"]
        ),
        launch_arguments={"use_sim_time": "true"}.items(),
    )
    return LaunchDescription([*arguments, learner, player])
