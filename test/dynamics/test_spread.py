from __future__ import annotations

import numpy as np

from semiparam_dynamics.dynamics.deviations import RunningSquare, blend, deviations


def test_deviations_are_the_spreads_times_what_the_parameters_add() -> None:
    rng = np.random.default_rng(0)
    for confidence in (0.0, 0.3, 1.0):
        leverage, near, far = rng.uniform(0.0, 4.0, (3, 7))
        alone, blended = deviations(leverage, confidence, near, far)
        root = np.sqrt(1.0 + leverage)
        np.testing.assert_allclose(alone, root * np.sqrt(far), rtol=1e-14)
        np.testing.assert_allclose(blended, root * blend(confidence, near, far), rtol=1e-14)


def test_a_running_square_is_the_weighted_mean_of_the_squares() -> None:
    rng = np.random.default_rng(1)
    errors, steps = rng.normal(size=(30, 3)), rng.uniform(0.0, 0.4, 30)
    one, rows = RunningSquare(3, 2.0), RunningSquare(3, 2.0)
    before = rows.update_rows(errors, steps)
    for k, (error, dt) in enumerate(zip(errors, steps.tolist(), strict=True)):
        np.testing.assert_array_equal(before[k], one.value)
        one.update(error, dt)
        ages = np.cumsum(steps[: k + 1][::-1])[::-1] - steps[: k + 1]
        weights = np.exp(-ages / 2.0)
        wanted = weights @ errors[: k + 1] ** 2 / weights.sum()
        np.testing.assert_allclose(one.value, wanted, rtol=1e-12)
    np.testing.assert_allclose(rows.value, one.value, rtol=1e-14)
