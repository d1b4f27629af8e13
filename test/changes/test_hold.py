"""Which samples are learned."""

from __future__ import annotations

from semiparam_dynamics.changes.monitor import DROP, LEARN, WAIT, LearningHold


def verdicts(hold: LearningHold, *stamps: int) -> list[str]:
    return [hold.verdict(stamp) for stamp in stamps]


def test_what_waits_is_learned_when_it_was_nothing() -> None:
    hold = LearningHold()
    hold.wait(10)
    hold.wait(20)
    assert verdicts(hold, 9, 10, 25) == [LEARN, WAIT, WAIT]
    hold.clear()
    assert verdicts(hold, 9, 10, 25) == [LEARN] * 3


def test_what_waits_is_never_learned_when_it_was_a_change() -> None:
    hold = LearningHold()
    hold.wait(10)
    hold.drop(20)
    assert hold.closed and verdicts(hold, 9, 10, 25) == [LEARN, DROP, DROP]
    hold.clear()  # of what waits there is nothing
    hold.resume(30)
    assert not hold.closed and verdicts(hold, 9, 10, 30, 31) == [LEARN, DROP, DROP, LEARN]


def test_late_samples_are_judged_by_when_they_were() -> None:
    hold = LearningHold()
    for start in (100, 200, 300):
        hold.drop(start)
        hold.resume(start + 50)
    assert verdicts(hold, 120, 160, 220, 270, 340, 351) == [DROP, LEARN] * 3


def test_a_change_within_a_change_ends_with_it() -> None:
    hold = LearningHold()
    hold.drop(100)
    hold.wait(150)
    hold.drop(160)
    hold.resume(200)
    assert verdicts(hold, 99, 100, 155, 200, 201) == [LEARN, DROP, DROP, DROP, LEARN]


def test_a_clock_that_goes_back_leaves_no_stretch_behind() -> None:
    hold = LearningHold()
    hold.drop(100)
    hold.resume(200)
    hold.wait(300)
    hold.restart(5)
    assert not hold.closed and verdicts(hold, 5, 150, 300) == [LEARN] * 3
    hold.drop(150)
    hold.restart(5)  # what isn't learned isn't from here on, either
    assert hold.closed and verdicts(hold, 5, 150) == [DROP, DROP]
    hold.resume(60)
    assert verdicts(hold, 5, 60, 61, 150) == [DROP, DROP, LEARN, LEARN]
