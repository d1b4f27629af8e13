"""The array types of the package; shapes stand in docstrings and comments."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Stamps = npt.NDArray[np.int64]  # nanoseconds
