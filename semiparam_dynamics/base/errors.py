"""The package's own exceptions: each message is a sentence that a user can act on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

LONGEST = 2000  # characters of a sentence that repeats what is in a file


class SemiparamError(Exception):
    """Base of every error that this package raises on purpose; long ones lack their middle."""

    def __str__(self) -> str:
        text, half = super().__str__(), LONGEST // 2
        return text if len(text) <= LONGEST else f"{text[:half]} ... {text[-half:]}"


class ConfigurationError(SemiparamError, ValueError):
    """A parameter is unknown, has the wrong type or lies outside its range."""


class RobotModelError(SemiparamError, ValueError):
    """A URDF can't be read, or lacks the joints or the frame that were asked for."""


class SampleError(SemiparamError, ValueError):
    """A message or an array has the wrong size, a value that is not finite or a bad stamp."""


class BagError(SemiparamError):
    """A bag or a log can't be read, or lacks the topic that was asked for."""


class StorageError(SemiparamError):
    """A saved model can't be written, is damaged, or belongs to another robot or configuration."""


class NothingToSaveError(StorageError):
    """A model that has learned nothing is not saved: no fault of the file's."""


class DamagedModelError(StorageError):
    """A saved model is missing, can't be read or is damaged: the one before it may serve."""


class ForeignModelError(StorageError):
    """A saved model is whole, and of another robot or configuration."""


class MissingExtraError(SemiparamError, ImportError):
    """An optional dependency is needed for what was asked; the message names the extra."""


class LearningError(SemiparamError, ValueError):
    """Data or settings from which a learner can't make an answer."""


class RefusedError(SemiparamError, ValueError):
    """A label, a feature vector or an edit of classes is refused.

    `reason` is one of a few fixed texts, to count by: the message quotes what came, which may be
    something else every time.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class ImageError(RefusedError):
    """An image can't be used."""


class BackboneError(SemiparamError, ValueError):
    """An image network can't be read, or is none that makes a feature vector of an image."""


def positive(value: Any, name: str) -> float:
    """`value`, or ConfigurationError if it isn't a positive, finite number."""
    if not _holds(lambda: math.isfinite(value) and value > 0.0):
        raise ConfigurationError(f"{name} must be a positive number, not {value}.")
    return float(value)


def not_negative(value: Any, name: str) -> float:
    """`value`, or ConfigurationError if it isn't a finite number of 0 or more."""
    if not _holds(lambda: math.isfinite(value) and value >= 0.0):
        raise ConfigurationError(
            f"{name} must not be negative, and must be a finite number, not {value}."
        )
    return float(value)


def proper_share(value: Any, name: str) -> float:
    """`value`, or ConfigurationError if it isn't a number above 0, up to 1."""
    if not _holds(lambda: 0.0 < value <= 1.0):
        raise ConfigurationError(f"{name} must lie in (0, 1], not {value}.")
    return float(value)


def positive_penalty(penalty: Any) -> float:
    """`penalty`, or ConfigurationError if it isn't a positive, finite number."""
    return positive(penalty, "penalty")


def positive_count(value: Any, name: str) -> int:
    """`value`, or ConfigurationError if it isn't a whole number above 0."""
    if isinstance(value, bool) or not _holds(lambda: value >= 1 and int(value) == value):
        raise ConfigurationError(f"{name} must be a whole number above 0, not {value}.")
    return int(value)


def _holds(condition: Callable[[], Any]) -> bool:
    """True if a condition on what should be a number holds; not for text, None or arrays."""
    try:
        return bool(condition())
    except (TypeError, ValueError, OverflowError):  # the last of infinity, or whole numbers
        return False


def listing(names: Sequence[str], most: int = 8) -> str:
    """The names as words: a, b and c."""
    shown = [*names[:most], f"{len(names) - most} more"] if len(names) > most else [*names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
