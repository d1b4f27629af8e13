"""Files that version 0.1.0 wrote, format 1, from before there was a seal and forgetting."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.errors import DamagedModelError, StorageError

from .arms import motion, small_arm

FOLDER = Path(__file__).resolve().parent.parent / "data" / "format_1"
SETTINGS: dict[str, object] = {
    "nystrom.window": 0.5,
    "nystrom.max_centers": 12,
    "nystrom.joint_max_centers": 4,
    "random_fourier.window": 0.5,
    "random_fourier.n_features": 10,
}
LEARNED = 398  # of `measurements(model, 4.0, extra=2.0)`


def estimator(kind: str, **overrides: object) -> SemiparametricEstimator:
    return SemiparametricEstimator(small_arm(), residual=kind, **{**SETTINGS, **overrides})


@pytest.mark.parametrize("kind", ["nystrom", "random_fourier"])
def test_it_predicts_what_it_did_when_it_was_written(kind: str, tmp_path: Path) -> None:
    target = estimator(kind)
    target.load(FOLDER / f"{kind}.npz")
    assert target.n_learned == LEARNED
    states = zip(*motion(target.model, np.array([0.3, 1.7, 2.9]), 5), strict=True)
    wanted = json.loads((FOLDER / "predictions.json").read_text())[kind]
    samples = [target.sample(*state) for state in states]
    for sample, expected in zip(samples, wanted, strict=True):
        told = target.predict(sample)
        np.testing.assert_allclose(told.rigid_body, expected["rigid_body"], rtol=1e-8)
        np.testing.assert_allclose(told.semiparametric, expected["semiparametric"], rtol=1e-8)
        np.testing.assert_allclose(told.semiparametric_std, expected["std"], rtol=1e-8)

    target.save(tmp_path / "new.npz")  # in today's format
    again = estimator(kind)
    again.load(tmp_path / "new.npz")
    before, after = target.state(), again.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_another_configuration_is_still_refused() -> None:
    target = estimator("nystrom", **{"nystrom.length_scale": 0.3})
    with pytest.raises(StorageError, match="nystrom.length_scale is 0.2 there, 0.3 here$"):
        target.load(FOLDER / "nystrom.npz")


def test_a_changed_number_is_noticed(tmp_path: Path) -> None:
    content = bytearray((FOLDER / "nystrom.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "changed.npz").write_bytes(content)
    with pytest.raises(DamagedModelError, match="damaged"):
        estimator("nystrom").load(tmp_path / "changed.npz")
