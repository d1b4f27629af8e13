"""exp(x) for x <= 0 of a vector of numbers, as LLVM code.

x = n log 2 + r with |r| <= log(2) / 2, and exp(x) = 2^n exp(r) (Cody and Waite 1980, chapter 6),
with log 2 in two parts so that r is exact to rounding; exp(r) by a polynomial, Cephes' expf's in
single precision and Taylor's to r^13 in double. Within 2 units in the last place. The vectors are
written out because the compiler makes narrower ones of a loop than the processor has; where they
are too wide for it, it splits them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

BYTES = 64  # of a vector
WHOLE = 16  # numbers: a multiple of what a vector holds in either precision


@dataclass(frozen=True)
class _Precision:
    scalar: Any
    whole: Any  # the integer of the same size
    bytes: int
    mantissa_bits: int
    lowest: float  # below it the result is 0, a little before it would lose digits
    upper: float  # log 2 in so few digits that n times them is exact,
    lower: float  # and the rest of it
    polynomial: tuple[float, ...]  # (exp(r) - 1 - r) / r^2, the constant last


_SINGLE = _Precision(
    ir.FloatType(),
    ir.IntType(32),
    4,
    23,
    -87.0,
    0.693359375,
    -2.12194440e-4,
    (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2)
    + (1.6666665459e-1, 5.0000001201e-1),
)
_DOUBLE = _Precision(
    ir.DoubleType(),
    ir.IntType(64),
    8,
    52,
    -708.0,
    6.93147180369123816490e-01,
    1.90821492927058770002e-10,
    tuple(1.0 / math.factorial(k) for k in range(13, 1, -1)),
)


@intrinsic  # type: ignore[untyped-decorator]
def exponentiate(_: Any, source: Any, first: Any, target: Any, start: Any) -> Any:
    """target[start + k] = exp(min(source[first + k], 0)) for the numbers k < size of a vector.

    The arrays are contiguous, of one dimension and one precision, float32 or float64; they may be
    the same. A vector holds 16 or 8. Nothing is checked.
    """
    p = _SINGLE if source.dtype == types.float32 else _DOUBLE
    vector = ir.VectorType(p.scalar, BYTES // p.bytes)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def pointer(array: int) -> Any:
            kind, value, index = signature.args[array], args[array], args[array + 1]
            data = context.make_array(kind)(context, builder, value).data
            return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())

        # Arrays start anywhere: only an element's own alignment is sure.
        x = builder.load(pointer(0), align=p.bytes)
        builder.store(_exponential(builder, x, vector, p), pointer(2), align=p.bytes)
        return context.get_dummy_value()

    return types.void(source, types.intp, target, types.intp), generate


def _exponential(builder: Any, x: Any, vector: Any, p: _Precision) -> Any:
    kind = ir.FunctionType(vector, [vector] * 3)
    name = f"llvm.fmuladd.v{vector.count}f{8 * p.bytes}"
    fused = cgutils.get_or_insert_function(builder.module, kind, name)

    def constant(value: float) -> Any:
        return ir.Constant(vector, [value] * vector.count)

    def plus(a: Any, b: Any, c: Any) -> Any:
        """a + b c."""
        return builder.call(fused, [b, c, a])

    zeros = constant(0.0)
    bounded = builder.select(builder.fcmp_ordered("<", x, zeros), x, zeros)
    # The nearest whole number is left in the lowest bits.
    shift = constant(1.5 * 2.0**p.mantissa_bits)
    shifted = plus(shift, bounded, constant(_rounded(p, 1.0 / math.log(2.0))))
    n = builder.fsub(shifted, shift)
    r = plus(bounded, n, constant(-_rounded(p, p.upper)))
    r = plus(r, n, constant(-_rounded(p, p.lower)))
    value = constant(_rounded(p, p.polynomial[0]))
    for coefficient in p.polynomial[1:]:
        value = plus(constant(_rounded(p, coefficient)), value, r)
    value = plus(builder.fadd(r, constant(1.0)), value, builder.fmul(r, r))
    # n is added to the exponent's bits.
    whole = ir.VectorType(p.whole, vector.count)
    places = ir.Constant(whole, [p.mantissa_bits] * vector.count)
    power = builder.shl(builder.bitcast(shifted, whole), places)
    value = builder.bitcast(builder.add(builder.bitcast(value, whole), power), vector)
    return builder.select(builder.fcmp_ordered(">=", x, constant(p.lowest)), value, zeros)


def _rounded(p: _Precision, value: float) -> float:
    """LLVM takes constants only that their type holds exactly."""
    return float(np.float32(value)) if p is _SINGLE else value
