"""`semiparam doctor BAG --urdf FILE`."""

from __future__ import annotations

import argparse
from pathlib import Path

from semiparam_dynamics.base.output_files import reserved
from semiparam_dynamics.offline.cli.options import add_bags, add_output, add_topics, learner_config
from semiparam_dynamics.offline.doctor.examination import (
    FILES,
    examine_bag,
    summary,
    write_examination,
)

DESCRIPTION = """\
Examine a bag before anything is learned from it: units, signs and scales of efforts, exchanged
joints, gravity that is missing or points elsewhere, delays, wraps, columns that are empty, stuck or
coarse, stamps, gaps, limits, rest. Each finding comes with numbers and with what to do. With --out
it writes doctor.html, and doctor.yaml with the parameters that correct what parameters can: give it
to the other commands with --params, and to the node. The exit code is 1 if a fault was found."""
EXAMPLES = (
    "semiparam doctor BAG",
    "semiparam doctor BAG --urdf robot.urdf --out doctor",
    "semiparam doctor BAG --set joints=joint1,joint2 --out doctor",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    add_bags(parser, nargs=None, name="bag")
    add_topics(parser, "what is to be learned")
    add_output(parser, "the page and the YAML go", required=False)


def run(args: argparse.Namespace) -> int:
    """Examine the bag and print the findings; 1 where there is a fault."""
    config = learner_config(args)
    out = Path(args.out).expanduser()
    files = [out / name for name in FILES] if args.out else []
    with reserved(files, overwrite=args.overwrite):
        found = examine_bag(
            args.bag,
            config,
            urdf=args.urdf,
            joint_states=args.joint_states,
            target=args.target or "",
            wrench=args.wrench,
        )
        if files:
            write_examination(found, out, Path(args.bag).name)
    print("\n".join([summary(found), *map(str, files)]))
    return int(any(finding.fault for finding in found.findings))
