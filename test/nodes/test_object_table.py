"""What the demo's table says of a tally."""

from __future__ import annotations

import io

from semiparam_dynamics.recognition.nodes.object_demo import WIDTH, ObjectTable
from semiparam_dynamics.recognition.script import Shown, Tally


def tally(names: list[str]) -> Tally:
    """Each is taught; then all so far are asked twice, and the second time the last is wrong."""
    made = Tally()
    for known, name in enumerate(names, 1):
        made.show(name)
        made.answer(name, teach=True)
        for asked in names[:known]:
            made.show(asked)
            made.answer(asked, teach=False)
            made.answer("teapot" if asked == name else asked, teach=False)
    made.show("")
    return made


def summary(names: list[str], **figures: str) -> list[str]:
    out = io.StringIO()
    ObjectTable(out).summary(tally(names), figures)
    return out.getvalue().splitlines()


def test_a_row_of_a_taught_and_of_an_asked_object() -> None:
    out = io.StringIO()
    table = ObjectTable(out)
    table.row(Shown("mug", True, ["unknown", "mug", "mug"]))
    table.row(Shown("an extremely long name", False, ["mug", "mug", "cup"]))
    taught, asked = (line.partition(" s  ")[2] for line in out.getvalue().splitlines() if line)
    assert taught.split() == (
        "mug taught, 3 frames: 2 recognised before learned, all from frame 2 on".split()
    )
    assert asked == "an extrem...  asked, 0 of 3 right, taken for: 2 mug, 1 cup"


def test_the_summary_has_a_column_for_each_object() -> None:
    lines = summary(["mug", "cup"])
    assert [line.split() for line in lines[2:5]] == [
        ["after", "mug", "cup", "all"],
        ["mug", "50", "-", "50"],
        ["cup", "100", "50", "75"],
    ]
    assert lines[5] == "worst in the end: cup, 1 of 2 right, taken for: 1 teapot"
    assert lines[6] == "8 frames recognised, 0 dropped"


def test_many_objects_have_only_their_mean() -> None:
    names = [f"object {k}" for k in range(30)]
    lines = summary(names)
    assert max(map(len, lines)) <= WIDTH
    assert lines[2].split() == ["after", "all"]
    assert lines[32].split() == ["object", "29", "98"]


def test_what_was_refused_and_how_long_it_took() -> None:
    figures = {
        "frames dropped": "3",
        "last refused: label too long": "a label of 10000 characters",
        "frame p50 [us]": "21400",
        "frame p99 [us]": "50000",
    }
    lines = summary(["mug"], **figures)
    assert "3 frames recognised, 3 dropped" in lines
    assert "refused: label too long: a label of 10000 characters" in lines
    assert "a frame, from message to answer: 21.4 ms (median), 50.0 ms (99 %)" in lines


def test_nothing_asked_is_no_table() -> None:
    out = io.StringIO()
    ObjectTable(out).summary(Tally(), {})
    assert out.getvalue() == "0 frames recognised, 0 dropped\n"
