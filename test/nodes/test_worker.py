from __future__ import annotations

from threading import Event, get_ident
from time import sleep

import pytest

from semiparam_dynamics.nodes.runtime import Worker


def test_does_entries_in_order_in_one_other_thread():
    done: list[tuple[int, int]] = []
    worker = Worker(lambda k: done.append((k, get_ident())), capacity=100)
    for k in range(50):
        worker.put(k)
    worker.wait()
    assert [k for k, _ in done] == list(range(50))
    threads = {thread for _, thread in done}
    assert len(threads) == 1 and get_ident() not in threads
    worker.close()


def test_the_oldest_gives_way_and_what_waits_can_be_forgotten():
    begun, go = Event(), Event()
    done: list[int] = []

    def work(k: int) -> None:
        begun.set()
        go.wait(10.0)
        done.append(k)

    worker = Worker(work, capacity=3)
    worker.put(0)
    assert begun.wait(10.0)
    for k in range(1, 6):
        worker.put(k)
    assert worker.dropped == 2
    go.set()
    worker.wait()
    assert done == [0, 3, 4, 5]

    begun.clear(), go.clear()
    worker.put(6)
    assert begun.wait(10.0)
    worker.put(7)
    go.set()
    worker.clear()
    assert done[4:] in ([6], [6, 7])  # 7 may have begun before it was forgotten
    worker.close()


def test_ends_and_begins_again():
    done: list[int] = []
    worker = Worker(done.append, capacity=3)
    worker.close()
    worker.wait()
    for k in (1, 2):
        worker.put(k)
        worker.close()
    assert done == [1, 2]


def test_what_goes_wrong_is_told_to_the_one_that_puts():
    def work(k: int) -> None:
        if k == 1:
            raise ZeroDivisionError("one")

    worker = Worker(work, capacity=3)
    worker.put(1)
    with pytest.raises(ZeroDivisionError, match="one"):
        worker.wait()
    worker.put(2)
    worker.close()


def test_while_it_is_to_be_still_nothing_begins_and_what_waits_is_done_after():
    done: list[int] = []
    worker = Worker(done.append, capacity=1000)
    for k in range(300):
        worker.put(k)
        if k % 20 == 0:
            with worker.still():
                before = len(done)
                sleep(0.002)
                assert len(done) == before
    worker.wait()
    assert done == list(range(300)) and not worker.busy and len(worker) == 0
    worker.close()


def test_it_is_busy_until_the_last_entry_is_done():
    go, begun = Event(), Event()
    worker = Worker(lambda _: (begun.set(), go.wait(10.0)), capacity=3)
    assert not worker.busy
    worker.put(0)
    assert worker.busy and begun.wait(10.0) and worker.busy
    go.set()
    worker.wait()
    assert not worker.busy
    worker.close()


def test_work_that_waits_for_the_rest_does_not_wait_for_itself():
    done: list[int] = []
    worker = Worker(lambda k: (worker.wait(), done.append(k)), capacity=3)
    worker.put(1)
    worker.wait()
    assert done == [1]
    worker.close()
