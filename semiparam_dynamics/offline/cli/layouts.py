"""`semiparam layouts DIR`."""

from __future__ import annotations

import argparse
from pathlib import Path

from semiparam_dynamics.base.output_files import check_replaced, write_files
from semiparam_dynamics.learner.nodes.layouts import UR_JOINTS, Topics, contents
from semiparam_dynamics.offline.cli.options import add_overwrite

DESCRIPTION = """\
Write the layouts with which PlotJuggler (3.9 or newer), Foxglove and RViz show what the node
inverse_dynamics publishes: DIR/plotjuggler/effort.xml, DIR/foxglove/effort.json, the same for a
wrench, and DIR/rviz/semiparam_dynamics.rviz. The joints' names are those that are learned, in their
order."""
EXAMPLES = (
    "semiparam layouts layouts",
    "semiparam layouts layouts --joints joint1 joint2 joint3",
    "semiparam layouts layouts --node /left/inverse_dynamics --base left_base",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    default = Topics()
    parser.add_argument("out", type=Path, metavar="DIR", help="where the files go")
    parser.add_argument(
        "--joints",
        nargs="+",
        default=UR_JOINTS,
        metavar="NAME",
        help="learned joints, in order (default: those of a UR arm)",
    )
    parser.add_argument(
        "--node",
        default=default.node,
        metavar="NAME",
        help="the node's name with its namespace (default %(default)s)",
    )
    for option, topic in (("--joint-states", default.joint_states), ("--wrench", default.wrench)):
        parser.add_argument(
            option,
            default=topic,
            metavar="TOPIC",
            help="topic of the measurement (default %(default)s)",
        )
    parser.add_argument(
        "--base",
        default=default.base,
        metavar="FRAME",
        help="fixed frame of the 3D view (default %(default)s)",
    )
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Write the files, and print their names."""
    topics = Topics(args.node, args.joint_states, args.wrench, base=args.base)
    files = {args.out / name: text for name, text in contents(topics, args.joints).items()}
    check_replaced(files, overwrite=args.overwrite)
    write_files(files)
    print(*files, sep="\n")
    return 0
