"""Configurations in YAML files: the same file serves a ROS node and the offline tools."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping
from os.path import commonprefix
from pathlib import Path
from typing import Any, TypeVar

import yaml  # type: ignore[import-untyped]

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import Parameter, Value, from_flat, parameters, to_flat

C = TypeVar("C")
MAX_BYTES = 2_000_000  # of a small file: YAML takes a second for each million

# Parameters that every ROS node has, of no concern to a configuration.
ROS_PARAMETERS = ("use_sim_time", "start_type_description_service")


def load_yaml(
    path: str | Path,
    config_type: type[C],
    node_name: str = "",
    *,
    ignore: Collection[str] = (),
) -> C:
    """Read a configuration from a YAML file, plain and nested or in ROS's form.

    In ROS's form (``NODE: ros__parameters: ...``) the sections ``/**`` and then `node_name` count,
    or the only section where no `node_name` is given. Names in `ignore`, such as a node's own
    parameters, are passed over. Raises ConfigurationError, naming the file, where it can't be read
    or a parameter is unknown, of the wrong type or out of range.
    """
    path = Path(path).expanduser()
    document = _document(path)
    try:
        values = {k: v for tree in _applying(document, node_name) for k, v in _flatten(tree)}
        for name in {*ROS_PARAMETERS, *ignore}:
            values.pop(name, None)
        return from_flat(config_type, values, internal=False)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def is_empty(path: str | Path) -> bool:
    """Return whether a YAML file sets nothing, comments apart.

    Raises ConfigurationError as :func:`load_yaml`.
    """
    return not _document(Path(path).expanduser())


def read_small(path: Path) -> str:
    """The text of a file in UTF-8. Raises OSError, or ValueError where it is none, or large."""
    with path.open("rb") as stream:
        text = stream.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes, as no such file has")
    return text.decode()


def _document(path: Path) -> dict[Any, Any]:
    try:
        document = parse_value(read_small(path))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} can't be read: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict | None):
        raise ConfigurationError(f"{path} holds no parameters, but {type(document).__name__}")
    return document or {}


def parameter_names(path: str | Path) -> dict[str, set[str]]:
    """The names of the parameters in each section of a file in ROS's form, such as ``/**``.

    Raises ConfigurationError as :func:`load_yaml`.
    """
    path = Path(path).expanduser()
    try:
        return {
            pattern: {name for name, _ in _flatten(values or {})}
            for pattern, values in _sections(_document(path))
        }
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def applies(pattern: str, node: str) -> bool:
    """Return whether ROS gives a section's parameters to a node, such as ``/left/arm``."""
    levels = {"**": "(/[^/]+)*", "*": "/[^/]+"}  # the first stands for none as well
    names = pattern.removeprefix("/").split("/")
    regex = "".join(levels.get(name, f"/{re.escape(name)}") for name in names)
    return re.fullmatch(regex, node) is not None


def parse_value(text: str) -> Any:
    """Parse YAML text as ROS does, so that 1e-3 is a number; ConfigurationError says why not."""
    try:
        return yaml.load(text, Loader=_Loader)  # nosec B506 # it is a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"broken YAML: {' '.join(str(error).split())}") from None


def dump_yaml(config: object, node_name: str = "/**") -> str:
    """The configuration as a ROS parameter file, each parameter with its meaning and range.

    ``/**`` is a node of any name in any namespace.
    """
    lines = [f"{node_name}:", "  ros__parameters:"]
    opened: list[str] = []  # groups of the line before
    values = to_flat(config)
    for entry in parameters(type(config), internal=True):
        name, value = entry.name, values[entry.name]
        if entry.internal:
            if value != entry.default:  # by a study in Python: no file sets it
                lines.append(f"    # internal: {name}: {_yaml(value)}")
            continue
        *groups, last = name.split(".")
        for depth in range(len(commonprefix([groups, opened])), len(groups)):
            lines.append(f"{'  ' * (depth + 2)}{groups[depth]}:")
        opened = groups
        indent = "  " * (len(groups) + 2)
        comment = textwrap.wrap(describe(entry), 98 - len(indent), break_on_hyphens=False)
        lines.extend(f"{indent}# {line}" for line in comment)
        # An empty list has no type in ROS; as the default it need not be given.
        hidden = "# " if value == () and entry.default == () else ""
        lines.append(f"{indent}{hidden}{last}: {_yaml(value)}")
    return "\n".join(lines) + "\n"


def describe(entry: Parameter) -> str:
    """A parameter's meaning, unit and range on one line."""
    notes = []
    if entry.choices:
        notes.append(" | ".join(entry.choices))
    if entry.low is not None or entry.high is not None:
        low = "" if entry.low is None else f"{entry.low:.10g}"
        high = "" if entry.high is None else f"{entry.high:.10g}"
        notes.append(f"{low} .. {high}".strip())
    if entry.unit:
        notes.append(entry.unit)
    text = " ".join(entry.description.split())
    return f"{text} ({', '.join(notes)})" if notes else text


def _applying(document: dict[Any, Any], node_name: str) -> list[Any]:
    """The trees of parameters that apply to a node, the last one first to count."""
    sections = dict(_sections(document))
    if not sections:
        return [document]
    everywhere = [values for name, values in sections.items() if name.endswith("*")]
    own = {name: values for name, values in sections.items() if not name.endswith("*")}
    wanted = node_name.rsplit("/", 1)[-1]
    chosen = [values for name, values in own.items() if name.rsplit("/", 1)[-1] == wanted]
    if not node_name and len(own) <= 1:
        chosen = list(own.values())
    if len(chosen) > 1 or not (chosen or everywhere):
        there = ", ".join(name.lstrip("/") for name in own)
        raise ConfigurationError(
            f"one section must be for the node '{node_name}', but they are for: {there}"
        )
    return [values or {} for values in (*everywhere, *chosen)]


def _sections(document: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Node name and parameters of ROS's form; a namespace may be a level of its own."""
    for key, value in document.items():
        if isinstance(value, dict):
            name = f"{prefix}/{str(key).strip('/')}"
            if "ros__parameters" in value:
                yield name, value["ros__parameters"]
            else:
                yield from _sections(value, name)


def _flatten(tree: Any, prefix: str = "") -> Iterator[tuple[str, object]]:
    if not isinstance(tree, dict):
        raise ConfigurationError(f"parameters must be 'name: value' lines, not {tree!r}")
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _flatten(value, f"{name}.")
        else:
            yield name, value


def _yaml(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_yaml(item) for item in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = yaml.safe_dump(value, default_style='"', width=float("inf"), allow_unicode=False)
        return str(text).strip()
    text = repr(value)
    if isinstance(value, float) and "." not in text:
        # Only with a point is it a number to every YAML reader.
        text = text.replace("e", ".0e") if "e" in text else f"{text}.0"
    return text


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Safe YAML with exponents as in YAML 1.2, text as names, and neither aliases nor repeats."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse aliases, as ROS does: a few lines of them can stand for any amount of text."""
        if self.check_event(yaml.AliasEvent):
            line = self.peek_event().start_mark.line + 1
            raise yaml.YAMLError(f"aliases (*name) can't be used here, line {line}")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        """Refuse a repeated name, whose first value would be lost without a warning."""
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for name, count in Counter(key.value for key in keys).items():
            if count > 1:
                raise yaml.YAMLError(f"'{name}' stands twice, line {node.start_mark.line + 1}")
        for key in keys:
            key.tag = "tag:yaml.org,2002:str"  # a parameter may be called `on` or `y`
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)
