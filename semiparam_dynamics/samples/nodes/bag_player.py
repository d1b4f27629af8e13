"""Play a bag to a lifecycle node once that node is active, so that it gets the first message too.

The first start on a machine compiles the core, for 20 to 50 s: what is played meanwhile is lost.
The URDF that a bag brings is published before, since the node may need it to become active.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

import rclpy
from lifecycle_msgs.msg import State
from lifecycle_msgs.srv import GetState
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import String

from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.nodes.managed import LATCHED
from semiparam_dynamics.samples.bag import BagReader

NOT_STARTED = 127  # as shells say it
ASK_PERIOD_S = 0.1
ANSWER_TIMEOUT_S = 2.0  # for an answer: the node may have ended before it gave one


def wait_until_active(waiting: Node, executor: Executor, name: str) -> bool:
    """Spin until the lifecycle node `name` is active, however long that takes.

    executor : has the node `waiting`.

    Returns False where the process was interrupted before.
    """
    client = waiting.create_client(GetState, f"{name}/get_state")
    with suppress(ExternalShutdownException):
        while rclpy.ok():
            if client.wait_for_service(timeout_sec=ASK_PERIOD_S):
                answer = client.call_async(GetState.Request())
                executor.spin_until_future_complete(answer, timeout_sec=ANSWER_TIMEOUT_S)
                state = answer.result() if answer.done() else None
                if state is not None and state.current_state.id == State.PRIMARY_STATE_ACTIVE:
                    return True
            executor.spin_once(timeout_sec=ASK_PERIOD_S)
    return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Wait, then become the player; returns an exit code only where that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bag", help="rosbag2 folder, .mcap or .db3")
    parser.add_argument("--node", default="inverse_dynamics", help="the node that is waited for")
    parser.add_argument("--namespace", default="", help="of the node")
    parser.add_argument("--description", default="robot_description", help="topic of its URDF")
    parser.add_argument("player", nargs="+", help="command that plays the bag, after --")
    options = parser.parse_args(arguments)
    # rclpy ends its context on SIGINT, and the loop ends with it.
    signal.signal(signal.SIGINT, lambda *_: None)
    rclpy.init(args=[])
    try:
        waiting = rclpy.create_node("bag_player", namespace=options.namespace)
        executor = SingleThreadedExecutor()  # made after a signal, it would leave a traceback
        executor.add_node(waiting)
        with BagReader(options.bag) as bag:
            urdf = bag.robot_description()
        if urdf is not None:
            topic = waiting.create_publisher(String, options.description, LATCHED)
            topic.publish(String(data=urdf))
        active = wait_until_active(waiting, executor, options.node)
    except SemiparamError as error:
        print(error, file=sys.stderr)
        return 1
    except Exception:
        if rclpy.ok():
            raise
        active = False  # the network was taken down before it was used
    finally:
        rclpy.try_shutdown()
    if not active:
        # `ros2 launch` sends another SIGINT after the terminal's: it would end this by the signal.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return 0
    try:
        os.execvp(options.player[0], options.player)  # nosec B606 # the user's own command
    except OSError as error:
        named = " ".join(options.player[:3])
        print(f"'{named}' can't be started: {error.strerror}: is it on PATH?", file=sys.stderr)
        return NOT_STARTED


if __name__ == "__main__":
    sys.exit(main())
