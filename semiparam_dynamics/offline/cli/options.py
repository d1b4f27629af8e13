"""Options of several verbs: parameters, bags and their topics, a cluster."""

from __future__ import annotations

import argparse
import sys
import textwrap
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from semiparam_dynamics.base.config_files import describe, is_empty, load_yaml, parse_value
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import Parameter, from_flat, parameters, replace, to_flat
from semiparam_dynamics.base.progress import processes
from semiparam_dynamics.base.storage import saved_header
from semiparam_dynamics.learner.config import InverseDynamicsConfig, InverseDynamicsNodeConfig
from semiparam_dynamics.learner.learner import LOCKED
from semiparam_dynamics.offline.cli.cluster import cluster_executor

C = TypeVar("C")
FLAGS = "options"  # the group of those parameters that have an option of their own
BASIC = "basic"  # the group of those that most users set
INDENTED: dict[str, Any] = {"subsequent_indent": " " * 4, "break_on_hyphens": False}


def add_config_options(
    parser: argparse.ArgumentParser, config_type: type, flags: Sequence[Parameter] = ()
) -> None:
    """Add ``--params YAML``, ``--set NAME=VALUE`` and ``--help-parameters [GROUP]``.

    flags : parameters with an option of their own, which ``--help-parameters`` lists first, as the
    group "options".
    """
    options = parser.add_argument_group("parameters")
    options.add_argument("--params", metavar="YAML", default="", help="parameters from a file")
    options.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="set one parameter (may be repeated)",
    )
    options.add_argument(
        "--help-parameters",
        metavar="GROUP",
        nargs="?",
        const="",
        action=ParametersHelp,
        config_type=config_type,
        flags=flags,
        help=f"list the parameters, all or such as {BASIC if not flags else FLAGS}",
    )


def flag(entry: Parameter) -> str:
    """The option that sets a parameter where it has one of its own."""
    return f"--{entry.name.replace('_', '-')}"


