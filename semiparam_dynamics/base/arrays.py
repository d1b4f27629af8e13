"""Array types, units, the order of a wrench's entries, and how many durations are kept."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Stamps = npt.NDArray[np.int64]  # nanoseconds

SECOND = 1_000_000_000  # nanoseconds
NANO = 1e-9  # seconds in a nanosecond
TURN = 2.0 * np.pi  # rad
TIMINGS = 1000  # last durations that are kept of what is timed, for the diagnostics' percentiles
WRENCH_AXES = ("fx", "fy", "fz", "tx", "ty", "tz")  # N and N m
