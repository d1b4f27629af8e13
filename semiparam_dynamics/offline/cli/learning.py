"""Verbs that learn from bags: `evaluate`, `compare`, `train`, `identify`, `tune`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.extras import imported
from semiparam_dynamics.base.output_files import reserved, write_files
from semiparam_dynamics.base.progress import ProgressBar
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.curves import NEEDS_RERUN
from semiparam_dynamics.offline.cli import options
from semiparam_dynamics.offline.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.offline.evaluation.comparison import (
    comparison_text,
    each_files,
    evaluate_each,
    read_result,
    results_table,
    write_each,
)
from semiparam_dynamics.offline.evaluation.report import (
    EVALUATION_FILES,
    summary_table,
    verdict,
    write_rerun,
    write_results,
)

EXAMPLES = {
    "evaluate": (
        "semiparam evaluate BAG --target effort --out results",
        "semiparam evaluate BAG3 --train BAG1 BAG2 --params my_arm.yaml --out tuned",
        "semiparam evaluate BAG --set filter.cutoff=8 --out try",
    ),
    "compare": (
        "semiparam compare before after",
        "semiparam compare results tuned",
        "semiparam compare nystrom random_fourier tuned",
    ),
    "train": (
        "semiparam train BAG --out trained",
        "semiparam train BAG1 BAG2 --params tuned.yaml --out trained",
        "semiparam train BAG --learner falkon --set nystrom.max_centers=2000 --out big",
    ),
    "identify": (
        "semiparam identify BAG --urdf robot.urdf --out identified",
        "semiparam identify BAG1 BAG2 --test BAG3 --mjcf --out identified",
        "semiparam identify BAG --set rotor_inertia=false --out without",
    ),
    "tune": (
        "semiparam tune BAG1 BAG2 --urdf robot.urdf --out tuned.yaml",
        "semiparam tune BAG1 BAG2 --params my_arm.yaml --keep filter --out tuned.yaml",
        "semiparam tune BAG --criterion frozen --jobs 2 --out tuned.yaml",
    ),
}


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `evaluate`."""
    options.add_bags(parser)
    parser.add_argument(
        "--train",
        metavar="BAG",
        nargs="+",
        default=[],
        help="bags learned before the scoring; those to score come first",
    )
    options.add_options(
        parser,
        (
            "--model",
            "",
            "FILE",
            "start from a saved model, and without --params from its parameters",
        ),
        ("--each", False, "", "each bag separately, all from the same --model, over the cores"),
        ("--table", False, "", "also print the errors of every axis"),
        ("--rerun", "", "FILE", "also write predictions for the viewer Rerun"),
    )
    options.add_workers(parser, jobs="processes for --each (default 0: one a core)")
    options.add_topics(parser)
    options.add_output(parser, "the results go")


def run_evaluate(args: argparse.Namespace) -> int:
    """Run the learner over bags, as the live node would process the same messages, and score
    it: sequential (predict, score, learn), delayed (the residual predicts half a second before
    it learns it) and frozen (nothing is learned; without --train and --model the first 60 % of
    the time from the first motion on is learned before). Writes results.json, params.yaml and
    report.html.
    """
    _check(args)
    config = options.learner_config(args, args.model)
    topics = args.joint_states, args.wrench
    bags = Bags(args.bags, args.train, args.urdf, *topics, command=args.command_line)
    out = Path(args.out).expanduser()
    if args.each:
        with reserved(each_files(bags, out), overwrite=args.overwrite):
            return _run_each(args, bags, config, out)
    viewer = [Path(args.rerun).expanduser()] if args.rerun else []
    with reserved([*(out / name for name in EVALUATION_FILES), *viewer], overwrite=args.overwrite):
        with ProgressBar("evaluating", sys.stderr) as progress:
            evaluation = evaluate_bags(bags, config, progress, start=args.model)
        options.warn(bags.warnings)
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
        options.warn(f"{result.name}: {warning}" for warning in result.warnings)
    write_each(results, out)
    print(results_table(results))
    if args.table:
        for result in results:
            if not result.error:
                print(f"\n{result.name}\n{summary_table(result.results)}")
    print(out / "report.html")
    return int(any(result.error for result in results))


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `compare`."""
    parser.add_argument(
        "results", metavar="OUT", nargs="+", type=Path, help="folder that evaluate --out wrote"
    )


def run_compare(args: argparse.Namespace) -> int:
    """Compare evaluations with the first: for each protocol and model the squared error
    relative to it, the settings that differ, and whether the figures can be compared at all,
    which needs the same bags and URDF.
    """
    if len(args.results) < 2:
        raise ConfigurationError("compare needs the folders of two evaluations or more")
    print(comparison_text([read_result(place) for place in args.results]))
    return 0


def add_train(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `train`."""
    from semiparam_dynamics.offline.evaluation.training import LEARNERS

    options.add_bags(parser)
    parser.add_argument(
        "--learner",
        choices=tuple(LEARNERS),
        help="random_features trains the residual random_fourier, the others nystrom; "
        "default: random_features or nystrom_krls, by the parameter residual",
    )
    options.add_topics(parser)
    options.add_output(parser)


