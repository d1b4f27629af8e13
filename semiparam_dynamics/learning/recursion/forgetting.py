"""Forgetting of a recursion: a memory in seconds, and directional forgetting.

Forgetting everything at one rate (exponential forgetting) loses what today's rows do not excite:
a robot that stands still forgets its inertia. Directional forgetting takes information away
only where new one came in (Kulhavy 1987, restricted exponential forgetting; Cao and Schwartz 2000;
Lai and Bernstein 2024, subspace of information forgetting). Those take one row at a time, so that
one direction of D is forgotten with each, and what D of them excite together is remembered D times
too long. Here it is what the rows of a fifth of the memory excite together.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from semiparam_dynamics.base.arrays import Array

LONGEST_STEP = 1.0  # s that a pause between two samples counts at most


class ForgettingClock:
    """The fraction of what was learned to forget at a sample, 1 - exp(-dt / memory).

    memory : s, 0 for ever. May be changed at any time.
    step : nothing is forgotten until this fraction of the memory has passed; then all that is due.
        So a kilohertz of samples costs no more than what is forgotten does.
    Only samples that are learned make time pass, and a pause between two of them, in which nothing
    new was seen, counts `LONGEST_STEP` at most.
    """

    def __init__(self, memory: float, step: float) -> None:
        self.memory = memory
        self.step = step
        self._last: int | None = None
        self._elapsed = 0.0

    def forgetting_fraction(self, stamp: int) -> float:
        """The fraction due at a sample of this stamp (ns), in [0, 1 - 1/e]; 0 if nothing is due."""
        dt = 0.0 if self._last is None else (stamp - self._last) * 1e-9
        self._last = stamp
        if self.memory <= 0.0:
            self._elapsed = 0.0
            return 0.0
        self._elapsed += min(max(dt, 0.0), LONGEST_STEP)
        if self._elapsed < self.step * self.memory:
            return 0.0
        fraction = -math.expm1(-min(self._elapsed / self.memory, 1.0))
        self._elapsed = 0.0
        return fraction

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        last = -1 if self._last is None else self._last
        return {"last": np.array(last, dtype=np.int64), "elapsed": np.array(self._elapsed)}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        last = int(state["last"])
        self._last = None if last < 0 else last
        self._elapsed = float(state["elapsed"])


PROTECTION = 0.25  # c below: what is excited c times as much as it is known fades half as fast
WINDOW = 0.2  # of the memory, the time over which excitation is averaged
LARGEST_FRACTION = 0.25  # forgotten at a time: the bounds below need (1 + c) fraction < 1
LEAK = 1e-10  # of what is known counts as excited, against rounding


class DirectionalForgetting:
    """Factor of the part to keep of an information matrix A = R'R, given what was learned recently.

    A = P + G with a ridge P that is never forgotten. E is the information that the recent rows
    would add up to if they continued for ever under exponential forgetting: those of about a fifth
    of the memory, five times. What is taken away, with f = 1 - exp(-time / memory), is

        H = (1 + c) f (G^-1 + c E^-1)^-1,

    a parallel sum (Anderson and Duffin 1969). Where E = G, as it is when a motion continues,
    H = f G, as with exponential forgetting; where E = c G it is about half as much, and where
    E = 0 nothing. H is at most (1 + c) f G. So what is left is at least P + (1 - (1 + c) f) G:
    positive definite by construction, as nothing is subtracted from R itself. When a motion stops,
    E fades within a fifth of the memory, and before it has, G loses about a third. H is of the form
    for which Lai and Bernstein 2023 (generalized forgetting recursive least squares) prove that the
    parameters' errors stay bounded.

    Matrices are kept in coordinates in which A is the identity: there nothing small matters.
    """

    def __init__(self, R: Array) -> None:
        self._before = R.copy()
        # What the recent rows brought, where _before'_before is the identity.
        self._recent: Array = np.zeros_like(R)

    def retained(self, R: Array, ridge: Array, fraction: float) -> Array:
        """Upper triangular C (D, D) with (C R)'(C R) = A - H; to be called once for each R.

        R : (D, D), what rows added since have made of the last C R.
        ridge : (D, D), rows with ridge'ridge = P.
        fraction : f, of which at most `LARGEST_FRACTION` is used.

        Raises LinAlgError where rounding leaves no answer; all is then as it was. O(D^3).
        """
        identity = np.eye(len(R))
        old = solve_triangular(R, self._before.T, trans="T", check_finite=False).T
        held = solve_triangular(R, ridge.T, trans="T", check_finite=False).T
        known = identity - held.T @ held
        fraction = min(fraction, LARGEST_FRACTION)
        kept = (1.0 - fraction) ** (1.0 / WINDOW)
        recent = kept * (old.T @ self._recent @ old) + (identity - old.T @ old)
        excited = (1.0 - kept) / (PROTECTION * fraction) * recent + LEAK * identity
        root = cholesky(known + excited, lower=True, check_finite=False)
        part = solve_triangular(root, known, lower=True, check_finite=False)
        lost = (1.0 + PROTECTION) * fraction * (known - part.T @ part)
        C = np.asarray(cholesky(identity - lost, check_finite=False))
        left = solve_triangular(C, recent, trans="T", check_finite=False)
        left = solve_triangular(C, left.T, trans="T", check_finite=False)
        self._before, self._recent = C @ R, 0.5 * (left + left.T)
        return C

    def rebase(self, R: Array) -> None:
        """Continue with an R that another ridge has changed; rows since the last C R don't count.

        What was recent stays what it was, A being another.
        """
        old = solve_triangular(R, self._before.T, trans="T", check_finite=False).T
        self._before, self._recent = R.copy(), old.T @ self._recent @ old

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {"before": self._before.copy(), "recent": self._recent.copy()}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        self._before, self._recent = state["before"].copy(), state["recent"].copy()
