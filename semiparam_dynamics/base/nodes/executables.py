"""The nodes' executables: where ROS 2 is missing, they say so in a sentence.

`python -m semiparam_dynamics.base.nodes.executables NAME` runs that of a name, as ROS 2 does.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from pathlib import Path

from semiparam_dynamics.base.errors import MissingExtraError
from semiparam_dynamics.base.extras import EXTRAS, missing_extra

# The room of each node; its module is the file of its name in the room's `nodes` folder.
ROOMS = {
    "arm_simulator": "simulation",
    "bag_player": "samples",
    "computed_torque": "control",
    "image_source": "recognition",
    "inverse_dynamics": "learner",
    "live_page": "learner",
    "object_recognition": "recognition",
    "objects_page": "recognition",
    "payload_bridge": "changes",
    "trajectory_efforts": "control",
}


def module_of(name: str) -> str:
    """The full name of a node's module."""
    return f"semiparam_dynamics.{ROOMS[name]}.nodes.{name}"


def main() -> int:
    """Run the node that has the name of the command that was called, a console script."""
    return start(Path(sys.argv[0]).stem)


def start(name: str) -> int:
    """Run the node of the module `name`; returns its exit code, 2 where something is missing.

    SIGINT or SIGTERM while it is being imported, for seconds at the first start, ends the process:
    there is nothing yet to end cleanly, and an exception would come in the midst of any library.
    """
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: os._exit(0)) for number in signals}
    try:
        module = importlib.import_module(module_of(name))
    except MissingExtraError as error:
        told = str(error)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "semiparam_dynamics":
            raise
        _, remedy = EXTRAS["ros"]
        needed = f"the node needs {remedy} (missing: {missing})"
        told = str(missing_extra("the node", error) or needed)
    else:
        return int(module.main())  # which puts its own handlers in their place
    for number, handler in before.items():
        signal.signal(number, handler)
    print(f"{name}: error: {told}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(start(sys.argv.pop(1)))
