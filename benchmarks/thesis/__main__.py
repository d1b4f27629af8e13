"""The thesis' table 7.1 and figure 8.4: python benchmarks/thesis NAME [options]."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))  # what all benchmarks share
import experiment  # noqa: E402
import recognition_published  # noqa: E402
import recognize  # noqa: E402

from semiparam_dynamics.offline.cli.main import run_command  # noqa: E402

BENCHMARKS = {
    "experiment": (experiment, "the validation experiment and its figure 8.4"),
    "recognize": (recognize, "table 7.1's protocol on a file of features"),
    "published": (recognition_published, "table 7.1 with the settings of its authors' code"),
}


def make_parser() -> argparse.ArgumentParser:
    """The parser; the parsed arguments have `run`, a function of them."""
    parser = argparse.ArgumentParser(prog="thesis", description=__doc__)
    names = parser.add_subparsers(title="what is reproduced", metavar="NAME", required=True)
    for name, (module, summary) in BENCHMARKS.items():
        one = names.add_parser(name, help=summary, description=module.DESCRIPTION)
        module.add_arguments(one)
        one.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Reproduce one of them; the exit code is that of `semiparam`."""
    args = make_parser().parse_args(arguments)
    return run_command(lambda: args.run(args), "thesis")


if __name__ == "__main__":
    sys.exit(main())
