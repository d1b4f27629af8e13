"""What two predicted standard deviations cover of motion never seen, joint by joint and in time.

    python benchmarks/coverage.py DATA [--arms xmate7p ur10 tx40 airbot tiago payload]

DATA holds robots; the splits are those of benchmarks/rivals, and only samples in motion count. Of
each protocol: the share of samples that two standard deviations of the semiparametric model cover,
on the mean over the joints, on the worst joint, and on that joint's worst 30 s. `payload` is five
simulated arms, each of which takes up a body of 0.3 to 2 kg after a minute; what counts is from
then on, half a minute.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent / "rivals"))

from arm_splits import arm_splits
from arms import UR10, learned

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.estimator import BlockPrediction, SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.sample import Sample, SampleBlock
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

PROTOCOLS = ("sequential", "delayed", "frozen")
ARMS = ("xmate7p", "ur10", "tx40", "airbot", "tiago", "payload")
WINDOW_NS, LEAST_NS = 30_000_000_000, 10_000_000_000  # of time, and what counts as one
LEARN_S, HELD_S = 60.0, 30.0

# Name, robot, settings, and samples that are learned and that are scored.
Case = tuple[str, RobotModel, InverseDynamicsConfig, list[Sample], list[Sample]]


class Watched(ProtocolRun):
    """A run that keeps which samples were covered."""

    def __init__(self, estimator: SemiparametricEstimator, protocol: str) -> None:
        super().__init__(estimator, protocol)
        self.stamps: list[np.ndarray] = []
        self.covered: list[np.ndarray] = []

    def take(self, block: SampleBlock, prediction: BlockPrediction, chosen: object) -> None:
        rows = block.informative
        error = block.y - prediction.values["semiparametric"]
        inside = np.where(
            np.isnan(error), np.nan, abs(error) <= 2.0 * prediction.stds["semiparametric"]
        )
        self.stamps.append(block.stamps[rows])
        self.covered.append(inside[rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    args = parser.parse_args()
    print(f"| split | {' | '.join(PROTOCOLS)} |\n|---" + "|---" * len(PROTOCOLS) + "|")
    for arm in args.arms:
        for name, *case in payloads(args.data) if arm == "payload" else cases(args.data, arm):
            print(f"| {name} | {' | '.join(coverages(*case))} |", flush=True)


def cases(data: Path, arm: str) -> Iterator[Case]:
    """The splits of an arm's logs."""
    for split in arm_splits(data, arm):
        side = split.full
        yield f"{arm} {split.name}", side.model, side.config, side.train, side.test


def payloads(data: Path) -> Iterator[Case]:
    """A minute of five simulated arms with the bare hand, then half a minute with a body in it."""
    options = {name.replace(".", "__"): value for name, value in UR10.items()}
    urdf = str(data / "robots" / "ur10" / "ur10_robot.urdf")
    config = replace(InverseDynamicsConfig(), target="effort", filter__cutoff=8.0)
    for seed in range(1, 6):
        arm = ArmSimulator(
            urdf, seed=seed, motion="exciting", rate=100.0, hand_frame="tool0", **options
        )
        model = RobotModel(arm.urdf, config.robot)
        rng, sampler = np.random.default_rng(seed), SampleFilter(model, config.filter)
        parts: list[list[Sample]] = [[], []]
        for measurement in simulated(arm, "effort"):
            now = measurement.stamp * 1e-9
            if now >= LEARN_S and not parts[1]:
                mass = 0.3 * (2.0 / 0.3) ** rng.uniform()
                arm.hand.attach(mass, rng.uniform(-0.05, 0.05, 3), 0.002 * mass * np.eye(3))
            if now >= LEARN_S + HELD_S:
                break
            if (sample := sampler.push(measurement)) is not None and sample.y is not None:
                parts[now >= LEARN_S].append(sample)
        yield f"simulated UR10, seed {seed}, {mass:.2f} kg", model, config, *parts


def coverages(
    model: RobotModel, config: InverseDynamicsConfig, train: list[Sample], test: list[Sample]
) -> Iterator[str]:
    """The figures of each protocol."""
    first = learned(model, config.estimator, train).estimator
    for protocol in PROTOCOLS:
        run = Watched(first.copy(), protocol)
        for sample in test:
            run.step(sample)
        run.catch_up()
        stamps, covered = np.concatenate(run.stamps), np.concatenate(run.covered)
        shares = np.nanmean(covered, axis=0)
        windows = (stamps - stamps[0]) // WINDOW_NS
        worst = [
            np.nanmean(covered[windows == k, np.nanargmin(shares)])
            for k in np.unique(windows)
            if np.ptp(stamps[windows == k]) >= LEAST_NS
        ]
        least = min(worst, default=float("nan"))
        yield f"{np.nanmean(shares):.2f} ({np.nanmin(shares):.2f}, {least:.2f})"


if __name__ == "__main__":
    main()
