"""Tasks on the workers of a Dask cluster, by an executor of `concurrent.futures`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.extras import require

MAX_WAITING = 256  # tasks on the cluster at a time, each with a thread here that waits for it


class _ClusterExecutor(ThreadPoolExecutor):
    """Runs functions on the workers of a cluster; each result is waited for by a thread.

    `distributed.Client.get_executor` raises TypeError for a task whose worker dies while its result
    is on the way (distributed 2026.8.0).
    """

    def __init__(self, client: Any) -> None:
        super().__init__(MAX_WAITING)
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
