"""A log at other rates: scores and parameters must not depend on how often a driver publishes.

    python benchmarks/rates.py DATA [--logs xmate7p ur10] [--rates 50 100 250 1000] [--centers 1000]
    python benchmarks/rates.py DATA --rates 1000 --ratios 20 10 0    # 20, 10 cut-offs a second, all
    python benchmarks/rates.py DATA --rates 0 --ratios 0             # all, of the logs as they are

DATA holds robots. Each log is interpolated to each rate, positions and velocities by cubic splines,
efforts by straight lines, learned and tested as in benchmarks/field. Normalised mean squared errors
of the semiparametric model over those of the log as it is, on the mean over the joints; and by how
many standard deviations the parameters that were learned differ, the root mean square and the most.
Dry friction is left out of these: its columns, with memory and without, stand in for one another.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
from arms import NAMES, LogSplit, log_splits, measurements
from output import make_parser, parse
from scipy.interpolate import CubicSpline

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.offline.doctor.joint_log import JointLog
from semiparam_dynamics.offline.evaluation.experiment import evaluate
from semiparam_dynamics.offline.evaluation.protocols import PROTOCOLS
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.regressor import OPTIONAL


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--logs", nargs="+", default=["xmate7p", "ur10"], choices=NAMES, metavar="NAME"
    )
    parser.add_argument(
        "--rates", nargs="+", type=float, default=[50, 100, 250, 1000], metavar="HZ"
    )
    parser.add_argument("--centers", type=int, default=0, help="nystrom.max_centers, 0: as it is")
    parser.add_argument(
        "--ratios",
        nargs="+",
        type=float,
        default=[20.0],
        metavar="RATIO",
        help="filter.learn_ratio",
    )
    args = parse(parser)
    print(f"| log, Hz | {' | '.join(PROTOCOLS)} | parameters, deviations |")
    print("|---|---|---|---|---|")
    for split in log_splits(args.data, args.logs):
        if args.centers:
            config = replace(split.config, nystrom__max_centers=args.centers)
            split = dataclasses.replace(split, config=config)
        own, learned, deviations = learn(split, 0.0)
        rate = 1.0 / float(np.median(np.diff(split.test.times)))
        shown = " | ".join(f"{error:.5f}" for error in own)
        print(f"| {split.name}, {rate:.0f} as it is | {shown} | |", flush=True)
        for rate in args.rates:
            for ratio in args.ratios:
                config = replace(split.config, filter__learn_ratio=ratio)
                errors, parameters, _ = learn(dataclasses.replace(split, config=config), rate)
                away = (parameters - learned) / deviations
                shown = " | ".join(f"{ratio:.3f}" for ratio in errors / own)
                moved = f"{np.sqrt(np.mean(away**2)):.2f}, {np.abs(away).max():.2f}"
                named = f"{rate:.0f}, ratio {ratio:g}"
                print(f"| {split.name}, {named} | {shown} | {moved} |", flush=True)


def learn(split: LogSplit, rate: float) -> tuple[Array, Array, Array]:
    """Errors by protocol, and parameters after training with their standard deviations.

    rate: Hz; 0: of the logs themselves.
    """
    config = split.config
    model = RobotModel(split.urdf, config.robot)
    *train, test = (
        measurements(resampled(log, rate) if rate else log, model, config)
        for log in (*split.train, split.test)
    )
    runs = evaluate(model, config, [test], train).runs
    errors = [runs[name].scores.nmse("semiparametric").mean() for name in PROTOCOLS]
    rigid_body = runs["frozen"].estimator.rigid_body
    parameters, deviations = rigid_body.parameters, rigid_body.standard_deviations()
    always = ~model.dissipative & [not label.startswith(OPTIONAL) for label in model.labels]
    return np.array(errors), parameters[always], deviations[always]


def resampled(log: JointLog, rate: float) -> JointLog:
    """The log, interpolated to even steps."""
    times, later = np.unique(log.times, return_index=True)
    even = np.arange(int((times[-1] - times[0]) * rate) + 1) / rate
    assert log.y is not None
    y = np.column_stack([np.interp(even, times, column) for column in log.y[later].T])
    q, dq = (None if a is None else CubicSpline(times, a[later])(even) for a in (log.q, log.dq))
    assert q is not None
    stamps = log.stamps[0] + np.round(even * SECOND).astype(np.int64)
    return JointLog(log.names, stamps, q, dq, y)


if __name__ == "__main__":
    main()
