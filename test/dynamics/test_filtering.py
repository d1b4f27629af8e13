"""Both sides of the equation filtered alike, against SciPy's filters and exact derivatives.

A recording filtered in blocks is the stream filtered message by message, to the last bit.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.signal import StateSpace, lsim

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.dynamics.filtering import (
    AFTER_GAP,
    BETWEEN,
    PARTIAL,
    REASONS,
    STANDING,
    UNREAD,
    UNSETTLED,
    WRONG_UNIT,
    FilterConfig,
    SampleFilter,
    lowpass_part,
)
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.experiment import evaluate
from semiparam_dynamics.robot.model import FrictionMemory, RobotModel
from semiparam_dynamics.samples.measurement import Measurement

from .arms import FEW_CENTERS, URDF, measurements, motion, small_arm

Change = Callable[[list[Measurement]], list[Measurement]]


def low_passed(rows: np.ndarray, steps: np.ndarray, cutoff: float, stages: int = 1) -> np.ndarray:
    """Rows (n, size) through one low-pass, each so many seconds after the one before."""
    out, state = rows.copy(), np.zeros((stages, 3, rows.shape[1]))
    for k, row in enumerate(out):
        lowpass_part(row, 0, row.size, steps[k], state, cutoff, k > 0)
    return out


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("stages", [1, 2])
def test_low_pass_is_the_continuous_butterworth_of_straight_input(stages: int, even: bool) -> None:
    rng = np.random.default_rng(0)
    steps = np.full(300, 10) if even else rng.integers(1, 30, 300)  # ms
    steps[0] = 0
    u, t = rng.standard_normal((300, 2)) + 3.0, np.cumsum(steps)
    ours = low_passed(u, 1e-3 * steps, 5.0, stages)
    # SciPy solves for straight input too, at equal steps: so at each millisecond.
    w = 2.0 * np.pi * 5.0
    low_pass = StateSpace([[0.0, 1.0], [-(w**2), -np.sqrt(2.0) * w]], [[0.0], [w**2]], [1, 0], 0)
    for column in range(2):
        expected = u[:, column]
        for _ in range(stages):
            dense = np.interp(np.arange(t[-1] + 1), t, expected)
            start = [expected[0], 0.0]
            _, out, _ = lsim(low_pass, dense, 1e-3 * np.arange(len(dense)), X0=start)
            expected = out[t]
        np.testing.assert_allclose(ours[:, column], expected, rtol=1e-7, atol=1e-9)


def swaying(t: np.ndarray, velocity: bool) -> Iterator[Measurement]:
    """The small arm's first joint at 0.3 sin t, at instants t (n,) in s."""
    n = small_arm().n_joints
    first = np.eye(n)[0]
    for now in t:
        q, dq = 0.3 * np.sin(now) * first, 0.3 * np.cos(now) * first
        yield Measurement(SECOND + round(now * SECOND), q, dq if velocity else None, np.zeros(n))


@pytest.mark.parametrize("velocity", [True, False])
@pytest.mark.parametrize("case", ["uneven", "gap"])
def test_uneven_steps_and_a_gap_make_no_jerk(case: str, velocity: bool) -> None:
    if case == "uneven":
        t = np.arange(8000) / 1000.0
        t += np.random.default_rng(0).uniform(-2e-4, 2e-4, len(t))
    else:
        t = np.arange(800) / 100.0
        t = t[(t < 4.0) | (t > 4.095)]
    sampler = SampleFilter(small_arm(), FilterConfig())
    samples = list(sampler.filter_recording(list(swaying(t - t[0], velocity))))
    ddq = np.array([s.ddq for s in samples if s.stamp > 2 * SECOND])
    assert np.abs(ddq).max() == pytest.approx(0.3, abs=0.02)


def test_low_pass_commutes_with_linear_models_at_uneven_steps() -> None:
    rng = np.random.default_rng(1)
    Phi, pi = rng.standard_normal((200, 6)), rng.standard_normal(6)
    both = low_passed(np.column_stack((Phi, Phi @ pi)), rng.uniform(0.001, 0.05, 200), 3.0)
    np.testing.assert_allclose(both[:, :6] @ pi, both[:, 6], rtol=1e-9, atol=1e-12)
    assert not np.allclose(both[:, :6], Phi, atol=0.1)


def test_a_recording_s_samples_that_are_not_learned_are_left_out_where_they_are_not_asked_for():
    stream = list(swaying(np.arange(2000) / 1000.0, velocity=True))
    every = list(SampleFilter(small_arm(), FilterConfig()).filter_recording(stream))
    kept = list(SampleFilter(small_arm(), FilterConfig()).filter_recording(stream, between=False))
    wanted = [sample for sample in every if not sample.between]
    assert [s.stamp for s in kept] == [s.stamp for s in wanted] and 5 * len(kept) < len(every)
    for sample, expected in zip(kept, wanted, strict=True):
        np.testing.assert_array_equal(sample.regressor, expected.regressor)
        assert sample.informative == expected.informative and sample.weight == expected.weight


@pytest.mark.parametrize("velocity", [True, False])
def test_the_true_parameters_explain_the_filtered_samples(velocity: bool) -> None:
    model = small_arm()
    sampler = SampleFilter(model, FilterConfig(cutoff=5.0))
    worst, size = 0.0, 0.0
    for m in measurements(model, 10.0, 200.0, velocity=velocity):
        sample = sampler.push(m)
        if sample is not None and sample.y is not None and m.stamp > 2 * SECOND:
            worst = max(worst, np.abs(sample.y - sample.regressor @ model.prior).max())
            size = max(size, np.abs(sample.y).max())
    assert worst < 0.01 * size


