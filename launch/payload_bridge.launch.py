"""The bridge from the learner's estimate of a payload to the robot's driver."""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

OF_LEARNER = ["payload", "payload_std", "release"]  # two topics and a service
# Left empty, these parameters are as params_file has them.
PARAMETERS = {
    "driver": "whose service is called: ur or franka",
    "service": "the service's name, where it is not the driver's own",
    "frame": "link in whose frame the driver takes loads, where it is not tool0 or fr3_link8",
    "urdf": "file of the robot's URDF; without one it comes on the topic robot_description",
    "tool_mass": "mass in kg that the driver is to have with nothing held; nothing is told without",
    "compensated": "true: the efforts reported no longer contain what the driver was told",
}


def bridge(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Make the node; only now is it known which arguments were left empty."""
    given = {name: LaunchConfiguration(name).perform(context) for name in PARAMETERS}
    parameters: dict[str, object] = {name: value for name, value in given.items() if value}
    if given["compensated"]:
        parameters["compensated"] = given["compensated"] == "true"
    if given["tool_mass"]:
        parameters["tool_mass"] = LaunchConfiguration("tool_mass")  # as YAML: a number
    learner = LaunchConfiguration("learner").perform(context)
    node = Node(
        package="semiparam_dynamics",
        executable="payload_bridge",
        name="payload_bridge",
        namespace=LaunchConfiguration("namespace"),
        parameters=[parameters] if parameters else [],
        remappings=[
            ("robot_description", LaunchConfiguration("robot_description")),
            *((f"inverse_dynamics/{name}", f"{learner}/{name}") for name in OF_LEARNER),
        ],
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
        [FindPackageShare("semiparam_dynamics"), "config", "payload_bridge.yaml"]
    )
    arguments = [
        DeclareLaunchArgument(
            "params_file", default_value=params_file, description="YAML file of its parameters"
        ),
        DeclareLaunchArgument(
            "learner", default_value="inverse_dynamics", description="name of the learner"
        ),
        DeclareLaunchArgument(
            "robot_description",
            default_value="robot_description",
            description="topic of the URDF",
        ),
        DeclareLaunchArgument(
            "namespace", default_value="", description="namespace of the bridge and the learner"
        ),
        DeclareLaunchArgument(
            "log_level",
            default_value="info",
            choices=["debug", "info", "warn", "error", "fatal"],
            description="lowest level of the log messages shown",
        ),
    ]
    choices = {"driver": ["", "ur", "franka"], "compensated": ["", "true", "false"]}
    arguments += [
        DeclareLaunchArgument(
            name,
            default_value="",
            description=f"{meaning} (empty: as in params_file)",
            choices=choices.get(name),
        )
        for name, meaning in PARAMETERS.items()
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=bridge)])
