"""Effects of ordinary conditions on the learner: errors relative to the log without them.

    python benchmarks/field DATA [--logs ur10 sim_small] [--conditions sign delay] [--quick]
    python benchmarks/field DATA --live --logs ur10 [--speed 1] [--conditions "every second"]
    python benchmarks/field DATA --drivers --logs xmate7p ur10

Each condition of conditions.py is put on each log of DATA/robots and on two simulated arms, on what
is learned from alone or, where it lasts, on what is tested, too. Figures are of the rigid body and
of the semiparametric model, each `sequential/delayed/frozen`, divided by those of the log as it
is; "-": not one sample could be scored. "no dq": without the driver's velocities.

With `--live` what is learned from is published over DDS to a node, and the model that it
saves is tested frozen on the log as it is, beside one that learns the same offline. `--drivers`:
the share of each log's samples that is learned of the messages of drivers.py.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))  # what all benchmarks share

from arms import NAMES, LogSplit, log_splits, measurements, received
from conditions import CONDITIONS, Condition
from drivers import DRIVERS, NOT_CURED
from messages import LIVE, Learned, Message, learn_offline, learn_over_dds, messages
from output import make_parser, parse
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.doctor.messages import JointLog
from semiparam_dynamics.offline.evaluation.experiment import evaluate
from semiparam_dynamics.offline.evaluation.protocols import PROTOCOLS
from semiparam_dynamics.offline.evaluation.report import mean_nmse
from semiparam_dynamics.robot.model import RobotModel

QUICK_LOGS = ["ur10", "sim_small"]
QUICK_SECONDS = 20.0
QUICK = ("rest at the start", "missing", "+-3 ms", "passes", "sign of", "clipped", "30 degrees")
MODELS = ("rigid_body", "semiparametric")

Errors = dict[tuple[str, str], float]


def main(argv: list[str] | None = None) -> int:
    """Print the table, a row as soon as it is known."""
    parser = make_parser(__doc__)
    parser.prog = "field"
    parser.add_argument("data", type=Path, help="folder with robots/")
    parser.add_argument("--logs", nargs="+", default=[], choices=NAMES, metavar="NAME")
    parser.add_argument(
        "--conditions", nargs="+", default=[], metavar="WORDS", help="those whose names hold one"
    )
    parser.add_argument("--no-velocities", action="store_true", help="leave dq out of all logs")
    parser.add_argument("--live", action="store_true", help="learn as a node, over DDS")
    parser.add_argument("--drivers", action="store_true", help="what drivers were reported to send")
    parser.add_argument("--speed", type=float, default=1.0, help="of the messages over DDS")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="two short logs, few conditions")
    args = parse(parser, argv)
    words = args.conditions or (QUICK if args.quick else [""])
    chosen = [c for name, c in CONDITIONS.items() if any(word in name for word in words)]
    logs = args.logs or (QUICK_LOGS if args.quick else [])
    width = max(map(len, CONDITIONS))
    if args.live:
        for split in log_splits(args.data, logs):
            for line in live_rows(split, words, args.speed, args.seed):
                print(line, flush=True)
        return 0
    if args.drivers:
        for line in driver_rows(list(log_splits(args.data, logs)), args.seed):
            print(line, flush=True)
        return 0
    print(f"{'condition':<{width}}  {'rigid body':<20}  semiparametric   ({'/'.join(PROTOCOLS)})")
    with threadpool_limits(limits=1):
        for split in log_splits(args.data, logs, QUICK_SECONDS if args.quick else 0.0):
            if args.no_velocities:
                split = without_velocities(split)
            for line in rows(split, chosen, args.seed, width):
                print(line, flush=True)
    return 0


def without_velocities(split: LogSplit) -> LogSplit:
    """The same without the driver's velocities."""
    *train, test = (dataclasses.replace(log, dq=None) for log in (*split.train, split.test))
    return dataclasses.replace(split, train=train, test=test)


