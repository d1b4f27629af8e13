"""`semiparam demo`."""

from __future__ import annotations

import argparse
import shutil
import sys
import webbrowser
from pathlib import Path

from semiparam_dynamics.offline.cli.light_options import add_page, page_port

DESCRIPTION = """\
Watch a robot's dynamics being learned: the iCub's right arm in MuJoCo and the learner run as two
ROS 2 nodes; the hand draws circles in the XY plane and, from half time on, in the XZ plane, which
the learner has not seen. A page in the browser shows it live, for this machine alone. Everything
is recorded to DIR/bag and then evaluated: DIR/report.html, DIR/results.json. Ctrl-C ends the motion
early."""
EXAMPLES = (
    "semiparam demo",
    "semiparam demo --seconds 120 --out demo_out",
    "semiparam demo --residual nystrom --seed 1",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds of motion (default %(default)g)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo_out"),
        metavar="DIR",
        help="where the results go (default %(default)s)",
    )
    parser.add_argument(
        "--rate", type=float, default=100.0, metavar="HZ", help="readings a second (default 100)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of noise, offsets and motion")
    parser.add_argument(
        "--residual",
        choices=("nystrom", "random_fourier"),
        default="random_fourier",
        help="the nonparametric part (default %(default)s, as in the thesis)",
    )
    add_page(parser, 8700, "without the live page")


def run(args: argparse.Namespace) -> int:
    """Run the nodes, then evaluate what was recorded."""
    from semiparam_dynamics.base.errors import ConfigurationError
    from semiparam_dynamics.base.extras import require
    from semiparam_dynamics.offline.cli.main import run_verb

    if not args.seconds > 0.0:
        raise ConfigurationError(f"--seconds must be above 0, not {args.seconds:g}")
    port = page_port(args)
    require("semiparam demo", "ros", "sim")
    from semiparam_dynamics.simulation.nodes.demo import run_demo

    bag, urdf, config = run_demo(
        args.out,
        seconds=args.seconds,
        rate=args.rate,
        seed=args.seed,
        residual=args.residual,
        port=port,
        show=webbrowser.open if args.open else None,
    )
    print("evaluating what was recorded ...", flush=True)
    words = ["evaluate", str(bag), "--urdf", str(urdf), "--params", str(config)]
    # The bag has more wrench topics than the measured one.
    words += ["--joint-states", "/joint_states", "--wrench", "/wrench"]
    run_verb([*words, "--out", str(args.out), "--overwrite"])
    print(f"open {(args.out / 'report.html').absolute()} for the figures")
    if shutil.which("semiparam") is None:
        print(f"for your own robot first: source {sys.prefix}/bin/activate")
    return 0
