"""`semiparam doctor BAG --urdf FILE`."""

from __future__ import annotations

import argparse
from pathlib import Path

DESCRIPTION = """\
Look at a bag before anything is learned from it: units, signs and scales of efforts, exchanged
joints, gravity that is missing or points elsewhere, delays, wraps, columns that are empty, stuck or
coarse, stamps, gaps, limits, rest. Each finding comes with numbers and with what to do. With --out
it writes doctor.html, and doctor.yaml with the parameters that mend what parameters can mend: give
it to the other verbs with --params, and to the node. The exit code is 1 where a fault was found."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    from semiparam_dynamics.cli.options import add_config_options
    from semiparam_dynamics.config import InverseDynamicsConfig

    parser.add_argument("bag", metavar="BAG", help="rosbag2 folder, bare .db3 or .mcap file")
    parser.add_argument(
        "--urdf", metavar="FILE", default="", help="default: the robot_description in the bag"
    )
    parser.add_argument(
        "--joint-states", metavar="TOPIC", default="", help="default: the only one of its type"
    )
    parser.add_argument("--out", metavar="DIR", default="", help="where the page and the YAML go")
    add_config_options(parser, InverseDynamicsConfig)


def run(args: argparse.Namespace) -> int:
    """Examine the bag and print the findings; 1 where there is a fault."""
    from semiparam_dynamics.cli.options import learner_config
    from semiparam_dynamics.doctor.examination import examine_bag
    from semiparam_dynamics.doctor.page import summary, write_examination

    args.target = ""
    config = learner_config(args)
    found = examine_bag(args.bag, config, urdf=args.urdf, joint_states=args.joint_states)
    print(summary(found))
    if args.out:
        for path in write_examination(found, Path(args.out), Path(args.bag).name):
            print(path)
    return int(any(finding.fault for finding in found.findings))
