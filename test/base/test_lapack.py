"""LAPACK without the interpreter's lock."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from semiparam_dynamics.base.lapack import solve_positive


@pytest.mark.parametrize("shape", [(1,), (5,), (5, 3), (30, 0), (200, 7)])
def test_it_solves_as_numpy_does(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    root, B = random.normal(size=(shape[0], shape[0])), random.normal(size=shape)
    A, kept = root @ root.T + np.eye(shape[0]), B.copy()
    for right in (B, np.asfortranarray(B)):
        np.testing.assert_allclose(solve_positive(A.copy(), right), np.linalg.solve(A, B), 1e-9)
    np.testing.assert_array_equal(B, kept)


def test_what_is_not_positive_definite_is_refused() -> None:
    with pytest.raises(LinAlgError, match="not positive definite"):
        solve_positive(np.diag([1.0, -1.0]), np.ones(2))


def test_another_thread_goes_on_while_it_solves() -> None:
    """No thread is given the lock by the interpreter: only where the solver lets go of it."""
    A, b = np.eye(400), np.ones(400)
    turn, went_on = threading.Lock(), threading.Event()
    turn.acquire()

    def wait() -> None:
        turn.acquire()
        went_on.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e3)
    try:
        other = threading.Thread(target=wait)
        other.start()
        turn.release()
        for _ in range(200):
            solve_positive(A, b)
            if went_on.is_set():
                break
        else:
            pytest.fail("nothing else ran")
    finally:
        sys.setswitchinterval(interval)
        other.join()
