"""`semiparam identify BAG ... --urdf FILE --out DIR`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

DESCRIPTION = """\
Identify the robot's parameters on bags such that a robot can have them: every mass positive, every
pseudo-inertia positive definite, friction and rotor inertias not below 0. What the motion says
nothing of stays as the URDF has it. Writes identified.urdf, the URDF with these inertias and joint
friction and all else as it was, and parameters.csv: each parameter, the URDF's, its standard
deviation, and from 0 (the URDF's) to 1 (the data's) whose it is. Bags: rosbag2 folders, bare .db3
or .mcap files."""


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    from semiparam_dynamics.cli.options import add_config_options
    from semiparam_dynamics.config import InverseDynamicsConfig

    parser = subparsers.add_parser(
        "identify",
        help="parameters a robot can have, from bags into a URDF",
        description=DESCRIPTION,
    )
    parser.add_argument("bags", metavar="BAG", nargs="+")
    parser.add_argument(
        "--urdf", metavar="FILE", default="", help="default: the bag's robot_description"
    )
    parser.add_argument(
        "--test", metavar="BAG", nargs="+", default=[], help="bags that are only scored"
    )
    parser.add_argument(
        "--hold-out",
        metavar="SHARE",
        type=float,
        default=0.0,
        help="of each bag's time, the last, that is only scored, such as 0.4 (default: 0)",
    )
    parser.add_argument(
        "--weight",
        metavar="W",
        type=float,
        default=1.0,
        help="how much the URDF's inertias count; 1, the default, as much as one sample that is "
        "wrong by all that is measured",
    )
    parser.add_argument("--target", choices=("effort", "wrench"), help="what is measured")
    parser.add_argument(
        "--joint-states", metavar="TOPIC", default="", help="default: the only one of its type"
    )
    parser.add_argument("--wrench", metavar="TOPIC", default="", help="the same for the wrench")
    parser.add_argument("--out", metavar="DIR", required=True, help="where the files go")
    add_config_options(parser, InverseDynamicsConfig)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Identify, write the files, and print the errors."""
    from semiparam_dynamics.cli.options import config_from
    from semiparam_dynamics.config import InverseDynamicsConfig
    from semiparam_dynamics.evaluation.bags import Bags
    from semiparam_dynamics.evaluation.identification import (
        identification_table,
        identify_on_bags,
        write_identification,
    )
    from semiparam_dynamics.nodes.config import InverseDynamicsNodeConfig
    from semiparam_dynamics.parameters import parameters, replace
    from semiparam_dynamics.progress import ProgressBar

    # The node's YAML serves as it is; what only the node needs is passed over.
    names = [entry.name for entry in parameters(InverseDynamicsNodeConfig)]
    own = set(names) - {entry.name for entry in parameters(InverseDynamicsConfig)}
    config = config_from(args, InverseDynamicsConfig, "inverse_dynamics", ignore=own)
    if args.target:
        config = replace(config, target=args.target)
    bags = Bags(args.test, args.bags, args.urdf, args.joint_states, args.wrench)
    with ProgressBar("reading", sys.stderr) as progress:
        identification = identify_on_bags(bags, config, args.weight, args.hold_out, progress)
    for warning in bags.warnings:
        print(f"semiparam: warning: {warning}", file=sys.stderr)
    out = Path(args.out)
    write_identification(identification, out)
    print(identification_table(identification))
    print(f"{out / 'identified.urdf'}\n{out / 'parameters.csv'}")
    return 0
