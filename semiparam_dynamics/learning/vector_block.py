"""Eight rows of a triangular factor, rotated and solved in vector registers, as LLVM code.

A compiler that is given ten arrays which could overlap checks forty pairs of them before it dares
to use vectors, on every block of rows. So the vectors are written out here, eight numbers each,
which LLVM maps to what the processor has. :mod:`compiled_step` makes functions of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, errors
from numba.extending import intrinsic

ROWS = 8  # of a block, and numbers in a vector
# The rows of the working memory, one number for each feature (see `block_pass`).
RESIDUAL, KEEP, TAKE, REST, SOLVED, ASKED = range(6)
LEARNED, ANSWER = range(2)  # and of the outputs' working memory, one number for each output

_DOUBLE, _INT, _INDEX = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_VECTOR = ir.VectorType(_DOUBLE, ROWS)


def _constant(number: int) -> Any:
    return ir.Constant(_INT, number)


def _mask(lanes: list[bool]) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(1), ROWS), [int(lane) for lane in lanes])


class _Vectors:
    """Vectors of eight doubles, kept in memory as doubles or as floats."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def load(self, pointer: Any) -> Any:
        element = pointer.type.pointee
        wide = self.builder.bitcast(pointer, ir.VectorType(element, ROWS).as_pointer())
        # Copied and unpickled arrays start anywhere: only an element's own alignment is sure.
        value = self.builder.load(wide, align=8 if element == _DOUBLE else 4)
        return value if element == _DOUBLE else self.builder.fpext(value, _VECTOR)

    def store(self, value: Any, pointer: Any) -> Any:
        """Store the vector and return it as it now is there."""
        element = pointer.type.pointee
        kind = ir.VectorType(element, ROWS)
        stored = value if element == _DOUBLE else self.builder.fptrunc(value, kind)
        wide = self.builder.bitcast(pointer, kind.as_pointer())
        self.builder.store(stored, wide, align=8 if element == _DOUBLE else 4)
        return value if element == _DOUBLE else self.builder.fpext(stored, _VECTOR)

    def all_lanes(self, value: Any, lane: int) -> Any:
        """The vector whose entries all are that one of `value`."""
        order = ir.Constant(ir.VectorType(_INDEX, ROWS), [lane] * ROWS)
        return self.builder.shuffle_vector(value, ir.Constant(_VECTOR, ir.Undefined), order)

    def times(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(a, b)

    def plus(self, a: Any, b: Any, c: Any) -> Any:
        """a + b c, rounded once where the processor can.

        An explicit operation: were the compiler free to choose which product it fuses, functions
        that do the same would round differently, and saving a state would change what follows.
        """
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fused = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.fmuladd.v8f64")
        return self.builder.call(fused, [b, c, a])

    def minus(self, a: Any, b: Any, c: Any) -> Any:
        """a - b c."""
        return self.plus(a, self.builder.fneg(b), c)


def _matrix(context: Any, builder: Any, kind: Any, value: Any) -> Callable[..., Any]:
    """(row, column) to the pointer there, of a C-ordered array."""
    array = context.make_array(kind)(context, builder, value)
    width = cgutils.unpack_tuple(builder, array.shape)[1]
    return lambda row, column: builder.gep(
        array.data, [builder.add(builder.mul(row, width), column)]
    )


def block_pass(rotate: bool, solve: bool) -> Any:
    """The function (R, U, work, side, i, end) for the rows i to i + 7; see :mod:`compiled_step`.

    R : (>=end, >=end), upper triangular with zeros below, float64 or float32.
    U : (>=end, T'), T' a multiple of 8. end: a multiple of 8.
    work : (6, >=end), side : (2, T'), float64: the rows named above.
    rotate : the learned row's rotation is done: row r of [R U] becomes
        KEEP_r row + TAKE_r [RESIDUAL LEARNED], and SOLVED_r times the old row is taken from
        [RESIDUAL LEARNED]. Here SOLVED is the learned row's.
    solve : entry r of R^-T z goes to SOLVED, with R as it is then, and so much of the row is taken
        from [REST ANSWER]. REST begins as the row z, ANSWER as zeros: it ends as -z'W.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def run(_: Any, R: Any, U: Any, work: Any, side: Any, i: Any, end: Any) -> Any:
        if rotate and not (R.mutable and U.mutable):
            raise errors.TypingError("R and U are read-only: nothing can be learned in them")
        signature = types.void(R, U, work, side, i, end)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            v = _Vectors(builder)
            R, U, work, side = (
                _matrix(context, builder, kind, value)
                for kind, value in zip(signature.args[:4], args[:4], strict=True)
            )
            first, end = args[4:]
            rows = [builder.add(first, _constant(k)) for k in range(ROWS)]

            def memory(name: int) -> Any:
                return work(_constant(name), first)

            keep, take, down, entries = [], [], [], []
            block = [v.load(R(row, first)) for row in rows]
            zeros = ir.Constant(_VECTOR, [0.0] * ROWS)
            if rotate:
                residual, solved = v.load(memory(RESIDUAL)), v.load(memory(SOLVED))
                a, b = v.load(memory(KEEP)), v.load(memory(TAKE))
                for k in range(ROWS):
                    keep.append(v.all_lanes(a, k))
                    take.append(v.all_lanes(b, k))
                    down.append(v.all_lanes(solved, k))
                    right = _mask([j >= k for j in range(ROWS)])
                    added = v.times(take[k], builder.select(right, residual, zeros))
                    residual = v.minus(residual, down[k], block[k])
                    block[k] = v.plus(added, keep[k], block[k])
                    block[k] = v.store(block[k], R(rows[k], first))
            if solve:
                ones = [_mask([j == k for j in range(ROWS)]) for k in range(ROWS)]
                diagonal = ir.Constant(_VECTOR, [1.0] * ROWS)
                for k in range(ROWS):
                    diagonal = builder.select(ones[k], block[k], diagonal)
                inverse = builder.fdiv(ir.Constant(_VECTOR, [1.0] * ROWS), diagonal)
                rest, answer = v.load(memory(REST)), zeros
                for k in range(ROWS):
                    entries.append(v.all_lanes(v.times(rest, inverse), k))
                    rest = v.minus(rest, entries[k], block[k])
                    answer = builder.select(ones[k], entries[k], answer)
                v.store(answer, memory(SOLVED))

            def sweep(A: Any, of: Any, learned: int, asked: int, start: Any, stop: Any) -> None:
                with cgutils.for_range_slice(builder, start, stop, _constant(ROWS)) as (j, _):
                    x = v.load(of(_constant(learned), j)) if rotate else None
                    z = v.load(of(_constant(asked), j)) if solve else None
                    for k in range(ROWS):
                        value = v.load(A(rows[k], j))
                        if rotate:
                            old, value = value, v.plus(v.times(take[k], x), keep[k], value)
                            x = v.minus(x, down[k], old)
                            value = v.store(value, A(rows[k], j))
                        if solve:
                            z = v.minus(z, entries[k], value)
                    if rotate:
                        v.store(x, of(_constant(learned), j))
                    if solve:
                        v.store(z, of(_constant(asked), j))

            sweep(R, work, RESIDUAL, REST, builder.add(first, _constant(ROWS)), end)
            width = cgutils.unpack_tuple(
                builder, context.make_array(signature.args[1])(context, builder, args[1]).shape
            )[1]
            sweep(U, side, LEARNED, ANSWER, _constant(0), width)
            return context.get_dummy_value()

        return signature, generate

    return run
