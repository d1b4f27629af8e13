"""The residual's effect joint by joint: semiparametric over rigid-body error.

    python benchmarks/joint_safety.py DATA [--splits xmate7p ur10 tx40 simulated]

DATA holds robots/{xmate7p,ur10,tx40}. Whole trajectories are held out: all assignments of the
xMate's three, the first and the last 40 % of the others' logs, and simulated arms whose exciting
motions have other seeds. A ratio of 1 is the rigid body; `always` is the residual without trust
(`trust.threshold` 0), which the others are compared with.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from arms import (
    LOGS,
    SEVEN,
    SEVEN_JOINTS,
    UR10,
    by_time,
    learned,
    recordings,
    robot,
    samples,
    settings,
)

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

LIMIT = 1.02
XMATE = ("1,2 3", "1,3 2", "2,3 1", "1 2", "1 3", "2 1", "2 3", "3 1", "3 2")
Split = tuple[str, RobotModel, InverseDynamicsConfig, list[Sample], list[Sample]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--splits", nargs="+", default=[*LOGS, "simulated"])
    parser.add_argument("--seeds", type=int, default=2, help="of the simulated arms (default 2)")
    args = parser.parse_args()
    print("| split | protocol | mean, always | mean | worst joint, always | worst joint | joints |")
    print("|---" * 7 + "|")
    above = 0
    for name, model, config, train, test in splits(args.data / "robots", args.splits, args.seeds):
        always = ratios(model, replace(config, trust__threshold=0.0), train, test)
        trusted = ratios(model, config, train, test)
        for protocol, (mean, joints) in trusted.items():
            before, worst = always[protocol]
            cells = " ".join(f"{ratio:.3f}" for ratio in joints)
            print(
                f"| {name} | {protocol} | {before:.3f} | {mean:.3f} | {worst.max():.3f} "
                f"| {joints.max():.3f} | {cells} |",
                flush=True,
            )
            above += int((joints > LIMIT).sum()) if protocol == "frozen" else 0
    print(f"\n{above} joints above {LIMIT} on motion not seen (frozen)")


def ratios(
    model: RobotModel, config: InverseDynamicsConfig, train: list[Sample], test: list[Sample]
) -> dict[str, tuple[float, np.ndarray]]:
    """Semiparametric over rigid-body error by protocol: of the means, and each axis's."""
    first, found = learned(model, config.estimator, train), {}
    for protocol in ("frozen", "delayed"):
        run = first.branch(protocol)
        for sample in test:
            run.step(sample)
        both, rigid = (run.scores.nmse(name) for name in ("semiparametric", "rigid_body"))
        found[protocol] = float(both.mean() / rigid.mean()), both / rigid
    return found


def splits(robots: Path, wanted: list[str], seeds: int = 2, **overrides: object) -> Iterator[Split]:
    """Each split's name, robot, settings, and samples to learn and to be tested on."""
    for log in wanted:
        if log == "simulated":
            yield from simulated_splits(robots, seeds, **overrides)
            continue
        config = replace(settings(log), **overrides)
        model = robot(robots, log, config)
        parts = [samples(model, config, one) for one in recordings(robots, log, model)]
        if len(parts) > 1:
            for first, tested in (split.split() for split in XMATE):
                train = [sample for i in first.split(",") for sample in parts[int(i) - 1]]
                yield f"xMate {first} → {tested}", model, config, train, parts[int(tested) - 1]
            continue
        train, test = by_time(parts[0], 0.6)
        yield f"{log.upper()} first 60 % → rest", model, config, train, test
        test, train = by_time(parts[0], 0.4)
        yield f"{log.upper()} last 60 % → rest", model, config, train, test


def simulated_splits(robots: Path, seeds: int, **overrides: object) -> Iterator[Split]:
    """50 s of two exciting motions, and 25 s of a third one, of arms with friction and noise."""
    for arm, urdf, effects in (
        ("UR10", str(robots / "ur10" / "ur10_robot.urdf"), UR10),
        ("seven joints", str(SEVEN), SEVEN_JOINTS),
    ):
        options = {name.replace(".", "__"): value for name, value in effects.items()}
        config = replace(InverseDynamicsConfig(), filter__cutoff=8.0)
        config = replace(config, target="effort", joints=effects.get("joints", ()), **overrides)
        for seed in range(1, seeds + 1):
            arms = [
                ArmSimulator(urdf, seed=seed + 100 * k, motion="exciting", rate=100.0, **options)
                for k in range(3)
            ]
            model = RobotModel(arms[0].urdf, config.robot)
            first, second, third = (recorded(model, config, each) for each in arms)
            yield f"simulated {arm}, seed {seed}", model, config, first + second, third


def recorded(
    model: RobotModel, config: InverseDynamicsConfig, arm: ArmSimulator, count: int = 2500
) -> list[Sample]:
    """The first `count` samples of an arm's motion."""
    sampler, found = SampleFilter(model, config.filter), []
    for measurement in simulated(arm, "effort"):
        sample = sampler.push(measurement)
        if sample is not None:
            found.append(sample)
            if len(found) == count:
                break
    return found


if __name__ == "__main__":
    main()
