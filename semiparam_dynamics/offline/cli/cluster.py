"""Tasks on the workers of a Dask cluster, by an executor of `concurrent.futures`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.extras import require


class ClusterExecutor(Executor):
    """Runs functions on the workers of a Dask cluster.

    `distributed.Client.get_executor` raises TypeError for a task whose worker dies while its result
    is on the way: it looks at the task's state afterwards, which is "lost", and takes the result
    for an error (distributed 2026.8.0, `cfexecutor._cascade_future`).

    client: a `distributed.Client`.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        # Those that are not done. A task to which nothing refers would be cancelled.
        self._results: dict[Any, Future[Any]] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a worker run ``fn(*args, **kwargs)``; raises RuntimeError after the client's end."""
        # Not pure: a function of equal arguments may read a file that has changed since.
        task = self._client.submit(fn, *args, pure=False, **kwargs)
        result = self._results[task] = Future()

        def cancel(result: Future[Any]) -> None:
            if result.cancelled() and not task.cancelled():
                task.cancel()

        result.add_done_callback(cancel)
        task.add_done_callback(self._pass_on)
        return result

    def _pass_on(self, task: Any) -> None:
        """Give what became of a task to who waits for its result; called in a thread of Dask's."""
        result = self._results[task]
        if task.cancelled():
            result.cancel()
        if result.set_running_or_notify_cancel():
            try:
                value = task.result()
            except BaseException as error:
                result.set_exception(error)
            else:
                result.set_result(value)
        del self._results[task]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel what is not done, if so asked; then wait until all is, if so asked."""
        tasks = list(self._results)
        if cancel_futures and tasks:
            self._client.cancel(tasks)
        if wait:
            futures.wait(list(self._results.values()))


@contextmanager
def cluster_executor(address: str, timeout: float = 10.0) -> Iterator[Executor]:
    """An executor of ``concurrent.futures`` whose tasks the cluster's workers run.

    A task whose worker died runs again on another; what isn't done at the end is cancelled.
    `timeout`, in s, is for finding the scheduler. Raises MissingExtraError where Dask isn't
    installed, ConfigurationError where no scheduler answers or it has no worker.
    """
    require("--cluster", "distributed")
    client = _client(address, timeout)
    executor = ClusterExecutor(client)
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        client.close()


def _client(address: str, timeout: float) -> Any:
    from distributed import Client
    from distributed.comm import get_address_host_port, normalize_address

    try:
        # First: a client that fails to begin for its address ends with a traceback.
        get_address_host_port(normalize_address(address))
    except ValueError as error:
        raise ConfigurationError(
            f"--cluster {address} is no address such as tcp://host:8786: {error}"
        ) from None
    try:
        asyncio.run(_greet(normalize_address(address), timeout))
        client = Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError, TypeError, asyncio.TimeoutError) as error:  # TLS needs settings
        why = str(error) or f"nothing was heard within {timeout:g} s"
        raise ConfigurationError(
            f"No Dask scheduler answers at {address} ({why}): start one with `dask scheduler` "
            f"and workers with `dask worker {address}`."
        ) from None
    if not client.scheduler_info()["workers"]:
        client.close()
        raise ConfigurationError(
            f"The Dask scheduler at {address} has no workers: start some with "
            f"`dask worker {address}`."
        )
    return client


async def _greet(address: str, timeout: float) -> None:
    """Connect to a scheduler and leave it; raises asyncio.TimeoutError where it says nothing.

    A client itself has no time limit for its first answer: of another server, or of a scheduler
    that hangs, it would wait for ever.
    """
    from distributed import Security
    from distributed.comm import connect

    options = Security().get_connection_args("client")  # as a client has them by default
    comm = await asyncio.wait_for(connect(address, timeout=timeout, **options), timeout)
    await comm.close()
