"""Blocks of the estimator and of the baseline against their own steps, sample by sample."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.dynamics.baseline import NonparametricBaseline
from semiparam_dynamics.dynamics.estimator import BlockPrediction, SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import FilterConfig, SampleFilter
from semiparam_dynamics.dynamics.sample import Sample, SampleBlock
from semiparam_dynamics.offline.conversion.convert import convert_log
from semiparam_dynamics.offline.evaluation.protocols import record
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.bag import read_measurements

from .arms import run, samples, small_arm

WINDOWS = {"nystrom.window": 1.0, "random_fourier.window": 1.0}


def moving(target: str = "effort", **options: object) -> tuple[RobotModel, list[Sample]]:
    model = small_arm(target=target, sensor_frame="boom_sensor" if target == "wrench" else "")
    return model, samples(model, 6.0, extra=1.0, **options)


def learned(target: str, **options: object) -> tuple[SemiparametricEstimator, list[Sample]]:
    """An estimator after four seconds, and the samples of two more."""
    model, stream = moving(target)
    estimator = SemiparametricEstimator(model, **(WINDOWS | options))
    for sample in stream[:400]:
        estimator.update(sample)
    return estimator, stream[400:]


def same(got: BlockPrediction, wanted: Sequence[object], tolerance: float = 1e-9) -> None:
    for name in got.values:
        for array, key in ((got.values[name], name), (got.stds[name], f"{name}_std")):
            expected = np.array([getattr(p, key) for p in wanted])
            size = np.abs(expected).max(initial=1e-3)
            np.testing.assert_allclose(array, expected, rtol=tolerance, atol=tolerance * size)


def same_state(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    assert a.keys() == b.keys()
    for name, value in b.items():
        size = float(np.abs(value).max(initial=0.0))
        np.testing.assert_allclose(a[name], value, rtol=1e-8, atol=1e-9 * size, err_msg=name)


def both_protocols(
    model: RobotModel, stream: Sequence[Sample], options: dict[str, object], size: int
) -> None:
    """Blocks of `size`, in turn and delayed, against two estimators led by hand."""
    blocks, prompt, late = (SemiparametricEstimator(model, **options) for _ in range(3))
    late_errors = copy.deepcopy(blocks.errors)
    for start in range(0, len(stream), size):
        part = stream[start : start + size]
        block = SampleBlock.of(part)
        in_turn, delayed = blocks.update_block(block, late=late_errors)
        record(late_errors, block, delayed)
        same(in_turn, run(prompt, part))
        told, waiting = [], []
        for sample in part:
            told.append(late.predict(sample))
            if sample.informative:
                waiting.append((sample, told[-1], late.update_rigid_body(sample)))
        same(delayed, told)
        for learned in waiting:
            late.update_residual(*learned)
    same_state(blocks.state(), prompt.state())
    same_state(blocks.state() | late_errors.state(), late.state())
    assert blocks.n_learned == sum(sample.informative for sample in stream)


def predicted(estimator: SemiparametricEstimator, stream: Sequence[Sample]) -> BlockPrediction:
    """A block's predictions, which are those of its samples one by one."""
    got = estimator.predict_block(SampleBlock.of(stream))
    same(got, [estimator.predict(sample) for sample in stream])
    return got


@pytest.mark.parametrize("target", ["effort", "wrench"])
@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
def test_a_block_is_predicted_as_one_by_one(target: str, residual: str) -> None:
    got = predicted(*learned(target, residual=residual))
    assert np.abs(got.values["semiparametric"] - got.values["rigid_body"]).max() > 0.0


@pytest.mark.parametrize("target", ["effort", "wrench"])
@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
def test_one_pass_is_both_protocols(target: str, residual: str) -> None:
    # Blocks end before, at and after the sample from which on inputs are scaled; centers grow.
    model, stream = moving(target)
    options = WINDOWS | {"random_fourier.n_features": 60, "nystrom.max_centers": 25}
    both_protocols(model, stream[:450], options | {"residual": residual}, size=50)


@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
def test_rest_is_predicted_in_its_turn_and_not_learned(residual: str) -> None:
    model, stream = moving()
    for rows in (range(30), range(70, 75), range(150, 260), range(290, 292)):
        for k in rows:
            stream[k] = dataclasses.replace(stream[k], informative=False)
    options = WINDOWS | {"random_fourier.n_features": 60, "nystrom.max_centers": 25}
    both_protocols(model, stream[:350], options | {"residual": residual}, size=50)


