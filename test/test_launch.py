"""Launch files: what they refer to exists, and, where `launch` is installed, they really run."""

from __future__ import annotations

import ast
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.base.parameters import parameters
from semiparam_dynamics.changes.payload_bridge import PayloadBridgeNodeConfig
from semiparam_dynamics.control.config import TrajectoryEffortsNodeConfig
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.recognition.config import ObjectRecognitionNodeConfig
from semiparam_dynamics.samples.bag_writer import write_measurements

from .dynamics.arms import URDF, measurements, small_arm

LEARNER = "inverse_dynamics"  # as nodes that stand beside it name it
ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "launch").glob("*.launch.py"))
LAUNCHING = "semiparam_dynamics.base.nodes.launching"  # what they share
FIRST = "by the first Python of the PATH"
NODES = sorted(path.name for path in (ROOT / "resource" / "executables").iterdir())
LIMIT = 300  # s, which only a launch that hangs may reach


def constants(path: Path) -> set[str]:
    found = (getattr(node, "value", None) for node in ast.walk(ast.parse(path.read_text())))
    return {value for value in found if isinstance(value, str)}


def assigned(path: Path, name: str) -> Any:
    """The literal that a file assigns to a name at its top level."""
    for statement in ast.parse(path.read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            return ast.literal_eval(statement.value)
    raise LookupError(f"{path} assigns no {name}")


def test_there_are_launch_files() -> None:
    assert {path.name.partition(".")[0] for path in FILES} >= {"demo", "inverse_dynamics", "replay"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_that_a_launch_file_names_exist(path: Path) -> None:
    for name in constants(path):
        if re.fullmatch(r"\w+\.yaml", name):
            assert (ROOT / "config" / name).is_file()
        elif re.fullmatch(r"\w+\.launch\.py", name):
            assert (ROOT / "launch" / name).is_file()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_executables_that_a_launch_file_starts_exist(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "executable":
            assert ast.literal_eval(node.value) in NODES


@pytest.mark.parametrize(
    ("file", "config"),
    [
        ("inverse_dynamics.launch.py", InverseDynamicsNodeConfig),
        ("object_recognition.launch.py", ObjectRecognitionNodeConfig),
        ("trajectory_efforts.launch.py", TrajectoryEffortsNodeConfig),
        ("payload_bridge.launch.py", PayloadBridgeNodeConfig),
    ],
)
def test_arguments_are_parameters_of_the_node(file: str, config: type) -> None:
    named = assigned(ROOT / "launch" / file, "PARAMETERS")
    assert set(named) <= {one.name for one in parameters(config)}


def made_by(file: str, function: str, monkeypatch: pytest.MonkeyPatch, **given: str) -> list[Any]:
    """What a launch file's function makes of these arguments; ROS 2's `launch` is not needed.

    Arguments are texts, those that are not given empty, and nodes have what they are made with as
    attributes.
    """

    class Configuration(str):
        def perform(self, context: object) -> str:
            return given.get(self, "")

    made = {
        "LaunchConfiguration": Configuration,
        "Node": lambda **attributes: SimpleNamespace(**attributes),
    }
    for name in ("launch", "launch.actions", "launch.events.process", "launch.substitutions"):
        for package in (name, name.replace("launch", "launch_ros", 1)):
            module = ModuleType(package)
            module.__getattr__ = lambda attribute: made.get(attribute, attribute)
            monkeypatch.setitem(sys.modules, package, module)
    # What launch files share is imported with these, and not kept for others.
    monkeypatch.setitem(sys.modules, LAUNCHING, ModuleType(LAUNCHING))
    del sys.modules[LAUNCHING]
    return runpy.run_path(str(ROOT / "launch" / file))[function](None)


def test_a_bridge_follows_a_learner_of_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    file = "payload_bridge.launch.py"
    [node] = made_by(file, "bridge", monkeypatch, learner="teacher", driver="ur")
    assert node.parameters == [{"driver": "ur"}]
    assert dict(node.remappings) == {
        "robot_description": "robot_description",  # the argument of this name
        **{f"{LEARNER}/{one}": f"teacher/{one}" for one in ("payload", "payload_std", "release")},
    }


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation of this source tree as ROS 2 sees one, found through AMENT_PREFIX_PATH."""
    # Our own folder named launch would do for `import launch`.
    reason = "launch and launch_ros come with a ROS 2 distribution, and there is none here"
    pytest.importorskip("launch.actions", reason=reason)
    pytest.importorskip("launch_ros.actions", reason=reason)
    prefix = tmp_path / "prefix"
    share = prefix / "share" / "semiparam_dynamics"
    for folder in ("launch", "config"):
        shutil.copytree(ROOT / folder, share / folder)
    shutil.copy(ROOT / "package.xml", share)
    index = prefix / "share" / "ament_index" / "resource_index" / "packages"
    index.mkdir(parents=True)
    (index / "semiparam_dynamics").touch()
    executables = prefix / "lib" / "semiparam_dynamics"
    executables.mkdir(parents=True)
    for name in NODES:
        script = executables / name
        module = f"semiparam_dynamics.base.nodes.executables {name}"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        script.chmod(0o755)
    # The distribution's Python runs the launch, and need not have what runs the nodes.
    first = prefix / "bin" / "python3"
    first.parent.mkdir()
    first.write_text(f'#!/bin/sh\necho {FIRST}\nexec "{sys.executable}" "$@"\n')
    first.chmod(0o755)
    monkeypatch.setenv("PATH", str(first.parent), prepend=":")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix), prepend=":")
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
    return prefix


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_arguments_are_declared_and_described(path: Path, prefix: Path) -> None:
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    arguments = get_launch_description_from_python_launch_file(str(path)).get_launch_arguments()
    assert arguments
    for argument in arguments:
        assert argument.description and argument.description != "no description given"


RUN = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
service = LaunchService(argv=sys.argv[2:], noninteractive=True)
given = [pair.split(":=", 1) for pair in sys.argv[2:]]
service.include_launch_description(
    LaunchDescription([IncludeLaunchDescription(sys.argv[1], launch_arguments=given)])
)
sys.exit(service.run())
"""


def start(file: str, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Run a launch file as `ros2 launch` does without a terminal, to be interrupted."""
    command = [sys.executable, "-c", RUN, str(ROOT / "launch" / file), *arguments]
    with log.open("wb") as output:
        return subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )


def finish(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGINT)
    try:
        return process.wait(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


def watch(
    file: str,
    log: Path,
    arguments: list[str],
    heard: dict[str, type],
    enough: int,
    listeners: set[str] | None = None,
) -> tuple[dict[str, list[Any]], str]:
    """Run a launch file until there are `enough` messages on each topic, or until it ends.

    Returns the messages by topic, and the log of a launch that ended without an error. The names
    of the nodes that subscribe to these topics are added to `listeners`.
    """
    import rclpy

    process = start(file, log, *arguments)
    messages: dict[str, list[Any]] = {topic: [] for topic in heard}
    rclpy.init()
    try:
        node = rclpy.create_node("probe")
        for topic, kind in heard.items():
            node.create_subscription(kind, topic, messages[topic].append, 1000)
        deadline = time.monotonic() + LIMIT
        while min(map(len, messages.values())) < enough and process.poll() is None:
            rclpy.spin_once(node, timeout_sec=0.1)
            for topic in heard if listeners is not None else ():
                found = node.get_subscriptions_info_by_topic(topic)
                listeners.update(info.node_name for info in found)
            if time.monotonic() > deadline:
                break
    finally:
        rclpy.try_shutdown()
        code = finish(process) if process.poll() is None else process.returncode
    text = log.read_text()
    assert code == 0 and "Traceback" not in text, text
    return messages, text


@pytest.mark.usefixtures("simulator")
def test_demo_predicts_and_ends_cleanly(
    prefix: Path, ros_environment: dict[str, str], tmp_path: Path
) -> None:
    from geometry_msgs.msg import WrenchStamped

    topics = {"/arm/learner/predicted": WrenchStamped}
    given = ["namespace:=arm", "page_port:=0", "name:=learner", "joint_states:=readings"]
    listeners: set[str] = set()
    heard, text = watch("demo.launch.py", tmp_path / "log", given, topics, 200, listeners)
    assert all(len(messages) >= 200 for messages in heard.values()), text
    assert "live_page" in listeners, text
    assert text.count("process has finished cleanly") == 3, text  # the live page is one


@pytest.mark.usefixtures("simulator")
def test_a_controller_moves_the_arm_by_what_the_learner_feeds_forward(
    prefix: Path, ros_environment: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("trajectory_msgs", reason="the controller needs the extra control")
    from sensor_msgs.msg import JointState
    from trajectory_msgs.msg import JointTrajectory

    command = "/arm/effort_command"
    topics = {command: JointState, "/arm/inverse_dynamics/feedforward": JointTrajectory}
    heard, text = watch("controller.launch.py", tmp_path / "log", ["namespace:=arm"], topics, 100)
    assert all(len(messages) >= 100 for messages in heard.values()), text
    assert all(np.isfinite(message.effort).all() for message in heard[command])
    assert np.ptp([message.effort[0] for message in heard[command]]) > 0.0
    assert text.count("process has finished cleanly") == 3, text


PLAYER = """#!{python}
# Plays joint states as `ros2 bag play` does: publishers first, then the delay.
import sys, time
import rclpy
from sensor_msgs.msg import JointState
from semiparam_dynamics.samples.bag import BagReader
from semiparam_dynamics.samples.joint_states import JOINT_STATE
assert sys.argv[1:3] == ["bag", "play"], sys.argv
rclpy.init(args=[])
node = rclpy.create_node("player")
topic = node.create_publisher(JointState, "/joint_states", 10)
time.sleep(float(sys.argv[sys.argv.index("--delay") + 1]))
with BagReader(sys.argv[3]) as bag:
    for _, message, _ in bag.messages([bag.choose(JOINT_STATE)]):
        out = JointState(name=message.name)
        for key in ("position", "velocity", "effort"):
            setattr(out, key, getattr(message, key).tolist())
        out.header.stamp.sec = message.header.stamp.sec
        out.header.stamp.nanosec = message.header.stamp.nanosec
        topic.publish(out)
        time.sleep(0.01)
time.sleep(1.0)
rclpy.shutdown()
"""


@pytest.mark.parametrize("brings_urdf", [True, False], ids=["urdf in the bag", "urdf in a file"])
def test_a_replay_loses_nothing_of_the_bag_s_beginning(
    prefix: Path,
    ros_environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    brings_urdf: bool,
) -> None:
    from sensor_msgs.msg import JointState

    model, bag, bin_ = small_arm(), tmp_path / "bag", tmp_path / "bin"
    recording = list(measurements(model, 2.0))
    urdf = URDF.read_text() if brings_urdf else ""
    write_measurements(bag, model.joint_names, recording, "effort", robot_description=urdf)
    bin_.mkdir()
    (bin_ / "ros2").write_text(PLAYER.format(python=sys.executable))
    (bin_ / "ros2").chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_), prepend=":")
    given = [f"bag:={bag}", *([] if brings_urdf else [f"urdf:={URDF}"])]
    heard = {"/inverse_dynamics/predicted": JointState}
    # More messages than there will be: it ends with the bag.
    messages, text = watch("replay.launch.py", tmp_path / "log", given, heard, 10**6)
    assert text.count("process has finished cleanly") == 2 and FIRST in text, text
    found = [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in messages.popitem()[1]]
    # A sample is one message back, and needs the one before.
    assert found == [m.stamp for m in recording[1:-1]], text


@pytest.mark.parametrize(
    ("argument", "told"),
    [("urdf", "the URDF file '{}' can't be read"), ("params_file", "parse params file: .*{}")],
)
def test_a_learner_that_ends_ends_a_replay_that_waits_for_it(
    prefix: Path, ros_environment: dict[str, str], tmp_path: Path, argument: str, told: str
) -> None:
    bag, missing = tmp_path / "bag", tmp_path / "missing"
    model = small_arm()
    write_measurements(bag, model.joint_names, list(measurements(model, 0.1)), "effort")
    given = [f"bag:={bag}", f"{argument}:={missing}"]
    process = start("replay.launch.py", tmp_path / "log", *given)
    try:
        process.wait(timeout=LIMIT)
    finally:
        if process.poll() is None:
            finish(process)
    text = (tmp_path / "log").read_text()
    assert process.returncode == 0 and re.search(told.format(missing), text), text
    assert text.count("process has finished cleanly") == 1, text  # the player


def test_object_demo_teaches_what_its_pictures_show(
    prefix: Path, ros_environment: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra 'vision'")
    from std_msgs.msg import String

    given = ["rate:=20.0", "loop:=false", "page_port:=0", "namespace:=bot", "label:=named"]
    topics = {"/bot/object_recognition/label": String, "/bot/named": String}
    # More messages than there will be: it ends by itself.
    heard, text = watch("object_demo.launch.py", tmp_path / "log", given, topics, 10**6)
    assert "the source has ended" in text, text
    digits = ["zero", "one", "two", "three", "four"]
    assert [m.data for m in heard["/bot/named"] if m.data] == digits
    assert {m.data for m in heard["/bot/object_recognition/label"]} >= {*digits}, text


def test_recognition_demo_shows_a_folder_and_ends_with_it(
    prefix: Path, ros_environment: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra 'vision'")
    pillow = pytest.importorskip("PIL.Image", reason="needs the extra 'vision'")
    from std_msgs.msg import String

    folder = tmp_path / "pictures"
    folder.mkdir()
    for k in range(10):
        pillow.new("RGB", (64, 48), (20 * k, 60, 120)).save(folder / f"{k}.png")
    given = [f"video:={folder}", "loop:=false", "page_port:=0", "namespace:=bot"]
    given += [f"model_file:={tmp_path / 'objects.npz'}", "name:=eyes"]
    topics, listeners = {"/bot/eyes/label": String}, set[str]()
    file, log = "recognition_demo.launch.py", tmp_path / "log"
    heard, text = watch(file, log, given, topics, 10**6, listeners)
    assert "the source has ended" in text, text
    assert "objects_page" in listeners, text
    answers = {message.data for message in heard["/bot/eyes/label"]}
    assert answers == {"unknown"}, text
    assert text.count("process has finished cleanly") == 3, text


@pytest.mark.parametrize(
    ("file", "given", "told"),
    [
        ("recognition_demo", ["video:=a", "camera:=b"], "video and camera are both given"),
        ("recognition_demo", ["video:=a", "autostart:=maybe"], "maybe"),
        ("object_demo", ["camera:=b"], "video and camera are both given"),
        ("demo", ["target:=maybe"], "maybe"),
        ("demo", ["page:=maybe"], "maybe"),
    ],
)
def test_what_is_refused_leaves_no_node_behind(
    prefix: Path,
    ros_environment: dict[str, str],
    tmp_path: Path,
    file: str,
    given: list[str],
    told: str,
) -> None:
    process = start(f"{file}.launch.py", tmp_path / "log", *given)
    assert process.wait(timeout=60) == 1
    text = (tmp_path / "log").read_text()
    assert told in text and "process started" not in text, text


@pytest.mark.parametrize(
    ("file", "given"),
    [
        ("inverse_dynamics.launch.py", ["urdf:={}"]),
        ("object_recognition.launch.py", ["input:=features", "model_file:={}"]),
        ("trajectory_efforts.launch.py", ["urdf:={}"]),
        ("payload_bridge.launch.py", ["tool_mass:={}"]),  # which is no number
    ],
)
def test_arguments_reach_the_node(
    prefix: Path, ros_environment: dict[str, str], tmp_path: Path, file: str, given: list[str]
) -> None:
    log = tmp_path / "log"
    folder = tmp_path / "no_file"
    folder.mkdir()
    arguments = [one.format(folder) for one in given]
    process = start(file, log, *arguments, "name:=learner")
    try:
        deadline = time.monotonic() + LIMIT
        while str(folder) not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        if process.poll() is None:
            finish(process)
    assert str(folder) in log.read_text()