class ParametersHelp(argparse.Action):
    """Print the parameters of `config_type` whose names begin with the group, and end.

    Attributes
    ----------
    names: of the parameters, as ``--set`` takes them. groups: that the option takes.
    """

    def __init__(
        self, *args: Any, config_type: type, flags: Sequence[Parameter], **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._entries, self._flags = list(parameters(config_type)), flags
        self.names = [entry.name for entry in self._entries]
        self.groups = sorted({name.partition(".")[0] for name in self.names if "." in name})
        self.groups += [BASIC] if any(entry.basic for entry in self._entries) else []
        self.groups += [FLAGS] if flags else []

    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        """Print, and end the process."""
        (_, group, _) = rest
        entries = self._entries
        chosen = [(e.name, e) for e in entries if not group or f"{e.name}.".startswith(f"{group}.")]
        if group == BASIC:
            chosen = [(e.name, e) for e in entries if e.basic]
        if group in ("", FLAGS):
            chosen[:0] = [(flag(e), e) for e in self._flags]
        if not chosen:
            known = ", ".join(self.groups)
            parser.error(f"there is no group '{group}': there are {known}")
        for name, entry in chosen:
            text = textwrap.fill(describe(entry), 80, initial_indent=" " * 4, **INDENTED)
            parser._print_message(f"{name} = {_shown(entry)}\n{text}\n", sys.stdout)
        parser.exit()


def config_from(
    args: argparse.Namespace,
    config_type: type[C],
    node_name: str = "",
    *,
    ignore: Collection[str] = (),
    saved: Mapping[str, object] | None = None,
    defaults: Mapping[str, object] | None = None,
) -> C:
    """The configuration that the options added above describe.

    saved: parameters that count where no file is named. defaults: those of the verb where they are
    others than the parameters' own. `node_name` and `ignore` are those of `load_yaml`.
    Raises ConfigurationError, saying which file or which option is wrong.
    """
    config = from_flat(config_type, {**(defaults or {}), **(saved or {})})
    if args.params:
        config = load_yaml(args.params, config_type, node_name, ignore=ignore, defaults=defaults)
        if is_empty(args.params):
            warn([f"{args.params} is empty: nothing is set"])
    known = {entry.name: entry for entry in parameters(config_type)}
    values: dict[str, object] = dict(to_flat(config))
    for setting in args.settings:
        name, equals, text = setting.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ConfigurationError(f"--set needs NAME=VALUE, not '{setting}'")
        values[name] = _parse(known.get(name), text.strip())
        try:
            from_flat(config_type, {name: values[name]}, internal=False)
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


def add_bags(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the bags and ``--urdf``, which come first in the help."""
    parser.add_argument(
        "bags",
        metavar="BAG",
        nargs="+" if required else "*",
        help="rosbag2 folder, bare .db3 or .mcap file",
    )
    parser.add_argument(
        "--urdf", metavar="FILE", default="", help="default: the bag's robot_description"
    )


def add_topics_and_output(
    parser: argparse.ArgumentParser,
    target: str = "what is predicted",
    out: str = "the files go",
    metavar: str = "DIR",
) -> None:
    """Add ``--target``, the topics, ``--out``, ``--params`` and ``--set``, which come last."""
    parser.add_argument("--target", choices=("effort", "wrench"), help=target)
    parser.add_argument(
        "--joint-states", metavar="TOPIC", default="", help="default: the only one with efforts"
    )
    parser.add_argument(
        "--wrench", metavar="TOPIC", default="", help="default: the only one of its type"
    )
    parser.add_argument("--out", metavar=metavar, required=True, help=f"where {out}")
    add_overwrite(parser)
    add_config_options(parser, InverseDynamicsConfig)


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add ``--overwrite``, without which no verb replaces what is there."""
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace earlier results, kept as NAME.previous",
    )


def learner_config(args: argparse.Namespace, model: str = "") -> InverseDynamicsConfig:
    """The learner's configuration that the options describe.

    model : the file of a saved model, whose parameters count unless the options name a file.
    Raises ConfigurationError, and StorageError where `model` can't be read.
    """
    saved = saved_header(model)[1] if model and not args.params else {}
    saved.pop(LOCKED, None)  # no parameter: what is published counts
    config = node_config(args, InverseDynamicsConfig, saved)
    return replace(config, target=args.target) if args.target else config


def node_config(
    args: argparse.Namespace, config_type: type[C], saved: Mapping[str, object] | None = None
) -> C:
    """A part of the node's configuration, of `config_type`, that the options describe.

    The YAML of the node inverse_dynamics serves as it is: its other parameters are passed over.
    saved : parameters that count where no file is named.
    Raises ConfigurationError.
    """
    names = {entry.name for entry in parameters(InverseDynamicsNodeConfig)}
    own = {entry.name for entry in parameters(config_type)}
    return config_from(args, config_type, "inverse_dynamics", ignore=names - own, saved=saved)


def add_workers(parser: argparse.ArgumentParser, jobs: str) -> None:
    """Add ``--jobs``, with the help text `jobs`, and ``--cluster``."""
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help=jobs)
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        default="",
        help="of a Dask scheduler, such as tcp://host:8786",
    )


def workers(args: argparse.Namespace, most: int = 0) -> AbstractContextManager[Executor | None]:
    """The executor that the options added above describe; None: this process alone.

    most: tasks there are, 0 where that is open. Raises ConfigurationError.
    """
    if args.jobs < 0:
        raise ConfigurationError(f"--jobs {args.jobs}: there can't be less than one process")
    if args.cluster:
        return cluster_executor(args.cluster)
    return processes(args.jobs, most)


def warn(warnings: Iterable[str]) -> None:
    """Print warnings to the error stream."""
    for warning in warnings:
        print(f"semiparam: warning: {warning}", file=sys.stderr)
