"""The nodes' executables: where ROS 2 is missing, they say so in a sentence.

`python -m semiparam_dynamics.base.nodes.executables NAME` runs that of a name, as ROS 2 does.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys

from semiparam_dynamics.base.errors import MissingExtraError
from semiparam_dynamics.base.extras import EXTRAS, missing_extra


def start(name: str) -> int:
    """Run the node of the module `name`; returns its exit code, 2 where something is missing.

    SIGINT or SIGTERM while it is being imported, for seconds at the first start, ends the process:
    there is nothing yet to end cleanly, and an exception would come in the midst of any library.
    """
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: os._exit(0)) for number in signals}
    try:
        module = importlib.import_module(f"semiparam_dynamics.nodes.{name}")
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


def inverse_dynamics() -> int:
    """Run the node of this name."""
    return start("inverse_dynamics")


def arm_simulator() -> int:
    """Run the node of this name."""
    return start("arm_simulator")


def computed_torque() -> int:
    """Run the node of this name."""
    return start("computed_torque")


def trajectory_efforts() -> int:
    """Run the node of this name."""
    return start("trajectory_efforts")


def live_page() -> int:
    """Run the node of this name."""
    return start("live_page")


def image_source() -> int:
    """Run the node of this name."""
    return start("image_source")


def objects_page() -> int:
    """Run the node of this name."""
    return start("objects_page")


def object_recognition() -> int:
    """Run the node of this name."""
    return start("object_recognition")


def payload_bridge() -> int:
    """Run the node of this name."""
    return start("payload_bridge")


if __name__ == "__main__":
    sys.exit(start(sys.argv.pop(1)))
