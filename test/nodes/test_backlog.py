from __future__ import annotations

from semiparam_dynamics.nodes.backlog import Backlog


def test_does_the_oldest_first_and_drops_it_when_full():
    done: list[int] = []
    backlog = Backlog(done.append, capacity=3)
    for k in range(5):
        backlog.add(k)
    assert len(backlog) == 3 and backlog.dropped == 2
    backlog.do_one()
    assert done == [2]
    backlog.do_all()
    assert done == [2, 3, 4] and not backlog


def test_clear_forgets_what_waits():
    done: list[int] = []
    backlog = Backlog(done.append, capacity=3)
    backlog.add(1)
    backlog.clear()
    backlog.do_all()
    assert not done
