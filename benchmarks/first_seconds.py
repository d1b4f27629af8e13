"""The first seconds of learning: errors of a node that has never seen the robot.

    python benchmarks/first_seconds.py DATA [--seconds 10] [--arms xmate7p ur10 ...]

DATA holds robots. Each log is learned from its first sample on, each sample predicted before it is
learned; normalised mean squared errors of the seconds of motion after, on the mean over the joints,
and the semiparametric model's over the rigid body's, of the mean and of the worst joint.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent / "rivals"))

from arm_splits import ARMS, arm_splits

from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS))
    args = parser.parse_args()
    print("| log | samples | rigid body | semiparametric | of the rigid body's, worst joint |")
    print("|---|---|---|---|---|")
    for arm in args.arms:
        begun: set[str] = set()
        for split in arm_splits(args.data, arm):
            side, first = split.full, [s for s in split.full.train if s.informative]
            log = split.name.split(" →")[0].split(",")[0]
            if log in begun:
                continue
            begun.add(log)
            run = ProtocolRun(
                SemiparametricEstimator(side.model, side.config.estimator), "sequential"
            )
            for sample in first:
                if not 0 <= sample.stamp - first[0].stamp <= args.seconds * 1e9:
                    break
                run.step(sample)
            rigid, both = (run.scores.nmse(name) for name in ("rigid_body", "semiparametric"))
            ratio = f"{both.mean() / rigid.mean():.2f}, {(both / rigid).max():.2f}"
            cells = f"{run.scores.samples} | {rigid.mean():.4f} | {both.mean():.4f} | {ratio}"
            print(f"| {ARMS[arm]}, {log} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
