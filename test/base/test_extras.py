"""Where a dependency of an extra is missing, a sentence says what to install."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest

from semiparam_dynamics.base import extras
from semiparam_dynamics.base.errors import MissingExtraError
from semiparam_dynamics.base.extras import missing_extra

# Programs one after the other, without some modules; of each its exit code and what it says.
RUN = """
import contextlib, io, json, sys
sys.modules.update(dict.fromkeys(sys.argv[1].split()))
for program in sys.argv[2:]:
    code = 0
    with contextlib.redirect_stderr(io.StringIO()) as told:
        try:
            exec(program)
        except SystemExit as end:
            code = end.code
        except Exception as error:
            code = f"{type(error).__name__}: {error}"
    print(json.dumps([code, told.getvalue()]))
"""
VERB = "from semiparam_dynamics.offline.cli.main import main; sys.exit(main([{0!r}, 'bag']))"
NODE = "from semiparam_dynamics.base.nodes.executables import start; sys.exit(start({0!r}))"
PART = "from semiparam_dynamics.{0}"


def without(modules: str, *programs: str) -> list[tuple[Any, str]]:
    """What becomes of programs in a Python that lacks the modules."""
    command = [sys.executable, "-c", RUN, modules, *programs]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("rosbags", {VERB: "evaluate", NODE: "bag_player", PART: "samples import bag"}),
        ("sklearn", {NODE: "object_recognition", PART: "learning import KRLS"}),
        ("matplotlib", {VERB: "doctor"}),
    ],
)
def test_without_what_they_need_verbs_nodes_and_the_library_say_so(module, names) -> None:
    if importlib.util.find_spec("rclpy") is None:
        names.pop(NODE, None)
    found = without(module, *(program.format(name) for program, name in names.items()))
    for (program, name), (code, told) in zip(names.items(), found, strict=True):
        if program is PART:
            assert code.startswith("MissingExtraError: ") and module in code
            continue
        assert code == 2 and told.count("\n") == 1 and f"(missing: {module})" in told
        assert told.startswith(f"{name}: error: ") if program is NODE else "pip install" in told


def test_the_learner_and_the_node_s_session_need_none_of_them() -> None:
    parts = "import semiparam_dynamics.learner.learner, semiparam_dynamics.learner.nodes.session"
    assert without("sklearn rosbags matplotlib mujoco", parts) == [(0, "")]


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
