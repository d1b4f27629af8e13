"""Options of several verbs that load no learner: the URDF, what is replaced, a live page."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from semiparam_dynamics.base.errors import ConfigurationError

# Where ROS 2, Debian, robotpkg and conda install the files of example-robot-data.
ROOTS = (*os.environ.get("AMENT_PREFIX_PATH", "").split(":"), sys.prefix, "/usr", "/opt/openrobots")


def add_urdf(parser: argparse.ArgumentParser, text: str, **options: Any) -> None:
    """Add ``--urdf`` with the help `text`."""
    parser.add_argument("--urdf", metavar="FILE", type=urdf_file, help=text, **options)


def urdf_file(text: str) -> str:
    """The path that `text` is, or that of the robot of this name in an installed package.

    The packages are example-robot-data, whose files lie there, and robot_descriptions, which
    fetches a description when it is first asked for. A name stands alone, without a folder or
    suffix, and no file has it. Raises ArgumentTypeError where no package has the robot.
    """
    if not re.fullmatch(r"\w[\w-]*", text) or Path(text).exists():
        return text
    roots = [Path(place, "cmeel.prefix") for place in sys.path]
    roots += [Path(place) for place in ROOTS if place]
    found = [p for one in roots for p in one.glob("share/example-robot-data/robots/*/*/*.urdf")]
    files = {path.stem.removesuffix("_robot"): path for path in reversed(found)}
    if text in files:
        return str(files[text])
    try:
        described = importlib.import_module("robot_descriptions").DESCRIPTIONS
    except ImportError:
        described = {}
    names = {re.sub("(_official)?_description$", "", key): key for key in described}
    if text in names:
        return _fetched(names[text])
    near = difflib.get_close_matches(text, [*files, *names], n=5, cutoff=0.4)
    known = f"near are {', '.join(near)}" if near else "no package here has it"
    raise argparse.ArgumentTypeError(
        f"there is no file and no robot '{text}', {known} (robots by name: pip install "
        "example-robot-data, or robot_descriptions, which downloads from GitHub)"
    )


def _fetched(key: str) -> str:
    """The URDF of a description of robot_descriptions, which may have to download it."""
    try:
        module = importlib.import_module(f"robot_descriptions.{key}")
        # Of its loaders the one that makes files of xacro has no public name yet.
        return str(importlib.import_module("robot_descriptions._xacro").get_urdf_path(module))
    except Exception as error:  # git's, the network's, xacro's: of any kind
        told = " ".join(str(error).split())[-200:]
        raise argparse.ArgumentTypeError(f"robot_descriptions can't give {key}: {told}") from None


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add ``--overwrite``, without which no verb replaces what is there."""
    parser.add_argument(
        "--overwrite", action="store_true", help="replace earlier results, kept as NAME.previous"
    )


def add_page(parser: argparse.ArgumentParser, port: int, without: str) -> None:
    """Add ``--open``, ``--no-page`` (its help: `without`) and ``--page-port``; see `page_port`."""
    page = parser.add_mutually_exclusive_group()
    page.add_argument("--open", action="store_true", help="open the page in the browser")
    page.add_argument("--no-page", action="store_true", help=without)
    parser.add_argument(
        "--page-port",
        type=int,
        default=port,
        metavar="PORT",
        help="port of the page; if it is taken another one (default %(default)s)",
    )


def page_port(args: argparse.Namespace) -> int | None:
    """Return the port asked for; None: no page. Raises ConfigurationError."""
    if not 0 <= args.page_port < 65536:
        raise ConfigurationError(f"--page-port must be 0 .. 65535, not {args.page_port}")
    return None if args.no_page else args.page_port


def warn(warnings: Iterable[str]) -> None:
    """Print warnings to the error stream."""
    for warning in warnings:
        print(f"semiparam: warning: {warning}", file=sys.stderr)
