from __future__ import annotations

import importlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics import __version__
from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.offline.cli.main import VERBS, main, make_parser, run_command


def test_the_version(capsys) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"semiparam {__version__}\n"


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_fits_on_a_screen(verb: str, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([verb, "--help"] if verb else ["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 80
    if verb:
        examples = lines[lines.index("examples:") + 1 :]
        assert f"semiparam {verb}" in examples[0]
        assert len(examples) == 3 or verb == "compile"


@pytest.mark.parametrize("verb", VERBS)
def test_examples_of_the_help_are_understood(verb: str, capsys) -> None:
    module = importlib.import_module(f"semiparam_dynamics.offline.cli.{VERBS[verb].file}")
    for example in module.EXAMPLES[verb]:
        words = shlex.split(re.sub(r' >> .*|^eval "\$\(|\)"$', "", example))
        assert words[:2] == ["semiparam", verb]
        try:
            make_parser([verb]).parse_args(words[1:])
        except SystemExit as end:
            assert not end.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("raised", "code", "printed"),
    [
        (BagError("there is no\n  bag x"), 2, "semiparam: error: there is no bag x\n"),
        (KeyboardInterrupt(), 130, "semiparam: stopped\n"),
        (
            ImportError("libgomp.so.1: cannot open shared object file: No such file"),
            2,
            "semiparam: error: the system lacks the library libgomp.so.1 (libgomp.so.1: apt-get "
            "install libgomp1)\n",
        ),
        (OSError(28, "No space left", "x"), 2, "semiparam: error: x: No space left\n"),
    ],
)
def test_what_goes_wrong_is_one_line_and_an_exit_code(capsys, raised, code, printed) -> None:
    def run() -> int:
        raise raised

    assert run_command(run) == code
    assert capsys.readouterr() == ("", printed)


def test_alone_it_lists_the_commands(capsys) -> None:
    assert main([]) == 0
    told = capsys.readouterr()
    assert told.err == "" and all(verb.summary in told.out for verb in VERBS.values())


def test_a_mistyped_command_is_told_the_nearest(capsys) -> None:
    assert main(["evalute", "bag"]) == 2
    told = "semiparam: error: there is no command 'evalute': did you mean 'evaluate'?\n"
    assert capsys.readouterr() == ("", told)
    assert main(["xyz"]) == 2
    assert "no command 'xyz': semiparam --help lists them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("--trian", "did you mean --train?"),
        ("--uot=x", "did you mean --out?"),
        ("--xyzzy", "--help lists the options"),
    ],
)
def test_a_mistyped_option_is_told_the_nearest(capsys, option: str, hint: str) -> None:
    assert main(["evaluate", "bag", option]) == 2
    name = option.partition("=")[0]
    told = f"semiparam: error: evaluate has no option {name}: {hint}\n"
    assert capsys.readouterr() == ("", told)
    with pytest.raises(SystemExit):  # abbreviations are argparse's, and what is after -- no option
        main(["evaluate", "bag", "--urd", "x.urdf", "--", "--trian"])
    assert "required: --out" in capsys.readouterr().err


def test_nobody_reads_the_output_any_more() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "semiparam_dynamics.offline.cli.main"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_letters_that_the_terminal_lacks_are_no_error(monkeypatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert run_command(lambda: print("Nyström")) == 0
    assert written.getvalue() == b"Nystr?m\n"


def test_reading_the_arguments_loads_nothing_heavy() -> None:
    code = """
import sys
from semiparam_dynamics.offline.cli.main import make_parser
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
