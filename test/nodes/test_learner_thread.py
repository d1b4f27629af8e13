"""A thread behind a bounded queue."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Event, get_ident
from typing import Any

import pytest

from semiparam_dynamics.base.nodes import learner_thread
from semiparam_dynamics.base.nodes.learner_thread import LearnerThread

LONG = 120.0  # s: only reached when something is broken


@pytest.fixture
def make() -> Iterator[Callable[..., LearnerThread[int]]]:
    made: list[LearnerThread[int]] = []

    def make(work: Callable[[int], Any], capacity: int = 1000, **options: Any) -> Any:
        made.append(LearnerThread(work, capacity, **options))
        return made[-1]

    yield make
    for thread in made:
        thread.close()


class Held:
    """Work that begins when it may, and notes what it was given."""

    def __init__(self) -> None:
        self.begun, self.go = Event(), Event()
        self.done: list[int] = []

    def __call__(self, entry: int) -> None:
        self.begun.set()
        assert self.go.wait(LONG)
        self.done.append(entry)


def drain(thread: LearnerThread[int]) -> None:
    with thread.paused(drained=True):
        assert not thread.busy and len(thread) == 0


def test_drops_the_oldest_of_too_many(make) -> None:
    held = Held()
    thread = make(held, capacity=7)
    thread.put(0)
    assert held.begun.wait(LONG) and thread.busy
    for k in range(1, 10):
        thread.put(k)
    assert thread.dropped == 2 and len(thread) == 7
    thread.capacity = 4
    thread.put(10)
    assert thread.dropped == 6
    held.go.set()
    drain(thread)
    assert held.done == [0, 7, 8, 9, 10]
    large = make(held.done.append, capacity=4, size=lambda entry: entry)
    with large.paused():
        large.put(3, 5)  # larger than all that may wait: alone, it does
        assert len(large) == 5 and large.dropped == 3
    drain(large)
    assert held.done[-1] == 5


def test_within_the_work_a_pause_does_nothing(make) -> None:
    done: list[int] = []

    def work(entry: int) -> None:
        with thread.paused(drained=True):
            done.append(entry)

    thread = make(work)
    thread.put(1)
    drain(thread)
    assert done == [1]


def test_entries_can_be_worked_off_by_the_caller_after_those_that_wait(make) -> None:
    done: list[tuple[int, int]] = []
    thread = make(lambda entry: done.append((entry, get_ident())))
    thread.put(0)
    thread.do(1)
    assert [k for k, _ in done] == [0, 1] and done[-1][1] == get_ident() != done[0][1]


def test_a_part_of_the_work_waits_for_its_turn_unless_entries_wait(make, monkeypatch) -> None:
    monkeypatch.setattr(learner_thread, "TURN_S", LONG)
    reached, passed = Event(), Event()

    def work(entry: int) -> None:
        reached.set()
        thread.wait_for_turn()
        passed.set()

    thread = make(work)
    thread.wait_for_turn()  # in another thread nothing waits
    thread.put(0)
    assert reached.wait(LONG) and not passed.wait(0.05)
    end = time.monotonic() + LONG / 2.0
    while not passed.wait(0.05):  # the thread may not have come to wait yet
        assert time.monotonic() < end
        thread.give_turn()
    for ending in (lambda: thread.put(2), lambda: drain(thread)):
        reached.clear()
        passed.clear()
        thread.put(1)
        assert reached.wait(LONG)
        ending()
        assert passed.wait(LONG / 2.0)


def test_ends_after_what_waits_and_starts_again(make) -> None:
    done: list[int] = []
    thread = make(done.append)
    thread.close()
    for k in range(3):
        thread.put(k)
        thread.close()
    assert done == [0, 1, 2]


def test_idle_goes_on_after_an_exception_and_its_own_hides_none(make) -> None:
    called = Event()

    def work(entry: int) -> None:
        raise ValueError("first")

    def idle() -> None:
        assert thread.busy and not thread.behind
        called.set()
        raise ValueError("second")

    thread = make(work, idle=idle)
    thread.put(0)
    drain(thread)
    called.clear()
    thread.call_idle()
    assert called.wait(LONG)
    with thread.paused():
        assert thread.problem == "ValueError: first"


def test_idle_is_called_after_work_and_again_as_long_as_it_asks_for_it(make) -> None:
    calls: list[int] = []
    asked, ended = [0.0, 0.001, None, 0.0, None], Event()

    def idle() -> float | None:
        calls.append(len(done))
        answer = asked.pop(0)
        if answer is None:
            ended.set()
        return answer

    done: list[int] = []
    thread = make(done.append, idle=idle)
    thread.put(0)
    assert ended.wait(LONG)
    assert calls == [1, 1, 1]
    ended.clear()
    thread.call_idle()
    assert ended.wait(LONG)
    assert calls == [1] * 5


def test_who_waits_for_the_end_of_the_work_does_not_wait_for_idle(make) -> None:
    calls: list[int] = []
    begun, again = Event(), Event()

    def idle() -> float | None:
        calls.append(len(calls))
        if len(calls) > 1:
            again.set()
            return None
        begun.set()
        end = time.monotonic() + LONG
        while not thread._drains:  # until the other thread waits
            assert time.monotonic() < end
            time.sleep(0.001)
        return 0.0

    thread = make(lambda entry: None, idle=idle)
    thread.put(0)
    assert begun.wait(LONG)
    with thread.paused(drained=True):
        assert calls == [0]
    assert again.wait(LONG)  # it goes on afterwards
