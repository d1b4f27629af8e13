"""Tasks on a real local cluster of Dask's."""

from __future__ import annotations

import os
import socket
import threading
import time
from concurrent.futures import as_completed
from math import factorial
from pathlib import Path
from typing import Any

import pytest

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.offline.cli.options import cluster_executor


def test_tasks_run_elsewhere_and_their_errors_come_back(scheduler: str) -> None:
    with cluster_executor(scheduler) as executor:
        futures = {executor.submit(factorial, i): i for i in range(20)}
        assert {futures[f]: f.result() for f in as_completed(futures)} == {
            i: factorial(i) for i in range(20)
        }
        assert executor.submit(os.getpid).result() != os.getpid()
        with pytest.raises(ValueError, match="negative"):
            executor.submit(factorial, -1).result()


def test_a_worker_that_dies_changes_no_result(scheduler: str, tmp_path: Path) -> None:
    def once(i: int) -> int:
        import os
        import signal

        if i == 3 and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return i * i

    with cluster_executor(scheduler) as executor:
        futures: list[Any] = [executor.submit(once, i) for i in range(8)]
        assert [future.result(timeout=60) for future in futures] == [i * i for i in range(8)]
    assert (tmp_path / "died").exists()


def test_a_worker_that_dies_while_its_result_is_on_the_way_changes_no_result(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import distributed

    gather = distributed.Client._gather

    async def lose(client: Any, futures: list[Any], **options: Any) -> Any:
        results = await gather(client, futures, **options)
        for future in futures:
            future._state.lose()  # as the scheduler tells it of what a dead worker held
        return results

    monkeypatch.setattr(distributed.Client, "_gather", lose)
    with cluster_executor(scheduler) as executor:
        results = [executor.submit(factorial, i) for i in range(5)]
        assert [result.result(timeout=60) for result in results] == [1, 1, 2, 6, 24]


def test_the_end_does_not_wait_for_what_is_not_done(scheduler: str) -> None:
    started = time.monotonic()
    with cluster_executor(scheduler) as executor:
        waiting = [executor.submit(time.sleep, 600.0) for _ in range(4)]
    for result in waiting:
        assert result.exception(timeout=60.0) is not None
    assert time.monotonic() - started < 600.0


def test_a_server_that_never_answers_is_no_scheduler() -> None:
    pytest.importorskip("distributed", reason="needs the extra 'distributed'")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        # So that the test ends where nothing else ends it; connections are then refused.
        end = threading.Timer(120.0, server.close)
        end.start()
        try:
            with (
                pytest.raises(ConfigurationError, match=f"is at {address} "),
                cluster_executor(address, timeout=1.0),
            ):
                pass
        finally:
            end.cancel()


def test_nothing_at_the_address_is_said() -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra 'distributed'")
    for address in ("nonsense", "foo://1:1", "tcp://127.0.0.1:9"):
        with (
            pytest.raises(ConfigurationError, match=f"is at {address} .*`dask scheduler`"),
            cluster_executor(address, timeout=0.5),
        ):
            pass
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty:
        with (
            pytest.raises(ConfigurationError, match="it has no workers"),
            cluster_executor(empty.scheduler_address),
        ):
            pass
