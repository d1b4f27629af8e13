"""The learner on logs of three real arms, under the three protocols, beside batch references.

    python benchmarks/real_arms.py DATA [--residual random_fourier]

DATA holds robots/{xmate7p,ur10,tx40}. Prints normalised mean squared errors per joint.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from arms import LOGS, URDFS, recordings, robot, samples, settings

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.baseline import NonparametricBaseline
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.conversion.convert import convert_log
from semiparam_dynamics.offline.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun
from semiparam_dynamics.robot.model import RobotModel

# Batch ridge on the same columns with zero-phase filtering (the TX40's without the coupling).
BATCH = {"xmate7p": 0.0144, "ur10": 0.0292, "tx40 blocks": 0.0186}
MODELS = ("urdf", "rigid_body", "nonparametric", "semiparametric", "persistence")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--residual", default="nystrom", choices=("nystrom", "random_fourier"))
    args = parser.parse_args()
    robots = args.data / "robots"

    def config(name: str) -> InverseDynamicsConfig:
        return replace(settings(name), residual=args.residual)

    with tempfile.TemporaryDirectory() as folder:
        for arm, logs in LOGS.items():
            urdf, bags = robots / arm / URDFS[arm], [robots / arm / log for log in logs]
            for k, log in enumerate(bags):
                if log.suffix == ".npz":
                    bags[k] = Path(folder) / f"{arm}_{log.stem}"
                    convert_log(log, bags[k], urdf=urdf)
            bag_split(arm, Bags(bags[-1:], bags[:-1], urdf), config(arm))
    block_split(robots, config("tx40"))


def bag_split(name: str, bags: Bags, config: InverseDynamicsConfig) -> None:
    """Train and test bags, or the first 60 % of one bag against its rest."""
    started = time.perf_counter()
    evaluation = evaluate_bags(bags, config)
    took = time.perf_counter() - started
    runs = evaluation.runs
    scores = {p: run.scored.scores_apart().get(f"{p}_rest", run.scores) for p, run in runs.items()}
    split = "trajectories 1, 2 -> 3" if bags.train else "first 60 % -> rest"
    print(f"\n{name}, {split} ({evaluation.samples} samples, {took:.1f} s)")
    table(name, evaluation.model, scores)


def block_split(robots: Path, config: InverseDynamicsConfig) -> None:
    """Every third block of half a second is held out: learned from the others, then tested."""
    model = robot(robots, "tx40", config)
    (recording,) = recordings(robots, "tx40", model)
    whole = samples(model, config, recording)
    start = whole[0].stamp
    held_out = [(sample.stamp - start) // 500_000_000 % 3 == 2 for sample in whole]
    estimator = SemiparametricEstimator(model, config.estimator)
    baseline = NonparametricBaseline(model, config.estimator)
    first = ProtocolRun(estimator, "sequential", baseline)
    for sample, out in zip(whole, held_out, strict=True):
        if not out:
            first.step(sample, score=False)
    runs = {name: first.branch(name) for name in ("sequential", "delayed", "frozen")}
    for sample, out in zip(whole, held_out, strict=True):
        if out:
            for run in runs.values():
                run.step(sample)
    print("\ntx40, every third half-second block held out")
    table("tx40 blocks", model, {name: run.scores for name, run in runs.items()})


def table(name: str, model: RobotModel, scores: dict[str, RunningScores]) -> None:
    joints = "".join(f"{joint[-9:]:>10}" for joint in model.joint_names)
    print(f"{'protocol':<11}{'model':<16}{'mean':>9}{joints}  covered by 2 sd")
    for protocol, score in scores.items():
        for key in MODELS:
            nmse, covered = score.nmse(key), score.coverage(key)
            cells = "".join(f"{value:>10.4f}" for value in nmse)
            share = (
                ""
                if np.isnan(covered).any()
                else f"  {covered.mean():.2f}, least {covered.min():.2f}"
            )
            print(f"{protocol:<11}{key:<16}{nmse.mean():>9.4f}{cells}{share}")
        ratio = score.nmse("semiparametric").mean() / score.nmse("rigid_body").mean()
        worst = (score.nmse("semiparametric") / score.nmse("rigid_body")).max()
        print(
            f"{protocol:<11}semiparametric is {ratio:.3f} x rigid body, worst joint {worst:.3f} x"
        )
    if name in BATCH:
        ratio = scores["frozen"].nmse("rigid_body").mean() / BATCH[name]
        print(f"frozen rigid body is {ratio:.3f} x the batch reference {BATCH[name]}")


if __name__ == "__main__":
    main()
