"""README, CONTRIBUTING and docs/: their examples, commands, settings, files and links are real."""

from __future__ import annotations

import importlib
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from inspect import isabstract
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from semiparam_dynamics import learning
from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.base.parameters import to_flat
from semiparam_dynamics.dynamics.filtering import REASONS
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.offline.cli.main import VERBS, make_parser
from semiparam_dynamics.offline.doctor.messages import FINDINGS
from semiparam_dynamics.samples.bag_writer import write_measurements
from semiparam_dynamics.samples.measurement import number_problem
from semiparam_dynamics.samples.sensors import SATURATED, SUSPECTED

from .documents import DOCUMENTS, PATHS, ROOT, commands
from .dynamics.arms import URDF, measurements, small_arm

GENERATED = ("parameters.md", "commands.md")


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


@pytest.mark.parametrize("verb", VERBS)
def test_commands_are_understood(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        make_parser([verb]).parse_args([verb, "--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    shown = [
        (name, words, whole) for name, words, whole in commands("semiparam") if words[0] == verb
    ]
    assert shown
    for name, words, whole in shown:
        assert {word for word in words if word.startswith("--")} <= options, (name, words)
        if whole:
            args = make_parser(words).parse_args(words)
            for setting in getattr(args, "settings", []):
                assert setting.split("=")[0] in to_flat(args.config_type()), setting


def test_commands_of_other_programs_name_what_is_there() -> None:
    assert {words[0] for _, words, _ in commands("semiparam")} - {"COMMAND"} == set(VERBS)
    launched = {words[2] for _, words, _ in commands("ros2") if words[0] == "launch"}
    assert launched and all((ROOT / "launch" / name).is_file() for name in launched)
    makefile = (ROOT / "Makefile").read_text()
    targets = {words[0] for _, words, _ in commands("make")}
    assert targets and all(f"\n{target}:" in makefile for target in targets)
    recorded = [words for _, words, _ in commands("ros2") if words[:2] == ["bag", "record"]]
    # Before Lyrical they could stand without it.
    assert recorded and all("--topics" in words for words in recorded)


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name not in GENERATED])
def test_parameters_in_backquotes_exist(name: str) -> None:
    known = set(re.findall(r"^\| `([a-z_.]+)` \|", DOCUMENTS["parameters.md"], re.MULTILINE))
    groups = {one.split(".")[0] for one in known if "." in one}
    named = set(re.findall(r"`([a-z_]+\.(?!py|yaml|npz)[a-z_]+)(?:[:`]| [\w.])", DOCUMENTS[name]))
    assert {one for one in named if one.split(".")[0] in groups} <= known


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files that examples name: URDF, bag and log of a small arm."""
    monkeypatch.chdir(tmp_path)
    for name in ("robot.urdf", "my_arm.urdf"):
        Path(name).write_text(URDF.read_text())
    model = small_arm()
    some = list(measurements(model, 2.0))
    write_measurements(Path("my_bag"), model.joint_names, iter(some[:100]), "effort")
    arrays = {"t": [1e-9 * one.stamp for one in some], "tau": [one.y for one in some]}
    np.savez("log.npz", **arrays, q=[one.q for one in some], dq=[one.dq for one in some])
    return tmp_path


def run_examples(name: str) -> None:
    names: dict[str, object] = {}
    for example in re.findall(r"```python\n(.*?)```", DOCUMENTS[name], re.DOTALL):
        exec(compile(example, name, "exec"), names)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("node.md", r"(\d+ \[.*\n){98}"),
        ("tutorial.md", r"\('slew', .*\)\n\d+ base parameters\n"),
        ("howto/python.md", r"[\s\S]*\n8.0\n"),
        ("howto/sklearn.md", r"[\s\S]*nystromkrls__penalty[\s\S]*"),
        ("learning.md", r"[\s\S]*n_centers[\s\S]*"),
        ("recognition.md", r"[\s\S]*digit[\s\S]*"),
        ("extending.md", ""),
    ],
)
def test_examples_run(name: str, shown: str, files: Path, capsys) -> None:
    run_examples(name)
    assert re.fullmatch(shown, capsys.readouterr().out)


def test_the_python_page_runs_on_a_real_arm_s_log(files: Path, data_folder: Path) -> None:
    """Whose friction remembers: a saved model has no motion that it could remember."""
    xmate = data_folder / "robots" / "xmate7p"
    log = np.load(xmate / "trajectory_1.npz")
    (files / "robot.urdf").write_text((xmate / "xmate7p.urdf").read_text())
    rows = {name: log[name][:1500] for name in ("q", "dq", "tau")}
    np.savez("log.npz", t=1.0 + float(log["dt"]) * np.arange(1500), **rows)
    run_examples("howto/python.md")


def test_the_tutorial_s_file_is_what_node_and_commands_load(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", DOCUMENTS["tutorial.md"], re.DOTALL)
    path = tmp_path / "my_arm.yaml"
    path.write_text(text, encoding="utf-8")
    config = load_yaml(path, InverseDynamicsNodeConfig, "inverse_dynamics").learner
    assert (config.filter.stages, config.robot.coulomb_velocity) == (2, 0.005)


def test_the_site_names_every_page_and_is_built(tmp_path: Path) -> None:
    nav = re.findall(r"[\w/]+\.md", (ROOT / "mkdocs.yml").read_text())
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(nav) == sorted(pages)
    for needed in ("mkdocs", "material", "mkdocstrings", "latex2mathml"):
        pytest.importorskip(needed, reason="needs the extra 'docs'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert not list(fetched(tmp_path))


def fetched(site: Path) -> Iterator[str]:
    """What the site's pages would fetch from elsewhere."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        yield from re.findall(r"<(?:link|script|img)[^>]*(?:href|src)=\"(https?://[^\"]+)", text)


