"""Recordings that nothing can be learned from, refused by one rule for all commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from semiparam_dynamics.base.errors import BagError, listing
from semiparam_dynamics.dynamics.sample import seconds_of
from semiparam_dynamics.offline.doctor.messages import LITTLE
from semiparam_dynamics.samples.measurement import Measurement

LEAST_SECONDS = 1.5  # of motion: in less hardly a parameter shows
FEWEST = 50  # measurements, of which some may be left out as stuck: in fewer nothing is told
MORE = "record a minute or more of varied motion (semiparam excite finds one)"


def check_varies(
    path: str | Path, measurements: Sequence[Measurement], axes: Sequence[str], target: str
) -> None:
    """Raise BagError where a bag's readings are constant on every axis that is measured."""
    rows = [m.y for m in measurements if m.y is not None]
    if len(measurements) < FEWEST or len(rows) < 2:
        return
    y = np.array(rows)
    measured = ~np.isnan(y)
    low = np.min(y, axis=0, where=measured, initial=np.inf)
    high = np.max(y, axis=0, where=measured, initial=-np.inf)
    there = np.flatnonzero(measured.any(axis=0)).tolist()
    if not there or (high > low).any():
        return
    # Adding 0 makes -0 a 0.
    told = listing([f"{axes[k]} {low[k] + 0.0:g}" for k in there])
    what = "effort" if target == "effort" else "axis of the wrench"
    raise BagError(
        f"every {what} in {path} is always the same ({told}): nothing can be learned from it; "
        "look whether the driver measures it at all"
    )


def check_motion(stamps: Sequence[int]) -> str:
    """Raise BagError where samples, by their stamps (ns), show too little motion to learn from.

    Where it is little, the answer is a warning; else it is empty.
    """
    seconds = seconds_of(np.array(stamps, dtype=np.int64))
    if seconds < LEAST_SECONDS:
        raise BagError(
            f"{len(stamps)} samples in {seconds:.1f} s of motion are too few, "
            f"{LEAST_SECONDS:g} s are needed at least: {MORE}"
        )
    if seconds < LITTLE:
        return f"the arm moves for {seconds:.1f} s only, so that little is known of it: {MORE}"
    return ""
