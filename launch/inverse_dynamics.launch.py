"""The learner for a robot whose joint states, and wrench, are on topics."""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode
from launch_ros.substitutions import FindPackageShare

TOPICS = ["joint_states", "wrench", "robot_description"]
# Left empty, these parameters are as params_file has them.
PARAMETERS = {
    "urdf": "file of the robot's URDF; without one it comes on the topic robot_description",
    "target": "what is learned: effort (each joint's) or wrench (of the six-axis sensor)",
    "sensor_frame": "URDF frame of the six-axis sensor, where the target is wrench",
    "model_file": "file that what is learned is saved to and, at the start, resumed from; none: it "
    "is kept nowhere",
    "autostart": "true: the node configures and activates itself; false: a manager does",
}


def learner(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Make the node; only now is it known which arguments were left empty."""
    given = {name: LaunchConfiguration(name).perform(context) for name in PARAMETERS}
    parameters: dict[str, object] = {name: value for name, value in given.items() if value}
    if given["model_file"] == "none":
        parameters["model_file"] = ""  # also where params_file names one
    if given["autostart"]:
        parameters["autostart"] = given["autostart"] == "true"
    if use_sim_time := LaunchConfiguration("use_sim_time").perform(context):
        parameters["use_sim_time"] = use_sim_time == "true"
    node = LifecycleNode(
        package="semiparam_dynamics",
        executable="inverse_dynamics",
        name=LaunchConfiguration("name"),
        namespace=LaunchConfiguration("namespace"),
        parameters=[parameters] if parameters else [],
        remappings=[(topic, LaunchConfiguration(topic)) for topic in TOPICS],
        # A file that is not there is refused by the node, where it comes as an argument of ROS.
        ros_arguments=[
            *["--params-file", LaunchConfiguration("params_file")],
            *["--log-level", LaunchConfiguration("log_level")],
        ],
        output="both",
        emulate_tty=True,
    )
    return [node]


def generate_launch_description() -> LaunchDescription:
    params_file = PathJoinSubstitution(
        [FindPackageShare("semiparam_dynamics"), "config", "inverse_dynamics.yaml"]
    )
    arguments = [
        DeclareLaunchArgument(
            "params_file", default_value=params_file, description="YAML file of its parameters"
        ),
        DeclareLaunchArgument(
            "name", default_value="inverse_dynamics", description="the node's name"
        ),
        DeclareLaunchArgument("namespace", default_value="", description="the node's namespace"),
        DeclareLaunchArgument(
            "use_sim_time",
            default_value="",
            choices=["", "true", "false"],
            description="take the time from /clock (a simulator, a bag player; empty: as in "
            "params_file)",
        ),
        DeclareLaunchArgument(
            "log_level",
            default_value="info",
            choices=["debug", "info", "warn", "error", "fatal"],
            description="lowest level of the log messages shown",
        ),
    ]
    arguments += [
        DeclareLaunchArgument(topic, default_value=topic, description=f"topic to take {topic} from")
        for topic in TOPICS
    ]
    arguments += [
        DeclareLaunchArgument(
            name,
            default_value="",
            description=f"{meaning} (empty: as in params_file)",
            choices={"target": ["", "effort", "wrench"], "autostart": ["", "true", "false"]}.get(
                name
            ),
        )
        for name, meaning in PARAMETERS.items()
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=learner)])
