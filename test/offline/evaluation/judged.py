"""Evaluations whose models have given errors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.offline.evaluation.experiment import Evaluation
from semiparam_dynamics.offline.evaluation.protocols import ALL_MODELS, PROTOCOLS, ProtocolRun

from ...dynamics.arms import small_arm

GOOD = {
    "urdf": 0.5,
    "plain_rigid_body": 0.25,
    "batch": 0.22,
    "rigid_body": 0.2,
    "nonparametric": 0.3,
    "semiparametric": 0.1,
    "persistence": 0.4,
}
SAMPLES, STEP = 400, 125_000_000  # ns


@cache
def untaught() -> InverseDynamicsLearner:
    return InverseDynamicsLearner(small_arm(), InverseDynamicsConfig())


def judged(
    errors: Mapping[str, object],
    std: float = 0.1,
    delayed: Mapping[str, object] | None = None,
    **facts: object,
) -> Evaluation:
    """An evaluation whose models are off by given errors, the semiparametric by its std.

    errors: of each model, one, (4,) of the axes or (400, 1) of the samples. delayed: those that
    differ in that protocol.
    """
    learner, runs = untaught(), {}
    for protocol in PROTOCOLS:
        runs[protocol] = ProtocolRun(learner, protocol)
        own = {**errors, **(delayed or {})} if protocol == "delayed" else errors
        rng = np.random.default_rng(1)
        y = rng.standard_normal((SAMPLES, 4))
        sign = rng.choice([-1.0, 1.0], (SAMPLES, 4))
        told = {name: y + sign * own[name] for name in ALL_MODELS}
        stds = np.full_like(y, std)
        runs[protocol].scores.add(y, told, {"semiparametric": stds})
        runs[protocol].trace.add(STEP * np.arange(SAMPLES), y, told, stds)
    given = {"samples": SAMPLES, "motion": 40.0, **facts}
    return Evaluation(learner.model, learner.config, runs, **given)  # type: ignore[arg-type]
