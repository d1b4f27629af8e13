"""Write docs/commands.md from the command line's parsers.

python tools/write_commands.py docs
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from semiparam_dynamics.offline.cli.main import EXAMPLES_TITLE, VERBS, make_parser, verb_parsers

PAGE = "commands.md"
INTRODUCTION = """\
# Commands

Written by `python tools/write_commands.py docs` from the command line's own definitions: change
them there, not here. `semiparam COMMAND --help` shows the same on one screen.

The exit code is 0 where all went well, 1 where `doctor` found a fault or `evaluate --each` could
not evaluate one of the bags, 2 for what you can put right (with one sentence that says how), and
130 after Ctrl-C.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page into the folder that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("docs", type=Path, help="folder of the page")
    given = parser.parse_args(arguments)
    (given.docs / PAGE).write_text(commands_page(), encoding="utf-8")


def commands_page() -> str:
    """A section for each verb: its purpose, its examples, and a table of its options."""
    parsers = verb_parsers(make_parser())
    return "\n".join([INTRODUCTION, *(_section(*item) for item in parsers.items())])


def _section(verb: str, parser: argparse.ArgumentParser) -> str:
    description = " ".join((parser.description or "").split())
    examples = (parser.epilog or "").removeprefix(EXAMPLES_TITLE).split("\n")
    shown = "\n".join(f"    {line.strip()}" for line in examples if line.strip())
    actions = [action for action in parser._actions if action.dest != "help"]
    rows = "\n".join(map(_row, actions))
    table = f"\n| option | meaning |\n|---|---|\n{rows}\n" if rows else ""
    told = VERBS[verb].summary
    summary = told[0].upper() + told[1:]  # capitalize() makes URDF small
    return f"## {verb}\n\n{summary}.\n\n{_plain(description)}\n\n{shown}\n{table}"


def _row(action: argparse.Action) -> str:
    """An option."""
    names = ", ".join(action.option_strings)
    values = action.metavar or ("{" + ",".join(map(str, action.choices or ())) + "}")
    if isinstance(values, tuple):
        values = " ".join(values)
    if action.nargs == 0:
        values = ""
    elif values == "{}":
        values = action.dest.upper()
    if action.nargs in ("+", "*"):
        values = f"{values} ..."
    elif action.nargs == "?" and names:
        values = f"[{values}]"
    meaning = (action.help or "") % {"default": action.default}
    return f"| `{f'{names} {values}'.strip()}` | {_plain(meaning)} |"


def _plain(text: str) -> str:
    """On one line, since a line break would end a table's row; without Markdown's signs."""
    text = " ".join(text.split())
    for sign in "|*<_":
        text = text.replace(sign, f"\\{sign}")
    return text


if __name__ == "__main__":
    main()
