"""Rows rotated into a triangular factor, in one pass over it a step.

With v = R^-T z and q_i = 1 + v_0^2 + ... + v_i^2, the i-th Givens rotation of the row z into R has
c_i^2 = q_(i-1) / q_i, and what is left of the row before it is (z - sum_(k<i) v_k R_k) /
sqrt(q_(i-1)). So all rotations are known once v is, and v is known from the prediction: the
recurrences of Gill, Golub, Murray and Saunders 1974 (Methods for modifying matrix factorizations,
rank-one changes of a Cholesky factor), written for R and a row. While row i of R is in registers,
it is rotated and serves the next prediction's solve at once.

All functions take plain arrays and change them in place, without allocations.

R : (>=end, >=end), upper triangular with zeros below, end being n rounded up to a multiple of 8;
    the n features in use come first, those after them have a one on the diagonal.
U : (>=end, T'), T' a multiple of 8, zeros after the T outputs.
work : (6, >=end), side : (2, T'), the working memory for features and for outputs: see below.
pending : the rotation of the row noted last is still to be done.
solved : what was solved last still holds, so that the same row need not be solved again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, errors
from numba.extending import intrinsic

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.jit import compiled, compiled_as_written

ROWS = 8  # of a block, and numbers in a vector
# Rows of `work`, one number for each feature, and of `side`, one for each output: the row that is
# rotated in and what its rotations do, the rest of the row that is solved, its v, and that row.
RESIDUAL, KEEP, TAKE, REST, SOLVED, PREDICTED = range(6)
LEARNED, ANSWER = range(2)


@compiled_as_written
def predict_row(
    R: Array, U: Array, work: Array, side: Array, row: Array, n: int, pending: bool, solved: bool
) -> float:
    """Solve R^-T z for a row z (n,), and do a pending rotation in the same pass.

    The outputs are then -side[ANSWER]; returned is the leverage |R^-T z|^2.
    """
    end = -(-n // ROWS) * ROWS
    rest, known, v = work[REST], work[PREDICTED], work[SOLVED]
    if not (solved and _is_same(known, row, n)):
        for i in range(n):
            rest[i] = row[i]
            known[i] = row[i]
        for i in range(n, end):
            rest[i] = 0.0
            known[i] = 0.0
        side[ANSWER] = 0.0
        first = _first_number(row, n)
        if pending:
            first = min(first, _first_rotated(work, n))
        first = first // ROWS * ROWS
        if pending:
            for i in range(first, end, ROWS):
                _rotate_and_solve(R, U, work, side, i, end)
        else:
            for i in range(first, end, ROWS):
                _solve(R, U, work, side, i, end)
        for i in range(first):
            v[i] = 0.0
    return _squared_norm(v, n)


@compiled_as_written
def note_row(work: Array, side: Array, target: Array, n: int, scale: float) -> None:
    """Note `scale` times the row predicted last, and its target (T,), to be rotated in later."""
    end = -(-n // ROWS) * ROWS
    v, keep, take = work[SOLVED], work[KEEP], work[TAKE]
    residual, row = work[RESIDUAL], work[PREDICTED]
    q = 1.0
    for i in range(n):
        v[i] *= scale
    for i in range(n):
        take[i] = q
        q += v[i] * v[i]
        keep[i] = q
    for i in range(n):
        after = keep[i]
        cosine = np.sqrt(take[i] / after)  # exactly one where the row has nothing
        take[i] = v[i] / (after * cosine)
        keep[i] = cosine
    for i in range(n, end):
        take[i] = 0.0
        keep[i] = 1.0
    for i in range(end):
        residual[i] = scale * row[i]
    for t in range(target.size):  # a slice's assignment is seconds of compiling: its error message
        side[LEARNED, t] = target[t]


@compiled_as_written
def rotate_pending(R: Array, U: Array, work: Array, side: Array, n: int) -> None:
    """Do the rotation of the row that :func:`note_row` noted."""
    end = -(-n // ROWS) * ROWS
    for i in range(_first_rotated(work, n) // ROWS * ROWS, end, ROWS):
        _rotate(R, U, work, side, i, end)


@compiled
def update_rows(
    R: Array,
    U: Array,
    work: Array,
    side: Array,
    Z: Array,
    Y: Array,
    n: int,
    pending: bool,
    solved: bool,
    errors: Array,
    leverages: Array,
) -> None:
    """:func:`predict_row` of each row of Z (k, n), then :func:`note_row` of it with Y's (k, T).

    errors (k, T) and leverages (k,) are filled with those of the predictions.
    """
    for k in range(len(Z)):
        leverages[k] = predict_row(R, U, work, side, Z[k], n, pending, solved)
        for t in range(Y.shape[1]):
            errors[k, t] = Y[k, t] + side[ANSWER, t]
        note_row(work, side, Y[k], n, 1.0)
        pending, solved = True, False


@compiled
def leverages_of_rows(
    R: Array,
    U: Array,
    work: Array,
    side: Array,
    Z: Array,
    out: Array,
    n: int,
    pending: bool,
    solved: bool,
) -> None:
    """out_k = |R^-T z_k|^2 for the rows of Z (k, n)."""
    for k in range(len(Z)):
        out[k] = predict_row(R, U, work, side, Z[k], n, pending, solved)
        pending, solved = False, True


@compiled
def _is_same(known: Array, row: Array, n: int) -> bool:
    different = 0
    for i in range(n):
        different += known[i] != row[i]
    return different == 0


# A row that begins with zeros, as a joint's does for the links before it, leaves the rows of R that
# are above its first number as they are, and its R^-T z begins with zeros too.


@compiled
def _first_number(row: Array, n: int) -> int:
    """Index of the first entry of `row` (n,) that isn't zero; n: all are."""
    for i in range(n):
        if row[i] != 0.0:
            return i
    return n


