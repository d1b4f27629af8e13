"""The tally of what was recognised, against counts by hand."""

from __future__ import annotations

import json

from semiparam_dynamics.recognition.script import Shown, Tally


def filled() -> Tally:
    tally = Tally()
    for name, teach, answers in (
        ("mug", True, ["unknown", "mug", "mug"]),
        ("mug", False, ["mug", "mug"]),
        ("book", True, ["mug", "book", "mug"]),
        ("mug", False, ["mug", "book"]),
        ("book", False, ["book", "unknown"]),
        ("mug", False, ["mug"]),
    ):
        tally.show(name)
        for answer in answers:
            tally.answer(answer, teach)
        tally.show("")
        tally.answer("late", False)
    return tally


def test_rounds_begin_with_a_teaching() -> None:
    first, second = filled().rounds
    assert (first.taught, second.taught) == ("mug", "book")
    assert first.scores() == {"mug": (2, 2)}
    assert second.scores() == {"book": (1, 2), "mug": (2, 3)}
    assert second.score() == (3, 5)
    assert second.confusion() == {"mug": {"mug": 2, "book": 1}, "book": {"book": 1, "unknown": 1}}


def test_an_object_that_was_never_taught_is_rightly_unknown() -> None:
    tally = filled()
    tally.show("pen")
    for answer in ("unknown", "mug", "unknown"):
        tally.answer(answer, False)
    last = tally.rounds[-1]
    assert last.scores()["pen"] == (2, 3)
    assert last.wrong()["pen"] == {"mug": 1}
    assert last.asked[-1].expected == "unknown"
    assert last.wrong()["book"] == {"unknown": 1}


def test_answers_to_nothing_in_view_are_counted_apart() -> None:
    tally = filled()
    assert (tally.answers, tally.stray) == (13, 6)


def test_from_which_frame_on_an_object_is_known() -> None:
    assert Shown("a", True, ["b", "a", "a"]).known_from == 2
    assert Shown("a", True, ["a", "a"]).known_from == 1
    assert Shown("a", True, ["a", "b", "a"]).known_from == 3
    assert Shown("a", True, ["a", "b"]).known_from is None
    assert Shown("a", True).known_from is None


def test_what_went_out_of_view_is_given_back_once() -> None:
    tally = Tally()
    assert tally.show("mug") is None
    tally.answer("mug", False)
    shown = tally.show("book")
    assert shown is not None and (shown.name, shown.answers) == ("mug", ["mug"])
    assert tally.show("") is None  # the book was not recognised as anything
    assert [one.taught for one in tally.rounds] == [""]


def test_the_results_are_json() -> None:
    results = json.loads(json.dumps(filled().results(), allow_nan=False))
    assert results["answers"] == 13
    first, second = results["rounds"]
    assert first["teaching"] == {"frames": 3, "right": 2, "known_from": 2}
    assert second["objects"] == {"book": {"asked": 2, "right": 1}, "mug": {"asked": 3, "right": 2}}
    assert second["accuracy"] == 0.6
