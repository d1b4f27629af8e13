"""Elementary functions of many numbers at once, in the processor's vectors.

The C library's take one number at a time: 10 to 20 ns each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.jit import (
    compiled,
    compiled_as_written,
    compiled_in_order,
    take_widest_vectors,
)

LOG2_E = 1.4426950408889634  # exp(x) = 2^(LOG2_E x)
MAX_ANGLE = 1e5  # up to which an angle is reduced without loss
# pi / 2 in three parts, whose multiples by the quarter turns that there can be are exact.
_FIRST, _SECOND, _THIRD = 1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21
f32 = np.float32


@compiled
def powers_of_two(x: Array) -> None:
    """x (k,), of either precision, becomes 2^min(x, 0).

    Within 2 units in the last place, and 0 where the result would have lost digits.
    """
    if x.itemsize == 4:
        _single(x)
    else:
        _double(x)


# x = n + r with |r| <= 1/2, and 2^x = 2^n (1 + r p(r)), where p interpolates (2^r - 1) / r at
# Chebyshev's nodes. Adding 1.5 * 2^(mantissa bits) rounds x to n and leaves n in the lowest bits,
# from where it is shifted into the exponent's; n would be lost if sums were not rounded in their
# order. NumPy's exponential isn't compiled to vector instructions, and takes 2 to 4 times as long
# in a block; a power of another base has a remainder of two parts and takes a fifth longer.


@compiled_in_order
def _double(x: Array) -> None:
    take_widest_vectors()
    for j in range(x.size):
        x[j] = _of_double(x[j])


@compiled_in_order
def _single(x: Array) -> None:
    take_widest_vectors()
    for j in range(x.size):
        x[j] = _of_single(x[j])


@compiled_in_order
def _of_double(v: Any) -> Any:
    bounded = v if v < 0.0 else 0.0
    shifted = 6755399441055744.0 + bounded
    r = bounded - (shifted - 6755399441055744.0)
    p = 4.4549605981865186e-10
    p = 7.072585949269223e-09 + p * r
    p = 1.0178062445845774e-07 + p * r
    p = 1.321544258792169e-06 + p * r
    p = 1.525273382983612e-05 + p * r
    p = 0.0001540353044173605 + p * r
    p = 0.0013333558146416936 + p * r
    p = 0.009618129107606888 + p * r
    p = 0.0555041086648216 + p * r
    p = 0.24022650695910097 + p * r
    p = 0.6931471805599453 + p * r
    p = 1.0 + p * r
    power = np.float64(shifted).view(np.int64) << 52
    scaled = np.int64(np.float64(p).view(np.int64) + power).view(np.float64)
    return scaled if v >= -1022.0 else 0.0


@compiled_in_order
def _of_single(v: Any) -> Any:
    bounded = v if v < f32(0.0) else f32(0.0)
    shifted = f32(12582912.0) + bounded
    r = bounded - (shifted - f32(12582912.0))
    p = f32(1.5453163360e-4)
    p = f32(1.3390863314e-3) + p * r
    p = f32(9.6180830150e-3) + p * r
    p = f32(5.5503569543e-2) + p * r
    p = f32(2.4022650719e-1) + p * r
    p = f32(6.9314718246e-1) + p * r
    p = f32(1.0) + p * r
    power = np.int32(f32(shifted).view(np.int32) << np.int32(23))
    scaled = np.int32(f32(p).view(np.int32) + power).view(np.float32)
    return scaled if v >= f32(-126.0) else f32(0.0)


@compiled_in_order
def matern_of_squares(x: Array, order: int) -> None:
    """x (k,), in double precision, minus the squares of log2(e) r, becomes Matern's kernel of r.

    exp(-r), (1 + r) exp(-r) or (1 + r + r^2 / 3) exp(-r), for the `order` 1, 3 or 5.
    """
    take_widest_vectors()
    one, three = 1.0 if order > 1 else 0.0, 1.0 / 3.0 if order > 3 else 0.0
    for j in range(x.size):
        u = np.sqrt(-x[j] if x[j] < 0.0 else 0.0)
        r = u / LOG2_E
        x[j] = (1.0 + r * (one + r * three)) * _of_double(-u)


# Both come from one reduction to [-pi/4, pi/4] (Cody and Waite) and Cephes' polynomials (S.
# Moshier, sin.c), right to a unit in the last place.
@compiled_as_written
def cosines_and_sines(angles: Array, scale: float, out: Array) -> None:
    """out (k, 2 n) = scale [cos, sin] of angles (k, n), of magnitude `MAX_ANGLE` at most."""
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
