"""The command line `semiparam`: one verb a file, loaded without what only other verbs need."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from semiparam_dynamics import __version__
from semiparam_dynamics.errors import SemiparamError

# Each is a module here with add_parser(subparsers), which sets `run`, a function of the parsed
# arguments that returns the exit code. Heavy imports belong inside `run`.
VERBS = ("evaluate", "convert")


def make_parser() -> argparse.ArgumentParser:
    """The parser of all verbs; the parsed arguments have `run`."""
    parser = argparse.ArgumentParser(
        prog="semiparam", description="Semiparametric learning of robot dynamics."
    )
    parser.add_argument("--version", action="version", version=f"semiparam {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for verb in VERBS:
        importlib.import_module(f"semiparam_dynamics.cli.{verb}").add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 2 for what the user can put right, 130 for Ctrl-C."""
    args = make_parser().parse_args(argv)
    try:
        return int(args.run(args))
    except SemiparamError as error:
        print(f"semiparam: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
