"""The command line `semiparam`: one verb a file, loaded without what only other verbs need."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Collection, Sequence

from semiparam_dynamics import __version__
from semiparam_dynamics.errors import ConfigurationError, SemiparamError

# Each is a module here with DESCRIPTION, add_arguments(parser) and run(args), which returns the
# exit code.
VERBS = {
    "demo": "a simulated arm and its learner, live",
    "doctor": "faults of a bag, before anything is learned from it",
    "evaluate": "how good the learner is on recorded bags",
    "objects": "teach the recognition node objects from pictures, live",
    "tune": "choose the learner's parameters on bags",
    "train": "train on bags in batch, for the node to start from",
    "identify": "parameters a robot can have, from bags into a URDF",
    "gains": "drive gains, where efforts are currents",
    "control": "what a controller gains by the learner",
    "excite": "a motion that identifies a robot's parameters well",
    "convert": "turn an npz log into a rosbag2",
    "compile": "compile the numerical core once, for every later start",
    "layouts": "pages of plots for PlotJuggler and Foxglove",
}
# What measures the package is part of the repository, not of an installation.
MOVED = {
    "bench": "python benchmarks/performance NAME, and python benchmarks/thesis experiment",
    "recognize": "python benchmarks/thesis recognize FEATURES.npz",
}


def make_parser(loaded: Collection[str] = tuple(VERBS)) -> argparse.ArgumentParser:
    """The parser; the parsed arguments have `run`.

    The verbs that aren't `loaded` are only listed: their modules, and the compiled core with them,
    stay out of the way of the others.
    """
    commands = argparse.ArgumentParser(
        prog="semiparam", description="Semiparametric learning of robot dynamics."
    )
    commands.add_argument("--version", action="version", version=f"semiparam {__version__}")
    subparsers = commands.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for verb, summary in VERBS.items():
        parser = subparsers.add_parser(verb, help=summary)
        if verb in loaded:
            module = importlib.import_module(f"semiparam_dynamics.cli.{verb}")
            parser.description = module.DESCRIPTION
            parser.set_defaults(run=module.run)
            module.add_arguments(parser)
    return commands


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of `argv`, by default the command line's; return its exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    return run_command(lambda: _run(arguments))


def _run(arguments: list[str]) -> int:
    if arguments and arguments[0] in MOVED:
        raise ConfigurationError(
            f"'{arguments[0]}' is a script in the package's repository: {MOVED[arguments[0]]}"
        )
    args = make_parser(arguments).parse_args(arguments)
    return int(args.run(args))


def run_command(command: Callable[[], int | None], program: str = "semiparam") -> int:
    """Run a command and return its exit code: 2 for what the user can put right, 130 for Ctrl-C."""
    try:
        return command() or 0
    except SemiparamError as error:
        print(f"{program}: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
