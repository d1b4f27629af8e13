"""`semiparam compare OUT OUT [OUT ...]`."""

from __future__ import annotations

import argparse
from pathlib import Path

DESCRIPTION = """\
Compare evaluations with the first: for each protocol and model the squared error relative to it,
the settings that differ, and whether the figures can be compared at all, which needs the same bags
and URDF. --page writes the same as a page."""
EXAMPLES = (
    "semiparam compare before after",
    "semiparam compare results tuned --page comparison.html",
    "semiparam compare nystrom random_fourier tuned --page all.html --overwrite",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    from semiparam_dynamics.offline.cli.options import add_overwrite

    parser.add_argument(
        "results", metavar="OUT", nargs="+", type=Path, help="folder that evaluate --out wrote"
    )
    parser.add_argument("--page", metavar="HTML", type=Path, help="write the comparison as a page")
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Print the comparison, and write its page where one is named."""
    from semiparam_dynamics.base.errors import ConfigurationError
    from semiparam_dynamics.base.output_files import check_replaced, write_files
    from semiparam_dynamics.offline.evaluation.compare import (
        comparison_page,
        comparison_text,
        read_result,
    )

    if len(args.results) < 2:
        raise ConfigurationError("compare needs the folders of two evaluations or more")
    results = [read_result(place) for place in args.results]
    if args.page is not None:
        check_replaced([args.page], overwrite=args.overwrite)
        write_files({args.page: comparison_page(results)})
    print(comparison_text(results))
    if args.page is not None:
        print(args.page)
    return 0
