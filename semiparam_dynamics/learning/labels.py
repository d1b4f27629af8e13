"""Class labels: text or numbers, not both."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from semiparam_dynamics.errors import LearningError


def plain_labels(labels: Any) -> list[Hashable]:
    """Labels as Python's own objects, equal and hashed alike whatever array they come from."""
    plain: list[Hashable] = np.asarray(labels).tolist()
    return plain


def check_kind(labels: Sequence[Hashable], known: Sequence[Hashable]) -> None:
    """Raise LearningError for labels that couldn't be sorted, or saved, with those known."""
    kinds = {"text" if isinstance(label, str) else "numbers" for label in [*labels, *known[:1]]}
    if len(kinds) > 1:
        raise LearningError("Labels must be all text or all numbers.")
