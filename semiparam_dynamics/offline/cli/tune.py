"""`semiparam tune BAG ... --urdf FILE --out tuned.yaml`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.output_files import reserved
from semiparam_dynamics.base.progress import ProgressBar, duration
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.cli.options import (
    add_bags,
    add_topics_and_output,
    add_workers,
    learner_config,
    warn,
    workers,
)
from semiparam_dynamics.offline.evaluation.bags import Bags
from semiparam_dynamics.offline.tuning.candidates import Tuning
from semiparam_dynamics.offline.tuning.on_bags import tune_on_bags, write_tuning
from semiparam_dynamics.offline.tuning.page import text

DESCRIPTION = """\
Choose the learner's hyperparameters (filter, ridges, kernel, features) on recordings of the robot.
Whole recordings are held out in turn (the thirds of the only one), and regions of the positions;
a choice that does harm there is not made. Writes the node's YAML, a page with the curves beside it,
and a journal: after Ctrl-C the same command resumes. Judge the result on a recording kept out:
semiparam evaluate OTHER --train BAG ... --params tuned.yaml --out results."""
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
        choices=("delayed", "frozen", "evidence"),
        default="delayed",
        help="what decides: the error half a second before learning (default), the error with "
        "learning switched off, or the marginal likelihood",
    )
    add_workers(parser, jobs="processes (default 0: one a core)")
    add_topics_and_output(
        parser, target="what is measured", out="the node's YAML goes", metavar="FILE"
    )


def run(args: argparse.Namespace) -> int:
    """Tune, write the files, and print what was found."""
    out = Path(args.out).expanduser()
    if out.suffix not in (".yaml", ".yml"):
        raise ConfigurationError(f"--out {out}: name a YAML file, such as tuned.yaml")
    config = learner_config(args)
    bags = Bags((), args.bags, args.urdf, args.joint_states, args.wrench)
    files = out, out.with_suffix(".html")
    with reserved(files, overwrite=args.overwrite):
        try:
            tuning = _tune(args, bags, config, out.with_suffix(".journal"))
        finally:
            warn(bags.warnings)  # they may tell why there is nothing to learn
        write_tuning(tuning, out, args.urdf)
    print(text(tuning))
    print(*files, sep="\n")
    return 0


def _tune(
    args: argparse.Namespace, bags: Bags, config: InverseDynamicsConfig, journal: Path
) -> Tuning:
    bars = _Bars()
    try:
        with workers(args) as executor:
            return tune_on_bags(
                bags,
                config,
                keep=args.keep,
                criterion=args.criterion,
                journal=journal,
                executor=executor,
                stage=bars,
            )
    except KeyboardInterrupt:
        bars.close()
        print("semiparam: interrupted; the same command resumes from here", file=sys.stderr)
        raise
    finally:
        bars.close()


class _Bars:
    """A progress bar for each stage, one after the other, with the time that is left."""

    def __init__(self) -> None:
        self._bar: ProgressBar | None = None

    def __call__(self, title: str, left: float) -> Callable[[float], None]:
        if self._bar is None:
            print(f"semiparam: this takes about {duration(left)} here", file=sys.stderr)
        self.close()
        self._bar = ProgressBar(f"{title:<28}", sys.stderr, left)
        self._bar(0.0)
        return self._bar

    def close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
