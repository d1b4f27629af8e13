"""The nodes' executables: where ROS 2 is missing, they say so in a sentence."""

from __future__ import annotations

import importlib
import sys

from semiparam_dynamics.extras import EXTRAS, missing_extra


def start(name: str) -> int:
    """Run the node of the module `name`; returns its exit code, 2 where ROS 2 is missing."""
    try:
        module = importlib.import_module(f"semiparam_dynamics.nodes.{name}")
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "semiparam_dynamics":
            raise
        _, remedy = EXTRAS["ros"]
        told = missing_extra("the node", error) or f"the node needs {remedy} (missing: {missing})"
        print(f"{name}: error: {told}", file=sys.stderr)
        return 2
    return int(module.main())


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


def object_stream() -> int:
    """Run the node of this name."""
    return start("object_stream")


def payload_bridge() -> int:
    """Run the node of this name."""
    return start("payload_bridge")
