"""exp(x) for x <= 0, written so that a compiled loop over it becomes vector instructions.

x = n log 2 + r with |r| <= log(2) / 2, and exp(x) = 2^n exp(r) (Cody and Waite 1980, chapter 6),
with log 2 in two parts so that r is exact to rounding; exp(r) by a polynomial, that of Cephes' expf
in single precision and Taylor's to r^13 in double. Within 2 units in the last place. A call of the
C library's function would take one number at a time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:

    def exponential(x: Any) -> Any:
        """exp(min(x, 0)) of a number, in its own precision; 0 where that underflows."""
        return x

else:
    import numba
    from numba.extending import overload

    # No "reassoc": it would take adding and subtracting SHIFT, which rounds, for nothing.
    _inner = numba.njit(cache=True, nogil=True, fastmath={"contract"})
    # Added to a small number, it leaves the nearest whole number in the lowest bits.
    _SHIFT32, _SHIFT64 = np.float32(1.5 * 2**23), 1.5 * 2**52
    _LOWEST32, _LOWEST64 = np.float32(-87.0), -708.0
    _PER_LOG2_32, _PER_LOG2_64 = np.float32(1.0 / math.log(2.0)), 1.0 / math.log(2.0)
    # The upper parts have so few digits that n times them is exact.
    _UPPER32, _LOWER32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
    _UPPER64, _LOWER64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
    _A2, _A3, _A4, _A5, _A6, _A7 = map(
        np.float32,
        (0.50000001201, 0.16666665459, 0.041665795894, 8.3334519073e-3, 1.3981999507e-3)
        + (1.9875691500e-4,),
    )
    _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (
        1.0 / math.factorial(k) for k in range(2, 14)
    )

    @_inner
    def _single(x):
        bounded = min(max(x, _LOWEST32), np.float32(0.0))
        shifted = bounded * _PER_LOG2_32 + _SHIFT32
        n = shifted - _SHIFT32
        r = bounded - n * _UPPER32
        r = r - n * _LOWER32
        p = ((((_A7 * r + _A6) * r + _A5) * r + _A4) * r + _A3) * r + _A2
        p = p * (r * r) + (r + np.float32(1.0))
        # n is added to the exponent's bits.
        power = np.int32(np.float32(shifted).view(np.int32) << np.int32(23))
        value = np.int32(np.float32(p).view(np.int32) + power).view(np.float32)
        return value if x >= _LOWEST32 else np.float32(0.0)

    @_inner
    def _double(x):
        bounded = min(max(x, _LOWEST64), 0.0)
        shifted = bounded * _PER_LOG2_64 + _SHIFT64
        n = shifted - _SHIFT64
        r = bounded - n * _UPPER64
        r = r - n * _LOWER64
        p = ((((_C13 * r + _C12) * r + _C11) * r + _C10) * r + _C9) * r + _C8
        p = (((((p * r + _C7) * r + _C6) * r + _C5) * r + _C4) * r + _C3) * r + _C2
        p = p * (r * r) + (r + 1.0)
        power = np.int64(np.float64(shifted).view(np.int64) << np.int64(52))
        value = np.int64(np.float64(p).view(np.int64) + power).view(np.float64)
        return value if x >= _LOWEST64 else 0.0

    def exponential(x):
        """exp(min(x, 0)) of a number, in its own precision; 0 where that underflows."""
        return _single(x) if isinstance(x, np.float32) else _double(x)

    @overload(exponential)
    def _exponential(x):
        if x == numba.types.float32:
            return lambda x: _single(x)
        return lambda x: _double(x)
