"""Error traces in bounded memory."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.evaluation.scored_run import POINTS, WINDOWS, Trace


def filled(n: int, dt: float) -> tuple[Trace, np.ndarray]:
    trace = Trace(["a"], 1, window=0.5)
    errors = np.random.default_rng(0).standard_normal(n)
    for k, error in enumerate(errors):
        y = np.array([1.0 * k])
        trace.add(round(k * dt * 1e9), y, {"a": y + error}, np.ones(1))
    return trace, errors


def test_windows_hold_the_errors_root_mean_square() -> None:
    trace, errors = filled(1000, 0.01)
    times, rmse = trace.rmse()
    np.testing.assert_allclose(times, np.arange(20) * 0.5 + 0.25)
    expected = np.sqrt(np.mean(errors.reshape(20, 50) ** 2, axis=1))
    np.testing.assert_allclose(rmse[:, 0, 0], expected, rtol=0.1)


def test_a_long_run_needs_no_more_windows_or_points() -> None:
    trace, errors = filled(60_000, 0.02)
    times, rmse = trace.rmse()
    assert len(times) <= WINDOWS
    assert times[-1] < 1200.0 < times[-1] + trace.window
    np.testing.assert_allclose(np.sqrt(np.mean(rmse**2)), np.sqrt(np.mean(errors**2)), rtol=0.02)
    t, y, values, std = trace.points()
    assert len(t) <= POINTS
    np.testing.assert_allclose(values[:, 0, 0] - y[:, 0], errors[-len(t) :], atol=1e-9)
    assert std.shape == y.shape


def test_between_two_bags_no_motion_is_counted() -> None:
    trace = Trace(["a"], 1)
    for stamp in (0, 100_000_000, 900_000_000_000, 900_100_000_000):
        trace.add(stamp, np.zeros(1), {"a": np.ones(1)}, np.ones(1))
    assert trace.points()[0].tolist() == [0.0, 0.1, 0.1, 0.2]


def test_rows_at_once_are_rows_one_by_one() -> None:
    rng = np.random.default_rng(2)
    stamps = np.cumsum(rng.choice([10_000_000, 400_000_000, -5_000_000_000, 2_000_000_000], 3000))
    y, std = rng.standard_normal((3000, 2)), rng.uniform(0.1, 1.0, (3000, 2))
    predictions = {name: rng.standard_normal(y.shape) for name in "ab"}
    one, many = (Trace("ab", 2) for _ in range(2))
    for i in range(3000):
        one.add(int(stamps[i]), y[i], {name: v[i] for name, v in predictions.items()}, std[i])
    for rows in (slice(0, 1), slice(1, 700), slice(700, 3000)):
        many.add_rows(
            stamps[rows], y[rows], {n: v[rows] for n, v in predictions.items()}, std[rows]
        )
    assert many.window == one.window > 0.5
    of_many, of_one = ((*trace.rmse(), *trace.points()) for trace in (many, one))
    for got, wanted in zip(of_many, of_one, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
