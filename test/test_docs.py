"""README, CONTRIBUTING and docs/: their examples, commands, settings, files and links are real."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from inspect import isabstract
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.base import BaseEstimator

from semiparam_dynamics import learning
from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.base.parameters import parameters, to_flat
from semiparam_dynamics.control.config import ComputedTorqueNodeConfig
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.learner.config import InverseDynamicsConfig, InverseDynamicsNodeConfig
from semiparam_dynamics.offline.cli.main import VERBS, make_parser
from semiparam_dynamics.samples.bag_writer import write_measurements

from .documents import DOCUMENTS, PATHS, ROOT, commands
from .dynamics.arms import URDF, measurements, small_arm

GUIDES = ("tutorial.md", "report.md", "control.md")


def examples(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", DOCUMENTS[name], re.DOTALL)


def anchors(name: str) -> list[str]:
    """The headings' names in a link."""
    headings = re.findall(r"^#+ (.*)$", DOCUMENTS[name], re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_and_files_lead_somewhere(name: str) -> None:
    text = DOCUMENTS[name]
    names = {path: other for other, path in PATHS.items()}
    for link in re.findall(r"\]\(([^)]+)\)", text):
        page, _, part = link.partition("#")
        path = (PATHS[name].parent / page).resolve() if page else PATHS[name]
        assert path.is_file(), link
        assert not part or part in anchors(names[path]), link
    folders = "config|benchmarks|docs|examples|fuzz|launch|test|tools"
    for path in re.findall(rf"`((?:{folders})/[\w/.]*)`", text):
        assert (ROOT / path).exists(), path


def test_every_document_is_looked_at() -> None:
    assert len(DOCUMENTS) > 12 and sum("](" in text for text in DOCUMENTS.values()) > 8
    named = {words[0] for _, words, _ in commands("semiparam")}
    assert named - {"COMMAND"} == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_commands_are_understood(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        make_parser([verb]).parse_args([verb, "--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    for name, words, whole in commands("semiparam"):
        if words[0] == verb:
            assert {word for word in words if word.startswith("--")} <= options, (name, words)
            if whole and "--help-parameters" not in words:
                args = make_parser(words).parse_args(words)
                for setting in getattr(args, "settings", []):
                    assert setting.split("=")[0] in to_flat(InverseDynamicsConfig()), setting


def test_launch_files_and_make_s_targets_are_there() -> None:
    launched = {words[2] for _, words, _ in commands("ros2") if words[0] == "launch"}
    assert launched and all((ROOT / "launch" / name).is_file() for name in launched)
    makefile = (ROOT / "Makefile").read_text()
    targets = {words[0] for _, words, _ in commands("make")}
    assert targets and all(f"\n{target}:" in makefile for target in targets)


def test_recordings_name_their_topics_as_every_ros_2_takes_them() -> None:
    recorded = [words for _, words, _ in commands("ros2") if words[:2] == ["bag", "record"]]
    # Before Lyrical they could stand without it.
    assert recorded and all("--topics" in words for words in recorded)


def test_the_node_page_s_example_runs(tmp_path: Path, monkeypatch, capsys) -> None:
    (example,) = examples("node.md")
    model = small_arm()
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(URDF.read_text())
    write_measurements(Path("my_bag"), model.joint_names, measurements(model, 1.0), "effort")
    exec(compile(example, "node.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 98
    learned = SemiparametricEstimator(model)
    learned.load("learned.npz")
    assert learned.n_learned == 98 and np.any(learned.rigid_body.parameters)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("learning.md", "n_centers"),
        ("recognition.md", "digit"),
        ("howto/sklearn.md", "nystromkrls__penalty"),
        ("extending.md", ""),
    ],
)
def test_a_document_s_examples_run(name: str, shown: str, capsys) -> None:
    names: dict[str, object] = {}
    for example in examples(name):
        exec(compile(example, name, "exec"), names)
    assert shown in capsys.readouterr().out


def test_the_python_page_runs(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(URDF.read_text())
    model = small_arm()
    some = list(measurements(model, 2.0))
    arrays = {"t": [1e-9 * one.stamp for one in some], "tau": [one.y for one in some]}
    np.savez("log.npz", **arrays, q=[one.q for one in some], dq=[one.dq for one in some])
    run_the_python_page()
    assert capsys.readouterr().out.splitlines()[-1] == "8.0"


def test_the_python_page_runs_on_a_real_arm_s_log(
    tmp_path: Path, monkeypatch, data_folder: Path
) -> None:
    """Whose friction remembers: a saved model has no motion that it could remember."""
    xmate = data_folder / "robots" / "xmate7p"
    log = np.load(xmate / "trajectory_1.npz")
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text((xmate / "xmate7p.urdf").read_text())
    rows = {name: log[name][:1500] for name in ("q", "dq", "tau")}
    np.savez("log.npz", t=1.0 + float(log["dt"]) * np.arange(1500), **rows)
    run_the_python_page()


def run_the_python_page() -> None:
    names: dict[str, object] = {}
    for example in examples("howto/python.md"):
        exec(compile(example, "python.md", "exec"), names)


def test_the_site_names_every_page_and_is_built(tmp_path: Path) -> None:
    nav = re.findall(r"[\w/]+\.md", (ROOT / "mkdocs.yml").read_text())
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(nav) == sorted(pages)
    for needed in ("mkdocs", "material", "mkdocstrings", "latex2mathml"):
        pytest.importorskip(needed, reason="needs the extra 'docs'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert_nothing_is_fetched(tmp_path)


def assert_nothing_is_fetched(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:link|script|img)[^>]*(?:href|src)=\"(https?://[^\"]+)", text)
        assert not fetched, (page.name, fetched)


def test_the_page_of_commands_is_that_of_the_parsers() -> None:
    writer = runpy.run_path(str(ROOT / "tools" / "write_commands.py"))
    assert writer["commands_page"]() == DOCUMENTS["commands.md"], "run tools/write_commands.py docs"


def test_the_pages_of_learning_name_every_estimator_and_kernel() -> None:
    listed = re.search(r"members: \[(.*)\]", (ROOT / "docs/api/learning.md").read_text())
    assert listed
    for name in learning.__all__:
        public = getattr(learning, name)
        estimator = isinstance(public, type) and issubclass(public, BaseEstimator)
        if estimator and not isabstract(public):
            assert f"`{name}" in DOCUMENTS["learning.md"], name
            assert name in listed[1].split(", "), name


def test_the_tutorial_s_example_runs(tmp_path: Path, monkeypatch, capsys) -> None:
    (example,) = examples("tutorial.md")
    monkeypatch.chdir(tmp_path)
    Path("my_arm.urdf").write_text(URDF.read_text())
    exec(compile(example, "tutorial.md", "exec"), {})
    assert re.search(r"^\('slew', .*\)\n\d+ base parameters$", capsys.readouterr().out)


def test_the_tutorial_s_file_is_what_node_and_commands_load(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", DOCUMENTS["tutorial.md"], re.DOTALL)
    path = tmp_path / "my_arm.yaml"
    path.write_text(text, encoding="utf-8")
    values = yaml.safe_load(text)["/**"]["ros__parameters"]
    config = load_yaml(path, InverseDynamicsNodeConfig, "inverse_dynamics").learner
    assert config.filter.stages == values["filter"]["stages"] == 2


@pytest.mark.parametrize("name", GUIDES)
def test_parameters_in_backquotes_exist(name: str) -> None:
    nodes = (InverseDynamicsNodeConfig, ComputedTorqueNodeConfig)
    known = {entry.name for node in nodes for entry in parameters(node)}
    groups = {name.split(".")[0] for name in known if "." in name}
    named = set(re.findall(r"`([a-z_]+\.[a-z_]+)(?:[:`]| [\w.])", DOCUMENTS[name]))
    mentioned = {one for one in named if one.split(".")[0] in groups}
    assert mentioned and mentioned <= known


def test_the_readme_is_one_page() -> None:
    text = DOCUMENTS["README.md"]
    assert len(text.splitlines()) <= 90 and len(text.split()) <= 600
    assert text.count("![") == 1
