"""Edits as text."""

from __future__ import annotations

import pytest

from semiparam_dynamics.errors import RefusedError
from semiparam_dynamics.recognition.labels import Edit, parse_edit


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("rename mug -> cup", Edit("rename", "mug", "cup")),
        ("  merge red mug->mug ", Edit("merge", "red mug", "mug")),
        ("forget red mug", Edit("forget", "red mug")),
        ("forget a -> b", Edit("forget", "a -> b")),
    ],
)
def test_reads_edits(text, edit):
    assert parse_edit(text) == edit


@pytest.mark.parametrize(
    "text",
    ["", "rename", "rename mug", "rename mug ->", "rename -> cup", "merge a -> b -> c"]
    + ["forget", "forget  ", "delete mug", "rename mug cup", "x" * 100_000],
)
def test_refuses_anything_else_and_says_how(text):
    with pytest.raises(RefusedError, match="write 'rename OLD -> NEW'") as caught:
        parse_edit(text)
    assert caught.value.reason == "edit not understood"
