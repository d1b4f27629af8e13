"""The verbs' options: parameters, and how many processes work."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import group, parameter
from semiparam_dynamics.offline.cli import options
from semiparam_dynamics.offline.cli.options import (
    add_config_options,
    add_urdf,
    add_workers,
    node_config,
    workers,
)


@dataclass(frozen=True)
class Filter:
    cutoff: float = parameter(5.0, "where it cuts", unit="Hz", low=0.1, high=1000.0)


@dataclass(frozen=True)
class Config:
    joints: tuple[str, ...] = parameter((), "which joints")
    gravity: tuple[float, ...] = parameter((0.0, 0.0, -9.81), "which way is down")
    frame: str = parameter("", "which frame")
    exact: bool = parameter(False, "whether exact")
    filter: Filter = group(Filter)


def parse(*arguments: str) -> Config:
    parser = argparse.ArgumentParser()
    add_config_options(parser, Config)
    return node_config(parser.parse_args(arguments), Config)


def test_without_options_it_is_the_default() -> None:
    assert parse() == Config()


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("filter.cutoff=1e1", Config(filter=Filter(10.0))),
        ("exact=true", Config(exact=True)),
        ("frame=1", Config(frame="1")),
        ("frame=a=b", Config(frame="a=b")),
        ("frame=", Config()),
        ("joints=[a, on, '1']", Config(joints=("a", "on", "1"))),
        ("joints=a,b", Config(joints=("a", "b"))),
        ("joints=", Config()),
        ("gravity=0,9.81,0", Config(gravity=(0.0, 9.81, 0.0))),
        ("gravity=[0, 0, 0]", Config(gravity=(0.0, 0.0, 0.0))),
    ],
)
def test_one_parameter_is_set(setting, expected) -> None:
    assert parse("--set", setting) == expected


@pytest.mark.parametrize(
    ("text", "empty"), [("", True), ("# frame: tool\n\n", True), ("{}", True), ("frame: ''", False)]
)
def test_a_file_that_sets_nothing_is_told(text: str, empty: bool, tmp_path, capsys) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    assert parse("--params", str(path)) == Config()
    told = f"semiparam: warning: {path} is empty: nothing is set\n"
    assert capsys.readouterr().err == (told if empty else "")


def test_settings_come_after_the_file(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("inverse_dynamics: {ros__parameters: {frame: tool, filter: {cutoff: 7.0}}}")
    assert parse("--params", str(path)) == Config(frame="tool", filter=Filter(7.0))
    given = parse("--set", "filter.cutoff=8", "--params", str(path), "--set", "filter.cutoff=9")
    assert given == Config(frame="tool", filter=Filter(9.0))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("filter.cutoff", "needs NAME=VALUE"),
        ("=3", "needs NAME=VALUE"),
        ("filter.cutof=3", "no parameter 'filter.cutof'; did you mean 'filter.cutoff'"),
        ("filter.cutoff=0", "must lie between 0.1 and 1000 Hz"),
        ("filter.cutoff=fast", "must be a number"),
        ("exact=1", "must be true or false"),
        ("gravity=[0, 0", "broken YAML"),
    ],
)
def test_a_bad_setting_is_explained(setting, message) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse("--set", setting)


def work(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_workers(parser, jobs="processes")
    return parser.parse_args(arguments)


def test_one_process_needs_no_executor_and_less_than_one_is_refused() -> None:
    with workers(work("--jobs", "1")) as executor:
        assert executor is None
    with workers(work(), most=1) as executor:
        assert executor is None
    with pytest.raises(ConfigurationError, match="can't be less than one process"):
        workers(work("--jobs", "-1"))


def test_a_robot_is_found_by_its_name_where_a_package_has_it(tmp_path, monkeypatch, capsys):
    """The package example-robot-data as pip installs it, and robot_descriptions' interface."""
    parser = argparse.ArgumentParser()
    add_urdf(parser, "the robot")

    def found(name: str) -> str:
        return str(parser.parse_args(["--urdf", name]).urdf)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(options, "ROOTS", ())
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    with pytest.raises(SystemExit):
        found("ur10")
    assert "pip install example-robot-data" in capsys.readouterr().err
    file = tmp_path / "cmeel.prefix/share/example-robot-data/robots/ur_description/urdf"
    file.mkdir(parents=True)
    for name in ("ur10_robot.urdf", "ur5_robot.urdf"):
        (file / name).touch()
    assert found("ur10") == str(file / "ur10_robot.urdf")
    assert (found("ur10.urdf"), found("./ur10")) == ("ur10.urdf", "./ur10")  # paths stay
    with pytest.raises(SystemExit):
        found("ur1O")
    assert "near are ur10, ur5" in capsys.readouterr().err
    (tmp_path / "ur10").touch()
    assert found("ur10") == "ur10"
