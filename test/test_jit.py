"""The compilers where numba has no place for its cache."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_CACHE = """
from numba.core import caching
caching.CacheImpl._locator_classes = []
import numpy as np
from semiparam_dynamics.recursion.features import nystrom_row
phi, centers = np.zeros(2), np.array([[0.0], [1000.0]])
print(nystrom_row(centers, np.array([[2.0, 0.0], [1.0, 1.0]]), np.zeros(1), 1.0, phi, 2), phi)
"""


def test_compiles_where_no_folder_can_be_written_to() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CACHE], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "(0.5, 1.0) [ 0.5 -0.5]", done.stderr
