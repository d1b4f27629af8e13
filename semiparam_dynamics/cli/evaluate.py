"""`semiparam evaluate BAG ... --urdf FILE --out DIR`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from semiparam_dynamics.cli.options import (
    add_bags,
    add_topics_and_output,
    add_workers,
    learner_config,
    warn,
    workers,
)
from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.evaluation.per_bag import evaluate_each, results_table, write_each
from semiparam_dynamics.evaluation.report import summary_table, write_results
from semiparam_dynamics.progress import ProgressBar

DESCRIPTION = """\
Run the learner over bags, as the live node would process the same messages, and score it:
sequential (predict, score, learn), delayed (the residual predicts half a second before it learns
it) and frozen (nothing is learned). With --train the models first learn those bags, and with
--model they start from a saved model; without either, the first 60 % of the time is the training
part of frozen. Writes results.json, params.yaml and report.html. With --each the bags don't follow
each other: each is evaluated for itself, all from the same --model, over the cores or a cluster.
Bags: rosbag2 folders, bare .db3 or .mcap files; split or compressed ones, and truncated ones
as far as they can be read."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    add_bags(parser)
    parser.add_argument(
        "--train", metavar="BAG", nargs="+", default=[], help="bags learned before the scoring"
    )
    parser.add_argument(
        "--model",
        metavar="FILE",
        default="",
        help="start from a saved model, of the node or of `semiparam train`; without --params "
        "with the parameters that it was learned with",
    )
    parser.add_argument(
        "--each",
        action="store_true",
        help="each bag for itself, into a folder of its name, and a page over all of them",
    )
    add_workers(parser, jobs="processes for --each (default: one a core)")
    add_topics_and_output(parser, out="the results go")


def run(args: argparse.Namespace) -> int:
    """Evaluate, write the results, and print the summary."""
    _check(args)
    config = learner_config(args, args.model)
    bags = Bags(args.bags, args.train, args.urdf, args.joint_states, args.wrench)
    if args.each:
        return _run_each(args, bags, config)
    with ProgressBar("evaluating", sys.stderr) as progress:
        evaluation = evaluate_bags(bags, config, progress, start=args.model)
    warn(bags.warnings)
    write_results(evaluation, Path(args.out))
    print(summary_table(evaluation.results()))
    print(f"{Path(args.out) / 'report.html'}")
    return 0


def _check(args: argparse.Namespace) -> None:
    if not args.each and (args.cluster or args.jobs):
        raise ConfigurationError(
            "Bags that follow each other are learned one after the other, by one process: --jobs "
            "and --cluster go with --each, which evaluates each bag for itself."
        )
    if args.each and args.train:
        raise ConfigurationError(
            "--each starts from a saved model: train it once, by `semiparam train BAG ... "
            "--out DIR`, and name it in place of --train: --model DIR/model.npz."
        )


def _run_each(args: argparse.Namespace, bags: Bags, config: InverseDynamicsConfig) -> int:
    """Evaluate each bag for itself; 1 if some could not be."""
    spread = workers(args, most=len(bags.test))
    with spread as executor, ProgressBar("evaluating", sys.stderr) as progress:
        results = evaluate_each(bags, config, executor, progress, start=args.model)
    for result in results:
        warn(f"{result.name}: {warning}" for warning in result.warnings)
    write_each(results, Path(args.out))
    print(results_table(results))
    print(f"{Path(args.out) / 'report.html'}")
    return int(any(result.error for result in results))
