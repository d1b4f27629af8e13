"""Write the nodes' YAML files, and the documentation's tables, from the parameters' definition.

python tools/write_config.py config docs
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path

from semiparam_dynamics.base.config_files import dump_yaml
from semiparam_dynamics.base.parameters import Parameter, Value, parameters
from semiparam_dynamics.changes.payload_bridge import PayloadBridgeNodeConfig
from semiparam_dynamics.control.config import ComputedTorqueNodeConfig, TrajectoryEffortsNodeConfig
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig, LivePageNodeConfig
from semiparam_dynamics.recognition.config import (
    ImageSourceNodeConfig,
    ObjectRecognitionNodeConfig,
    ObjectsPageNodeConfig,
)
from semiparam_dynamics.simulation.config import ArmSimulatorNodeConfig, learner_config

FILES = {
    "inverse_dynamics.yaml": InverseDynamicsNodeConfig(),
    "demo.yaml": learner_config(),
    "arm_simulator.yaml": ArmSimulatorNodeConfig(),
    "computed_torque.yaml": ComputedTorqueNodeConfig(),
    "trajectory_efforts.yaml": TrajectoryEffortsNodeConfig(),
    "payload_bridge.yaml": PayloadBridgeNodeConfig(),
    "live_page.yaml": LivePageNodeConfig(),
    "object_recognition.yaml": ObjectRecognitionNodeConfig(),
    "image_source.yaml": ImageSourceNodeConfig(),
    "objects_page.yaml": ObjectsPageNodeConfig(),
}
# The page has a section for each; demo.yaml is one of the first.
NODES = {Path(name).stem: type(config) for name, config in FILES.items() if name != "demo.yaml"}
TABLES = "parameters.md"
INTRODUCTION = """\
# Parameters

Written by `python tools/write_config.py config docs` from the definitions in the code: change them
there, not here.

The names are the same in a node's YAML file, in `--set NAME=VALUE` of the command line and in
`ros2 param`. A dot stands for a level of the YAML. A value outside its range, and a name that is
not here, is refused with a sentence. Parameters marked live may be changed while the node runs
(`ros2 param set`, rqt_reconfigure); the others are read when it starts. `config/` has a file for
each node with all of them at their defaults.
"""
BASIC = """\
### basic

Those that most users set. The tables after this one have all parameters; the others suit most
robots as they are.
"""
HEADER = (
    "| parameter | default | range | unit | live | meaning |",
    "|---|---|---|---|---|---|",
)
TYPES: dict[object, str] = {
    bool: "true, false",
    int: "whole number",
    float: "number",
    str: "text",
    tuple[str, ...]: "list of texts",
    tuple[float, ...]: "list of numbers",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write all files into the folders that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path, help="folder of the YAML files")
    parser.add_argument("docs", type=Path, help=f"folder of {TABLES}")
    given = parser.parse_args(arguments)
    for name in FILES:
        (given.config / name).write_text(contents(name), encoding="utf-8")
    (given.docs / TABLES).write_text(parameter_tables(), encoding="utf-8")


def contents(name: str) -> str:
    """The text of one of `FILES`; it applies to the node under any name."""
    return dump_yaml(FILES[name])


def parameter_tables() -> str:
    """A page in Markdown: a section for each node, a table for each group of parameters."""
    parts = [INTRODUCTION]
    for node, config_type in NODES.items():
        parts.append(f"## {node}\n")
        if basic := [entry for entry in parameters(config_type) if entry.basic]:
            rows = "\n".join([*HEADER, *map(_row, basic)])
            parts += [BASIC, f"{rows}\n", "### the node's own\n"]
        for title, meaning, entries in _groups(config_type):
            heading = [f"### {title}\n", f"{meaning}\n"] if title else []
            parts += [*heading, "\n".join([*HEADER, *map(_row, entries)]) + "\n"]
    return "\n".join(parts)


def _groups(config_type: type, prefix: str = "") -> Iterator[tuple[str, str, list[Parameter]]]:
    """Title, meaning and parameters of each configuration class; the node's own has no title."""
    known = {entry.name: entry for entry in parameters(config_type)}
    fields = dataclasses.fields(config_type)
    own = [
        known[field.name]
        for field in fields
        if "parameter" in field.metadata and field.name in known
    ]
    if own:
        kind = config_type.__name__.removesuffix("Config")
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()
        title = "" if kind.endswith("Node") else f"`{prefix[:-1]}`" if prefix else words
        meaning = (config_type.__doc__ or "").splitlines()[0]
        named = [dataclasses.replace(entry, name=prefix + entry.name) for entry in own]
        yield title, meaning, named
    hints = typing.get_type_hints(config_type)
    for field in fields:
        if "inline" in field.metadata:
            inner = prefix if field.metadata["inline"] else f"{prefix}{field.name}."
            yield from _groups(hints[field.name], inner)


def _row(entry: Parameter) -> str:
    cells = [
        f"`{entry.name}`",
        f"`{_value(entry.default)}`",
        _range(entry),
        _text(entry.unit),
        "live" if entry.live else "",
        _text(entry.description),
    ]
    return f"| {' | '.join(cells)} |"


def _range(entry: Parameter) -> str:
    if entry.choices:
        return ", ".join(f"`{choice}`" for choice in entry.choices)
    if entry.low is None and entry.high is None:
        return TYPES[entry.type]
    low = "" if entry.low is None else f"{entry.low:.10g}"
    high = "" if entry.high is None else f"{entry.high:.10g}"
    each = "each " if isinstance(entry.default, tuple) else ""
    return f"{each}{low} .. {high}".strip()


def _value(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    """Plain text on one line, without what Markdown would take for a sign of its own."""
    return re.sub(r"([|*<~])", r"\\\1", " ".join(text.split()))


if __name__ == "__main__":
    main()
