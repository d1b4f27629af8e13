"""Dirty messages on their way to measurements, and measurements of uneven clocks to samples."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace as Fields
from typing import Any

import numpy as np

from .table import Arrays, case, counted, measurements, moving_arm, small_arm


def disturbed(stream: list[Any]) -> list[Any]:
    """Jittered stamps, repeats, pauses, a clock that goes back, degrees, and missing values."""
    late = np.random.default_rng(0).integers(0, 3_000_000, len(stream))
    stream = [
        dataclasses.replace(m, stamp=m.stamp + int(d)) for m, d in zip(stream, late, strict=True)
    ]
    stream = [*stream[:40], stream[10], *stream[39:100], *stream[170:]]
    for i in (150, 151, 400, 600):
        stream[i] = dataclasses.replace(stream[i], y=None)
    for i in (300, 500, 501):
        stream[i] = dataclasses.replace(stream[i], q=stream[i].q + 500.0)
    for i in (*range(450, 470), 530):
        stream[i] = dataclasses.replace(stream[i], dq=None)
    return stream + stream[5:60]


@case("filter/velocities")
@case("filter/differences", velocities=False)
@case("filter/stages", stages=3)
@case("filter/max_rate", max_rate=30.0)
@case("filter/none", cutoff=0.0)
@case("filter/wrench", target="wrench")
def filtered(velocities: bool = True, target: str = "effort", **values: Any) -> Arrays:
    """Measurements of an uneven clock, filtered one by one and as a recording."""
    from semiparam_dynamics.dynamics import FilterConfig, SampleFilter

    arm = moving_arm(small_arm(), 8.0, 100.0)
    model = small_arm(target=target, sensor_frame="boom_sensor" if target == "wrench" else "")
    if target == "wrench":
        states = (arm["q"], arm["dq"], arm["ddq"])
        arm["tau"] = model.regressors(*states) @ np.linspace(0.1, 1.0, model.n_parameters)
    stream = disturbed(measurements(arm, velocities=velocities))
    config = FilterConfig(max_gap=0.3, **values)
    found: Arrays = {}
    for name in ("live", "recording"):
        sampler = SampleFilter(model, config)
        if name == "live":
            samples = [s for s in map(sampler.push, stream) if s is not None]
        else:
            samples = list(sampler.filter_recording(stream))
        nothing = np.full(model.n_axes, np.nan)
        found |= {
            f"{name}/{key}": np.array([getattr(s, key) for s in samples], dtype=float)
            for key in ("stamp", "q", "dq", "ddq", "regressor")
        }
        found[f"{name}/y"] = np.array([nothing if s.y is None else s.y for s in samples])
        found |= counted(sampler.dropped, f"{name}/dropped")
    return found


def header(stamp: int, frame: str = "") -> Fields:
    """A message's header."""
    sec, nanosec = divmod(stamp, 1_000_000_000)
    return Fields(stamp=Fields(sec=sec, nanosec=nanosec), frame_id=frame)


def joint_state(stamp: int, names: Any, q: Any, dq: Any = (), effort: Any = ()) -> Fields:
    """A message as rclpy and rosbags give them."""
    values = {"position": list(q), "velocity": list(dq), "effort": list(effort)}
    return Fields(header=header(stamp), name=list(names), **values)


def wrench_message(stamp: int, values: Any, frame: str = "sensor") -> Fields:
    """The same of a wrench."""
    force, torque = (Fields(**dict(zip("xyz", v, strict=True))) for v in (values[:3], values[3:]))
    return Fields(header=header(stamp, frame), wrench=Fields(force=force, torque=torque))


def taken(stream: Any, released: list[Any]) -> Arrays:
    """The measurements that came of messages, and what became of the others."""
    found: Arrays = {"stamp": np.array([m.stamp for m in released], dtype=float)}
    n = len(released[0].q)
    for key in ("q", "dq", "y"):
        rows = [getattr(m, key) for m in released]
        width = next((len(row) for row in rows if row is not None), n)
        rows = [np.full(width, np.nan) if row is None else row for row in rows]
        found[key] = np.array(rows, dtype=float)
    return found | counted(stream.dropped) | counted(stream.received, "received")


