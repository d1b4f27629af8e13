"""Scripts of demonstrations, what they show, and the count of the answers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.recognition.pictures import Objects
from semiparam_dynamics.recognition.script import (
    Show,
    Shown,
    Step,
    Tally,
    default_script,
    parse_script,
    read_script,
)


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


NAMES = ("mug", "red book", "7")


def test_every_kind_of_line() -> None:
    text = """
    teach mug 30     # a comment
    teach red book 5
    ask 60
    ask red book 10

    pause 1.5
    teach 7 8
    ask 7 2
    ask 3
    """
    assert parse_script(text, NAMES) == (
        Step(("mug",), 30, teach=True),
        Step(("red book",), 5, teach=True),
        Step(("mug", "red book"), 60),
        Step(("red book",), 10),
        Step(pause=1.5),
        Step(("7",), 8, teach=True),
        Step(("7",), 2),
        Step(("mug", "red book", "7"), 3),
    )


def test_a_name_may_be_written_with_combining_characters() -> None:
    step = Step(("caf\u00e9",), 3, teach=True)
    assert parse_script("teach cafe\u0301 3", ("caf\u00e9",)) == (step,)


def test_an_object_can_be_asked_that_was_never_taught() -> None:
    assert parse_script("ask mug 3", NAMES) == (Step(("mug",), 3),)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("show mug 30", "'show mug 30' is not understood"),
        ("teach 30", "which object is taught"),
        ("teach mug", "number of frames up to 1e"),
        ("teach mug many", "not 'many'"),
        ("teach mug 2.5", "whole one, not '2.5'"),
        ("teach mug 0", "whole one, not '0'"),
        ("teach mug -3", "not '-3'"),
        ("teach mug nan", "not 'nan'"),
        ("teach cup 3", "no object 'cup'; there are: mug, red book, 7"),
        ("ask 5", "nothing has been taught yet"),
        ("pause", "number of seconds"),
        ("pause inf", "number of seconds"),
        ("pause mug 3", "'pause mug 3' is not understood"),
    ],
)
def test_a_line_that_is_wrong_is_named(line: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as refused:
        parse_script(f"pause 1\n\n{line}\n", NAMES)
    assert "line 3 of the script" in str(refused.value)


def test_a_script_that_shows_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="shows nothing"):
        parse_script("pause 3\n", NAMES)


def test_a_script_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.txt"
    path.write_text("teach mug 3\nask it\n")
    with pytest.raises(ConfigurationError, match="script.txt: line 2 of the script"):
        read_script(path, NAMES)
    path.write_text("teach mug 3\n")
    assert read_script(path, NAMES) == (Step(("mug",), 3, teach=True),)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="script.txt can't be read"):
        read_script(path, NAMES)
    with pytest.raises(ConfigurationError, match="missing.txt can't be read"):
        read_script(tmp_path / "missing.txt", NAMES)


def test_the_default_asks_all_so_far_after_each_teaching() -> None:
    assert default_script(("a", "b"), 30, 10) == (
        Step(("a",), 30, teach=True),
        Step(("a",), 10),
        Step(("b",), 30, teach=True),
        Step(("a", "b"), 40),
    )


def numbered(names: tuple[str, ...], taught: int, asked: int) -> Objects:
    """Views that are one number each, all different."""
    count = iter(range(1000))

    def some(size: int) -> dict[str, list[np.ndarray]]:
        return {name: [np.array([float(next(count))]) for _ in range(size)] for name in names}

    return Objects(some(taught), some(asked))


@given(
    frames=st.integers(1, 60),
    hold=st.integers(1, 12),
    seed=st.integers(0, 9),
    known=st.integers(1, 3),
)
def test_what_is_asked_is_in_view_for_equal_times(frames, hold, seed, known) -> None:
    objects = numbered(("a", "b", "c"), 5, 7)
    names = objects.names[:known]
    showings = list(Show(objects, hold, seed).showings([Step(names, frames)]))
    shown = Counter({name: 0 for name in names})
    views: dict[str, list[float]] = {name: [] for name in names}
    for showing in showings:
        assert not showing.teach and 0 < len(showing.views) <= hold
        shown[showing.name] += len(showing.views)
        views[showing.name] += [float(view[0]) for view in showing.views]
    assert shown.total() == frames
    assert max(shown.values()) - min(shown.values()) <= 1
    for name in names:
        pool = {float(view[0]) for view in objects.asked[name]}
        assert set(views[name]) <= pool
        # All of them before any comes again.
        assert len(set(views[name][:7])) == min(7, len(views[name]))
        assert set(views[name][7:14]) == (pool if len(views[name]) >= 14 else set(views[name][7:]))


def test_taught_is_only_what_is_for_teaching() -> None:
    objects = numbered(("a", "b"), 4, 4)
    show = Show(objects, 10, 0)
    steps = [Step(("a",), 6, teach=True), Step(pause=2.0), Step(("b",), 2, teach=True)]
    first, pause, second = show.showings(steps)
    assert (first.name, first.teach, second.name) == ("a", True, "b")
    assert {float(v[0]) for v in first.views} == {float(v[0]) for v in objects.taught["a"]}
    assert pause.views == () and pause.pause == 2.0


def test_the_seed_is_the_order() -> None:
    steps = [Step(("a", "b"), 40)]

    def order(seed: int) -> list[float]:
        made = Show(numbered(("a", "b"), 2, 9), 3, seed).showings(steps)
        return [float(view[0]) for showing in made for view in showing.views]

    assert order(1) == order(1) != order(2)
