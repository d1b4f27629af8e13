"""`semiparam completion bash`."""

from __future__ import annotations

import argparse

from semiparam_dynamics.cli.main import VERBS, make_parser
from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.parameters import parameters

DESCRIPTION = """\
Print a script with which the shell completes commands, options, the choices of an option and, after
--set, the names of the learner's parameters. Everything else is completed as a file. The script
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
            *" --keep") words="{parameters}" ;;
            *" --set") words="{settings}"; compopt -o nospace 2> /dev/null ;;
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
    options, choices = [], []
    for verb, parser in verb_parsers().items():
        given = [action for action in parser._actions if action.help is not argparse.SUPPRESS]
        flags = " ".join(name for action in given for name in action.option_strings)
        # A word that does not begin with a dash is a file, or the value of the option before it.
        options.append(f'                {verb}) case "$word" in -*) words="{flags}" ;; esac ;;')
        for action in given:
            if action.choices:
                values = " ".join(map(str, action.choices))
                before = "|".join(f'"{verb} {name}"' for name in action.option_strings or [verb])
                choices.append(f'            {before}) words="{values}" ;;')
    names = [entry.name for entry in parameters(InverseDynamicsConfig)]
    return SCRIPT.format(
        verbs=" ".join(VERBS),
        choices="\n".join(choices),
        options="\n".join(options),
        parameters=" ".join(names),
        settings=" ".join(f"{name}=" for name in names),
    )


def verb_parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each verb."""
    (commands,) = (
        action
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return dict(commands.choices)
