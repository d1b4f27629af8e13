"""Blocks of about one independent observation each, and the noise model against its process."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.changes.innovations import (
    UNCORRELATED_SHARE,
    Block,
    BlockMean,
    NoiseModel,
)


def blocks(mean: BlockMean, stamps: list[int], errors: np.ndarray) -> list[Block]:
    columns = np.stack((errors, 2.0 * errors), axis=-1)
    found = [
        mean.add(stamp, error, column, error)
        for stamp, error, column in zip(stamps, errors, columns, strict=True)
    ]
    return [block for block in found if block is not None]


@pytest.mark.parametrize("rate", [50, 100, 333, 1000])
def test_as_many_a_second_at_any_rate_and_they_are_the_means(rate: int) -> None:
    n = 10 * rate
    stamps = [round(k * 1e9 / rate) for k in range(n)]
    errors = np.random.default_rng(0).standard_normal((n, 2))
    found = blocks(BlockMean(0.1, 0.5), stamps, errors)
    assert 95 <= len(found) <= 100
    for block in found:
        inside = [block.start <= stamp <= block.end for stamp in stamps]
        np.testing.assert_allclose(block.error, errors[inside].mean(axis=0))
        np.testing.assert_allclose(block.columns[:, 1], 2.0 * block.error)
        np.testing.assert_allclose(block.std, np.sqrt((errors[inside] ** 2).mean(axis=0)))
    assert [block.follows for block in found] == [False] + [True] * (len(found) - 1)


def test_slower_samples_than_blocks_are_blocks_themselves() -> None:
    stamps = [k * 1_000_000_000 for k in range(5)]
    found = blocks(BlockMean(0.1, 2.0), stamps, np.ones((5, 2)))
    # Of the first nobody knows how long it lasts, so that the second is with it.
    assert [(block.start, block.end) for block in found] == [
        (k * 1_000_000_000, max(k, 1) * 1_000_000_000) for k in (0, 2, 3, 4)
    ]


@pytest.mark.parametrize("jump", [5_000_000_000, -3_000_000_000])
def test_after_a_pause_or_a_clock_that_goes_back_nothing_follows(jump: int) -> None:
    mean = BlockMean(0.1, 0.5)
    before = [k * 10_000_000 for k in range(15)]
    after = [before[-1] + jump + k * 10_000_000 for k in range(25)]
    found = blocks(mean, before + after, np.ones((40, 2)))
    assert [block.follows for block in found] == [False, False, True]
    assert found[1].start == after[0]


def process(a: np.ndarray, root: np.ndarray, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    r = np.zeros((n, len(a)))
    for k in range(1, n):
        r[k] = a * r[k - 1] + root @ rng.standard_normal(len(a))
    return r


A = np.array([0.9, 0.3, 0.0])
ROOT = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.2, 2.0]])


def fitted(r: np.ndarray) -> NoiseModel:
    model = NoiseModel(3, 0.1, horizon=1000.0)
    for before, after in zip(r[:-1], r[1:], strict=True):
        model.update(after, before)
    return model


@pytest.fixture(scope="module")
def long_run() -> tuple[NoiseModel, np.ndarray]:
    r = process(A, ROOT, 20_000)
    return fitted(r), r


def test_correlation_and_covariance_are_found(long_run) -> None:
    model, _ = long_run
    np.testing.assert_allclose(model.correlation, A, atol=0.03)
    expected = ROOT @ ROOT.T
    expected = (1.0 - UNCORRELATED_SHARE) * expected + UNCORRELATED_SHARE * np.diag(
        np.diag(expected)
    )
    np.testing.assert_allclose(model.covariance, expected, atol=0.15)


def test_what_is_whitened_is_white(long_run) -> None:
    model, r = long_run
    white = model.whiten((r[1:] - model.correlation * r[:-1]).T).T[-5000:]
    # The covariance is taken as a tenth less correlated than it is.
    np.testing.assert_allclose(np.var(white, axis=0), 1.0, atol=0.25)
    np.testing.assert_allclose(np.mean(white[1:] * white[:-1], axis=0), 0.0, atol=0.06)


def test_errors_after_some_blocks_are_as_large_as_predicted(long_run) -> None:
    model, r = long_run
    power, grown = model.step(3)
    left = r[3:] - power * r[:-3]
    ratio = left.std(axis=0) / np.sqrt(np.diag(model.covariance))
    np.testing.assert_allclose(ratio, grown, rtol=0.1)
