"""Whole recordings, bags and logs, under all protocols; and models saved between two of them."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .live import SETTINGS, config_of, follow, xmate
from .table import Arrays, case, counted, data, log, measurements, numbers

XMATE = "xmate7p/xmate7p.urdf"
NOT_COMPARED = ("timing_us", "version", "parameters")  # of results.json


def semiparam(*arguments: Any) -> str:
    """Run a verb of the command line; its output, which must not be an error's."""
    from semiparam_dynamics.offline.cli.main import main

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
    from semiparam_dynamics.offline.evaluation.experiment import evaluate
    from semiparam_dynamics.samples.bag import read_measurements

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
@case("recordings/nystrom/xmate_without_comparison", residual="nystrom", comparison=False)
@case("recordings/nystrom/xmate_memory", residual="nystrom", rigid_body__memory=5.0)
@case("recordings/random_fourier/xmate_gate", residual="random_fourier", output__gate=3.0)
def split(**values: Any) -> Arrays:
    """Learned on one of the xMate's motions and scored on another."""
    from semiparam_dynamics.offline.evaluation.bags import Bags, evaluate_bags

    config = config_of(coulomb_velocity=0.005, filter__stages=2, **values)
    with tempfile.TemporaryDirectory() as folder:
        train, test = two_bags(Path(folder))
        found = evaluate_bags(Bags((test,), (train,), data(f"robots/{XMATE}")), config)
    return numbers(found.results(), without=NOT_COMPARED)


@case("recordings/command_line")
def by_command_line() -> Arrays:
    """The same by the command line, with its files."""
    options = [
        f"--set={name}={value}"
        for name, value in SETTINGS.items()
        if name != "random_fourier.window"
    ]
    with tempfile.TemporaryDirectory() as name:
        train, test = two_bags(folder := Path(name))
        semiparam("evaluate", test, "--train", train, "--out", folder / "out", *options)
        found = json.loads((folder / "out" / "results.json").read_text())
    return numbers(found, without=NOT_COMPARED)


def two_bags(folder: Path) -> tuple[Path, Path]:
    """To train on and to test on, of the xMate."""
    train = bag_of("xmate7p/trajectory_1", slice(0, 700), folder, XMATE)
    return train, bag_of("xmate7p/trajectory_3", slice(0, 500), folder, XMATE)


@case("recordings/nystrom/wrench", residual="nystrom")
@case("recordings/random_fourier/wrench", residual="random_fourier")
def wrench(**values: Any) -> Arrays:
    """The wrench at the Panda's wrist."""
    from semiparam_dynamics.dynamics import RobotModel
    from semiparam_dynamics.offline.evaluation.experiment import evaluate

    config = config_of(target="wrench", sensor_frame="sensor", **values)
    model = RobotModel(data("robots/panda_wrist/panda_wrist.urdf"), config.robot)
    stream = measurements(log("panda_wrist/am2", slice(0, 1500)), "wrench")
    return numbers(evaluate(model, config, [stream]).results(), without=NOT_COMPARED)


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
