"""The time that the evaluation of a bag takes, and each of its parts."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from output import markdown
from serial_arm import moving, serial_arm_urdf
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import from_flat, replace
from semiparam_dynamics.dynamics.baseline import NonparametricBaseline
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.sample import Sample, SampleBlock
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.offline.conversion.convert import convert_log
from semiparam_dynamics.offline.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.bag import read_measurements

DESCRIPTION = """\
How many times faster than real time a bag of a seven-joint arm is evaluated, and what its parts
cost a message. Only samples that are learned go beyond the filter, as in an evaluation: at 1 kHz
every tenth. Parts are measured once each, alone, by the processor's time of one core: protocols is
sequential and delayed with their scores, of which learning, of the rigid body, the residual and the
nonparametric model beside them, is a part; frozen is all of these samples by the models as they are
after that. whole is `semiparam evaluate` but for its report, by the clock, and cores whole by the
processor's time."""
RESIDUALS = ("random_fourier", "nystrom")
PARTS = ("read", "filter", "learning", "protocols", "frozen", "whole", "cores whole")
HEADER = ("residual", "features", *(f"{part}, µs" for part in PARTS), "times real time")
WARM_UP = 2.0  # s of the bag, evaluated once before, so that everything is compiled


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="the bag's length (default %(default)s)"
    )
    parser.add_argument(
        "--rate", type=float, default=1000.0, help="messages a second (default %(default)s)"
    )
    parser.add_argument(
        "--features", type=int, default=500, metavar="D", help="of the residual (default 500)"
    )
    parser.add_argument(
        "--residuals",
        nargs="+",
        choices=RESIDUALS,
        default=list(RESIDUALS),
        help="which residuals (default both)",
    )


def run(args: argparse.Namespace) -> str:
    """Measure; the table."""
    if args.seconds * args.rate < 10.0 or args.rate < 4.0:
        raise ConfigurationError("A bag needs ten messages, and four a second: ask for more.")
    rows = measure_bags(args.seconds, args.rate, args.features, args.residuals)
    return f"{markdown(HEADER, rows)}\n"


def measure_bags(
    seconds: float, rate: float, features: int, residuals: Sequence[str]
) -> list[list[str]]:
    """Write a bag of a seven-joint arm at `rate` Hz, and evaluate it with each residual: rows.

    features : random features, or centres at most; a second level keeps its own default.
    """
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(limits=1):
        bag, short = Path(folder) / "bag", Path(folder) / "short"
        for path, length in ((bag, seconds), (short, min(WARM_UP, seconds))):
            _write(path, length, rate)
        cases = []
        for residual in residuals:
            config = from_flat(
                InverseDynamicsConfig,
                {
                    "residual": residual,
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
    convert_log(log, bag, urdf=urdf)


def _measure(bag: Path, config: InverseDynamicsConfig) -> list[str]:
    """A row of the table: microseconds a message of each part, and the whole's speed."""
    model = RobotModel(serial_arm_urdf(), config.robot)
    clock = [time.process_time()]
    measurements = read_measurements(bag, model.joint_names).measurements
    clock.append(time.process_time())
    sampler = SampleFilter(model, config.filter)
    samples = list(sampler.filter_recording(measurements, between=False))
    clock.append(time.process_time())
    read, filtered = np.diff(clock).tolist()
    learning = _learning(model, config, samples)
    first = ProtocolRun(
        InverseDynamicsLearner(model, replace(config, comparison=True)), "sequential"
    )
    first.add_delayed()
    clock = [time.process_time()]
    for sample in samples:
        first.step(sample)
    first.finish()
    clock.append(time.process_time())
    frozen = first.branch("frozen")
    for sample in samples:
        frozen.step(sample)
    frozen.catch_up()
    clock.append(time.process_time())
    protocols, asked = np.diff(clock).tolist()
    started, used = time.perf_counter(), time.process_time()
    evaluate_bags(Bags((bag,)), config)
    whole, cores = time.perf_counter() - started, time.process_time() - used
    duration = (measurements[-1].stamp - measurements[0].stamp) * 1e-9
    times = (read, filtered, learning, protocols, asked, whole, cores)
    return [
        config.estimator.residual,
        str(first.estimator.residual.n_features),
        *(f"{1e6 * seconds / len(measurements):.1f}" for seconds in times),
        f"{duration / whole:.1f}",
    ]


def _learning(model: RobotModel, config: InverseDynamicsConfig, samples: Sequence[Sample]) -> float:
    """Seconds for the models of an evaluation."""
    block, began = SampleBlock.of(samples), time.process_time()
    SemiparametricEstimator(model, config.estimator).update_block(block)
    NonparametricBaseline(model, config.estimator).update_block(block)
    return time.process_time() - began
