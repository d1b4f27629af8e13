"""`semiparam gains BAG [--urdf FILE] [--loaded BAG --load-mass KG]`."""

from __future__ import annotations

import argparse

from semiparam_dynamics.base.config_files import dump_yaml
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.output_files import reserved, write_files
from semiparam_dynamics.offline.cli.light_options import warn
from semiparam_dynamics.offline.cli.options import add_bags, add_output, learner_config, yaml_file
from semiparam_dynamics.offline.doctor.drive_gains import DriveGains, KnownLoad, drive_gains_of_bags

DESCRIPTION = """\
Identify the drives' gains, N m for a unit of what the driver reports as effort, such as a motor's
current, each with its standard deviation. From one bag they are relative: gravity and inertia give
their ratios, the URDF's masses their common factor. With a second bag, --loaded, of motion with a
load of known mass in the hand, they are absolute. --out writes the parameters with the gains as
samples.effort_scale and their deviations, for the other commands (--params) and the node."""
EXAMPLES = (
    "semiparam gains BAG",
    "semiparam gains BAG --urdf robot.urdf --out gains.yaml",
    "semiparam gains BAG --urdf robot.urdf --loaded BAG2 --load-mass 1.5",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    add_bags(parser, nargs=None, name="bag")
    parser.add_argument(
        "--joint-states", metavar="TOPIC", default="", help="default: the only one with efforts"
    )
    parser.add_argument("--loaded", metavar="BAG", default="", help="motion with a known load")
    for name, default, text in (
        ("mass", 0.0, "its mass, kg"),
        ("mass-std", 0.0, "standard deviation of that mass, kg"),
        ("center-std", 0.01, "standard deviation of its centre along each axis, m"),
    ):
        parser.add_argument(
            f"--load-{name}",
            metavar="X",
            type=float,
            default=default,
            help=f"{text} (default {default:g})",
        )
    parser.add_argument(
        "--load-center",
        metavar=("X", "Y", "Z"),
        nargs=3,
        type=float,
        help="its centre of mass in the frame of --load-link, m; by default unknown",
    )
    parser.add_argument(
        "--load-link", metavar="LINK", default="", help="default: the last moving link"
    )
    add_output(parser, "the parameters go (of a folder gains.yaml)", "FILE", required=False)


def run(args: argparse.Namespace) -> int:
    """Identify, print and write the gains."""
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


def gains_table(found: DriveGains) -> str:
    """The gains as lines of text."""
    width = max(map(len, found.names))
    lines = []
    for name, gain, std, told in zip(
        found.names, found.gains, found.own_std, found.told, strict=True
    ):
        how = f"+- {100.0 * std:.1f} %" if told else "not told by this motion: the others' mean"
        lines.append(f"{name:<{width}} {gain:>10.4g} N m a unit  {how}")
    kind = (
        "absolute: their common factor is the known load's"
        if found.absolute
        else "relative: their common factor is that of the URDF's masses"
    )
    lines.append(f"{kind}, +- {100.0 * found.common_std:.1f} %")
    told = zip(found.names, found.gains, found.told, strict=True)
    if turned := [name for name, gain, known in told if known and gain < 0.0]:
        lines.append(
            f"negative: {', '.join(turned)}. The URDF's torques explain the effort only with the "
            "other sign: the driver's positive direction, or the axis in the URDF, is the opposite"
        )
    return "\n".join(lines)
