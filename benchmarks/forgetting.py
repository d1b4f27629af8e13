"""The effect of a memory of rigid body or residual, on the logs of three real arms.

    python benchmarks/forgetting.py DATA [--memory 10 30 60] [--parts directional residual]

DATA holds robots/{xmate7p,ur10,tx40}. Prints the mean over joints of the normalised mean squared
error, delayed and frozen, with the memory of each part changed alone; the settings are those of
config/robots. The logs last 180, 28 and 9 s and say little of memories that are longer.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from arms import LOGS, learned, settings, train_and_test

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.estimator import EstimatorConfig
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.robot.model import RobotModel

PARTS = {
    "directional": ("rigid_body.memory", {"rigid_body.forgetting": "directional"}),
    "exponential": ("rigid_body.memory", {"rigid_body.forgetting": "exponential"}),
    "residual": ("nystrom.memory", {}),
    "fourier": ("random_fourier.memory", {"residual": "random_fourier"}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--memory", type=float, nargs="+", default=[10.0, 30.0, 60.0, 120.0, 300.0])
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS)[:3])
    parser.add_argument("--logs", nargs="+", choices=list(LOGS), default=list(LOGS))
    parser.add_argument("--rigid-body-only", action="store_true", help="much faster: SP is NaN")
    args = parser.parse_args()
    print(f"{'log':<9}{'forgets':<13}{'memory':>6}", end="")
    print("".join(f"{p + ' ' + m:>13}" for p in ("delayed", "frozen") for m in ("P", "SP")))
    for log in args.logs:
        config = settings(log)
        model, train, test = train_and_test(args.data / "robots", log, config)
        for part in args.parts:
            name, own = PARTS[part]
            for memory in [0.0, *args.memory]:
                changed = replace(config, **own, **{name: memory})
                run = rigid_body_scores if args.rigid_body_only else both_scores
                nmse = run(model, changed.estimator, train, test)
                print(f"{log:<9}{part:<13}{memory:>6g}", end="")
                print("".join(f"{value:>13.4f}" for value in nmse), flush=True)


def both_scores(
    model: RobotModel, config: EstimatorConfig, train: list[Sample], test: list[Sample]
) -> list[float]:
    """Delayed P and SP, frozen P and SP, after learning `train`: means over joints."""
    first, nmse = learned(model, config, train), []
    for run in (first.branch("delayed"), first.branch("frozen")):
        for sample in test:
            run.step(sample)
        nmse += [float(run.scores.nmse(m).mean()) for m in ("rigid_body", "semiparametric")]
    return nmse


def rigid_body_scores(
    model: RobotModel, config: EstimatorConfig, train: list[Sample], test: list[Sample]
) -> list[float]:
    """`both_scores` without the residual, which takes most of the time."""
    rigid_body = RigidBodyIdentifier.of(model, config.rigid_body)

    def learn(sample: Sample) -> None:
        if sample.teaches:
            rigid_body.update(sample.regressor, sample.y, sample.stamp, sample.weight)

    for sample in train:
        learn(sample)
    frozen = rigid_body.parameters.copy()
    scores = RunningScores(("delayed", "frozen"), model.n_axes)
    for sample in test:
        values = {"delayed": rigid_body.predict(sample.regressor)}
        values["frozen"] = sample.regressor @ frozen
        scores.add(sample.y, values, {})
        learn(sample)
    delayed, last = (float(scores.nmse(name).mean()) for name in ("delayed", "frozen"))
    return [delayed, float("nan"), last, float("nan")]


if __name__ == "__main__":
    main()
