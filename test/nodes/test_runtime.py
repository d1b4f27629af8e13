"""A process that watches nodes, and the signals that it gets."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import rclpy
from std_msgs.msg import String

from semiparam_dynamics.base.nodes import runtime
from semiparam_dynamics.base.nodes.executables import start
from semiparam_dynamics.base.nodes.runtime import wrong_arguments
from semiparam_dynamics.learner.nodes import inverse_dynamics

from .forks import run_program

TIMEOUT = 60.0  # s: only reached when something is broken
SCRIPT = """
import os, signal
import rclpy
from semiparam_dynamics.base.nodes.runtime import open_network

before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
with open_network() as interrupted:
    assert rclpy.ok() and not interrupted.is_set()
    os.kill(os.getpid(), signal.SIGTERM)
    assert interrupted.is_set() and rclpy.ok()
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        print("the second is an exception")
assert not rclpy.ok()
assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
"""


@pytest.fixture
def run_script(ros_environment: dict[str, str], tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """A function that runs a program's text; its exit code and what it printed."""
    return partial(run_program, tmp_path / "log")


def test_the_first_signal_is_noted_and_the_second_raises(run_script) -> None:
    assert run_script(SCRIPT) == (0, "the second is an exception\n")


def test_help_is_answered_without_starting_anything(capsys: pytest.CaptureFixture[str]) -> None:
    assert inverse_dynamics.main(["--help"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("The `inverse_dynamics` node: learns")
    assert "inverse_dynamics --ros-args --params-file" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-p", "urdf:=arm.urdf"], "not understood: -p .* follow --ros-args"),
        (["--params-file", "my.yaml"], "not understood: --params-file my.yaml"),
        (["--ros-args", "--params-file", "none.yaml"], "none.yaml'. Error: Error opening YAML"),
        (["--ros-args", "-p", "urdf=arm.urdf"], "parameter override rule: '-p urdf=arm.urdf'"),
        (["--ros-args", "--parameters", "my.yaml"], "--parameters"),
    ],
)
def test_wrong_arguments_are_one_line(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inverse_dynamics.main(words) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("inverse_dynamics: error: ")
    assert re.search(told, error) and " at /" not in error


def test_right_arguments_pass() -> None:
    words = ["--ros-args", "-r", "__ns:=/left", "-p", "urdf:=a.urdf", "--", "--ros-args"]
    assert wrong_arguments(words) == ""


def test_missing_ros_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "diagnostic_msgs.msg", None)
    for name in [n for n in sys.modules if n.startswith("semiparam_dynamics.") and ".nodes." in n]:
        monkeypatch.delitem(sys.modules, name)
    assert start("inverse_dynamics") == 2
    error = capsys.readouterr().err
    assert "the node needs ROS 2: source your installation's setup file" in error
    assert "diagnostic_msgs" in error and error.count("\n") == 1


PRIORITY = """
import os, resource, sys, threading
from semiparam_dynamics.base.nodes.runtime import raise_priority

resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
if sys.argv[1] == "nobody":
    os.setuid(65534)
wait = threading.Event()
threading.Thread(target=wait.wait).start()
print(raise_priority(0) or "nothing", raise_priority(7) or "nothing", sep="|", end="|")
threads = os.listdir("/proc/self/task")
kinds = {(os.sched_getscheduler(int(t)), os.sched_getparam(int(t)).sched_priority) for t in threads}
print(len(threads) > 1, kinds == {(os.SCHED_FIFO, 7)}, kinds == {(os.SCHED_OTHER, 0)}, sep="|")
wait.set()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such policy")
@pytest.mark.parametrize("user", ["same", "nobody"])
def test_all_threads_have_a_real_time_priority_or_it_is_said_why_not(user, run_script) -> None:
    if user == "nobody" and os.getuid():
        pytest.skip("only root can be somebody else")
    _, told = run_script(PRIORITY, user)
    nothing, said, several, raised, ordinary = told.strip().split("|")
    assert (nothing, several) == ("nothing", "True")
    if said == "nothing":
        assert user == "same" and raised == "True"
    else:
        assert "realtime_priority 7 is left out" in said and "rtprio 7" in said
        assert ordinary == "True"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such policy")
def test_without_the_right_the_node_starts_whatever_the_system_knows_of_its_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusal: OSError = PermissionError()

    def refused(*_: object) -> None:
        raise refusal

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 4242")

    monkeypatch.setattr(runtime.os, "sched_setscheduler", refused)
    monkeypatch.setattr(runtime.getpass, "getuser", nameless)
    assert f"':{os.getuid()} - rtprio 7'" in runtime.raise_priority(7)
    refusal = OSError(38, "Function not implemented")
    assert "left out: [Errno 38] Function not implemented" in runtime.raise_priority(7)


IMPORTING = """
import os, signal, sys
from semiparam_dynamics.base.nodes import executables
number = getattr(signal, sys.argv[1])
executables.importlib.import_module = lambda name: os.kill(os.getpid(), number)
executables.start("inverse_dynamics")
"""
CONFIGURING = """
import os, signal, sys, time
from semiparam_dynamics.learner.nodes import inverse_dynamics