@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
def test_axes_that_are_not_measured_cost_nothing_but_themselves(residual: str) -> None:
    model, stream = moving()
    whole = stream[:400]
    stream = [dataclasses.replace(sample, y=sample.y.copy()) for sample in whole]
    y = np.array([sample.y for sample in whole])
    for k, sample in enumerate(stream):
        sample.y[2] = np.nan
        if 120 <= k < 180 or k in (220, 390):
            sample.y[0] = np.nan
        if k in (60, 200, 201):  # no axis was
            sample.y[:] = np.nan
    options = WINDOWS | {"random_fourier.n_features": 60, "nystrom.max_centers": 25}
    options |= {"residual": residual}
    both_protocols(model, stream, options, size=50)
    dead, alive = (SemiparametricEstimator(model, **options) for _ in range(2))
    told, wanted = (run(e, s) for e, s in ((dead, stream), (alive, whole)))
    values, expected = (np.array([p.semiparametric for p in x]) for x in (told, wanted))
    assert np.isfinite(values).all()
    if residual == "nystrom":  # its inputs that are no good are local, too
        errors, usual = (np.mean((v - y)[100:, [1, 3]] ** 2, axis=0) for v in (values, expected))
        assert np.all(errors < 1.7 * usual)
    # Nobody knows the third joint's friction, and no residual is made up for it.
    left = np.array([p.residual.value for p in told])
    assert not left[:, 2].any() and left[300:, :2].any()
    assert dead.n_learned == len(stream)


def test_small_blocks_and_other_choices() -> None:
    model, stream = moving(seed=3)
    options = WINDOWS | {"residual": "nystrom", "rigid_body.memory": 1.0}
    both_protocols(model, stream[:200], options, size=7)
    options |= {"nystrom.wide_max_centers": 0, "nystrom.penalty": 1e-3}
    both_protocols(model, stream[:300], options, size=60)


@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
def test_on_a_recorded_log(residual: str, data_file: Callable[[str], Path], tmp_path: Path) -> None:
    folder = data_file("robots/xmate7p")
    urdf = next(folder.glob("*.urdf"))
    model = RobotModel(str(urdf))
    convert_log(folder / "trajectory_1.npz", tmp_path / "bag", names=model.joint_names)
    recording = read_measurements(tmp_path / "bag", model.joint_names).measurements
    stream = list(SampleFilter(model, FilterConfig()).filter_recording(recording))
    options = {"residual": residual, "random_fourier.n_features": 200}
    both_protocols(model, stream[:400], options, size=25)


@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
def test_the_baseline_in_blocks_is_the_baseline_one_by_one(residual: str) -> None:
    model, stream = moving()
    config = SemiparametricEstimator(model, residual=residual, **WINDOWS).config
    blocks, prompt, late = (NonparametricBaseline(model, config) for _ in range(3))
    late_errors = copy.deepcopy(blocks.errors)
    stream[120:170] = [dataclasses.replace(sample, informative=False) for sample in stream[120:170]]
    for start in range(0, 450, 50):
        part = stream[start : start + 50]
        block = SampleBlock.of(part)
        in_turn, delayed = blocks.update_block(block, late=late_errors)
        record(late_errors, block, delayed)
        same(in_turn, run(prompt, part))
        told = [late.predict(sample) for sample in part]
        same(delayed, told)
        for sample, prediction in zip(part, told, strict=True):
            late.update(sample, prediction)
    same_state(blocks.errors.state(), prompt.errors.state())
    same_state(late_errors.state(), late.errors.state())
    same(blocks.predict_block(block), [prompt.predict(sample) for sample in part])


def test_bounds_hold_and_are_counted_alike() -> None:
    estimator, stream = learned("effort", **{"output.bound": (3.0,)})
    other, counts = estimator.copy(), estimator.bound.counts
    counts.clear()
    wanted = [other.predict(sample) for sample in stream]
    same(estimator.predict_block(SampleBlock.of(stream)), wanted)
    assert counts == other.bound.counts and sum(counts.values()) > 0
    assert max(np.abs(p.semiparametric).max() for p in wanted) == 3.0


def test_before_anything_was_learned() -> None:
    estimator, stream = learned("effort", **{"nystrom.window": 100.0})
    got = predicted(estimator, stream)
    assert np.array_equal(got.values["semiparametric"], got.values["rigid_body"])
    ready = SemiparametricEstimator(estimator.model, **{"nystrom.window": 0.0})
    for sample in stream[:2]:
        ready.update(sample)  # scales, but no center yet
    same(ready.predict_block(SampleBlock.of(stream)), [ready.predict(sample) for sample in stream])


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
        assert SemiparametricEstimator(model, **options).learns_in_blocks == possible