@compiled
def _first_rotated(work: Array, n: int) -> int:
    """Index of the first row of R that the pending rotation changes; n: none."""
    keep, take = work[KEEP], work[TAKE]
    for i in range(n):
        if take[i] != 0.0 or keep[i] != 1.0:
            return i
    return n


@compiled
def _squared_norm(v: Array, n: int) -> float:
    total = 0.0
    for i in range(n):
        total += v[i] * v[i]
    return total


# -------------------------------------------------------------------------------------------------
# Eight rows of [R U], rotated and solved in vector registers, as LLVM code.
#
# A compiler that is given ten arrays which could overlap checks forty pairs of them before it uses
# vectors, on every block of rows. So the vectors are written out here, eight numbers each, which
# LLVM maps to what the processor has: without them a step takes 1.7 to 3.7 times as long.

_INT, _INDEX = ir.IntType(64), ir.IntType(32)
_VECTOR = ir.VectorType(ir.DoubleType(), ROWS)


def _constant(number: int) -> Any:
    return ir.Constant(_INT, number)


def _mask(lanes: list[bool]) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(1), ROWS), [int(lane) for lane in lanes])


class _Vectors:
    """Operations on vectors of eight doubles."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def load(self, pointer: Any) -> Any:
        # Copied and unpickled arrays start anywhere: only an element's own alignment is sure.
        wide = self.builder.bitcast(pointer, _VECTOR.as_pointer())
        return self.builder.load(wide, align=8)

    def store(self, value: Any, pointer: Any) -> None:
        wide = self.builder.bitcast(pointer, _VECTOR.as_pointer())
        self.builder.store(value, wide, align=8)

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
    """The function (R, U, work, side, i, end) for the rows i to i + 7, i and `end` multiples of 8.

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
                    v.store(block[k], R(rows[k], first))
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
                            v.store(value, A(rows[k], j))
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


_rotate = block_pass(rotate=True, solve=False)
_solve = block_pass(rotate=False, solve=True)
_rotate_and_solve = block_pass(rotate=True, solve=True)
