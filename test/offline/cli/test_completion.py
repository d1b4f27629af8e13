from __future__ import annotations

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


@pytest.mark.skipif(BASH is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("semiparam ev", ["evaluate"]),
        ('semiparam ""', list(VERBS)),
        ("semiparam evaluate --targ", ["--target"]),
        ('semiparam evaluate --target ""', ["effort", "wrench"]),
        ("semiparam excite --help-p", ["--help-parameters"]),
        ("semiparam tune BAG --set filter.cut", ["filter.cutoff="]),
        ("semiparam tune BAG --keep filter.cut", ["filter.cutoff"]),
        ("semiparam evaluate BAG --set filter.cut", ["filter.cutoff="]),
        ("semiparam excite --set grav", ["gravity="]),
        ("semiparam excite --set filter.cut", [""]),
        ("semiparam excite --set search.harm", ["search.harmonics="]),
        ("semiparam evaluate --help-parameters ba", ["basic"]),
        ("semiparam excite --help-parameters se", ["search"]),
        ('semiparam completion ""', ["bash", "zsh"]),
        ("semiparam evaluate ba", [""]),  # bash completes the file
        ("semiparam unknown --", [""]),
    ],
)
def test_bash_completes(words: str, expected: list[str], capsys) -> None:
    assert main(["completion", "bash"]) == 0
    asked = capsys.readouterr().out + ASK.format(words=words)
    done = subprocess.run([str(BASH), "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == expected


def test_zsh_reads_the_same(capsys) -> None:
    texts = {}
    for shell in ("bash", "zsh"):
        assert main(["completion", shell]) == 0
        texts[shell] = capsys.readouterr().out
    assert texts["zsh"].endswith(texts["bash"]) and "bashcompinit" in texts["zsh"]
