"""Pages have one set of names: the node's `port`, verbs' --page-port, launch files' page_port."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from semiparam_dynamics.learner.config import LivePageNodeConfig
from semiparam_dynamics.offline.cli.main import make_parser
from semiparam_dynamics.recognition.config import ObjectsPageNodeConfig

LAUNCH = Path(__file__).resolve().parents[3] / "launch"
PAGES = [
    ("demo", "demo.launch.py", LivePageNodeConfig().port),
    ("teach", "recognition_demo.launch.py", ObjectsPageNodeConfig().port),
]


@pytest.mark.parametrize(("verb", "file", "port"), PAGES)
def test_verb_launch_file_and_node_name_the_same_port(verb: str, file: str, port: int) -> None:
    assert make_parser().parse_args([verb]).page_port == port
    text = (LAUNCH / file).read_text(encoding="utf-8")
    declared = re.search(r'"page_port"(?:,\s+(?:default_value=)?|: \()"(\d+)"', text)
    assert declared and int(declared[1]) == port
    assert 'LaunchConfiguration("page_port")' in text