def reasons() -> set[str]:
    """What the node counts messages and samples by."""
    found = {*REASONS.values(), SATURATED, SUSPECTED, "effort stuck", "wrench stuck"}
    found |= {number_problem([value]) for value in (np.nan, 1e300)}
    key = r'("[^"]+"|[A-Z_]+)'
    drop, add = rf"(?:drop|_count)\(\s*{key}", rf"(?:dropped|lost|learned|counts)\[{key}\] \+="
    for room in ("samples", "dynamics", "learner", "base/nodes"):
        for path in (ROOT / "semiparam_dynamics" / room).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for named in {*re.findall(drop, text), *re.findall(add, text)}:
                module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                constants = vars(importlib.import_module(module))
                found.add(named.strip('"') if named[0] == '"' else constants[named])
    return {reason for reason in found if isinstance(reason, str)}


def test_the_page_of_the_node_says_what_to_do_on_each_diagnostic() -> None:
    pytest.importorskip("rclpy", reason="the node's own reasons are in its modules")
    _, _, section = DOCUMENTS["node.md"].partition("## What to do on each diagnostic")
    rows = re.findall(r"^\| (`.*`) \| \S", section, re.MULTILINE)
    told = {one for row in rows for one in re.findall(r"`([^`]+)`", row)}
    counted = reasons()
    assert len(counted) > 40 and not counted - told


def test_the_page_of_the_doctor_has_each_finding() -> None:
    rows = re.findall(r"^\| (.+?) \|", DOCUMENTS["doctor.md"], re.MULTILINE)
    listed = ", ".join(rows).lower()
    assert not [k for k in FINDINGS if k.removeprefix("wrench: ").lower() not in listed]


def test_the_page_of_commands_is_that_of_the_parsers() -> None:
    writer = runpy.run_path(str(ROOT / "tools" / "write_commands.py"))
    assert writer["commands_page"]() == DOCUMENTS["commands.md"], "run tools/write_commands.py docs"


def test_the_pages_of_learning_name_every_estimator_and_kernel() -> None:
    listed = re.search(r"members: \[(.*)\]", DOCUMENTS["api/learning.md"])
    assert listed
    for name in learning.__all__:
        public = getattr(learning, name)
        estimator = isinstance(public, type) and issubclass(public, BaseEstimator)
        if estimator and not isabstract(public):
            assert f"`{name}" in DOCUMENTS["learning.md"], name
            assert name in listed[1].split(", "), name


def test_documents_for_users_stay_short() -> None:
    readme = DOCUMENTS["README.md"]
    assert len(readme.split()) <= 600 and readme.count("![") == 1
    pages = [text for name, text in DOCUMENTS.items() if not name.startswith("results/")]
    assert sum(len(text.split()) for text in pages) <= 45_000
