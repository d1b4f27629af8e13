"""`semiparam bench regressor`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

DESCRIPTION = """\
The regressor of a robot's rigid bodies and friction, and a message's whole way through the
filters, one at a time as they come live and for many at once as in a recording, beside
pinocchio's regressor alone. Medians in microseconds, all measured in turns."""


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the benchmark to `semiparam bench`."""
    from bench_output import add_out

    parser = subparsers.add_parser(
        "regressor", help="regressors and filters, live and of recordings", description=DESCRIPTION
    )
    parser.add_argument(
        "--urdf", type=Path, metavar="FILE", help="the robot (default: a seven-joint arm)"
    )
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="of measuring (default %(default)s)"
    )
    add_out(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, print the table, and write it."""
    from bench_output import show
    from machine import machine
    from regressor import measure_regressor, regressor_table
    from serial_arm import serial_arm_urdf

    urdf = serial_arm_urdf() if args.urdf is None else str(args.urdf)
    table = regressor_table(measure_regressor(urdf, args.seconds))
    text = f"{machine('pin')}.\n\n{table}\n"
    show(text, args.out)
    return 0
