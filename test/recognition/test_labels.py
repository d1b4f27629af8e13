"""Names of objects, and edits of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiparam_dynamics.base.errors import RefusedError
from semiparam_dynamics.recognition.config import LimitsConfig
from semiparam_dynamics.recognition.labels import Edit, Teacher, checked_label, parse_edit


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("rename mug -> cup", Edit("rename", "mug", "cup")),
        ("  merge red mug->mug ", Edit("merge", "red mug", "mug")),
        ("forget red mug", Edit("forget", "red mug")),
        ("forget a -> b", Edit("forget", "a -> b")),
        (" name red mug", Edit("name", "red mug")),
        ("merge cafe\u0301 -> cafe\u0301 2", Edit("merge", "caf\u00e9", "caf\u00e9 2")),
    ],
)
def test_reads_edits(text, edit):
    assert parse_edit(text) == edit


@pytest.mark.parametrize(
    "text",
    ["", "rename", "rename mug", "rename mug ->", "rename -> cup", "merge a -> b -> c"]
    + ["forget", "forget  ", "name", "name ", "delete mug", "rename mug cup", "x" * 100_000],
)
def test_refuses_anything_else_and_says_how(text):
    with pytest.raises(RefusedError, match="write 'rename OLD -> NEW'") as caught:
        parse_edit(text)
    assert caught.value.reason == "edit not understood"


LIMITS = LimitsConfig()
REASONS = {
    "label too long",
    "label is blank",
    "label not printable",
    "label is reserved",
    "too many classes",
}


@pytest.fixture
def teacher() -> Teacher:
    return Teacher(LIMITS, "unknown")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("mug", "mug"),
        ("  red mug\n", "red mug"),
        ("Tasse à café", "Tasse à café"),
        ("cafe\u0301", "caf\u00e9"),  # the same word, written in two ways
        ("x" * 100, "x" * 100),
    ],
)
def test_names_are_kept_in_one_form(text, label):
    assert checked_label(text, LIMITS, "unknown") == label


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x" * 10_000, "label too long"),
        (" " * 101, "label too long"),
        (" \t ", "label is blank"),
        ("mug\x00", "label not printable"),
        ("a\nb", "label not printable"),
        ("\x1b[31mmug", "label not printable"),
        ("unknown", "label is reserved"),
        (" unknown ", "label is reserved"),
    ],
)
def test_refuses_with_a_reason_and_a_short_message(text, reason):
    with pytest.raises(RefusedError) as caught:
        checked_label(text, LIMITS, "unknown")
    assert caught.value.reason == reason
    assert len(str(caught.value)) < 300 and str(caught.value).isprintable()


@given(st.text(max_size=200))
def test_whatever_is_said_either_holds_or_ends_the_teaching(text):
    teacher = Teacher(LIMITS, "unknown")
    teacher.say("mug", (), 0)
    try:
        teacher.say(text, (), 0)
    except RefusedError as error:
        assert teacher.label == "" and error.reason in REASONS
    else:
        assert teacher.label in (text, checked_label(text or "mug", LIMITS, "unknown"))
        assert teacher.last == (teacher.label or "mug")


def test_names_that_are_known_may_come_as_fast_as_they_like(teacher):
    for k in range(1000):
        teacher.say("ab"[k % 2], ("a", "b"), 2)
        assert teacher.label == "ab"[k % 2]


def test_no_name_beyond_the_largest_number_but_those_that_are_known():
    teacher = Teacher(LimitsConfig(max_classes=2), "unknown")
    with pytest.raises(RefusedError, match="max_classes") as caught:
        teacher.say("c", ("a", "b"), 2)
    assert caught.value.reason == "too many classes"
    teacher.say("a", ("a", "b"), 2)
    assert teacher.label == "a"
