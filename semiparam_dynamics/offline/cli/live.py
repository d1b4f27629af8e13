"""Verbs that run nodes, with a page to watch them on: `demo`, `teach`, `objects`."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import webbrowser
from pathlib import Path

from semiparam_dynamics.base import extras
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.offline.cli.main import run_verb
from semiparam_dynamics.offline.cli.options import add_options, add_page, page_port

EXAMPLES = {
    "demo": (
        "semiparam demo",
        "semiparam demo --seconds 120 --out demo_out",
        "semiparam demo --residual nystrom --seed 1",
    ),
    "teach": (
        "semiparam teach /dev/video0 --open",
        "semiparam teach desk.mp4 --out desk",
        "semiparam teach desk.mp4 --rate 5 --once",
    ),
    "objects": (
        "semiparam objects",
        "semiparam objects --open",
        "semiparam objects pictures --teach 20 --out taught",
    ),
}


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `demo`."""
    add_options(
        parser,
        ("--seconds", 60.0, "S", "seconds of motion (default %(default)g)"),
        ("--out", Path("demo_out"), "DIR", "where the results go (default %(default)s)"),
        ("--rate", 100.0, "HZ", "readings a second (default 100)"),
        ("--seed", 0, "SEED", "seed of noise, offsets and motion"),
    )
    parser.add_argument(
        "--residual",
        choices=("nystrom", "random_fourier"),
        default="random_fourier",
        help="the nonparametric part (default %(default)s, as in the thesis)",
    )
    add_page(parser, 8700, "without the live page")


def run_demo(args: argparse.Namespace) -> int:
    """Watch a robot's dynamics being learned: the iCub's right arm in MuJoCo and the learner
    run as two ROS 2 nodes; the hand draws circles in the XY plane and, from half time on, in
    the XZ plane, which the learner has not seen. A page in the browser shows it live, for this
    machine alone. Everything is recorded to DIR/bag and then evaluated: DIR/report.html,
    DIR/results.json. Ctrl-C ends the motion early.
    """
    if not args.seconds > 0.0:
        raise ConfigurationError(f"--seconds must be above 0, not {args.seconds:g}")
    port = page_port(args)
    extras.require("semiparam demo", "ros", "sim")
    from semiparam_dynamics.simulation.nodes import demo

    bag, urdf, config = demo.run_demo(
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


def add_teach(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `teach`."""
    parser.set_defaults(verb="teach")
    parser.add_argument(
        "source",
        nargs="?",
        default="/dev/video0",
        metavar="SOURCE",
        help="camera, video, folder of pictures, or digits (default %(default)s)",
    )
    by_name = "teach the first N pictures of each subfolder by its name (default %(default)s)"
    whole = "teach and recognise whole images, not what moves in them; so it is with --teach"
    add_options(
        parser,
        ("--out", Path("teach_out"), "DIR", "where the objects are kept (default %(default)s)"),
        ("--rate", 10.0, "HZ", "frames a second at most (default %(default)g)"),
        ("--teach", 0, "N", by_name),
        ("--whole", False, "", whole),
        ("--once", False, "", "end with the video or folder, instead of beginning again"),
    )
    add_page(parser, 8701, "without the page: taught by topics")


def run_teach(args: argparse.Namespace) -> int:
    """Teach objects that a camera or a video shows, on a page in the browser: it shows each
    frame, what it is recognised as, and how that gets better; there one says what is in view,
    while it is, and renames, merges and forgets objects. SOURCE is a camera (/dev/video0), a
    video file, a folder of pictures, or digits (handwritten ones). DIR/objects.npz keeps what
    was taught, for the next time. Ctrl-C ends it.
    """
    from semiparam_dynamics.recognition.config import ImageSourceNodeConfig
    from semiparam_dynamics.recognition.frames import DIGITS, open_frames

    port = page_port(args)
    camera = re.fullmatch(r"/dev/\w+|\d{1,3}", args.source)
    given = camera or args.source == DIGITS
    config = replace(
        ImageSourceNodeConfig(),
        source=args.source if given else str(Path(args.source).expanduser().absolute()),
        rate=args.rate,
        loop=not args.once,
        teach=args.teach,
    )
    extras.require(f"semiparam {args.verb}", "ros", "vision", *(("camera",) if camera else ()))
    # Refused before anything is started.
    open_frames(config.source, config.rate, config.longest, config.teach)
    from semiparam_dynamics.recognition.nodes.teaching import run_teaching

    model = run_teaching(
        args.out,
        config,
        port=port,
        region="whole" if args.whole or args.teach else "moving",
        show=webbrowser.open if args.open else None,
        resume=args.verb == "teach",
    )
    print(f"what was taught is in {model}" if model.is_file() else "nothing was taught")
    return 0


def add_objects(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `objects`."""
    add_teach(parser)
    parser.set_defaults(
        verb="objects", source="digits", teach=30, once=True, out=Path("objects_out")
    )


def run_objects(args: argparse.Namespace) -> int:
    """Watch objects being taught, without a camera: as `semiparam teach`, but the names are
    those of the subfolders of SOURCE, which have each an object's pictures. One object after
    the other is taught by its first pictures; after each, some later pictures of all objects so
    far are shown, which are never taught. Pictures beside the subfolders come first: they show
    no object. Without SOURCE they are handwritten digits. It begins anew each time, ends with
    the pictures and says how many of those held out were recognised.
    """
    return run_teach(args)
