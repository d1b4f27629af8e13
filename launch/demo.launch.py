"""A simulated arm and the learner of its dynamics; Ctrl-C ends both."""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    Shutdown,
)
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare


def end(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Shut down, unless that is why the simulator has ended: a second time would be an error."""
    return [] if context.is_shutdown else [Shutdown(reason="the simulator has ended")]


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare("semiparam_dynamics")
    arguments = [
        DeclareLaunchArgument(
            "params_file",
            default_value=PathJoinSubstitution([share, "config", "demo.yaml"]),
            description="YAML file of the learner's parameters",
        ),
        DeclareLaunchArgument(
            "simulator_params_file",
            default_value=PathJoinSubstitution([share, "config", "arm_simulator.yaml"]),
            description="YAML file of the simulator's parameters",
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
            "page", default_value="true", description="serve a page that shows it live"
        ),
        DeclareLaunchArgument("page_port", default_value="8700", description="port of that page"),
    ]
    page = Node(
        package="semiparam_dynamics",
        executable="live_page",
        name="live_page",
        namespace=LaunchConfiguration("namespace"),
        parameters=[{"port": ParameterValue(LaunchConfiguration("page_port"), value_type=int)}],
        condition=IfCondition(LaunchConfiguration("page")),
        output="both",
        emulate_tty=True,
    )
    simulator = Node(
        package="semiparam_dynamics",
        executable="arm_simulator",
        name="arm_simulator",
        namespace=LaunchConfiguration("namespace"),
        # It waits for the learner, whose first start compiles its core, to see the whole motion.
        parameters=[LaunchConfiguration("simulator_params_file"), {"wait_for_subscribers": 1}],
        ros_arguments=["--log-level", LaunchConfiguration("log_level")],
        output="both",
        emulate_tty=True,
        on_exit=OpaqueFunction(function=end),
    )
    # The learner's namespace, parameters and log level are this file's arguments of those names.
    learner = IncludeLaunchDescription(
        PathJoinSubstitution([share, "launch", "inverse_dynamics.launch.py"])
    )
    return LaunchDescription([*arguments, simulator, learner, page])
