"""Options of several verbs: parameters, bags and their topics, a cluster."""

from __future__ import annotations

import argparse
import sys
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar

from semiparam_dynamics.base.config_files import is_empty, load_yaml, parse_value
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.output_files import reserved
from semiparam_dynamics.base.parameters import Parameter, from_flat, parameters, replace, to_flat
from semiparam_dynamics.base.progress import ProgressBar, processes
from semiparam_dynamics.base.storage import saved_header
from semiparam_dynamics.learner.config import InverseDynamicsConfig, InverseDynamicsNodeConfig
from semiparam_dynamics.learner.learner import LOCKED
from semiparam_dynamics.offline.cli.cluster import cluster_executor
from semiparam_dynamics.offline.cli.light_options import add_overwrite, add_urdf, warn

C = TypeVar("C")


def add_config_options(parser: argparse.ArgumentParser, config_type: type) -> None:
    """Add ``--params YAML`` and ``--set NAME=VALUE``, of the parameters of `config_type`."""
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
    parser.set_defaults(config_type=config_type)


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


def add_bags(
    parser: argparse.ArgumentParser, *, nargs: str | None = "+", name: str = "bags"
) -> None:
    """Add the bags, by default one or more, and ``--urdf``, which come first in the help."""
    parser.add_argument(
        name, metavar="BAG", nargs=nargs, help="rosbag2 folder, bare .db3 or .mcap file"
    )
    add_urdf(parser, "file, or name as ur10; default: the bag's own", default="")


def add_topics(parser: argparse.ArgumentParser, target: str = "what is predicted") -> None:
    """Add ``--target`` and the topics."""
    parser.add_argument("--target", choices=("effort", "wrench"), help=target)
    parser.add_argument(
        "--joint-states", metavar="TOPIC", default="", help="default: the only one with efforts"
    )
    parser.add_argument(
        "--wrench", metavar="TOPIC", default="", help="default: the only one of its type"
    )


def add_output(
    parser: argparse.ArgumentParser,
    out: str = "the files go",
    metavar: str = "DIR",
    *,
    required: bool = True,
) -> None:
    """Add ``--out``, ``--overwrite``, ``--params`` and ``--set``, which come last in the help."""
    parser.add_argument(
        "--out", metavar=metavar, default="", required=required, help=f"where {out}"
    )
    add_overwrite(parser)
    add_config_options(parser, InverseDynamicsConfig)


def yaml_file(out: str, name: str) -> Path:
    """The YAML file that ``--out`` names; `name` in it where it is a folder."""
    path = Path(out).expanduser()
    return path if path.suffix in (".yaml", ".yml") else path / name


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
    Raises ConfigurationError, saying which file or which option is wrong.
    """
    known = {entry.name: entry for entry in parameters(config_type)}
    config = from_flat(config_type, saved or {})
    if args.params:
        others = {e.name for e in parameters(InverseDynamicsNodeConfig)} - known.keys()
        config = load_yaml(args.params, config_type, "inverse_dynamics", ignore=others)
        if is_empty(args.params):
            warn([f"{args.params} is empty: nothing is set"])
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


@contextmanager
def work(
    args: argparse.Namespace, files: Sequence[Path], title: str, warnings: Iterable[str]
) -> Iterator[ProgressBar]:
    """The progress of work that makes `files`, which are reserved.

    At its end the `warnings` are printed, which may say why there is nothing to learn.
    """
    with reserved(files, overwrite=args.overwrite):
        try:
            with ProgressBar(title, sys.stderr) as progress:
                yield progress
        finally:
            warn(warnings)


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
