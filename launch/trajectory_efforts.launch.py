"""Efforts of the learner in the trajectories of a controller; the learner runs beside it."""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

TOPIC = "joint_trajectory_controller/joint_trajectory"
# Left empty, these parameters are as params_file has them.
PARAMETERS = {
    "urdf": "file of the robot's URDF; without one it comes on the topic robot_description",
    "gravity": "include: the efforts hold the arm, too; exclude: the driver compensates gravity",
}


def between(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Make the node; only now is it known which arguments were left empty."""
    given = {name: LaunchConfiguration(name).perform(context) for name in PARAMETERS}
    parameters = {name: value for name, value in given.items() if value}
    controller = LaunchConfiguration("controller").perform(context)
    learner = LaunchConfiguration("learner").perform(context)
    answers = [f"feedforward{model}{end}" for model in ("", "_rigid_body") for end in ("", "_std")]
    topics = [(f"inverse_dynamics/{name}", f"{learner}/{name}") for name in ("desired", *answers)]
    node = Node(
        package="semiparam_dynamics",
        executable="trajectory_efforts",
        name="trajectory_efforts",
        namespace=LaunchConfiguration("namespace"),
        parameters=[parameters] if parameters else [],
        remappings=[
            (TOPIC, f"{controller}/joint_trajectory"),
            ("robot_description", LaunchConfiguration("robot_description")),
            ("joint_states", LaunchConfiguration("joint_states")),
            *topics,
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
        [FindPackageShare("semiparam_dynamics"), "config", "trajectory_efforts.yaml"]
    )
    arguments = [
        DeclareLaunchArgument(
            "params_file", default_value=params_file, description="YAML file of its parameters"
        ),
        DeclareLaunchArgument(
            "controller",
            default_value="joint_trajectory_controller",
            description="name of the controller that the trajectories go to",
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
            "joint_states",
            default_value="joint_states",
            description="topic that tells where joints stand that are not learned",
        ),
        DeclareLaunchArgument("namespace", default_value="", description="the node's namespace"),
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
            description=f"{meaning} (empty: as in params_file)",
            choices=["", "include", "exclude"] if name == "gravity" else None,
        )
        for name, meaning in PARAMETERS.items()
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=between)])
