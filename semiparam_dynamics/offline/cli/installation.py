"""Verbs for an installation: `compile`, `completion`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import defaultdict

from semiparam_dynamics.base import jit
from semiparam_dynamics.base.errors import StorageError
from semiparam_dynamics.base.parameters import parameters
from semiparam_dynamics.offline.cli.main import VERBS, make_parser, verb_parsers

EXAMPLES = {
    "compile": ("semiparam compile",),
    "completion": (
        'eval "$(semiparam completion bash)"',
        "semiparam completion bash >> ~/.bash_completion",
        'eval "$(semiparam completion zsh)"',
    ),
}

PROGRESS_PERIOD_S = 10.0  # between lines of how far the compiling is


def add_compile(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `compile`: there are none."""


def run_compile(args: argparse.Namespace) -> int:
    """Compile the numerical core now and keep it with the installation. Without it each user's
    first start compiles for 20 to 50 s, and so does every start of a user without a folder to
    keep it in, as in a container. Run it once after installing, as the user who installed, on
    the kind of processor that the robot has: for another kind the core is compiled again.
    """
    if elsewhere := os.environ.get("NUMBA_CACHE_DIR"):
        raise StorageError(f"NUMBA_CACHE_DIR is set to {elsewhere}: unset it, or all is kept there")
    try:
        jit.KEPT.mkdir(exist_ok=True)
        (jit.KEPT / "written").touch()
        begun = (jit.KEPT / "written").stat().st_mtime
    except OSError as error:
        raise StorageError(
            f"{jit.KEPT} can't be written to ({error.strerror}): run this as the user who installed"
        ) from None
    print("compiling, 20 to 50 s on two cores that do nothing else", flush=True)
    program = "from semiparam_dynamics.learner.nodes.compilation import compile_all; compile_all()"
    command = [sys.executable, "-c", jit.of_this_package(program)]
    with subprocess.Popen(command) as process:  # noqa: S603
        while process.poll() is None:
            try:
                process.wait(PROGRESS_PERIOD_S)
            except subprocess.TimeoutExpired:
                new = [one for one in jit.KEPT.rglob("*.nbc") if one.stat().st_mtime > begun]
                print(f"  {len(new)} compiled", flush=True)
    if process.returncode == 0:
        kept = [path.stat().st_size for path in jit.KEPT.rglob("*.nbc")]
        print(f"kept in {jit.KEPT}: {sum(kept) / 1e6:.1f} MB")
    return process.returncode


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `completion`."""
    parser.add_argument(
        "shell",
        metavar="SHELL",
        choices=("bash", "zsh"),
        help="bash or zsh, which is to read the script",
    )


def run_completion(args: argparse.Namespace) -> int:
    """Print a script with which the shell completes commands, options, the choices of an
    option, and after --set the names of the command's parameters. Everything else is completed
    as a file. The script holds the names of this version: write it again after an update.
    """
    print((ZSH if args.shell == "zsh" else "") + script(), end="")
    return 0


SCRIPT = """\
_semiparam() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ]; then
        words="{verbs}"
    else
        case "${{COMP_WORDS[1]}} $before" in
{choices}
            *) case "${{COMP_WORDS[1]}}" in
{options}
            esac ;;
        esac
    fi
    [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o bashdefault -o default -F _semiparam semiparam
"""
ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"


def script() -> str:
    """The completion of every verb, made from the parsers, for bash and for zsh's bashcompinit."""
    options = []
    # Several commands have the same parameters, whose many names the script holds once.
    places: defaultdict[str, list[str]] = defaultdict(list)  # of words, what stands before them
    settings: defaultdict[str, list[str]] = defaultdict(list)
    for verb, parser in verb_parsers(make_parser()).items():
        flags = " ".join(name for action in parser._actions for name in action.option_strings)
        # A word that does not begin with a dash is a file, or the value of the option before it.
        options.append(f'                {verb}) case "$word" in -*) words="{flags}" ;; esac ;;')
        for action in parser._actions:
            before = [f'"{verb} {name}"' for name in action.option_strings or [verb]]
            if action.choices:
                places[" ".join(map(str, action.choices))] += before
        if (kind := parser.get_default("config_type")) is not None:
            names = [entry.name for entry in parameters(kind)]
            settings[" ".join(f"{name}=" for name in names)].append(f'"{verb} --set"')
            if "--keep" in parser._option_string_actions:
                places[" ".join(names)].append(f'"{verb} --keep"')
    lines = [f'{"|".join(before)}) words="{words}" ;;' for words, before in places.items()]
    lines += [
        f'{"|".join(before)}) words="{words}"; compopt -o nospace 2> /dev/null ;;'
        for words, before in settings.items()
    ]
    return SCRIPT.format(
        verbs=" ".join(VERBS),
        choices="\n".join(" " * 12 + line for line in lines),
        options="\n".join(options),
    )
