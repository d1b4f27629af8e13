"""Command-line options for a configuration: a YAML file, and single parameters on top of it."""

from __future__ import annotations

import argparse
import typing
from collections.abc import Collection
from typing import TypeVar

from semiparam_dynamics.config_files import describe, load_yaml, parse_value
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.parameters import Parameter, from_flat, parameters, to_flat

C = TypeVar("C")


def add_config_options(parser: argparse.ArgumentParser, config_type: type) -> None:
    """Add ``--params YAML`` and ``--set NAME=VALUE``, and list the parameters in the help."""
    options = parser.add_argument_group("parameters")
    options.add_argument("--params", metavar="YAML", default="", help="parameters from a file")
    options.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="set one parameter, after the file; may be given several times",
    )
    names = [
        f"  {entry.name} = {_shown(entry)}\n      {describe(entry)}"
        for entry in parameters(config_type)
    ]
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join(["parameters and their defaults:", *names])


def config_from(
    args: argparse.Namespace,
    config_type: type[C],
    node_name: str = "",
    *,
    ignore: Collection[str] = (),
) -> C:
    """The configuration that the options added above describe.

    `node_name` and `ignore` are those of `load_yaml`. Raises ConfigurationError, saying which file
    or which option is wrong.
    """
    config = config_type()
    if args.params:
        config = load_yaml(args.params, config_type, node_name, ignore=ignore)
    known = {entry.name: entry for entry in parameters(config_type)}
    values: dict[str, object] = dict(to_flat(config))
    for setting in args.settings:
        name, equals, text = setting.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ConfigurationError(f"--set needs NAME=VALUE, not '{setting}'")
        values[name] = _parse(known.get(name), text.strip())
        try:
            from_flat(config_type, {name: values[name]})
        except ConfigurationError as error:
            raise ConfigurationError(f"--set {setting}: {error}") from None
    return from_flat(config_type, values)


def _parse(entry: Parameter | None, text: str) -> object:
    kind = entry.type if entry else None
    if kind is str:
        return text
    if typing.get_origin(kind) is tuple and not text.startswith("["):
        text = f"[{text}]"
    if kind == tuple[str, ...]:
        # A joint may be called 1 or on: names are text whatever they look like.
        inner = text[1:-1] if text.endswith("]") else text[1:]
        return [item.strip().strip("'\"") for item in inner.split(",") if item.strip()]
    return parse_value(text)


def _shown(entry: Parameter) -> str:
    if isinstance(entry.default, tuple):
        return "[" + ", ".join(map(str, entry.default)) + "]"
    if isinstance(entry.default, bool):
        return str(entry.default).lower()
    return str(entry.default) or "''"