def rows(split: LogSplit, chosen: list[Condition], seed: int, width: int) -> Iterator[str]:
    """The table's lines of one log."""
    clean = errors(split, split.config, split.train, split.test)
    shown = "   ".join("/".join(f"{clean[m, p]:.4f}" for p in PROTOCOLS) for m in MODELS)
    dq = "" if split.test.dq is not None else ", no dq"
    yield f"\n{split.name + dq + ', nmse':<{width}}  {shown}"
    for condition in chosen:
        try:
            found = errors(split, *changed(split, condition, seed))
        except SemiparamError as error:
            print(f"{condition.name}: {error}", file=sys.stderr)
            found = dict.fromkeys(clean, float("nan"))
        cells = [
            "/".join(_ratio(found[model, p], clean[model, p]) for p in PROTOCOLS)
            for model in MODELS
        ]
        yield f"{condition.name:<{width}}  {cells[0]:<20}  {cells[1]}"


def live_rows(split: LogSplit, words: list[str], speed: float, seed: int) -> Iterator[str]:
    """The table's lines of one log that is learned live and offline."""
    clean: list[Learned] = []
    yield f"\n{split.name}: live and offline, frozen nmse and over the first; samples not learned"
    for name, change in LIVE.items():
        if clean and not any(word in name for word in words):
            continue
        train = split.train
        if name in CONDITIONS:
            train = changed(split, CONDITIONS[name], seed)[1]
        done = [learn_over_dds(split, train, change, speed), learn_offline(split, train, change)]
        clean = clean or done
        ratios = (
            f"{one.error:.4f} {one.error / c.error:.3f}" for one, c in zip(done, clean, strict=True)
        )
        yield f"{name:<40}  {'  '.join(ratios)}  {done[0].lost}"


def driver_rows(splits: list[LogSplit], seed: int) -> Iterator[str]:
    """The share of each log's samples that is learned of what each driver sends."""
    changes = {name: driver.change for name, driver in DRIVERS.items()} | NOT_CURED
    clean: list[int] = []
    for name, change in {"as it is": lambda given, rng: given, **changes}.items():
        found = [
            learned(split, change(messages(split.train[0]), np.random.default_rng(seed)))
            for split in splits
        ]
        clean = clean or found
        yield f"{name:<44}" + "".join(f"{n / c:8.3f}" for n, c in zip(found, clean, strict=True))


def learned(split: LogSplit, given: Iterable[Message]) -> int:
    """The number of samples that are learned of messages."""
    model = RobotModel(split.urdf, split.config.robot)
    sampler = SampleFilter(model, split.config.filter)
    samples = map(sampler.push, received(given, model, split.config.samples))
    return sum(sample is not None and sample.teaches for sample in samples)


def changed(
    split: LogSplit, condition: Condition, seed: int
) -> tuple[InverseDynamicsConfig, list[JointLog], JointLog]:
    """The configuration and the logs with a condition, the same on all of them where it lasts."""
    model = RobotModel(split.urdf, split.config.robot)
    done = [condition.change(log, np.random.default_rng(seed), model) for log in split.train]
    config = replace(split.config, **done[0].settings)
    test = split.test
    if condition.lasting:
        test = condition.change(test, np.random.default_rng(seed), model).log
    return config, [one.log for one in done], test


def errors(
    split: LogSplit, config: InverseDynamicsConfig, train: list[JointLog], test: JointLog
) -> Errors:
    """Mean nmse on the test log after training, by model and protocol."""
    model = RobotModel(split.urdf, config.robot)
    learned = [measurements(log, model, config) for log in train]
    evaluation = evaluate(model, config, [measurements(test, model, config)], learned)
    return {
        (name, protocol): mean_nmse(evaluation.runs[protocol].scores, name)
        for name in MODELS
        for protocol in PROTOCOLS
    }


def _ratio(found: float, clean: float) -> str:
    ratio = found / clean
    return f"{ratio:.2f}" if np.isfinite(ratio) else "-"


if __name__ == "__main__":
    sys.exit(main())
