"""A simulated arm and the learner of its dynamics; Ctrl-C ends both."""

from launch import LaunchDescription
from launch.actions import RegisterEventHandler
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from semiparam_dynamics.base.nodes import launching

TOPICS = ["joint_states", "wrench", "robot_description"]


def generate_launch_description() -> LaunchDescription:
    arguments = [
        launching.params_file("demo.yaml", "the learner's"),
        launching.params_file("arm_simulator.yaml", "the simulator's", "simulator_"),
        *launching.namespace_and_level("the namespace of both nodes"),
        # A word that is none of these would be refused when the others have been started.
        launching.argument("page", "true", "serve a page that shows it live", launching.SWITCH),
        launching.argument("page_port", "8700", "port of that page"),
    ]
    # Its name and topics are those of the others, too.
    learner = launching.included("inverse_dynamics.launch.py")
    remappings = [(topic, LaunchConfiguration(topic)) for topic in TOPICS]
    page = Node(
        executable="live_page",
        name="live_page",
        parameters=[
            {"port": LaunchConfiguration("page_port"), "learner": LaunchConfiguration("name")}
        ],
        remappings=remappings,
        condition=IfCondition(LaunchConfiguration("page")),
        **launching.settings(None),
    )
    simulator = Node(
        executable="arm_simulator",
        name="arm_simulator",
        # It waits for the learner, whose first start compiles its core, to see the whole motion,
        # and not for the page.
        parameters=[{"wait_for_subscribers": 1}],
        remappings=remappings,
        **launching.settings("simulator_"),
    )
    # The demo goes on without its page, whose port may be taken.
    of_others = OnProcessExit(
        target_action=lambda action: action is not page, on_exit=launching.end
    )
    ended = RegisterEventHandler(of_others)
    return LaunchDescription([*arguments, ended, learner, simulator, page])
