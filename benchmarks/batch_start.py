"""The learner started from batch training, beside one that learned the same bags one by one.

    python benchmarks/batch_start.py DATA [--learners nystrom_krls falkon] [--centers novelty]

DATA holds robots/xmate7p. Trained on trajectories 1 and 2, scored on 3: normalised mean squared
errors, mean over the joints, delayed and frozen.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from arms import learned, settings, train_and_test
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.offline.evaluation.batch_start import (
    CENTERS,
    LEARNERS,
    batch_start,
    training_data,
)
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--learners", nargs="+", choices=tuple(LEARNERS), default=list(LEARNERS))
    parser.add_argument("--centers", nargs="+", choices=CENTERS, default=["novelty"])
    args = parser.parse_args()
    config = settings("xmate7p")
    model, train, test = train_and_test(args.data / "robots", "xmate7p", config)
    print(f"{len(train)} samples to train on, {len(test)} to test on")
    print(f"{'start':<30}{'train s':>8}{'size':>6}   delayed: P, SP     frozen: P, SP")
    for residual in ("nystrom", "random_fourier"):
        started = time.perf_counter()
        changed = replace(config.estimator, residual=residual)
        with threadpool_limits(1):
            estimator = learned(model, changed, train).estimator
        report(f"one by one, {residual}", estimator, test, time.perf_counter() - started)
    started = time.perf_counter()
    with threadpool_limits(1):
        data = training_data(model, config.estimator, train)
    print(f"the rigid body identified in {time.perf_counter() - started:.1f} s, once for all")
    for centers in args.centers:
        for name in args.learners:
            started = time.perf_counter()
            estimator = batch_start(data, name, centers).estimator
            report(f"{name}, {centers}", estimator, test, time.perf_counter() - started)


def report(name: str, start: SemiparametricEstimator, test: list[Sample], seconds: float) -> None:
    """Score an estimator that continues to learn, and one that doesn't, and print both."""
    cells = ""
    for protocol in ("delayed", "frozen"):
        run = ProtocolRun(start.copy(), protocol)
        with threadpool_limits(1):
            for sample in test:
                run.step(sample)
        rigid, both = (run.scores.nmse(key).mean() for key in ("rigid_body", "semiparametric"))
        cover = run.scores.coverage("semiparametric").mean()
        cells += f"   {rigid:.4f} {both:.4f} ({both / rigid:.2f}; {cover:.2f} within 2 sd)"
    print(f"{name:<30}{seconds:>8.1f}{start.residual.n_features:>6}{cells}", flush=True)


if __name__ == "__main__":
    main()
