"""The time of a message that is refused, beside that of one that is predicted and learned.

A seven-joint arm's joint states, the session of the node without DDS; minima over rounds, in one
process. The check that a bad message meets first decides what it costs.

    python benchmarks/bad_messages.py
"""

from __future__ import annotations

import argparse
import math
import time
from types import SimpleNamespace as Fields
from typing import Any

import numpy as np
from arms import SEVEN

from semiparam_dynamics.config import InverseDynamicsNodeConfig
from semiparam_dynamics.nodes.session import Session
from semiparam_dynamics.parameters import replace

JOINTS = tuple(f"joint{k}" for k in range(1, 8))


def joint_state(k: int, **changes: Any) -> Fields:
    t = 0.01 * k
    w = np.linspace(1.0, 3.0, 7)
    stamp = 10**10 + k * 10**7
    fields = {
        "header": Fields(stamp=Fields(sec=stamp // 10**9, nanosec=stamp % 10**9), frame_id=""),
        "name": list(JOINTS),
        "position": 0.5 * np.sin(w * t),
        "velocity": 0.5 * w * np.cos(w * t),
        "effort": 5.0 * np.sin(w * t + 0.3),
    }
    return Fields(**(fields | changes))


def kinds(k: int) -> dict[str, Fields]:
    """A bad message of each kind; those with other names name others every time."""
    zero = Fields(stamp=Fields(sec=0, nanosec=0), frame_id="")
    bad = np.full(7, 0.1)
    bad[3] = math.nan
    return {
        "not finite": joint_state(k, position=bad),
        "wrong length": joint_state(k, position=np.zeros(5)),
        "missing joint": joint_state(k, name=[f"other{k}_{j}" for j in range(7)]),
        "duplicate joint name": joint_state(k, name=["joint1"] * 2 + [f"x{k}"] * 5),
        "zero stamp": joint_state(k, header=zero),
        "out of order": joint_state(-k - 2),
        "degrees": joint_state(k, position=np.full(7, 90.0)),
        "effort not finite": joint_state(k, effort=bad),
        "malformed": Fields(name=list(JOINTS)),
    }


def spent(session: Session, messages: list[Fields]) -> float:
    """Microseconds a message."""
    started = time.perf_counter()
    for message in messages:
        list(session.joint_state(message))
    return (time.perf_counter() - started) / len(messages) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=300, help="of each kind a round")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    config = replace(InverseDynamicsNodeConfig(), defer_learning=False, joints=JOINTS)
    session = Session(str(SEVEN), config)
    at, best = 1500, {"valid": math.inf, **{kind: math.inf for kind in kinds(0)}}
    for k in range(at):
        list(session.joint_state(joint_state(k)))
    for _ in range(args.rounds):
        numbers = range(at, at + args.messages)
        at += args.messages
        best["valid"] = min(best["valid"], spent(session, [joint_state(k) for k in numbers]))
        for kind in kinds(0):
            messages = [kinds(k)[kind] for k in range(args.messages)]
            best[kind] = min(best[kind], spent(session, messages))
    print("| message | us | share of a valid one |\n|---|---|---|")
    for kind, time_us in best.items():
        print(f"| {kind} | {time_us:.1f} | {time_us / best['valid']:.3f} |")


if __name__ == "__main__":
    main()
