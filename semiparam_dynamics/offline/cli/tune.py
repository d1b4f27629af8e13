"""`semiparam tune BAG ... --urdf FILE --out tuned.yaml`."""

from __future__ import annotations

import argparse
import sys

from semiparam_dynamics.base.output_files import reserved, write_files
from semiparam_dynamics.base.progress import ProgressBar
from semiparam_dynamics.offline.cli.light_options import warn
from semiparam_dynamics.offline.cli.options import (
    add_bags,
    add_output,
    add_topics,
    add_workers,
    learner_config,
    workers,
    yaml_file,
)
from semiparam_dynamics.offline.evaluation.bags import Bags
from semiparam_dynamics.offline.evaluation.training import node_yaml
from semiparam_dynamics.offline.tuning.candidates import CRITERIA
from semiparam_dynamics.offline.tuning.summary import summary
from semiparam_dynamics.offline.tuning.tuner import tune_on_bags

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
    add_bags(parser)
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
    add_workers(parser, jobs="processes (default 0: one a core)")
    add_topics(parser, "what is measured")
    add_output(parser, "the node's YAML goes (of a folder tuned.yaml)", "FILE")


def run(args: argparse.Namespace) -> int:
    """Tune, write the files, and print what was found."""
    out = yaml_file(args.out, "tuned.yaml")
    config = learner_config(args)
    bags = Bags((), args.bags, args.urdf, args.joint_states, args.wrench)
    with reserved([out], overwrite=args.overwrite):
        try:
            with workers(args) as executor, ProgressBar("tuning", sys.stderr) as progress:
                tuning = tune_on_bags(
                    bags,
                    config,
                    keep=args.keep,
                    criterion=args.criterion,
                    journal=out.with_suffix(".journal"),
                    executor=executor,
                    progress=progress,
                )
        except KeyboardInterrupt:
            print("semiparam: interrupted; the same command resumes from here", file=sys.stderr)
            raise
        finally:
            warn(bags.warnings)  # they may say why there is nothing to learn
        write_files({out: node_yaml(tuning.config, args.urdf)})
    print(summary(tuning), out, sep="\n")
    return 0
