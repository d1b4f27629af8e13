"""`semiparam objects`."""

from __future__ import annotations

import argparse
from pathlib import Path

from semiparam_dynamics.offline.cli import teach

DESCRIPTION = """\
Watch objects being taught, without a camera: as `semiparam teach`, but the names are those of the
subfolders of SOURCE, which have each an object's pictures. One object after the other is taught by
its first pictures; after each, some later pictures of all objects so far are shown, which are never
taught. Pictures beside the subfolders come first: they show no object. Without SOURCE they are
handwritten digits. It begins anew each time, ends with the pictures and says how many of those held
out were recognised."""
EXAMPLES = (
    "semiparam objects",
    "semiparam objects --open",
    "semiparam objects pictures --teach 20 --out taught",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments: those of `semiparam teach`, with other defaults."""
    teach.add_arguments(parser)
    parser.set_defaults(
        verb="objects", source="digits", teach=30, once=True, out=Path("objects_out")
    )


def run(args: argparse.Namespace) -> int:
    """Run the nodes until the pictures' end or Ctrl-C."""
    return teach.run(args)
