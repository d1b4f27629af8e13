"""Elementary functions of many numbers at once, in the processor's vectors.

The C library's take one number at a time: 10 to 20 ns each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.jit import (
    compiled,
    compiled_as_written,
    compiled_in_order,
    take_widest_vectors,
)

LARGEST = 1e5  # up to which an angle is reduced without loss
# pi / 2 in three parts, whose multiples by the quarter turns that there can be are exact.
_FIRST, _SECOND, _THIRD = 1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21
f32 = np.float32


@compiled
def exponentials(x: Array, out: Array) -> None:
    """out = exp(min(x, 0)), (k,), both in one precision; they may be one array.

    Within 2 units in the last place, and 0 a little before the result would lose digits.
    """
    # Arrays that overlap are not taken to vectors: one array goes through loops of its own.
    one = x.ctypes.data == out.ctypes.data
    if x.itemsize == 4:
        if one:
            _single_in_place(out)
        else:
            _single(x, out)
    elif one:
        _double_in_place(out)
    else:
        _double(x, out)


# x = n log 2 + r with |r| <= log(2) / 2, and exp(x) = 2^n exp(r) (Cody and Waite 1980, chapter 6).
# Adding 1.5 * 2^(mantissa bits) rounds x / log 2 to n and leaves n in the lowest bits, from where
# it is shifted into the exponent's. log 2 is subtracted in two parts, of which n times the first
# is exact, and n itself would be lost if sums were not rounded in their order. NumPy's exponential
# isn't compiled to vector instructions, and takes 2 to 4 times as long in a block.


@compiled_in_order
def _double(x: Array, out: Array) -> None:
    take_widest_vectors()
    for j in range(x.size):
        out[j] = _of_double(x[j])


@compiled_in_order
def _double_in_place(x: Array) -> None:
    take_widest_vectors()
    for j in range(x.size):
        x[j] = _of_double(x[j])


@compiled_in_order
def _single(x: Array, out: Array) -> None:
    take_widest_vectors()
    for j in range(x.size):
        out[j] = _of_single(x[j])


@compiled_in_order
def _single_in_place(x: Array) -> None:
    take_widest_vectors()
    for j in range(x.size):
        x[j] = _of_single(x[j])


@compiled_in_order
def _of_double(v: Any) -> Any:
    """By Taylor's polynomial up to r^13."""
    bounded = v if v < 0.0 else 0.0
    shifted = 6755399441055744.0 + bounded * 1.4426950408889634
    n = shifted - 6755399441055744.0
    r = bounded - n * 6.93147180369123816490e-01
    r = r - n * 1.90821492927058770002e-10
    p = 1.6059043836821613e-10
    p = 2.08767569878681e-09 + p * r
    p = 2.505210838544172e-08 + p * r
    p = 2.755731922398589e-07 + p * r
    p = 2.7557319223985893e-06 + p * r
    p = 2.48015873015873e-05 + p * r
    p = 0.0001984126984126984 + p * r
    p = 0.001388888888888889 + p * r
    p = 0.008333333333333333 + p * r
    p = 0.041666666666666664 + p * r
    p = 0.16666666666666666 + p * r
    p = 0.5 + p * r
    power = np.float64(shifted).view(np.int64) << 52
    p = (r + 1.0) + p * (r * r)
    scaled = np.int64(np.float64(p).view(np.int64) + power).view(np.float64)
    return scaled if v >= -708.0 else 0.0


@compiled_in_order
def _of_single(v: Any) -> Any:
    """By the polynomial of Cephes' expf."""
    bounded = v if v < f32(0.0) else f32(0.0)
    shifted = f32(12582912.0) + bounded * f32(1.4426950408889634)
    n = shifted - f32(12582912.0)
    r = bounded - n * f32(0.693359375)
    r = r - n * f32(-2.12194440e-4)
    p = f32(1.9875691500e-4)
    p = f32(1.3981999507e-3) + p * r
    p = f32(8.3334519073e-3) + p * r
    p = f32(4.1665795894e-2) + p * r
    p = f32(1.6666665459e-1) + p * r
    p = f32(5.0000001201e-1) + p * r
    power = np.int32(f32(shifted).view(np.int32) << np.int32(23))
    p = (r + f32(1.0)) + p * (r * r)
    scaled = np.int32(f32(p).view(np.int32) + power).view(np.float32)
    return scaled if v >= f32(-87.0) else f32(0.0)


# Both come from one reduction to [-pi/4, pi/4] (Cody and Waite) and Cephes' polynomials (S.
# Moshier, sin.c), right to a unit in the last place.
@compiled_as_written
def cosines_and_sines(angles: Array, scale: float, out: Array) -> None:
    """out (k, 2 n) = scale [cos, sin] of angles (k, n), of magnitude `LARGEST` at most."""
    n = angles.shape[1]
    for i in range(len(angles)):
        row, cosines, sines = angles[i], out[i, :n], out[i, n:]
        for j in range(n):
            x = row[j]
            quarter = np.rint(x * 0.6366197723675814)
            x = ((x - quarter * _FIRST) - quarter * _SECOND) - quarter * _THIRD
            z = x * x
            p = 1.58962301576546568060e-10
            p = p * z - 2.50507477628578072866e-8
            p = p * z + 2.75573136213857245213e-6
            p = p * z - 1.98412698295895385996e-4
            p = p * z + 8.33333333332211858878e-3
            p = p * z - 1.66666666666666307295e-1
            sine = x + x * z * p
            p = -1.13585365213876817300e-11
            p = p * z + 2.08757008419747316778e-9
            p = p * z - 2.75573141792967388112e-7
            p = p * z + 2.48015872888517045348e-5
            p = p * z - 1.38888888888730564116e-3
            p = p * z + 4.16666666666665929218e-2
            cosine = 1.0 - 0.5 * z + z * z * p
            turned = np.int64(quarter)
            odd = (turned & 1) == 1
            a = sine if odd else cosine
            b = cosine if odd else sine
            cosines[j] = -scale * a if ((turned + 1) & 2) == 2 else scale * a
            sines[j] = -scale * b if (turned & 2) == 2 else scale * b
