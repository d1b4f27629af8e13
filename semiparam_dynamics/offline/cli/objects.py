"""`semiparam objects`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from semiparam_dynamics.learner.nodes.config import ObjectStreamNodeConfig
    from semiparam_dynamics.recognition.nodes.object_demo import Watched

DESCRIPTION = """\
Watch objects being taught: the recognition and a stream of pictures, which stands for camera and
teacher, run as two ROS 2 nodes. One object after the other is taught; after each, all objects so
far are tested with pictures that are never taught, which shows what was forgotten. SOURCE is a
folder whose subfolders are the objects with their pictures, or an npz file of pictures or feature
vectors (X and y, or X_train, y_train, X_test, y_test); without it they are handwritten digits.
DIR/results.json has the numbers. Ctrl-C ends it early."""
EXAMPLES = (
    "semiparam objects",
    "semiparam objects pictures --classes 8 --out taught",
    "semiparam objects features.npz --teach 20",
)

SCRIPT = """\
a file with lines such as 'teach mug 30' (frames), 'ask 60', 'ask mug 10', 'pause 2' (seconds),
instead of teaching and asking one object after the other"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "source", nargs="?", default="", metavar="SOURCE", help="folder of pictures, or npz file"
    )
    parser.add_argument(
        "--classes",
        type=int,
        default=5,
        metavar="N",
        help="objects shown, the source's first ones (default %(default)s)",
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=10.0,
        metavar="HZ",
        help="frames a second (default %(default)g)",
    )
    parser.add_argument(
        "--teach",
        type=int,
        default=30,
        metavar="N",
        help="frames of each object that are taught (default %(default)s)",
    )
    parser.add_argument("--script", type=Path, metavar="FILE", help=SCRIPT)
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the order of pictures and objects"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("objects_out"),
        metavar="DIR",
        help="where the results go (default %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the nodes, and write what came of it."""
    from semiparam_dynamics.base.extras import require
    from semiparam_dynamics.base.parameters import replace
    from semiparam_dynamics.learner.nodes.config import ObjectStreamNodeConfig
    from semiparam_dynamics.recognition.pictures import load_objects
    from semiparam_dynamics.recognition.script import read_script

    config = replace(
        ObjectStreamNodeConfig(),
        source=str(Path(args.source).expanduser().absolute()) if args.source else "",
        classes=args.classes,
        rate=args.rate,
        frames_taught=args.teach,
        script=str(args.script.expanduser().absolute()) if args.script else "",
        seed=args.seed,
    )
    # A look at the source and the script before anything is started: two views of each object.
    objects = load_objects(config.source, classes=config.classes, views=2)
    if config.script:
        read_script(config.script, objects.names)
    require("semiparam objects", "ros", *(() if objects.features else ("vision",)))
    from semiparam_dynamics.recognition.nodes.object_demo import run_objects

    watched = run_objects(args.out, config, features=objects.features)
    print(f"the numbers are in {_write(args.out, config, watched).absolute()}")
    return 0


def _write(out: Path, config: ObjectStreamNodeConfig, watched: Watched) -> Path:
    from semiparam_dynamics import __version__
    from semiparam_dynamics.base.output_files import write_files
    from semiparam_dynamics.base.parameters import to_flat

    path = out / "results.json"
    results = {
        "complete": watched.complete,
        **watched.tally.results(),
        "diagnostics": watched.figures,
        "parameters": to_flat(config),
        "version": __version__,
    }
    write_files({path: json.dumps(results, indent=2, allow_nan=False) + "\n"})
    return path
