"""`semiparam train BAG ... --urdf FILE --out DIR`."""

from __future__ import annotations

import argparse
from pathlib import Path

from semiparam_dynamics.offline.cli import options
from semiparam_dynamics.offline.evaluation.bags import Bags
from semiparam_dynamics.offline.evaluation.training import (
    LEARNERS,
    MODEL_FILE,
    PARAMETERS_FILE,
    train_on_bags,
    training_table,
    write_training,
)

DESCRIPTION = """\
Train the learner on bags in batch, as a start for learning online: the rigid body, then
the residual by one of the learning library's estimators, with the width, penalty and number of
centres that the parameters say. Writes model.npz and params.yaml; the node given params.yaml
(ros2 run semiparam_dynamics inverse_dynamics --ros-args --params-file DIR/params.yaml) loads the
model when it starts."""
EXAMPLES = (
    "semiparam train BAG --out trained",
    "semiparam train BAG1 BAG2 --params tuned.yaml --out trained",
    "semiparam train BAG --learner falkon --set nystrom.max_centers=2000 --out big",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    options.add_bags(parser)
    parser.add_argument(
        "--learner",
        choices=tuple(LEARNERS),
        help="random_features trains the residual random_fourier, the others nystrom; "
        "default: random_features or nystrom_krls, by the parameter residual",
    )
    options.add_topics(parser)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Train, write the model and its parameters, and print the training errors."""
    config = options.learner_config(args)
    bags = Bags((), args.bags, args.urdf, args.joint_states, args.wrench)
    out = Path(args.out).expanduser()
    files = out / MODEL_FILE, out / PARAMETERS_FILE
    with options.work(args, files, "reading", bags.warnings) as progress:
        training = train_on_bags(bags, config, args.learner, progress)
        write_training(training, out, args.urdf)
    print(training_table(training))
    print(*files, sep="\n")
    return 0
