"""What the evaluation of a bag costs, and each of its parts."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.recording_filter import RecordingFilter
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.evaluation.protocols import ProtocolRun
from semiparam_dynamics.parameters import from_flat
from semiparam_dynamics.performance.serial_arm import moving, serial_arm_urdf
from semiparam_dynamics.samples.bag import read_measurements
from semiparam_dynamics.samples.convert import convert_npz

RESIDUALS = ("random_fourier", "nystrom")
WARM_UP = 2.0  # s of the bag, evaluated once before, so that everything is compiled


@dataclass(frozen=True)
class BagTimes:
    """Seconds that a bag's parts take, each measured once, on one core.

    Attributes
    ----------
    read : its messages to measurements.
    filter : measurements to samples.
    sequential, delayed : all samples by that protocol, from nothing learned.
    frozen : all samples by the models as they are after `sequential`.
    whole : `semiparam evaluate` without its report: all of these, frozen on the last 40 %.
    """

    read: float
    filter: float
    sequential: float
    delayed: float
    frozen: float
    whole: float


@dataclass(frozen=True)
class BagCase:
    """A configuration and what it took; `duration` of the bag in s, `n_features` in the end."""

    residual: str
    comparison: bool
    duration: float
    n_samples: int
    n_features: int
    times: BagTimes


def measure_bags(
    seconds: float,
    rate: float,
    features: int,
    residuals: Sequence[str],
    comparisons: Sequence[bool],
) -> list[BagCase]:
    """Write a bag of a seven-joint arm at `rate` Hz, and evaluate it by each configuration.

    features : random features, or centres at most; a second level keeps its own default.
    """
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(limits=1):
        bag, short = Path(folder) / "bag", Path(folder) / "short"
        for path, length in ((bag, seconds), (short, min(WARM_UP, seconds))):
            _write(path, length, rate)
        cases = []
        for residual in residuals:
            for comparison in comparisons:
                config = from_flat(
                    InverseDynamicsConfig,
                    {
                        "residual": residual,
                        "comparison": comparison,
                        "random_fourier.n_features": features,
                        "nystrom.max_centers": features,
                        "random_fourier.window": 1.0,
                        "nystrom.window": 1.0,
                    },
                )
                _measure(short, config)
                cases.append(_measure(bag, config))
    return cases


def _write(bag: Path, seconds: float, rate: float) -> None:
    urdf = serial_arm_urdf()
    t, q, dq, y = moving(RobotModel(urdf), seconds, rate)
    log = bag.with_suffix(".npz")
    np.savez(log, t=t, q=q, dq=dq, tau=y)
    convert_npz(log, bag, urdf=urdf)


def _measure(bag: Path, config: InverseDynamicsConfig) -> BagCase:
    model = RobotModel(serial_arm_urdf(), config.robot)
    clock = [time.perf_counter()]
    measurements = read_measurements(bag, model.joint_names).measurements
    clock.append(time.perf_counter())
    sampler = RecordingFilter(model, config.filter)
    samples = list(sampler.filter_recording(measurements))
    clock.append(time.perf_counter())
    sequential, delayed = (
        ProtocolRun(SemiparametricEstimator(model, config.estimator), name)
        for name in ("sequential", "delayed")
    )
    _lead(sequential, samples)
    clock.append(time.perf_counter())
    _lead(delayed, samples)
    clock.append(time.perf_counter())
    _lead(sequential.branch("frozen"), samples)
    clock.append(time.perf_counter())
    evaluate_bags(Bags((bag,)), config)
    clock.append(time.perf_counter())
    return BagCase(
        config.estimator.residual,
        config.estimator.comparison,
        (measurements[-1].stamp - measurements[0].stamp) * 1e-9,
        len(samples),
        sequential.estimator.residual.n_features,
        BagTimes(*np.diff(clock).tolist()),
    )


def _lead(run: ProtocolRun, samples: Sequence[Sample]) -> None:
    for sample in samples:
        run.step(sample)
    run.settle()


def bag_table(cases: Sequence[BagCase]) -> str:
    """A line for each configuration, in Markdown: microseconds a sample, and the whole's speed."""
    parts = [field.name for field in fields(BagTimes)]
    header = ["residual", "features", "comparison", *(f"{name}, µs" for name in parts)]
    lines = [[*header, "times real time"], ["---"] * (len(header) + 1)]
    for case in cases:
        each = [getattr(case.times, name) / case.n_samples * 1e6 for name in parts]
        told = [case.residual, str(case.n_features), "yes" if case.comparison else "no"]
        told += [f"{microseconds:.1f}" for microseconds in each]
        lines.append([*told, f"{case.duration / case.times.whole:.1f}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
