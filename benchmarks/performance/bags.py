"""The time that the evaluation of a bag takes, and each of its parts."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from output import machine, markdown
from serial_arm import moving, serial_arm_urdf
from threadpoolctl import threadpool_limits

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.baseline import NonparametricBaseline
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.residual import KernelResidual
from semiparam_dynamics.dynamics.sample import Sample, SampleBlock
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.evaluation.protocols import BLOCK, JoinedRuns, ProtocolRun
from semiparam_dynamics.parameters import from_flat
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.bag import read_measurements
from semiparam_dynamics.samples.convert import convert_log

DESCRIPTION = """\
How many times faster than real time a bag of a seven-joint arm is evaluated, and what its parts
cost a sample. Parts are measured once each, alone, on one core: protocols is sequential and delayed
with their scores, of which rigid body and residual are parts, and products what the residual's
multiplications would take at the speed of one large matrix product. whole is `semiparam evaluate`
but for its report, by the clock, and cores whole by the processor's time. comparison says whether
the nonparametric model alone is learned as well."""
RESIDUALS = ("random_fourier", "nystrom")
LARGE = 500  # features of the matrix product that is the limit
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
    parser.add_argument(
        "--comparison", choices=("yes", "no", "both"), default="no", help="default %(default)s"
    )


def run(args: argparse.Namespace) -> str:
    """Measure; the table, and the machine it is of."""
    if args.seconds * args.rate < 10.0 or args.rate < 4.0:
        raise ConfigurationError("A bag needs ten messages, and four a second: ask for more.")
    comparisons = {"yes": (True,), "no": (False,), "both": (False, True)}[args.comparison]
    cases = measure_bags(args.seconds, args.rate, args.features, args.residuals, comparisons)
    return f"{machine()}.\n\n{bag_table(cases)}\n"


@dataclass(frozen=True)
class BagTimes:
    """Seconds that a bag's parts take, each measured once, alone and on one core; and the whole.

    Attributes
    ----------
    read : its messages to measurements.
    filter : measurements to samples.
    rigid_body : identified, sample by sample, for both protocols that learn.
    residual : the nonparametric models, in blocks, for both protocols.
    products : the residual's multiplications alone, at the speed of one large matrix product.
    protocols : sequential and delayed, scored: `rigid_body` and `residual` are part of it.
    frozen : all samples by the models as they are after that, scored.
    whole : `semiparam evaluate` without its report, by the clock: all of these, frozen on the last
        40 %, on as many cores as it takes.
    cores_whole : the same by the processor's time.
    """

    read: float
    filter: float
    rigid_body: float
    residual: float
    products: float
    protocols: float
    frozen: float
    whole: float
    cores_whole: float


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
    convert_log(log, bag, urdf=urdf)


def _measure(bag: Path, config: InverseDynamicsConfig) -> BagCase:
    model = RobotModel(serial_arm_urdf(), config.robot)
    clock = [time.perf_counter()]
    measurements = read_measurements(bag, model.joint_names).measurements
    clock.append(time.perf_counter())
    sampler = SampleFilter(model, config.filter)
    samples = list(sampler.filter_recording(measurements))
    clock.append(time.perf_counter())
    read, filtered = np.diff(clock).tolist()
    rigid, residual, products = _learning(*_models(model, config), samples)
    estimator, baseline = _models(model, config)
    first = ProtocolRun(estimator, "sequential", baseline)
    runs = JoinedRuns(first)
    clock = [time.perf_counter()]
    for sample in samples:
        runs.step(sample)
    runs.finish()
    clock.append(time.perf_counter())
    frozen = first.branch("frozen")
    for sample in samples:
        frozen.step(sample)
    frozen.catch_up()
    clock.append(time.perf_counter())
    cores = time.process_time()
    evaluate_bags(Bags((bag,)), config)
    cores = time.process_time() - cores
    clock.append(time.perf_counter())
    protocols, asked, whole = np.diff(clock).tolist()
    return BagCase(
        config.estimator.residual,
        config.comparison,
        (measurements[-1].stamp - measurements[0].stamp) * 1e-9,
        len(samples),
        first.estimator.residual.n_features,
        BagTimes(read, filtered, rigid, residual, products, protocols, asked, whole, cores),
    )


def _models(
    model: RobotModel, config: InverseDynamicsConfig
) -> tuple[SemiparametricEstimator, NonparametricBaseline | None]:
    baseline = NonparametricBaseline(model, config.estimator) if config.comparison else None
    return SemiparametricEstimator(model, config.estimator), baseline


def _learning(
    estimator: SemiparametricEstimator,
    baseline: NonparametricBaseline | None,
    samples: Sequence[Sample],
) -> tuple[float, float, float]:
    """Seconds for the rigid body, for the nonparametric models, and for their products alone."""
    rigid, residual, operations = 0.0, 0.0, 0.0
    steps = np.median(np.diff([sample.stamp for sample in samples])) * 1e-9
    size = max(round(BLOCK / steps), 1)
    for start in range(0, len(samples), size):
        block = SampleBlock.of(samples[start : start + size])
        began = time.perf_counter()
        learned = estimator.update_rigid_body_block(block)
        between = time.perf_counter()
        estimator.update_block(block, rigid=learned)
        if baseline is not None:
            baseline.update_block(block)
        rigid += between - began
        residual += time.perf_counter() - between
        operations += _operations(estimator.residual, len(block))
        if baseline is not None:
            operations += _operations(baseline.kernel_model, len(block))
    return rigid, residual, operations / _products_a_second(size)


def _operations(residual: KernelResidual, m: int) -> float:
    """Multiplications and additions of m samples in one block (see `recursion.blocks`)."""
    if not residual.standardizer.ready:
        return 0.0
    total = 0.0
    for model in residual.models:
        n = model.core.n_features
        total += _recursion(m, n, model.core.n_outputs) + (n**2 * m if model.local else 0.0)
    return total


def _recursion(m: int, n: int, outputs: int) -> float:
    """V and K, the factors L and C, C R, and what the outputs need."""
    square = 2.0 * m * n**2 + m**2 * n + (m**3 + n**3) / 3.0 + n**3 / 3.0
    return square + (4.0 * m * n + m**2 + n**2) * outputs


def _products_a_second(m: int) -> float:
    """Multiplications and additions a second of one matrix product of m rows, on one core."""
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((m, LARGE)), rng.standard_normal((LARGE, LARGE))
    least = np.inf
    for _ in range(5):
        began = time.perf_counter()
        A @ B
        least = min(least, time.perf_counter() - began)
    return 2.0 * m * LARGE**2 / least


def bag_table(cases: Sequence[BagCase]) -> str:
    """A line for each configuration, in Markdown: microseconds a sample, and the whole's speed."""
    parts = [field.name for field in fields(BagTimes)]
    header = ["residual", "features", "comparison"]
    header += [*(f"{name.replace('_', ' ')}, µs" for name in parts), "times real time"]
    lines = []
    for case in cases:
        each = [getattr(case.times, name) / case.n_samples * 1e6 for name in parts]
        cells = [case.residual, str(case.n_features), "yes" if case.comparison else "no"]
        cells += [f"{microseconds:.1f}" for microseconds in each]
        lines.append([*cells, f"{case.duration / case.times.whole:.1f}"])
    return markdown(header, lines)
