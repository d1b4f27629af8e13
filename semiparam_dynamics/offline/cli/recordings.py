"""Verbs that prepare recordings: `convert`, `doctor`, `gains`."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from semiparam_dynamics.base.config_files import dump_yaml
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.output_files import reserved, write_files
from semiparam_dynamics.offline.cli.options import (
    add_bags,
    add_options,
    add_output,
    add_overwrite,
    add_topics,
    add_urdf,
    learner_config,
    warn,
    yaml_file,
)

EXAMPLES = {
    "convert": (
        "semiparam convert log.npz bag --urdf robot.urdf",
        "semiparam convert log.csv bag --names shoulder,elbow,wrist",
        "semiparam convert so101_pick bag --episode 3 --degrees",
    ),
    "doctor": (
        "semiparam doctor BAG",
        "semiparam doctor BAG --urdf robot.urdf --out doctor",
        "semiparam doctor BAG --set joints=joint1,joint2 --out doctor",
    ),
    "gains": (
        "semiparam gains BAG",
        "semiparam gains BAG --urdf robot.urdf --out gains.yaml",
        "semiparam gains BAG --urdf robot.urdf --loaded BAG2 --load-mass 1.5",
    ),
}


def add_convert(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `convert`."""
    parser.add_argument("log", metavar="LOG", help="an npz or CSV file, or a LeRobot folder")
    parser.add_argument("bag", metavar="BAG", help="the folder to make")
    names = "the joints' names, in the log's order; of q1, q2, ... by number"
    add_options(parser, ("--names", str, "A,B,...", names))
    add_urdf(
        parser, "take its actuated joints' names, in order, and put it into the bag", default=""
    )
    degrees = (
        "positions and velocities whose names have no unit are in degrees; of prismatic "
        "joints, by --urdf, in m"
    )
    add_options(
        parser,
        ("--start", 1.0, "S", "first stamp, s (default %(default)s)"),
        ("--wrench-frame", "", "FRAME", "frame_id of the wrenches"),
        ("--degrees", False, "", degrees),
        ("--episode", int, "N", "episode of a LeRobot data set (default 0)"),
        ("--effort-column", "", "NAME", "its column of efforts, N m"),
    )
    add_overwrite(parser)


def run_convert(args: argparse.Namespace) -> int:
    """Write a log in an npz or CSV file, or an episode of a LeRobot data set, to a rosbag2
    folder in MCAP. An npz file's arrays: q (samples x joints, rad); t (samples, s) or dt (s);
    tau (samples x joints, N m) and/or wrench (samples x 6: fx fy fz in N, tx ty tz in N m);
    optionally dq (rad/s) and names. A CSV file's first line names its columns: t, q_elbow (or
    q1), dq_elbow, tau_elbow, fx to tz; units in brackets, as in q1 [deg], are converted. A
    LeRobot folder (v2.0 to v3.0) needs a column of efforts. tau becomes the joint states'
    effort.
    """
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


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `doctor`."""
    add_bags(parser, nargs=None, name="bag")
    add_topics(parser, "what is to be learned")
    add_output(parser, "the page and the YAML go", required=False)


def run_doctor(args: argparse.Namespace) -> int:
    """Examine a bag before anything is learned from it: units, signs and scales of efforts,
    exchanged joints, gravity that is missing or points elsewhere, delays, wraps, columns that
    are empty, stuck or coarse, stamps, gaps, limits, rest. Each finding comes with numbers and
    with what to do. With --out it writes doctor.html, and doctor.yaml with the parameters that
    correct what parameters can: give it to the other commands with --params, and to the node.
    The exit code is 1 if a fault was found.
    """
    from semiparam_dynamics.offline.doctor.examination import (
        EXAMINATION_FILES,
        examine_bag,
        summary,
        write_examination,
    )

    config = learner_config(args)
    out = Path(args.out).expanduser()
    files = [out / name for name in EXAMINATION_FILES] if args.out else []
    with reserved(files, overwrite=args.overwrite):
        found = examine_bag(
            args.bag,
            config,
            urdf=args.urdf,
            joint_states=args.joint_states,
            target=args.target or "",
            wrench=args.wrench,
        )
        if files:
            write_examination(found, out, Path(args.bag).name)
    print("\n".join([summary(found), *map(str, files)]))
    return int(any(finding.fault for finding in found.findings))


def add_gains(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gains`."""
    add_bags(parser, nargs=None, name="bag")
    add_options(
        parser,
        ("--joint-states", "", "TOPIC", "default: the only one with efforts"),
        ("--loaded", "", "BAG", "motion with a known load"),
        ("--load-mass", 0.0, "X", "its mass, kg (default 0)"),
        ("--load-mass-std", 0.0, "X", "standard deviation of that mass, kg (default 0)"),
        (
            *("--load-center-std", 0.01, "X"),
            "standard deviation of its centre along each axis, m (default 0.01)",
        ),
    )
    parser.add_argument(
        "--load-center",
        metavar=("X", "Y", "Z"),
        nargs=3,
        type=float,
        help="its centre of mass in the frame of --load-link, m; by default unknown",
    )
    add_options(parser, ("--load-link", "", "LINK", "default: the last moving link"))
    add_output(parser, "the parameters go (of a folder gains.yaml)", "FILE", required=False)


def run_gains(args: argparse.Namespace) -> int:
    """Identify the drives' gains, N m for a unit of what the driver reports as effort, such as
    a motor's current, each with its standard deviation. From one bag they are relative: gravity
    and inertia give their ratios, the URDF's masses their common factor. With a second bag,
    --loaded, of motion with a load of known mass in the hand, they are absolute. --out writes
    the parameters with the gains as samples.effort_scale and their deviations, for the other
    commands (--params) and the node.
    """
    from semiparam_dynamics.offline.doctor.drive_gains import (
        KnownLoad,
        drive_gains_of_bags,
        gains_table,
    )

    args.target = ""
    if bool(args.loaded) != (args.load_mass > 0.0):
        raise ConfigurationError("--loaded and --load-mass (above 0 kg) belong together")
    load = None
    if args.loaded:
        center = None if args.load_center is None else tuple(args.load_center)
        load = KnownLoad(
            args.load_mass, args.load_mass_std, center, args.load_center_std, args.load_link
        )
    files = [yaml_file(args.out, "gains.yaml")] if args.out else []
    with reserved(files, overwrite=args.overwrite):
        found, config = drive_gains_of_bags(
            args.bag,
            learner_config(args),
            urdf=args.urdf,
            joint_states=args.joint_states,
            loaded=args.loaded,
            load=load,
        )
        write_files({path: dump_yaml(config) for path in files})
    warn(found.notes)
    print("\n".join([gains_table(found), *map(str, files)]))
    return 0
