"""`semiparam bench bags`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

DESCRIPTION = """\
How many times faster than real time a bag of a seven-joint arm is evaluated, and what its parts
cost a sample. Parts are measured once each, alone, on one core: protocols is sequential and delayed
with their scores, of which rigid body and residual are parts, and products what the residual's
multiplications would take at the speed of one large matrix product. whole is `semiparam evaluate`
but for its report, by the clock, and cores whole by the processor's time. comparison says whether
the nonparametric model alone is learned as well."""


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the benchmark to `semiparam bench`."""
    from bench_output import add_out

    parser = subparsers.add_parser(
        "bags", help="the evaluation of bags beside real time", description=DESCRIPTION
    )
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="the bag's length (default %(default)s)"
    )
    parser.add_argument(
        "--rate", type=float, default=1000.0, help="messages a second (default %(default)s)"
    )
    parser.add_argument(
        "--features", type=int, default=500, metavar="D", help="of the residual (default 500)"
    )
    parser.add_argument(
        "--residuals",
        nargs="+",
        choices=("random_fourier", "nystrom"),
        default=["random_fourier", "nystrom"],
        help="which residuals (default both)",
    )
    parser.add_argument(
        "--comparison", choices=("yes", "no", "both"), default="no", help="default %(default)s"
    )
    add_out(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, print the table, and write it."""
    from bags import bag_table, measure_bags
    from bench_output import show
    from machine import machine

    from semiparam_dynamics.errors import ConfigurationError

    if args.seconds * args.rate < 10.0 or args.rate < 4.0:
        raise ConfigurationError("A bag needs ten messages, and four a second: ask for more.")
    comparisons = {"yes": (True,), "no": (False,), "both": (False, True)}[args.comparison]
    cases = measure_bags(args.seconds, args.rate, args.features, args.residuals, comparisons)
    text = f"{machine()}.\n\n{bag_table(cases)}\n"
    show(text, args.out)
    return 0
