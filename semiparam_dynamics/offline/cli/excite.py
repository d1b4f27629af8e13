"""`semiparam excite --urdf FILE --out DIR`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.output_files import reserved
from semiparam_dynamics.base.parameters import group, parameters, replace
from semiparam_dynamics.base.progress import ProgressBar
from semiparam_dynamics.offline.cli.options import (
    add_config_options,
    add_options,
    add_overwrite,
    add_urdf,
    node_config,
    warn,
)
from semiparam_dynamics.offline.identification.collisions import CollisionConfig, Collisions
from semiparam_dynamics.offline.identification.excitation import (
    Excitation,
    ExcitationConfig,
    ExportConfig,
    excitation_table,
    lead_in,
    optimize_excitation,
    plot_excitation,
    write_csv,
    write_trajectory_bag,
    write_trial_bag,
)
from semiparam_dynamics.offline.identification.joint_motion import FreeJointsConfig, motion_limits
from semiparam_dynamics.offline.page import setting
from semiparam_dynamics.robot.model import RobotConfig, RobotModel
from semiparam_dynamics.robot.urdf import read_urdf
from semiparam_dynamics.samples.bag_writer import check_bag_place

EXAMPLES = {
    "excite": (
        "semiparam excite --urdf robot.urdf --out motion",
        "semiparam excite --urdf robot.urdf --range joint2=-1:0.5 --out motion",
        "semiparam excite --urdf robot.urdf --set search.harmonics=8 --out motion",
    ),
}

EXCITATION_FILES = ("trajectory.csv", "trajectory.png", "trajectory_bag", "trial_bag")


def add_excite(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `excite`."""
    add_urdf(parser, "the robot: file, or name as ur10", required=True)
    parser.add_argument("--out", metavar="DIR", required=True, help="where the files go")
    add_options(parser, ("--joints", "", "A,B,...", "default: all actuated ones of the URDF"))
    parser.add_argument("--target", choices=("effort", "wrench"), help="what will be measured")
    parser.add_argument(
        "--range",
        metavar="JOINT=LOW:HIGH",
        action="append",
        default=[],
        dest="ranges",
        help="narrower limits than the URDF's (may be repeated)",
    )
    add_options(
        parser,
        ("--meshes", str, "DIR", "folder of the collision meshes' packages"),
        ("--no-collisions", False, "", "check no collisions"),
    )
    known = {entry.name: entry for entry in parameters(ExciteConfig)}
    for name, text in OWN_OPTIONS.items():
        kind = known[name].type
        parser.add_argument(
            f"--{name.rpartition('.')[2].replace('_', '-')}",
            dest=name,
            type=kind,
            metavar=kind.__name__.upper(),
            help=f"{text} (default {setting(known[name].default)})",
        )
    add_overwrite(parser)
    add_config_options(parser, ExciteConfig)


def run_excite(args: argparse.Namespace) -> int:
    """Find a periodic motion that identifies the robot's base parameters well: the condition
    number of their regressor is minimised within the URDF's limits of motion and effort. Each
    period starts and ends at rest. Writes trajectory.csv, trajectory.png and trajectory_bag, a
    rosbag2 with one JointTrajectory whose first point leaves the arm time to reach it, and
    trial_bag, one period at low speed. The motion keeps clear of the robot itself (by the
    URDF's collision elements) and of a floor, of nothing else: narrow joints with --range, see
    it in simulation, play trial_bag first.
    """
    whole = _config(args)
    robot, config, export = whole.robot, whole.search, whole.export
    urdf = read_urdf(args.urdf)
    model = RobotModel(urdf, robot)
    effort_model = model
    if robot.target != "effort":
        effort_model = RobotModel(urdf, replace(robot, target="effort", joints=model.joint_names))
    limits = motion_limits(
        urdf, model, ranges=dict(_range(text) for text in args.ranges), free=whole.free
    )
    folders = [Path(args.meshes)] if args.meshes else []
    if "<" not in args.urdf:  # else it is no file
        folders.append(Path(args.urdf).expanduser().parent)
    collisions = None
    if not args.no_collisions:
        collisions = Collisions(effort_model, whole.collisions, folders, limits)
    out = Path(args.out).expanduser()
    table, figure, bag, trial = files = [out / name for name in EXCITATION_FILES]
    with reserved(files, overwrite=args.overwrite):
        warn([*limits.warnings, *(collisions.notes if collisions else ())])
        for path in (bag, trial):
            check_bag_place(path, overwrite=args.overwrite)
        with ProgressBar("searching", sys.stderr) as progress:
            excitation = optimize_excitation(
                model, effort_model, limits, config, progress, collisions
            )
        write_csv(excitation, export, table)
        write_trajectory_bag(excitation, export, bag)
        write_trial_bag(excitation, export, trial)
        plot_excitation(excitation, figure)
    print(excitation_table(excitation))
    print(
        f"\n{export.repeat} periods of {config.period:g} s; in the bag they begin after"
        f" {lead_in(excitation):g} s, in which the arm can go to the start from anywhere in the"
        " URDF's ranges.\n"
        f"{_collisions_told(excitation, collisions)} See the motion in simulation, then try"
        f" trial_bag, which is {export.trial_slowdown:g} times slower."
    )
    print(*files, sep="\n")
    return 0


# Parameters with an option of their own; --set takes all.
OWN_OPTIONS = {
    "search.period": "length of the motion's period, s",
    "search.velocity_scale": "share of the velocity limits used",
    "search.effort_scale": "share of the effort limits used",
    "clearance": "distance kept from collisions, m",
    "floor": "its height in m, base or none",
    "repeat": "periods written, one after the other",
    "rate": "points written a second",
    "topic": "of the bag's JointTrajectory",
}


@dataclass(frozen=True)
class ExciteConfig:
    """The parameters of the verb: the robot as the node has it, and the motion."""

    robot: RobotConfig = group(RobotConfig, inline=True)
    search: ExcitationConfig = group(ExcitationConfig)
    free: FreeJointsConfig = group(FreeJointsConfig, inline=True)
    collisions: CollisionConfig = group(CollisionConfig, inline=True)
    export: ExportConfig = group(ExportConfig, inline=True)


def _collisions_told(excitation: Excitation, collisions: Collisions | None) -> str:
    if excitation.approach is None or collisions is None:
        return "Collisions were not checked."
    floor = "no floor" if collisions.floor is None else f"a floor at {collisions.floor:g} m"
    return (
        f"Collisions: {excitation.approach.text()}, of {len(collisions.pairs)} pairs with {floor}; "
        "the way to the start was not checked."
    )


def _config(args: argparse.Namespace) -> ExciteConfig:
    """The parameters of --params (the node's YAML serves) and --set, then the plain options."""
    names = [*OWN_OPTIONS, "target"]
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.joints:
        given["joints"] = tuple(name.strip() for name in args.joints.split(","))
    return replace(node_config(args, ExciteConfig), **given)


def _range(text: str) -> tuple[str, tuple[float, float]]:
    """A joint's name and its limits, from JOINT=LOW:HIGH."""
    name, _, bounds = text.rpartition("=")
    low, _, high = bounds.partition(":")
    try:
        return name.strip(), (float(low), float(high))
    except ValueError:
        raise ConfigurationError(f"--range needs JOINT=LOW:HIGH, not '{text}'") from None
