"""Optional dependencies, asked for before anything is started."""

from __future__ import annotations

import importlib.util

from semiparam_dynamics.errors import MissingExtraError


def require_ros(command: str) -> None:
    """Raise MissingExtraError unless rclpy and the messages are there."""
    _require(
        command,
        ("rclpy", "sensor_msgs", "geometry_msgs", "diagnostic_msgs", "std_srvs"),
        "ROS 2: source your installation's setup file, or pip install 'semiparam_dynamics[ros]'",
    )


def require_simulator(command: str) -> None:
    """Raise MissingExtraError unless MuJoCo and the iCub's model are there."""
    _require(
        command,
        ("mujoco", "icub_models"),
        "the simulator: pip install 'semiparam_dynamics[sim]'",
    )


def require_vision(command: str) -> None:
    """Raise MissingExtraError unless ONNX Runtime and Pillow are there."""
    _require(
        command,
        ("onnxruntime", "PIL"),
        "the image network: pip install 'semiparam_dynamics[vision]'",
    )


def require_distributed(command: str) -> None:
    """Raise MissingExtraError unless Dask and its scheduler are there."""
    _require(
        command,
        ("dask", "distributed"),
        "Dask: pip install 'semiparam_dynamics[distributed]'",
    )


def _require(command: str, modules: tuple[str, ...], remedy: str) -> None:
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"{command} needs {remedy} (missing: {', '.join(missing)})")
