from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics import __version__
from semiparam_dynamics.cli import main as command_line
from semiparam_dynamics.cli.main import VERBS, main, make_parser
from semiparam_dynamics.errors import BagError


def test_the_version(capsys) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"semiparam {__version__}\n"


def test_every_verb_has_help(capsys) -> None:
    for verb in VERBS:
        with pytest.raises(SystemExit) as end:
            main([verb, "--help"])
        assert end.value.code == 0
        assert f"usage: semiparam {verb}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("raised", "code", "printed"),
    [
        (BagError("there is no\n  bag x"), 2, "semiparam: error: there is no bag x\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_goes_wrong_is_one_line_and_an_exit_code(
    monkeypatch, capsys, raised, code, printed
) -> None:
    def run(args: argparse.Namespace) -> int:
        raise raised

    parser = argparse.ArgumentParser()
    parser.set_defaults(run=run)
    monkeypatch.setattr(command_line, "make_parser", lambda loaded: parser)
    assert main([]) == code
    assert capsys.readouterr() == ("", printed)


def test_a_verb_s_line_in_the_list_is_its_own(capsys) -> None:
    for loaded in ([], list(VERBS)):
        text = make_parser(loaded).format_help()
        for summary in VERBS.values():
            assert summary in text


def test_reading_the_arguments_loads_nothing_heavy() -> None:
    code = """
import sys
from semiparam_dynamics.cli.main import make_parser
make_parser(["convert", "log.npz", "bag"])
heavy = {"pinocchio", "numba", "rosbags", "mujoco", "matplotlib", "sklearn", "rclpy"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_module_is_the_command(repository: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "log.npz", q=np.zeros((3, 1)), tau=np.zeros((3, 1)), dt=0.1)
    (tmp_path / "bag").mkdir()
    command = [sys.executable, "-m", "semiparam_dynamics", "convert", "log.npz", "bag"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(repository), *sys.path])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("semiparam: error: bag exists already")
    assert done.stderr.count("\n") == 1
