"""A finding of the doctor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finding:
    """A fault, or a fact worth knowing, with its evidence.

    Attributes
    ----------
    kind: in a few words, the same for every log.
    evidence: a sentence with numbers.
    advice: what to do about it.
    joints: those that it is about; empty: all.
    amount: the size of it, in the unit that the evidence names; NaN where it has none.
    mends: parameters that put it right, by their names.
    fault: False for a fact that may be as it should be.
    """

    kind: str
    evidence: str
    advice: str
    joints: tuple[str, ...] = ()
    amount: float = float("nan")
    mends: Mapping[str, object] = field(default_factory=dict)
    fault: bool = True
