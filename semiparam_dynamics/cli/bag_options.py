"""What the verbs that read a robot's bags have in common: their options, and what they mean."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from semiparam_dynamics.cli.options import add_config_options, config_from
from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.parameters import parameters, replace


def add_bags(parser: argparse.ArgumentParser) -> None:
    """Add the bags and ``--urdf``, which come first in the help."""
    parser.add_argument("bags", metavar="BAG", nargs="+")
    parser.add_argument(
        "--urdf", metavar="FILE", default="", help="default: the bag's robot_description"
    )


def add_topics_and_output(
    parser: argparse.ArgumentParser,
    target: str = "what is predicted",
    out: str = "the files go",
    metavar: str = "DIR",
) -> None:
    """Add ``--target``, the topics, ``--out``, ``--params`` and ``--set``, which come last."""
    parser.add_argument("--target", choices=("effort", "wrench"), help=target)
    parser.add_argument(
        "--joint-states", metavar="TOPIC", default="", help="default: the only one of its type"
    )
    parser.add_argument("--wrench", metavar="TOPIC", default="", help="the same for the wrench")
    parser.add_argument("--out", metavar=metavar, required=True, help=f"where {out}")
    add_config_options(parser, InverseDynamicsConfig)


def learner_config(args: argparse.Namespace) -> InverseDynamicsConfig:
    """The configuration that the options describe. Raises ConfigurationError.

    The node's YAML serves as it is; what only the node needs is passed over.
    """
    from semiparam_dynamics.nodes.config import InverseDynamicsNodeConfig

    names = [entry.name for entry in parameters(InverseDynamicsNodeConfig)]
    own = set(names) - {entry.name for entry in parameters(InverseDynamicsConfig)}
    config = config_from(args, InverseDynamicsConfig, "inverse_dynamics", ignore=own)
    return replace(config, target=args.target) if args.target else config


def warn(warnings: Iterable[str]) -> None:
    """Say on the error stream what could not be read."""
    for warning in warnings:
        print(f"semiparam: warning: {warning}", file=sys.stderr)
