"""Where a dependency of an extra is missing, a sentence names the extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

from semiparam_dynamics import extras
from semiparam_dynamics.errors import MissingExtraError
from semiparam_dynamics.extras import missing_extra

HIDE = "import sys; sys.modules[{0!r}] = None; "


def python(module: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run Python without a module."""
    command = [sys.executable, "-c", HIDE.format(module) + code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("module", "verb", "extra"),
    [("rosbags", "evaluate", "offline"), ("matplotlib", "doctor", "offline")],
)
def test_a_verb_without_what_it_needs_ends_with_a_sentence(
    module: str, verb: str, extra: str
) -> None:
    call = f"from semiparam_dynamics.cli.main import main; sys.exit(main([{verb!r}, 'bag']))"
    done = python(module, call)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert module in done.stderr and f"semiparam_dynamics[{extra}]" in done.stderr


@pytest.mark.parametrize(("module", "part"), [("sklearn", "learning"), ("rosbags", "samples.bag")])
def test_the_library_says_so_too(module: str, part: str) -> None:
    done = python(module, f"import semiparam_dynamics.{part}")
    assert done.returncode == 1
    assert "MissingExtraError" in done.stderr.splitlines()[-1] and module in done.stderr


def test_the_learner_and_the_node_s_session_need_none_of_them() -> None:
    code = "".join(HIDE.format(name) for name in ("sklearn", "rosbags", "matplotlib"))
    code += "import semiparam_dynamics.learner, semiparam_dynamics.nodes.session"
    done = python("mujoco", code)
    assert done.returncode == 0, done.stderr


def test_other_modules_are_not_meant() -> None:
    assert missing_extra("this", ModuleNotFoundError("no", name="numpy")) is None
    told = missing_extra("this", ModuleNotFoundError("no", name="sklearn.base"))
    assert isinstance(told, MissingExtraError) and "[learning]" in str(told)


@pytest.mark.parametrize(
    ("extra", "module", "said"),
    [
        ("ros", "rclpy", r"semiparam x needs ROS 2.*\[ros\].*rclpy\)"),
        ("sim", "mujoco", r"semiparam x needs the simulator.*\[sim\].*mujoco\)"),
        ("vision", "onnxruntime", r"semiparam x needs .*\[vision\].*onnxruntime\)"),
        ("distributed", "distributed", r"semiparam x needs .*\[distributed\].*distributed\)"),
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
