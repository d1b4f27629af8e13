"""`semiparam evaluate BAG ... --urdf FILE --out DIR`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.extras import imported
from semiparam_dynamics.base.output_files import reserved
from semiparam_dynamics.base.progress import ProgressBar
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.curves import NEEDS_RERUN
from semiparam_dynamics.offline.cli import options
from semiparam_dynamics.offline.cli.light_options import warn
from semiparam_dynamics.offline.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.offline.evaluation.per_bag import (
    each_files,
    evaluate_each,
    results_table,
    write_each,
)
from semiparam_dynamics.offline.evaluation.report import (
    FILES,
    summary_table,
    verdict,
    write_rerun,
    write_results,
)

DESCRIPTION = """\
Run the learner over bags, as the live node would process the same messages, and score it:
sequential (predict, score, learn), delayed (the residual predicts half a second before it learns
it) and frozen (nothing is learned; without --train and --model the first 60 % of the time from the
first motion on is learned before). Writes results.json, params.yaml and report.html."""
EXAMPLES = (
    "semiparam evaluate BAG --target effort --out results",
    "semiparam evaluate BAG3 --train BAG1 BAG2 --params my_arm.yaml --out tuned",
    "semiparam evaluate BAG --set filter.cutoff=8 --out try",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    options.add_bags(parser)
    parser.add_argument(
        "--train",
        metavar="BAG",
        nargs="+",
        default=[],
        help="bags learned before the scoring; those to score come first",
    )
    parser.add_argument(
        "--model",
        metavar="FILE",
        default="",
        help="start from a saved model, and without --params from its parameters",
    )
    parser.add_argument(
        "--each",
        action="store_true",
        help="each bag separately, all from the same --model, over the cores",
    )
    parser.add_argument("--table", action="store_true", help="also print the errors of every axis")
    parser.add_argument(
        "--rerun", metavar="FILE", default="", help="also write predictions for the viewer Rerun"
    )
    options.add_workers(parser, jobs="processes for --each (default 0: one a core)")
    options.add_topics(parser)
    options.add_output(parser, "the results go")


def run(args: argparse.Namespace) -> int:
    """Evaluate, write the results, and print the summary."""
    _check(args)
    config = options.learner_config(args, args.model)
    topics = args.joint_states, args.wrench
    bags = Bags(args.bags, args.train, args.urdf, *topics, command=args.command_line)
    out = Path(args.out).expanduser()
    if args.each:
        with reserved(each_files(bags, out), overwrite=args.overwrite):
            return _run_each(args, bags, config, out)
    viewer = [Path(args.rerun).expanduser()] if args.rerun else []
    with reserved([*(out / name for name in FILES), *viewer], overwrite=args.overwrite):
        with ProgressBar("evaluating", sys.stderr) as progress:
            evaluation = evaluate_bags(bags, config, progress, start=args.model)
        warn(bags.warnings)
        write_results(evaluation, out)
        for path in viewer:
            write_rerun(evaluation, path)
    print(verdict(evaluation, facts=not args.table))
    if args.table:
        print(f"\n{summary_table(evaluation.results())}")
    print("\n".join(map(str, [out / "report.html", *viewer])))
    return 0


def _check(args: argparse.Namespace) -> None:
    if not args.each and (args.cluster or args.jobs):
        raise ConfigurationError(
            "Bags that follow each other are learned one after the other, by one process: --jobs "
            "and --cluster go with --each, which evaluates each bag for itself."
        )
    if args.rerun:
        imported("rerun", NEEDS_RERUN)  # before long work
        if args.each:
            raise ConfigurationError("--rerun writes one evaluation: leave out --each")
    if args.each and args.train:
        raise ConfigurationError(
            "--each starts from a saved model: train it once, by `semiparam train BAG ... "
            "--out DIR`, and name it in place of --train: --model DIR/model.npz."
        )


def _run_each(
    args: argparse.Namespace, bags: Bags, config: InverseDynamicsConfig, out: Path
) -> int:
    """Evaluate each bag for itself; 1 if some could not be."""
    spread = options.workers(args, most=len(bags.test))
    with spread as executor, ProgressBar("evaluating", sys.stderr) as progress:
        results = evaluate_each(bags, config, executor, progress, start=args.model)
    for result in results:
        warn(f"{result.name}: {warning}" for warning in result.warnings)
    write_each(results, out)
    print(results_table(results))
    if args.table:
        for result in results:
            if not result.error:
                print(f"\n{result.name}\n{summary_table(result.results)}")
    print(out / "report.html")
    return int(any(result.error for result in results))
