"""A mistake in a node's parameters ends it with one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from semiparam_dynamics.base.nodes.processes import NodeProcess

from .conftest import TIMEOUT

CASES = [
    ("inverse_dynamics", "filter: {cutof: 5.0}", "did you mean 'filter.cutoff'?"),
    ("inverse_dynamics", "urdf: two_links.urdf, joints: [shoulder, wrist]", "wrist"),
    ("inverse_dynamics", "urdf: missing.urdf", "missing.urdf"),
    ("inverse_dynamics", "model_file: ~nobody_here/arm.npz", "'model_file', '~nobody_here/arm"),
    ("computed_torque", "urdf: missing.urdf", "missing.urdf"),
    ("trajectory_efforts", "urdf: missing.urdf", "missing.urdf"),
    ("trajectory_efforts", "gravity: none", "include, exclude"),
    ("trajectory_efforts", "gravity_vector: [0.0]", "'gravity_vector' needs 3 numbers"),
    ("payload_bridge", "max_mas: 1.0", "did you mean 'max_mass'?"),
    ("object_recognition", "backbone: {fille: x}", "did you mean 'backbone.file'?"),
    ("object_recognition", "backbone: {file: missing.onnx}", "missing.onnx"),
    ("object_recognition", "input: features, hold_out: 1", "hold_out"),
    ("live_page", "learner: left arm", "learner: 'left arm' is no name in ROS"),
    ("objects_page", "recognition: left arm", "recognition: 'left arm' is no name in ROS"),
    ("image_source", "source: missing", "there is no camera, file or folder 'missing'"),
]


@pytest.mark.parametrize(("name", "yaml", "reason"), CASES)
def test_one_line_says_what_is_wrong(
    start, urdf: Path, tmp_path: Path, monkeypatch, name: str, yaml: str, reason: str
) -> None:
    if "onnx" in yaml:
        pytest.importorskip("onnxruntime", reason="needs the extra 'vision'")
    monkeypatch.chdir(tmp_path)
    params = tmp_path / "params.yaml"
    params.write_text(f"{name}: {{ros__parameters: {{{yaml}}}}}\n")
    assert start(name, params).wait(TIMEOUT) == 1
    (line,) = (tmp_path / f"{name}.log").read_text().strip().splitlines()
    assert reason in line


def test_so_it_does_in_a_process_of_its_own(ros_environment, tmp_path: Path) -> None:
    pytest.importorskip("mujoco", reason="needs the extra 'sim'")
    log = tmp_path / "log"
    with NodeProcess("arm_simulator", {"urdf": "missing.urdf"}, log) as process:
        assert process.wait(TIMEOUT) == 1
    (line,) = log.read_text().strip().splitlines()
    assert "missing.urdf" in line