def run_train(args: argparse.Namespace) -> int:
    """Train the learner on bags in batch, as a start for learning online: the rigid body, then
    the residual by one of the learning library's estimators, with the width, penalty and number
    of centres that the parameters say. Writes model.npz and params.yaml; the node given
    params.yaml (ros2 run semiparam_dynamics inverse_dynamics --ros-args --params-file
    DIR/params.yaml) loads the model when it starts.
    """
    from semiparam_dynamics.offline.evaluation import training

    config = options.learner_config(args)
    bags = Bags((), args.bags, args.urdf, args.joint_states, args.wrench)
    out = Path(args.out).expanduser()
    files = out / training.MODEL_FILE, out / training.PARAMETERS_FILE
    with options.work(args, files, "reading", bags.warnings) as progress:
        trained = training.train_on_bags(bags, config, args.learner, progress)
        training.write_training(trained, out, args.urdf)
    print(training.training_table(trained))
    print(*files, sep="\n")
    return 0


def add_identify(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `identify`."""
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


def run_identify(args: argparse.Namespace) -> int:
    """Identify the robot's parameters on bags such that a robot can have them: every mass
    positive, every pseudo-inertia positive definite, friction and rotor inertias not below 0.
    What the motion does not show stays as the URDF has it. Says first what the files gain on
    motion that was not learned. Writes identified.urdf, the URDF with these inertias and joint
    friction and all else as it was, and parameters.csv: of each parameter the URDF's and the
    identified value, its standard deviation, how much the data determined it, from 0 to 1, and
    what the files hold.
    """
    from semiparam_dynamics.offline.identification import identify
    from semiparam_dynamics.simulation.urdf import require

    config = options.learner_config(args)
    bags = Bags(args.test, args.bags, args.urdf, args.joint_states, args.wrench)
    out = Path(args.out).expanduser()
    files = [out / identify.URDF_FILE, out / identify.TABLE_FILE]
    if args.mjcf:
        require("mujoco")  # before anything is read
        files.append(out / identify.MJCF_FILE)
    with options.work(args, files, "reading", bags.warnings) as progress:
        identification = identify.identify_on_bags(bags, config, progress)
        identify.write_identification(identification, out, mjcf=args.mjcf)
    print(identify.identification_text(identification, mjcf=args.mjcf))
    print(*files, sep="\n")
    return 0


def add_tune(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `tune`."""
    from semiparam_dynamics.offline.tuning.candidates import CRITERIA

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


def run_tune(args: argparse.Namespace) -> int:
    """Choose the learner's hyperparameters (filter, ridges, kernel, features) on recordings of
    the robot. Whole recordings are held out in turn (the thirds of the only one); the
    configuration stays where nothing is better there by more than chance. Writes the node's
    YAML, and next to it a journal: after Ctrl-C the same command resumes. Judge the result on
    another recording: semiparam evaluate OTHER --train BAG ... --params tuned.yaml --out
    results.
    """
    from semiparam_dynamics.offline.evaluation.training import node_yaml
    from semiparam_dynamics.offline.tuning.tuner import summary, tune_on_bags

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
