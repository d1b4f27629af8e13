"""What is measured is what it says: the same numbers as the learner's, and all of the triangle."""

from __future__ import annotations

import numpy as np
from step import _Loop, measure, stream

from semiparam_dynamics.recursion.rls import RecursiveLeastSquares


def test_the_compiled_loop_is_the_recursion() -> None:
    rng = np.random.default_rng(0)
    rows, targets = rng.standard_normal((6, 11)), rng.standard_normal((6, 2))
    loop, core = _Loop(11, 2), RecursiveLeastSquares(11, 2)
    loop.run(rows, targets, 9)
    loop.run(rows, targets, 1)  # settles the ninth, and asks the first again
    for k in range(9):
        core.predict(rows[k % 6])
        core.update(rows[k % 6], targets[k % 6])
    core.apply_pending()
    assert np.array_equal(loop.R[:11, :11], core.R) and np.array_equal(loop.U[:11, :2], core.U)
    np.testing.assert_array_equal(-loop.side[1, :2], core.predict(rows[0])[0])


def test_the_limit_touches_the_whole_triangle_and_nothing_else() -> None:
    R = np.ones((7, 9))
    stream(R, 7, 2.0, 3)
    wanted = np.ones((7, 9))
    wanted[:, :7][np.triu_indices(7)] = 8.0
    np.testing.assert_array_equal(R, wanted)


def test_every_figure_is_a_time() -> None:
    times = measure(20, 3, 0.01)
    assert (times.n_features, times.n_outputs) == (20, 3)
    assert all(0.0 < t < 1e6 for t in (times.limit, times.copy, times.kernel, times.step))
