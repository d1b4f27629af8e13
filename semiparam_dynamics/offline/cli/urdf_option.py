"""The option ``--urdf``: a file, or a robot's name where packages of descriptions are installed."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

PACKAGES = "pip install example-robot-data, or robot_descriptions, which downloads from GitHub"
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
    roots = [Path(place, "cmeel.prefix") for place in sys.path] + [
        Path(one) for one in ROOTS if one
    ]
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
    if not files and not names:
        raise argparse.ArgumentTypeError(
            f"there is no file '{text}', and no package that has robots by name: {PACKAGES}"
        )
    near = difflib.get_close_matches(text, [*files, *names], n=5, cutoff=0.4)
    raise argparse.ArgumentTypeError(
        f"there is no file and no robot '{text}', near are {', '.join(near) or 'none'} ({PACKAGES})"
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
