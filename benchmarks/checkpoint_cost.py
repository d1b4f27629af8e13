"""The time of a checkpoint: of the copy, of the write, and of predictions during the write.

    python benchmarks/checkpoint_cost.py

The learner has all its centres, by default 500 and 200 for each of seven joints, filled with
random numbers. Only the copy keeps messages waiting; a thread writes. "Beside a write" are
predictions made while one is under way, "alone" those before.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from arms import SEVEN
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.nodes.autosave import Autosave, Snapshot
from semiparam_dynamics.dynamics import RobotModel
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.sample import Sample


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--centers", type=int, default=500)
    parser.add_argument("--joint-centers", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--folder", help="where the file goes")
    args = parser.parse_args()
    sizes = {
        "nystrom.max_centers": args.centers,
        "nystrom.joint_max_centers": args.joint_centers,
    }
    model = RobotModel(str(SEVEN))
    estimator = SemiparametricEstimator(model, **sizes)
    fill(estimator)
    with threadpool_limits(1), tempfile.TemporaryDirectory(dir=args.folder) as folder:
        measure(estimator, Path(folder) / "model.npz", args.rounds)


def fill(estimator: SemiparametricEstimator) -> None:
    """Give every local model all its centres."""
    rng = np.random.default_rng(0)
    residual = estimator.residual
    inputs = rng.normal(size=(100, residual.shared.features._centers.shape[1]))
    residual.standardizer.fit(np.arange(1, 101) * 10**9, inputs)
    for local in residual.models:
        n, d = local.features.capacity, local.features._centers.shape[1]
        factor = np.tril(0.01 * rng.normal(size=(n, n))) + np.eye(n)
        local.features.restore({"centers": rng.normal(size=(n, d)), "factor": factor})
        state = {"refreshed": np.array(0)}
        state |= {"R": np.triu(rng.normal(size=(n, n))) + n * np.eye(n)}
        state |= {"U": rng.normal(size=(n, local.core.n_outputs))}
        local.core.restore(state)


def measure(estimator: SemiparametricEstimator, path: Path, rounds: int) -> None:
    def snapshot() -> Snapshot:
        return estimator.identity(), {}, estimator.state()

    zeros = np.zeros(estimator.model.n_joints)
    sample = estimator.sample(zeros, zeros, zeros)
    autosave = Autosave(path, snapshot)
    copies, writes, loads = [], [], []
    alone: list[float] = []
    beside: list[float] = []
    for _ in range(rounds):
        predict_until(estimator, sample, alone, time.perf_counter() + 0.2)
        autosave.changed()
        autosave.request()
        autosave.step()
        while autosave.unsaved and not autosave.problem:
            predict_until(estimator, sample, beside, 0.0)
        autosave.wait()
        if autosave.problem:
            sys.exit(autosave.problem)
        copies.append(1e3 * autosave.copy_s)
        writes.append(1e3 * autosave.write_s)
        start = time.perf_counter()
        estimator.load(path)
        loads.append(1e3 * (time.perf_counter() - start))
    print(f"file: {path.stat().st_size / 1e6:.1f} MB")
    later = f", then {spread(copies[1:])}" if copies[1:] else ""
    print(f"copy: the first {copies[0]:.1f} ms{later}")
    print(f"write: {spread(writes)}")
    print(f"load: {spread(loads)}")
    print(f"prediction alone: {spread(alone[10:])}")
    print(f"prediction beside a write: {spread(beside)}")


def predict_until(
    estimator: SemiparametricEstimator, sample: Sample, times: list[float], end: float
) -> None:
    """Predict at least once, and until that time, ms."""
    while True:
        start = time.perf_counter()
        estimator.predict(sample)
        now = time.perf_counter()
        times.append(1e3 * (now - start))
        if now >= end:
            return


def spread(times: list[float]) -> str:
    low, middle, high = np.percentile(times, (0, 50, 99))
    return f"least {low:.2f}, median {middle:.2f}, p99 {high:.2f}, most {max(times):.2f} ms"


if __name__ == "__main__":
    main()
