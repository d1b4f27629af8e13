"""What benchmarks learn before they score: all of the training part, and nothing else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from arm_splits import Side, arm_splits
from arms import PLAIN, SEVEN, learned
from joint_safety import splits

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
