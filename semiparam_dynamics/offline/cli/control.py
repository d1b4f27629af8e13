"""`semiparam control`."""

from __future__ import annotations

import argparse
from pathlib import Path

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.extras import require
from semiparam_dynamics.base.output_files import reserved, write_files
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.control.comparison import ComparisonConfig, compare
from semiparam_dynamics.control.report import control_report, control_results, control_table
from semiparam_dynamics.offline.cli.options import (
    add_config_options,
    add_overwrite,
    config_from,
)

DESCRIPTION = """\
See how much a controller profits from the learner: a simulated arm with friction, elasticity and
noise follows the same motion three times, with the feed-forward of the URDF, of the learned rigid
body and of the semiparametric model, each learning while it moves. Prints the tracking errors and
writes DIR/control.html and DIR/control.json. Learner, controller and arm run in one process, so
that a seed always gives the same numbers; launch/controller.launch.py runs the three as nodes."""
EXAMPLES = (
    "semiparam control",
    "semiparam control --urdf robot.urdf --out feedforward",
    "semiparam control --mass-error 0.1 0.3 --set learner.rigid_body.prior=zero",
)
# Where neither a file nor --set names them.
DEFAULTS = {
    "rate": 500.0,
    "motion": "exciting",
    "seed": 0,
    "learner.filter.max_rate": 100.0,
    "learner.rigid_body.prior": "urdf",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("--urdf", default="", help="the arm's URDF (default: the iCub's right arm)")
    parser.add_argument(
        "--seconds", type=float, default=30.0, metavar="S", help="of motion (default %(default)g)"
    )
    parser.add_argument(
        "--since",
        type=float,
        default=10.0,
        metavar="S",
        help="seconds after which errors count (default %(default)g)",
    )
    parser.add_argument(
        "--mass-error",
        type=float,
        nargs=2,
        default=(0.0, 0.0),
        metavar=("LEAST", "MOST"),
        help="least and largest relative error of the links' masses in the URDF that controller "
        "and learner are given, such as 0.1 0.3 (default: none)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("control_out"),
        metavar="DIR",
        help="where the results go (default %(default)s)",
    )
    add_overwrite(parser)
    add_config_options(parser, ComparisonConfig)


def run(args: argparse.Namespace) -> int:
    """Run the three, print the table and write the page."""
    require("semiparam control", "sim")
    if not 0.0 < args.since < args.seconds:
        raise ConfigurationError(
            f"--since must lie between 0 and --seconds ({args.seconds:g}), not {args.since:g}"
        )
    config = _config(args)
    print(f"{args.seconds:g} s of motion with each feed-forward ...", flush=True)
    page, results = args.out / "control.html", args.out / "control.json"
    with reserved((page, results), overwrite=args.overwrite):
        comparison = compare(
            args.urdf,
            config,
            args.seconds,
            args.since,
            mass_error=tuple(args.mass_error),
            finished=lambda name, done: print(f"  {name} done", flush=True),
        )
        texts = (
            control_report(comparison, _facts(args, config)),
            control_results(comparison, config.simulator.seed),
        )
        write_files(dict(zip((page, results), texts, strict=True)))
    print(control_table(comparison))
    print(f"open {page.absolute()} for the figures")
    return 0


def _config(args: argparse.Namespace) -> ComparisonConfig:
    """The parameters of file and --set.

    The gains include the simulated rotors, as a robot's maker would, unless others are given.
    """
    config = config_from(args, ComparisonConfig, defaults=DEFAULTS)
    if any(config.controller.gains.rotor_inertia):
        return config
    rotors = (config.simulator.effects.rotor_inertia,)
    return replace(config, **{"controller.gains.rotor_inertia": rotors})


def _facts(args: argparse.Namespace, config: ComparisonConfig) -> list[str]:
    least, most = args.mass_error
    simulator = config.simulator
    arm = Path(args.urdf).name if args.urdf else "The iCub's right arm"
    masses = "true masses"
    if most > 0.0:
        masses = f"masses wrong by {100 * least:g} to {100 * most:g} %"
    return [
        f"{arm}: {args.seconds:g} s of the motion '{simulator.motion}' at "
        f"{simulator.rate:g} Hz, seed {simulator.seed}; errors count from {args.since:g} s on.",
        f"Controller and learner were given a URDF with {masses}; a URDF has no friction.",
        "Learner, controller and simulated arm ran in one process; each command acts one period "
        "after its measurement.",
    ]
