"""The guides in docs/: their commands, settings and links are those of the package."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from semiparam_dynamics.cli.main import VERBS, make_parser
from semiparam_dynamics.config import InverseDynamicsConfig, InverseDynamicsNodeConfig
from semiparam_dynamics.config_files import load_yaml
from semiparam_dynamics.nodes.config import ComputedTorqueNodeConfig
from semiparam_dynamics.parameters import parameters, to_flat

from .dynamics.arms import URDF

GUIDES = ("tutorial.md", "report.md", "control.md")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@pytest.fixture(params=GUIDES)
def guide(request: pytest.FixtureRequest, repository: Path) -> str:
    return (repository / "docs" / request.param).read_text(encoding="utf-8")


@pytest.fixture
def tutorial(repository: Path) -> str:
    return (repository / "docs" / "tutorial.md").read_text(encoding="utf-8")


def anchor(heading: str) -> str:
    """What a heading is called in a link."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_links_lead_somewhere(guide: str, repository: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", guide)
    assert links
    for link in links:
        name, _, part = link.partition("#")
        page = repository / "docs" / name
        assert page.is_file(), link
        if part:
            assert part in map(anchor, HEADING.findall(page.read_text(encoding="utf-8"))), link


def test_commands_are_understood(tutorial: str) -> None:
    lines = re.findall(r"^    (semiparam .*)$|`(semiparam [^`]* [^`]*)`", tutorial, re.MULTILINE)
    commands = [shlex.split(inline or block)[1:] for block, inline in lines]
    known = [command for command in commands if command[0] in VERBS]
    assert {command[0] for command in known} >= {"convert", "evaluate", "excite", "train"}
    for command in known:
        args = make_parser(command).parse_args(command)
        for setting in getattr(args, "settings", []):
            assert setting.split("=")[0] in to_flat(InverseDynamicsConfig()), setting


def test_its_parameter_file_is_what_node_and_commands_load(tutorial: str, tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", tutorial, re.DOTALL)
    path = tmp_path / "my_arm.yaml"
    path.write_text(text, encoding="utf-8")
    values = yaml.safe_load(text)["inverse_dynamics"]["ros__parameters"]
    config = load_yaml(path, InverseDynamicsNodeConfig, "inverse_dynamics").learner
    assert config.filter.stages == values["filter"]["stages"] == 2


def test_its_example_runs(tutorial: str, tmp_path: Path, monkeypatch, capsys) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", tutorial, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("my_arm.urdf").write_text(URDF.read_text())
    exec(compile(example, "tutorial.md", "exec"), {})
    assert re.search(r"^\('slew', .*\)\n\d+ base parameters$", capsys.readouterr().out)


def test_parameters_in_backquotes_exist(guide: str) -> None:
    nodes = (InverseDynamicsNodeConfig, ComputedTorqueNodeConfig)
    known = {entry.name for node in nodes for entry in parameters(node)}
    groups = {name.split(".")[0] for name in known if "." in name}
    named = set(re.findall(r"`([a-z_]+\.[a-z_]+)(?:[:`]| [\w.])", guide))
    mentioned = {name for name in named if name.split(".")[0] in groups}
    assert mentioned and mentioned <= known
