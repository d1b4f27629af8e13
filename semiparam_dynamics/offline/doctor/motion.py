"""A piece of motion examined by `python -m semiparam_dynamics.offline.doctor.motion FILE`.

A node has this done to its robot's first motion, by a process of its own: no prediction waits for
it, and whatever happens to it doesn't happen to the node.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semiparam_dynamics.base.parameters import from_flat, to_flat
from semiparam_dynamics.base.storage import load_state, save_state, saved_header
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.doctor.joint_log import JointLog
from semiparam_dynamics.robot.model import RobotModel

ARRAYS = ("stamps", "q", "y")


def save_motion(
    path: Path, log: JointLog, model: RobotModel, config: InverseDynamicsConfig
) -> None:
    """Write what :func:`main` reads. Raises StorageError."""
    identity = {"urdf": model.urdf_text, "joints": list(log.names), "locked": model.locked}
    state = {name: getattr(log, name) for name in ARRAYS}
    save_state(path, identity, state, parameters=to_flat(config))


def main(path: str) -> None:
    """Print the faults of the motion in a file, and the parameters that mend them, as JSON."""
    from semiparam_dynamics.offline.doctor.examination import examine_motion  # slow to import

    identity, flat = saved_header(path)
    state = load_state(path, identity)
    joints = tuple(identity["joints"])
    config = from_flat(InverseDynamicsConfig, {**_tuples(flat), "joints": joints})
    model = RobotModel(identity["urdf"], config.robot, locked=identity["locked"])
    log = JointLog(joints, state["stamps"], state["q"], None, state["y"])
    findings, mends = examine_motion(log, model, config)
    faults = [
        {"kind": f.kind, "evidence": f.evidence, "advice": f.advice, "mends": list(f.mends)}
        for f in findings
        if f.fault
    ]
    json.dump({"faults": faults, "mends": mends}, sys.stdout)


def _tuples(flat: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in flat.items()}


if __name__ == "__main__":
    main(sys.argv[1])
