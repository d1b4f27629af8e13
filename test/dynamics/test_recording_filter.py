"""A recording filtered in blocks is the stream filtered message by message, to the last bit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from semiparam_dynamics.dynamics.filtering import FilterConfig, RecordingFilter, SampleFilter
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement

from .arms import measurements, small_arm

Change = Callable[[list[Measurement]], list[Measurement]]


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
    for i in (300, 500, 501):
        stream[i] = dataclasses.replace(stream[i], q=stream[i].q + 500.0)
    for i in (*range(450, 470), 530):
        stream[i] = dataclasses.replace(stream[i], dq=None)
    return stream + stream[5:60]


def equal(got: list[Sample], wanted: list[Sample]) -> None:
    assert [s.stamp for s in got] == [s.stamp for s in wanted]
    assert [s.y is None for s in got] == [s.y is None for s in wanted]
    for name in ("q", "dq", "ddq", "regressor"):
        pairs = [(getattr(a, name), getattr(b, name)) for a, b in zip(got, wanted, strict=True)]
        assert all(a.shape == b.shape and np.array_equal(a, b) for a, b in pairs), name
    for a, b in zip(got, wanted, strict=True):
        assert a.y is None or np.array_equal(a.y, b.y)


def both(
    model: RobotModel, config: FilterConfig, stream: list[Measurement]
) -> tuple[RecordingFilter, list[Sample], list[Sample]]:
    one, many = SampleFilter(model, config), RecordingFilter(model, config)
    wanted = [s for s in map(one.push, stream) if s is not None]
    got = list(many.filter_recording(stream))
    assert many.dropped == one.dropped
    return many, got, wanted


@pytest.mark.parametrize("target", ["effort", "wrench"])
@pytest.mark.parametrize("velocity", [True, False])
@pytest.mark.parametrize("change", [list, jittered, disturbed])
def test_equals_the_stream(target: str, velocity: bool, change: Change) -> None:
    model = small_arm(target=target, sensor_frame="boom_sensor" if target == "wrench" else "")
    stream = change(list(measurements(model, 8.0, velocity=velocity)))
    _, got, wanted = both(model, FilterConfig(max_gap=0.3), stream)
    assert len(wanted) > 500
    equal(got, wanted)


@pytest.mark.parametrize(
    "config",
    [FilterConfig(cutoff=0.0), FilterConfig(stages=3), FilterConfig(max_rate=30.0)],
)
def test_equals_the_stream_with_other_filters(config: FilterConfig) -> None:
    model = small_arm()
    _, got, wanted = both(model, config, disturbed(list(measurements(model, 8.0))))
    equal(got, wanted)


def test_goes_on_where_it_ended_and_message_by_message() -> None:
    model = small_arm()
    stream = jittered(list(measurements(model, 6.0)))
    one, many = (kind(model, FilterConfig()) for kind in (SampleFilter, RecordingFilter))
    wanted = [s for s in map(one.push, stream) if s is not None]
    got = list(many.filter_recording(stream[:1]))
    got += list(many.filter_recording(stream[1:101]))
    got += [s for s in map(many.push, stream[101:130]) if s is not None]
    got += list(many.filter_recording(stream[130:]))
    equal(got, wanted)


def test_nothing_comes_of_nothing() -> None:
    model = small_arm()
    sampler = RecordingFilter(model, FilterConfig())
    assert list(sampler.filter_recording([])) == []
    assert list(sampler.filter_recording(list(measurements(model, 0.02)))) == []
