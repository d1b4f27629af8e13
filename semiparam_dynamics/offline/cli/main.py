"""The command line `semiparam`: verbs, loaded without what only other ones need."""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import itertools
import os
import shlex
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from semiparam_dynamics import __version__
from semiparam_dynamics.base.errors import ConfigurationError, SemiparamError
from semiparam_dynamics.base.extras import missing_extra


class Verb(NamedTuple):
    """A verb's file here, and its summary.

    The file has EXAMPLES of each of its verbs, add_VERB(parser), and run_VERB(args), which returns
    the exit code and whose docstring is the description.
    """

    file: str
    summary: str


VERBS = {
    "demo": Verb("live", "watch a simulated arm and its learner, live"),
    "doctor": Verb("recordings", "find faults of a bag before anything is learned from it"),
    "evaluate": Verb("learning", "judge the learner on recorded bags"),
    "compare": Verb("learning", "compare evaluations: errors, settings"),
    "objects": Verb("live", "teach the recognition node objects from pictures, live"),
    "teach": Verb("live", "teach objects before a camera or a video, on a page"),
    "tune": Verb("learning", "choose the learner's parameters on bags"),
    "train": Verb("learning", "train on bags in batch, for the node to start from"),
    "identify": Verb("learning", "identify parameters a robot can have, and write a URDF"),
    "gains": Verb("recordings", "identify drive gains, where efforts are currents"),
    "excite": Verb("excite", "find a motion that shows a robot's parameters well"),
    "convert": Verb("recordings", "turn npz, CSV or LeRobot logs into a rosbag2"),
    "compile": Verb("installation", "compile the numerical core once, for every later start"),
    "completion": Verb("installation", "print a script that completes commands in the shell"),
    "layouts": Verb("layouts", "write layouts for PlotJuggler, Foxglove and RViz"),
}
EXAMPLES_TITLE = "examples:"


class HelpFormatter(argparse.HelpFormatter):
    """Wraps descriptions, leaves examples as they are, and needs few lines for options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=29)

    def _format_usage(self, *args: Any) -> str:
        """The arguments that must be given; the options are listed below."""
        _, actions, _, prefix = args
        needed = [a for a in actions if a.required or not a.option_strings]
        options = [f"{a.option_strings[-1]} {a.metavar}" for a in needed if a.option_strings]
        several = {"+": " ...", "*": " ..."}
        names = [f"{a.metavar}{several.get(a.nargs, '')}" for a in needed if not a.option_strings]
        words = [self._prog, *names, *options, "[options]"]
        return f"{prefix or 'usage: '}{' '.join(words)}\n\n"

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(EXAMPLES_TITLE) else super()._fill_text(text, width, indent)


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
    for verb, (file, summary) in VERBS.items():
        parser = subparsers.add_parser(verb, help=summary)
        if verb in loaded:
            module = importlib.import_module(f"semiparam_dynamics.offline.cli.{file}")
            run = getattr(module, f"run_{verb}")
            parser.description = run.__doc__
            parser.formatter_class = HelpFormatter
            parser.epilog = "\n  ".join([EXAMPLES_TITLE, *module.EXAMPLES[verb]])
            parser.set_defaults(run=run)
            getattr(module, f"add_{verb}")(parser)
    return commands


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of `argv`, by default the command line's; return its exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    return run_command(lambda: run_verb(arguments))


def run_verb(arguments: list[str]) -> int:
    """Run one command, whose errors are raised; return its exit code."""
    if not arguments:
        print(make_parser(()).format_help())
        return 0
    first = arguments[0]
    if not first.startswith("-") and first not in VERBS:
        near = difflib.get_close_matches(first, VERBS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else "semiparam --help lists them"
        raise ConfigurationError(f"there is no command '{first}': {hint}")
    parser = make_parser(arguments)
    _check_options(parser, arguments)
    args = parser.parse_args(arguments)
    args.command_line = shlex.join(["semiparam", *arguments])
    return int(args.run(args))


def verb_parsers(commands: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parser of each verb."""
    (action,) = (a for a in commands._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


def _check_options(commands: argparse.ArgumentParser, arguments: list[str]) -> None:
    """Raise ConfigurationError for an option that the verb does not have, with the nearest.

    argparse would first ask for what is required, which may be the option that was mistyped.
    """
    if (parser := verb_parsers(commands).get(arguments[0])) is None:
        return
    known = list(parser._option_string_actions)
    for word in itertools.takewhile(lambda word: word != "--", arguments[1:]):
        name = word.partition("=")[0]
        if name.startswith("--") and not any(option.startswith(name) for option in known):
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "--help lists the options"
            raise ConfigurationError(f"{arguments[0]} has no option {name}: {hint}")


def run_command(command: Callable[[], int | None], program: str = "semiparam") -> int:
    """Run a command and return its exit code.

    2 for what the user can correct, 130 for Ctrl-C, and 141, as a shell has it, where the
    output's reader has ended. Letters that the terminal's encoding lacks are shown as question
    marks.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        try:
            return command() or 0
        finally:
            sys.stdout.flush()  # also of --help, which ends by SystemExit
    except BrokenPipeError:
        # What is left in the buffer would fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print(f"{program}: stopped", file=sys.stderr)
        return 130
    except Exception as error:
        if (remedy := _remedy(error)) is None:
            raise
        print(f"{program}: error: {remedy}", file=sys.stderr)
        return 2


def _remedy(error: Exception) -> str | None:
    """One line on what the user can correct; None where it is an error of the program."""
    match error:
        case SemiparamError():
            return " ".join(str(error).split())
        case ModuleNotFoundError():
            missing = missing_extra("this", error)
            return None if missing is None else str(missing)
        case ImportError() if "shared object" in str(error):
            library = str(error).partition(":")[0]
            return (
                f"the system lacks the library {library} (libgomp.so.1: apt-get install libgomp1)"
            )
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            return f"{place}{error.strerror or error}"
        case RuntimeError() if "home directory" in str(error):
            return "a path begins with ~NAME, and there is no user of that name"
    return None


if __name__ == "__main__":
    sys.exit(main())
