"""`semiparam compare OUT OUT [OUT ...]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.offline.evaluation.compare import comparison_text, read_result

DESCRIPTION = """\
Compare evaluations with the first: for each protocol and model the squared error relative to it,
the settings that differ, and whether the figures can be compared at all, which needs the same bags
and URDF."""
EXAMPLES = (
    "semiparam compare before after",
    "semiparam compare results tuned",
    "semiparam compare nystrom random_fourier tuned",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "results", metavar="OUT", nargs="+", type=Path, help="folder that evaluate --out wrote"
    )


def run(args: argparse.Namespace) -> int:
    """Print the comparison."""
    if len(args.results) < 2:
        raise ConfigurationError("compare needs the folders of two evaluations or more")
    print(comparison_text([read_result(place) for place in args.results]))
    return 0
