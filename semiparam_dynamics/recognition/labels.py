"""Names of objects, edits of them, and limits of what a teacher may say."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Container
from typing import NamedTuple

from semiparam_dynamics.base.errors import RefusedError, SemiparamError
from semiparam_dynamics.recognition.config import LimitsConfig

QUOTED_CHARACTERS = 40  # of a refused label, in a message


def checked_label(text: str, limits: LimitsConfig, unknown: str) -> str:
    """The name of an object as it is kept: without blanks around it, composed (Unicode's NFC).

    limits: how long it may be. unknown: what can't be a name.

    Raises RefusedError for a name that is too long, blank, `unknown`, or has characters that can't
    be printed.
    """
    # Before the rest, which takes time in proportion.
    if len(text) > limits.max_label_length:
        raise RefusedError(
            f"a label of {len(text)} characters; {limits.max_label_length} are allowed "
            f"(max_label_length): {text[:QUOTED_CHARACTERS]!r}...",
            reason="label too long",
        )
    label = _composed(text)
    if not label:
        raise RefusedError("a label of blanks only", reason="label is blank")
    if not label.isprintable():
        raise RefusedError(
            f"a label has characters that can't be printed: {ascii(label[:QUOTED_CHARACTERS])}",
            reason="label not printable",
        )
    if label == unknown:
        raise RefusedError(
            f"{label!r} is what unknown objects are called, and can't be taught",
            reason="label is reserved",
        )
    return label


def _composed(text: str) -> str:
    """A name without blanks around it, in Unicode's NFC: what looks the same is the same."""
    return unicodedata.normalize("NFC", text.strip())


class Teacher:
    """The object being taught, `label`; none while it is empty.

    limits: may be set at any moment. unknown: what no object can be called.
    """

    def __init__(self, limits: LimitsConfig, unknown: str) -> None:
        self.limits = limits
        self.label = ""
        # The label named last, also after its teaching has ended; none after a name was refused,
        # since `last` is then not what was meant last.
        self.last = ""
        self._unknown = unknown

    def say(self, text: str, known: Container[str], n_known: int) -> None:
        """Take the label to be taught from now on; empty: teaching ends.

        known: names of classes there are, so many as `n_known`.

        Raises RefusedError, and teaching ends: what is shown now is not what was named before.
        """
        if text == self.label:
            return
        self.label = ""
        if not text:
            return
        last, self.last = self.last, ""
        label = checked_label(text, self.limits, self._unknown)
        if label not in known and label != last:
            check_room(n_known, self.limits)
        self.label = self.last = label

    def follow(self, edit: Edit) -> None:
        """Follow an edit: what is being taught gets its new name, or its teaching ends.

        An unknown object that got its name is the one that was named last.
        """
        if edit.action == "name":
            self.last = checked_label(edit.label, self.limits, self._unknown)
            return
        new = edit.other
        if edit.action == "rename":
            new = checked_label(new, self.limits, self._unknown)
        self.label = new if self.label == edit.label else self.label
        self.last = new if self.last == edit.label else self.last

    def stop(self) -> None:
        """End the teaching; the label that was named last stays."""
        self.label = ""


def check_room(n_known: int, limits: LimitsConfig) -> None:
    """Raise RefusedError where there is no room for one more class than `n_known`."""
    if n_known >= limits.max_classes:
        raise RefusedError(
            f"there are {n_known} objects, and {limits.max_classes} are allowed (max_classes)",
            reason="too many classes",
        )


# -------------------------------------------------------------------------------------------------
# Changes of the classes, written as text: ``rename mug -> cup``.

ARROW = "->"
HOW = "write 'rename OLD -> NEW', 'merge LABEL -> INTO', 'forget LABEL' or 'name LABEL'"
MAX_COMMAND = 10000  # characters


class Edit(NamedTuple):
    """`action` is rename, merge, forget or name; `other` the new name, or the class merged into.

    To name is to give the last unknown object its name afterwards.
    """

    action: str
    label: str
    other: str = ""


def parse_edit(text: str) -> Edit:
    """Read an edit, with names in the form in which they are kept. Raises RefusedError for others.

    Names may have blanks in them; one with an arrow in it can only be forgotten or given.
    """
    action, _, rest = text[:MAX_COMMAND].strip().partition(" ")
    rest = _composed(rest)
    if action in ("forget", "name") and rest:
        return Edit(action, rest)
    parts = [part.strip() for part in rest.split(ARROW)]
    if action not in ("rename", "merge") or len(parts) != 2 or not all(parts):
        raise RefusedError(f"an edit is not understood: {HOW}", reason="edit not understood")
    return Edit(action, *parts)


# -------------------------------------------------------------------------------------------------
# Refusals, counted by reason.

MAX_MESSAGE = 200  # characters kept of a message


class Refusals:
    """Counts refusals by their errors' `reason`, of which there are few, whatever comes in.

    counts: reason -> how many. details: reason -> the last one's sentence.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.details: dict[str, str] = {}

    def note(self, error: SemiparamError) -> None:
        """Count a refusal; an error without a reason counts by its class."""
        reason = str(getattr(error, "reason", type(error).__name__))
        self.counts[reason] += 1
        self.details[reason] = str(error)[:MAX_MESSAGE]
