"""A process that watches nodes, and the signals that it gets."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, signal
import rclpy
from semiparam_dynamics.nodes.runtime import open_network

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


def test_the_first_signal_is_noted_and_the_second_raises(ros_environment) -> None:
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "the second is an exception\n"), ran.stderr
