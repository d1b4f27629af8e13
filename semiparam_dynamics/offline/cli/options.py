"""Options of several verbs, and what they ask for: a URDF, parameters, bags, a page, a cluster."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import importlib
import os
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from semiparam_dynamics.base.config_files import is_empty, load_yaml, parse_value
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.extras import require
from semiparam_dynamics.base.output_files import reserved
from semiparam_dynamics.base.parameters import Parameter, from_flat, parameters, replace, to_flat
from semiparam_dynamics.base.progress import ProgressBar, processes
from semiparam_dynamics.base.storage import saved_header

if TYPE_CHECKING:
    from semiparam_dynamics.learner.config import InverseDynamicsConfig

C = TypeVar("C")
MAX_CLUSTER_TASKS = 256  # tasks on the cluster at a time, each with a thread here that waits for it
# Where ROS 2, Debian, robotpkg and conda install the files of example-robot-data.
ROOTS = (*os.environ.get("AMENT_PREFIX_PATH", "").split(":"), sys.prefix, "/usr", "/opt/openrobots")


def add_options(parser: argparse._ActionsContainer, *rows: tuple[str, Any, str, str]) -> None:
    """Add options: their names, defaults, what stands for a value in the help, and that help.

    The type is the default's. A type in its place has no default; False stands for a flag.
    """
    for name, value, metavar, text in rows:
        if value is False:
            parser.add_argument(name, action="store_true", help=text)
            continue
        kind, default = (value, None) if isinstance(value, type) else (type(value), value)
        parser.add_argument(name, type=kind, default=default, metavar=metavar, help=text)


def add_urdf(parser: argparse.ArgumentParser, text: str, **options: Any) -> None:
    """Add ``--urdf`` with the help `text`."""
    parser.add_argument("--urdf", metavar="FILE", type=urdf_file, help=text, **options)


def urdf_file(text: str) -> str:
    """The path that `text` is, or that of the robot of this name in an installed package.

    The packages are example-robot-data, whose files lie there, and robot_descriptions, which
    fetches a description when it is first asked for. A name stands alone, without a folder or
    suffix, and no file has it. Raises ArgumentTypeError where no package has the robot.
    """
    if not re.fullmatch(r"\w[\w-]*", text) or Path(text).exists():
        return text
    roots = [Path(place, "cmeel.prefix") for place in sys.path]
    roots += [Path(place) for place in ROOTS if place]
    found = [p for one in roots for p in one.glob("share/example-robot-data/robots/*/*/*.urdf")]
    files = {path.stem.removesuffix("_robot"): path for path in reversed(found)}
    if text in files:
        return str(files[text])
    try:
        described = importlib.import_module("robot_descriptions").DESCRIPTIONS
    except ImportError:
        described = {}
    names = {re.sub("(_official)?_description$", "", key): key for key in described}
    if text in names:
        return _fetched(names[text])
    near = difflib.get_close_matches(text, [*files, *names], n=5, cutoff=0.4)
    known = f"near are {', '.join(near)}" if near else "no package here has it"
    raise argparse.ArgumentTypeError(
        f"there is no file and no robot '{text}', {known} (robots by name: pip install "
        "example-robot-data, or robot_descriptions, which downloads from GitHub)"
    )


def _fetched(key: str) -> str:
    """The URDF of a description of robot_descriptions, which may have to download it."""
    try:
        module = importlib.import_module(f"robot_descriptions.{key}")
        # Of its loaders the one that makes files of xacro has no public name yet.
        return str(importlib.import_module("robot_descriptions._xacro").get_urdf_path(module))
    except Exception as error:  # git's, the network's, xacro's: of any kind
        told = " ".join(str(error).split())[-200:]
        raise argparse.ArgumentTypeError(f"robot_descriptions can't give {key}: {told}") from None


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add ``--overwrite``, without which no verb replaces what is there."""
    text = "replace earlier results, kept as NAME.previous"
    add_options(parser, ("--overwrite", False, "", text))


