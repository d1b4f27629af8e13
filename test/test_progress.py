"""Processes beside each other, and the threads that each may take."""

from __future__ import annotations

import pytest

from semiparam_dynamics.progress import processes


def threads() -> dict[str, int]:
    """By library, the threads of a worker's products, where SciPy is loaded by its task."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    return {found["filepath"]: found["num_threads"] for found in threadpool_info()}


def test_each_process_computes_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "2")
    with processes(2) as executor:
        assert executor is not None
        found = executor.submit(threads).result()
    assert found
    assert set(found.values()) == {1}


def test_one_process_is_this_one() -> None:
    with processes(1) as executor:
        assert executor is None
