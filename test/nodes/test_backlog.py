from __future__ import annotations

from semiparam_dynamics.nodes.runtime import Backlog


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


def test_spare_work_is_done_where_nothing_waits_until_there_is_no_more():
    done: list[object] = []
    left = [True, True, False]

    def spare() -> bool:
        done.append("spare")
        return left.pop(0) if left else False

    backlog = Backlog(done.append, capacity=3, spare=spare)
    assert not backlog
    backlog.stir()
    assert backlog and len(backlog) == 0
    backlog.do_one()
    backlog.add(1)
    backlog.do_one()
    assert done == ["spare", 1]
    while backlog:
        backlog.do_one()
    assert done == ["spare", 1, "spare", "spare"]
    backlog.add(2)
    backlog.do_all()
    assert backlog and done[-1] == 2  # there may be some again
    plain = Backlog(done.append, capacity=3)
    plain.stir()
    assert not plain


def test_work_is_late_when_it_waited_longer_than_there_is_patience():
    patient, hasty = Backlog(print, capacity=1), Backlog(print, capacity=1, patience=0.0)
    for backlog in (patient, hasty):
        assert not backlog.late()
        backlog.add(1)
    assert hasty.late() and not patient.late()
    hasty.clear()
    assert not hasty.late()
