"""What benchmarks learn before they score: all of the training part, and nothing else."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import forgetting
import numpy as np
import pytest
from arm_splits import Side, arm_splits
from arms import PLAIN, SEVEN, learned
from joint_safety import splits

from semiparam_dynamics.dynamics.sample import Sample

SECONDS = 12.0


@pytest.fixture(scope="module")
def side() -> Side:
    pytest.importorskip("mujoco")
    first, _ = arm_splits(Path("DATA"), "sim_small", SECONDS)
    return first.full


def test_the_samples_that_fill_no_block_are_learned_too(side: Side) -> None:
    run = learned(side.model, side.config.estimator, side.train)
    assert len(side.train) % 512
    assert run.estimator.n_learned == sum(sample.teaches for sample in side.train)


def test_the_rigid_body_alone_is_scored_as_beside_a_residual(side: Side) -> None:
    def resting(samples: list[Sample]) -> list[Sample]:
        still = [dataclasses.replace(s, informative=k % 5 > 0) for k, s in enumerate(samples)]
        return [dataclasses.replace(s, y=s.y if s.informative else 3.0 * s.y) for s in still]

    parts = resting(side.train), resting(side.test)
    alone = forgetting.rigid_body_scores(side.model, side.config.estimator, *parts)
    both = forgetting.both_scores(side.model, side.config.estimator, *parts)
    np.testing.assert_allclose(alone[::2], both[::2], rtol=1e-6)


def test_simulated_arms_are_learned_without_friction_that_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arm = SimpleNamespace(urdf=SEVEN.read_text())
    monkeypatch.setattr("joint_safety.ArmSimulator", lambda urdf, **options: arm)
    monkeypatch.setattr("joint_safety.recorded", lambda model, config, arm: [])
    plain, full = (
        [model.n_parameters for _, model, *_ in splits(Path("DATA"), ["simulated"], 1, **options)]
        for options in (PLAIN, {})
    )
    assert all(np.array(plain) < full)
