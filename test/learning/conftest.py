"""Small matrices all over: threads inside their products would only wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_thread_in_products() -> Iterator[None]:
    with threadpool_limits(1):
        yield


@pytest.fixture(autouse=True)
def all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of rows are shared by all cores here, though BLAS' threads are not wanted."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
