"""`semiparam identify BAG ... --urdf FILE --out DIR`."""

from __future__ import annotations

import argparse
from pathlib import Path

from semiparam_dynamics.offline.cli import options
from semiparam_dynamics.offline.evaluation.bags import Bags
from semiparam_dynamics.offline.evaluation.identification import (
    MJCF_FILE,
    TABLE_FILE,
    URDF_FILE,
    identification_text,
    identify_on_bags,
    write_identification,
)
from semiparam_dynamics.simulation.urdf import require

DESCRIPTION = """\
Identify the robot's parameters on bags such that a robot can have them: every mass positive, every
pseudo-inertia positive definite, friction and rotor inertias not below 0. What the motion does not
show stays as the URDF has it. Says first what the files gain on motion that was not learned. Writes
identified.urdf, the URDF with these inertias and joint friction and all else as it was, and
parameters.csv: of each parameter the URDF's and the identified value, its standard deviation, how
much the data determined it, from 0 to 1, and what the files hold."""
EXAMPLES = (
    "semiparam identify BAG --urdf robot.urdf --out identified",
    "semiparam identify BAG1 BAG2 --test BAG3 --mjcf --out identified",
    "semiparam identify BAG --set rotor_inertia=false --out without",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    options.add_bags(parser)
    parser.add_argument(
        "--test",
        metavar="BAG",
        nargs="+",
        default=[],
        help="bags that the files are scored on (default: the last 40 %% of each bag, with files "
        "identified on the first 60 %%)",
    )
    parser.add_argument("--mjcf", action="store_true", help="write identified.xml too, for MuJoCo")
    options.add_topics(parser, "what is measured")
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Identify, write the files, and print what they gain."""
    config = options.learner_config(args)
    bags = Bags(args.test, args.bags, args.urdf, args.joint_states, args.wrench)
    out = Path(args.out).expanduser()
    files = [out / URDF_FILE, out / TABLE_FILE]
    if args.mjcf:
        require("mujoco")  # before anything is read
        files.append(out / MJCF_FILE)
    with options.work(args, files, "reading", bags.warnings) as progress:
        identification = identify_on_bags(bags, config, progress)
        write_identification(identification, out, mjcf=args.mjcf)
    print(identification_text(identification, mjcf=args.mjcf))
    print(*files, sep="\n")
    return 0
