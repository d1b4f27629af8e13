"""A simulated arm, moved by efforts that a controller takes from the learner; Ctrl-C ends all."""

from launch import LaunchDescription
from launch.actions import RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode, Node

from semiparam_dynamics.base.nodes import launching

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


def generate_launch_description() -> LaunchDescription:
    arguments = [
        launching.params_file("inverse_dynamics.yaml", "the learner's"),
        launching.params_file("arm_simulator.yaml", "the simulator's", "simulator_"),
        launching.params_file("computed_torque.yaml", "the controller's", "controller_"),
        launching.argument(
            "feedforward",
            "semiparametric",
            "whose efforts are fed forward",
            ("urdf", "rigid_body", "semiparametric"),
        ),
        *launching.namespace_and_level("the namespace of all three nodes"),
    ]
    learner = LifecycleNode(
        executable="inverse_dynamics",
        name="inverse_dynamics",
        parameters=[LEARNER],
        **launching.settings(),
    )
    controller = Node(
        executable="computed_torque",
        name="computed_torque",
        parameters=[{**CONTROLLER, "feedforward": LaunchConfiguration("feedforward")}],
        **launching.settings("controller_"),
    )
    simulator = Node(
        executable="arm_simulator",
        name="arm_simulator",
        parameters=[SIMULATOR],
        **launching.settings("simulator_"),
    )
    ended = RegisterEventHandler(OnProcessExit(on_exit=launching.end))
    return LaunchDescription([*arguments, ended, learner, controller, simulator])
