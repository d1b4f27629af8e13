"""Consecutive joint states of one publisher, side by side in arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from semiparam_dynamics.arrays import Array, Stamps


@dataclass(frozen=True, slots=True)
class JointStateBlock:
    """k messages with the same names and lengths, in the order in which they came.

    Attributes
    ----------
    names : the joints, in the messages' order.
    stamps : (k,) ns.
    position, velocity, effort : (k, n) with as many columns as the messages have numbers, perhaps
        none.
    message : the i-th of them as a message, for whoever must look at it by itself.
    """

    names: list[str]
    stamps: Stamps
    position: Array
    velocity: Array
    effort: Array
    message: Callable[[int], Any]

    def __len__(self) -> int:
        return len(self.stamps)
