"""`semiparam evaluate BAG ... --urdf FILE --out DIR`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

DESCRIPTION = """\
Lead the learner through bags, as the live node would go through the same messages, and score it:
sequential (predict, score, learn), delayed (the residual predicts half a second before it learns
it) and frozen (nothing is learned). With --train the models first learn those bags, and with
--model they go on from a saved model; without either, the first 60 % of the time is the training
part of frozen. Writes results.json, params.yaml and report.html. Bags: rosbag2 folders, bare .db3
or .mcap files; split or compressed ones, and those that broke off as far as they go."""


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    from semiparam_dynamics.cli.bag_options import add_bags, add_topics_and_output

    parser = subparsers.add_parser(
        "evaluate", help="how good the learner is on recorded bags", description=DESCRIPTION
    )
    add_bags(parser)
    parser.add_argument(
        "--train", metavar="BAG", nargs="+", default=[], help="bags learned before the scoring"
    )
    parser.add_argument(
        "--model",
        metavar="FILE",
        default="",
        help="go on from a saved model, of the node or of `semiparam train`, with its --params",
    )
    add_topics_and_output(parser, out="the results go")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Evaluate, write the results, and print the summary."""
    from semiparam_dynamics.cli.bag_options import learner_config, warn
    from semiparam_dynamics.evaluation.bags import Bags, evaluate_bags
    from semiparam_dynamics.evaluation.results import write_results
    from semiparam_dynamics.evaluation.summary import summary_table
    from semiparam_dynamics.progress import ProgressBar

    config = learner_config(args)
    bags = Bags(args.bags, args.train, args.urdf, args.joint_states, args.wrench)
    with ProgressBar("evaluating", sys.stderr) as progress:
        evaluation = evaluate_bags(bags, config, progress, start=args.model)
    warn(bags.warnings)
    write_results(evaluation, Path(args.out))
    print(summary_table(evaluation.results()))
    print(f"{Path(args.out) / 'report.html'}")
    return 0
