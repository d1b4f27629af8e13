"""What the optional kinds of friction are worth on motion never seen, joint by joint.

    python benchmarks/friction.py DATA [--splits xmate7p ur10 tx40] [--simulated]

DATA holds robots/{xmate7p,ur10,tx40}; the splits are those of benchmarks/joint_safety.py. Errors of
the rigid body and of the semiparametric model, relative to a rigid body with viscous and Coulomb
friction alone under the same protocol: of the means over the joints, and the worst joint's. Then on
how many joints friction remembers, is Stribeck's, and differs between the directions, and the
samples that two standard deviations cover, on the mean and on the worst joint.

--simulated: a simulated UR10 instead, whose friction builds up over a way that is known. What is
found is the strength of all stop operators of a joint, and the mean of their ways by strength.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from arms import LOGS, PLAIN, UR10, learned
from joint_safety import Split, recorded, splits

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.simulation.arm import ArmSimulator

PROTOCOLS = ("frozen", "delayed")
MODELS = ("rigid_body", "semiparametric")
WAYS, STRENGTH = (5e-4, 1e-3, 3e-3, 1e-2, 2e-2), 8.0  # rad, N m


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--splits", nargs="+", default=list(LOGS))
    parser.add_argument("--simulated", action="store_true")
    args = parser.parse_args()
    robots = args.data / "robots"
    if args.simulated:
        known_friction(str(robots / "ur10" / "ur10_robot.urdf"))
        return
    names = [f"{model}, {protocol}" for protocol in PROTOCOLS for model in MODELS]
    print(f"| split | {' | '.join(names)} | joints | covered frozen |")
    print("|---" * (len(names) + 3) + "|")
    of_arm: dict[str, list[list[float]]] = {}
    pairs = zip(splits(robots, args.splits, **PLAIN), splits(robots, args.splits), strict=True)
    for plain, default in pairs:
        before, _ = scored(plain)
        after, chosen = scored(default)
        cells, means = [], []
        for protocol in PROTOCOLS:
            reference = before[protocol].nmse("rigid_body")
            for model in MODELS:
                found = after[protocol].nmse(model)
                means.append(float(found.mean() / reference.mean()))
                cells.append(f"{means[-1]:.2f} ({(found / reference).max():.2f})")
        covered = after["frozen"].coverage("semiparametric")
        of_arm.setdefault(default[0].split()[0], []).append(means)
        joints = f"{', '.join(map(str, chosen.sum(axis=1)))} of {chosen.shape[1]}"
        share = f"{covered.mean():.2f} ({covered.min():.2f})"
        print(f"| {default[0]} | {' | '.join(cells)} | {joints} | {share} |", flush=True)
    for arm, rows in of_arm.items():
        means = " | ".join(f"{mean:.2f}" for mean in np.mean(rows, axis=0))
        print(f"| **{arm}, mean** | {means} | | |")


def scored(split: Split) -> tuple[dict[str, RunningScores], np.ndarray]:
    """The scores on what is held out by protocol, and the kinds of friction that count."""
    _, model, config, train, test = split
    first = learned(model, config.estimator, train)
    runs = {protocol: first.branch(protocol) for protocol in PROTOCOLS}
    for run in runs.values():
        for sample in test:
            run.step(sample, score=not sample.between)
    chosen = first.estimator.rigid_body.chosen
    return {protocol: run.scores for protocol, run in runs.items()}, chosen


def known_friction(urdf: str) -> None:
    """What is learned of simulated friction, joint by joint, beside the simulator's own."""
    print(
        "| way [mrad] | strength, N m: true | found, least and most | way found, least and most |"
    )
    print("|---|---|---|---|")
    for way in WAYS:
        options = {name.replace(".", "__"): value for name, value in UR10.items()}
        options |= {"effects__friction_presliding": STRENGTH, "effects__presliding_way": way}
        config = replace(InverseDynamicsConfig(), target="effort", filter__cutoff=8.0)
        arms = [
            ArmSimulator(urdf, seed=seed, motion="exciting", rate=100.0, **options)
            for seed in (1, 101)
        ]
        model = RobotModel(arms[0].urdf, config.robot)
        motion = [sample for arm in arms for sample in recorded(model, config, arm)]
        rigid_body = learned(model, config.estimator, motion).estimator.rigid_body
        own = rigid_body.remembers
        stops = rigid_body.parameters[model.optional[0] == 1].reshape(-1, model.n_joints)[:, own]
        strength = stops.sum(axis=0)
        found = 1e3 * (model.stops @ stops) / np.maximum(strength, 1e-9)
        cells = [f"{1e3 * way:g}", f"{STRENGTH:g}", f"{strength.min():.1f} to {strength.max():.1f}"]
        cells += [f"{found.min():.1f} to {found.max():.1f} ({own.sum()} of {len(own)} joints)"]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
