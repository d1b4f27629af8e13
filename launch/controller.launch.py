"""A simulated arm, moved by efforts that a controller takes from the learner; Ctrl-C ends all."""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity, SomeSubstitutionsType
from launch.actions import DeclareLaunchArgument, RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode, Node
from launch_ros.substitutions import FindPackageShare

JOINTS = ["r_shoulder_pitch", "r_shoulder_roll", "r_shoulder_yaw", "r_elbow"]
RATE = 500.0
# After the files: what makes the three fit each other.
SIMULATOR = {"control": "effort", "rate": RATE, "motion": "exciting", "wait_for_subscribers": 2}
CONTROLLER = {"joints": JOINTS, "rate": RATE, "motion": "exciting", "gains.rotor_inertia": [0.03]}
LEARNER = {
    "target": "effort",
    "joints": JOINTS,
    "feedforward": True,
    "comparison": False,
    "filter.max_rate": 100.0,
}


def end(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Shut down, unless that is why a process has ended: a second time would be an error."""
    return [] if context.is_shutdown else [Shutdown(reason=f"{event.process_name} has ended")]


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare("semiparam_dynamics")
    arguments = [
        DeclareLaunchArgument(
            f"{name}params_file",
            default_value=PathJoinSubstitution([share, "config", file]),
            description=f"YAML file of the {meaning}'s parameters",
        )
        for name, file, meaning in (
            ("", "inverse_dynamics.yaml", "learner"),
            ("simulator_", "arm_simulator.yaml", "simulator"),
            ("controller_", "computed_torque.yaml", "controller"),
        )
    ]
    arguments += [
        DeclareLaunchArgument(
            "feedforward",
            default_value="semiparametric",
            choices=["urdf", "rigid_body", "semiparametric"],
            description="whose efforts are fed forward",
        ),
        DeclareLaunchArgument(
            "namespace", default_value="", description="the namespace of all three nodes"
        ),
        DeclareLaunchArgument(
            "log_level",
            default_value="info",
            choices=["debug", "info", "warn", "error", "fatal"],
            description="lowest level of the log messages shown",
        ),
    ]
    common = {
        "package": "semiparam_dynamics",
        "namespace": LaunchConfiguration("namespace"),
        "output": "both",
        "emulate_tty": True,
    }

    def given(prefix: str) -> list[SomeSubstitutionsType]:
        # A file that is not there is refused by the node, where it comes as an argument of ROS.
        params_file = ["--params-file", LaunchConfiguration(f"{prefix}params_file")]
        return [*params_file, "--log-level", LaunchConfiguration("log_level")]

    learner = LifecycleNode(
        executable="inverse_dynamics",
        name="inverse_dynamics",
        parameters=[LEARNER],
        ros_arguments=given(""),
        **common,
    )
    controller = Node(
        executable="computed_torque",
        name="computed_torque",
        parameters=[{**CONTROLLER, "feedforward": LaunchConfiguration("feedforward")}],
        ros_arguments=given("controller_"),
        **common,
    )
    simulator = Node(
        executable="arm_simulator",
        name="arm_simulator",
        parameters=[SIMULATOR],
        ros_arguments=given("simulator_"),
        **common,
    )
    ended = RegisterEventHandler(OnProcessExit(on_exit=end))
    return LaunchDescription([*arguments, ended, learner, controller, simulator])
