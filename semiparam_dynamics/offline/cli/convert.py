"""`semiparam convert LOG BAG`."""

from __future__ import annotations

import argparse
import shlex

from semiparam_dynamics.offline.cli.light_options import add_overwrite, add_urdf, warn

DESCRIPTION = """\
Write a log in an npz or CSV file, or an episode of a LeRobot data set, to a rosbag2 folder in MCAP.
An npz file's arrays: q (samples x joints, rad); t (samples, s) or dt (s); tau (samples x joints, N
m) and/or wrench (samples x 6: fx fy fz in N, tx ty tz in N m); optionally dq (rad/s) and names. A
CSV file's first line names its columns: t, q_elbow (or q1), dq_elbow, tau_elbow, fx to tz; units in
brackets, as in q1 [deg], are converted. A LeRobot folder (v2.0 to v3.0) needs a column of efforts.
tau becomes the joint states' effort."""
EXAMPLES = (
    "semiparam convert log.npz bag --urdf robot.urdf",
    "semiparam convert log.csv bag --names shoulder,elbow,wrist",
    "semiparam convert so101_pick bag --episode 3 --degrees",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("log", metavar="LOG", help="an npz or CSV file, or a LeRobot folder")
    parser.add_argument("bag", metavar="BAG", help="the folder to make")
    parser.add_argument(
        "--names",
        metavar="A,B,...",
        help="the joints' names, in the log's order; of q1, q2, ... by number",
    )
    add_urdf(
        parser, "take its actuated joints' names, in order, and put it into the bag", default=""
    )
    parser.add_argument(
        "--start", type=float, default=1.0, metavar="S", help="first stamp, s (default %(default)s)"
    )
    parser.add_argument(
        "--wrench-frame", default="", metavar="FRAME", help="frame_id of the wrenches"
    )
    parser.add_argument(
        "--degrees",
        action="store_true",
        help="positions and velocities whose names have no unit are in degrees; of prismatic "
        "joints, by --urdf, in m",
    )
    parser.add_argument(
        "--episode", type=int, metavar="N", help="episode of a LeRobot data set (default 0)"
    )
    parser.add_argument(
        "--effort-column", default="", metavar="NAME", help="its column of efforts, N m"
    )
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Convert, and say what was written."""
    from semiparam_dynamics.offline.conversion.convert import convert_log

    names = [name.strip() for name in args.names.split(",")] if args.names is not None else []
    done = convert_log(
        args.log,
        args.bag,
        names=names,
        urdf=args.urdf,
        start=args.start,
        wrench_frame=args.wrench_frame,
        overwrite=args.overwrite,
        episode=args.episode,
        effort_column=args.effort_column,
        degrees=args.degrees,
    )
    warn(done.warnings)
    print(
        f"{args.bag}: {done.samples} samples at {done.rate:.6g} Hz on {', '.join(done.topics)};"
        f" joints {', '.join(done.names)}\n"
        f"next: semiparam evaluate {shlex.quote(args.bag)} --out results"
        f"{'' if args.urdf else ' --urdf FILE'}"
    )
    return 0
