"""The compiled inner loop of products with a block of a kernel matrix."""

from __future__ import annotations

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.compiled import compiled


@compiled
def add_normal(K: Array, b: Array, y: Array, w: Array, out: Array) -> None:
    """out += K' diag(w) (K b - y) for K (k, m), b (m,), y and w (k,), out (m,).

    K may be in single precision; everything else is in double, and so are all sums: in them
    coefficients of opposite signs, many times larger than the function, cancel. Four rows of K
    are used twice while they are in the processor's cache.
    """
    k, m = K.shape
    for i in range(0, k - 3, 4):
        r0, r1, r2, r3 = K[i], K[i + 1], K[i + 2], K[i + 3]
        s0 = s1 = s2 = s3 = 0.0
        for j in range(m):
            bj = b[j]
            s0 += r0[j] * bj
            s1 += r1[j] * bj
            s2 += r2[j] * bj
            s3 += r3[j] * bj
        s0 = (s0 - y[i]) * w[i]
        s1 = (s1 - y[i + 1]) * w[i + 1]
        s2 = (s2 - y[i + 2]) * w[i + 2]
        s3 = (s3 - y[i + 3]) * w[i + 3]
        for j in range(m):
            out[j] += r0[j] * s0 + r1[j] * s1 + r2[j] * s2 + r3[j] * s3
    for i in range(k - k % 4, k):
        row = K[i]
        s0 = 0.0
        for j in range(m):
            s0 += row[j] * b[j]
        s0 = (s0 - y[i]) * w[i]
        for j in range(m):
            out[j] += row[j] * s0
