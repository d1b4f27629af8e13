"""`--cluster`: what an executor of a real local cluster of two processes does."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from concurrent.futures import as_completed
from math import factorial
from pathlib import Path
from typing import Any

import pytest

from semiparam_dynamics.cli.options import add_cluster, cluster_executor
from semiparam_dynamics.errors import ConfigurationError

distributed = pytest.importorskip("distributed", reason="the extra 'distributed' isn't installed")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(processes=True, **settings) as cluster:
        yield cluster.scheduler_address


def test_without_an_address_there_is_no_executor() -> None:
    parser = argparse.ArgumentParser()
    add_cluster(parser)
    with cluster_executor(parser.parse_args([]).cluster) as executor:
        assert executor is None


def test_tasks_run_elsewhere_and_their_errors_come_back(address: str) -> None:
    parser = argparse.ArgumentParser()
    add_cluster(parser)
    with cluster_executor(parser.parse_args(["--cluster", address]).cluster) as executor:
        assert executor is not None
        futures = {executor.submit(factorial, i): i for i in range(20)}
        assert {futures[f]: f.result() for f in as_completed(futures)} == {
            i: factorial(i) for i in range(20)
        }
        assert executor.submit(os.getpid).result() != os.getpid()
        with pytest.raises(ValueError, match="negative"):
            executor.submit(factorial, -1).result()


def test_a_worker_that_dies_changes_no_result(address: str, tmp_path: Path) -> None:
    def once(i: int) -> int:
        import os
        import signal

        if i == 3 and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return i * i

    with cluster_executor(address) as executor:
        assert executor is not None
        futures: list[Any] = [executor.submit(once, i) for i in range(8)]
        assert [future.result(timeout=60) for future in futures] == [i * i for i in range(8)]
    assert (tmp_path / "died").exists()


def test_nothing_at_the_address_is_said() -> None:
    with (
        pytest.raises(ConfigurationError, match="dask scheduler"),
        cluster_executor("tcp://127.0.0.1:9", timeout=0.5),
    ):
        pass
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty:
        with (
            pytest.raises(ConfigurationError, match="has no workers"),
            cluster_executor(empty.scheduler_address),
        ):
            pass
