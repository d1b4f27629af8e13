"""``--cluster ADDRESS``: independent pieces of work spread over a Dask cluster's workers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from semiparam_dynamics.cli.extras import require_distributed
from semiparam_dynamics.errors import ConfigurationError


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add ``--cluster``."""
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        default="",
        help="spread the work over the workers of a Dask scheduler, tcp://host:8786 for "
        "instance; they need this package, too",
    )


@contextmanager
def cluster_executor(address: str, timeout: float = 10.0) -> Iterator[Executor | None]:
    """An executor of ``concurrent.futures`` whose tasks the cluster's workers run.

    None where the address is empty. A task whose worker died runs again on another; what isn't
    done at the end is cancelled. `timeout`, in s, is for finding the scheduler.
    Raises MissingExtraError where Dask isn't installed, ConfigurationError where no scheduler
    answers or it has no worker.
    """
    if not address:
        yield None
        return
    require_distributed("--cluster")
    client = _client(address, timeout)
    # Not pure: a function of equal arguments may read a file that has changed since.
    executor: Executor = client.get_executor(pure=False)
    try:
        yield executor
    finally:
        executor.shutdown(wait=False)
        client.close()


def _client(address: str, timeout: float) -> Any:
    from distributed import Client

    try:
        client = Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise ConfigurationError(
            f"No Dask scheduler answers at {address} ({error}): start one with `dask scheduler` "
            f"and workers with `dask worker {address}`."
        ) from None
    if not client.scheduler_info()["workers"]:
        client.close()
        raise ConfigurationError(
            f"The Dask scheduler at {address} has no workers: start some with "
            f"`dask worker {address}`."
        )
    return client
