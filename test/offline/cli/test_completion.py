from __future__ import annotations

import contextlib
import io
import shutil
import subprocess

import pytest

from semiparam_dynamics.offline.cli.main import VERBS, main

BASH = shutil.which("bash")
ASK = """
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_semiparam
printf "%s\\n" "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def completion() -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["completion", "bash"]) == 0
    return printed.getvalue()


@pytest.mark.skipif(BASH is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("semiparam ev", ["evaluate"]),
        ('semiparam ""', list(VERBS)),
        ("semiparam evaluate --targ", ["--target"]),
        ('semiparam evaluate --target ""', ["effort", "wrench"]),
        ("semiparam tune BAG --set filter.cut", ["filter.cutoff="]),
        ("semiparam tune BAG --keep filter.cut", ["filter.cutoff"]),
        ("semiparam evaluate BAG --set filter.cut", ["filter.cutoff="]),
        ("semiparam excite --set grav", ["gravity="]),
        ("semiparam excite --set filter.cut", [""]),
        ("semiparam excite --set search.harm", ["search.harmonics="]),
        ('semiparam completion ""', ["bash", "zsh"]),
        ("semiparam evaluate ba", [""]),  # bash completes the file
        ("semiparam unknown --", [""]),
    ],
)
def test_bash_completes(words: str, expected: list[str], completion: str) -> None:
    asked = completion + ASK.format(words=words)
    done = subprocess.run([str(BASH), "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == expected


def test_zsh_reads_the_same(completion: str, capsys) -> None:
    assert main(["completion", "zsh"]) == 0
    text = capsys.readouterr().out
    assert text.endswith(completion) and "bashcompinit" in text
