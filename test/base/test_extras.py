"""Where a dependency of an extra is missing, a sentence says what to install."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import subprocess
import sys

import pytest

from semiparam_dynamics.base import extras
from semiparam_dynamics.base.errors import MissingExtraError
from semiparam_dynamics.base.extras import missing_extra

HIDE = "import sys; sys.modules[{0!r}] = None; "


def python(module: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run Python without a module."""
    command = [sys.executable, "-c", HIDE.format(module) + code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("module", "verb"), [("rosbags", "evaluate"), ("matplotlib", "doctor")])
def test_a_verb_without_what_it_needs_ends_with_a_sentence(module: str, verb: str) -> None:
    call = (
        f"from semiparam_dynamics.offline.cli.main import main; sys.exit(main([{verb!r}, 'bag']))"
    )
    done = python(module, call)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "pip install rosbags" in done.stderr and f"(missing: {module})" in done.stderr


@pytest.mark.parametrize(
    ("module", "part"), [("sklearn", "learning import KRLS"), ("rosbags", "samples import bag")]
)
def test_the_library_says_so_too(module: str, part: str) -> None:
    done = python(module, f"from semiparam_dynamics.{part}")
    assert done.returncode == 1
    assert "MissingExtraError" in done.stderr.splitlines()[-1] and module in done.stderr


@pytest.mark.parametrize(
    ("module", "node"), [("sklearn", "object_recognition"), ("rosbags", "bag_player")]
)
def test_a_node_without_what_it_needs_ends_with_a_sentence(module: str, node: str) -> None:
    pytest.importorskip("rclpy", reason="needs ROS 2")
    start = (
        f"from semiparam_dynamics.base.nodes.executables import start; sys.exit(start({node!r}))"
    )
    done = python(module, start)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(f"{node}: error: ") and f"(missing: {module})" in done.stderr


def test_the_learner_and_the_node_s_session_need_none_of_them() -> None:
    code = "".join(HIDE.format(name) for name in ("sklearn", "rosbags", "matplotlib"))
    code += "import semiparam_dynamics.learner.learner, semiparam_dynamics.learner.nodes.session"
    done = python("mujoco", code)
    assert done.returncode == 0, done.stderr


def test_other_modules_are_not_meant() -> None:
    assert missing_extra("this", ModuleNotFoundError("no", name="numpy")) is None
    told = missing_extra("this", ModuleNotFoundError("no", name="sklearn.base"))
    assert isinstance(told, MissingExtraError) and "pip install scikit-learn" in str(told)


@pytest.mark.parametrize(
    ("extra", "module", "said"),
    [
        ("ros", "rclpy", r"semiparam x needs ROS 2.*\[ros\].*rclpy\)"),
        ("sim", "mujoco", r"semiparam x needs the simulator: pip install mujoco.*mujoco\)"),
        ("vision", "onnxruntime", r"semiparam x needs .*pip install onnxruntime.*onnxruntime\)"),
        (
            "distributed",
            "distributed",
            r"semiparam x needs .*dask\[array,distributed\].*distributed\)",
        ),
    ],
)
def test_what_is_missing_is_named_and_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, extra: str, module: str, said: str
) -> None:
    missing = {module}
    monkeypatch.setattr(
        extras.importlib.util, "find_spec", lambda name: None if name in missing else name
    )
    with pytest.raises(MissingExtraError, match=said):
        extras.require("semiparam x", extra)
    missing.clear()
    extras.require("semiparam x", extra)


@pytest.mark.parametrize("extra", sorted(extras.EXTRAS.keys() - {"ros"}))
def test_the_packages_to_install_are_the_extra_s(extra: str) -> None:
    command = extras.EXTRAS[extra][1].partition("pip install ")[2].partition(", or ")[0]
    packages = {name.partition("[")[0] for name in shlex.split(command)}
    needed = importlib.metadata.requires("semiparam_dynamics") or []
    extras_own = (line for line in needed if f'extra == "{extra}"' in line)
    assert packages and packages <= {re.split(r"[^\w.-]", line)[0] for line in extras_own}
