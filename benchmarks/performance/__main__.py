"""The package's time and memory: python benchmarks/performance NAME [options]."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))  # what all benchmarks share
import bags  # noqa: E402
import falkon_tables  # noqa: E402
import step  # noqa: E402
from output import add_out, parse  # noqa: E402

from semiparam_dynamics.offline.cli.main import run_command  # noqa: E402

BENCHMARKS = {
    "step": (step, "the recursive step beside the memory's speed"),
    "bags": (bags, "the evaluation of bags beside real time"),
    "falkon": (falkon_tables, "FALKON beside its multiplications and its rivals"),
}


def make_parser() -> argparse.ArgumentParser:
    """The parser; the parsed arguments have `measure`, a function of them to the text to show."""
    parser = argparse.ArgumentParser(prog="performance", description=__doc__)
    names = parser.add_subparsers(title="benchmarks", metavar="NAME", required=True)
    for name, (module, summary) in BENCHMARKS.items():
        one = names.add_parser(name, help=summary, description=module.DESCRIPTION)
        module.add_arguments(one)
        add_out(one)
        one.set_defaults(measure=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one benchmark, print its table and write it; the exit code is that of `semiparam`."""

    def measure() -> None:
        args = parse(make_parser(), arguments)
        print(args.measure(args), end="")

    return run_command(measure, "performance")


if __name__ == "__main__":
    sys.exit(main())
