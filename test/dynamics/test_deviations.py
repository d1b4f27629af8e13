"""Standard deviations and the running means that they follow."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.dynamics.deviations import ErrorSpreads, RunningSquare, blend, deviations


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


def test_what_was_not_measured_changes_no_running_square() -> None:
    rng = np.random.default_rng(3)
    errors, gone = rng.normal(size=(40, 2)), rng.random(40) < 0.3
    partial, compact = RunningSquare(2, 2.0), RunningSquare(1, 2.0)
    errors[gone, 1] = np.nan
    for row, missing in zip(errors, gone, strict=True):
        partial.update(row, 0.1)
        if not missing:
            compact.update(row[1:], 0.1)
        np.testing.assert_array_equal(partial.value[1:], compact.value)


@pytest.mark.parametrize("complete", [True, False])
def test_errors_in_blocks_one_by_one_and_saved_are_the_same(complete: bool) -> None:
    rng = np.random.default_rng(2)
    y, left = 1e3 + rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    if not complete:
        y[:10, 0], y[30:45, 1] = np.nan, np.nan
        left = np.where(np.isnan(y), np.nan, left)
    stamps = 10**9 + np.cumsum(rng.integers(0, 3 * 10**9, 60)).astype(np.intp)
    one, blocks = (ErrorSpreads(("model",), 2, 5.0) for _ in range(2))
    before = []
    for k, stamp in enumerate(stamps.tolist()):
        before.append(one["model"].value.copy())
        one.record(stamp, y[k], {"model": left[k]})
    found = [blocks.record_block(stamps[r], y[r], {"model": left[r]}) for r in (slice(0, 7),)]
    other = ErrorSpreads(("model",), 2, 5.0)
    other.restore(blocks.state())
    found.append(other.record_block(stamps[7:], y[7:], {"model": left[7:]}))
    np.testing.assert_allclose(np.concatenate([f["model"] for f in found]), before, rtol=1e-12)
    assert other.n_learned == one.n_learned == 60
    for name in ("model", "y"):
        np.testing.assert_allclose(other[name].value, one[name].value, rtol=1e-9)
