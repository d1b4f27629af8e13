"""What the README shows is there, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from semiparam_dynamics.cli.main import main
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.samples.bag_writer import write_measurements

from .dynamics.arms import URDF, measurements, small_arm


def test_the_example_runs(repository: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    text = (repository / "README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    model = small_arm()
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(URDF.read_text())
    write_measurements(Path("my_bag"), model.joint_names, measurements(model, 1.0), "effort")
    exec(compile(example, "README.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 98
    learned = SemiparametricEstimator(model)
    learned.load("learned.npz")
    assert learned.n_learned == 98 and np.any(learned.rigid_body.parameters)


def test_its_picture_and_files_exist(repository: Path) -> None:
    text = (repository / "README.md").read_text()
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (repository / link).is_file(), link
    for path in re.findall(r"`((?:config|benchmarks|samples|dynamics|learning)/[\w/.]*)`", text):
        inside = repository / "semiparam_dynamics" / path
        assert (repository / path).exists() or inside.exists(), path


def test_its_commands_are_those_of_the_command_line(repository: Path, capsys) -> None:
    text = (repository / "README.md").read_text()
    for verb in set(
        re.findall(r"semiparam (demo|evaluate|train|convert|bench|objects|recognize)", text)
    ):
        try:
            main([verb, "--help"])
        except SystemExit as end:
            assert end.code == 0


def test_the_learning_librarys_examples_run(repository: Path, capsys) -> None:
    text = (repository / "docs" / "learning.md").read_text()
    names: dict[str, object] = {}
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(example, "learning.md", "exec"), names)
    assert "n_centers" in capsys.readouterr().out


def test_the_recognisers_example_runs(repository: Path, capsys) -> None:
    text = (repository / "docs" / "recognition.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(example, "recognition.md", "exec"), {})
    assert "digit" in capsys.readouterr().out