def add_page(parser: argparse.ArgumentParser, port: int, without: str) -> None:
    """Add ``--open``, ``--no-page`` (its help: `without`) and ``--page-port``; see `page_port`."""
    page = parser.add_mutually_exclusive_group()
    page.add_argument("--open", action="store_true", help="open the page in the browser")
    page.add_argument("--no-page", action="store_true", help=without)
    text = "port of the page; if it is taken another one (default %(default)s)"
    add_options(parser, ("--page-port", port, "PORT", text))


def page_port(args: argparse.Namespace) -> int | None:
    """Return the port asked for; None: no page. Raises ConfigurationError."""
    if not 0 <= args.page_port < 65536:
        raise ConfigurationError(f"--page-port must be 0 .. 65535, not {args.page_port}")
    return None if args.no_page else args.page_port


def warn(warnings: Iterable[str]) -> None:
    """Print warnings to the error stream."""
    for warning in warnings:
        print(f"semiparam: warning: {warning}", file=sys.stderr)


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
    add_options(
        parser,
        ("--joint-states", "", "TOPIC", "default: the only one with efforts"),
        ("--wrench", "", "TOPIC", "default: the only one of its type"),
    )


def add_output(
    parser: argparse.ArgumentParser,
    out: str = "the files go",
    metavar: str = "DIR",
    *,
    required: bool = True,
) -> None:
    """Add ``--out``, ``--overwrite``, ``--params`` and ``--set``, which come last in the help."""
    from semiparam_dynamics.learner.config import InverseDynamicsConfig

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
    from semiparam_dynamics.learner.config import InverseDynamicsConfig
    from semiparam_dynamics.learner.learner import LOCKED

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
    from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig

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
    address = "of a Dask scheduler, such as tcp://host:8786"
    add_options(parser, ("--jobs", 0, "N", jobs), ("--cluster", "", "ADDRESS", address))


def workers(args: argparse.Namespace, most: int = 0) -> AbstractContextManager[Executor | None]:
    """The executor that the options added above describe; None: this process alone.

    most: tasks there are, 0 where that is open. Raises ConfigurationError.
    """
    if args.jobs < 0:
        raise ConfigurationError(f"--jobs {args.jobs}: there can't be less than one process")
    if args.cluster:
        return cluster_executor(args.cluster)
    return processes(args.jobs, most)


class _ClusterExecutor(ThreadPoolExecutor):
    """Runs functions on the workers of a cluster; each result is waited for by a thread.

    `distributed.Client.get_executor` raises TypeError for a task whose worker dies while its result
    is on the way (distributed 2026.8.0).
    """

    def __init__(self, client: Any) -> None:
        super().__init__(MAX_CLUSTER_TASKS)
        self._client = client

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a worker run ``fn(*args, **kwargs)``."""
        # Not pure: a function of equal arguments may read a file that has changed since.
        return super().submit(lambda: self._client.submit(fn, *args, pure=False, **kwargs).result())


@contextmanager
def cluster_executor(address: str, timeout: float = 10.0) -> Iterator[Executor]:
    """An executor of ``concurrent.futures`` whose tasks the cluster's workers run.

    A task whose worker died runs again on another; what isn't done at the end is cancelled.
    `timeout`, in s, is for finding the scheduler. Raises MissingExtraError where Dask isn't
    installed, ConfigurationError where no scheduler answers or it has no worker.
    """
    require("--cluster", "distributed")
    from distributed import Client

    why = "it has no workers"
    try:
        asyncio.run(_greet(address, timeout))
        client = Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError, TypeError, asyncio.TimeoutError) as error:  # TLS needs settings
        why = str(error) or f"nothing was heard within {timeout:g} s"
    else:
        with client:
            if client.scheduler_info()["workers"]:
                executor = _ClusterExecutor(client)
                try:
                    yield executor
                finally:
                    executor.shutdown(wait=False, cancel_futures=True)
                return
    raise ConfigurationError(
        f"No Dask scheduler with workers is at {address} ({why}): start one with `dask scheduler` "
        f"and workers with `dask worker {address}`."
    )


async def _greet(address: str, timeout: float) -> None:
    """Connect to a scheduler and leave it: a client waits for ever for one that says nothing."""
    from distributed import Security
    from distributed.comm import connect

    options = Security().get_connection_args("client")  # as a client has them by default
    comm = await asyncio.wait_for(connect(address, timeout=timeout, **options), timeout)
    await comm.close()
