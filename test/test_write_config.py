"""The documentation's tables of parameters are those of the definition, and whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import write_config
from write_config import HEADER, NODES, parameter_tables

from semiparam_dynamics.base.config_files import parse_value
from semiparam_dynamics.base.parameters import parameters

CELL = re.compile(r"(?<!\\)\|")  # a bar that Markdown takes for a border


@pytest.fixture(scope="module")
def rows() -> dict[str, list[list[str]]]:
    """The tables' rows by node, each cell as text."""
    sections = parameter_tables().split("\n## ")[1:]
    nodes = {section.splitlines()[0]: section for section in sections}
    return {
        node: [
            [cell.strip() for cell in CELL.split(line)[1:-1]]
            for line in section.splitlines()
            if line.startswith("| `")
        ]
        for node, section in nodes.items()
    }


def test_the_page_in_the_repository_is_what_the_definition_gives(repository: Path) -> None:
    text = (repository / "docs" / "parameters.md").read_text(encoding="utf-8")
    assert text == parameter_tables(), write_config.__doc__


def test_one_command_writes_the_files_and_the_tables(tmp_path: Path) -> None:
    folders = [tmp_path / "config", tmp_path / "docs"]
    for folder in folders:
        folder.mkdir()
    write_config.main([str(folder) for folder in folders])
    assert {path.name for path in (tmp_path / "config").iterdir()} == set(write_config.FILES)
    assert (tmp_path / "docs" / "parameters.md").read_text(encoding="utf-8") == parameter_tables()


@pytest.mark.parametrize("node", NODES)
def test_each_parameter_has_one_whole_row(rows: dict[str, list[list[str]]], node: str) -> None:
    known = {entry.name: entry for entry in parameters(NODES[node])}
    basic = [name for name, entry in known.items() if entry.basic]  # once more in a table of theirs
    assert sorted(row[0].strip("`") for row in rows[node]) == sorted([*known, *basic])
    for row in rows[node]:
        assert len(row) == HEADER[0].count("|") - 1, row
        name, default, span, unit, live, meaning = row
        entry = known[name.strip("`")]
        assert entry.check(parse_value(default.strip("`"))) == entry.default
        assert (live == "live") == entry.live and unit == entry.unit
        assert meaning.replace("\\", "") == entry.description
        for limit in (entry.low, entry.high):
            numbers = [float(word) for word in span.split() if word[-1].isdigit()]
            assert limit is None or float(f"{limit:.10g}") in numbers
        assert all(f"`{choice}`" in span for choice in entry.choices)


def test_every_node_with_a_file_of_parameters_has_a_section(rows) -> None:
    assert set(rows) == {Path(name).stem for name in write_config.FILES} - {"demo"}
