"""Compilers of inner loops: plain arrays in, plain arrays changed in place, no allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from semiparam_dynamics.arrays import Array

F = TypeVar("F")

if TYPE_CHECKING:

    def compiled(function: F) -> F:
        """The function, compiled by numba when it is first called."""
        return function

    def compiled_as_written(function: F) -> F:
        """The function, compiled with every operation rounded as it stands there."""
        return function

else:
    import numba

    # nogil: a node may learn in one thread while another one serves messages.
    # "reassoc" lets the dot products vectorise; NaN and infinity keep their meaning.
    compiled = numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
    # x / 0 is infinity here: a check that raises would keep loops from vector instructions.
    compiled_as_written = numba.njit(cache=True, nogil=True, error_model="numpy")


@compiled_as_written
def lowpass_step(u: Array, s1: Array, s2: Array, out: Array, g: float) -> None:
    """One step of a second-order Butterworth low-pass in state-variable form.

    Trapezoidal integration, g = tan(pi f_c dt): equal to the bilinear Butterworth filter at a
    constant step, and stable for any sequence of steps. Rounded as it stands here, so that the
    functions that it becomes part of give the same numbers.
    """
    k = np.sqrt(2.0)
    a = 1.0 / (1.0 + g * (g + k))
    for i in range(u.size):
        v1 = a * (s1[i] + g * (u[i] - s2[i]))
        v2 = s2[i] + g * v1
        s1[i] = 2.0 * v1 - s1[i]
        s2[i] = 2.0 * v2 - s2[i]
        out[i] = v2
