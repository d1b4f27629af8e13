"""A configuration judged by the learner itself, sample by sample, as `semiparam evaluate` does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.evaluation.protocols import ProtocolRun
from semiparam_dynamics.parameters import replace
from semiparam_dynamics.tuning.candidates import FoldScore
from semiparam_dynamics.tuning.folds import least_window
from semiparam_dynamics.tuning.motion import Arm, Motion
from semiparam_dynamics.tuning.splits import Split


def confirm(urdf: str | Path, config: InverseDynamicsConfig, split: Split) -> FoldScore:
    """Learn the training part sample by sample, then go on, delayed and frozen, on the rest."""
    model = RobotModel(urdf, config.robot)
    arm = Arm.of(model)
    window = f"{config.estimator.residual}.window"
    seconds = least_window(getattr(config.estimator, config.estimator.residual).window, split.train)
    tried = replace(config.estimator, **{"comparison": False, window: seconds})
    estimator = SemiparametricEstimator(model, tried)
    with threadpool_limits(limits=1):  # a sample's products are too small to be spread
        first = ProtocolRun(estimator, "sequential")
        for sample in _samples(arm, split.train):
            first.step(sample, score=False)
        runs = {name: first.branch(name) for name in ("delayed", "frozen")}
        for sample in _samples(arm, split.held_out):
            for run in runs.values():
                run.step(sample)
    late, frozen = (runs[name].scores for name in ("delayed", "frozen"))
    return FoldScore(
        fold=split.name,
        frozen=frozen.nmse("semiparametric"),
        rigid_frozen=frozen.nmse("rigid_body"),
        delayed=late.nmse("semiparametric"),
        rigid_delayed=late.nmse("rigid_body"),
        evidence=np.nan,
    )


def _samples(arm: Arm, motion: Motion) -> Iterator[Sample]:
    for i, entries in enumerate(motion.entries):
        yield Sample(
            int(motion.stamps[i]),
            motion.q[i],
            motion.dq[i],
            motion.ddq[i],
            arm.regressor(entries),
            motion.y[i],
        )
