"""What friction that remembers is worth on motion never seen, joint by joint.

    python benchmarks/friction_memory.py DATA [--splits xmate7p ur10 tx40]

DATA holds robots/{xmate7p,ur10,tx40}; the splits are those of benchmarks/joint_safety.py. Errors of
the rigid body and of the semiparametric model, relative to a rigid body whose friction has no
memory (`presliding` empty) under the same protocol: of the means over the joints, and the worst
joint's. Then how many joints' friction remembers, and the samples that two standard deviations
cover, on the mean and on the worst joint.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from arms import LOGS
from joint_safety import Split, splits

from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.evaluation.protocols import ProtocolRun

PROTOCOLS = ("frozen", "delayed")
MODELS = ("rigid_body", "semiparametric")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--splits", nargs="+", default=list(LOGS))
    args = parser.parse_args()
    robots = args.data / "robots"
    names = [f"{model}, {protocol}" for protocol in PROTOCOLS for model in MODELS]
    print(f"| split | {' | '.join(names)} | remember | covered frozen |")
    print("|---" * (len(names) + 3) + "|")
    of_arm: dict[str, list[list[float]]] = {}
    pairs = zip(
        splits(robots, args.splits, presliding=()), splits(robots, args.splits), strict=True
    )
    for without, with_memory in pairs:
        before, _ = scored(without)
        after, remembers = scored(with_memory)
        cells, means = [], []
        for protocol in PROTOCOLS:
            reference = before[protocol].nmse("rigid_body")
            for model in MODELS:
                found = after[protocol].nmse(model)
                means.append(float(found.mean() / reference.mean()))
                cells.append(f"{means[-1]:.2f} ({(found / reference).max():.2f})")
        covered = after["frozen"].coverage("semiparametric")
        of_arm.setdefault(with_memory[0].split()[0], []).append(means)
        joints = f"{remembers.sum()} of {len(remembers)}"
        share = f"{covered.mean():.2f} ({covered.min():.2f})"
        print(f"| {with_memory[0]} | {' | '.join(cells)} | {joints} | {share} |", flush=True)
    for arm, rows in of_arm.items():
        means = " | ".join(f"{mean:.2f}" for mean in np.mean(rows, axis=0))
        print(f"| **{arm}, mean** | {means} | | |")


def scored(split: Split) -> tuple[dict[str, RunningScores], np.ndarray]:
    """The scores on what is held out by protocol, and which joints' friction remembers."""
    _, model, config, train, test = split
    learned = ProtocolRun(SemiparametricEstimator(model, config.estimator), "sequential")
    for sample in train:
        learned.step(sample, score=False)
    runs = {protocol: learned.branch(protocol) for protocol in PROTOCOLS}
    for run in runs.values():
        for sample in test:
            run.step(sample, score=not sample.between)
    remembers = learned.estimator.rigid_body.remembers
    return {protocol: run.scores for protocol, run in runs.items()}, remembers


if __name__ == "__main__":
    main()
