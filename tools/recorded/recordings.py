"""Whole recordings: bags and logs under all protocols, filters, and the checks of messages."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import tempfile
from pathlib import Path
from types import SimpleNamespace as Fields
from typing import Any

import numpy as np

from .live import SETTINGS, config_of, follow, xmate
from .table import Arrays, case, counted, data, log, measurements, moving_arm, numbers, small_arm

NOT_COMPARED = ("timing_us", "version", "parameters")  # of results.json


def semiparam(*arguments: Any) -> str:
    """Run a verb of the command line; its output, which must not be an error's."""
    from semiparam_dynamics.cli.main import main

    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = main([str(argument) for argument in arguments])
    if code:
        raise RuntimeError(f"semiparam {arguments[0]} ended with {code}: {error.getvalue()[-500:]}")
    return out.getvalue()


def bag_of(name: str, rows: slice, folder: Path, urdf: str) -> Path:
    """A bag with some rows of a log."""
    arrays = log(name, rows)
    short, bag = folder / f"{name.replace('/', '_')}.npz", folder / name.replace("/", "_")
    np.savez(short, **arrays)
    semiparam("convert", short, bag, "--urdf", data(f"robots/{urdf}"))
    return bag


def results(folder: Path) -> Arrays:
    """The numbers of an evaluation's results.json."""
    return numbers(json.loads((folder / "results.json").read_text()), without=NOT_COMPARED)


@case("recordings/nystrom/ur10_many_centers", nystrom__max_centers=500, nystrom__window=5.0)
@case(
    "recordings/random_fourier/ur10_many_features",
    residual="random_fourier",
    random_fourier__n_features=500,
)
@case("recordings/nystrom/ur10", residual="nystrom")
@case("recordings/random_fourier/ur10", residual="random_fourier")
def ur10(**values: Any) -> Arrays:
    """The first third of the UR10's bag, its last 40 % frozen; and the bag's messages."""
    from semiparam_dynamics.dynamics import RobotModel
    from semiparam_dynamics.evaluation.experiment import evaluate
    from semiparam_dynamics.samples import read_measurements

    config = config_of(filter__cutoff=8.0, **values)
    model = RobotModel(data("robots/ur10/ur10_robot.urdf"), config.robot)
    recording = read_measurements(
        data("robots/ur10/ur10_exciting_trajectory.db3"), model.joint_names
    )
    evaluation = evaluate(model, config, [recording.measurements[:1200]])
    read = counted(recording.dropped) | counted(recording.received, "received")
    of_bag = {f"bag/{name}": value for name, value in read.items()}
    of_bag["bag/efforts"] = np.array([m.y for m in recording.measurements[::50]])
    return numbers(evaluation.results(), without=NOT_COMPARED) | of_bag


@case("recordings/nystrom/xmate", residual="nystrom")
@case("recordings/random_fourier/xmate", residual="random_fourier")
@case("recordings/nystrom/xmate_without_comparison", residual="nystrom", comparison="false")
@case("recordings/nystrom/xmate_memory", residual="nystrom", rigid_body__memory=5.0)
@case("recordings/random_fourier/xmate_gate", residual="random_fourier", output__gate=3.0)
def split(**values: Any) -> Arrays:
    """Learned on one of the xMate's motions and scored on another, by the command line."""
    urdf = "xmate7p/xmate7p.urdf"
    values |= {"coulomb_velocity": 0.005, "filter__stages": 2}
    options = [f"--set={name.replace('__', '.')}={value}" for name, value in values.items()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train = bag_of("xmate7p/trajectory_1", slice(0, 700), folder, urdf)
        test = bag_of("xmate7p/trajectory_3", slice(0, 500), folder, urdf)
        semiparam("evaluate", test, "--train", train, "--out", folder / "out", *small(), *options)
        return results(folder / "out")


def small() -> list[str]:
    """The cases' small numbers of features, as options."""
    return [f"--set={name}={value}" for name, value in SETTINGS.items()]


@case("recordings/nystrom/wrench", residual="nystrom")
@case("recordings/random_fourier/wrench", residual="random_fourier")
def wrench(**values: Any) -> Arrays:
    """The wrench at the Panda's wrist."""
    from semiparam_dynamics.dynamics import RobotModel
    from semiparam_dynamics.evaluation.experiment import evaluate

    config = config_of(target="wrench", sensor_frame="sensor", **values)
    model = RobotModel(data("robots/panda_wrist/panda_wrist.urdf"), config.robot)
    stream = measurements(log("panda_wrist/am2", slice(0, 1500)), "wrench")
    return numbers(evaluate(model, config, [stream]).results(), without=NOT_COMPARED)


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
    from semiparam_dynamics.dynamics.recording_filter import RecordingFilter

    arm = moving_arm(small_arm(), 8.0, 100.0)
    model = small_arm(target=target, sensor_frame="boom_sensor" if target == "wrench" else "")
    if target == "wrench":
        states = (arm["q"], arm["dq"], arm["ddq"])
        arm["tau"] = model.regressors(*states) @ np.linspace(0.1, 1.0, model.n_parameters)
    stream = disturbed(measurements(arm, velocities=velocities))
    config = FilterConfig(max_gap=0.3, **values)
    found: Arrays = {}
    for name, sampler in (
        ("live", SampleFilter(model, config)),
        ("recording", RecordingFilter(model, config)),
    ):
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
    config = StreamConfig(stuck_after=0.3, saturation=(40.0,), clock_jump=0.5)
    stream = MeasurementStream(names, "effort", config, effort_limits=np.array([50.0, 50.0, 0.0]))
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


@case("storage/nystrom", residual="nystrom")
@case("storage/random_fourier", residual="random_fourier")
def saved(residual: str) -> Arrays:
    """Saved in the middle, and gone on from in another learner with another live parameter."""
    memory = {"rigid_body__memory": 20.0}
    first, second = (xmate(residual=residual, **memory) for _ in range(2))
    stream = measurements(log("xmate7p/trajectory_1", slice(0, 500)))
    before = follow(first, stream[:350])
    with tempfile.TemporaryDirectory() as folder:
        first.save(Path(folder) / "model.npz")
        second.load(Path(folder) / "model.npz")
    found = {f"before/{key}": before[key] for key in ("rigid_body", "semiparametric")}
    return found | follow(second, stream[350:])
