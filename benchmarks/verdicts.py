"""What `semiparam evaluate` says is to be used, beside what a longer log of the same arm shows.

    python benchmarks/verdicts.py DATA [--arms ...]

DATA holds robots (arms.py). Of each arm's first log (of a single log its first 60 %) these
recordings are evaluated: the whole, its halves, its first 30 s, its first 15 s three times; and
with faults: all signs, one sign, N mm for N m, efforts at the motor, joints' names reversed. A
longer log shows what the verdict on the others, or on the rest of the log, is after learning the
recording. Right is the same verdict, or "rigid_body" where the gain that a longer log shows may be
chance in the recording; "learner" is wrong where a longer log shows a larger error than the rigid
body's, frozen or delayed. A recording with a fault has "nothing" to be used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from arms import LOGS, measurements, read_logs
from output import make_parser, parse

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.experiment import (
    TRAINING_SHARE,
    NothingScoredError,
    evaluate,
)
from semiparam_dynamics.offline.evaluation.verdict import (
    USE_LEARNER,
    USE_NOTHING,
    Pieces,
    Ratio,
    Verdict,
    judge,
)
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement

Log = list[Measurement]
MORE = 1.0005  # of the rigid body's error: what is more by that is an error in its third digit
FAULTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "all signs": lambda y: -y,
    "one sign": lambda y: y * np.where(np.arange(len(y)) == 1, -1.0, 1.0),
    "N mm for N m": lambda y: 1000.0 * y,
    "at the motor": lambda y: y / 50.0,
    "names reversed": lambda y: y[::-1].copy(),
}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--arms", nargs="+", choices=LOGS, default=LOGS)
    args = parse(parser)
    print("| arm | recording | to be used | a longer log shows | frozen, delayed there | |")
    print("|---" * 6 + "|")
    right = cases = 0
    for arm in args.arms:
        urdf, logs = read_logs(args.data / "robots", arm)
        config = replace(InverseDynamicsConfig(), joints=logs[0].names)
        model = RobotModel(urdf, config.robot)
        whole = [list(measurements(log, model, config)) for log in logs]
        first, others = whole[0], whole[1:]
        if not others:
            cut = round(TRAINING_SHARE * len(first))
            first, others = first[:cut], [first[cut:]]
        for name, recording in recordings(first):
            found, _ = judged(model, config, [recording], [])
            shown, gains, good = "a fault", "", found.use == USE_NOTHING
            if name not in FAULTS:
                longer, ratios = judged(model, config, others, [recording])
                shown, gains = longer.use, ", ".join(f"{r.value:.3f}" for r in ratios.values())
                better = all(ratio.value < MORE for ratio in ratios.values())
                good = better if found.use == USE_LEARNER else USE_NOTHING not in (found.use, shown)
                good |= found.use == shown
            cases, right = cases + 1, right + good
            said = "" if good else "wrong"
            print(f"| {arm} | {name} | {found.use} | {shown} | {gains} | {said} |", flush=True)
    print(f"\n{right} of {cases} right")


def recordings(log: Log) -> Iterator[tuple[str, Log]]:
    """Good, poor, short, repeated and faulty recordings made of a log."""
    half = len(log) // 2
    yield "whole", log
    yield "first half", log[:half]
    yield "second half", log[half:]
    begin = log[0].stamp
    yield "30 s", [m for m in log if m.stamp - begin < 30e9]
    short = [m for m in log if m.stamp - begin < 15e9]
    length = short[-1].stamp - begin + 20_000_000
    yield (
        "15 s three times",
        [dataclasses.replace(m, stamp=m.stamp + k * length) for k in range(3) for m in short],
    )
    for name, change in FAULTS.items():
        yield name, [dataclasses.replace(m, y=change(m.y)) for m in log]


def judged(
    model: RobotModel, config: InverseDynamicsConfig, test: list[Log], train: list[Log]
) -> tuple[Verdict, dict[str, Ratio]]:
    """The verdict on `test`, and the learner's error over the rigid body's by protocol."""
    try:
        runs = evaluate(model, config, test, train).runs
    except NothingScoredError as error:
        return Verdict(USE_NOTHING, str(error), "", {}), {}
    return judge(model, runs), Pieces(runs).ratios("semiparametric", "rigid_body")


if __name__ == "__main__":
    main()
