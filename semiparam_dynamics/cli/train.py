"""`semiparam train BAG ... --urdf FILE --out DIR`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

DESCRIPTION = """\
Train the learner on bags in batch, as a start that it goes on learning from: the rigid body, then
the residual by one of the learning library's estimators, with the width, penalty and number of
centres that the parameters say. Writes model.npz and params.yaml; the node given params.yaml
(ros2 run semiparam_dynamics inverse_dynamics --ros-args --params-file DIR/params.yaml) loads the
model when it starts. Bags: rosbag2 folders, bare .db3 or .mcap files."""


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    from semiparam_dynamics.cli.options import add_config_options
    from semiparam_dynamics.config import InverseDynamicsConfig
    from semiparam_dynamics.dynamics.batch_learners import CENTERS, LEARNERS

    parser = subparsers.add_parser(
        "train", help="train on bags in batch, for the node to start from", description=DESCRIPTION
    )
    parser.add_argument("bags", metavar="BAG", nargs="+")
    parser.add_argument(
        "--urdf", metavar="FILE", default="", help="default: the bag's robot_description"
    )
    parser.add_argument(
        "--learner",
        choices=tuple(LEARNERS),
        help="random_features trains the residual random_fourier, the others nystrom; "
        "default: random_features or nystrom_krls, by the parameter residual",
    )
    parser.add_argument(
        "--centers",
        choices=CENTERS,
        default="novelty",
        help="how centres are chosen: novelty adds them as the node would (default)",
    )
    parser.add_argument("--target", choices=("effort", "wrench"), help="what is predicted")
    parser.add_argument(
        "--joint-states", metavar="TOPIC", default="", help="default: the only one of its type"
    )
    parser.add_argument("--wrench", metavar="TOPIC", default="", help="the same for the wrench")
    parser.add_argument("--out", metavar="DIR", required=True, help="where the files go")
    add_config_options(parser, InverseDynamicsConfig)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train, write the model and its parameters, and print the training errors."""
    from semiparam_dynamics.cli.options import config_from
    from semiparam_dynamics.config import InverseDynamicsConfig
    from semiparam_dynamics.evaluation.bags import Bags
    from semiparam_dynamics.evaluation.training import (
        train_on_bags,
        training_table,
        write_training,
    )
    from semiparam_dynamics.nodes.config import InverseDynamicsNodeConfig
    from semiparam_dynamics.parameters import parameters, replace
    from semiparam_dynamics.progress import ProgressBar

    # The node's YAML serves as it is; what only the node needs is passed over.
    names = [entry.name for entry in parameters(InverseDynamicsNodeConfig)]
    own = set(names) - {entry.name for entry in parameters(InverseDynamicsConfig)}
    config = config_from(args, InverseDynamicsConfig, "inverse_dynamics", ignore=own)
    if args.target:
        config = replace(config, target=args.target)
    bags = Bags((), args.bags, args.urdf, args.joint_states, args.wrench)
    with ProgressBar("reading", sys.stderr) as progress:
        training = train_on_bags(bags, config, args.learner, args.centers, progress)
    for warning in bags.warnings:
        print(f"semiparam: warning: {warning}", file=sys.stderr)
    out = Path(args.out)
    write_training(training, out, args.urdf)
    print(training_table(training))
    print(f"{out / 'model.npz'}\n{out / 'params.yaml'}")
    return 0
