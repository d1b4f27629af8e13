"""What benchmarks learn before they score: all of the training part, and nothing else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import real_arms
from arms import PLAIN, SEVEN, learned, splits


def test_the_samples_that_fill_no_block_are_learned_too(simulator: None) -> None:
    split, _ = splits(Path("DATA"), "sim_small", 12.0)
    run = learned(split.model, split.config.estimator, split.train)
    assert len(split.train) % 512
    assert run.estimator.n_learned == sum(sample.teaches for sample in split.train)


def test_simulated_arms_are_learned_without_friction_that_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arm = SimpleNamespace(urdf=SEVEN.read_text())
    monkeypatch.setattr(real_arms, "ArmSimulator", lambda urdf, **options: arm)
    monkeypatch.setattr(real_arms, "recorded", lambda model, config, arm: [])
    plain, full = (
        [split.model.n_parameters for split in real_arms.simulated_splits(Path("DATA"), 1, **given)]
        for given in (PLAIN, {})
    )
    assert all(np.array(plain) < full)
