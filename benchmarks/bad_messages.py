"""The time of a message that is refused, relative to one that is predicted and learned.

A seven-joint arm's joint states, the session of the node without DDS; minima over rounds, in one
process. The check that a bad message meets first decides what it costs.

    python benchmarks/bad_messages.py
"""

from __future__ import annotations

import math
import time
from types import SimpleNamespace as Fields
from typing import Any

import numpy as np
from arms import SEVEN
from output import make_parser, parse

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.nodes.session import Session

START, STEP = 10**10, 10**7  # ns
LATE = 90  # messages that one is late at most: less than what is a clock set back
JOINTS = tuple(f"joint{k}" for k in range(1, 8))


def joint_state(k: int, **changes: Any) -> Fields:
    t = 0.01 * k
    w = np.linspace(1.0, 3.0, 7)
    stamp = START + k * STEP
    fields = {
        "header": Fields(stamp=Fields(sec=stamp // 10**9, nanosec=stamp % 10**9), frame_id=""),
        "name": list(JOINTS),
        "position": 0.5 * np.sin(w * t),
        "velocity": 0.5 * w * np.cos(w * t),
        "effort": 5.0 * np.sin(w * t + 0.3),
    }
    return Fields(**(fields | changes))


def kinds(k: int, last: int) -> dict[str, Fields]:
    """A valid message, and a bad one of each kind, after that of number `last`.

    Those with other names name others every time.
    """
    zero = Fields(stamp=Fields(sec=0, nanosec=0), frame_id="")
    good = joint_state(k)
    bad, efforts = good.position.copy(), good.effort.copy()
    bad[3] = efforts[3] = math.nan
    return {
        "valid": good,
        "not finite": joint_state(k, position=bad),
        "wrong length": joint_state(k, position=np.zeros(5)),
        "missing joint": joint_state(k, name=[f"other{k}_{j}" for j in range(7)]),
        "duplicate joint name": joint_state(k, name=["joint1"] * 2 + [f"x{k}"] * 5),
        "zero stamp": joint_state(k, header=zero),
        "out of order": joint_state(last - 1 - k % LATE),
        "degrees": joint_state(k, position=90.0 + np.degrees(good.position)),
        "effort not finite": joint_state(k, effort=efforts),
        "malformed": Fields(name=list(JOINTS)),
    }


def spent(session: Session, messages: list[Fields]) -> float:
    """Microseconds of the processor a message, whatever else runs."""
    started = time.thread_time()
    for message in messages:
        for step in session.joint_state(message):
            session.learn(step)
    return (time.thread_time() - started) / len(messages) * 1e6


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--messages", type=int, default=300, help="of each kind a round")
    parser.add_argument("--rounds", type=int, default=5)
    args = parse(parser)
    # The first motion would be examined in another process.
    changed = {"defer_learning": False, "examine_start": False, "joints": JOINTS}
    session = Session(str(SEVEN), replace(InverseDynamicsNodeConfig(), **changed))
    at, best = 1500, dict.fromkeys(kinds(0, 0), math.inf)
    spent(session, [joint_state(k) for k in range(at)])
    for _ in range(args.rounds):
        for kind in best:
            last = (session.stream.newest - START) // STEP
            numbers = range(at, at + args.messages)
            at += args.messages
            messages = [
                joint_state(k) if kind == "valid" else kinds(k, last)[kind] for k in numbers
            ]
            best[kind] = min(best[kind], spent(session, messages))
    session.abandon()
    print("| message | us | share of a valid one |\n|---|---|---|")
    for kind, time_us in best.items():
        print(f"| {kind} | {time_us:.1f} | {time_us / best['valid']:.3f} |")


if __name__ == "__main__":
    main()
