"""Configurations written to YAML and read back, and files that people write themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semiparam_dynamics.base.config_files import (
    applies,
    dump_yaml,
    load_yaml,
    parameter_names,
    parse_value,
)
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import from_flat, group, parameter, parameters, replace
from semiparam_dynamics.learner.config import InverseDynamicsConfig, InverseDynamicsNodeConfig


@dataclass(frozen=True)
class Inner:
    width: float = parameter(0.2, "how wide", unit="m", low=1e-6, high=1e6)
    weights: tuple[float, ...] = parameter((1.0,), "what each counts")


@dataclass(frozen=True)
class Config:
    joints: tuple[str, ...] = parameter((), "which joints")
    frame: str = parameter("base", "which frame")
    count: int = parameter(3, "how many", low=0, high=2**31)
    mode: str = parameter("fast", "which mode", choices=("fast", "exact"))
    on: bool = parameter(True, "whether at all")
    free: float = parameter(0.0, "any number")
    inner: Inner = group(Inner)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "joints": st.lists(TEXT, max_size=3),
        "frame": TEXT | st.sampled_from(["on", "1", "1e3", "~", "a: b", "# no", "'", '"', "\n"]),
        "count": st.integers(0, 2**31),
        "mode": st.sampled_from(["fast", "exact"]),
        "on": st.booleans(),
        "free": NUMBER,
        "inner.width": st.floats(1e-6, 1e6),
        "inner.weights": st.lists(NUMBER, max_size=3),
    },
)


@pytest.fixture
def write(tmp_path: Path):
    def save(text: str) -> Path:
        (tmp_path / "file.yaml").write_text(text, encoding="utf-8")
        return tmp_path / "file.yaml"

    return save


@given(VALUES)
@settings(max_examples=50)
def test_what_is_written_is_read_back(tmp_path_factory, values) -> None:
    config = from_flat(Config, values)
    path = tmp_path_factory.getbasetemp() / "round_trip.yaml"
    path.write_text(dump_yaml(config, "node"), encoding="utf-8")
    assert load_yaml(path, Config, "node") == config
    assert load_yaml(path, Config) == config


def test_the_node_s_whole_configuration_is_read_back(write) -> None:
    config = InverseDynamicsConfig()
    path = write(dump_yaml(config, "inverse_dynamics"))
    assert load_yaml(path, InverseDynamicsConfig, "/arm/inverse_dynamics") == config


def test_a_written_file_explains_each_parameter() -> None:
    lines = dump_yaml(Config(), "node").splitlines()
    assert lines[:2] == ["node:", "  ros__parameters:"]
    at = lines.index("      width: 0.2")
    assert lines[at - 1] == "      # how wide (1e-06 .. 1000000, m)"
    assert lines[at - 2] == "    inner:"
    assert "    # which mode (fast | exact)" in lines
    # An empty list has no type in ROS: the default stands there for the reader only.
    assert "    # joints: []" in lines


FORMS = {
    "plain": "count: 5\ninner: {width: 2}\n",
    "dotted": "count: 5\ninner.width: 2\n",
    "ros": "node:\n  ros__parameters:\n    count: 5\n    inner: {width: 2}\n",
    "everywhere": "/**:\n  ros__parameters: {count: 5, inner.width: 2, use_sim_time: true}\n",
    "namespace": "arm:\n  node:\n    ros__parameters: {count: 5, inner.width: 2}\n",
    "full name": "/arm/node:\n  ros__parameters: {count: 5, inner.width: 2}\n",
    "own comes last": "node: {ros__parameters: {count: 5}}\n"
    "/**: {ros__parameters: {count: 4, inner.width: 2}}\n"
    "other: {ros__parameters: {count: 9}}\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_that_ros_reads_is_read(write, form) -> None:
    assert load_yaml(write(FORMS[form]), Config, "node") == Config(count=5, inner=Inner(width=2.0))


def test_an_empty_file_or_section_is_the_default(write) -> None:
    assert load_yaml(write("# nothing\n"), Config, "node") == Config()
    assert load_yaml(write("node:\n  ros__parameters:\n"), Config, "node") == Config()


def test_a_node_s_own_parameters_are_passed_over_where_asked(write) -> None:
    path = write("autostart: true\ncount: 5\n")
    assert load_yaml(path, Config, ignore=["autostart"]).count == 5


def test_exponents_without_a_point_are_numbers_as_in_ros() -> None:
    assert parse_value("[1e-3, -2E5, +3e+2, 1e3]") == [1e-3, -2e5, 300.0, 1000.0]
    assert parse_value("[e3, 1e, 0x10]") == ["e3", "1e", 16]


def test_names_are_text_whatever_they_look_like() -> None:
    assert parse_value("{on: 1, y: 2, 3: 4, <<: {a: 5}}") == {
        "on": 1, "y": 2, "3": 4, "<<": {"a": 5},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cuont: 1\n", "no parameter 'cuont'; did you mean 'count'"),
        ("inner: {widht: 1}\n", "no parameter 'inner.widht'; did you mean 'inner.width'"),
        ("count: many\n", "'count' must be a whole number, not 'many'"),
        ("inner: {width: -1}\n", "'inner.width' must lie between"),
        ("count: 1\ncount: 2\n", "'count' stands twice"),
        ("count: [1\n", "broken YAML"),
        ("count: \x00\n", "broken YAML"),
        ("just text\n", "holds no parameters"),
        ("- 1\n- 2\n", "holds no parameters"),
        ("{[1]: 2}: 3\n", "broken YAML"),
        ("a: {ros__parameters: {}}\nb: {ros__parameters: {}}\n", "'node', but they are for: a, b"),
        ("node: {ros__parameters: [1, 2]}\n", "must be 'name: value' lines"),
        ("!!python/object/apply:os.getcwd []\n", "broken YAML"),
    ],
)
def test_what_is_wrong_in_a_file_is_explained_with_its_name(write, text, message) -> None:
    path = write(text)
    with pytest.raises(ConfigurationError, match=message) as error:
        load_yaml(path, Config, "node")
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_is_not_there_or_no_text_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.yaml can't be read"):
        load_yaml(tmp_path / "none.yaml", Config)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(ConfigurationError, match=r"binary\.yaml can't be read"):
        load_yaml(tmp_path / "binary.yaml", Config)


@pytest.mark.parametrize(
    ("pattern", "node", "matches"),
    [
        ("/**", "/left/inverse_dynamics", True),
        ("/*/inverse_dynamics", "/left/inverse_dynamics", True),
        ("/**/inverse_dynamics", "/a/b/inverse_dynamics", True),
        ("/**/inverse_dynamics", "/inverse_dynamics", True),
        ("/a/**/inverse_dynamics", "/a/inverse_dynamics", True),
        ("/a/**", "/b/a/inverse_dynamics", False),
        ("/inverse_dynamics", "/left/inverse_dynamics", False),
        ("/*", "/left/inverse_dynamics", False),
        ("/inverse.dynamics", "/inverse_dynamics", False),
    ],
)
def test_sections_apply_as_in_ros(pattern: str, node: str, matches: bool) -> None:
    assert applies(pattern, node) == matches


def test_parameter_names_by_section(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text("/**:\n  ros__parameters: {a: {b: 1}}\nleft:\n  arm:\n    ros__parameters:\n")
    assert parameter_names(path) == {"/**": {"a.b"}, "/left/arm": set()}


def test_what_was_removed_is_refused_with_what_replaces_it(tmp_path: Path) -> None:
    every = parameters(InverseDynamicsNodeConfig, internal=True)
    assert any(entry.internal for entry in every)
    path = tmp_path / "arm.yaml"
    for entry in every:
        path.write_text(f"{entry.name}: {str(entry.default).lower()}\n")
        if entry.internal:
            with pytest.raises(ConfigurationError) as error:
                load_yaml(path, InverseDynamicsNodeConfig)
            assert f"'{entry.name}' was removed: {entry.internal}" in str(error.value)
    # A study's own value is seen in the file that it writes.
    written = dump_yaml(replace(InverseDynamicsConfig(), rigid_body__unusual=3.0))
    assert "# internal: rigid_body.unusual: 3.0\n" in written and "contact_longest" not in written
