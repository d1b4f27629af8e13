"""Writes layouts for PlotJuggler and Foxglove, for a robot's joints and topics.

python -m semiparam_dynamics.nodes.write_layouts FOLDER --joints shoulder elbow wrist
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from semiparam_dynamics.nodes.foxglove_layout import foxglove_layout
from semiparam_dynamics.nodes.layouts import UR_JOINTS, Topics, effort_pages, wrench_pages
from semiparam_dynamics.nodes.plotjuggler_layout import plotjuggler_layout


def contents(topics: Topics, joints: Sequence[str]) -> dict[str, str]:
    """The files' texts by their paths: for both targets, for both viewers."""
    files = {}
    for target, pages in (
        ("effort", effort_pages(topics, joints)),
        ("wrench", wrench_pages(topics)),
    ):
        files[f"plotjuggler/{target}.xml"] = plotjuggler_layout(pages)
        files[f"foxglove/{target}.json"] = foxglove_layout(pages)
    return files


def main(arguments: Sequence[str] | None = None) -> None:
    """Write all files into the folder that the command line names."""
    default = Topics()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--joints", nargs="+", default=UR_JOINTS, metavar="NAME", help="learned joints, in order"
    )
    parser.add_argument("--node", default=default.node, help="the node's name with its namespace")
    parser.add_argument("--joint-states", default=default.joint_states, metavar="TOPIC")
    parser.add_argument("--wrench", default=default.wrench, metavar="TOPIC")
    given = parser.parse_args(arguments)
    topics = Topics(given.node, given.joint_states, given.wrench)
    for name, text in contents(topics, given.joints).items():
        path = given.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
