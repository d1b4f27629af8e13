"""A simulated arm and the learner of its dynamics; Ctrl-C ends both."""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    RegisterEventHandler,
    Shutdown,
)
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

TOPICS = ["joint_states", "wrench", "robot_description"]


def end(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Shut down, unless that is why a process has ended: a second time would be an error."""
    return [] if context.is_shutdown else [Shutdown(reason=f"{event.process_name} has ended")]


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
            "page",
            default_value="true",
            # A word that is none of these would be refused when the others have been started.
            choices=["true", "false"],
            description="serve a page that shows it live",
        ),
        DeclareLaunchArgument("page_port", default_value="8700", description="port of that page"),
    ]
    # This file takes all of its arguments too: its name and topics are then those of the others.
    learner = IncludeLaunchDescription(
        PathJoinSubstitution([share, "launch", "inverse_dynamics.launch.py"])
    )
    log_level = ["--log-level", LaunchConfiguration("log_level")]
    common = {
        "package": "semiparam_dynamics",
        "namespace": LaunchConfiguration("namespace"),
        "remappings": [(topic, LaunchConfiguration(topic)) for topic in TOPICS],
        "output": "both",
        "emulate_tty": True,
    }
    page = Node(
        executable="live_page",
        name="live_page",
        parameters=[
            {"port": LaunchConfiguration("page_port"), "learner": LaunchConfiguration("name")}
        ],
        ros_arguments=log_level,
        condition=IfCondition(LaunchConfiguration("page")),
        **common,
    )
    simulator = Node(
        executable="arm_simulator",
        name="arm_simulator",
        # It waits for the learner, whose first start compiles its core, to see the whole motion,
        # and not for the page.
        parameters=[{"wait_for_subscribers": 1}],
        # A file that is not there is refused by the node, where it comes as an argument of ROS.
        ros_arguments=[
            *["--params-file", LaunchConfiguration("simulator_params_file")],
            *log_level,
        ],
        **common,
    )
    # The demo goes on without its page, whose port may be taken.
    of_others = OnProcessExit(target_action=lambda action: action is not page, on_exit=end)
    ended = RegisterEventHandler(of_others)
    return LaunchDescription([*arguments, ended, learner, simulator, page])
