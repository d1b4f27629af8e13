"""The learner's inference: rest in what is learned, and the share of information of a sample.

    python benchmarks/evidence.py DATA --study rest [--arms ...]
    python benchmarks/evidence.py DATA --study share [--arms ...]

`rest`: errors on the last log, or the last 40 % of one, after learning the first, relative to those
without rest, with 15, 60 and 300 s of it where the arm is slowest in the first, sixth or last
tenth of what is learned: positions stay, and efforts with their noise.

`share`: the share of its information that a sample counts (`evidence.INFORMATION_SHARE`): each
arm's errors of the rigid body on motion never seen, relative to those with the package's, and which
share is the best one of all other arms.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
from arms import LOGS, SIMULATED, measurements, read_logs
from output import make_parser, parse

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics import evidence
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import SampleBlock
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.doctor.messages import JointLog
from semiparam_dynamics.offline.evaluation.experiment import TRAINING_SHARE, evaluate
from semiparam_dynamics.robot.model import RobotModel

sys.path.insert(1, str(Path(__file__).parent / "idbench"))
from cases import cases  # noqa: E402
from protocols import blocks_of  # noqa: E402

RESTS, REST_SECONDS = {"beginning": 0, "middle": 5, "end": 9}, (15, 60, 300)
SHARES = (0.03, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--study", choices=("rest", "share"), required=True)
    parser.add_argument("--arms", nargs="+", choices=(*LOGS, *SIMULATED), default=LOGS)
    args = parse(parser)
    {"rest": rested, "share": shares}[args.study](args)


def rested(args: argparse.Namespace) -> None:
    """Print errors after learning a log with rest in it, relative to the log without."""
    heads = [f"{where}, {seconds} s" for where in RESTS for seconds in REST_SECONDS]
    print(f"| arm, protocol | without | {' | '.join(heads)} |")
    print("|---" * (2 + len(heads)) + "|")
    for arm in args.arms:
        urdf, logs = read_logs(args.data / "robots", arm)
        config = replace(InverseDynamicsConfig(), joints=logs[0].names)
        model, first, last = RobotModel(urdf, config.robot), logs[0], logs[-1]
        if len(logs) == 1:
            cut = round(TRAINING_SHARE * len(first))
            first, last = first.rows(slice(0, cut)), last.rows(slice(cut, None))
        found: dict[str, list[float]] = {"frozen": [], "delayed": []}
        for where, seconds in [("middle", 0), *itertools.product(RESTS, REST_SECONDS)]:
            train = measurements(with_rest(first, where, seconds), model, config)
            runs = evaluate(model, config, [measurements(last, model, config)], [train]).runs
            for protocol, errors in found.items():
                errors.append(float(np.nanmean(runs[protocol].scores.nmse("semiparametric"))))
        for protocol, errors in found.items():
            ratios = " | ".join(f"{error / errors[0]:.3f}" for error in errors[1:])
            print(f"| {arm}, {protocol} | {errors[0]:.4f} | {ratios} |", flush=True)


def with_rest(log: JointLog, where: str, seconds: float) -> JointLog:
    """The log with so many seconds of rest at its beginning, in its middle or at its end."""
    begin = len(log) * RESTS[where] // 10
    steps = np.diff(log.q[begin : begin + len(log) // 10], axis=0)
    at = begin + int(np.abs(steps).max(axis=1).argmin())
    step = int(np.median(np.diff(log.stamps)))
    n = round(seconds * SECOND / step)
    noise = np.diff(log.y, axis=0).std(axis=0) / np.sqrt(2.0)
    here, rng = slice(at, at + 1), np.random.default_rng(0)
    held = log.y[here] + noise * rng.standard_normal((n, log.y.shape[1]))
    stamps = log.stamps[at] + step * np.arange(n)
    later = log.stamps[at:] + step * n

    def joined(values: Array, between: Array) -> Array:
        return np.concatenate((values[:at], between, values[at:]))

    dq = None if log.dq is None else joined(log.dq, np.zeros((n, log.dq.shape[1])))
    q = joined(log.q, np.repeat(log.q[here], n, axis=0))
    times = np.concatenate((log.stamps[:at], stamps, later))
    return JointLog(log.names, times, q, dq, joined(log.y, held))


def shares(args: argparse.Namespace) -> None:
    """Print each arm's errors by share, and the share that the other arms would choose."""
    means = {arm: np.mean(list(_errors(args.data, arm)), axis=0) for arm in args.arms}
    own = SHARES.index(evidence.INFORMATION_SHARE)
    means = {arm: mean - mean[own] for arm, mean in means.items()}
    print(f"| arm | {' | '.join(map(str, SHARES))} | best of the others |")
    print("|---" * (len(SHARES) + 2) + "|")
    for arm, mean in means.items():
        others = np.mean([of for name, of in means.items() if name != arm], axis=0)
        cells = " | ".join(f"{ratio:.2f}" for ratio in np.exp(mean))
        print(f"| {arm} | {cells} | {SHARES[int(np.argmin(others))]} |")
    cells = " | ".join(f"{ratio:.2f}" for ratio in np.exp(np.mean(list(means.values()), axis=0)))
    print(f"| all | {cells} | |")


def _errors(data: Path, arm: str) -> Iterator[Array]:
    """Of each case the logarithms of the rigid body's errors by share."""
    for case in cases(data, arm):
        config = replace(InverseDynamicsConfig(), joints=case.test.names)
        model = RobotModel(case.urdf, config.robot)
        train, test = blocks_of(case, model, config)
        errors = []
        for share in SHARES:
            with mock.patch.object(evidence, "INFORMATION_SHARE", share):
                rigid = RigidBodyIdentifier.of(model, config.estimator.rigid_body)
                for block in train:
                    _learn(rigid, block)
            left = test.y - test.regressors @ rigid.parameters
            errors.append(np.mean(np.nanmean(left**2, axis=0) / np.nanvar(test.y, axis=0)))
        yield np.log(errors)


def _learn(rigid: RigidBodyIdentifier, block: SampleBlock) -> None:
    taught = block.rows(block.informative)
    rigid.update_block(taught.regressors, taught.y, taught.stamps, taught.weights)


if __name__ == "__main__":
    main()
