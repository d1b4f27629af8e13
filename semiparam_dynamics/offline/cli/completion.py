"""`semiparam completion bash`."""

from __future__ import annotations

import argparse
from collections import defaultdict

from semiparam_dynamics.base.parameters import parameters
from semiparam_dynamics.offline.cli.main import VERBS, make_parser, verb_parsers

DESCRIPTION = """\
Print a script with which the shell completes commands, options, the choices of an option, and after
--set the names of the command's parameters. Everything else is completed as a file. The script
holds the names of this version: write it again after an update."""
EXAMPLES = (
    'eval "$(semiparam completion bash)"',
    "semiparam completion bash >> ~/.bash_completion",
    'eval "$(semiparam completion zsh)"',
)

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "shell",
        metavar="SHELL",
        choices=("bash", "zsh"),
        help="bash or zsh, which is to read the script",
    )


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    print((ZSH if args.shell == "zsh" else "") + script(), end="")
    return 0


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
