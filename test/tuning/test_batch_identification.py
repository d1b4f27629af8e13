"""The rigid body identified at once is the one identified row by row."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.tuning.folds import identified

from .recorded import motions


@pytest.mark.parametrize("prior", ["zero", "urdf"])
def test_it_is_the_recursions_answer_for_every_ridge(prior: str) -> None:
    arm, recorded = motions()
    motion = recorded[0].take(slice(0, 200))
    penalties = [0.1, 1.0, 30.0]
    config = RigidBodyConfig(prior=prior)
    for penalty, found in zip(penalties, identified(arm, motion, config, penalties), strict=True):
        start = arm.prior if prior == "urdf" else np.zeros_like(arm.prior)
        recursion = RigidBodyIdentifier(
            arm.scales.output, arm.scales.column, start, RigidBodyConfig(penalty, prior)
        )
        for entries, y in zip(motion.entries, motion.y, strict=True):
            recursion.update(arm.regressor(entries), y)
        assert np.allclose(found, recursion.parameters, rtol=1e-8, atol=1e-9)


def test_an_arm_gives_back_the_regressor_and_its_prediction() -> None:
    arm, recorded = motions()
    entries = recorded[0].entries[:5]
    pi = np.random.default_rng(0).standard_normal(len(arm.prior))
    expected = [arm.regressor(e) @ pi for e in entries]
    assert np.allclose(arm.rigid_body(entries, pi), expected)
