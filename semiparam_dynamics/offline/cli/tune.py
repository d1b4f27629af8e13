"""`semiparam tune BAG ... --urdf FILE --out tuned.yaml`."""

from __future__ import annotations

import argparse
import sys

from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.offline.cli import options
from semiparam_dynamics.offline.evaluation.bags import Bags
from semiparam_dynamics.offline.evaluation.training import node_yaml
from semiparam_dynamics.offline.tuning.candidates import CRITERIA
from semiparam_dynamics.offline.tuning.tuner import summary, tune_on_bags

DESCRIPTION = """\
Choose the learner's hyperparameters (filter, ridges, kernel, features) on recordings of the robot.
Whole recordings are held out in turn (the thirds of the only one); the configuration stays where
nothing is better there by more than chance. Writes the node's YAML, and next to it a journal: after
Ctrl-C the same command resumes. Judge the result on another recording: semiparam evaluate OTHER
--train BAG ... --params tuned.yaml --out results."""
EXAMPLES = (
    "semiparam tune BAG1 BAG2 --urdf robot.urdf --out tuned.yaml",
    "semiparam tune BAG1 BAG2 --params my_arm.yaml --keep filter --out tuned.yaml",
    "semiparam tune BAG --criterion frozen --jobs 2 --out tuned.yaml",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    options.add_bags(parser)
    parser.add_argument(
        "--keep",
        metavar="NAME",
        action="append",
        default=[],
        help="parameter or group, such as filter, left as it is (may be repeated); residual: "
        "the kind of features",
    )
    parser.add_argument(
        "--criterion",
        choices=CRITERIA,
        default="delayed",
        help="the error that is made small: predicted half a second before it is learned "
        "(default), or with learning switched off",
    )
    options.add_workers(parser, jobs="processes (default 0: one a core)")
    options.add_topics(parser, "what is measured")
    options.add_output(parser, "the node's YAML goes (of a folder tuned.yaml)", "FILE")


def run(args: argparse.Namespace) -> int:
    """Tune, write the files, and print what was found."""
    out = options.yaml_file(args.out, "tuned.yaml")
    config = options.learner_config(args)
    bags = Bags((), args.bags, args.urdf, args.joint_states, args.wrench)
    work = options.work(args, [out], "tuning", bags.warnings)
    try:
        with work as progress, options.workers(args) as executor:
            tuning = tune_on_bags(
                bags,
                config,
                keep=args.keep,
                criterion=args.criterion,
                journal=out.with_suffix(".journal"),
                executor=executor,
                progress=progress,
            )
            write_files({out: node_yaml(tuning.config, args.urdf)})
    except KeyboardInterrupt:
        print("semiparam: interrupted; the same command resumes from here", file=sys.stderr)
        raise
    print(summary(tuning), out, sep="\n")
    return 0
