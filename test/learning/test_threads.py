"""Maps of blocks over threads: their order, errors, number, and BLAS' own beside them."""

from __future__ import annotations

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from semiparam_dynamics.learning import products
from semiparam_dynamics.learning.products import (
    for_each,
    map_in_order,
    n_threads,
    one_thread,
)


def test_blocks_come_in_order_and_errors_come_through() -> None:
    assert list(map_in_order(lambda i: i * i, range(100))) == [i * i for i in range(100)]
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(lambda i: 1 // (50 - i), range(100)))
    read: list[int] = []
    results = map_in_order(lambda i: i, (read.append(i) or i for i in range(100)))
    next(results)
    assert len(read) <= 2 * n_threads() + 1
    results.close()  # type: ignore[attr-defined]


def threads_of_a_map() -> set[int]:
    return set(map_in_order(lambda _: threading.get_ident(), range(20)))


def test_threads_are_bounded_as_those_of_products_are(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = n_threads()
    for most, wanted in (("1", 1), ("1,4", 1), ("4096", cores), ("0", cores), ("all", cores)):
        monkeypatch.setenv("OMP_NUM_THREADS", most)
        assert n_threads() == wanted
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads_of_a_map() == {threading.get_ident()}


def test_one_thread_is_this_one_and_only_here() -> None:
    usual = n_threads()
    elsewhere: list[int] = []
    with one_thread():
        assert n_threads() == 1 and threads_of_a_map() == {threading.get_ident()}
        other = threading.Thread(target=lambda: elsewhere.append(n_threads()))
        other.start()
        other.join()
        with one_thread():
            pass
        assert n_threads() == 1
    assert elsewhere == [usual] and n_threads() == usual
    with pytest.raises(ZeroDivisionError), one_thread():
        1 / 0  # noqa: B018
    assert n_threads() == usual


def blas_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_maps_that_overlap_leave_the_number_of_threads_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(products, "n_threads", lambda: 2)
    products._controller.cache_clear()  # another test may have loaded a BLAS of its own since
    with threadpool_limits(2):
        usual = blas_threads()
        first, second = (map_in_order(abs, range(20)) for _ in range(2))
        assert next(first) == next(second) == 0
        assert blas_threads() == {1}
        assert list(first) == list(range(1, 20))
        assert blas_threads() == {1}  # the second is still at work
        second.close()  # type: ignore[attr-defined]
        assert blas_threads() == usual


def test_for_each_does_every_item_and_errors_come_through() -> None:
    done = [0] * 50
    for_each(lambda i: done.__setitem__(i, done[i] + 1), range(50))
    assert done == [1] * 50
    with pytest.raises(ZeroDivisionError):
        for_each(lambda i: done.__setitem__(i, 1 // (20 - i)), range(50))
