"""Blocks of the estimator and of the baseline against their predictions, sample by sample."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from semiparam_dynamics.dynamics.baseline import NonparametricBaseline
from semiparam_dynamics.dynamics.estimator import BlockPrediction, SemiparametricEstimator
from semiparam_dynamics.dynamics.sample import Sample, SampleBlock
from semiparam_dynamics.robot.model import RobotModel

from .arms import FEW_CENTERS, run, samples, small_arm

WINDOWS = {"nystrom.window": 1.0, "random_fourier.window": 1.0, **FEW_CENTERS}


def moving(target: str = "effort", **options: object) -> tuple[RobotModel, list[Sample]]:
    model = small_arm(target=target, sensor_frame="boom_sensor" if target == "wrench" else "")
    return model, samples(model, 6.0, extra=1.0, **options)


def learned(target: str, **options: object) -> tuple[SemiparametricEstimator, list[Sample]]:
    """An estimator after three seconds, and the samples of one more."""
    model, stream = moving(target)
    estimator = SemiparametricEstimator(model, **(WINDOWS | options))
    for sample in stream[:300]:
        estimator.update(sample)
    return estimator, stream[300:400]


def same(got: BlockPrediction, wanted: Sequence[object], tolerance: float = 1e-9) -> None:
    for name in got.values:
        for array, key in ((got.values[name], name), (got.stds[name], f"{name}_std")):
            expected = np.array([getattr(p, key) for p in wanted])
            size = np.abs(expected).max(initial=1e-3)
            np.testing.assert_allclose(array, expected, rtol=tolerance, atol=tolerance * size)


def predicted(estimator: SemiparametricEstimator, stream: Sequence[Sample]) -> BlockPrediction:
    """A block's predictions, which are those of its samples one by one."""
    got = estimator.predict_block(SampleBlock.of(stream))
    same(got, [estimator.predict(sample) for sample in stream])
    return got


@pytest.mark.parametrize(
    ("target", "residual"),
    [("effort", "nystrom"), ("wrench", "nystrom"), ("effort", "random_fourier")],
)
def test_a_block_is_predicted_as_one_by_one(target: str, residual: str) -> None:
    got = predicted(*learned(target, residual=residual))
    assert np.abs(got.values["semiparametric"] - got.values["rigid_body"]).max() > 0.0


def test_rest_is_predicted_in_its_turn_and_not_learned() -> None:
    model, stream = moving()
    for rows in (range(30), range(150, 260), range(290, 292)):
        for k in rows:
            stream[k] = dataclasses.replace(stream[k], informative=False)
    blocks, prompt = (SemiparametricEstimator(model, **WINDOWS) for _ in range(2))
    for start in range(0, 300, 50):
        part = stream[start : start + 50]
        told = run(prompt, part)
        same(blocks.update_block(SampleBlock.of(part))[0], told, tolerance=0.0)
    assert blocks.n_learned == prompt.n_learned == 158
    for name, value in prompt.state().items():
        np.testing.assert_array_equal(blocks.state()[name], value)


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


@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
def test_the_baseline_in_blocks_is_the_baseline_one_by_one(residual: str) -> None:
    model, stream = moving()
    config = SemiparametricEstimator(model, residual=residual, **WINDOWS).config
    blocks, prompt = (NonparametricBaseline(model, config) for _ in range(2))
    stream[120:170] = [dataclasses.replace(sample, informative=False) for sample in stream[120:170]]
    for start in range(0, 450, 50):
        part = stream[start : start + 50]
        same(blocks.predict_block(SampleBlock.of(part)), [prompt.predict(s) for s in part])
        same(blocks.update_block(SampleBlock.of(part)), run(prompt, part), tolerance=0.0)


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
