"""A recorded bag played to the learner once that is active, on the bag's own time."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.substitutions import LaunchConfiguration

from semiparam_dynamics.base.nodes import launching

# Argument -> its default, and its meaning.
ARGUMENTS = {
    # Else a replay would go on from the model that params_file names, and replace it.
    "model_file": (
        "none",
        "file that what is learned is saved to and, at the start, resumed from; none: it is kept "
        "nowhere",
    ),
    "rate": ("1.0", "how fast it is played"),
    "delay": (
        "2.0",
        "seconds before the first message, once the learner is active: player and learner find "
        "each other on the network",
    ),
}


def generate_launch_description() -> LaunchDescription:
    bag = DeclareLaunchArgument("bag", description="the bag: a rosbag2 folder, an .mcap or a .db3")
    arguments = [launching.argument(name, *about) for name, about in ARGUMENTS.items()]
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
    # The parameters, the URDF and the bag's topic names are its arguments.
    learner = launching.included("inverse_dynamics.launch.py", use_sim_time="true")
    ended = RegisterEventHandler(OnProcessExit(on_exit=launching.end))
    return LaunchDescription([bag, *arguments, ended, learner, player])
