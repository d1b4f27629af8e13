"""Checks of the estimators' parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiparam_dynamics.errors import ConfigurationError


def positive(value: Any, name: str) -> float:
    """`value`, or ConfigurationError if it isn't a positive, finite number."""
    if not (np.isfinite(value) and value > 0.0):
        raise ConfigurationError(f"{name} must be a positive number, not {value}.")
    return float(value)


def positive_penalty(penalty: Any) -> float:
    """`penalty`, or ConfigurationError if it isn't a positive, finite number."""
    return positive(penalty, "penalty")


def positive_count(value: Any, name: str) -> int:
    """`value`, or ConfigurationError if it isn't a whole number above 0."""
    if value < 1 or int(value) != value:
        raise ConfigurationError(f"{name} must be a whole number above 0, not {value}.")
    return int(value)
