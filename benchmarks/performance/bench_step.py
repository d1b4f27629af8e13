"""`semiparam bench step`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

DESCRIPTION = """\
The recursive step, a prediction with its variance, its score and learning the row, beside the
limit: reading and writing each number of the factor's triangle once, by a compiled loop in the
same process. Medians in microseconds; all of a line are measured in turns. A compiled step is one
that is called from compiled code, without Python between."""


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the benchmark to `semiparam bench`."""
    from bench_output import add_out

    parser = subparsers.add_parser(
        "step", help="the recursive step beside the memory's speed", description=DESCRIPTION
    )
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[200, 500, 1000, 2000, 4000],
        metavar="D",
        help="features (default 200 500 1000 2000 4000)",
    )
    parser.add_argument(
        "--outputs", type=int, nargs="+", default=[1, 6, 7], metavar="T", help="default 1 6 7"
    )
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="for each line (default %(default)s)"
    )
    add_out(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, print the table, and write it."""
    from bench_output import show
    from machine import machine
    from step import StepTimes, measure
    from step_table import step_table

    from semiparam_dynamics.errors import ConfigurationError
    from semiparam_dynamics.progress import ProgressBar

    if min(*args.sizes, *args.outputs) < 1:
        raise ConfigurationError("Features and outputs are at least 1: ask for more.")
    cases = [(D, T) for D in args.sizes for T in args.outputs]
    times: list[StepTimes] = []
    with ProgressBar("step", sys.stderr) as progress:
        for case in cases:
            progress(len(times) / len(cases))
            times.append(measure(*case, args.seconds))
    text = f"{machine()}.\n\n{step_table(times)}\n"
    show(text, args.out)
    return 0
