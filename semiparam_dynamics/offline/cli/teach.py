"""`semiparam teach`."""

from __future__ import annotations

import argparse
import re
import webbrowser
from pathlib import Path

from semiparam_dynamics.offline.cli.light_options import add_page, page_port

DESCRIPTION = """\
Teach objects that a camera or a video shows, on a page in the browser: it shows each frame, what it
is recognised as, and how that gets better; there one says what is in view, while it is, and
renames, merges and forgets objects. SOURCE is a camera (/dev/video0), a video file, a folder of
pictures, or digits (handwritten ones). DIR/objects.npz keeps what was taught, for the next time.
Ctrl-C ends it."""
EXAMPLES = (
    "semiparam teach /dev/video0 --open",
    "semiparam teach desk.mp4 --out desk",
    "semiparam teach desk.mp4 --rate 5 --once",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.set_defaults(verb="teach")
    parser.add_argument(
        "source",
        nargs="?",
        default="/dev/video0",
        metavar="SOURCE",
        help="camera, video, folder of pictures, or digits (default %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("teach_out"),
        metavar="DIR",
        help="where the objects are kept (default %(default)s)",
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=10.0,
        metavar="HZ",
        help="frames a second at most (default %(default)g)",
    )
    parser.add_argument(
        "--teach",
        type=int,
        default=0,
        metavar="N",
        help="teach the first N pictures of each subfolder by its name (default %(default)s)",
    )
    parser.add_argument(
        "--whole",
        action="store_true",
        help="teach and recognise whole images, not what moves in them; so it is with --teach",
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="end with the video or folder, instead of beginning again",
    )
    add_page(parser, 8701, "without the page: taught by topics")


def run(args: argparse.Namespace) -> int:
    """Run the nodes until Ctrl-C or the source's end."""
    from semiparam_dynamics.base.extras import require
    from semiparam_dynamics.base.parameters import replace
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
    require(f"semiparam {args.verb}", "ros", "vision", *(("camera",) if camera else ()))
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
