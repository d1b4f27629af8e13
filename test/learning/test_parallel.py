from __future__ import annotations

import threading

import pytest

from semiparam_dynamics.learning.rows import map_in_order, n_threads, one_thread


def threads_of_a_map() -> set[int]:
    return set(map_in_order(lambda _: threading.get_ident(), range(20)))


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
