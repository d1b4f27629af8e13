"""Wrenches at the tool found from joint efforts, on logs to whose efforts known ones were added.

    python benchmarks/external_wrench.py DATA [--logs xmate7p ur10 ...] [--seconds 60]

DATA holds robots. Each model learns the training part of its log and then stays as it is. On the
test part a wrench at the tool acts for two seconds, then none for two, and so on; through the
frame's Jacobian that changes each measured effort exactly, as long as the controller held the
motion. Errors of force and moment, half a second after each change at the earliest, which the
low-pass takes: means and 95th percentiles, and how often the 95 % ellipsoid covers the truth.
Beside it, of the same filtered signals: what the URDF's own parameters leave, and what the rigid
body that was identified leaves, through the pseudo-inverse of the Jacobian; that is what a momentum
observer gives on these, after such a filter. And the latter by this package's estimate.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import numpy as np
from scipy.stats import chi2

sys.path.insert(0, str(Path(__file__).resolve().parent / "field"))

from logs import SPLITS, Split, measurements, splits

from semiparam_dynamics.arrays import SECOND, Array
from semiparam_dynamics.changes.external_wrench import ExternalWrench, FrameMotion
from semiparam_dynamics.doctor.joint_log import JointLog
from semiparam_dynamics.learner import InverseDynamicsLearner
from semiparam_dynamics.robot.model import RobotModel

HOLD = 2.0  # s that a wrench lasts
SETTLED = 0.5  # s after a change
FORCES, MOMENTS = (5.0, 40.0), (0.5, 4.0)  # N, N m
ESTIMATES = ("URDF", "rigid body", "rigid body, damped and weighted", "~/external_wrench")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--logs", nargs="+", default=[*SPLITS, "sim_seven"], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=0.0, help="of each log, 0: all")
    args = parser.parse_args()
    titles = "log, frame | by | force, N: mean | 95 % | moment, N m: mean | 95 % | covered"
    print(f"| {titles} |\n|---|---|---|---|---|---|---|")
    for split in splits(args.data, args.logs, args.seconds):
        tell(split)


def tell(split: Split) -> None:
    model = RobotModel(split.urdf, split.config.robot)
    learner = InverseDynamicsLearner(model, split.config)
    for log in split.train:
        for measurement in measurements(log, model, split.config):
            if (step := learner.predict(measurement)) is not None:
                learner.update(learner.admit(step))
    estimator, motion = ExternalWrench(model), FrameMotion(model)
    stamps, wrenches = wrenches_along(split.test)
    errors: dict[str, list[Array]] = {name: [] for name in ESTIMATES}
    covered = []
    for measurement in measurements(pushed(split.test, wrenches, motion), model, split.config):
        step = learner.predict(measurement)
        if step is None or step.y is None:
            continue
        k = int(np.searchsorted(stamps, step.stamp))
        since = (step.stamp - split.test.stamps[0]) / SECOND % HOLD
        if since < SETTLED or k >= len(wrenches):
            continue
        sample, prediction, known = step.sample, step.prediction, np.isfinite(step.y)
        J = motion.jacobian(sample.q)[:, known]
        urdf = model.inverse_dynamics(sample.q, sample.dq, sample.ddq)
        for name, told in zip(ESTIMATES, (urdf, prediction.rigid_body), strict=False):
            found = -np.linalg.pinv(J.T) @ (step.y - told)[known]
            errors[name].append(found - wrenches[k])
        external = step.y - prediction.rigid_body
        found, _, _ = estimator.estimate(sample.q, external, prediction.rigid_body_std)
        errors[ESTIMATES[2]].append(found - wrenches[k])
        external = step.y - prediction.semiparametric
        found, covariance, _ = estimator.estimate(sample.q, external, prediction.semiparametric_std)
        error = found - wrenches[k]
        errors[ESTIMATES[3]].append(error)
        covered.append(error @ np.linalg.solve(covariance, error) <= chi2.ppf(0.95, 6))
    for name, rows in errors.items():
        sizes = [np.linalg.norm(np.array(rows)[:, part], axis=1) for part in (np.s_[:3], np.s_[3:])]
        shown = " | ".join(f"{np.mean(s):.3g} | {np.percentile(s, 95):.3g}" for s in sizes)
        share = f"{np.mean(covered):.3f}" if name == ESTIMATES[3] else ""
        print(f"| {split.name}, {motion.frame} | {name} | {shown} | {share} |", flush=True)


def wrenches_along(log: JointLog) -> tuple[Array, Array]:
    """Stamps (n,) of a log, and the wrench (n, 6) at each of its messages."""
    rng = np.random.default_rng(0)
    holds = (log.times // HOLD).astype(int)
    made = np.zeros((holds.max() + 1, 6))
    for hold in range(1, len(made), 2):
        for part, (low, high) in ((np.s_[:3], FORCES), (np.s_[3:], MOMENTS)):
            direction = rng.normal(size=3)
            made[hold, part] = rng.uniform(low, high) * direction / np.linalg.norm(direction)
    return log.stamps, made[holds]


def pushed(log: JointLog, wrenches: Array, motion: FrameMotion) -> JointLog:
    """The log as it would be with these wrenches (n, 6) at the frame."""
    assert log.y is not None
    added = [motion.jacobian(q).T @ w for q, w in zip(log.q, wrenches, strict=True)]
    return dataclasses.replace(log, y=log.y - np.array(added))


if __name__ == "__main__":
    main()
