"""The recursive step in one pass over the factor: see :class:`deferred_rotation.DeferredRotation`.

With v = R^-T z and q_i = 1 + v_0^2 + ... + v_i^2, the i-th Givens rotation of the row z into R has
c_i^2 = q_(i-1) / q_i, and what is left of the row before it is (z - sum_(k<i) v_k R_k) /
sqrt(q_(i-1)). So all rotations are known once v is, and v is known from the prediction: the
recurrences of Gill, Golub, Murray and Saunders 1974 (Methods for modifying matrix factorizations,
rank-one changes of a Cholesky factor), written for R and a row. While row i of R is in registers,
it is rotated and serves the next prediction's solve at once.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.compiled import compiled, compiled_as_written, solve_back
from semiparam_dynamics.learning.vector_block import (
    ANSWER,
    ASKED,
    KEEP,
    LEARNED,
    RESIDUAL,
    REST,
    ROWS,
    SOLVED,
    TAKE,
    block_pass,
)

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
