"""What a residual is trained on in batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from semiparam_dynamics.arrays import Array, Indices

# From a model to be started, its inputs (n, d) and its targets (n, T): a batch model of them.
Fit = Callable[[Any, Array, Array], Any]


@dataclass(frozen=True)
class ResidualData:
    """n training samples as a residual sees them."""

    stamps: Indices  # (n,) ns
    inputs: Array  # (n, d), not standardised
    targets: Array  # (n, n_axes + active columns of Phi): y and those columns
    left: Array  # (n, n_axes): y - Phi pi with the `parameters`
    parameters: Array  # (n_parameters,) pi


@dataclass(frozen=True)
class BatchErrors:
    """Errors (n, n_axes) of a residual's start on the samples it was trained on."""

    trained: Array
    held_out: Array  # as if each sample had not been learned
