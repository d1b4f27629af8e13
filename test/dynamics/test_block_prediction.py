"""Blocks against the estimator's own steps, sample by sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.dynamics.estimator import (
    BlockPrediction,
    SemiparametricEstimator,
    ask_block,
    beside,
    counted,
    learn_block,
    learns_in_blocks,
    predicted,
    record_block,
)
from semiparam_dynamics.dynamics.filtering import FilterConfig, SampleFilter
from semiparam_dynamics.dynamics.sample import Prediction, Sample, SampleBlock
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.bag import read_measurements
from semiparam_dynamics.samples.convert import convert_npz

from .arms import measurements, small_arm

MODELS = ("rigid_body", "nonparametric", "semiparametric")
WINDOWS = {"nystrom.window": 1.0, "random_fourier.window": 1.0}


def moving(target: str = "effort", **options: object) -> tuple[RobotModel, list[Sample]]:
    model = small_arm(target=target, sensor_frame="boom_sensor" if target == "wrench" else "")
    stream = list(measurements(model, 6.0, extra=1.0, **options))
    return model, list(SampleFilter(model, FilterConfig()).filter_recording(stream))


def learned(target: str, **options: object) -> tuple[SemiparametricEstimator, list[Sample]]:
    """An estimator after four seconds, and the samples of two more."""
    model, samples = moving(target)
    estimator = SemiparametricEstimator(model, **(WINDOWS | options))
    for sample in samples[:400]:
        estimator.update(sample)
    return estimator, samples[400:]


def same(got: BlockPrediction, wanted: Sequence[Prediction], tolerance: float = 1e-9) -> None:
    for name in MODELS:
        for array, key in ((got.values[name], name), (got.stds[name], f"{name}_std")):
            expected = np.array([getattr(p, key) for p in wanted])
            size = np.nanmax(np.abs(expected), initial=1e-3)
            np.testing.assert_allclose(array, expected, rtol=tolerance, atol=tolerance * size)


def same_state(got: SemiparametricEstimator, wanted: SemiparametricEstimator) -> None:
    a, b = got.state(), wanted.state()
    assert a.keys() == b.keys()
    for name, value in b.items():
        size = float(np.abs(value).max(initial=0.0))
        np.testing.assert_allclose(a[name], value, rtol=1e-8, atol=1e-9 * size, err_msg=name)


def both_protocols(
    model: RobotModel, samples: Sequence[Sample], options: dict[str, object], size: int
) -> None:
    """Blocks of `size`, predicted promptly and late, against two estimators led by hand."""
    block_by_block = SemiparametricEstimator(model, **options)
    late_errors = beside(block_by_block)
    prompt, late = (SemiparametricEstimator(model, **options) for _ in range(2))
    for start in range(0, len(samples), size):
        part = samples[start : start + size]
        block = SampleBlock.of(part)
        now, beforehand = learn_block(block_by_block, block)
        at_once = predicted(late_errors, beforehand)
        record_block(late_errors, block, at_once.values)
        told = []
        for sample in part:
            told.append(prompt.predict(sample))
            prompt.update(sample, told[-1])
        same(counted(block_by_block, block, now), told)
        told = []
        for sample in part:
            told.append(late.predict(sample))
            late.update_rigid_body(sample, told[-1])
        same(at_once, told)
        for sample, prediction in zip(part, told, strict=True):
            late.update_nonparametric(sample, prediction)
    same_state(block_by_block, prompt)
    same_state(late_errors, late)
    assert block_by_block.n_learned == len(samples)


@pytest.mark.parametrize("target", ["effort", "wrench"])
@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
@pytest.mark.parametrize("comparison", [True, False])
def test_equals_one_by_one(target: str, residual: str, comparison: bool) -> None:
    estimator, samples = learned(target, residual=residual, comparison=comparison)
    one_by_one = estimator.copy()  # what is asked is followed by the trust
    got = ask_block(estimator, SampleBlock.of(samples))
    same(got, [one_by_one.predict(sample) for sample in samples])
    assert np.abs(got.values["semiparametric"] - got.values["rigid_body"]).max() > 0.0


@pytest.mark.parametrize("target", ["effort", "wrench"])
@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
def test_one_pass_is_both_protocols(target: str, residual: str) -> None:
    # Blocks end before, at and after the sample from which on inputs are scaled; centres grow.
    model, samples = moving(target)
    options = WINDOWS | {"random_fourier.n_features": 60, "nystrom.max_centers": 25}
    both_protocols(model, samples[:450], options | {"residual": residual}, size=50)


def test_small_blocks_and_other_choices() -> None:
    model, samples = moving(seed=3)
    options = WINDOWS | {"residual": "nystrom", "comparison": False, "rigid_body.memory": 1.0}
    both_protocols(model, samples[:200], options, size=7)
    options |= {"nystrom.joint_max_centers": 0, "rigid_body.prior": "urdf", "nystrom.penalty": 1e-3}
    both_protocols(model, samples[:300], options, size=60)


@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
def test_on_a_recorded_log(residual: str, data_file: Callable[[str], Path], tmp_path: Path) -> None:
    folder = data_file("robots/xmate7p")
    urdf = next(folder.glob("*.urdf"))
    model = RobotModel(str(urdf))
    convert_npz(folder / "trajectory_1.npz", tmp_path / "bag", names=model.joint_names)
    stream = read_measurements(tmp_path / "bag", model.joint_names).measurements
    samples = list(SampleFilter(model, FilterConfig()).filter_recording(stream))
    options = {"residual": residual, "comparison": False, "random_fourier.n_features": 200}
    both_protocols(model, samples[:750], options, size=25)


def test_bounds_hold_and_are_counted_alike() -> None:
    estimator, samples = learned("effort", **{"output.bound": (3.0,)})
    counts = estimator.bound.counts
    counts.clear()
    wanted = [estimator.predict(sample) for sample in samples]
    one_by_one = dict(counts)
    counts.clear()
    same(ask_block(estimator, SampleBlock.of(samples)), wanted)
    assert dict(counts) == one_by_one and sum(one_by_one.values()) > 0
    assert max(np.abs(p.semiparametric).max() for p in wanted) == 3.0


def test_before_anything_was_learned() -> None:
    estimator, samples = learned("effort", **{"nystrom.window": 100.0})
    one_by_one = estimator.copy()  # what is asked is followed by the trust
    got = ask_block(estimator, SampleBlock.of(samples))
    same(got, [one_by_one.predict(sample) for sample in samples])
    assert np.array_equal(got.values["semiparametric"], got.values["rigid_body"])
    ready = SemiparametricEstimator(estimator.model, **{"nystrom.window": 0.0})
    for sample in samples[:2]:
        ready.update(sample)  # scales, but no centre yet
    same(ask_block(ready, SampleBlock.of(samples)), [ready.predict(sample) for sample in samples])


def test_what_learns_by_its_predictions_or_forgets_is_not_learned_in_blocks() -> None:
    model = small_arm()
    for options, possible in (
        ({}, True),
        ({"rigid_body.memory": 10.0}, True),
        ({"output.gate": 3.0}, False),
        ({"nystrom.memory": 10.0}, False),
        ({"random_fourier.memory": 10.0}, True),
        ({"residual": "random_fourier", "random_fourier.memory": 10.0}, False),
    ):
        assert learns_in_blocks(SemiparametricEstimator(model, **options)) == possible


def test_an_estimator_beside_another_has_errors_of_its_own() -> None:
    estimator, samples = learned("effort", **{"nystrom.max_centers": 20})
    other = beside(estimator)
    n_learned, spread = other.n_learned, other.errors["semiparametric"].value.copy()
    block = SampleBlock.of(samples)
    counted(estimator, block, learn_block(estimator, block)[0])
    assert other.n_learned == n_learned == estimator.n_learned - len(samples)
    assert np.array_equal(other.errors["semiparametric"].value, spread)
    assert np.array_equal(other.rigid_body.parameters, estimator.rigid_body.parameters)
