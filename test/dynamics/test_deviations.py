"""Standard deviations and the running means that they follow."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.dynamics.deviations import ErrorSpreads, RunningSquare, blend


def test_what_is_not_known_of_parameters_adds_to_the_spread() -> None:
    rng = np.random.default_rng(0)
    variance, near, far = rng.uniform(0.0, 4.0, (3, 7))
    for confidence in (0.0, 0.3, 1.0):
        blended = blend(confidence, near, far, variance)
        spread = blend(confidence, near, far) ** 2
        np.testing.assert_allclose(blended, np.sqrt(spread + variance), rtol=1e-14)
        assert np.all(blended <= np.sqrt(far + variance) * (1.0 + 1e-14))


def test_a_running_square_is_the_weighted_mean_of_the_squares() -> None:
    rng = np.random.default_rng(1)
    errors, steps = rng.normal(size=(30, 3)), rng.uniform(0.0, 0.4, 30)
    one = RunningSquare(3, 2.0)
    for k, (error, dt) in enumerate(zip(errors, steps.tolist(), strict=True)):
        one.update(error, dt)
        ages = np.cumsum(steps[: k + 1][::-1])[::-1] - steps[: k + 1]
        weights = np.exp(-ages / 2.0)
        wanted = weights @ errors[: k + 1] ** 2 / weights.sum()
        np.testing.assert_allclose(one.value, wanted, rtol=1e-12)


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
def test_errors_that_were_saved_go_on_and_blocks_are_widened_alike(complete: bool) -> None:
    rng = np.random.default_rng(2)
    y, left = 1e3 + rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    if not complete:
        y[:10, 0], y[30:45, 1] = np.nan, np.nan
        left = np.where(np.isnan(y), np.nan, left)
    stamps = 10**9 + np.cumsum(rng.integers(0, 3 * 10**9, 60)).astype(np.intp)
    one, other = (ErrorSpreads(("model",), 2) for _ in range(2))
    for k, stamp in enumerate(stamps.tolist()):
        if k == 7:
            other.restore(one.state())
        for spreads in (one, other) if k >= 7 else (one,):
            std = np.sqrt(spreads["model"].value) * spreads.factors(stamp)["model"]
            spreads.record(stamp, y[k], {"model": left[k]}, {"model": std})
    later = stamps[-1:] + 10**8
    same = other.widen(later, {"model": np.ones((1, 2))})["model"][0]
    np.testing.assert_allclose(same, one.factors(int(later[0]))["model"], rtol=1e-12)
    assert other.n_learned == one.n_learned == 60
    for name in ("model", "y"):
        np.testing.assert_array_equal(other[name].value, one[name].value)


def test_two_deviations_cover_95_percent_however_errors_are_distributed() -> None:
    rng = np.random.default_rng(3)
    n, size = 6000, np.r_[np.ones(3000), np.full(3000, 3.0)][:, None]  # it trebles half-way
    left = size * np.column_stack(
        (rng.normal(size=n), rng.standard_t(2, n), np.sign(rng.normal(size=n)))
    )
    stamps = 10**9 + 20_000_000 * np.arange(1, n + 1)
    errors = ErrorSpreads(("model",), 3)
    covered = np.empty(left.shape, dtype=bool)
    for k, stamp in enumerate(stamps.tolist()):
        std = 0.5 * np.sqrt(errors["model"].value) * errors.factors(stamp)["model"]
        covered[k] = np.abs(left[k]) <= 2.0 * std
        errors.record(stamp, left[k], {"model": left[k]}, {"model": std})
    for part in (slice(500, 3000), slice(3500, n)):
        np.testing.assert_allclose(covered[part, :2].mean(axis=0), 0.95, atol=0.015)
    assert covered[500:, 2].mean() > 0.93  # errors of one size, which two deviations follow


def test_the_factor_says_nothing_where_nothing_was_learned() -> None:
    errors, at = ErrorSpreads(("model",), 1), 10**9
    assert errors.factors(at)["model"] == 1.0
    for _ in range(50):
        at += 20_000_000
        errors.record(at, np.ones(1), {"model": np.ones(1)}, {"model": np.full(1, 0.1)})
    held = errors.factors(at)["model"]
    assert held > 2.0
    assert errors.factors(at + 500_000_000)["model"] == held
    assert 1.0 < errors.factors(at + 700_000_000)["model"] < held
    for other in (at + 10**9, at - 10**9, 0):  # later, before, and of no instant
        assert errors.factors(other)["model"] == 1.0


def test_an_axis_not_seen_yet_has_the_deviation_that_is_expected() -> None:
    rng = np.random.default_rng(5)
    expected, left = np.array([3.0, 7.0]), rng.normal(size=(12, 2))
    left[:5, 1] = np.nan
    stamps = 10**9 + 10_000_000 * np.arange(12)
    one, saved = (ErrorSpreads(("model",), 2, expected) for _ in range(2))
    plain, before = ErrorSpreads(("model",), 2), []
    for k, stamp in enumerate(stamps.tolist()):
        stds = [
            {"model": np.sqrt(spreads["model"].value) * spreads.factors(stamp)["model"]}
            for spreads in (one, plain)
        ]
        one.complete(stds[0])
        before.append(stds[0]["model"])
        for spreads, std in zip((one, plain), stds, strict=True):
            spreads.record(stamp, left[k], {"model": left[k]}, std)
        if k < 5:
            assert before[-1][1] == 7.0
            assert one.unseen.tolist() == [False, True]
    assert before[0].tolist() == expected.tolist()
    assert one.all_seen
    # From the first error on nothing is another than without.
    for name, value in plain.state().items():
        np.testing.assert_array_equal(one.state()[name], value, err_msg=name)
    saved.restore(ErrorSpreads(("model",), 2).state())  # before anything was learned
    wide = saved.widen(stamps[:3], {"model": np.zeros((3, 2))})["model"]
    np.testing.assert_array_equal(wide, np.tile(expected, (3, 1)))


def test_a_wild_effort_hardly_widens_deviations_and_what_lasts_does() -> None:
    usual, lasting = 0.1, 2.0
    errors = np.full(3000, usual)
    errors[500] = 1e5
    errors[2000:2500] = lasting
    found = means_of(errors)
    assert found[499] == pytest.approx(usual)
    assert found[549] < 2.0 * usual  # just after it
    assert found[2499] > 0.4 * lasting  # five seconds of another error


def means_of(errors: np.ndarray) -> np.ndarray:
    """Roots of the mean squares (k,) after each of the errors (k,), at 100 Hz."""
    spreads = ErrorSpreads(("model",), 1, np.ones(1))
    found = []
    for k, row in enumerate(errors[:, None]):
        spreads.record(SECOND // 100 * (k + 1), row, {"model": row}, {"model": np.ones(1)})
        found.append(float(np.sqrt(spreads["model"].value[0])))
    return np.array(found)


def test_a_wild_effort_is_forgotten_and_a_load_is_followed() -> None:
    usual = np.full(500, 0.1)
    wild = means_of(np.r_[usual, 1e5, np.full(3000, 0.1)])
    assert wild[500] < 1.0
    assert wild[-1] < 0.15
    load = np.r_[usual, np.full(500, 2.0)]
    assert 1.0 < means_of(load)[-1] < 1.7


def test_a_wild_effort_that_a_filter_draws_out_is_forgotten_too() -> None:
    trail = 1e5 * np.exp(-45.0 * np.arange(0.0, 0.3, 0.01))
    roots = means_of(np.r_[np.full(2000, 0.1), 0.1 + trail, np.full(3000, 0.1)])
    assert roots[2000:].max() < 0.5
    assert roots[-1] < 0.2