number, step, again = getattr(signal, sys.argv[1]), sys.argv[2], int(sys.argv[3])
def compile(*_):
    for _ in range(1 + again):
        os.kill(os.getpid(), number)
    time.sleep(600)
setattr(inverse_dynamics.InverseDynamicsNode, step, compile)
sys.exit(inverse_dynamics.main(["--ros-args", "-p", "urdf:=" + sys.argv[4]]))
"""
ENDED = """
import builtins, sys
import rclpy
from semiparam_dynamics.learner.nodes import inverse_dynamics

def end(*_):
    rclpy.try_shutdown()
    raise getattr(builtins, sys.argv[2])("the context is invalid")
inverse_dynamics.Session = end
sys.exit(inverse_dynamics.main(["--ros-args", "-p", "urdf:=" + sys.argv[1]]))
"""
HANGING = """
import os, signal, sys, threading, time
from types import SimpleNamespace
from semiparam_dynamics.recognition.nodes import image_source
from semiparam_dynamics.recognition import frames

def grab():
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    time.sleep(600)
camera = SimpleNamespace(grab=grab, isOpened=lambda: True, set=lambda *_: None)
frames._opencv = lambda: SimpleNamespace(CAP_PROP_BUFFERSIZE=0)
frames._capture = lambda source: camera
frames.CAMERA_TIMEOUT = 600.0
sys.exit(image_source.main(["--ros-args", "-p", "source:=/dev/video0"]))
"""
REFUSED = """
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from std_msgs.msg import String
from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.nodes import runtime

own = Context()
rclpy.init(context=own)
kept = rclpy.create_node("kept", context=own)
half = []
def make():
    half.append(Node("half"))
    raise SemiparamError("no")
assert runtime.run("half", make, lambda *_: 0, ["--ros-args"]) == 1
kept.create_publisher(String, "words", 1).publish(String())
try:
    half[0].get_name()
except Exception as error:
    print(type(error).__name__)
rclpy.shutdown(context=own)
"""


def test_a_signal_while_a_node_is_imported_ends_it(run_script) -> None:
    assert run_script(IMPORTING, "SIGTERM") == (0, "")


@pytest.mark.parametrize(
    ("number", "step", "again"),
    [("SIGINT", "__init__", 0), ("SIGTERM", "set_up", 0), ("SIGINT", "set_up", 1)],
)
def test_a_signal_while_a_node_is_made_or_configured_ends_it_at_once(
    number: str, step: str, again: int, run_script, urdf: Path
) -> None:
    assert run_script(CONFIGURING, number, step, again, urdf) == (0, "")


@pytest.mark.parametrize(("kind", "code"), [("RuntimeError", 0), ("ValueError", 1)])
def test_an_error_of_a_network_that_has_ended_is_no_fault_and_any_other_is(
    kind: str, code: int, run_script, urdf: Path
) -> None:
    ended, told = run_script(ENDED, urdf, kind)
    assert ended == code and (kind in told) == bool(code)


def test_a_signal_ends_a_source_whose_camera_hangs(run_script) -> None:
    code, told = run_script(HANGING, "SIGINT")
    assert code == 0 and "Traceback" not in told


def test_a_node_that_is_refused_takes_no_other_along(run_script) -> None:
    code, told = run_script(REFUSED)
    assert code == 0 and told.endswith("\nInvalidHandle\n"), told


def test_a_page_is_no_subscriber_that_is_waited_for(ros_environment) -> None:
    rclpy.init()
    try:
        sender, page, learner = map(rclpy.create_node, ("sender", "live_page", "learner"))
        publisher = sender.create_publisher(String, "readings", 10)

        def until(condition: Callable[[], bool]) -> None:
            end = time.monotonic() + TIMEOUT
            while not condition():
                assert time.monotonic() < end
                time.sleep(0.01)

        page.create_subscription(String, "readings", print, 10)
        until(lambda: publisher.get_subscription_count() == 1)
        until(lambda: sender.count_subscribers("readings") == 1)
        assert runtime.count_subscribers(sender, publisher) == 0
        learner.create_subscription(String, "readings", print, 10)
        until(lambda: runtime.count_subscribers(sender, publisher) == 1)
    finally:
        rclpy.try_shutdown()


def test_steps_are_due_a_period_apart():
    pacer = runtime.Pacer(0.01)
    assert pacer.delay(5.0) == 0.0
    pacer.stepped()
    assert pacer.delay(5.004) == pytest.approx(0.006)
    assert pacer.delay(5.01) == 0.0
    assert pacer.given_up == 0.0


def test_a_short_stall_is_caught_up():
    pacer = runtime.Pacer(0.01, patience=0.1)
    pacer.delay(0.0)
    steps = 0
    while pacer.delay(0.05) == 0.0:
        pacer.stepped()
        steps += 1
    assert steps == 6  # those of 0, 10, ... 50 ms
    assert pacer.given_up == 0.0


def test_a_long_stall_is_given_up_and_not_raced_after():
    pacer = runtime.Pacer(0.01, patience=0.1)
    pacer.delay(0.0)
    pacer.stepped()
    assert pacer.delay(1.0) == 0.0
    pacer.stepped()
    assert pacer.delay(1.0) == pytest.approx(0.01)
    assert pacer.given_up == pytest.approx(0.99)