def soil(k: int, message: Any, stamp: int) -> None:
    """Make one thing wrong with the message of this number, or nothing."""
    if k == 30:
        message.position[0] = float("nan")
    elif k == 31:
        message.effort[0] = float("inf")
    elif k == 32:
        message.velocity[0] = float("nan")
    elif k == 33:
        message.name.pop()
    elif k == 34:
        message.effort.clear()
    elif k == 35:
        message.position.pop()
    elif k in (36, 37):
        message.header = header(stamp - (66 - k) * 1_000_000)
    elif k == 38:
        message.header = header(0)
    elif k == 39:
        message.position[1] = 1e12
    elif k == 40:
        message.name = ["a", "a", "b"]
    elif k == 41:
        message.position = None
    elif k == 42:
        message.effort[2] = 45.0
    elif k == 43:
        for values in (message.name, message.position, message.velocity, message.effort):
            values.reverse()
    elif k == 44:
        message.header = header(stamp - 10_000_000)


@case("messages/effort")
def effort_messages() -> Arrays:
    """Joint states of every kind of dirt."""
    from semiparam_dynamics.samples import MeasurementStream, StreamConfig

    names = ("a", "b", "c")
    config = StreamConfig(stuck_after=0.3, saturation=(40.0,))
    stream = MeasurementStream(names, "effort", config)
    rng = np.random.default_rng(3)
    released = []
    stamp = 1_000_000_000
    for k in range(600):
        stamp += 10_000_000
        q, dq = np.sin(0.02 * k + np.arange(3.0)), 2.0 * np.cos(0.02 * k + np.arange(3.0))
        if k < 20:
            dq = 0.0 * dq  # as of a driver that does not fill velocities
        effort = 5.0 * q + rng.standard_normal(3)
        if 300 <= k < 380:
            effort[1] = 3.25  # sticks
        if 400 <= k < 450:
            q[2] = 0.125  # a position that sticks
        message = joint_state(stamp, names, q, dq, effort)
        soil(k, message, stamp)
        if k == 500:
            stamp -= 3_000_000_000  # the clock goes back
            message.header = header(stamp)
        released += stream.joint_state(message)
    return taken(stream, released + stream.flush())


@case("messages/wrench")
def wrench_messages() -> Arrays:
    """Two topics at two rates, that run ahead of each other, pause and go back."""
    from semiparam_dynamics.samples import MeasurementStream, StreamConfig

    config = StreamConfig(stuck_after=0.3, saturation=(30.0,) * 3 + (5.0,) * 3)
    stream = MeasurementStream(("a", "b"), "wrench", config, wrench_frame="sensor")
    rng = np.random.default_rng(4)
    released, events = [], []
    for k in range(500):
        stamp = 1_000_000_000 + k * 10_000_000 + int(rng.integers(0, 2_000_000))
        q = np.sin(0.02 * k + np.arange(2.0))
        events.append((stamp, joint_state(stamp, ("a", "b"), q, np.cos(q))))
    for k in range(700):
        stamp = 1_000_000_000 + k * 7_000_000 + int(rng.integers(0, 2_000_000))
        if 200 <= k < 240:
            continue  # a pause
        values = np.concatenate((10.0 * rng.standard_normal(3), rng.standard_normal(3)))
        values[:] = 1.5 if 400 <= k < 470 else values  # sticks
        frame = {50: "elsewhere", 51: "", 52: "/sensor"}.get(k, "sensor")
        values[0] = {60: np.nan, 61: 1e12, 62: 35.0}.get(k, values[0])
        late = 150_000_000 if 300 <= k < 330 else 0
        events.append((stamp + late, wrench_message(stamp, values.tolist(), frame)))
    for _, message in sorted(events, key=lambda event: event[0]):
        take = stream.joint_state if hasattr(message, "name") else stream.wrench
        released += take(message)
    return taken(stream, released + stream.flush())
