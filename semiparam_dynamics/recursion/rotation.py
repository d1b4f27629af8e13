"""The recursive step in one pass over the factor: see :class:`deferred_rotation.DeferredRotation`.

With v = R^-T z and q_i = 1 + v_0^2 + ... + v_i^2, the i-th Givens rotation of the row z into R has
c_i^2 = q_(i-1) / q_i, and what is left of the row before it is (z - sum_(k<i) v_k R_k) /
sqrt(q_(i-1)). So all rotations are known once v is, and v is known from the prediction: the
recurrences of Gill, Golub, Murray and Saunders 1974 (Methods for modifying matrix factorizations,
rank-one changes of a Cholesky factor), written for R and a row. While row i of R is in registers,
it is rotated and serves the next prediction's solve at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, errors
from numba.extending import intrinsic

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.recursion.loops import compiled, compiled_as_written, solve_back

# -------------------------------------------------------------------------------------------------
# Eight rows of a triangular factor, rotated and solved in vector registers, as LLVM code.
#
# A compiler that is given ten arrays which could overlap checks forty pairs of them before it dares
# to use vectors, on every block of rows. So the vectors are written out here, eight numbers each,
# which LLVM maps to what the processor has. :mod:`compiled_step` makes functions of it.

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


_rotate = block_pass(rotate=True, solve=False)
_solve = block_pass(rotate=False, solve=True)
_rotate_and_solve = block_pass(rotate=True, solve=True)


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
    """Index of the first row of R that the rotation left to do changes; n: none."""
    keep, take = work[KEEP], work[TAKE]
    for i in range(n):
        if take[i] != 0.0 or keep[i] != 1.0:
            return i
    return n


@compiled_as_written
def settle(R: Array, U: Array, work: Array, side: Array, n: int) -> None:
    """Do the rotation that :func:`learn` left to do."""
    end = -(-n // ROWS) * ROWS
    for i in range(_first_rotated(work, n) // ROWS * ROWS, end, ROWS):
        _rotate(R, U, work, side, i, end)


@compiled
def squared_norm(v: Array, n: int) -> float:
    """|v|^2 over the first n entries."""
    total = 0.0
    for i in range(n):
        total += v[i] * v[i]
    return total


@compiled
def is_asked(work: Array, row: Array, n: int) -> bool:
    """Whether `row` (n,) is the one that was asked last."""
    asked = work[ASKED]
    different = 0
    for i in range(n):
        different += asked[i] != row[i]
    return different == 0


@compiled_as_written
def ask(
    R: Array, U: Array, work: Array, side: Array, row: Array, n: int, pending: bool, asked: bool
) -> float:
    """Solve R^-T z for a row z (n,); first, in the same pass, settle what is `pending`.

    asked : what was solved last still holds, so that the same row need not be solved again.
    The outputs are then -side[ANSWER]; returned is the leverage |R^-T z|^2.
    """
    end = -(-n // ROWS) * ROWS
    rest, kept, solved = work[REST], work[ASKED], work[SOLVED]
    if not (asked and is_asked(work, row, n)):
        for i in range(n):
            rest[i] = row[i]
            kept[i] = row[i]
        for i in range(n, end):
            rest[i] = 0.0
            kept[i] = 0.0
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
            solved[i] = 0.0
    return squared_norm(solved, n)


@compiled_as_written
def learn(work: Array, side: Array, target: Array, n: int, scale: float) -> float:
    """Leave the rotation of `scale` times the row asked last to do; its target (T,) is `target`.

    Returns 1 + leverage.
    """
    end = -(-n // ROWS) * ROWS
    solved, keep, take = work[SOLVED], work[KEEP], work[TAKE]
    residual, asked = work[RESIDUAL], work[ASKED]
    q = 1.0
    for i in range(n):
        solved[i] *= scale
    for i in range(n):
        take[i] = q
        q += solved[i] * solved[i]
        keep[i] = q
    for i in range(n):
        after = keep[i]
        cosine = np.sqrt(take[i] / after)  # exactly one where the row has nothing
        take[i] = solved[i] / (after * cosine)
        keep[i] = cosine
    for i in range(n, end):
        take[i] = 0.0
        keep[i] = 1.0
    for i in range(end):
        residual[i] = scale * asked[i]
    side[LEARNED, : target.size] = target
    return q


@compiled
def learn_row(
    R: Array,
    U: Array,
    work: Array,
    side: Array,
    row: Array,
    target: Array,
    n: int,
    pending: bool,
    asked: bool,
    scale: float,
) -> float:
    """:func:`ask` a row (n,), then :func:`learn` `scale` times it; returns 1 + leverage."""
    ask(R, U, work, side, row, n, pending, asked)
    return learn(work, side, target, n, scale)


@compiled
def learn_rows(
    R: Array,
    U: Array,
    work: Array,
    side: Array,
    Z: Array,
    Y: Array,
    n: int,
    pending: bool,
    asked: bool,
) -> None:
    """:func:`learn_row` for the rows of Z (k, n), k > 0, and Y (k, T), now e / sqrt(1 + s)."""
    for k in range(len(Z)):
        ask(R, U, work, side, Z[k], n, pending, asked)
        pending, asked = True, False
        root = np.sqrt(learn(work, side, Y[k], n, 1.0))
        for t in range(Y.shape[1]):
            Y[k, t] = (Y[k, t] + side[ANSWER, t]) / root


@compiled
def learn_groups(
    R: Array,
    U: Array,
    work: Array,
    side: Array,
    Z: Array,
    Y: Array,
    n: int,
    group: int,
    pending: bool,
    asked: bool,
    errors: Array,
    leverages: Array,
    weights: Array,
) -> None:
    """:func:`ask` `group` rows of Z (k, n), then :func:`learn` them, and so on with the next ones.

    Y : (k, T) targets. errors (k, T) and leverages (k,) are filled with what was found when asking.
    weights : (0, n), or with one output (k / group, n), filled with R^-1 U after each group.
    """
    for start in range(0, len(Z), group):
        for k in range(start + group - 1, start - 1, -1):  # the first row is still asked below
            leverages[k] = ask(R, U, work, side, Z[k], n, pending, asked)
            pending, asked = False, True
            for t in range(Y.shape[1]):
                errors[k, t] = Y[k, t] + side[ANSWER, t]
        for k in range(start, start + group):
            learn_row(R, U, work, side, Z[k], Y[k], n, pending, asked, 1.0)
            pending, asked = True, False
        if len(weights):
            settle(R, U, work, side, n)
            pending = False
            known = weights[start // group]
            for i in range(n):
                known[i] = U[i, 0]
            solve_back(R, known, n)


@compiled
def fade(work: Array, side: Array, root: float, n: int, pending: bool) -> None:
    """Have [R U] multiplied by `root` too when what is pending is settled; or leave that to do."""
    for i in range(n):
        if not pending:
            work[KEEP, i] = 1.0
            work[TAKE, i] = 0.0
            work[SOLVED, i] = 0.0
        work[KEEP, i] *= root
        work[TAKE, i] *= root
    if not pending:
        side[LEARNED] = 0.0


@compiled
def leverage_rows(
    R: Array,
    U: Array,
    work: Array,
    side: Array,
    Z: Array,
    out: Array,
    n: int,
    pending: bool,
    asked: bool,
) -> None:
    """out_k = |R^-T z_k|^2 for the rows of Z (k, n), by :func:`ask`."""
    for k in range(len(Z)):
        out[k] = ask(R, U, work, side, Z[k], n, pending, asked)
        pending, asked = False, True
