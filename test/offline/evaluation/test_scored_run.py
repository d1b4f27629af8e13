"""Repeated motion is told from new motion and scored apart; error traces in bounded memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation import protocols
from semiparam_dynamics.offline.evaluation.experiment import Evaluation, evaluate
from semiparam_dynamics.offline.evaluation.protocols import (
    MAX_TRACE_POINTS,
    MAX_WINDOWS,
    LearnedStates,
    Repeats,
    Trace,
)
from semiparam_dynamics.offline.evaluation.report import report, warnings_of
from semiparam_dynamics.offline.identification.identify import export_urdf
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement

from ...dynamics.arms import FEW_CENTERS, URDF, measurements, small_arm

CONFIG = from_flat(InverseDynamicsConfig, {"nystrom.window": 1.0} | FEW_CENTERS)
NOTHING = np.zeros((2, 1))


def sample(t: float, q: tuple[float, ...], dq: tuple[float, ...]) -> Sample:
    zeros = np.zeros(len(q))
    return Sample(round(t * 1e9), np.array(q), np.array(dq), zeros, NOTHING, zeros)


def circle(t: float, phase: float = 0.0, radius: float = 1.0) -> Sample:
    """Two joints on a circle of a second; the third stands still."""
    w = 2.0 * np.pi
    angle = w * t + phase
    q = (radius * np.cos(angle), radius * np.sin(angle), 0.4)
    return sample(t, q, (-w * q[1], w * q[0], 0.0))


def repeats_of(learned: LearnedStates) -> Repeats:
    repeats = learned.repeats()
    assert repeats is not None
    return repeats


def test_the_urdf_is_scored_with_its_joint_friction() -> None:
    friction = {name: {"damping": 2.0, "friction": 3.0} for name in ("slew", "lift")}
    model = RobotModel(export_urdf(URDF.read_text(), {}, friction))
    against = np.array([1.0, 1.0, 0.0, 0.0])  # of slew, lift, reach and grip
    recording = [
        replace(m, y=m.y + against * (2.0 * m.dq + 3.0 * np.tanh(m.dq / 0.02)))
        for m in measurements(model, 4.0)
        if m.y is not None and m.dq is not None
    ]
    scores = evaluate(model, CONFIG, [recording]).runs["sequential"].scores
    assert scores.nmse("urdf").max() < 0.02


def states(*samples: Sample) -> np.ndarray:
    return np.array([(*s.q, *s.dq) for s in samples])


def learned_circle(rate: float = 200.0, seconds: float = 2.0) -> LearnedStates:
    learned = LearnedStates(np.zeros(3, dtype=bool))
    for k in range(round(rate * seconds)):
        learned.add(circle(k / rate))
    return learned


def test_the_radius_is_what_motion_covers_in_fifty_milliseconds() -> None:
    repeats = repeats_of(learned_circle())
    # Four coordinates of deviation sqrt(1/2) each, all on a circle: the chord of 18 degrees, twice.
    chord = 2.0 * np.sin(np.pi * 0.05)
    assert repeats.radius == pytest.approx(chord * np.sqrt(2.0) * np.sqrt(2.0), rel=1e-2)


def test_a_state_on_the_path_repeats_and_one_beside_it_does_not() -> None:
    there = circle(0.3)
    known = states(circle(7.123), circle(0.3, radius=1.1))
    unknown = states(
        circle(0.3, radius=1.6),
        sample(9.0, (0.0, 0.0, 0.4), (0.0, 0.0, 0.0)),
        # Backwards: the same positions, other velocities.
        sample(9.0, tuple(there.q), tuple(-there.dq)),
        # The joint that stood still has moved.
        sample(9.0, (*there.q[:2], 0.45), tuple(there.dq)),
    )
    found = repeats_of(learned_circle())(np.concatenate((known, unknown)))
    assert found.tolist() == [True, True, False, False, False, False]


def test_what_was_learned_is_thinned_and_may_come_from_several_recordings() -> None:
    learned = learned_circle(rate=1000.0, seconds=0.5)
    for k in range(100):
        learned.add(circle(-100.0 + 0.01 * k, phase=1.0))  # an earlier one, learned later
    assert len(learned._stamps) <= 50 + 100
    assert repeats_of(learned)(states(circle(55.0)))


def test_states_of_hours_are_thinned_further(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = repeats_of(learned_circle(seconds=10.0))
    monkeypatch.setattr(protocols, "MAX_LEARNED_STATES", 600)
    thinned = repeats_of(learned_circle(seconds=10.0))
    assert thinned.radius == pytest.approx(whole.radius, rel=0.25)
    there = states(*(circle(0.003 + 0.1 * k) for k in range(20)))
    beside = states(*(circle(0.1 * k, radius=1.3) for k in range(20)))
    assert thinned(there).all() and not thinned(beside).any()


def test_a_joint_that_turns_without_end_repeats_a_turn_further() -> None:
    learned, w = LearnedStates(np.array([True, False])), 2.0 * np.pi * 0.7
    for k in range(600):  # four turns in 6 s, unwrapped
        t = 0.01 * k
        learned.add(sample(t, (w * t, np.sin(3.0 * t)), (w, 3.0 * np.cos(3.0 * t))))
    q, dq = (w * 2.5, np.sin(7.5)), (w, 3.0 * np.cos(7.5))
    for turns in (0.0, 1.0, -7.0, 40.0):
        there = np.array([[q[0] + 2.0 * np.pi * turns, q[1], *dq]])
        assert repeats_of(learned)(there).all(), turns
    elsewhere = np.array([[q[0] + 0.5 * np.pi, q[1], *dq], [q[0], q[1] + 2.0 * np.pi, *dq]])
    assert not repeats_of(learned)(elsewhere).any()


def test_a_turning_joint_that_stood_still_stands_there_a_turn_further() -> None:
    learned = LearnedStates(np.array([True, False]))
    for k in range(200):
        t = 0.01 * k
        learned.add(sample(t, (0.3, np.sin(3.0 * t)), (0.0, 3.0 * np.cos(3.0 * t))))
    q, dq = np.sin(3.0), 3.0 * np.cos(3.0)
    rows = np.array([[0.3 + turn, q, 0.0, dq] for turn in (0.0, 4.0 * np.pi, 0.1)])
    assert repeats_of(learned)(rows).tolist() == [True, True, False]


def test_an_arm_that_never_moved_tells_nothing() -> None:
    learned = LearnedStates(np.zeros(2, dtype=bool))
    assert learned.repeats() is None
    for k in range(100):
        learned.add(sample(0.01 * k, (1.0, 2.0), (0.0, 0.0)))
    assert learned.repeats() is None


def repeated(times: int) -> list[Measurement]:
    """A second and a half of motion, again and again."""
    once = list(measurements(small_arm(), 1.5, extra=1.0))
    shift = once[-1].stamp - once[0].stamp + 10_000_000
    return [Measurement(m.stamp + k * shift, m.q, m.dq, m.y) for k in range(times) for m in once]


def test_repeated_motion_is_scored_apart_and_said() -> None:
    model = small_arm()
    other = list(measurements(model, 2.0, extra=1.0, seed=5))
    found = evaluate(model, CONFIG, [repeated(1), other], [repeated(2)])
    frozen = found.runs["frozen"]
    share = found.repeated_share()
    assert share is not None and 0.3 < share < 0.7
    assert frozen.scored.repeated.samples + frozen.scored.new.samples == frozen.scores.samples
    scores = found.results()["scores"]
    assert isinstance(scores, dict) and {"frozen_repeated", "frozen_new"} <= set(scores)
    nmse = [s.nmse("rigid_body") * s.samples for s in (frozen.scored.repeated, frozen.scored.new)]
    whole = frozen.scores.nmse("rigid_body") * frozen.scores.samples
    np.testing.assert_allclose(sum(nmse), whole, rtol=1e-9)
    whole = frozen.scores.rmse("semiparametric") ** 2 * frozen.scores.samples
    parts = [
        s.rmse("semiparametric") ** 2 * s.samples
        for s in (frozen.scored.repeated, frozen.scored.new)
    ]
    np.testing.assert_allclose(sum(parts), whole, rtol=1e-9)
    (said,) = [w for w in warnings_of(found) if "repeat states that were learned" in w]
    assert "on those and" in said
    assert "Frozen, new states" in report(found)


def only(found: Evaluation) -> list[str]:
    return [w for w in warnings_of(found) if "repeat states" in w]


def test_a_test_on_nothing_new_says_so_and_one_on_new_motion_says_nothing() -> None:
    model = small_arm()
    again = evaluate(model, CONFIG, [repeated(1)], [repeated(2)])
    assert again.repeated_share() == pytest.approx(1.0, abs=0.05)
    assert only(again)
    fresh = evaluate(
        model, CONFIG, [list(measurements(model, 2.0, extra=1.0, seed=5))], [repeated(1)]
    )
    share = fresh.repeated_share()
    assert share is not None and share < 0.05
    assert not only(fresh)


def filled(n: int, dt: float) -> tuple[Trace, np.ndarray]:
    trace = Trace(["a"], 1)
    errors = np.random.default_rng(0).standard_normal(n)
    stamps, y = np.round(np.arange(n) * dt * 1e9).astype(np.int64), np.arange(float(n))[:, None]
    for rows in np.array_split(np.arange(n), n // 100):
        trace.add(stamps[rows], y[rows], {"a": y[rows] + errors[rows, None]}, np.ones_like(y[rows]))
    return trace, errors


def test_windows_hold_the_errors_root_mean_square() -> None:
    trace, errors = filled(1000, 0.01)
    times, rmse, _ = trace.rmse()
    np.testing.assert_allclose(times, np.arange(20) * 0.5 + 0.25)
    expected = np.sqrt(np.mean(errors.reshape(20, 50) ** 2, axis=1))
    np.testing.assert_allclose(rmse[:, 0, 0], expected, rtol=0.1)


def test_a_long_run_needs_no_more_windows_or_points() -> None:
    trace, errors = filled(60_000, 0.02)
    times, rmse, _ = trace.rmse()
    assert len(times) <= MAX_WINDOWS
    assert times[-1] < 1200.0 < times[-1] + trace.window
    np.testing.assert_allclose(np.sqrt(np.mean(rmse**2)), np.sqrt(np.mean(errors**2)), rtol=0.02)
    t, y, values, std = trace.points()
    assert len(t) <= MAX_TRACE_POINTS
    np.testing.assert_allclose(values[:, 0, 0] - y[:, 0], errors[-len(t) :], atol=1e-9)
    assert std.shape == y.shape


def test_between_two_bags_no_motion_is_counted() -> None:
    trace = Trace(["a"], 1)
    for stamp in (0, 100_000_000, 900_000_000_000, 900_100_000_000):
        one = np.ones((1, 1))
        trace.add(np.array([stamp]), 0.0 * one, {"a": one}, one)
    assert trace.points()[0].tolist() == [0.0, 0.1, 0.1, 0.2]


def test_rows_at_once_are_rows_one_by_one() -> None:
    rng = np.random.default_rng(2)
    stamps = np.cumsum(rng.choice([10_000_000, 400_000_000, -5_000_000_000, 2_000_000_000], 3000))
    y, std = rng.standard_normal((3000, 2)), rng.uniform(0.1, 1.0, (3000, 2))
    predictions = {name: rng.standard_normal(y.shape) for name in "ab"}
    one, many = (Trace("ab", 2) for _ in range(2))
    parts = (slice(0, 1), slice(1, 700), slice(700, 3000))
    for trace, slices in ((one, [slice(i, i + 1) for i in range(3000)]), (many, parts)):
        for rows in slices:
            found = {name: v[rows] for name, v in predictions.items()}
            trace.add(stamps[rows], y[rows], found, std[rows])
    assert many.window == one.window > 0.5
    of_many, of_one = ((*trace.rmse(), *trace.points()) for trace in (many, one))
    for got, wanted in zip(of_many, of_one, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
