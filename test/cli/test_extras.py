from __future__ import annotations

import pytest

from semiparam_dynamics.cli import options as extras
from semiparam_dynamics.errors import MissingExtraError


def test_names_what_is_missing_and_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    found = extras.importlib.util.find_spec
    monkeypatch.setattr(
        extras.importlib.util, "find_spec", lambda name: None if name == "rclpy" else found(name)
    )
    with pytest.raises(MissingExtraError, match=r"semiparam demo needs ROS 2.*\[ros\].*rclpy"):
        extras.require_ros("semiparam demo")


def test_says_nothing_where_all_is_there():
    pytest.importorskip("mujoco", reason="needs the extra 'sim'")
    pytest.importorskip("icub_models", reason="needs the extra 'sim'")
    extras.require_simulator("semiparam demo")


def test_a_cluster_is_an_extra(monkeypatch: pytest.MonkeyPatch):
    found = extras.importlib.util.find_spec
    monkeypatch.setattr(
        extras.importlib.util,
        "find_spec",
        lambda name: None if name == "distributed" else found(name),
    )
    with pytest.raises(
        MissingExtraError, match=r"--cluster needs .*\[distributed\].*distributed\)"
    ):
        extras.require_distributed("--cluster")


def test_the_image_network_is_an_extra(monkeypatch: pytest.MonkeyPatch):
    found = extras.importlib.util.find_spec
    monkeypatch.setattr(
        extras.importlib.util,
        "find_spec",
        lambda name: None if name == "onnxruntime" else found(name),
    )
    with pytest.raises(MissingExtraError, match=r"semiparam x needs .*\[vision\].*onnxruntime\)"):
        extras.require_vision("semiparam x")