def test_unfiltered_samples_are_the_instant_before_with_central_differences() -> None:
    model = small_arm()
    sampler = SampleFilter(model, FilterConfig(cutoff=0.0))
    samples = [sampler.push(m) for m in measurements(model, 2.0, 100.0, velocity=False)]
    assert samples[:2] == [None, None]
    q, dq, ddq = motion(model, np.arange(200) / 100.0)
    for k, sample in enumerate(samples[2:], start=1):
        assert sample is not None
        assert sample.stamp == SECOND + k * SECOND // 100
        np.testing.assert_allclose(sample.q, q[k], atol=1e-12)
        np.testing.assert_allclose(sample.dq, (q[k + 1] - q[k - 1]) / 0.02, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(sample.dq, dq[k], atol=0.01)
        np.testing.assert_allclose(sample.ddq, ddq[k], atol=0.05)


def test_late_and_repeated_stamps_are_left_out_and_change_nothing() -> None:
    model = small_arm()
    stream = list(measurements(model, 1.0))
    clean, noisy = (SampleFilter(model, FilterConfig()) for _ in range(2))
    expected = [clean.push(m) for m in stream]
    got = []
    for k, m in enumerate(stream):
        got.append(noisy.push(m))
        assert noisy.push(stream[max(k - 3, 0)]) is None
    assert noisy.dropped["out of order"] == len(stream)
    equal(got, expected)


@pytest.mark.parametrize("rate", [0.0, 30.0])  # which doesn't wait for the time before
@pytest.mark.parametrize("jump", [5 * SECOND, -5 * SECOND])
def test_a_pause_or_a_clock_gone_back_starts_anew(jump: int, rate: float) -> None:
    model = small_arm()
    stream = list(measurements(model, 1.0))
    sampler, fresh = (SampleFilter(model, FilterConfig(max_rate=rate)) for _ in range(2))
    for m in stream:
        sampler.push(m)
    later = [dataclasses.replace(m, stamp=m.stamp + jump) for m in stream]
    equal([sampler.push(m) for m in later], [fresh.push(m) for m in later])
    assert sampler.dropped["filter restarted after a pause"] == 1


def test_prediction_goes_on_without_the_effort_and_learning_waits_for_it() -> None:
    model = small_arm()
    sampler = SampleFilter(model, FilterConfig(cutoff=5.0))
    lost = range(100, 120)
    stream = list(measurements(model, 4.0))
    gone = [dataclasses.replace(m, y=None) if k in lost else m for k, m in enumerate(stream)]
    samples = [s for s in map(sampler.push, gone) if s is not None]
    # For a quarter of the cut-off's period the effort goes straight from reading to reading.
    assert [s.stamp for s in samples] == [m.stamp for m in [*stream[1:100], *stream[105:-1]]]
    gap = {REASONS["gaps"]: 1, AFTER_GAP: 41}
    assert sampler.dropped == gap | {REASONS["lacking"]: 5, UNREAD: 15}
    # From the first reading after the gap on, 2 / 5 Hz until the filters forgot it.
    unmeasured = [s.stamp for s in samples if s.y is None]
    assert unmeasured == [m.stamp for m in stream[105 : 121 + 40]]
    clean = SampleFilter(model, FilterConfig(cutoff=5.0))
    whole = {s.stamp: s for m in measurements(model, 4.0) if (s := clean.push(m)) is not None}
    for sample in samples:
        if sample.y is not None:
            np.testing.assert_allclose(sample.y, whole[sample.stamp].y, rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize("cutoff", [0.0, 5.0])
def test_an_effort_that_is_missing_costs_that_joint_alone(cutoff: float) -> None:
    model = small_arm()
    stream = list(measurements(model, 4.0))
    gone = [dataclasses.replace(m, y=m.y.copy()) for m in stream]
    for m in (*gone[100:120], *gone[200:205]):
        m.y[1] = np.nan
    for m in gone[300:]:
        m.y[:-1] = np.nan
    config = FilterConfig(cutoff=cutoff)
    clean, sampler = (SampleFilter(model, config, fast=True) for _ in range(2))
    wanted, got = ([f.push(m) for m in s][2:] for f, s in ((clean, stream), (sampler, gone)))
    forgotten = 41 if cutoff else 0  # samples, as long as after a gap of all efforts
    for k, (a, b) in enumerate(zip(got, wanted, strict=True), start=1):
        # Before the narrow low-pass one that is missing is none either.
        assert np.array_equal(np.isnan(a.fast.y), np.isnan(a.y))
        if k >= 300:
            assert np.isnan(a.y).tolist() == [*[True] * (len(a.y) - 1), False]
            continue
        lost = 100 <= k < 120 + forgotten or 200 <= k < 205 + forgotten
        assert np.isnan(a.y).tolist() == [False, lost, *[False] * (len(a.y) - 2)]
        assert np.array_equal(np.delete(a.y, 1), np.delete(b.y, 1))
        np.testing.assert_allclose(a.y[1], np.nan if lost else b.y[1], rtol=1e-4, atol=2e-3)
        assert (a.informative, a.between, a.weight) == (b.informative, b.between, b.weight)
    learned = sum(s.teaches and np.isnan(s.y).any() for s in got)
    assert sampler.dropped[PARTIAL] == learned


@pytest.mark.parametrize("every", [2, 4])
@pytest.mark.parametrize("lacks", ["y", "dq"])
def test_readings_that_come_in_some_messages_only_are_learned_there(lacks: str, every: int) -> None:
    """The efforts of 50 or 25 Hz, or the velocities, beside positions of 100 Hz."""
    model = small_arm()
    stream = list(measurements(model, 8.0))
    some = [
        m if k % every == 0 else dataclasses.replace(m, **{lacks: None})
        for k, m in enumerate(stream)
    ]
    samples = list(SampleFilter(model, FilterConfig()).filter_recording(some))
    if lacks == "y":  # the log without the others
        alone = SampleFilter(model, FilterConfig())
        equal(samples, [s for s in map(alone.push, stream[::every]) if s is not None])
        return
    assert len(samples) == len(stream) - 2
    taught = [s for s in samples if s.teaches]
    assert len(taught) > 0.9 * len(samples)
    plain = SampleFilter(model, FilterConfig()).filter_recording(stream)
    error, expected = (
        max(np.abs(s.y - s.regressor @ model.prior).max() for s in of if s.stamp > 3 * SECOND)
        for of in (taught, plain)
    )
    assert error < expected + 0.01 * max(np.abs(m.y).max() for m in stream)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("rate", [1, 2])
def test_another_publisher_s_positions_cost_those_with_efforts_nothing(
    first: bool, rate: int
) -> None:
    """Messages without velocities and efforts: of another pose, or of positions that come late."""
    model = small_arm()
    stream = list(measurements(model, 6.0))
    alone = list(SampleFilter(model, FilterConfig()).filter_recording(stream))
    pose = np.full(model.n_joints, 0.2)
    for position in (lambda k: pose, lambda k: stream[k - 30].q if k > 30 else pose):
        both = []
        for k, m in enumerate(stream):
            other = Measurement(m.stamp + 4_000_000, position(k), None, None)
            both += [m] if k % rate else [m, other]
        if first:
            both.insert(0, Measurement(stream[0].stamp - 4_000_000, pose, None, None))
        sampler = SampleFilter(model, FilterConfig())
        samples = list(sampler.filter_recording(both))
        assert sampler.dropped[REASONS["others"]] > 0.9 * len(stream) / rate
        got = {s.stamp: s for s in samples if s.teaches and s.stamp > 2 * SECOND}
        wanted = {s.stamp: s for s in alone if s.teaches and s.stamp > 2 * SECOND}
        assert len(set(got) & set(wanted)) > 0.95 * len(wanted)
        off = [np.abs(got[t].ddq - wanted[t].ddq).max() for t in set(got) & set(wanted)]
        assert np.median(off) < 1e-3


def resting(stream: list[Measurement], seconds: float) -> list[Measurement]:
    """A recording that begins with a rest, to which an effort sensor's noise is added."""
    rng, first = np.random.default_rng(0), stream[0]
    assert first.y is not None
    dq = None if first.dq is None else 0.0 * first.dq
    count = round(100 * seconds)
    return [
        Measurement(
            first.stamp - (count - k) * SECOND // 100,
            first.q,
            dq,
            first.y + 0.1 * rng.standard_normal(first.y.shape),
        )
        for k in range(count)
    ] + stream


def test_what_has_to_be_forgotten_is_none_of_a_clock_that_went_far_back() -> None:
    model = small_arm()
    stream = list(measurements(model, 4.0))
    some = np.where(np.arange(model.n_axes) == 1, np.nan, stream[-1].y)
    before = [
        dataclasses.replace(m, stamp=m.stamp + 3600 * SECOND, y=y)
        for m, y in zip(stream[:4], (some, None, some, some), strict=True)
    ]
    samples = list(SampleFilter(model, FilterConfig()).filter_recording(before + stream))
    assert all(s.y is not None and np.isfinite(s.y).all() for s in samples[-300:])


@pytest.mark.parametrize("velocity", [True, False])
def test_motion_that_stops_or_starts_at_once_is_forgotten_before_learning_goes_on(
    velocity: bool,
) -> None:
    model, rng = small_arm(), np.random.default_rng(0)
    stream = list(measurements(model, 6.0, velocity=velocity))
    held, n, later = stream[300], 150, 1_500_000_000
    still = [
        dataclasses.replace(
            held,
            stamp=held.stamp + k * SECOND // 100,
            q=held.q + 1e-5 * rng.standard_normal(len(held.q)),
            dq=None if held.dq is None else 0.0 * held.dq,
        )
        for k in range(n)
    ]
    after = [dataclasses.replace(m, stamp=m.stamp + later) for m in stream[300:]]
    sampler = SampleFilter(model, FilterConfig())
    samples = list(sampler.filter_recording([*stream[:300], *still, *after]))
    assert sampler.dropped[AT_ONCE] == 2
    late = 0 if velocity else 10  # in motion, without velocities
    assert sampler.dropped[UNSETTLED] == late
    # The first is of the second message.
    taught = np.array([False] * late + [s.teaches for s in samples])
    assert taught[45:298].all() and not taught[299 : 300 + n + 39].any()
    assert all(s.y is not None for s in samples[45 - late :])
    assert taught[300 + n + 45 :].all()
    whole = SampleFilter(model, FilterConfig())
    assert len(list(whole.filter_recording(stream))) == 598 - late
    assert whole.dropped == (unsettled(late) if late else {})


@pytest.mark.parametrize("velocity", [True, False])
def test_rest_is_measured_but_teaches_nothing(velocity: bool) -> None:
    model = small_arm()
    stream = resting(list(measurements(model, 5.0, velocity=velocity)), 12.0)
    sampler, every = (
        SampleFilter(model, FilterConfig(rest_velocity=least)) for least in (0.01, 0.0)
    )
    samples = list(sampler.filter_recording(stream))
    still = [s for s in samples if abs(s.dq).max() < 0.01]
    assert still == samples[: len(still)]
    assert 1190 <= len(still) <= 1215
    assert all(s.y is not None and not s.teaches for s in still)
    assert sampler.dropped == {STANDING: len(still), AT_ONCE: 1}
    # It sets off at once, which is forgotten for two periods of the cut-off.
    forgotten = [s for s in samples[len(still) :] if not s.informative]
    assert 20 < len(forgotten) <= 42
    assert sum(not s.informative for s in every.filter_recording(stream)) <= 42


def test_a_rest_at_the_start_leaves_the_models_as_they_would_be() -> None:
    model = small_arm()
    t = np.arange(1500) / 100.0
    fade = np.exp(-t)[:, None]  # it sets off gently
    q, dq, ddq = motion(model, t - (1.0 - fade[:, 0]))
    dq, ddq = dq * (1.0 - fade), ddq * (1.0 - fade) ** 2 + dq * fade
    y = model.regressors(q, dq, ddq) @ model.prior + np.sin(3.0 * q[:, :1]) * np.cos(q[:, 1:2])
    stamps = 400 * SECOND + np.arange(len(t)) * SECOND // 100
    stream = list(map(Measurement, stamps.tolist(), q, dq, y))
    config = from_flat(InverseDynamicsConfig, {"nystrom.window": 3.0} | FEW_CENTERS)
    scores = []
    for train in (stream[:1000], resting(stream[:1000], 20.0)):
        evaluation = evaluate(model, config, [stream[1000:]], [train])
        assert evaluation.runs["frozen"].estimator.residual.n_features > 0
        frozen = evaluation.runs["frozen"].scores
        scores.append([frozen.nmse(n).mean() for n in ("rigid_body", "semiparametric")])
    np.testing.assert_allclose(scores[1], scores[0], rtol=0.05)


def test_max_rate_thins_the_samples_not_the_filter() -> None:
    model = small_arm()
    every, some = (
        SampleFilter(model, FilterConfig()),
        SampleFilter(model, FilterConfig(max_rate=10)),
    )
    all_samples, thinned = {}, []
    for m in measurements(model, 3.0):
        if (a := every.push(m)) is not None:
            all_samples[a.stamp] = a
        if (b := some.push(m)) is not None:
            thinned.append(b)
    assert np.all(np.diff([s.stamp for s in thinned]) == SECOND // 10)
    for s in thinned:
        assert np.array_equal(s.regressor, all_samples[s.stamp].regressor)


def test_joints_that_wrap_are_unwrapped() -> None:
    """One that turns without end, and one with limits whose driver wraps all the same."""
    text = URDF.read_text(encoding="utf-8").replace('lower="-2" upper="2"', 'lower="-9" upper="9"')
    model = RobotModel(text)
    t = np.arange(1000) / 100.0
    q, dq, ddq = motion(model, t)
    q[:, 0] += 3.0 * t  # some four turns
    q[:, 3] += 3.0
    dq[:, 0] += 3.0
    y = model.regressors(q, dq, ddq) @ model.prior
    wrapped = q.copy()
    for j in (0, 3):
        wrapped[:, j] = (q[:, j] + np.pi) % (2.0 * np.pi) - np.pi
    stamps = SECOND + np.arange(len(t)) * SECOND // 100
    whole, turned = SampleFilter(model, FilterConfig()), SampleFilter(model, FilterConfig())
    assert np.ptp(wrapped[:, 3]) > 6.0 and np.ptp(wrapped[:, 0]) > 6.0
    streams = [
        [
            Measurement(int(s), *row)
            for s, *row in zip(stamps, angles, [None] * len(t), y, strict=True)
        ]
        for angles in (q, wrapped)
    ]
    wanted, got = (
        list(whole.filter_recording(streams[0])),
        list(turned.filter_recording(streams[1])),
    )
    assert len(got) == len(wanted) == 988 and turned.dropped == unsettled(10)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(np.sin(a.q), np.sin(b.q), atol=1e-9)
        np.testing.assert_allclose(a.ddq, b.ddq, atol=1e-6)
        np.testing.assert_allclose(a.regressor, b.regressor, atol=1e-5)


def test_a_position_a_turn_beyond_its_limits_is_where_it_is_within_them() -> None:
    model = small_arm()
    (sliding,) = np.flatnonzero(model.sliding)
    stream = list(measurements(model, 6.0))
    low, high = model.position_limits
    (bounded,) = [j for j in range(model.n_joints) if high[j] - low[j] < 5.0 and j != sliding][-1:]
    turned = []
    for k, m in enumerate(stream):
        q = m.q.copy()
        assert low[bounded] <= q[bounded] <= high[bounded]
        # Counted from anywhere, a gap of the filter included.
        q[bounded] += 2.0 * np.pi * (k % 400 < 150) - 2.0 * np.pi * (k >= 500)
        turned.append(dataclasses.replace(m, q=q))
    whole, wrapped = SampleFilter(model, FilterConfig()), SampleFilter(model, FilterConfig())
    wanted, got = list(whole.filter_recording(stream)), list(wrapped.filter_recording(turned))
    assert not wrapped.dropped and len(got) == len(wanted) > 500
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a.q, b.q, atol=1e-9)
        np.testing.assert_allclose(a.ddq, b.ddq, atol=1e-6)
    # But not one that slides.
    q = stream[-1].q + 2.0 * np.pi * (np.arange(len(low)) == sliding)
    wrapped.push(dataclasses.replace(stream[-1], q=q, stamp=stream[-1].stamp + 1))
    assert wrapped.dropped[IMPLAUSIBLE] == 1


@pytest.mark.parametrize("speed", [4.0, 30.0])
def test_a_joint_that_turns_beyond_its_limits_is_no_joint_in_degrees(speed: float) -> None:
    text = URDF.read_text(encoding="utf-8").replace(
        'lower="-2" upper="2"', 'lower="-6.2832" upper="6.2832"'
    )
    model = RobotModel(text)
    sampler = SampleFilter(model, FilterConfig())
    t, q = np.arange(1000) / 100.0, np.zeros(model.n_joints)
    stream = [
        Measurement(SECOND + k * SECOND // 100, q + np.eye(4)[3] * speed * now, None, q)
        for k, now in enumerate(t)
    ]
    samples = list(sampler.filter_recording(stream))
    if speed < 10.0:
        assert len(samples) == 988 and sampler.dropped == unsettled(10)
    else:
        assert len(samples) < 20 and sampler.dropped.total() > 980


def unsettled(count: int) -> dict[str, int]:
    """Counts after `count` samples that are not predicted, after starts in motion.

    The narrow low-pass takes three times as long as the wide one.
    """
    return {UNSETTLED: count, AFTER_GAP: 3 * count}


def test_a_velocity_that_no_motor_reaches_is_none() -> None:
    model, stream = small_arm(), list(measurements(small_arm(), 6.0))
    wrong, missing = ([*stream] for _ in "ab")
    wrong[300] = changed(stream[300], dq=50.0)
    missing[300] = dataclasses.replace(stream[300], dq=None)
    got, wanted = (SampleFilter(model, FilterConfig()) for _ in range(2))
    equal(list(got.filter_recording(wrong)), list(wanted.filter_recording(missing)))
    assert got.dropped == {REASONS["fast"]: 1} and not wanted.dropped
    assert all(s.teaches for s in list(SampleFilter(model, FilterConfig()).filter_recording(wrong)))


def changed(m: Measurement, q: float = 0.0, blank: bool = False, dq: float = 0.0) -> Measurement:
    if blank:
        return Measurement(m.stamp, 0.0 * m.q, m.dq if m.dq is None else 0.0 * m.dq, 0.0 * m.q)
    more = m.dq if m.dq is None else m.dq + dq
    return dataclasses.replace(m, q=m.q + q * np.eye(len(m.q))[0], dq=more)


@pytest.mark.parametrize("velocity", [True, False])
@pytest.mark.parametrize("wrong", [{"q": 1.0}, {"blank": True}])
@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_wrong_messages_are_as_if_they_were_missing(
    count: int, wrong: dict[str, float], velocity: bool
) -> None:
    stream = list(measurements(small_arm(), 6.0, velocity=velocity))
    without, one = (SampleFilter(small_arm(), FilterConfig()) for _ in range(2))
    end = 300 + count
    wanted = list(without.filter_recording([*stream[:300], *stream[end:]]))
    stream[300:end] = [changed(m, **wrong) for m in stream[300:end]]
    equal(list(one.filter_recording(stream)), wanted)
    assert one.dropped == {REASONS["outliers"]: count} | ({} if velocity else unsettled(10))


@pytest.mark.parametrize("turns", [0, 1])
def test_a_robot_that_comes_to_rest_at_zero_is_no_message_of_zeros(turns: int) -> None:
    model, t = small_arm(), np.arange(600) / 100.0
    way = np.exp(-5.0 * t)[:, None] * [0.3, 0.2, 0.1, 0.05]
    way += 2.0 * np.pi * np.exp(-4.0 * t)[:, None] * [turns, 0, 0, 0]
    q = np.round(np.remainder(way + np.pi, 2.0 * np.pi) - np.pi, 4)  # in steps, as an encoder's
    assert not q[-100:].any()
    stream = [
        Measurement(SECOND + k * SECOND // 100, row, None, np.sin([now, 1.0, 2.0, 3.0]))
        for k, (now, row) in enumerate(zip(t, q, strict=True))
    ]
    sampler = SampleFilter(model, FilterConfig())
    assert len(list(sampler.filter_recording(stream))) == 588
    assert REASONS["outliers"] not in sampler.dropped and REASONS["jumps"] not in sampler.dropped


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.parametrize("name", ["q", "dq", "y"])
def test_what_is_no_number_is_left_out(name: str, value: float, first: bool) -> None:
    """As velocities of differences begin with; they and efforts cost their joint alone."""
    model, at = small_arm(), 0 if first else 300
    stream = list(measurements(model, 6.0))
    wrong = getattr(stream[at], name).copy()
    wrong[0] = value
    other = [*stream[:at], *stream[at + 1 :]]
    if name != "q":
        gone = np.where(np.arange(model.n_axes) > 0, wrong, np.nan)
        other.insert(at, dataclasses.replace(stream[at], **{name: gone}))
    stream[at] = dataclasses.replace(stream[at], **{name: wrong})
    got, wanted = (SampleFilter(model, FilterConfig()) for _ in range(2))
    equal(list(got.filter_recording(stream)), list(wanted.filter_recording(other)))
    assert got.dropped[REASONS["no_number"]] == (name == "q")


@pytest.mark.parametrize("value", [1.1e9, -1e300])
def test_an_effort_beyond_what_a_robot_has_is_as_good_as_none(value: float) -> None:
    model = small_arm()
    stream = list(measurements(model, 4.0))
    absurd, missing = ([dataclasses.replace(m, y=m.y.copy()) for m in stream] for _ in "ab")
    for at, axis in ((150, 0), (250, slice(None))):
        absurd[at].y[axis], missing[at].y[axis] = value, np.nan
    got, wanted = (SampleFilter(model, FilterConfig(), fast=True) for _ in range(2))
    equal(list(got.filter_recording(absurd)), list(wanted.filter_recording(missing)))
    assert got.dropped == wanted.dropped and got.dropped[REASONS["lacking"]] == 1
    assert got.dropped[PARTIAL] > 0


@pytest.mark.parametrize("sizes", [(3, 3, 3), (5, 5, 5), (4, 4, 6), (5, 3, 4)])
def test_arrays_of_another_robot_are_refused(sizes: tuple[int, int, int]) -> None:
    told = r"4 positions, 4 velocities and 4 .* not {}, {}, {}$".format(*sizes)
    with pytest.raises(SampleError, match=told):
        SampleFilter(small_arm(), FilterConfig()).push(Measurement(1, *map(np.zeros, sizes)))


def test_what_is_no_measurement_is_refused_and_changes_nothing() -> None:
    model = small_arm()
    stream = list(measurements(model, 1.0))
    sampler, plain = (SampleFilter(model, FilterConfig()) for _ in range(2))
    zeros, flat = np.zeros(4), np.zeros((4, 2))
    wrong: list[tuple[Any, ...]] = [
        (1, None, zeros, zeros),
        (1, 0.0, zeros, zeros),
        (1, zeros + 1j, zeros, zeros),
        (1, np.full(4, "far"), zeros, zeros),
        (1, flat, zeros, zeros),
        (1, flat, flat, flat),
        (10**30, zeros, zeros, zeros),
        ("now", zeros, zeros, zeros),
        (None, zeros, zeros, zeros),
        (math.nan, zeros, zeros, zeros),
    ]
    for m in stream:
        found, wanted = sampler.push(m), plain.push(m)
        if found is not None and wanted is not None:
            np.testing.assert_array_equal(found.regressor, wanted.regressor)
        for parts in wrong:
            with pytest.raises(SampleError):
                sampler.push(Measurement(*parts))
    assert sampler.dropped == plain.dropped == {}
    assert found is not None


@pytest.mark.parametrize("unit", [1e3, 1e6])
def test_stamps_of_another_unit_are_told(unit: float) -> None:
    model = small_arm()
    stream = list(measurements(model, 1.0, start=0))
    sampler = SampleFilter(model, FilterConfig())
    for m in stream:
        sampler.push(dataclasses.replace(m, stamp=round(m.stamp / SECOND * unit)))
    assert sampler.dropped[WRONG_UNIT] == len(stream) - 1
    right = SampleFilter(model, FilterConfig())
    burst = [m.stamp + (30_000 - SECOND // 100) * (k % 3 == 2) for k, m in enumerate(stream)]
    for m, stamp in zip(stream, burst, strict=True):  # every third message right after another
        right.push(dataclasses.replace(m, stamp=stamp))
    assert right.dropped[WRONG_UNIT] == 0


def test_a_stamp_of_seconds_is_refused_and_a_product_s_rounding_is_not() -> None:
    model = small_arm()
    stream = list(measurements(model, 1.0))
    sampler = SampleFilter(model, FilterConfig())
    with pytest.raises(SampleError, match=r"12\.5 has a fraction: .* round\(1e9 \* t\)"):
        sampler.push(dataclasses.replace(stream[0], stamp=12.5))
    assert any(1e9 * (1.0 + 0.01 * k) % 1.0 for k in range(len(stream)))
    for k, m in enumerate(stream):
        sampler.push(dataclasses.replace(m, stamp=1e9 * (1.0 + 0.01 * k)))
    assert sampler.dropped == {}


def test_whole_numbers_are_filtered_as_numbers() -> None:
    model = small_arm()
    rows = [(SECOND + k * SECOND // 10, [k, 0, 0, 0], [1, 0, 0, 0], [5, 6, k, 8]) for k in range(9)]
    whole, plain = [
        SampleFilter(model, FilterConfig()).filter_recording(
            [
                Measurement(stamp, *(np.array(part, dtype=kind) for part in rest))
                for stamp, *rest in rows
            ]
        )
        for kind in (np.int64, np.float64)
    ]
    equal(list(whole), list(plain))


@pytest.mark.parametrize("velocity", [True, False])
@pytest.mark.parametrize("what", ["positions jump and stay", "the clock goes back a little"])
def test_filters_start_anew_in_motion_where(what: str, velocity: bool) -> None:
    stream = list(measurements(small_arm(), 6.0, velocity=velocity))
    if what.startswith("positions"):
        stream[300:] = [changed(m, q=1.0) for m in stream[300:]]
        expected = {REASONS["outliers"]: (lost := 2), REASONS["jumps"]: 1}
    else:
        stream[300:] = [dataclasses.replace(m, stamp=m.stamp - SECOND // 5) for m in stream[300:]]
        expected = {REASONS["late"]: (lost := 2), REASONS["clock"]: 1}
    fresh, one = (SampleFilter(small_arm(), FilterConfig()) for _ in range(2))
    late = 0 if velocity else 10
    got, wanted = list(one.filter_recording(stream)), fresh.filter_recording(stream[300 + lost :])
    equal(got[298 - late :], list(wanted))
    assert velocity == (got[300 - late].y is not None)
    expected |= {REASONS["in_motion"]: 1} if velocity else unsettled(2 * late)
    assert one.dropped == expected


@pytest.mark.parametrize("velocity", [True, False])
@pytest.mark.parametrize("back", [0.0, 100.0])
def test_a_start_of_the_filters_in_motion_is_forgotten_before_learning_goes_on(
    velocity: bool, back: float
) -> None:
    model = small_arm()
    stream = list(measurements(model, 6.0, velocity=velocity))
    later = [
        dataclasses.replace(m, stamp=m.stamp - round(back * SECOND)) for m in stream[360:]
    ]  # 0.6 s are missing, or the clock goes back
    sampler = SampleFilter(model, FilterConfig())
    samples = list(sampler.filter_recording([*stream[:300], *later]))
    learned = [s for s in samples[100:] if s.teaches]  # without the first start
    off = [np.abs(s.y - s.regressor @ model.prior).max() for s in learned]
    assert max(off) < 3.0 * max(off[:150])
    started = later[0].stamp
    gone = [
        s.stamp
        for s in samples
        if s.stamp >= started and not s.teaches and s.stamp < started + SECOND
    ]
    assert len(gone) / 100.0 == pytest.approx(0.4 if velocity else 0.3, abs=0.02)


@pytest.mark.parametrize("velocity", [True, False])
def test_readings_repeated_in_motion_are_left_out_and_at_rest_are_not(velocity: bool) -> None:
    model = small_arm()
    stream = list(measurements(model, 6.0, velocity=velocity))
    doubled = [
        dataclasses.replace(m, stamp=m.stamp + late) for m in stream for late in (0, 3_000_000)
    ]
    doubled = [*doubled[:1], *doubled[2:]]
    once, twice = (SampleFilter(model, FilterConfig()) for _ in range(2))
    wanted = list(once.filter_recording(stream))
    got = list(twice.filter_recording(doubled))
    given = len(got) + twice.dropped[UNSETTLED] - len(wanted) - once.dropped[UNSETTLED]
    assert given + twice.dropped[REASONS["repeats"]] == len(stream) - 1
    assert twice.dropped[REASONS["repeats"]] > 0.98 * len(stream)
    # A reading that never changes again is a robot that stands, after a pause at the latest.
    held = [dataclasses.replace(stream[300], stamp=m.stamp) for m in stream[301:]]
    frozen = SampleFilter(model, FilterConfig(max_gap=0.2))
    samples = list(frozen.filter_recording([*stream[:301], *held]))
    assert frozen.dropped[REASONS["repeats"]] >= 20
    if velocity:  # the driver says that it moves
        assert len(samples) < 310
        return
    still = [s for s in samples if not s.informative]
    assert len(still) > 250 and all(s.stamp > stream[300].stamp for s in still)
    assert np.abs(samples[-1].dq).max() < 1e-9


def test_a_long_gap_is_forgotten_before_learning_goes_on() -> None:
    stream = list(measurements(small_arm(), 6.0))
    for lost in (4, 5, 30):  # a quarter of the cut-off's period is 50 ms
        sampler = SampleFilter(small_arm(), FilterConfig(cutoff=5.0))
        samples = list(sampler.filter_recording([*stream[:300], *stream[300 + lost :]]))
        gone = [s.stamp for s in samples if s.y is None]
        if lost == 4:
            assert not gone and not sampler.dropped
            continue
        assert gone[0] == stream[300 + lost].stamp
        assert (gone[-1] - gone[0]) / SECOND == pytest.approx(0.4, abs=0.011)
        assert sampler.dropped == {REASONS["gaps"]: 1, AFTER_GAP: 41}  # no effort is missing
    # At a low rate all steps are long, and none is a gap.
    slow = SampleFilter(small_arm(), FilterConfig(cutoff=5.0))
    assert all(s.y is not None for s in slow.filter_recording(stream[::15]))


def test_degrees_are_noticed_and_nothing_is_made_of_them() -> None:
    model = small_arm()
    low, high = model.position_limits
    limited = int(np.flatnonzero(np.isfinite(high))[0])
    sampler = SampleFilter(model, FilterConfig())
    for m in measurements(model, 0.5):
        q = m.q.copy()
        q[limited] = 57.3
        assert sampler.push(Measurement(m.stamp, q, m.dq, m.y)) is None
    assert sum(sampler.dropped.values()) == 50
    assert "degrees" in next(iter(sampler.dropped))
    assert low[limited] < high[limited]


@pytest.mark.parametrize("moving", [False, True])
def test_a_start_in_the_middle_of_motion_is_not_learned_before_the_filters_know_it(
    moving: bool,
) -> None:
    """Filters begin at rest, so that differences of positions would show a jerk at first."""
    model = small_arm()
    sampler = SampleFilter(model, FilterConfig(cutoff=10.0))
    recorded = list(measurements(model, 2.0, 500.0, velocity=False))
    if not moving:
        rest = recorded[0]
        recorded = [dataclasses.replace(m, q=rest.q, y=rest.y) for m in recorded]
    samples = [s for s in map(sampler.push, recorded) if s is not None]
    first = next(s for s in samples if s.y is not None)
    waited = (first.stamp - recorded[0].stamp) / SECOND
    assert waited == pytest.approx(0.2 if moving else 0.0, abs=0.01)
    # What is predicted before knows the motion, but the narrow low-pass not yet its noise.
    waited = (samples[0].stamp - recorded[0].stamp) / SECOND
    assert waited == pytest.approx(0.05 if moving else 0.0, abs=0.005)
    assert sampler.dropped[UNSETTLED] == 25 * moving
    measured = {m.stamp: m.y for m in recorded if m.y is not None}
    errors = [abs(measured[s.stamp] - s.regressor @ model.prior).max() for s in samples]
    assert max(errors[:75]) < 0.2 * max(abs(y).max() for y in measured.values())
    errors = [abs(s.y - s.regressor @ model.prior).max() for s in samples if s.y is not None]
    assert max(errors) < 0.05 * max(abs(m.y).max() for m in recorded if m.y is not None)


@pytest.mark.parametrize("again", ["played again", "reset"])
def test_a_start_at_an_earlier_time_is_as_one_of_a_fresh_filter(again: str) -> None:
    """However far ahead the stamps were at which the one before began to move."""
    model = small_arm()
    moving = list(measurements(model, 3.0, velocity=False))
    rest = [dataclasses.replace(m, q=moving[0].q) for m in moving[:9]]
    late = [dataclasses.replace(m, stamp=m.stamp + 9 * SECOND // 100) for m in moving]
    for begins in (moving, [*rest, *late]):  # in motion, and at rest, from which it begins at once
        ahead = [dataclasses.replace(m, stamp=m.stamp + 60 * SECOND) for m in moving]
        ahead[-1] = dataclasses.replace(ahead[-1], y=None)
        fresh, sampler = (SampleFilter(model, FilterConfig()) for _ in range(2))
        wanted = [s for s in map(fresh.push, begins) if s is not None]
        for m in ahead:
            sampler.push(m)
        if again == "reset":
            sampler.reset()
        before = sampler.dropped[UNSETTLED]
        equal([s for s in map(sampler.push, begins) if s is not None], wanted)
        assert sampler.dropped[UNSETTLED] - before == fresh.dropped[UNSETTLED] > 0


def test_the_narrow_low_pass_begins_anew_after_what_is_left_out() -> None:
    """A robot that begins to move within the first 0.1 s."""
    model = small_arm()
    moving = list(measurements(model, 3.0, velocity=False))
    at = [dataclasses.replace(m, q=moving[0].q) for m in moving[:5]]
    stream = [*at, *(dataclasses.replace(m, stamp=m.stamp + SECOND // 20) for m in moving)]
    sampler = SampleFilter(model, FilterConfig())
    samples = list(sampler.filter_recording(stream))
    after = next(k for k, s in enumerate(samples) if s.stamp > stream[6].stamp)
    # In equilibrium, as at any start: behind the wide low-pass alone.
    beside = SampleFilter(model, FilterConfig(), fast=True)
    fast = [s.fast for s in beside.filter_recording(stream)]
    np.testing.assert_array_equal(samples[after].ddq, fast[after].ddq)
    assert np.abs(samples[after].ddq).max() > 0.5


@pytest.mark.parametrize(("rate", "times"), [(100.0, 2), (200.0, 3), (500.0, 4)])
def test_positions_that_are_read_less_often_than_messages_come_are_learned(
    rate: float, times: int
) -> None:
    """No robot stops and goes on at once: its encoders are read less often than efforts are."""
    model = small_arm()
    recorded = list(measurements(model, 10.0, rate, velocity=False))
    held = [dataclasses.replace(m, q=recorded[k - (k % times)].q) for k, m in enumerate(recorded)]
    sampler = SampleFilter(model, FilterConfig())
    samples = list(sampler.filter_recording(held))
    assert len(samples) > 0.98 * len(recorded)
    assert sampler.dropped[AT_ONCE] <= 3
    plain = list(SampleFilter(model, FilterConfig()).filter_recording(recorded))
    assert sum(s.teaches for s in samples) > 0.9 * sum(s.teaches for s in plain)
    errors = [abs(s.y - s.regressor @ model.prior).max() for s in samples if s.y is not None]
    assert max(errors[100:]) < 0.05 * max(abs(m.y).max() for m in recorded if m.y is not None)
    # A stop that lasts is one none the less.
    stand = [dataclasses.replace(held[-1], stamp=m.stamp + 10 * SECOND) for m in recorded[:200]]
    count = sampler.dropped[AT_ONCE]
    after = list(sampler.filter_recording(stand))
    assert sampler.dropped[AT_ONCE] == count + 1
    assert not any(s.teaches for s in after[times + 1 : round(0.4 * rate)])


AT_ONCE = "motion that began or ended at once, which the filters have to forget"
IMPLAUSIBLE = "position far outside the URDF's limits (degrees instead of radians?)"


def jittered(stream: list[Measurement]) -> list[Measurement]:
    delays = np.random.default_rng(0).integers(0, 3_000_000, len(stream))
    return [
        dataclasses.replace(m, stamp=m.stamp + int(late))
        for m, late in zip(stream, delays, strict=True)
    ]


def disturbed(stream: list[Measurement]) -> list[Measurement]:
    """Repeats, a pause, a clock that goes back, degrees, missing efforts and velocities."""
    stream = [*stream[:40], stream[10], *stream[39:100], *stream[170:]]
    for i in (150, 151, 400, 620):
        stream[i] = dataclasses.replace(stream[i], y=None)
    for i in (20, *range(200, 230), 700):
        stream[i] = dataclasses.replace(
            stream[i], y=np.where(np.arange(len(stream[i].y)), stream[i].y, np.nan)
        )
    for i in (300, 500, 501):
        stream[i] = dataclasses.replace(stream[i], q=stream[i].q + 500.0)
    for i in (*range(450, 470), 530):
        stream[i] = dataclasses.replace(stream[i], dq=None)
    return stream + stream[5:60]


def equal(got: Sequence[Sample | None], wanted: Sequence[Sample | None]) -> None:
    assert [s is None for s in got] == [s is None for s in wanted]
    got, wanted = ([s for s in each if s is not None] for each in (got, wanted))
    assert [s.stamp for s in got] == [s.stamp for s in wanted]
    assert [s.y is None for s in got] == [s.y is None for s in wanted]
    for name in ("q", "dq", "ddq", "regressor"):
        pairs = [(getattr(a, name), getattr(b, name)) for a, b in zip(got, wanted, strict=True)]
        assert all(a.shape == b.shape and np.array_equal(a, b) for a, b in pairs), name
    for a, b in zip(got, wanted, strict=True):
        assert a.y is None or np.array_equal(a.y, b.y, equal_nan=True)


@pytest.mark.parametrize("target", ["effort", "wrench"])
@pytest.mark.parametrize("velocity", [True, False])
@pytest.mark.parametrize("change", [list, jittered, disturbed])
def test_a_recording_equals_the_stream(target: str, velocity: bool, change: Change) -> None:
    model = small_arm(target=target, sensor_frame="boom_sensor" if target == "wrench" else "")
    stream = change(list(measurements(model, 8.0, velocity=velocity)))
    configs = [FilterConfig(max_gap=0.3)]
    if change is disturbed and velocity:
        configs += [FilterConfig(cutoff=0.0), FilterConfig(stages=3), FilterConfig(max_rate=30.0)]
    for config in configs:
        one, many = (SampleFilter(model, config) for _ in range(2))
        wanted = [s for s in map(one.push, stream) if s is not None]
        equal(list(many.filter_recording(stream)), wanted)
        assert many.dropped == one.dropped and len(wanted) > 100


def test_a_recording_continues_where_it_ended_and_message_by_message() -> None:
    model = small_arm()
    stream = jittered(list(measurements(model, 6.0)))
    one, many = (SampleFilter(model, FilterConfig()) for _ in range(2))
    wanted = [s for s in map(one.push, stream) if s is not None]
    got = [*many.filter_recording([]), *many.filter_recording(stream[:1])]
    got += list(many.filter_recording(stream[1:101]))
    got += [s for s in map(many.push, stream[101:130]) if s is not None]
    got += list(many.filter_recording(stream[130:]))
    equal(got, wanted)


@pytest.mark.parametrize(
    ("rate", "learned", "weight"),
    [(25.0, 25.0, 0.4), (50.0, 50.0, 0.2), (130.0, 130.0, 1 / 13), (1000.0, 100.0, 0.1)],
)
def test_a_second_teaches_and_weighs_the_same_at_any_rate(
    rate: float, learned: float, weight: float
) -> None:
    model = small_arm()
    sampler = SampleFilter(model, FilterConfig())
    found = list(sampler.filter_recording(list(measurements(model, 4.0, rate))))
    taught = [sample for sample in found if sample.teaches]
    assert len(found) == pytest.approx(4.0 * rate, abs=3)
    assert len(taught) == pytest.approx(4.0 * learned, abs=4)
    if learned < rate:
        assert set(np.diff([s.stamp for s in taught])) == {round(1e9 / learned)}
        assert sampler.dropped == {BETWEEN: len(found) - len(taught)}
    assert taught[0].weight == 1.0  # nothing before it says the same
    np.testing.assert_allclose([s.weight for s in taught[1:]], weight, rtol=1e-6)
    assert sum(s.weight for s in taught) == pytest.approx(40.0, abs=2.0)
    free = SampleFilter(model, FilterConfig(cutoff=0.0))
    assert all(s.weight == 1.0 for s in free.filter_recording(list(measurements(model, 1.0, rate))))


def test_stops_follow_the_filtered_positions_and_pass_the_low_pass() -> None:
    """Without a cut-off the stop of the instant before; with one the low-pass of its column."""
    model = small_arm(presliding=(0.02,))
    recording = list(measurements(model, 4.0))
    unfiltered = list(SampleFilter(model, FilterConfig(cutoff=0.0)).filter_recording(recording))
    columns = [model.labels.index(f"presliding_0.02 {name}") for name in model.joint_names]
    found = np.array([np.diagonal(s.regressor[:, columns]) for s in unfiltered])
    memory = FrictionMemory(model)
    expected = np.array([memory.advance(m.q) for m in recording[:-1]])[1:]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.all(np.abs(expected).max(axis=0) == 1.0) and np.any(np.abs(expected) < 0.5)
    # After a pause friction is unknown: the stops begin anew.
    one = SampleFilter(model, FilterConfig(cutoff=0.0))
    list(one.filter_recording(recording))
    later = [dataclasses.replace(m, stamp=m.stamp + 60 * SECOND) for m in recording]
    again = np.array([np.diagonal(s.regressor[:, columns]) for s in one.filter_recording(later)])
    np.testing.assert_allclose(again, expected, atol=1e-12)


@pytest.mark.parametrize("stages", [1, 2])
def test_a_sample_is_the_low_passed_fast_one(stages: int) -> None:
    model, config = small_arm(), FilterConfig(stages=stages)
    fast, plain = SampleFilter(model, config, fast=True), SampleFilter(model, config)
    rng = np.random.default_rng(0)
    times = 1.0 + 0.004 * np.arange(300)
    log = [
        Measurement(round(1e9 * t), np.sin(t + np.arange(4.0)), np.cos(t + np.arange(4.0)), y)
        for t, y in zip(times, rng.normal(size=(300, 4)), strict=True)
    ]
    pushed = [(fast.push(m), plain.push(m)) for m in log]
    again = SampleFilter(model, config, fast=True).filter_recording(log)
    state = np.zeros((stages, 3, 16 + 4 * model.n_parameters))
    before = 0
    for (one, other), recorded in zip(
        [pair for pair in pushed if pair[0] is not None], again, strict=True
    ):
        assert other.fast is None
        for name in ("q", "dq", "ddq", "y", "regressor"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
            for part, same in ((one, recorded), (one.fast, recorded.fast)):
                assert np.array_equal(getattr(part, name), getattr(same, name))
        quick = one.fast
        row = np.concatenate((quick.q, quick.dq, quick.ddq, quick.y, quick.regressor.ravel()))
        step = (one.stamp - before) * 1e-9
        lowpass_part(row, 0, row.size, step, state, config.cutoff, before > 0)
        sample = np.concatenate((one.q, one.dq, one.ddq, one.y, one.regressor.ravel()))
        np.testing.assert_allclose(row, sample, rtol=1e-6, atol=1e-6)
        before = one.stamp


def test_the_lags_are_those_of_a_ramp() -> None:
    config = FilterConfig(stages=2)
    accurate, fast = config.lags
    for sample in (True, False):
        model = small_arm()
        source = SampleFilter(model, config, fast=True)
        last = None
        for k in range(2000):
            q = np.full(4, 0.02 * 0.001 * k)
            last = source.push(Measurement(10**9 + k * 10**6, q, None, q)) or last
        assert last is not None and last.fast is not None
        found = last.q if sample else last.fast.q
        behind = (last.stamp - 10**9) * 1e-9 - found / 0.02
        np.testing.assert_allclose(behind, accurate if sample else fast, atol=2e-4)
    assert FilterConfig(cutoff=0.0).lags == (0.0, 0.0)
